//! The transaction log: which files there are, and what they say.
//!
//! 1. Read the hint. It may be torn, stale or ahead: it only chooses where the listing starts ([`hint`]).
//! 2. List `_delta_log` from there ([`listing`]).
//! 3. Choose what to read for one version: the newest complete checkpoint at or below it, then commits and
//!    compacted files up to it ([`segment`]).
//! 4. Read commits ([`commit`] for all they say, [`actions`] for files by the column).
//!
//! Spec: Delta PROTOCOL.md, "Delta Log Entries", "Action Reconciliation".
pub(crate) mod actions;
pub(crate) mod commit;
pub(crate) mod error;
pub(crate) mod hint;
pub(crate) mod line;
pub(crate) mod listing;
pub(crate) mod segment;

use bytes::Bytes;
use lakebed_core::{Result, path::FilePath, storage::Storage};

pub(crate) use self::{
    commit::Commit,
    error::{LogError, can_do_without, is_damage},
    listing::{Listed, Listing},
};
use crate::{layout, spec::CommitInfo, write::own::OwnCommits};

/// No file of the log may be larger: what is read whole is held in memory.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 30;

/// The log of one table. Holds nothing but the place, and what its handle wrote there.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    storage: Storage,
    pub(crate) own: OwnCommits,
}

impl Log {
    pub(crate) fn new(storage: Storage) -> Self {
        Self { storage, own: OwnCommits::default() }
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Every file of the log, from version 0 or the oldest that is left.
    ///
    /// # Errors
    /// [`LogError::NotATable`] when there is no commit and no checkpoint.
    pub(crate) async fn listing(&self) -> Result<Listing> {
        self.listing_from(0).await?.some_table(&self.storage)
    }

    /// The files of versions from `first` on; empty if there are none.
    pub(crate) async fn listing_from(&self, first: u64) -> Result<Listing> {
        Listing::read(&self.storage, first, u64::MAX).await
    }

    /// Everything commit `version` says, in its order.
    ///
    /// # Errors
    /// [`LogError::NoCommit`] when the file is gone; corrupt when it is no commit.
    pub(crate) async fn read_commit(&self, version: u64) -> Result<Commit> {
        let path = layout::commit_path(version);
        match self.read(&path).await? {
            Some(body) => Commit::parse(version, body),
            None => Err(LogError::NoCommit { version }.into()),
        }
    }

    /// What commit `version` says of itself, `None` where it says nothing; reads the first kilobytes when they
    /// suffice. `bytes` is the commit's size as listed.
    pub(crate) async fn read_commit_info(&self, version: u64, bytes: u64) -> Result<Option<CommitInfo>> {
        match self.read_first_line(version, bytes).await? {
            Some(info) => Ok(Some(info)),
            None => Ok(self.read_commit(version).await?.info().cloned()),
        }
    }

    /// What the first line of a large commit says of it; `None` where that takes reading the whole.
    pub(crate) async fn read_first_line(&self, version: u64, bytes: u64) -> Result<Option<CommitInfo>> {
        const HEAD: u64 = 8 << 10;
        if bytes <= HEAD {
            return Ok(None);
        }
        let path = FilePath::below(layout::commit_path(version));
        Ok(commit::first_line_info(&self.storage.read_range(&path, 0..HEAD).await?))
    }

    /// A whole file of the log, or `None` where there is none.
    ///
    /// # Errors
    /// Limit, before a byte is read, for one larger than [`MAX_FILE_BYTES`].
    pub(crate) async fn read(&self, path: &str) -> Result<Option<Bytes>> {
        self.storage.read_limited(&FilePath::below(path), MAX_FILE_BYTES).await
    }

    /// A file that only saves reading others; `None` where there is none, or it cannot be read, which `warnings` tells.
    ///
    /// # Errors
    /// Only when the store does not answer.
    pub(crate) async fn read_cache(&self, path: &str, warnings: &mut Vec<String>) -> Result<Option<Bytes>> {
        match self.read(path).await {
            Err(err) if can_do_without(&err) => {
                warnings.push(format!("{err}: ignored"));
                Ok(None)
            }
            read => read,
        }
    }
}
