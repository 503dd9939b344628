//! Opens data files for the Parquet reader: footers from a cache, bytes from the table's own store.
//!
//! 1. A footer is looked up by location, size and modification time as the table records them. The cache (DataFusion's,
//!    so bounded in bytes and shared by the session) drops what was used least lately.
//! 2. Else the end of the file is read: [`TAIL`] bytes, or the whole file up to [`WHOLE`]. The store's answer tells
//!    the file's size; another size than the table recorded means another file, and is an error.
//! 3. The footer is parsed behind a fence. The Arrow schema some writers leave in it is dropped: it could turn decimals
//!    into types that sums overflow silently, and the Parquet schema says the same thing reliably.
//! 4. Later ranges that lie within the bytes already read are served from memory. The others are asked for on condition
//!    that the file is still the one whose footer was read, by its entity tag: a file that was replaced under its name
//!    is an error, whatever its size.
use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::parquet::{CachedParquetMetaData, ParquetFileReaderFactory},
    },
    error::Result,
    execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache},
    physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder},
};
use futures::{FutureExt, future::BoxFuture};
use lakebed_codec::fence::fence;
use lakebed_core::{Error, storage::storage_error};
use object_store::{
    GetOptions, GetRange, GetResult, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, ObjectStoreExt,
    coalesce_ranges, path::Path,
};
use parquet::{
    arrow::{ARROW_SCHEMA_META_KEY, arrow_reader::ArrowReaderOptions, async_reader::AsyncFileReader},
    errors::ParquetError,
    file::metadata::{FileMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader},
};

use super::error::{ScanError, external};

/// Files up to this size are read whole.
const WHOLE: u64 = 256 << 10;
/// How much of the end of a larger file is read in the hope that it holds the footer.
const TAIL: u64 = 128 << 10;
/// Footers larger than this are not read.
const FOOTER_LIMIT: usize = 256 << 20;

/// Where one data file lies: the store that has it, its key there, and its name for people.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub store: Arc<dyn ObjectStore>,
    pub key: Path,
    /// Names the file among those of every table.
    pub location: Arc<str>,
    /// As the table records it.
    pub bytes: u64,
}

/// Makes readers for files that carry a [`Place`].
pub(crate) struct Readers {
    cache: Arc<FileMetadataCache>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

impl Readers {
    pub(crate) fn new(cache: Arc<FileMetadataCache>) -> Self {
        Self { cache }
    }

    /// The footer of `file`, cached.
    pub(crate) async fn footer(
        &self,
        file: &PartitionedFile,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Arc<ParquetMetaData>> {
        let mut reader = self.reader(0, file, metrics)?;
        reader
            .footer()
            .await
            .map_err(|it| external(ScanError::Parquet { file: reader.place.location.as_ref().to_owned(), source: it }))
    }

    fn reader(&self, partition: usize, file: &PartitionedFile, metrics: &ExecutionPlanMetricsSet) -> Result<Reader> {
        let place = file.extension::<Place>().ok_or_else(|| {
            external(Error::internal(format!("{} was planned without its place", file.object_meta.location)))
        })?;
        let key = Path::from(place.location.as_ref());
        Ok(Reader {
            place: place.clone(),
            meta: ObjectMeta { location: key, ..file.object_meta.clone() },
            cache: Arc::clone(&self.cache),
            held: None,
            tag: None,
            scanned: MetricBuilder::new(metrics).counter("bytes_scanned", partition),
        })
    }
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        _metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(self.reader(partition_index, &file, metrics)?))
    }
}

/// Reads one file.
struct Reader {
    place: Place,
    /// The cache's key and what must be equal for an entry to be valid.
    meta: ObjectMeta,
    cache: Arc<FileMetadataCache>,
    /// The end of the file, once read: where it starts, and its bytes.
    held: Option<(u64, Bytes)>,
    /// The entity tag of the file whose footer this is.
    tag: Option<String>,
    scanned: Count,
}

impl Reader {
    async fn footer(&mut self) -> Result<Arc<ParquetMetaData>, ParquetError> {
        if let Some(known) = self.cached() {
            return Ok(known);
        }
        let metadata = Arc::new(self.load_footer().await?);
        let entry = Arc::new(CachedParquetMetaData::new(Arc::clone(&metadata)));
        let meta = ObjectMeta { e_tag: self.tag.clone(), ..self.meta.clone() };
        self.cache.put(&self.meta.location, CachedFileMetadataEntry::new(meta, entry));
        Ok(metadata)
    }

    fn cached(&mut self) -> Option<Arc<ParquetMetaData>> {
        let entry = self.cache.get(&self.meta.location).filter(|it| it.is_valid_for(&self.meta))?;
        let metadata = entry.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>()?;
        self.tag.clone_from(&entry.meta.e_tag);
        Some(Arc::clone(metadata.parquet_metadata()))
    }

    async fn load_footer(&mut self) -> Result<ParquetMetaData, ParquetError> {
        let bytes = self.place.bytes;
        let first = if bytes <= WHOLE { bytes } else { TAIL };
        self.hold_tail(first).await?;
        loop {
            let (_, held) = self.held.as_ref().expect("held since hold_tail");
            let held = held.clone();
            let mut parser = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
            let parsed = fence(&self.place.location, || parser.try_parse_sized(&held, bytes));
            match parsed.map_err(|it| ParquetError::External(Box::new(it)))? {
                Ok(()) => return Ok(without_arrow_schema(parser.finish()?)),
                Err(ParquetError::NeedMoreData(needed))
                    if needed > held.len() && needed <= FOOTER_LIMIT && needed as u64 <= bytes =>
                {
                    self.hold_tail(needed as u64).await?;
                }
                Err(err) => return Err(err),
            }
        }
    }

    async fn hold_tail(&mut self, length: u64) -> Result<(), ParquetError> {
        let bytes = self.place.bytes;
        let start = bytes.saturating_sub(length);
        // An empty range is no valid request; what follows says that the file is too short.
        if start == bytes {
            return Err(ParquetError::EOF("the file is empty".to_owned()));
        }
        let answer = match self.get(start..bytes).await {
            Ok(answer) => answer,
            Err(err) => return Err(self.failed(err).await),
        };
        if answer.meta.size != bytes {
            return Err(self.changed(answer.meta.size));
        }
        self.tag = answer.meta.e_tag.clone().filter(|it| !it.starts_with("W/"));
        let tail = answer.bytes().await.map_err(|it| stored(&self.place.location, it))?;
        self.scanned.add(tail.len());
        self.held = Some((start, tail));
        Ok(())
    }

    /// Bytes of the file, if it is the one whose footer was read.
    async fn get(&self, range: Range<u64>) -> object_store::Result<GetResult> {
        let range = Some(GetRange::Bounded(range));
        let options = GetOptions { range, if_match: self.tag.clone(), ..Default::default() };
        self.place.store.get_opts(&self.place.key, options).await
    }

    /// What an error of the store means: a file that is shorter than recorded has no bytes at the end asked for.
    async fn failed(&self, err: object_store::Error) -> ParquetError {
        match err {
            object_store::Error::Precondition { .. } => {
                wrong(ScanError::Replaced { file: self.place.location.as_ref().to_owned() })
            }
            object_store::Error::Generic { .. } => match self.place.store.head(&self.place.key).await {
                Ok(meta) if meta.size != self.place.bytes => self.changed(meta.size),
                Ok(_) | Err(_) => stored(&self.place.location, err),
            },
            err => stored(&self.place.location, err),
        }
    }

    fn changed(&self, actual: u64) -> ParquetError {
        let Place { location, bytes, .. } = &self.place;
        wrong(ScanError::Changed { file: location.as_ref().to_owned(), recorded: *bytes, actual })
    }

    /// The bytes of `range` if they were read already.
    fn in_memory(&self, range: &Range<u64>) -> Option<Bytes> {
        let (start, bytes) = self.held.as_ref()?;
        let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
        (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
    }

    async fn fetch(&mut self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>, ParquetError> {
        let known: Option<Vec<Bytes>> = ranges.iter().map(|it| self.in_memory(it)).collect();
        if let Some(known) = known {
            return Ok(known);
        }
        self.check(&ranges)?;
        let this = &*self;
        let part = |range| async move { this.get(range).await?.bytes().await };
        let fetched = match coalesce_ranges(&ranges, part, OBJECT_STORE_COALESCE_DEFAULT).await {
            Ok(fetched) => fetched,
            Err(err) => return Err(self.failed(err).await),
        };
        self.scanned.add(fetched.iter().map(Bytes::len).sum());
        match fetched.iter().zip(&ranges).all(|(got, range)| got.len() as u64 == range.end - range.start) {
            true => Ok(fetched),
            false => Err(ParquetError::EOF("the file ends before a page it names".to_owned())),
        }
    }

    /// A footer may name any place: ranges must lie inside the file before memory is asked for.
    fn check(&self, ranges: &[Range<u64>]) -> Result<(), ParquetError> {
        match ranges.iter().find(|it| it.start > it.end || it.end > self.place.bytes) {
            None => Ok(()),
            Some(bad) => Err(ParquetError::EOF(format!(
                "bytes {}..{} lie outside a file of {} bytes",
                bad.start, bad.end, self.place.bytes
            ))),
        }
    }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move { Ok(self.fetch(vec![range]).await?.swap_remove(0)) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        self.fetch(ranges).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        self.footer().boxed()
    }
}

fn stored(location: &str, err: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(storage_error(location, err)))
}

fn wrong(err: ScanError) -> ParquetError {
    ParquetError::External(Box::new(Error::from(err)))
}

fn without_arrow_schema(metadata: ParquetMetaData) -> ParquetMetaData {
    let file = metadata.file_metadata();
    let has_hint = |it: &Vec<parquet::file::metadata::KeyValue>| it.iter().any(|it| it.key == ARROW_SCHEMA_META_KEY);
    if !file.key_value_metadata().is_some_and(has_hint) {
        return metadata;
    }
    let plain = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        None,
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    ParquetMetaDataBuilder::new(plain).set_row_groups(metadata.row_groups().to_vec()).build()
}
