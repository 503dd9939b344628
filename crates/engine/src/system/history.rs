//! `t$history`: the table's versions, newest first.
//!
//! Read when the statement runs, so that `LIMIT k` reads the newest k commits and no other; names of versions are looked
//! up only where they are shown. `readable` is `unchecked` here: whether every file of a version is still there takes a
//! listing, which `log` does.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    datasource::MemTable,
    error::DataFusionError,
    logical_expr::{Expr, TableType},
    physical_plan::ExecutionPlan,
};
use lakebed_core::{
    Result,
    table::Table,
    timeline::Instant,
    version::{AsOf, Ref, Span, Version},
};

use super::rows::Columns;

/// The versions of one table up to one of them.
#[derive(Debug)]
pub(super) struct HistoryTable {
    table: Arc<dyn Table>,
    until: AsOf,
    schema: SchemaRef,
}

impl HistoryTable {
    pub(super) fn new(table: Arc<dyn Table>, until: AsOf) -> Result<Self> {
        Ok(Self { table, until, schema: batch(&[], &[])?.schema() })
    }

    async fn rows(&self, with_refs: bool, limit: Option<usize>) -> Result<RecordBatch> {
        let span = Span { after: None, until: self.until.clone() };
        let timeline = match limit {
            Some(limit) => self.table.timeline_newest(&span, limit).await?,
            None => self.table.timeline(&span).await?,
        };
        let refs = if with_refs { self.table.refs().await? } else { Vec::new() };
        let newest_first: Vec<(&Version, &Instant)> =
            timeline.instants().iter().rev().filter_map(|it| Some((it.version()?, it))).collect();
        batch(&newest_first, &refs)
    }
}

#[async_trait]
impl TableProvider for HistoryTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
        let refs = self.schema.index_of("refs")?;
        let with_refs = projection.is_none_or(|it| it.contains(&refs));
        let rows = self.rows(with_refs, limit).await.map_err(|it| DataFusionError::External(Box::new(it)))?;
        MemTable::try_new(self.schema(), vec![vec![rows]])?.scan(state, projection, filters, limit).await
    }
}

fn batch(newest_first: &[(&Version, &Instant)], refs: &[Ref]) -> Result<RecordBatch> {
    let all = || newest_first.iter();
    let names = |version: &Version| {
        let names: Vec<&str> = refs.iter().filter(|it| it.version == version.id).map(|it| it.name.as_str()).collect();
        names.join(", ")
    };
    Columns::default()
        .text("id", all().map(|it| it.0.id.to_string()))
        .time("committed_at", all().map(|it| Some(it.0.committed_at)))
        .text("operation", all().map(|it| it.1.native_action.clone()))
        .count("files_added", all().map(|it| it.1.details.files_added))
        .count("files_removed", all().map(|it| it.1.details.files_removed))
        .count("rows_added", all().map(|it| it.1.details.rows_added))
        .count("rows_removed", all().map(|it| it.1.details.rows_removed))
        .text("refs", all().map(|it| names(it.0)))
        .text("readable", all().map(|_| "unchecked"))
        .optional_text("user", all().map(|it| it.1.details.user.clone()))
        .optional_text("engine", all().map(|it| it.1.details.engine.clone()))
        .optional_text("read_version", all().map(|it| it.1.details.read_version.as_ref().map(ToString::to_string)))
        .optional_text("isolation", all().map(|it| it.1.details.isolation.clone()))
        .optional_text("user_metadata", all().map(|it| it.1.details.user_metadata.clone()))
        .text("parameters", all().map(|it| object(&it.1.details.parameters)))
        .text("metrics", all().map(|it| object(&it.1.details.metrics)))
        .text("native", all().map(|it| it.1.details.native.to_string()))
        .batch()
}

/// As one JSON object.
fn object(pairs: &BTreeMap<String, String>) -> String {
    serde_json::json!(pairs).to_string()
}
