//! A store that counts what is asked of the store behind it.
use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart, path::Path,
};

use super::io_stats::{IoKind, IoStats, Running};

/// Objects a page of a listing holds.
const PAGE: u64 = 1_000;
/// Ranges closer than this are read as one by clouds.
const COALESCE: u64 = 1024 * 1024;

/// Counts every request and every byte read into an [`IoStats`].
///
/// A ranged read of many ranges counts as the requests a cloud store makes of it; a listing counts its pages as they
/// are read; a bulk delete counts one request for 1,000 objects.
#[derive(Debug, Clone)]
pub struct CountingStore {
    inner: Arc<dyn ObjectStore>,
    stats: Arc<IoStats>,
}

impl CountingStore {
    pub fn new(inner: Arc<dyn ObjectStore>, stats: Arc<IoStats>) -> Self {
        Self { inner, stats }
    }

    fn listed(
        &self,
        prefix: Option<&Path>,
        objects: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let running = self.stats.start(IoKind::List, prefix.map_or("", Path::as_ref));
        let stats = Arc::clone(&self.stats);
        // The request ends with the stream, or when the caller drops it.
        let state = (objects, running, 0);
        stream::unfold(state, move |(mut objects, running, seen)| {
            let stats = Arc::clone(&stats);
            async move {
                let object = objects.next().await?;
                // The page after a full one is a request of its own.
                if seen > 0 && seen % PAGE == 0 {
                    stats.add(IoKind::List, 1);
                }
                Some((object, (objects, running, seen + 1)))
            }
        })
        .boxed()
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let _running = self.stats.start(IoKind::Put, location.as_ref());
        self.stats.add_written(payload.content_length() as u64);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let _running = self.stats.start(IoKind::Part, location.as_ref());
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(CountedUpload { inner, stats: Arc::clone(&self.stats), path: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let running = self.stats.start(if head { IoKind::Head } else { IoKind::Get }, location.as_ref());
        let found = self.inner.get_opts(location, options).await?;
        if head { Ok(found) } else { Ok(counted(found, Arc::clone(&self.stats), running)) }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let running = self.stats.start(IoKind::Get, location.as_ref());
        self.stats.add(IoKind::Get, requests(ranges).saturating_sub(1));
        let read = self.inner.get_ranges(location, ranges).await?;
        self.stats.add_read(read.iter().map(|it| it.len() as u64).sum());
        drop(running);
        Ok(read)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let stats = Arc::clone(&self.stats);
        let mut asked = 0;
        let counted = locations.inspect(move |_| {
            if asked % PAGE == 0 {
                stats.add(IoKind::Delete, 1);
            }
            asked += 1;
        });
        self.inner.delete_stream(counted.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(prefix, self.inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(prefix, self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let _running = self.stats.start(IoKind::List, prefix.map_or("", Path::as_ref));
        let listed = self.inner.list_with_delimiter(prefix).await?;
        let entries = (listed.objects.len() + listed.common_prefixes.len()) as u64;
        self.stats.add(IoKind::List, entries.saturating_sub(1) / PAGE);
        Ok(listed)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let _running = self.stats.start(IoKind::Copy, to.as_ref());
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let _running = self.stats.start(IoKind::Copy, to.as_ref());
        self.inner.rename_opts(from, to, options).await
    }
}

/// How many requests a cloud store makes of `ranges`.
fn requests(ranges: &[Range<u64>]) -> u64 {
    let mut sorted: Vec<&Range<u64>> = ranges.iter().collect();
    sorted.sort_unstable_by_key(|it| it.start);
    let mut requests = 0;
    let mut end = None::<u64>;
    for range in sorted {
        if end.is_none_or(|it| range.start > it.saturating_add(COALESCE)) {
            requests += 1;
        }
        end = Some(end.map_or(range.end, |it| it.max(range.end)));
    }
    requests
}

/// Counts the body as it is read. A file is read by its holder, unseen: it counts at once.
fn counted(found: GetResult, stats: Arc<IoStats>, running: Running) -> GetResult {
    let GetResult { payload, meta, range, attributes } = found;
    let payload = match payload {
        GetResultPayload::Stream(chunks) => {
            let chunks = chunks.inspect(move |it| {
                // Keeps the request running as long as the stream lives.
                let _ = &running;
                if let Ok(chunk) = it {
                    stats.add_read(chunk.len() as u64);
                }
            });
            GetResultPayload::Stream(chunks.boxed())
        }
        file => {
            stats.add_read(range.end.saturating_sub(range.start));
            file
        }
    };
    GetResult { payload, meta, range, attributes }
}

#[derive(Debug)]
struct CountedUpload {
    inner: Box<dyn MultipartUpload>,
    stats: Arc<IoStats>,
    path: Path,
}

#[async_trait]
impl MultipartUpload for CountedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let running = self.stats.start(IoKind::Part, self.path.as_ref());
        self.stats.add_written(data.content_length() as u64);
        let part = self.inner.put_part(data);
        Box::pin(async move {
            let _running = running;
            part.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let _running = self.stats.start(IoKind::Part, self.path.as_ref());
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        let _running = self.stats.start(IoKind::Part, self.path.as_ref());
        self.inner.abort().await
    }
}
