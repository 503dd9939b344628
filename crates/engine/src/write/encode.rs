//! Rows as the bytes of one Parquet file.
//!
//! Columns are encoded side by side ([`lanes`](super::lanes)) on as many threads as are free. A row group ends at [`GROUP_ROWS`] rows or
//! [`GROUP_BYTES`] bytes; then its bytes can leave. The file says nothing of Arrow: its own schema, with field ids, is
//! the whole truth.
use std::sync::{Arc, atomic::Ordering};

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use datafusion::common::runtime::JoinSet;
use lakebed_core::{Error, Result, write::FileShape};
use parquet::{
    arrow::{ArrowSchemaConverter, arrow_writer::ArrowRowGroupWriterFactory},
    file::{metadata::ParquetMetaData, writer::SerializedFileWriter},
};

use super::{
    encoding,
    lanes::{Lanes, failed},
    pieces::Pieces,
    target::Target,
};

const GROUP_ROWS: usize = 1 << 18;
const GROUP_BYTES: usize = 128 << 20;

/// What an array takes beside its values, about. Of rows that go to many partitions it is most.
const ARRAY: usize = 256;

/// Pieces of a chunk that are kept apart.
const MOST_PIECES: usize = 64;

/// Batches of one file: arrays by column of the file.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    batches: Vec<Vec<ArrayRef>>,
    pub(super) rows: usize,
    /// By column.
    bytes: Vec<usize>,
}

impl Chunk {
    /// # Errors
    /// None that a batch of the file's columns could have.
    pub(super) fn push(&mut self, arrays: Vec<ArrayRef>, rows: usize) -> Result<()> {
        self.bytes.resize(arrays.len(), 0);
        for (sum, array) in self.bytes.iter_mut().zip(&arrays) {
            *sum += bytes_of(array.as_ref()) + ARRAY;
        }
        self.rows += rows;
        self.batches.push(arrays);
        // Where rows go to many partitions, each brings a few: arrays of a few rows cost more than the rows.
        if self.batches.len() > MOST_PIECES {
            self.batches = vec![whole_columns(self)?];
        }
        Ok(())
    }

    /// Values to encode.
    pub(super) fn cells(&self) -> usize {
        self.rows * self.bytes.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.iter().sum()
    }

    pub(super) fn column_bytes(&self, at: usize) -> usize {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The pieces of one column.
    pub(super) fn column(&self, at: usize) -> impl Iterator<Item = &ArrayRef> {
        self.batches.iter().map(move |it| &it[at])
    }
}

/// A Parquet file that grows in memory until its bytes are taken.
pub(super) struct Encoder {
    lanes: Arc<Lanes>,
    factory: ArrowRowGroupWriterFactory,
    /// The row group that comes next, or is open.
    group: usize,
    /// Its rows so far.
    group_rows: usize,
    workers: JoinSet<()>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("group", &self.group).field("rows", &self.group_rows).finish_non_exhaustive()
    }
}

/// A file that is whole: its last bytes, and what its footer says.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) rest: Vec<Bytes>,
    pub(super) metadata: ParquetMetaData,
    /// By leaf: whether a NaN was written.
    pub(super) nan: Vec<bool>,
}

impl Encoder {
    /// `first` decides how columns are encoded; it is not written yet.
    pub(super) fn new(shape: &FileShape, schema: &SchemaRef, first: &Chunk) -> Result<Self> {
        let converter = ArrowSchemaConverter::new().with_coerce_types(true).schema_root("schema");
        let descriptor = converter.convert(schema).map_err(failed)?;
        let sample = whole_columns(first)?;
        let properties = Arc::new(encoding::properties(shape, &descriptor, &sample));
        let writer =
            SerializedFileWriter::new(Pieces::default(), descriptor.root_schema_ptr(), properties).map_err(failed)?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(schema));
        let lanes = Arc::new(Lanes::new(writer, schema));
        Ok(Self { lanes, factory, group: 0, group_rows: 0, workers: JoinSet::new() })
    }

    /// Queues all of `chunk`; waits while too much is queued.
    ///
    /// # Errors
    /// What went wrong with this chunk or one before it.
    pub(super) async fn push(&mut self, chunk: Chunk) -> Result<()> {
        if chunk.rows == 0 {
            return Ok(());
        }
        if self.group_rows == 0 {
            self.lanes.open(self.group, self.factory.create_column_writers(self.group).map_err(failed)?);
        }
        self.group_rows += chunk.rows;
        self.lanes.push(chunk).await?;
        if self.group_rows >= GROUP_ROWS || self.lanes.encoded(self.group) >= GROUP_BYTES {
            self.end_group();
        }
        Ok(())
    }

    /// Queues the end of the row group, if one is open.
    pub(super) fn end_group(&mut self) {
        if self.group_rows > 0 {
            self.lanes.close(self.group);
            self.group += 1;
            self.group_rows = 0;
        }
    }

    /// Has what is queued done by blocking threads, as many as `target` leaves free.
    pub(super) fn start(&mut self, target: &Arc<Target>) {
        while self.workers.try_join_next().is_some() {}
        while self.lanes.wants_worker(target.free_threads(self.lanes.workers())) {
            let (lanes, busy) = (Arc::clone(&self.lanes), Busy::enter(target));
            self.workers.spawn_blocking(move || {
                let _busy = busy;
                lanes.work();
            });
        }
    }

    /// Has what is queued done by this thread: for work that ends faster than another thread begins.
    pub(super) fn work_here(&self) {
        if self.lanes.wants_worker(1) {
            self.lanes.work();
        }
    }

    /// Waits until all that was queued is done.
    pub(super) async fn idle(&mut self) -> Result<()> {
        while let Some(ended) = self.workers.join_next().await {
            ended.map_err(|it| Error::internal(format!("an encoder ended: {it}")))?;
        }
        self.lanes.check()
    }

    /// The bytes of the row groups that ended since the last call.
    pub(super) fn take(&self) -> Result<Vec<Bytes>> {
        self.lanes.take()
    }

    /// The file's size so far, as well as it is known.
    pub(super) fn size(&self) -> u64 {
        self.lanes.size()
    }

    pub(super) fn memory(&self) -> usize {
        self.lanes.memory()
    }

    /// The end of a file whose last row group has ended.
    pub(super) fn finish(self) -> Result<Finished> {
        let (metadata, nan) = self.lanes.finish()?;
        Ok(Finished { rest: self.take()?, metadata, nan })
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.lanes.stop();
    }
}

/// Counts one who encodes, so that files share the threads there are.
#[derive(Debug)]
struct Busy(Arc<Target>);

impl Busy {
    fn enter(target: &Arc<Target>) -> Self {
        target.encoding.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(target))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.encoding.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an array's own values take, whatever else the memory behind it holds.
pub(super) fn bytes_of(array: &dyn Array) -> usize {
    const VIEW: usize = 16;
    match array.data_type() {
        DataType::Utf8View => array.len() * VIEW + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.len() * VIEW + array.as_binary_view().total_buffer_bytes_used(),
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

/// The chunk's columns, each as one array.
fn whole_columns(chunk: &Chunk) -> Result<Vec<ArrayRef>> {
    let columns = chunk.batches.first().map_or(0, Vec::len);
    let column = |at: usize| {
        let parts: Vec<&ArrayRef> = chunk.batches.iter().map(|it| &it[at]).collect();
        match parts.as_slice() {
            [only] => Ok(Arc::clone(only)),
            parts => joined(parts).map_err(|it| Error::internal(it.to_string())),
        }
    };
    (0..columns).map(column).collect()
}

/// The parts as one array, in the layout of the first: rows read and rows made may bring text in two.
fn joined(parts: &[&ArrayRef]) -> std::result::Result<ArrayRef, arrow_schema::ArrowError> {
    let kind = parts[0].data_type();
    let alike = parts.iter().map(|it| match it.data_type() == kind {
        true => Ok(Arc::clone(it)),
        false => arrow_cast::cast(it, kind),
    });
    let alike = alike.collect::<std::result::Result<Vec<_>, _>>()?;
    arrow_select::concat::concat(&alike.iter().map(|it| it.as_ref()).collect::<Vec<_>>())
}

pub(super) fn leaf_count(kind: &DataType) -> usize {
    use DataType as T;
    match kind {
        T::Struct(fields) => fields.iter().map(|it| leaf_count(it.data_type())).sum(),
        T::List(item) => leaf_count(item.data_type()),
        T::Map(entries, _) => leaf_count(entries.data_type()),
        _ => 1,
    }
}
