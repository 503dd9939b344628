//! The states a handle has seen: the newest, and the older version opened last.
//!
//! One is used again only after a listing showed that its commit is still the same file. So a version that was resolved
//! is not read a second time for its rows, and the newest costs what was committed since.
//!
//! A handle may live as long as its process, so what it keeps is bounded: two states, and of those with a large log
//! only what somebody else holds, too.
use std::sync::{Arc, Mutex, Weak};

use lakebed_core::Result;

use super::State;
use crate::log::Log;

/// States read from more bytes of log than this are not kept: some two million files.
const MAX_KEPT_BYTES: u64 = 256 << 20;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Head {
    log: Log,
    newest: Place,
    older: Place,
}

impl Head {
    pub(crate) fn new(log: Log) -> Self {
        Self { log, newest: Place::default(), older: Place::default() }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The newest state that was read; others may have committed since.
    pub(crate) fn known(&self) -> Option<Arc<State>> {
        self.newest.held()
    }

    /// The newest state: the one seen last with what was committed since, at the cost of one listing and that.
    ///
    /// # Errors
    /// As [`State::open`].
    pub(crate) async fn newest(&self) -> Result<Arc<State>> {
        let newest = match self.known() {
            Some(known) => match known.refresh().await? {
                Some(state) => Arc::new(state),
                None => known,
            },
            None => Arc::new(State::open(&self.log, None).await?),
        };
        self.newest.hold(&newest, MAX_KEPT_BYTES);
        Ok(newest)
    }

    /// The state of `version`; one listing if it was seen last, and what was committed since if it is newer than that.
    ///
    /// # Errors
    /// As [`State::open`].
    pub(crate) async fn at(&self, version: u64) -> Result<Arc<State>> {
        for known in [self.newest.held(), self.older.held()].into_iter().flatten() {
            if known.version == version && known.stands().await? {
                return Ok(known);
            }
        }
        if let Some(known) = self.newest.held()
            && let Some(state) = known.follow(version).await?
        {
            let state = Arc::new(state);
            self.newest.hold(&state, MAX_KEPT_BYTES);
            return Ok(state);
        }
        let state = Arc::new(State::open(&self.log, Some(version)).await?);
        self.older.hold(&state, MAX_KEPT_BYTES);
        Ok(state)
    }
}

/// A state, kept or only known.
#[derive(Debug, Default)]
struct Place(Mutex<(Weak<State>, Option<Arc<State>>)>);

impl Place {
    fn held(&self) -> Option<Arc<State>> {
        self.0.lock().ok()?.0.upgrade()
    }

    /// Keeps `state` if its log has at most `limit` bytes; a larger one is known while somebody else keeps it.
    fn hold(&self, state: &Arc<State>, limit: u64) {
        let kept = (state.log_bytes() <= limit).then(|| Arc::clone(state));
        if let Ok(mut place) = self.0.lock() {
            *place = (Arc::downgrade(state), kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use lakebed_core::storage::Storage;
    use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

    use super::*;

    const COMMIT: &str = concat!(
        r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
        "\n",
        r#"{"metaData":{"id":"t","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{}}}"#
    );

    #[tokio::test]
    async fn a_large_state_is_known_only_while_somebody_keeps_it() {
        let store = InMemory::new();
        store.put(&Path::from("t/_delta_log/00000000000000000000.json"), COMMIT.into()).await.unwrap();
        let log = Log::new(Storage::new(Arc::new(store), Path::from("t"), "memory:///t"));
        let bytes = COMMIT.len() as u64;
        for (limit, kept) in [(bytes, true), (bytes - 1, false)] {
            let (place, state) = (Place::default(), Arc::new(State::open(&log, None).await.unwrap()));
            assert_eq!(state.log_bytes(), bytes);
            place.hold(&state, limit);
            assert!(place.held().is_some());
            drop(state);
            assert_eq!(place.held().is_some(), kept, "{limit}");
        }
    }
}
