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

impl Instant {
    /// The version that the action made, if it is done and made one.
    pub fn version(&self) -> Option<&Version> {
        match &self.state {
            State::Completed { version, .. } => version.as_ref(),
            State::Requested | State::Inflight => None,
        }
    }
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
    /// Rows added by a writer that had read nothing of the table: one that had is [`Self::RowDelta`].
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
    earlier: usize,
}

impl Timeline {
    pub fn new(instants: Vec<Instant>) -> Self {
        Self { instants, earlier: 0 }
    }

    /// The same instants as the end of a timeline that has `earlier` more versions before them.
    #[must_use]
    pub fn with_earlier(self, earlier: usize) -> Self {
        Self { earlier, ..self }
    }

    /// Its newest `limit` versions with all that came after the first of them, and what is pending.
    #[must_use]
    pub fn newest(mut self, limit: usize) -> Self {
        let made = self.instants.iter().enumerate().filter(|(_, it)| it.version().is_some()).map(|(at, _)| at);
        let made: Vec<usize> = made.collect();
        let dropped = made.len().saturating_sub(limit);
        let Some(last) = dropped.checked_sub(1).and_then(|it| made.get(it)) else { return self };
        let mut at = 0..;
        self.instants
            .retain(|it| at.next().is_some_and(|at| at > *last) || !matches!(it.state, State::Completed { .. }));
        self.earlier = self.earlier.saturating_add(dropped);
        self
    }

    /// Versions before the first instant, left out because fewer were asked for.
    pub fn earlier(&self) -> usize {
        self.earlier
    }

    pub fn instants(&self) -> &[Instant] {
        &self.instants
    }

    /// The table's versions, oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.instants.iter().filter_map(Instant::version)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(state: State) -> Instant {
        let (action, native_action) = (Action::Other, String::new());
        Instant { requested_at: Millis(0), action, state, native_action, details: Details::default() }
    }

    fn made(id: u64) -> Instant {
        let version = Version { id: id.into(), committed_at: Millis(0), parent: None, schema_id: None };
        instant(State::Completed { at: Millis(0), version: Some(version) })
    }

    fn clean() -> Instant {
        instant(State::Completed { at: Millis(0), version: None })
    }

    #[test]
    fn the_newest_versions_keep_what_came_between_and_what_is_pending() {
        let pending = instant(State::Inflight);
        let all = Timeline::new(vec![made(1), pending.clone(), made(2), clean(), made(3), clean()]);
        for (limit, earlier, expected) in [
            (9, 0, all.instants().to_vec()),
            (3, 0, all.instants().to_vec()),
            (2, 1, vec![pending.clone(), made(2), clean(), made(3), clean()]),
            (1, 2, vec![pending.clone(), clean(), made(3), clean()]),
            (0, 3, vec![pending.clone(), clean()]),
        ] {
            let newest = all.clone().newest(limit);
            assert_eq!((newest.earlier(), newest.instants()), (earlier, &expected[..]), "{limit}");
        }
    }
}
