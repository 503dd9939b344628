//! Upkeep of a table, in words that mean the same for every format.
//!
//! A plan is made first and printed, or carried out by [`run`] exactly as it is. Its deletes come last and in batches:
//! before each, refs and head are read again, and the plan stops where something it would delete has become reachable.
//! Whatever stops it, what is done is complete, and the plan can be made anew.
use std::time::Duration;

pub use self::{
    after::after,
    apply::{Applied, run},
};
use crate::{
    commit::Publish,
    expr::Predicate,
    path::FilePath,
    scan::ScanTask,
    timeline::Timeline,
    version::{AsOf, Millis, Ref, Version, VersionId},
};

mod after;
mod apply;

/// An upkeep action. Each names the procedure that calls it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Maintenance {
    /// `expire_snapshots`, `clean`, Delta log clean-up: forget versions.
    Expire(Retain),
    /// Delete files no kept version needs: tombstoned ones that went before `older_than` (`None`: as the table's own
    /// properties say), and, unless `lite`, unknown ones last written before it. `forced`: even if that is so short ago
    /// that a write or a reader under way may need them.
    Vacuum { retain: Retain, older_than: Option<Millis>, lite: bool, forced: bool },
    /// `remove_orphan_files`: delete files no metadata ever named.
    RemoveOrphans { older_than: Millis },
    /// `optimize`, `compact`, `rewrite_data_files`: fewer, larger files; same rows. `target_bytes` of
    /// `None`: as large as the table's own properties say.
    Compact { filter: Predicate, target_bytes: Option<u64> },
    /// `rollback_to`, Hudi `restore`: versions newer than `to` cease to exist.
    ///
    /// Not `Change::Restore`, which keeps history and makes a new version with the old rows.
    RollBack { to: AsOf },
    /// `checkpoint`, `rewrite_manifests`, archival: same versions, cheaper to load.
    Checkpoint,
}

/// Which versions stay. A version stays if any rule keeps it; refs always do.
#[derive(Debug, Clone, Default)]
pub struct Retain {
    pub newer_than: Option<Millis>,
    pub at_least: usize,
    pub age: Option<Duration>,
    pub ids: Vec<VersionId>,
}

impl Retain {
    /// The versions of one line of history that stay, oldest first: those a rule keeps, those refs name, and the newest.
    pub fn kept<'a>(&self, timeline: &'a Timeline, refs: &[Ref], now: Millis) -> Vec<&'a Version> {
        let versions: Vec<&Version> = timeline.versions().collect();
        let newest = versions.len().saturating_sub(self.at_least.max(1));
        // An age too long for the calendar keeps everything.
        let oldest = self.age.map(|age| now.0.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)));
        let stays = |(at, it): &(usize, &Version)| {
            *at >= newest
                || self.newer_than.is_some_and(|than| it.committed_at > than)
                || oldest.is_some_and(|oldest| it.committed_at.0 > oldest)
                || self.ids.contains(&it.id)
                || refs.iter().any(|named| named.version == it.id)
        };
        versions.into_iter().enumerate().filter(stays).map(|(_, it)| it).collect()
    }
}

/// What an action would do. Nothing has happened yet: a dry run is this value, printed.
#[derive(Debug, Default)]
pub struct MaintenancePlan {
    /// Carried out in this order. Whoever crashes between two steps leaves orphans, never dangling references.
    pub steps: Vec<Step>,
    /// The state the plan was made on; `run` refuses it when the table has moved in a way that matters.
    pub head: Option<VersionId>,
    /// Versions that cease to exist ([`Maintenance::RollBack`]): what they reach may be deleted. No version may be
    /// committed while such a plan is under way.
    pub forgets: Vec<VersionId>,
    /// Sentences for people: what is kept and why, what other engines will not respect.
    pub notes: Vec<String>,
}

#[derive(Debug)]
pub enum Step {
    /// An object that is not yet visible: a checkpoint, a manifest. Made by a producer, not held in memory. A hint
    /// ([`may_be_overwritten`](crate::storage::may_be_overwritten)) is overwritten, and left as it is by an empty body.
    Write { path: String, body: Body },
    /// Row groups to rewrite, into one commit; only the engine can do it.
    Rewrite(Vec<ScanTask>),
    /// Metadata to make visible.
    Publish(Publish),
    /// Deleted as a batch. Before it, refs and head are read again.
    Delete(Vec<Doomed>),
}

/// The bytes of a [`Step::Write`].
pub enum Body {
    Bytes(bytes::Bytes),
    Stream(futures::stream::BoxStream<'static, crate::Result<bytes::Bytes>>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}

/// A file a plan would delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doomed {
    pub path: FilePath,
    pub bytes: Option<u64>,
    /// `removed in version 12, 9 days ago`; `no version names it, last written 2026-11-02`.
    pub why: String,
}

#[cfg(test)]
mod tests;
