//! Changed rows of a range of versions, as DataFusion reads them.
//!
//! The columns are the newest version's, then `_change_type`, `_commit_version` and `_commit_timestamp`. A row that only
//! came or went has its kind from its task; in files that record changes, each row says its own.
use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    error::Result,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType},
    physical_plan::ExecutionPlan,
};
use futures::TryStreamExt;
use lakebed_core::{
    Error,
    change::ChangeTask,
    format::TableFormat,
    scan::ColumnMapping,
    table::{ChangeFeed, Table},
};

use crate::{
    provider::mapping_of,
    registry::Formats,
    scan::{Constant, Label, Reading, Request, Shown, ShownKind, plan},
};

/// The changes of one table between two versions.
#[derive(Debug)]
pub struct ChangeTable {
    name: String,
    table: Arc<dyn Table>,
    format: Arc<dyn TableFormat>,
    shown: Shown,
    mapping: Arc<ColumnMapping>,
    changes: Vec<ChangeTask>,
}

impl ChangeTable {
    /// Collects the feed's tasks. `name` is what EXPLAIN calls it.
    ///
    /// # Errors
    /// Those of the feed: a version in the range that is gone, or one that recorded no changes.
    pub async fn new(
        name: impl Into<String>,
        table: Arc<dyn Table>,
        feed: ChangeFeed,
        formats: Formats,
    ) -> Result<Self, Error> {
        let format = formats.of(&table.format())?;
        let changes: Vec<ChangeTask> = feed.tasks.try_collect().await?;
        let mapping = mapping_of(changes.iter().map(|it| &it.task), &feed.schema)?;
        let numbered = changes.iter().all(|it| it.version.id.as_str().parse::<i64>().is_ok());
        let shown = Shown::new(&feed.schema, change_columns(numbered));
        Ok(Self { name: name.into(), table, format, shown, mapping, changes })
    }

    pub fn table(&self) -> &Arc<dyn Table> {
        &self.table
    }

    fn label(&self) -> Label {
        let ids = || self.changes.iter().map(|it| &it.version.id);
        let version = match (ids().next(), ids().next_back()) {
            (Some(first), Some(last)) => format!("{first}..{last}"),
            _ => "none".to_owned(),
        };
        let files_kept = self.changes.len() as u64;
        Label { table: self.name.clone(), version, files_kept, files_total: None, pruned_by: None }
    }
}

/// Versions are numbers where the format's are.
fn change_columns(numbered: bool) -> Vec<(Field, ShownKind)> {
    let version = if numbered { DataType::Int64 } else { DataType::Utf8 };
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    vec![
        (Field::new("_change_type", DataType::Utf8, true), ShownKind::ChangeType),
        (Field::new("_commit_version", version, true), ShownKind::Constant(Constant::ChangeVersion)),
        (Field::new("_commit_timestamp", time, true), ShownKind::Constant(Constant::ChangeTime)),
    ]
}

#[async_trait]
impl TableProvider for ChangeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.shown.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let wanted = match projection {
            Some(wanted) => wanted.clone(),
            None => (0..self.shown.schema.fields().len()).collect(),
        };
        let readings: Vec<Reading> = self.changes.iter().cloned().map(Reading::from).collect();
        plan(
            state,
            Request {
                storage: self.table.storage(),
                format: Arc::clone(&self.format),
                shown: &self.shown,
                wanted,
                mapping: Arc::clone(&self.mapping),
                readings,
                filters,
                limit,
                label: self.label(),
            },
        )
    }
}
