//! Tables that statements have opened, kept for the next ones.
//!
//! A handle holds no state that could be stale: every answer of it is as fresh as the call, also where the table ceased
//! to be and another came into its place. But it may have seen most of the log, which the next statement need not read.
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lakebed_core::table::Table;

/// How many; the one used last is the last to go.
const MOST: usize = 16;

/// Handles by the place they were opened at.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<VecDeque<(String, Arc<dyn Table>)>>);

impl Kept {
    pub(crate) fn get(&self, key: &str) -> Option<Arc<dyn Table>> {
        let mut kept = self.lock();
        let at = kept.iter().position(|it| it.0 == key)?;
        let found = kept.remove(at)?;
        let table = Arc::clone(&found.1);
        kept.push_back(found);
        Some(table)
    }

    pub(crate) fn put(&self, key: String, table: &Arc<dyn Table>) {
        let mut kept = self.lock();
        kept.retain(|it| it.0 != key);
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((key, Arc::clone(table)));
    }

    /// Forgets the handles of the table at `location`.
    pub(crate) fn forget(&self, location: &str) {
        self.lock().retain(|it| it.1.storage().location() != location);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Arc<dyn Table>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
