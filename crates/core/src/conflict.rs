//! Says whether a commit still holds on top of a version that another writer committed since it read the table.
//!
//! *Theirs* is the winner, *ours* the commit that shall follow it. The first rule that is broken is the answer:
//!
//! | theirs | breaks ours |
//! |---|---|
//! | changed the protocol | always |
//! | changed the schema or the properties | unless ours only moves refs |
//! | was written by the same application | always: two jobs share an id |
//! | owns a [`Claim`] of ours | always |
//! | removed a file | that ours removes, or takes rows from |
//! | took rows from a file | that ours removes or takes rows from: one of the two deletions would be lost |
//! | removed a file or took rows from it | that ours had read, unless isolation is `Snapshot` |
//! | added rows | that ours should have read: under `Serializable` all, under `WriteSerializable` those of writers that had read the table themselves |
//!
//! Versions that only move rows between files (compaction) break ours only by the files ours touches: what ours had read
//! is still true. A compaction of ours holds under `Snapshot` whatever the policy says. A commit that changes metadata
//! reads under `Serializable`, and so does a restore, which replaces every row.
//!
//! What is not known counts as touched: a deletion without targets is one from every file.
//!
//! Spec: the table is Delta Spark's, except that a compaction of files which ours had read and does not touch is no
//! conflict, and that two deletions from one file always are (Iceberg lets a deleted row survive an update there).
use std::collections::HashSet;

use crate::{
    change::{Change, Claim, RowDelta, VersionDelta},
    commit::Intent,
    expr::Predicate,
    file::{DeleteFile, DeleteKind},
    path::FilePath,
    prune,
    timeline::Action,
    version::VersionId,
};

mod clash;

pub use self::clash::Clash;

/// What this commit depends on, so that a later version can be told to break it.
#[derive(Debug, Clone)]
pub struct ConflictPolicy {
    pub isolation: Isolation,
    /// The rows the writer read; `None` for a blind append.
    pub read: Option<Predicate>,
    /// Parts of the table this write owns.
    pub claims: Vec<Claim>,
    /// How often to rebase over other writers before giving up.
    pub retries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A concurrent append that matches `read` is a conflict.
    Serializable,
    /// A concurrent *blind* append that matches `read` is not; other appends that match are.
    WriteSerializable,
    /// Only a concurrent removal or rewrite of what this commit touches is.
    Snapshot,
}

/// Why a commit cannot be rebased.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("version {by} already removed {path}")]
    RemovedTwice { by: VersionId, path: FilePath },
    #[error("version {by} removed {path}, of which this commit deletes rows")]
    TargetRemoved { by: VersionId, path: FilePath },
    #[error("version {by} deleted rows of {path}, which this commit rewrites")]
    DeleteWouldBeLost { by: VersionId, path: FilePath },
    #[error("version {by} deleted other rows of {path}: both commits hold a vector for it")]
    VectorReplaced { by: VersionId, path: FilePath },
    #[error("version {by} deleted rows of {path} too, perhaps the same ones")]
    DeletedTwice { by: VersionId, path: FilePath },
    #[error("version {by} removed {path} or rows of it, which this commit had read")]
    ReadRemoved { by: VersionId, path: FilePath },
    #[error("version {by} added {path}, whose rows this commit should have read")]
    PhantomRows { by: VersionId, path: FilePath },
    #[error("version {by} changed the schema or the properties")]
    SchemaChanged { by: VersionId },
    #[error("version {by} changed the protocol")]
    ProtocolChanged { by: VersionId },
    #[error("version {by} also wrote {claim:?}, which only one writer may")]
    ClaimedTwice { by: VersionId, claim: Claim },
    #[error("version {by} was also written by application `{application}`; give each job its own appId")]
    SameApplication { by: VersionId, application: String },
}

/// The commit that shall follow, as far as a conflict can tell.
#[derive(Debug, Clone, Copy)]
pub struct Ours<'a> {
    pub intent: &'a Intent,
    pub changes: &'a [Change],
    /// Of the files theirs removed or took rows from, those that ours had read; `None` when nobody looked, and then
    /// every one counts as read. See [`asks_for_read_files`].
    pub read_files: Option<&'a HashSet<FilePath>>,
}

/// Whether `check` looks at [`Ours::read_files`] for this version.
pub fn asks_for_read_files(ours: &Ours<'_>, theirs: &VersionDelta, policy: &ConflictPolicy) -> bool {
    let touches = !theirs.rows.removed.is_empty() || !theirs.rows.added_deletes.is_empty();
    theirs.data_change && touches && ours.reads(policy).is_some()
}

/// Whether ours holds on top of theirs. The table in the [module](self) is the rule.
pub fn check(ours: &Ours<'_>, theirs: &VersionDelta, policy: &ConflictPolicy) -> Result<(), Conflict> {
    let by = || theirs.version.id.clone();
    if theirs.protocol_changed {
        return Err(Conflict::ProtocolChanged { by: by() });
    }
    if theirs.schema_changed && !ours.only_moves_refs() {
        return Err(Conflict::SchemaChanged { by: by() });
    }
    if let Some(application) = &ours.intent.application
        && theirs.applications.iter().any(|it| it.id == application.id)
    {
        return Err(Conflict::SameApplication { by: by(), application: application.id.clone() });
    }
    if let Some(claim) = policy.claims.iter().find(|it| theirs.claims.contains(it)) {
        return Err(Conflict::ClaimedTwice { by: by(), claim: claim.clone() });
    }
    let touched = Touched::by(theirs);
    for rows in ours.rows() {
        check_removals(rows, &touched)?;
        check_deletes(rows, &touched)?;
    }
    check_reads(ours, &touched, policy)
}

impl Ours<'_> {
    fn rows(&self) -> impl Iterator<Item = &RowDelta> {
        self.changes.iter().filter_map(|it| match it {
            Change::Rows(rows) => Some(rows),
            _ => None,
        })
    }

    fn only_moves_refs(&self) -> bool {
        self.changes.iter().all(|it| matches!(it, Change::PutRef(_) | Change::DropRef(_)))
    }

    fn restores(&self) -> bool {
        self.changes.iter().any(|it| matches!(it, Change::Restore(_)))
    }

    fn changes_metadata(&self) -> bool {
        self.changes.iter().any(|it| {
            matches!(
                it,
                Change::Schema(_)
                    | Change::Properties { .. }
                    | Change::AddConstraint { .. }
                    | Change::DropConstraint { .. }
                    | Change::Upgrade { .. }
            )
        })
    }

    /// What ours had read, under the isolation that counts for it; `None` when reads do not matter.
    fn reads<'a>(&self, policy: &'a ConflictPolicy) -> Option<(&'a Predicate, Isolation)> {
        if self.restores() {
            return Some((&Predicate::True, Isolation::Serializable));
        }
        if matches!(self.intent.action, Action::Compaction | Action::Clustering) {
            return None;
        }
        match policy.isolation {
            Isolation::Snapshot => None,
            Isolation::WriteSerializable if self.changes_metadata() => {
                Some((policy.read.as_ref()?, Isolation::Serializable))
            }
            isolation => Some((policy.read.as_ref()?, isolation)),
        }
    }
}

/// What theirs did to files, ready to be asked.
struct Touched<'a> {
    theirs: &'a VersionDelta,
    removed: HashSet<&'a FilePath>,
    /// Added under a path that was there before, with another vector.
    kept: HashSet<&'a FilePath>,
    /// Rows taken from them.
    deleted_from: HashSet<&'a FilePath>,
    /// Rows may have been taken from any file.
    deleted_anywhere: bool,
}

impl<'a> Touched<'a> {
    fn by(theirs: &'a VersionDelta) -> Self {
        let removed: HashSet<&FilePath> = theirs.rows.removed.iter().map(|it| &it.path).collect();
        let added = theirs.rows.added.iter().map(|it| &it.path);
        let kept = added.filter(|it| removed.contains(it)).collect();
        // A compaction may rewrite delete files, but takes no row that was not gone before.
        let deletes: &[DeleteFile] = if theirs.data_change { &theirs.rows.added_deletes } else { &[] };
        Self {
            theirs,
            removed,
            kept,
            deleted_from: deletes.iter().flat_map(|it| &it.targets).collect(),
            deleted_anywhere: deletes.iter().any(|it| it.targets.is_empty()),
        }
    }

    fn id(&self) -> VersionId {
        self.theirs.version.id.clone()
    }
}

/// Files ours removes must still be there, with the rows ours saw.
fn check_removals(ours: &RowDelta, touched: &Touched<'_>) -> Result<(), Conflict> {
    let kept_by_us: HashSet<&FilePath> = ours.added.iter().map(|it| &it.path).collect();
    for key in &ours.removed {
        let (by, path) = (touched.id(), key.path.clone());
        let kept_by_us = kept_by_us.contains(&path);
        if touched.removed.contains(&path) && !touched.kept.contains(&path) {
            return Err(Conflict::RemovedTwice { by, path });
        }
        if touched.removed.contains(&path) || touched.deleted_from.contains(&path) {
            return Err(match kept_by_us {
                true => Conflict::VectorReplaced { by, path },
                false => Conflict::DeleteWouldBeLost { by, path },
            });
        }
        if touched.deleted_anywhere && !kept_by_us {
            return Err(Conflict::DeleteWouldBeLost { by, path });
        }
    }
    let removed = &touched.theirs.rows.removed_deletes;
    match ours.removed_deletes.iter().find(|it| removed.contains(it)) {
        Some(key) => Err(Conflict::RemovedTwice { by: touched.id(), path: key.path.clone() }),
        None => Ok(()),
    }
}

/// Files ours takes rows from must still be there, and nobody else have taken rows from them.
fn check_deletes(ours: &RowDelta, touched: &Touched<'_>) -> Result<(), Conflict> {
    for delete in &ours.added_deletes {
        for path in &delete.targets {
            let (by, path) = (touched.id(), path.clone());
            if touched.removed.contains(&path) && !touched.kept.contains(&path) {
                return Err(Conflict::TargetRemoved { by, path });
            }
            if touched.removed.contains(&path) || touched.deleted_from.contains(&path) {
                return Err(match delete.kind {
                    DeleteKind::Vector => Conflict::VectorReplaced { by, path },
                    DeleteKind::Positions | DeleteKind::Equality { .. } => Conflict::DeletedTwice { by, path },
                });
            }
        }
        // Positions count rows of files; which files, nobody says. Equality finds its rows wherever they went.
        if delete.targets.is_empty()
            && !matches!(delete.kind, DeleteKind::Equality { .. })
            && let Some(key) = touched.theirs.rows.removed.first()
        {
            return Err(Conflict::TargetRemoved { by: touched.id(), path: key.path.clone() });
        }
    }
    Ok(())
}

fn check_reads(ours: &Ours<'_>, touched: &Touched<'_>, policy: &ConflictPolicy) -> Result<(), Conflict> {
    let theirs = touched.theirs;
    let Some((read, isolation)) = ours.reads(policy) else { return Ok(()) };
    if !theirs.data_change {
        return Ok(());
    }
    let was_read = |it: &FilePath| ours.read_files.is_none_or(|files| files.contains(it));
    let gone = theirs
        .rows
        .removed
        .iter()
        .map(|it| &it.path)
        .chain(theirs.rows.added_deletes.iter().flat_map(|it| &it.targets));
    if let Some(path) = gone.into_iter().find(|it| was_read(it)) {
        return Err(Conflict::ReadRemoved { by: touched.id(), path: path.clone() });
    }
    if let Some(delete) = theirs.rows.added_deletes.iter().find(|it| it.targets.is_empty()) {
        let path = delete.place.path().cloned().unwrap_or_else(|| FilePath::below("(a deletion kept in the metadata)"));
        return Err(Conflict::ReadRemoved { by: touched.id(), path });
    }
    if isolation == Isolation::WriteSerializable && theirs.blind_append {
        return Ok(());
    }
    // A file that was there before brings no rows.
    let new = theirs.rows.added.iter().filter(|it| !touched.kept.contains(&it.path));
    match new.into_iter().find(|it| prune::keep(read, *it)) {
        Some(file) => Err(Conflict::PhantomRows { by: touched.id(), path: file.path.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
