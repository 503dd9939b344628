//! Everything that was done to a table, in the order in which it became visible.
use std::collections::BTreeMap;

use crate::version::{AsOf, Millis, Version, VersionId};

/// One action on a table, finished or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Instant {
    pub requested_at: Millis,
    pub action: Action,
    pub state: State,
    /// The format's own word: `replacecommit`, `OPTIMIZE`, `COMPACT`, `overwrite`.
    pub native_action: String,
    pub details: Details,
}

/// What an action says of itself. `None` is unknown, never zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    pub files_added: Option<u64>,
    pub files_removed: Option<u64>,
    pub rows_added: Option<u64>,
    pub rows_removed: Option<u64>,
    pub bytes_added: Option<u64>,
    pub bytes_removed: Option<u64>,
    pub user: Option<String>,
    pub engine: Option<String>,
    /// The version the writer had read.
    pub read_version: Option<VersionId>,
    pub isolation: Option<String>,
    pub blind_append: Option<bool>,
    pub user_metadata: Option<String>,
    /// Parameters of the operation as the format stores them.
    pub parameters: BTreeMap<String, String>,
    /// Metrics as the format stores them, its own names kept.
    pub metrics: BTreeMap<String, String>,
    /// The whole record in the format's own words.
    pub native: serde_json::Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    Create,
    Append,
    Overwrite,
    Delete,
    /// Rows added and removed in one commit: update, merge, Hudi deltacommit.
    RowDelta,
    Compaction,
    Clustering,
    Schema,
    Properties,
    /// A tag, branch or savepoint was made, moved or dropped.
    Ref,
    Clean,
    Rollback,
    Restore,
    Index,
    Other,
}

/// Where an action stands. Formats without pending states only have `Completed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Requested,
    Inflight,
    /// `version` is `None` for actions that make no new state of the rows (clean, savepoint).
    Completed {
        at: Millis,
        version: Option<Version>,
    },
}

/// The instants of one branch, completed ones in order of completion.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    instants: Vec<Instant>,
}

impl Timeline {
    pub fn new(instants: Vec<Instant>) -> Self {
        Self { instants }
    }

    pub fn instants(&self) -> &[Instant] {
        &self.instants
    }

    /// The table's versions, oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.instants.iter().filter_map(|it| match &it.state {
            State::Completed { version, .. } => version.as_ref(),
            State::Requested | State::Inflight => None,
        })
    }

    /// The version that `as_of` names on this branch; refs are resolved before.
    pub fn resolve(&self, as_of: &AsOf) -> Option<&Version> {
        match as_of {
            AsOf::Latest => self.versions().next_back(),
            AsOf::Version(id) => self.versions().find(|it| it.id == *id),
            AsOf::Time(at) => self.versions().rfind(|it| it.committed_at <= *at),
            AsOf::Ref(_) => None,
        }
    }

    /// The versions committed after `base`, oldest first.
    pub fn since(&self, base: &VersionId) -> impl Iterator<Item = &Version> {
        self.versions().skip_while(move |it| it.id != *base).skip(1)
    }

    pub fn pending(&self) -> impl Iterator<Item = &Instant> {
        self.instants.iter().filter(|it| !matches!(it.state, State::Completed { .. }))
    }
}
