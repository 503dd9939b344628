//! Rows of more partitions than there is memory to have files open for.
//!
//! They are sorted by partition, on disk where memory ends. Then the rows of each partition come together, and its file
//! can end when the next one begins.
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use datafusion::{
    common::runtime::SpawnedTask,
    error::{DataFusionError, Result as DataResult},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{LexOrdering, PhysicalSortExpr, expressions::Column},
    physical_plan::{
        EmptyRecordBatchStream, ExecutionPlan,
        sorts::sort::SortExec,
        stream::RecordBatchStreamAdapter,
        streaming::{PartitionStream, StreamingTableExec},
    },
};
use futures::{StreamExt, stream};
use lakebed_core::{Error, Result};
use tokio::sync::mpsc;

use crate::error::of_datafusion;

/// Batches that wait for the sort.
const QUEUE: usize = 1;

/// A sort that rows are given to one batch at a time.
pub(super) struct Crowd {
    schema: SchemaRef,
    rows: mpsc::Sender<RecordBatch>,
    sort: SpawnedTask<DataResult<SendableRecordBatchStream>>,
}

impl Crowd {
    /// Sorts by the columns at `by`.
    pub(super) fn new(schema: &SchemaRef, by: impl Iterator<Item = usize>, task: Arc<TaskContext>) -> Result<Self> {
        let fields = schema.fields().iter().map(|it| it.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (rows, receiver) = mpsc::channel(QUEUE);
        let column = |at: usize| Arc::new(Column::new(schema.field(at).name(), at)) as _;
        let by = LexOrdering::new(by.map(|at| PhysicalSortExpr::new_default(column(at))));
        let by = by.ok_or_else(|| Error::internal("rows of many partitions without a partition column"))?;
        let input = Arc::new(Input { schema: Arc::clone(&schema), rows: Mutex::new(Some(receiver)) });
        let input = StreamingTableExec::try_new(Arc::clone(&schema), vec![input], None, [], false, None);
        let sort = SortExec::new(by, Arc::new(input.map_err(of_datafusion)?));
        let mut sorted = sort.execute(0, task).map_err(of_datafusion)?;
        // Nothing is sorted before somebody asks for the first row.
        let sort = SpawnedTask::spawn(async move {
            let first = sorted.next().await;
            let schema = sorted.schema();
            let rows = stream::iter(first).chain(sorted);
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)) as SendableRecordBatchStream)
        });
        Ok(Self { schema, rows, sort })
    }

    /// Takes rows, if the sort still does. What went wrong in the sort is said by [`Crowd::sorted`].
    pub(super) async fn add(&self, batch: &RecordBatch) -> Result<bool> {
        // Rows read and rows made may bring text in two layouts; a sort knows one.
        let alike = self.schema.fields().iter().zip(batch.columns());
        let columns = alike.map(|(field, column)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => arrow_cast::cast(column, field.data_type()),
        });
        let batch =
            columns.collect::<Result<Vec<_>, _>>().and_then(|it| RecordBatch::try_new(Arc::clone(&self.schema), it));
        let batch = batch.map_err(|it| Error::internal(it.to_string()))?;
        Ok(self.rows.send(batch).await.is_ok())
    }

    /// The rows by partition.
    pub(super) async fn sorted(self) -> Result<SendableRecordBatchStream> {
        drop(self.rows);
        let sorted = self.sort.join().await.map_err(|it| Error::internal(format!("a sort ended early: {it}")))?;
        sorted.map_err(of_datafusion)
    }
}

impl fmt::Debug for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crowd").finish_non_exhaustive()
    }
}

/// What comes through the channel, once.
struct Input {
    schema: SchemaRef,
    rows: Mutex<Option<mpsc::Receiver<RecordBatch>>>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").finish_non_exhaustive()
    }
}

impl PartitionStream for Input {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let Some(rows) = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Box::pin(EmptyRecordBatchStream::new(schema));
        };
        let rows =
            stream::unfold(rows, |mut rows| async { rows.recv().await.map(|it| (Ok::<_, DataFusionError>(it), rows)) });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}
