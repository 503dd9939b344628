//! Reads scan tasks slowly and obviously: the oracle for the engine, of which it shares no code.
//!
//! For each task:
//!
//! 1. Read each file whole ([`file`]) and find the table's columns in it ([`columns`]): by id, by name or by physical
//!    name; a partition value wins, a missing column has its initial default, else null; values are widened to the
//!    table's type.
//! 2. Drop the rows that `deletes` name; where `only` is not empty, keep just the rows it names ([`deletes`]).
//! 3. Let the files' rows become the table's rows as `merge` says, literally ([`merge`]).
//! 4. Apply the residual predicate, only when asked ([`filter`]): it is a necessary condition, not the query's.
//!
//! Variants are rendered as JSON text ([`variant`]).
mod coerce;
mod columns;
mod deletes;
mod file;
mod filter;
mod merge;
mod variant;

use arrow_schema::Schema;
use futures::TryStreamExt;
use lakebed_core::{
    Result,
    change::{ChangeKind, ChangeTask},
    format::TableFormat,
    scan::{Merge, Scan, ScanTask},
    storage::Storage,
    table::{ChangeFeed, Snapshot, Table},
    version::AsOf,
};

pub use self::{coerce::json_value, columns::is_variant, file::parquet_rows, variant::variant_json};
use crate::{rows::Rows, value::Value};

/// What to read beyond the table's columns. Additional columns follow the table's, in this order.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Whether rows that fail a task's residual predicate are dropped.
    pub residual: bool,
    /// `_path` and `_row_index`: the file a row came from and its position in it.
    pub places: bool,
    /// `_row_id` and `_row_commit_version`.
    pub row_ids: bool,
    /// Columns of the files that the table does not have, by their name there.
    pub raw: Vec<String>,
}

impl Reading {
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        if self.places {
            names.extend(["_path".to_owned(), "_row_index".to_owned()]);
        }
        if self.row_ids {
            names.extend(["_row_id".to_owned(), "_row_commit_version".to_owned()]);
        }
        names.extend(self.raw.iter().cloned());
        names
    }
}

/// A row on its way from a file to the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// One value a column of the table.
    pub(crate) values: Vec<Value>,
    /// The row as it lies in the file, a struct.
    pub(crate) raw: Value,
    /// Its position in the file.
    pub(crate) position: u64,
    /// The additional columns of a [`Reading`].
    pub(crate) more: Vec<Value>,
}

/// Reads every row of `tasks`; the columns are the table's.
pub async fn read(format: &dyn TableFormat, storage: &Storage, tasks: &[ScanTask]) -> Result<Rows> {
    read_with(format, storage, tasks, &Reading::default()).await
}

/// Reads `tasks` with what `reading` adds.
pub async fn read_with(
    format: &dyn TableFormat,
    storage: &Storage,
    tasks: &[ScanTask],
    reading: &Reading,
) -> Result<Rows> {
    let Some(first) = tasks.first() else { return Ok(Rows::default()) };
    let mut rows = empty(&first.columns.schema, reading);
    for task in tasks {
        let read = read_task(format, storage, task, reading).await?;
        rows.rows.extend(read.into_iter().map(|it| it.values.into_iter().chain(it.more).collect::<Vec<_>>()));
    }
    Ok(rows)
}

/// Reads every row of a snapshot of a table in `storage`.
pub async fn read_snapshot(format: &dyn TableFormat, storage: &Storage, snapshot: &dyn Snapshot) -> Result<Rows> {
    let tasks: Vec<ScanTask> = snapshot.tasks(&Scan::all()).try_collect().await?;
    let rows = read(format, storage, &tasks).await?;
    let nothing = tasks.is_empty().then(|| empty(snapshot.schema(), &Reading::default()));
    Ok(nothing.unwrap_or(rows))
}

/// Reads every row of the version that `as_of` names.
pub async fn read_table(format: &dyn TableFormat, table: &dyn Table, as_of: &AsOf) -> Result<Rows> {
    let snapshot = table.snapshot(as_of).await?;
    read_snapshot(format, table.storage(), snapshot.as_ref()).await
}

/// Reads a change feed: the table's columns, then `_change_type`, `_commit_version`, `_commit_timestamp`.
pub async fn read_changes(format: &dyn TableFormat, storage: &Storage, feed: ChangeFeed) -> Result<Rows> {
    let mut rows = empty(&feed.schema, &Reading::default());
    rows.columns.extend(["_change_type", "_commit_version", "_commit_timestamp"].map(str::to_owned));
    let tasks: Vec<ChangeTask> = feed.tasks.try_collect().await?;
    for change in tasks {
        let (raw, said) = match &change.kind {
            ChangeKind::Insert => (Vec::new(), "insert"),
            ChangeKind::Delete => (Vec::new(), "delete"),
            ChangeKind::InColumn(name) => (vec![name.clone()], ""),
        };
        let reading = Reading { raw, ..Reading::default() };
        for row in read_task(format, storage, &change.task, &reading).await? {
            let kind = row.more.into_iter().next().unwrap_or_else(|| Value::Text(said.to_owned()));
            let version = change.version.id.as_str().parse().map_or(Value::Null, Value::Int);
            let at = Value::Timestamp(i128::from(change.version.committed_at.0) * 1_000_000);
            rows.rows.push(row.values.into_iter().chain([kind, version, at]).collect());
        }
    }
    Ok(rows)
}

fn empty(schema: &Schema, reading: &Reading) -> Rows {
    Rows::new(schema.fields().iter().map(|it| it.name().clone()).chain(reading.names()))
}

async fn read_task(
    format: &dyn TableFormat,
    storage: &Storage,
    task: &ScanTask,
    reading: &Reading,
) -> Result<Vec<Row>> {
    let mut files = Vec::new();
    for file in &task.files {
        let rows = file::rows(format, storage, file, task, reading).await?;
        files.push(deletes::apply(format, storage, file, task, rows).await?);
    }
    let schema = &task.columns.schema;
    let mut rows = match &task.merge {
        Merge::Concat => files.into_iter().flatten().collect(),
        Merge::ByKey(rule) => merge::one_fold(schema, rule, files)?,
        Merge::Staged(rule) => merge::two_stages(schema, rule, files)?,
    };
    if reading.residual {
        rows.retain(|row| filter::holds(&task.residual, schema, &row.values) == Some(true));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
