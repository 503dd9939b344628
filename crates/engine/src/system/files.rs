//! `t$files` and `<format>_files(…)`: the live files of a snapshot as rows.
//!
//! A stream over [`Snapshot::files`]: only the columns a statement uses are asked for, and a count asks for none, so
//! that counting a million files builds no strings.
use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::Result,
    error::DataFusionError,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{Expr, TableType},
    physical_plan::{
        ExecutionPlan,
        stream::RecordBatchStreamAdapter,
        streaming::{PartitionStream, StreamingTableExec},
    },
};
use futures::TryStreamExt;
use lakebed_core::{
    expr::Predicate,
    listing::{self, ListingColumns},
    scan::Scan,
    table::Snapshot,
};

/// The live files of one snapshot, pruned by a predicate over the table's columns.
#[derive(Debug)]
pub struct ListingTable {
    snapshot: Arc<dyn Snapshot>,
    predicate: Predicate,
    schema: SchemaRef,
}

impl ListingTable {
    pub fn new(snapshot: Arc<dyn Snapshot>, predicate: Predicate) -> Self {
        Self { snapshot, predicate, schema: listing::schema(ListingColumns::ALL) }
    }
}

#[async_trait]
impl TableProvider for ListingTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let names = match projection {
            Some(indices) => self.schema.project(indices)?.fields().iter().map(|it| it.name().clone()).collect(),
            None => self.schema.fields().iter().map(|it| it.name().clone()).collect::<Vec<_>>(),
        };
        let columns = ListingColumns::named(names.iter().map(String::as_str))
            .ok_or_else(|| DataFusionError::Internal("a listing has no such column".to_owned()))?;
        let schema = listing::schema(columns);
        // The listing comes in its own order; the projection brings it into the one that was asked for.
        let order = names.iter().map(|it| schema.index_of(it)).collect::<std::result::Result<Vec<_>, _>>()?;
        let files = Files {
            snapshot: Arc::clone(&self.snapshot),
            predicate: self.predicate.clone(),
            columns,
            schema: Arc::clone(&schema),
        };
        let plan = StreamingTableExec::try_new(schema, vec![Arc::new(files)], Some(&order), None, false, limit)?;
        Ok(Arc::new(plan))
    }
}

#[derive(Debug)]
struct Files {
    snapshot: Arc<dyn Snapshot>,
    predicate: Predicate,
    columns: ListingColumns,
    schema: SchemaRef,
}

impl PartitionStream for Files {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let statistics = self.columns.min || self.columns.max || self.columns.rows;
        let scan = Scan { predicate: self.predicate.clone(), statistics, ..Scan::all() };
        let files = self.snapshot.files(&scan, self.columns);
        let files = files.map_err(|it| DataFusionError::External(Box::new(it)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), files))
    }
}
