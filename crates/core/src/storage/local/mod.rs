//! Local folders as an object store: durable conditional creates, and no way out of the folder.
//!
//! `object_store`'s own local store syncs nothing to disk, follows links wherever they lead, and hides some names. Here
//!
//! - every path is opened beneath the *jail* without following a link ([`jail`]); links above it are the operator's;
//! - only regular files are objects: a pipe or a device is refused, and nothing waits for it;
//! - names are taken as they are: `a%20b`, `part#1` and `x.tmp` are names like any other;
//! - a listing comes in the order of keys, folder by folder, as it is read ([`list`]);
//! - a create writes a temporary file, syncs it, links it to its name, and syncs the folder ([`write`]).
use std::{fmt, fs::File, ops::Range, os::fd::OwnedFd, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

mod error;
mod jail;
mod list;
mod read;
mod write;

pub(super) use self::error::DiskError;
use self::{jail::Jail, write::Upload};

/// Bodies up to this size are read with the answer; larger ones are handed out as an open file.
const EAGER: u64 = 8 * 1024 * 1024;
/// Deletes that one thread does in a row: a folder is opened once for those in it.
const DELETES: usize = 256;
/// Threads that delete. More would wait for one another: a folder changes one name at a time.
const DELETERS: usize = 2;

/// The files below one folder.
#[derive(Debug, Clone)]
pub struct LocalDisk {
    jail: Arc<Jail>,
}

impl LocalDisk {
    /// Keys are paths below `jail`, which need not exist yet: a write makes it.
    ///
    /// `jail` may be reached through links; nothing below it may.
    pub fn new(jail: impl Into<PathBuf>) -> Self {
        Self { jail: Arc::new(Jail::new(jail.into())) }
    }

    async fn run<T: Send + 'static>(&self, act: impl FnOnce(&Jail) -> Result<T> + Send + 'static) -> Result<T> {
        let jail = Arc::clone(&self.jail);
        blocking(move || act(&jail)).await
    }
}

impl fmt::Display for LocalDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the folder {}", self.jail.path().display())
    }
}

/// Runs `act` where it may block; in place where there is no runtime to ask.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(act).await?,
        Err(_) => act(),
    }
}

#[async_trait]
impl ObjectStore for LocalDisk {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let mode = match options.mode {
            PutMode::Create => CopyMode::Create,
            PutMode::Overwrite => CopyMode::Overwrite,
            PutMode::Update(_) => return Err(self.lacks("replacing an object only if it is unchanged")),
        };
        if !options.attributes.is_empty() {
            return Err(self.lacks("object attributes"));
        }
        let key = location.clone();
        self.run(move |jail| write::put(jail, key.as_ref(), payload.iter(), mode)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if !options.attributes.is_empty() {
            return Err(self.lacks("object attributes"));
        }
        let key = location.clone();
        let upload = self.run(move |jail| Upload::begin(jail, key.as_ref())).await?;
        Ok(Box::new(upload))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let key = location.clone();
        self.run(move |jail| get(jail, key, &options)).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (key, ranges) = (location.clone(), ranges.to_vec());
        self.run(move |jail| {
            let (file, stat) = jail.open_file(key.as_ref())?;
            read::ranges(&file, key.as_ref(), read::size(&stat), &ranges)
        })
        .await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let disk = self.clone();
        let deleted = locations.ready_chunks(DELETES).map(move |keys| {
            let disk = disk.clone();
            async move {
                let answers = disk.run(move |jail| Ok(write::delete(jail, keys))).await;
                stream::iter(answers.unwrap_or_else(|err| vec![Err(err)]))
            }
            .boxed()
        });
        deleted.buffered(DELETERS).flatten().boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        listed(list::Walk::new(Arc::clone(&self.jail), prefix, None))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        listed(list::Walk::new(Arc::clone(&self.jail), prefix, Some(offset)))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        self.run(move |jail| list::folder(jail, prefix.as_ref())).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        self.run(move |jail| write::copy(jail, from.as_ref(), to.as_ref(), options.mode)).await
    }
}

impl LocalDisk {
    fn lacks(&self, what: &str) -> object_store::Error {
        object_store::Error::NotImplemented { operation: what.to_owned(), implementer: self.to_string() }
    }
}

fn get(jail: &Jail, key: Path, options: &GetOptions) -> Result<GetResult> {
    let (file, stat) = jail.open_file(key.as_ref())?;
    let meta = read::meta(key, &stat)?;
    options.check_preconditions(&meta)?;
    let range = match &options.range {
        Some(wanted) => {
            wanted.is_valid().map_err(error::generic)?;
            let short = |_| DiskError::Short { path: meta.location.to_string(), bytes: meta.size };
            wanted.as_range(meta.size).map_err(short)?
        }
        None => 0..meta.size,
    };
    let payload = body(jail, file, &meta, &range, options.head)?;
    Ok(GetResult { payload, meta, range, attributes: object_store::Attributes::default() })
}

fn body(jail: &Jail, file: OwnedFd, meta: &ObjectMeta, range: &Range<u64>, head: bool) -> Result<GetResultPayload> {
    if head {
        return Ok(GetResultPayload::Stream(stream::empty().boxed()));
    }
    if range.end - range.start > EAGER {
        return Ok(GetResultPayload::File(File::from(file), jail.path().join(meta.location.as_ref())));
    }
    let read = read::range(&file, meta.location.as_ref(), range)?;
    Ok(GetResultPayload::Stream(stream::once(async { Ok(read) }).boxed()))
}

/// The walk as a stream, read in batches where it may block.
fn listed(walk: list::Walk) -> BoxStream<'static, Result<ObjectMeta>> {
    let batches = stream::unfold(Some(walk), |walk| async {
        let mut walk = walk?;
        let read = blocking(move || Ok(walk.batch().map(|batch| (batch, walk)))).await;
        match read {
            Ok(Some((batch, walk))) => Some((stream::iter(batch), Some(walk))),
            Ok(None) => None,
            Err(err) => Some((stream::iter(vec![Err(err)]), None)),
        }
    });
    batches.flatten().boxed()
}

#[cfg(test)]
mod tests;
