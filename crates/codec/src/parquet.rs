//! Parquet files that hold metadata: checkpoints, sidecars, manifests' kin. Rows of tables are the engine's.
//!
//! 1. [`ParquetObject::open`] reads the footer. An object up to [`WHOLE`] bytes is read whole, in one request; of a
//!    larger one the last [`TAIL`] bytes, and the rest of the footer if it is longer than that.
//! 2. The footer is checked by [`guard`] and parsed behind the [`fence`](crate::fence).
//! 3. [`ParquetObject::read`] fetches the wanted columns of the wanted row groups, a few tens of megabytes at a time,
//!    in one request where the columns lie close together, and decodes them into batches as they are asked for.
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{Error, Result, path::FilePath, storage::Storage};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
        },
    },
    file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
};

use crate::{CodecError, fence::fence};

mod chunks;
mod guard;
mod stats;
mod write;

pub use guard::check as check_footer;
pub use stats::file_stats;
pub use write::ParquetStream;

use chunks::Chunks;

/// Objects up to this size are read whole.
const WHOLE: u64 = 2 << 20;
/// How much of the end of a larger object is read in the hope that it holds the footer.
const TAIL: u64 = 256 << 10;
/// Footers larger than this are not read.
const FOOTER_LIMIT: u64 = 256 << 20;
/// Column chunks fetched at once, in encoded bytes, unless one row group has more.
const FETCH: u64 = 32 << 20;
/// Up to this size decoding is not worth a thread of its own.
const INLINE: u64 = 256 << 10;

/// An opened Parquet file: its footer, and the bytes read on the way.
#[derive(Debug, Clone)]
pub struct ParquetObject {
    storage: Storage,
    file: FilePath,
    arrow: ArrowReaderMetadata,
    chunks: Chunks,
}

/// Which part of a Parquet file to read.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub columns: ProjectionMask,
    /// Indexes of row groups, ascending; `None` is all of them.
    pub row_groups: Option<Vec<usize>>,
    pub batch_rows: usize,
}

impl ParquetObject {
    /// Reads the footer of an object of `bytes` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](lakebed_core::ErrorKind) if it is no Parquet file, or shorter than `bytes`.
    pub async fn open(storage: &Storage, file: &FilePath, bytes: u64) -> Result<Self> {
        if bytes < 12 {
            return Err(not_parquet(file, format!("{bytes} bytes are too few")).into());
        }
        let start = if bytes <= WHOLE { 0 } else { bytes - TAIL };
        let mut chunks = Chunks::new(bytes);
        chunks.hold(start, storage.read_range(file, start..bytes).await?);
        let footer = footer_range(file, bytes, &chunks)?;
        if footer.start < start {
            chunks.hold(footer.start, storage.read_range(file, footer.start..start).await?);
        }
        Self::parse(storage.clone(), file.clone(), chunks, footer)
    }

    fn parse(storage: Storage, file: FilePath, chunks: Chunks, footer: std::ops::Range<u64>) -> Result<Self> {
        let encoded = chunks.bytes(footer).ok_or_else(|| not_parquet(&file, "the footer is missing"))?;
        let metadata = decode_footer(file.as_str(), &encoded)?;
        // An Arrow schema that some writer left in the footer could ask for any type; the Parquet schema is the truth.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let arrow = fence(file.as_str(), || ArrowReaderMetadata::try_new(Arc::new(metadata), options))?
            .map_err(|source| CodecError::Parquet { file: file.as_str().to_owned(), source })?;
        Ok(Self { storage, file, arrow, chunks })
    }

    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.arrow.metadata()
    }

    /// The file's own columns as Arrow.
    pub fn schema(&self) -> &SchemaRef {
        self.arrow.schema()
    }

    /// Batches in the file's order. Row groups are fetched while earlier ones are decoded.
    pub fn read(self, wanted: Wanted) -> BoxStream<'static, Result<RecordBatch>> {
        let all = (0..self.metadata().num_row_groups()).collect();
        let groups = wanted.row_groups.clone().unwrap_or(all);
        let parts = match self.parts(&wanted.columns, groups) {
            Ok(parts) => parts,
            Err(err) => return stream::once(async { Err(err.into()) }).boxed(),
        };
        let this = Arc::new(self);
        let wanted = Arc::new(wanted);
        stream::iter(parts)
            .map(move |part| Arc::clone(&this).read_part(part, Arc::clone(&wanted)))
            .buffered(2)
            .try_flatten()
            .boxed()
    }

    /// Row groups to fetch together, and where their wanted columns lie.
    fn parts(&self, columns: &ProjectionMask, groups: Vec<usize>) -> Result<Vec<Part>, CodecError> {
        let mut parts: Vec<Part> = Vec::new();
        for index in groups {
            let group = self.metadata().row_groups().get(index).ok_or_else(|| CodecError::Footer {
                file: self.file.as_str().to_owned(),
                reason: format!("there is no row group {index}"),
            })?;
            let ranges = self.column_ranges(group, columns)?;
            let bytes = ranges.iter().map(|it| it.end - it.start).sum::<u64>();
            match parts.last_mut() {
                Some(part) if part.bytes.saturating_add(bytes) <= FETCH => part.add(index, ranges, bytes),
                _ => parts.push(Part { groups: vec![index], ranges, bytes }),
            }
        }
        Ok(parts)
    }

    fn column_ranges(
        &self,
        group: &RowGroupMetaData,
        columns: &ProjectionMask,
    ) -> Result<Vec<std::ops::Range<u64>>, CodecError> {
        if group.num_columns() != self.arrow.parquet_schema().num_columns() {
            let reason = format!("a row group has {} columns", group.num_columns());
            return Err(CodecError::Footer { file: self.file.as_str().to_owned(), reason });
        }
        let chosen = group.columns().iter().enumerate().filter(|(leaf, _)| columns.leaf_included(*leaf));
        chosen
            .map(|(_, column)| {
                let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
                let range = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
                let range = range.and_then(|(start, bytes)| Some(start..start.checked_add(bytes)?));
                range.filter(|it| it.end <= self.chunks.length()).ok_or_else(|| CodecError::Footer {
                    file: self.file.as_str().to_owned(),
                    reason: format!("column `{}` lies outside the file", column.column_path()),
                })
            })
            .collect()
    }

    async fn read_part(
        self: Arc<Self>,
        part: Part,
        wanted: Arc<Wanted>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let chunks = self.chunks.fetch(&self.storage, &self.file, &part.ranges).await?;
        let build = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.arrow.clone())
            .with_projection(wanted.columns.clone())
            .with_row_groups(part.groups)
            .with_batch_size(wanted.batch_rows);
        let file = self.file.as_str().to_owned();
        let reader =
            fence(&file, || build.build())?.map_err(|source| CodecError::Parquet { file: file.clone(), source })?;
        let batches = Batches { file, reader: Some(reader) };
        Ok(if part.bytes <= INLINE { stream::iter(batches).boxed() } else { on_a_thread(batches) })
    }
}

/// Row groups that are fetched together.
struct Part {
    groups: Vec<usize>,
    ranges: Vec<std::ops::Range<u64>>,
    bytes: u64,
}

impl Part {
    fn add(&mut self, group: usize, ranges: Vec<std::ops::Range<u64>>, bytes: u64) {
        self.groups.push(group);
        self.ranges.extend(ranges);
        self.bytes += bytes;
    }
}

/// A decoder behind the fence; ends after its first error.
struct Batches {
    file: String,
    reader: Option<ParquetRecordBatchReader>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = self.reader.take()?;
        match fence(&self.file, || reader.next()) {
            Ok(None) => None,
            Ok(Some(Ok(batch))) => {
                self.reader = Some(reader);
                Some(Ok(batch))
            }
            Ok(Some(Err(source))) => Some(Err(CodecError::Arrow { file: self.file.clone(), source }.into())),
            // A decoder that panicked may panic again when it is dropped half done.
            Err(err) => {
                std::mem::forget(reader);
                Some(Err(err.into()))
            }
        }
    }
}

/// Decodes on a blocking thread where there is a runtime to give one, a few batches ahead of the reader.
fn on_a_thread(mut batches: Batches) -> BoxStream<'static, Result<RecordBatch>> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return stream::iter(batches).boxed() };
    let (send, receive) = tokio::sync::mpsc::channel(4);
    let decoder = runtime.spawn_blocking(move || batches.all(|batch| send.blocking_send(batch).is_ok()));
    let rest = stream::unfold(receive, |mut receive| async { receive.recv().await.map(|it| (it, receive)) });
    // The channel also closes when the decoder is cancelled with its runtime: that is no end of the file.
    let finished = stream::once(async { decoder.await.map_err(|err| Error::internal(err.to_string())) });
    rest.chain(finished.filter_map(|it| async { it.err().map(Err) })).boxed()
}

/// The footer's place, from the last eight bytes of the file.
fn footer_range(file: &FilePath, bytes: u64, chunks: &Chunks) -> Result<std::ops::Range<u64>, CodecError> {
    let end = bytes - 8;
    let last = chunks.bytes(end..bytes).ok_or_else(|| not_parquet(file, "it ends early"))?;
    let (length, magic) = last.split_first_chunk::<4>().ok_or_else(|| not_parquet(file, "it ends early"))?;
    match magic {
        b"PAR1" => (),
        b"PARE" => return Err(CodecError::Encrypted { file: file.as_str().to_owned() }),
        _ => return Err(not_parquet(file, "its last four bytes are not PAR1")),
    }
    let length = u64::from(u32::from_le_bytes(*length));
    if length > FOOTER_LIMIT {
        let what = "the footer";
        return Err(CodecError::TooLarge { file: file.as_str().to_owned(), what, size: length, limit: FOOTER_LIMIT });
    }
    let start = end.checked_sub(length).filter(|it| *it >= 4);
    start.map(|it| it..end).ok_or_else(|| not_parquet(file, format!("a footer of {length} bytes does not fit")))
}

fn decode_footer(file: &str, encoded: &Bytes) -> Result<ParquetMetaData, CodecError> {
    guard::check(encoded).map_err(|reason| CodecError::Footer { file: file.to_owned(), reason })?;
    fence(file, || ParquetMetaDataReader::decode_metadata(encoded))?
        .map_err(|source| CodecError::Parquet { file: file.to_owned(), source })
}

fn not_parquet(file: &FilePath, reason: impl Into<String>) -> CodecError {
    CodecError::NotParquet { file: file.as_str().to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
