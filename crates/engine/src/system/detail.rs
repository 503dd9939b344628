//! `t$detail`, which `DESCRIBE DETAIL t` shows: one row a fact.
use std::sync::Arc;

use arrow_array::RecordBatch;
use lakebed_core::{
    Result,
    table::{Snapshot, Table},
};
use serde_json::Value;

use super::rows::Columns;

pub(super) async fn rows(table: &Arc<dyn Table>, snapshot: &Arc<dyn Snapshot>) -> Result<RecordBatch> {
    let version = snapshot.version();
    let totals = snapshot.totals().await?;
    let partition: Vec<&str> = snapshot.layout().partition.iter().map(|it| it.name.as_str()).collect();
    let mut facts = vec![
        ("format".to_owned(), table.format().name().to_owned()),
        ("location".to_owned(), table.storage().location().to_owned()),
        ("version".to_owned(), version.id.to_string()),
        ("committed_at".to_owned(), version.committed_at.to_string()),
        ("partition_columns".to_owned(), partition.join(", ")),
        ("files".to_owned(), totals.files.to_string()),
        ("bytes".to_owned(), totals.bytes.to_string()),
    ];
    facts.extend(totals.rows.map(|it| ("rows".to_owned(), it.to_string())));
    facts.extend(totals.deleted_rows.map(|it| ("deleted_rows".to_owned(), it.to_string())));
    let mut facts: Vec<(String, Option<String>)> = facts.into_iter().map(|(name, text)| (name, Some(text))).collect();
    for (name, value) in snapshot.facts() {
        // What every format has was said above, in every format's words.
        if !facts.iter().any(|it| it.0 == name) {
            facts.push((name, shown(value)));
        }
    }
    Columns::default()
        .text("name", facts.iter().map(|it| it.0.clone()))
        .optional_text("value", facts.iter().map(|it| it.1.clone()))
        .batch()
}

/// A fact as text, `None` for one that is not set.
fn shown(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}
