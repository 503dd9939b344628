//! The last step for rows that the Parquet reader does not make itself: constants, the scan's predicate, its projection.
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::{
    datasource::{physical_plan::FileSource, table_schema::TableSchema},
    error::Result,
    physical_expr::{PhysicalExpr, projection::Projector},
    physical_plan::filter::batch_filter,
    scalar::ScalarValue,
};
use std::sync::Arc;

use super::error::external;
use lakebed_core::Error;

/// Turns file columns into the scan's output.
pub(crate) struct Finish {
    schema: TableSchema,
    /// Checked row by row when the plan above relies on the scan for it.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    projector: Option<Projector>,
    output: SchemaRef,
}

impl std::fmt::Debug for Finish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Finish").field("predicate", &self.predicate).finish_non_exhaustive()
    }
}

impl Finish {
    pub(crate) fn new(source: &dyn FileSource, exact: bool) -> Result<Self> {
        let schema = source.table_schema().clone();
        let full = schema.table_schema();
        let projector = source.projection().map(|it| it.make_projector(full)).transpose()?;
        let output = match source.projection() {
            Some(projection) => Arc::new(projection.project_schema(full)?),
            None => Arc::clone(full),
        };
        Ok(Self { predicate: source.filter().filter(|_| exact), projector, output, schema })
    }

    /// The file columns that [`Self::batch`] takes, in order.
    pub(crate) fn wanted(&self) -> &SchemaRef {
        self.schema.file_schema()
    }

    /// Whether somebody above asks for row numbers.
    pub(crate) fn numbers(&self) -> bool {
        !self.schema.virtual_columns().is_empty()
    }

    /// `columns` are those of [`Self::wanted`]; `numbers` the rows' positions in their file, where there is one.
    pub(crate) fn batch(
        &self,
        mut columns: Vec<ArrayRef>,
        constants: &[ScalarValue],
        numbers: Option<Int64Array>,
        rows: usize,
    ) -> Result<RecordBatch> {
        for value in constants {
            columns.push(value.to_array_of_size(rows)?);
        }
        if self.numbers() {
            let numbers = numbers.ok_or_else(|| external(Error::unsupported("merged rows have no row number")))?;
            let numbers: ArrayRef = Arc::new(numbers);
            columns.extend(self.schema.virtual_columns().iter().map(|_| Arc::clone(&numbers)));
        }
        let whole = with_rows(Arc::clone(self.schema.table_schema()), columns, rows)?;
        let kept = match &self.predicate {
            Some(predicate) => batch_filter(&whole, predicate)?,
            None => whole,
        };
        let projected = match &self.projector {
            Some(projector) => projector.project_batch(&kept)?,
            None => kept,
        };
        let rows = projected.num_rows();
        with_rows(Arc::clone(&self.output), projected.columns().to_vec(), rows)
    }
}

pub(crate) fn with_rows(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
