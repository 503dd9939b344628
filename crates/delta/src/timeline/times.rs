//! When versions became visible.
//!
//! A table with in-commit timestamps stamps each commit from some version on; the stamp decides there. Before it, and
//! on other tables, the time the store gives the commit's file decides, made to ascend: `max(time, previous + 1 ms)`.
//! Spec: Delta PROTOCOL.md, "In-Commit Timestamps"; for files, the reference implementation.
use std::collections::BTreeMap;

use lakebed_core::{Result, version::Millis};

use crate::{
    layout::LogFileKind,
    log::{Listing, Log, is_damage},
    properties::Properties,
    spec::Metadata,
    state::Head,
};

/// Where the times of commits come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Files,
    /// Commits from this version on carry their own time.
    Stamps {
        since: u64,
    },
}

impl Clock {
    /// The clock of a table with these newest metadata.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let properties = Properties(&metadata.configuration);
        if !properties.flag("delta.enableInCommitTimestamps").unwrap_or(false) {
            return Self::Files;
        }
        // Without the property the table had them from its first commit.
        let since = properties.count("delta.inCommitTimestampEnablementVersion").ok().flatten();
        Self::Stamps { since: since.and_then(|it| u64::try_from(it).ok()).unwrap_or(0) }
    }

    /// The clock of a table. A table whose commits carry their time stamps each of them, so one look at the newest
    /// settles it where that has none; else the metadata are needed.
    pub(crate) async fn of_table(head: &Head, listing: &Listing) -> Result<Self> {
        let newest = listing.commits().next_back().filter(|it| Some(it.file.version) == listing.newest());
        if let Some(commit) = newest {
            match head.log().read_commit_info(commit.file.version, commit.bytes).await {
                Ok(info) if info.as_ref().is_none_or(|it| it.in_commit_timestamp.is_none()) => return Ok(Self::Files),
                Err(err) if !is_damage(&err) => return Err(err),
                _ => (),
            }
        }
        Self::of_metadata(head, listing).await
    }

    /// The clock by the newest state's metadata.
    pub(crate) async fn of_metadata(head: &Head, listing: &Listing) -> Result<Self> {
        match head.newest().await {
            Ok(state) => Ok(Self::of(&state.metadata)),
            Err(err) if is_damage(&err) => Self::of_commits(head.log(), listing).await,
            Err(err) => Err(err),
        }
    }

    /// The clock of a table whose newest state cannot be rebuilt: the newest readable commit that has metadata decides.
    pub(crate) async fn of_commits(log: &Log, listing: &Listing) -> Result<Self> {
        for commit in listing.commits().rev() {
            match log.read_commit(commit.file.version).await {
                Ok(commit) => {
                    if let Some(metadata) = commit.metadata() {
                        return Ok(Self::of(metadata));
                    }
                }
                Err(err) if is_damage(&err) => (),
                Err(err) => return Err(err),
            }
        }
        Ok(Self::Files)
    }

    pub(crate) fn stamps(self, version: u64) -> bool {
        matches!(self, Self::Stamps { since } if version >= since)
    }
}

/// The times of the log's files, made to ascend.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileTimes {
    times: BTreeMap<u64, Millis>,
    /// Versions whose file is older than the one before: the log was copied, or a clock went back.
    pub(crate) mended: Vec<u64>,
}

impl FileTimes {
    pub(crate) fn get(&self, version: u64) -> Option<Millis> {
        self.times.get(&version).copied()
    }
}

/// One time a version that has a commit, or, without one, a checkpoint.
pub(crate) fn file_times(listing: &Listing) -> FileTimes {
    let mut stored: BTreeMap<u64, Millis> = BTreeMap::new();
    let checkpoints = listing.files.iter().filter(|it| matches!(it.file.kind, LogFileKind::Checkpoint(_)));
    stored.extend(checkpoints.map(|it| (it.file.version, it.modified_at)));
    stored.extend(listing.commits().map(|it| (it.file.version, it.modified_at)));
    let mut mended = FileTimes::default();
    let mut previous: Option<Millis> = None;
    for (version, time) in stored {
        let least = previous.map_or(i64::MIN, |it| it.0.saturating_add(1));
        // Commits of one millisecond are common and say nothing about clocks.
        if previous.is_some_and(|it| time < it) {
            mended.mended.push(version);
        }
        let time = Millis(time.0.max(least));
        mended.times.insert(version, time);
        previous = Some(time);
    }
    mended
}
