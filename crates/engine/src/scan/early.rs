//! Files that a filter made while the query runs does not want.
//!
//! A join knows its keys, and a sort its limit, only once it has begun; then their filters reach the scan. DataFusion asks
//! a file's bounds once more before it opens the file, but believes only bounds that are values of the file. Ours need
//! not be, and dropping files asks for no more than that all values lie between them.
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::{
    common::{ScalarValue, stats::Precision},
    datasource::{listing::PartitionedFile, physical_plan::FileSource},
    physical_expr::{DynamicFilterTracking, PhysicalExpr},
    physical_optimizer::pruning::FilePruner,
    physical_plan::metrics::Count,
};

/// A filter that a plan above may tighten at any time.
#[derive(Debug)]
pub(crate) struct Early {
    filter: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl Early {
    /// `None` where the scan's filter is the one it was planned with.
    pub(crate) fn new(source: &dyn FileSource) -> Option<Self> {
        let filter = source.filter()?;
        let changes = DynamicFilterTracking::classify(&filter).contains_dynamic_filter();
        changes.then(|| Self { filter, schema: Arc::clone(source.table_schema().table_schema()) })
    }

    /// Whether surely no row of the file is wanted.
    pub(crate) fn drops(&self, file: &PartitionedFile) -> bool {
        let Some(known) = &file.statistics else { return false };
        let mut bounds = known.as_ref().clone();
        for column in &mut bounds.column_statistics {
            column.min_value = believed(&column.min_value);
            column.max_value = believed(&column.max_value);
        }
        let mut file = file.clone();
        file.statistics = Some(Arc::new(bounds));
        let pruner = FilePruner::try_new(Arc::clone(&self.filter), &self.schema, &file, Count::new());
        // What cannot be decided is read.
        pruner.is_some_and(|mut it| it.should_prune().unwrap_or(false))
    }
}

fn believed(bound: &Precision<ScalarValue>) -> Precision<ScalarValue> {
    match bound.get_value() {
        Some(value) => Precision::Exact(value.clone()),
        None => Precision::Absent,
    }
}
