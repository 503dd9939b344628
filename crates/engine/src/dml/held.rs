//! Rows kept between two steps of a statement: in memory as long as the session's limit allows, then on disk.
use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    catalog::{TableProvider, streaming::StreamingTable},
    error::{DataFusionError, Result},
    execution::{
        SendableRecordBatchStream, SpillFile, TaskContext,
        memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation},
        runtime_env::RuntimeEnv,
    },
    physical_plan::{
        SpillManager,
        metrics::{ExecutionPlanMetricsSet, SpillMetrics},
        stream::RecordBatchStreamAdapter,
        streaming::PartitionStream,
    },
};
use futures::{StreamExt, TryStreamExt, stream};

/// The part of the session's memory that is kept at most: these rows stay while others are sorted and joined, and memory
/// is not asked back.
const PART: usize = 16;

/// Rows on their way.
pub(super) struct Holding {
    schema: SchemaRef,
    disk: SpillManager,
    memory: MemoryReservation,
    /// Bytes to keep in memory at most.
    most: usize,
    batches: Vec<RecordBatch>,
    files: Vec<Arc<dyn SpillFile>>,
}

/// Rows to be read, as often as somebody asks.
struct Held {
    schema: SchemaRef,
    disk: SpillManager,
    /// Given back when the rows are no longer needed.
    _memory: MemoryReservation,
    batches: Vec<RecordBatch>,
    files: Vec<Arc<dyn SpillFile>>,
}

impl Holding {
    pub(super) fn new(runtime: &Arc<RuntimeEnv>, schema: SchemaRef) -> Self {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let most = match runtime.memory_pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / PART,
            _ => usize::MAX,
        };
        let memory = MemoryConsumer::new("rows kept between two steps").with_can_spill(true);
        Self {
            disk: SpillManager::new(Arc::clone(runtime), metrics, Arc::clone(&schema)),
            memory: memory.register(&runtime.memory_pool),
            most,
            schema,
            batches: Vec::new(),
            files: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let bytes = batch.get_array_memory_size();
        let granted = match self.memory.size() + bytes > self.most {
            true => false,
            false => match self.memory.try_grow(bytes) {
                Ok(()) => true,
                Err(DataFusionError::ResourcesExhausted(_)) => false,
                Err(err) => return Err(err),
            },
        };
        self.batches.push(batch);
        if granted { Ok(()) } else { self.spill() }
    }

    fn spill(&mut self) -> Result<()> {
        let file = self.disk.spill_record_batch_and_finish(&self.batches, "rows kept between two steps")?;
        self.files.extend(file);
        self.batches.clear();
        self.memory.free();
        Ok(())
    }

    /// Whether memory was too small: then joins of these rows should be ones that spill.
    pub(super) fn spilled(&self) -> bool {
        !self.files.is_empty()
    }

    /// The rows as a table.
    pub(super) fn table(self) -> Result<Arc<dyn TableProvider>> {
        let Self { schema, disk, memory, batches, files, .. } = self;
        let held = Held { schema: Arc::clone(&schema), disk, _memory: memory, batches, files };
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(held)])?))
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("batches", &self.batches.len()).field("files", &self.files.len()).finish()
    }
}

impl PartitionStream for Held {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (disk, files) = (self.disk.clone(), self.files.clone());
        let spilled = stream::iter(files).map(move |it| disk.read_spill_as_stream(it, None)).try_flatten();
        let rows = spilled.chain(stream::iter(self.batches.clone()).map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
