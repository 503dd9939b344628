//! Rows as the bytes of one Parquet file.
//!
//! Columns are encoded side by side on as many threads as are free. A row group ends at [`GROUP_ROWS`] rows or
//! [`GROUP_BYTES`] bytes; then its bytes can leave. The file says nothing of Arrow: its own schema, with field ids, is
//! the whole truth.
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_schema::{DataType, FieldRef, SchemaRef};
use bytes::Bytes;
use lakebed_core::{Error, ErrorKind, Result, write::FileShape};
use parquet::{
    arrow::{
        ArrowSchemaConverter,
        arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves},
    },
    errors::ParquetError,
    file::{metadata::ParquetMetaData, writer::SerializedFileWriter},
};

use super::{encoding, stats};

const GROUP_ROWS: usize = 1 << 18;
const GROUP_BYTES: usize = 128 << 20;

/// Pieces of a chunk that are kept apart.
const MOST_PIECES: usize = 64;

/// Batches of one file: arrays by column of the file.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    batches: Vec<Vec<ArrayRef>>,
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl Chunk {
    /// # Errors
    /// None that a batch of the file's columns could have.
    pub(super) fn push(&mut self, arrays: Vec<ArrayRef>, rows: usize) -> Result<()> {
        self.bytes += arrays.iter().map(|it| bytes_of(it.as_ref())).sum::<usize>();
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
        self.rows * self.batches.first().map_or(0, Vec::len)
    }
}

/// A Parquet file that grows in memory until its bytes are taken.
pub(super) struct Encoder {
    writer: SerializedFileWriter<Vec<u8>>,
    factory: ArrowRowGroupWriterFactory,
    columns: Vec<Column>,
    groups: usize,
    group_rows: usize,
}

struct Column {
    field: FieldRef,
    /// Of its leaves; empty between two row groups.
    writers: Vec<ArrowColumnWriter>,
    /// Whether a leaf has held a NaN.
    nan: Vec<bool>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("groups", &self.groups).field("rows", &self.group_rows).finish_non_exhaustive()
    }
}

/// A file that is whole: its last bytes, and what its footer says.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) rest: Bytes,
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
        let writer = SerializedFileWriter::new(Vec::new(), descriptor.root_schema_ptr(), properties).map_err(failed)?;
        let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(schema));
        let columns = schema.fields().iter().map(|field| Column {
            field: Arc::clone(field),
            writers: Vec::new(),
            nan: vec![false; leaf_count(field.data_type())],
        });
        Ok(Self { writer, factory, columns: columns.collect(), groups: 0, group_rows: 0 })
    }

    /// Encodes all of `chunk`.
    pub(super) fn write(&mut self, chunk: &Chunk, threads: usize) -> Result<()> {
        if chunk.rows == 0 {
            return Ok(());
        }
        if self.group_rows == 0 {
            let mut writers = self.factory.create_column_writers(self.groups).map_err(failed)?.into_iter();
            for column in &mut self.columns {
                column.writers = writers.by_ref().take(column.nan.len()).collect();
            }
        }
        let mut columns: Vec<(usize, &mut Column)> = self.columns.iter_mut().enumerate().collect();
        // The longest work first: what is begun last is what everybody waits for.
        let bytes = |at: usize| chunk.batches.iter().map(|it| bytes_of(it[at].as_ref())).sum::<usize>();
        columns.sort_by_cached_key(|(at, _)| std::cmp::Reverse(bytes(*at)));
        side_by_side(columns, threads, |(at, column)| {
            chunk.batches.iter().try_for_each(|batch| column.write(&batch[at]))
        })?;
        self.group_rows += chunk.rows;
        if self.group_rows >= GROUP_ROWS || self.open_bytes() >= GROUP_BYTES {
            self.end_group(threads)?;
        }
        Ok(())
    }

    /// Ends the row group, if one is open.
    pub(super) fn end_group(&mut self, threads: usize) -> Result<()> {
        if self.group_rows == 0 {
            return Ok(());
        }
        let chunks: Mutex<Vec<(usize, ArrowColumnChunk)>> = Mutex::new(Vec::new());
        let writers = self.columns.iter_mut().flat_map(|it| std::mem::take(&mut it.writers)).enumerate().collect();
        side_by_side(writers, threads, |(leaf, writer): (usize, ArrowColumnWriter)| {
            let chunk = writer.close()?;
            chunks.lock().unwrap_or_else(PoisonError::into_inner).push((leaf, chunk));
            Ok(())
        })?;
        let mut chunks = chunks.into_inner().unwrap_or_else(PoisonError::into_inner);
        chunks.sort_by_key(|it| it.0);
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for (_, chunk) in chunks {
            chunk.append_to_row_group(&mut group).map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.groups += 1;
        self.group_rows = 0;
        Ok(())
    }

    /// The bytes of the row groups that ended since the last call.
    pub(super) fn take(&mut self) -> Result<Bytes> {
        self.writer.flush().map_err(|it| Error::internal(it.to_string()))?;
        Ok(std::mem::take(self.writer.inner_mut()).into())
    }

    /// The file's size so far, as well as it is known.
    pub(super) fn size(&self) -> u64 {
        (self.writer.bytes_written() + self.open_bytes()) as u64
    }

    pub(super) fn memory(&self) -> usize {
        let writers = self.columns.iter().flat_map(|it| &it.writers);
        writers.map(ArrowColumnWriter::memory_size).sum::<usize>() + self.writer.inner().capacity()
    }

    pub(super) fn finish(mut self, threads: usize) -> Result<Finished> {
        self.end_group(threads)?;
        let metadata = self.writer.finish().map_err(failed)?;
        let rest = self.take()?;
        Ok(Finished { rest, metadata, nan: self.columns.into_iter().flat_map(|it| it.nan).collect() })
    }

    fn open_bytes(&self) -> usize {
        self.columns.iter().flat_map(|it| &it.writers).map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }
}

impl Column {
    fn write(&mut self, array: &ArrayRef) -> Result<(), ParquetError> {
        for (nan, leaf) in self.nan.iter_mut().zip(encoding::leaves(array)) {
            *nan = *nan || stats::has_nan(&leaf);
        }
        let leaves = compute_leaves(&self.field, array)?;
        self.writers.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| writer.write(leaf))
    }
}

/// Does `work` on each of `items`, on up to `threads` threads, this one among them.
fn side_by_side<T: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> Result<(), ParquetError> + Sync,
) -> Result<()> {
    let helpers = threads.min(items.len()).saturating_sub(1);
    let (left, failures) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(item) = next() {
            if let Err(err) = work(item) {
                failures.lock().unwrap_or_else(PoisonError::into_inner).push(err);
            }
        }
    };
    std::thread::scope(|scope| {
        (0..helpers).for_each(|_| {
            scope.spawn(run);
        });
        run();
    });
    let failure = failures.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().next();
    failure.map_or(Ok(()), |it| Err(failed(it)))
}

/// Counts those who encode, so that they share the threads there are.
#[derive(Debug)]
pub(super) struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    /// The guard, and how many of `threads` are ours.
    pub(super) fn enter(count: &'a AtomicUsize, threads: usize) -> (Self, usize) {
        let others = count.fetch_add(1, Ordering::Relaxed);
        (Self(count), (threads / (others + 1)).max(1))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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

fn leaf_count(kind: &DataType) -> usize {
    use DataType as T;
    match kind {
        T::Struct(fields) => fields.iter().map(|it| leaf_count(it.data_type())).sum(),
        T::List(item) => leaf_count(item.data_type()),
        T::Map(entries, _) => leaf_count(entries.data_type()),
        _ => 1,
    }
}

fn failed(err: ParquetError) -> Error {
    match err {
        ParquetError::External(inner) => Error::new(ErrorKind::Internal, inner),
        other => Error::internal(other.to_string()),
    }
}
