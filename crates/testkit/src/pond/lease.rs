//! The lock of a leased table: numbered generations, each put if absent.
//!
//! Whoever creates the next generation holds the lock, once the one before is released (a second object says so) or
//! has run out. A holder that
//! was paused finds a newer generation and knows that it lost the lock. It may still publish if it does not ask: a lock on
//! a store cannot fence a holder whose publish excludes nobody.
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use lakebed_core::{
    Error, ErrorKind, Result,
    commit::Lease,
    env::Env,
    path::FilePath,
    storage::{Put, Storage},
};
use serde::{Deserialize, Serialize};

use super::layout;

/// How long a lock holds.
pub(super) const TERM_MS: i64 = 10_000;
const TRIES: u32 = 2_000;
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Lock {
    owner: String,
    until: i64,
}

impl Lock {
    fn bytes(&self) -> bytes::Bytes {
        serde_json::to_vec(self).expect("plain data").into()
    }
}

#[derive(Debug)]
pub(super) struct PondLease {
    storage: Storage,
    env: Env,
    generation: u64,
    lock: Lock,
}

/// Waits for the lock and takes it.
///
/// # Errors
/// `Conflict` when others hold it for too long.
pub(super) async fn acquire(storage: &Storage, env: &Env, owner: &str) -> Result<PondLease> {
    for _ in 0..TRIES {
        let now = env.clock.now().0;
        let newest = newest(storage).await?;
        let free = newest.as_ref().is_none_or(|it| it.released || it.lock.until < now);
        if !free {
            env.clock.sleep(PAUSE).await;
            continue;
        }
        let generation = newest.map_or(0, |it| it.generation + 1);
        let lock = Lock { owner: owner.to_owned(), until: now + TERM_MS };
        let held = match storage.create(&layout::lock(generation), lock.bytes()).await? {
            Put::Won => true,
            Put::Lost | Put::Unknown => read(storage, generation).await?.as_ref() == Some(&lock),
        };
        if held {
            return Ok(PondLease { storage: storage.clone(), env: env.clone(), generation, lock });
        }
    }
    Err(Error::new(ErrorKind::Conflict, "other writers hold the table's lock"))
}

/// The lock as the store shows it.
struct Newest {
    generation: u64,
    lock: Lock,
    released: bool,
}

async fn newest(storage: &Storage) -> Result<Option<Newest>> {
    let listed: Vec<_> = storage.list_after(layout::LOCK, "").try_collect().await?;
    let generation = |path: &str| path.rsplit('/').next()?.strip_suffix(".json")?.parse::<u64>().ok();
    let Some(generation) = listed.iter().filter_map(|it| generation(&it.path)).max() else { return Ok(None) };
    let released = listed.iter().any(|it| it.path == layout::released(generation));
    let lock = read(storage, generation).await?;
    Ok(lock.map(|lock| Newest { generation, lock, released }))
}

async fn read(storage: &Storage, generation: u64) -> Result<Option<Lock>> {
    let path = layout::lock(generation);
    let Some(body) = storage.read(&FilePath::below(path.as_str())).await? else { return Ok(None) };
    serde_json::from_slice(&body).map(Some).map_err(|it| Error::corrupt(format!("{path}: {it}")))
}

#[async_trait]
impl Lease for PondLease {
    async fn still_held(&self) -> Result<bool> {
        let newest = newest(&self.storage).await?;
        let ours = newest.is_some_and(|it| it.generation == self.generation && it.lock == self.lock && !it.released);
        Ok(ours && self.env.clock.now().0 < self.lock.until)
    }

    async fn release(self: Box<Self>) -> Result<()> {
        // Lost or unanswered: the lock then runs out by itself.
        let _ = self.storage.create(&layout::released(self.generation), bytes::Bytes::new()).await?;
        Ok(())
    }
}
