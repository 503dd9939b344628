//! `commitInfo`: who made a commit, and how. It is the first line, where readers of one line find it.
//!
//! Parameters and metrics are the writer's, as texts; the id of the write is `txnId`, by which it is found again.
//! Spec: Delta PROTOCOL.md, "Commit Provenance Information", "In-Commit Timestamps".
use std::collections::BTreeMap;

use lakebed_core::{
    commit::{Intent, Write},
    timeline::Action,
};
use serde_json::{Map, Value};

use super::files::FileActions;
use crate::{properties::Properties, spec::CommitInfo};

/// What history shows as the engine.
const ENGINE: &str = concat!("Lakebed/", env!("CARGO_PKG_VERSION"));
/// Where the lineage of the version stands.
const LINEAGE: &str = "lakebed.lineage";

/// What the commit says of itself. `read` is the version the writer had read, none for a new table.
pub(super) fn commit_info(
    write: &Write,
    read: Option<u64>,
    properties: Properties<'_>,
    files: &FileActions,
    now: i64,
    stamp: Option<i64>,
) -> CommitInfo {
    let intent = &write.intent;
    let mut rest = Map::new();
    if let Some(lineage) = &intent.lineage {
        rest.insert(LINEAGE.to_owned(), lineage.as_str().into());
    }
    CommitInfo {
        timestamp: Some(now),
        in_commit_timestamp: stamp,
        operation: Some(intent.operation.clone()),
        operation_parameters: Some(texts(&intent.parameters)),
        operation_metrics: Some(texts(&intent.metrics)),
        read_version: read.and_then(|it| i64::try_from(it).ok()),
        isolation_level: Some(isolation(intent, properties)),
        is_blind_append: Some(is_blind(intent, files)),
        user_name: None,
        user_metadata: intent.user_metadata.clone(),
        engine_info: Some(ENGINE.to_owned()),
        txn_id: Some(write.id.clone()),
        rest,
    }
}

/// Whether rows only move between files.
pub(super) fn moves_rows(intent: &Intent) -> bool {
    matches!(intent.action, Action::Compaction | Action::Clustering)
}

fn isolation(intent: &Intent, properties: Properties<'_>) -> String {
    let of_table = properties.text("delta.isolationLevel").unwrap_or("WriteSerializable");
    if moves_rows(intent) { "SnapshotIsolation".to_owned() } else { of_table.to_owned() }
}

/// Whether the writer had read nothing of the table and takes nothing away: others need not care about what it added.
fn is_blind(intent: &Intent, files: &FileActions) -> bool {
    let read = match intent.action {
        Action::Create | Action::Append | Action::Schema | Action::Properties | Action::Ref => false,
        Action::Overwrite
        | Action::Delete
        | Action::RowDelta
        | Action::Compaction
        | Action::Clustering
        | Action::Clean
        | Action::Rollback
        | Action::Restore
        | Action::Index
        | Action::Other => true,
        // An action this build does not know may have read anything.
        _ => true,
    };
    !read && files.removes.is_empty() && files.cdc.is_empty()
}

fn texts(map: &BTreeMap<String, String>) -> Map<String, Value> {
    map.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
}
