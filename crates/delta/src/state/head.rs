//! The states a handle has seen: the newest, and the older version opened last.
//!
//! One is used again only after a listing showed that its commit is still the same file. So a version that was resolved
//! is not read a second time for its rows, and the newest costs what was committed since.
use std::sync::{Arc, Mutex};

use lakebed_core::Result;

use super::State;
use crate::log::Log;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Head {
    log: Log,
    newest: Mutex<Option<Arc<State>>>,
    older: Mutex<Option<Arc<State>>>,
}

impl Head {
    pub(crate) fn new(log: Log) -> Self {
        Self { log, newest: Mutex::default(), older: Mutex::default() }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The newest state that was read; others may have committed since.
    pub(crate) fn known(&self) -> Option<Arc<State>> {
        held(&self.newest)
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
        hold(&self.newest, &newest);
        Ok(newest)
    }

    /// The state of `version`; one listing if it was seen last.
    ///
    /// # Errors
    /// As [`State::open`].
    pub(crate) async fn at(&self, version: u64) -> Result<Arc<State>> {
        for known in [held(&self.newest), held(&self.older)].into_iter().flatten() {
            if known.version == version && known.stands().await? {
                return Ok(known);
            }
        }
        let state = Arc::new(State::open(&self.log, Some(version)).await?);
        hold(&self.older, &state);
        Ok(state)
    }
}

fn held(place: &Mutex<Option<Arc<State>>>) -> Option<Arc<State>> {
    place.lock().ok()?.clone()
}

fn hold(place: &Mutex<Option<Arc<State>>>, state: &Arc<State>) {
    if let Ok(mut place) = place.lock() {
        *place = Some(Arc::clone(state));
    }
}
