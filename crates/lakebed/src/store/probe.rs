//! A commit goes only to a store that proved that it honours "create only if absent".
//!
//! The proof ([`probe_create`]) is asked for once an endpoint and bucket, before the first commit, and is not in the
//! request counts. A pass is kept in the user's cache folder for thirty days; a failure is never kept, since somebody
//! may mend the store.
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use lakebed_core::{
    Result,
    commit::{Publish, Publisher, StoragePublisher},
    env::Env,
    storage::{Put, Storage, probe_create},
    version::Millis,
};

use crate::{
    flight::Flights,
    location::{Place, Scheme},
    store::{Stores, read_only::read_only},
};

const KEPT_MS: i64 = 30 * 86_400_000;

/// Publishes to storage, after the store behind it has proved that it can.
#[derive(Debug)]
pub(crate) struct ProbingPublisher {
    pub(crate) stores: Arc<Stores>,
    pub(crate) env: Env,
    /// Where passes are kept; `None` keeps them nowhere.
    pub(crate) cache: Option<PathBuf>,
    pub(crate) flights: Arc<Flights>,
}

#[async_trait]
impl Publisher for ProbingPublisher {
    async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
        if self.stores.read_only() {
            return Err(read_only());
        }
        self.ensure(storage.location()).await?;
        let flight = self.flights.depart(storage, publish);
        let answer = StoragePublisher.publish(storage, publish).await;
        self.flights.answered(flight, &answer);
        answer
    }
}

impl ProbingPublisher {
    /// Probes the store of `location` unless a pass is known. Local disks and memory prove themselves in tests.
    async fn ensure(&self, location: &str) -> Result<()> {
        let place = self.stores.place(location)?;
        let Place::Remote { scheme, authority, .. } = &place else { return Ok(()) };
        if *scheme == Scheme::Memory {
            return Ok(());
        }
        let record = self.cache.as_ref().map(|it| it.join("probes").join(file_name(&self.stores, *scheme, authority)));
        if record.as_ref().is_some_and(|it| passed(it, self.env.clock.now())) {
            return Ok(());
        }
        let (store, root) = self.stores.uncounted(&place)?;
        probe_create(&store, &root, &self.env).await?.require(store.as_ref())?;
        if let Some(record) = record {
            keep(&record, self.env.clock.now());
        }
        Ok(())
    }
}

/// One name an endpoint and bucket; different ones never share a name.
fn file_name(stores: &Stores, scheme: Scheme, authority: &str) -> String {
    let endpoint = stores.endpoint(scheme).unwrap_or("default");
    let text = format!("{}-{endpoint}-{authority}", scheme.name());
    let kept = |it: u8| it.is_ascii_alphanumeric() || b"-.".contains(&it);
    text.bytes().map(|it| if kept(it) { char::from(it).to_string() } else { format!("_{it:02x}") }).collect()
}

fn passed(record: &Path, now: Millis) -> bool {
    let Ok(text) = std::fs::read_to_string(record) else { return false };
    let at = text.trim().strip_prefix("passed ").and_then(|it| it.parse::<i64>().ok());
    at.is_some_and(|at| at <= now.0 && now.0.saturating_sub(at) < KEPT_MS)
}

/// A cache: failing to keep a pass only costs the next probe.
fn keep(record: &Path, now: Millis) {
    let parent = record.parent().map(std::fs::create_dir_all);
    if parent.is_some_and(|it| it.is_ok())
        && let Err(err) = std::fs::write(record, format!("passed {}\n", now.0))
    {
        tracing::debug!("{}: {err}", record.display());
    }
}
