//! A store that does what a careless upkeep would do: proof that the checker would notice.
//!
//! It stands between Lakebed and the objects, and spoils certain ones on their way. Nothing in Lakebed knows of it.
use std::{fmt, ops::Range, sync::Arc};

use arrow_array::{Array, BooleanArray, RecordBatch};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use lakebed_core::{path::FilePath, storage::Storage};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};
use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tampering {
    /// Checkpoints lack a live file.
    FileLeftOut,
    /// Checkpoints lack their tombstones.
    TombstonesLeftOut,
    /// Whoever deletes an old commit deletes the newest one of the same listing, too.
    OneCommitTooMany,
    /// A hint that has moved on goes back to the oldest checkpoint there is.
    HintGoesBack,
}

#[derive(Debug, Clone)]
pub(crate) struct Tampered {
    inner: Arc<dyn ObjectStore>,
    tampering: Tampering,
}

/// `storage` with something wrong in it.
pub(crate) fn tampered(storage: &Storage, tampering: Tampering) -> Storage {
    let (inner, key) = storage.object(&FilePath::below("x")).expect("a place below the root");
    let root = Path::from(key.as_ref().trim_end_matches("/x"));
    let store = Tampered { inner, tampering };
    Storage::new(Arc::new(store), root, storage.location())
}

impl Tampered {
    async fn spoil(&self, path: &str, body: Bytes) -> Bytes {
        let checkpoint = path.ends_with(".parquet") && (path.contains(".checkpoint") || path.contains("_sidecars"));
        match self.tampering {
            Tampering::FileLeftOut if checkpoint => without(&body, "add", 1),
            Tampering::TombstonesLeftOut if checkpoint => without(&body, "remove", usize::MAX),
            Tampering::HintGoesBack if path.ends_with("_last_checkpoint") => self.oldest(path, body).await,
            _ => body,
        }
    }

    /// A hint as if the oldest checkpoint had just been written, where the one before named a newer one.
    async fn oldest(&self, path: &str, body: Bytes) -> Bytes {
        let folder = Path::from(path.trim_end_matches("/_last_checkpoint"));
        let listed: Vec<ObjectMeta> = self.inner.list(Some(&folder)).try_collect().await.unwrap();
        let names = listed.iter().filter_map(|it| it.location.filename()).filter(|it| it.contains(".checkpoint"));
        let oldest = names.filter_map(|it| it.split('.').next()?.parse::<u64>().ok()).min();
        let before = match self.inner.get(&Path::from(path)).await {
            Ok(found) => serde_json::from_slice::<serde_json::Value>(&found.bytes().await.unwrap()).unwrap(),
            Err(_) => return body,
        };
        match oldest {
            Some(oldest) if before["version"].as_u64() > Some(oldest) => format!("{{\"version\":{oldest}}}").into(),
            _ => body,
        }
    }

    /// The newest commit, when an old one goes.
    async fn one_more(&self, path: &Path) -> Option<Path> {
        let name = path.filename()?.strip_suffix(".json")?;
        if self.tampering != Tampering::OneCommitTooMany || name.parse::<u64>().is_err() {
            return None;
        }
        let folder = Path::from(path.as_ref().rsplit_once('/')?.0);
        let listed: Vec<ObjectMeta> = self.inner.list(Some(&folder)).try_collect().await.ok()?;
        let commits = listed.into_iter().map(|it| it.location).filter(|it| it.as_ref().ends_with(".json"));
        commits.max()
    }
}

/// A file of actions without the first rows of a kind.
fn without(body: &Bytes, kind: &str, most: usize) -> Bytes {
    let builder = ParquetRecordBatchReaderBuilder::try_new(body.clone()).unwrap();
    let schema = Arc::clone(builder.schema());
    let batches: Vec<RecordBatch> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, schema, None).unwrap();
    let mut left = most;
    for batch in batches {
        let column = batch.column_by_name(kind);
        let keep: BooleanArray = (0..batch.num_rows())
            .map(|row| {
                let gone = left > 0 && column.is_some_and(|it| it.is_valid(row));
                left -= usize::from(gone);
                Some(!gone)
            })
            .collect();
        writer.write(&arrow_select::filter::filter_record_batch(&batch, &keep).unwrap()).unwrap();
    }
    writer.close().unwrap();
    out.into()
}

impl fmt::Display for Tampered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tampered({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Tampered {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let body = self.spoil(location.as_ref(), payload.into()).await;
        self.inner.put_opts(location, body.into(), opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let gone = locations.then(move |location| {
            let this = this.clone();
            async move {
                let location = location?;
                let more = this.one_more(&location).await;
                let all = [Some(location.clone()), more].into_iter().flatten().map(Ok).collect::<Vec<_>>();
                let gone = this.inner.delete_stream(futures::stream::iter(all).boxed()).try_collect::<Vec<_>>().await;
                gone.map(|_| location)
            }
        });
        gone.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
