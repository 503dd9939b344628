//! The state before the first version: what a table that is being made stands on.
//!
//! It has the protocol and schema that version 0 will have, and no files. No number comes before 0, so its own is the last
//! there is, and the one after it is 0.
use std::sync::{Arc, Mutex};

use lakebed_core::version::Millis;
use tokio::sync::OnceCell;

use super::{Base, FileList, State};
use crate::{
    log::{Listing, Log, segment::Segment},
    spec::{Metadata, Protocol},
};

const BEFORE_FIRST: u64 = u64::MAX;
/// What the state is called where versions are numbers.
pub(crate) const BEFORE_FIRST_ID: &str = "-1";

impl State {
    /// The state of a table of which nothing is there yet.
    pub(crate) fn before_first(log: &Log, protocol: Protocol, metadata: Metadata) -> Self {
        let segment = Segment { version: BEFORE_FIRST, checkpoint: None, commits: Vec::new() };
        let base = Arc::new(Base { segment, checkpoint: None, commits: Vec::new(), expected: None });
        Self {
            log: log.clone(),
            version: BEFORE_FIRST,
            committed_at: Millis(0),
            protocol,
            metadata,
            txns: Some(Default::default()),
            domains: Some(Default::default()),
            counted: None,
            hint: None,
            listing: Listing::default(),
            base: OnceCell::new_with(Some(Arc::clone(&base))),
            files: OnceCell::new_with(Some((Arc::new(FileList::default()), base))),
            warnings: Mutex::default(),
        }
    }

    /// This state with another protocol and schema, as if a commit on top had changed nothing else.
    pub(crate) fn evolved(&self, protocol: Protocol, metadata: Metadata) -> Self {
        Self {
            log: self.log.clone(),
            version: self.version,
            committed_at: self.committed_at,
            protocol,
            metadata,
            txns: self.txns.clone(),
            domains: self.domains.clone(),
            counted: None,
            hint: self.hint.clone(),
            listing: self.listing.clone(),
            base: OnceCell::new_with(self.base.get().cloned()),
            files: OnceCell::new_with(self.files.get().cloned()),
            warnings: Mutex::new(self.warnings()),
        }
    }

    pub(crate) fn is_before_first(&self) -> bool {
        self.version == BEFORE_FIRST
    }

    /// The version's number; none before the first.
    pub(crate) fn version_number(&self) -> Option<u64> {
        (!self.is_before_first()).then_some(self.version)
    }

    /// The version that a commit on top makes.
    pub(crate) fn next_version(&self) -> u64 {
        self.version.wrapping_add(1)
    }

    /// The version as its id has it.
    pub(crate) fn shown_version(&self) -> String {
        self.version_number().map_or_else(|| BEFORE_FIRST_ID.to_owned(), |it| it.to_string())
    }
}
