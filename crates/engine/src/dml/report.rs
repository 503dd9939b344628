//! What a statement says of itself, in history's words, and its commit.
use std::collections::BTreeMap;

use lakebed_core::{
    Result,
    change::{Change, RowDelta},
};
use serde_json::{Value as Json, json};
use sqlparser::ast::Expr;

use super::{
    desk::Desk,
    pour::Poured,
    removal::Removal,
    statement::{Merge, Then, When},
};
use crate::write::{Driver, Prepared, rows_of};

/// Rows by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) inserted: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
    /// Of `updated` and `deleted`, those that no row of a source matched.
    pub(super) updated_by_source: u64,
    pub(super) deleted_by_source: u64,
    /// Rows that only moved to another file.
    pub(super) copied: u64,
}

/// Files by what became of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Files {
    added: u64,
    added_bytes: u64,
    removed: u64,
    removed_bytes: u64,
    changes: u64,
    vectors_added: u64,
    vectors_replaced: u64,
    vectors_removed: u64,
}

impl Outcome {
    /// The commit of the statement, ready; `metrics` are those of its operation.
    pub(super) async fn prepared(
        self,
        desk: &Desk<'_>,
        driver: &Driver,
        removal: Removal,
        poured: Poured,
        metrics: fn(&Self, &Files) -> Vec<(&'static str, u64)>,
    ) -> Result<Prepared> {
        let vectors = removal.vectors.len() as u64;
        let files = Files {
            added: poured.added.len() as u64,
            added_bytes: poured.added.iter().map(|it| it.file.bytes).sum(),
            removed: removal.removed.len() as u64,
            removed_bytes: removal.removed_bytes,
            changes: poured.change_files.len() as u64,
            vectors_added: vectors,
            vectors_replaced: removal.vectors_replaced,
            vectors_removed: removal.vectors_removed + removal.vectors_replaced,
        };
        let added_deletes = match removal.vectors.is_empty() {
            true => Vec::new(),
            false => driver.vectors(removal.vectors).await?,
        };
        debug_assert_eq!(self.inserted + self.updated + self.copied, rows_of(&poured.added), "rows in files");
        let delta = RowDelta {
            added: poured.added.into_iter().map(|it| it.file).collect(),
            added_deletes,
            removed: removal.removed,
            removed_deletes: Vec::new(),
            change_files: poured.change_files,
        };
        let metrics = metrics(&self, &files).into_iter().map(|(name, it)| (name.to_owned(), it.to_string()));
        Ok(Prepared {
            changes: vec![Change::Rows(delta)],
            read: Some(desk.read()),
            metrics: metrics.collect(),
            count: self.inserted + self.updated + self.deleted,
        })
    }
}

pub(super) fn of_delete(rows: &Outcome, files: &Files) -> Vec<(&'static str, u64)> {
    let mut metrics = of_files(files);
    metrics.extend([("numDeletedRows", rows.deleted), ("numCopiedRows", rows.copied)]);
    metrics
}

pub(super) fn of_update(rows: &Outcome, files: &Files) -> Vec<(&'static str, u64)> {
    let mut metrics = of_files(files);
    metrics.extend([("numUpdatedRows", rows.updated), ("numCopiedRows", rows.copied)]);
    metrics
}

fn of_files(files: &Files) -> Vec<(&'static str, u64)> {
    vec![
        ("numAddedFiles", files.added),
        ("numAddedBytes", files.added_bytes),
        ("numRemovedFiles", files.removed),
        ("numRemovedBytes", files.removed_bytes),
        ("numAddedChangeFiles", files.changes),
        ("numDeletionVectorsAdded", files.vectors_added),
        ("numDeletionVectorsUpdated", files.vectors_replaced),
        ("numDeletionVectorsRemoved", files.vectors_removed),
    ]
}

pub(super) fn of_merge(rows: &Outcome, files: &Files) -> Vec<(&'static str, u64)> {
    vec![
        ("numTargetRowsInserted", rows.inserted),
        ("numTargetRowsUpdated", rows.updated),
        ("numTargetRowsMatchedUpdated", rows.updated - rows.updated_by_source),
        ("numTargetRowsNotMatchedBySourceUpdated", rows.updated_by_source),
        ("numTargetRowsDeleted", rows.deleted),
        ("numTargetRowsMatchedDeleted", rows.deleted - rows.deleted_by_source),
        ("numTargetRowsNotMatchedBySourceDeleted", rows.deleted_by_source),
        ("numTargetRowsCopied", rows.copied),
        ("numOutputRows", rows.inserted + rows.updated + rows.copied),
        ("numTargetFilesAdded", files.added),
        ("numTargetBytesAdded", files.added_bytes),
        ("numTargetFilesRemoved", files.removed),
        ("numTargetBytesRemoved", files.removed_bytes),
        ("numTargetChangeFilesAdded", files.changes),
        ("numTargetDeletionVectorsAdded", files.vectors_added),
        ("numTargetDeletionVectorsUpdated", files.vectors_replaced),
        ("numTargetDeletionVectorsRemoved", files.vectors_removed),
    ]
}

/// Conditions as history has them: a JSON array of text.
pub(super) fn predicates(filter: Option<&Expr>) -> String {
    let texts: Vec<Json> = filter.iter().map(|it| json!(format!("({it})"))).collect();
    Json::Array(texts).to_string()
}

/// What history says that a merge was asked to do.
pub(super) fn parameters_of(merge: &Merge) -> BTreeMap<&'static str, String> {
    let clauses = |when| {
        let clauses = merge.clauses.iter().filter(|it| it.when == when).map(|it| {
            let action = match it.then {
                Then::Update(_) | Then::UpdateAll => "update",
                Then::Insert { .. } | Then::InsertAll => "insert",
                Then::Delete => "delete",
            };
            match &it.condition {
                Some(filter) => json!({ "predicate": filter.to_string(), "actionType": action }),
                None => json!({ "actionType": action }),
            }
        });
        Json::Array(clauses.collect()).to_string()
    };
    BTreeMap::from([
        ("predicate", predicates(Some(&merge.on))),
        ("matchedPredicates", clauses(When::Matched)),
        ("notMatchedPredicates", clauses(When::NotMatched)),
        ("notMatchedBySourcePredicates", clauses(When::NotMatchedBySource)),
    ])
}
