//! Action reconciliation: who wins when several actions speak of one file.
//!
//! Commits are taken newest first. Within one commit the order says nothing: adds are taken before removes, so a
//! commit that removes and adds one key adds it anew; of two adds of one key the later line counts. A compacted file
//! names each key once; one that strings commits together newest first is as good, and the first mention counts
//! ([`check_compacted`]).
use std::{borrow::Cow, collections::HashSet, hash::BuildHasher};

use arrow_array::{Array, StringViewArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use lakebed_core::path::PathPolicy;

use super::{
    columns::{FileColumns, RemovedColumns, VectorColumns},
    key,
};
use crate::log::actions::{ActionBatch, CommitRows, Mention};

/// Keys that newer actions already decided.
#[derive(Debug, Default)]
pub(crate) struct Decided<'a> {
    keys: HashSet<Cow<'a, str>>,
}

/// The live rows of one set of columns.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// `None` when all rows are.
    pub(crate) mask: Option<BooleanBuffer>,
    pub(crate) count: usize,
}

impl Live {
    pub(crate) fn all(rows: usize) -> Self {
        Self { mask: None, count: rows }
    }

    fn of(mask: BooleanBuffer) -> Self {
        let count = mask.count_set_bits();
        if count == mask.len() { Self::all(count) } else { Self { mask: Some(mask), count } }
    }

    pub(crate) fn is_live(&self, row: usize) -> bool {
        self.mask.as_ref().is_none_or(|it| it.value(row))
    }
}

impl<'a> Decided<'a> {
    /// The adds of `batch` that are live, after everything decided so far; then decides for the batch's own.
    ///
    /// Batches are given newest first; the commits inside one are oldest first.
    pub(crate) fn take(&mut self, policy: &PathPolicy, batch: &'a ActionBatch) -> Live {
        self.take_both(policy, batch).0
    }

    /// [`Self::take`], and the removes of `batch` that nothing newer decided: its tombstones.
    pub(crate) fn take_both(&mut self, policy: &PathPolicy, batch: &'a ActionBatch) -> (Live, Live) {
        let none = |rows: usize| {
            let mut mask = BooleanBufferBuilder::new(rows);
            mask.append_n(rows, false);
            mask
        };
        let (mut mask, mut gone) = (none(batch.adds.rows()), none(batch.removes.rows()));
        for commit in batch.commits.iter().rev() {
            if let Some(order) = &commit.order {
                self.take_in_order(policy, batch, commit, order, (&mut mask, &mut gone));
                continue;
            }
            for row in commit.adds.clone().rev() {
                if self.keys.insert(added_key(policy, batch, row)) {
                    mask.set_bit(row, true);
                }
            }
            for row in commit.removes.clone() {
                if self.keys.insert(removed_key(policy, batch, row)) {
                    gone.set_bit(row, true);
                }
            }
        }
        (Live::of(mask.finish()), Live::of(gone.finish()))
    }

    fn take_in_order(
        &mut self,
        policy: &PathPolicy,
        batch: &'a ActionBatch,
        commit: &CommitRows,
        order: &[Mention],
        (mask, gone): (&mut BooleanBufferBuilder, &mut BooleanBufferBuilder),
    ) {
        let (mut added, mut removed) = (commit.adds.clone(), commit.removes.clone());
        for mention in order {
            match mention {
                Mention::Added => {
                    let Some(row) = added.next() else { return };
                    if self.keys.insert(added_key(policy, batch, row)) {
                        mask.set_bit(row, true);
                    }
                }
                Mention::Removed => {
                    let Some(row) = removed.next() else { return };
                    if self.keys.insert(removed_key(policy, batch, row)) {
                        gone.set_bit(row, true);
                    }
                }
            }
        }
    }

    /// The files of a checkpoint that nothing newer decided. The checkpoint's own rows have distinct keys.
    pub(crate) fn filter(&self, policy: &PathPolicy, files: &FileColumns) -> Live {
        self.undecided(policy, &files.path, files.vectors.as_ref())
    }

    /// The tombstones of a checkpoint that nothing newer decided.
    pub(crate) fn filter_removed(&self, policy: &PathPolicy, removed: &RemovedColumns) -> Live {
        self.undecided(policy, &removed.path, removed.vectors.as_ref())
    }

    fn undecided(&self, policy: &PathPolicy, path: &StringViewArray, vectors: Option<&VectorColumns>) -> Live {
        if self.keys.is_empty() {
            return Live::all(path.len());
        }
        let undecided = |row| !self.keys.contains(&key::of_row(policy, path.value(row), vectors, row));
        Live::of(BooleanBuffer::collect_bool(path.len(), undecided))
    }
}

fn added_key<'a>(policy: &PathPolicy, batch: &'a ActionBatch, row: usize) -> Cow<'a, str> {
    key::of_row(policy, batch.adds.path.value(row), batch.adds.vectors.as_ref(), row)
}

fn removed_key<'a>(policy: &PathPolicy, batch: &'a ActionBatch, row: usize) -> Cow<'a, str> {
    key::of_row(policy, batch.removes.path.value(row), batch.removes.vectors.as_ref(), row)
}

/// What is wrong with the actions of one compacted file; `None` if they can be used.
///
/// A file that names a key twice was not reconciled. It is used if its removals go back in time from line to line:
/// then it is commits strung together newest first. Otherwise nobody can tell which mention is the newer.
pub(crate) fn check_compacted(policy: &PathPolicy, batch: &ActionBatch) -> Option<&'static str> {
    let small = &batch.small;
    let mut applications = HashSet::new();
    let mut domains = HashSet::new();
    let twice = small.repeated
        || !small.txns.iter().all(|it| applications.insert(&it.app_id))
        || !small.domains.iter().all(|it| domains.insert(&it.domain));
    if twice {
        return Some("a compacted file has two actions of one kind");
    }
    let mut keys = HashSet::new();
    let distinct = (0..batch.adds.rows()).all(|row| keys.insert(added_key(policy, batch, row)))
        && (0..batch.removes.rows()).all(|row| keys.insert(removed_key(policy, batch, row)));
    if distinct || (batch.removes.removed_at.null_count() == 0 && goes_back(batch.removes.removed_at.values())) {
        return None;
    }
    Some("a compacted file names a file twice")
}

/// A path that stands twice among `files` with the same vector.
///
/// Hashes are compared first, which a million files feel little of; the keys themselves only where two hashes meet.
pub(crate) fn named_twice<'a>(
    policy: &PathPolicy,
    files: impl Iterator<Item = &'a FileColumns> + Clone,
) -> Option<String> {
    let keys = || {
        let rows = files.clone().flat_map(|it| (0..it.rows()).map(move |row| (it, row)));
        rows.map(|(it, row)| key::of_row(policy, it.path.value(row), it.vectors.as_ref(), row))
    };
    let hasher = foldhash::fast::FixedState::default();
    let mut hashes: Vec<u64> = keys().map(|it| hasher.hash_one(&*it)).collect();
    hashes.sort_unstable();
    if hashes.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut seen = HashSet::new();
    let twice = keys().find(|it| !seen.insert(it.clone()))?;
    Some(twice.split('\0').next().unwrap_or_default().escape_debug().to_string())
}

/// Whether times fall, and some really do.
fn goes_back(times: &[i64]) -> bool {
    times.is_sorted_by(|a, b| a >= b) && times.first() > times.last()
}
