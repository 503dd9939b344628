//! What the writer who lost is told: which two operations met, over which files, and which rule stood in the way.
use std::{
    collections::{BTreeSet, HashSet},
    fmt,
};

use super::{Conflict, Ours};
use crate::{
    change::{RowDelta, VersionDelta},
    path::FilePath,
    version::VersionId,
};

/// Files that a message lists; the rest it counts.
const LISTED: usize = 5;

/// A [`Conflict`] with its two sides.
#[derive(Debug)]
pub struct Clash {
    /// The operation that lost, as history would have called it.
    pub ours: String,
    /// That of the version in the way.
    pub theirs: String,
    pub by: VersionId,
    /// Files that both touched or ours had read and theirs touched, sorted. Empty where they met over something else.
    pub shared: Vec<FilePath>,
    pub why: Conflict,
}

impl Clash {
    /// `why` is what [`check`](super::check) said of these two.
    pub fn new(ours: &Ours<'_>, theirs: &VersionDelta, why: Conflict) -> Self {
        let mut shared: BTreeSet<FilePath> = why.path().cloned().into_iter().collect();
        let read = |it: &FilePath| ours.read_files.is_some_and(|files| files.contains(it));
        let mine: HashSet<&FilePath> = ours.rows().flat_map(touched).collect();
        shared.extend(touched(&theirs.rows).filter(|it| mine.contains(it) || read(it)).cloned());
        Self {
            ours: ours.intent.operation.clone(),
            theirs: theirs.native_action.clone(),
            by: theirs.version.id.clone(),
            shared: shared.into_iter().collect(),
            why,
        }
    }
}

/// Files that these changes remove or take rows from.
fn touched(rows: &RowDelta) -> impl Iterator<Item = &FilePath> {
    let targets = rows.added_deletes.iter().flat_map(|it| &it.targets);
    rows.removed.iter().map(|it| &it.path).chain(targets)
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lost to {} of version {}: {}", self.ours, self.theirs, self.by, self.why)?;
        if self.shared.is_empty() {
            return Ok(());
        }
        let listed: Vec<&str> = self.shared.iter().take(LISTED).map(FilePath::as_str).collect();
        write!(f, "; both touch {}", listed.join(", "))?;
        match self.shared.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl std::error::Error for Clash {}

impl Conflict {
    /// The file over which it came to the conflict, where it was one.
    pub fn path(&self) -> Option<&FilePath> {
        match self {
            Self::RemovedTwice { path, .. }
            | Self::TargetRemoved { path, .. }
            | Self::DeleteWouldBeLost { path, .. }
            | Self::VectorReplaced { path, .. }
            | Self::DeletedTwice { path, .. }
            | Self::ReadRemoved { path, .. }
            | Self::PhantomRows { path, .. } => Some(path),
            Self::SchemaChanged { .. }
            | Self::ProtocolChanged { .. }
            | Self::ClaimedTwice { .. }
            | Self::SameApplication { .. } => None,
        }
    }
}
