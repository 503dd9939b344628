//! One table's objects, and the conditional writes a commit rests on.
//!
//! [`Storage`] is what formats see: files below a root, and those elsewhere that the path policy admits. Below it lies
//! any `ObjectStore`: [`LocalDisk`] for local folders, memory and clouds through `object_store`, each wrapped in a
//! [`CountingStore`] where somebody wants to know what was asked.
use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use object_store::{GetOptions, GetRange, GetResult, ObjectStore, ObjectStoreExt, PutMode, PutPayload, path::Path};

use self::listing::Listed;
use crate::{
    Error, ErrorKind, Result,
    path::{FilePath, PathPolicy, canonical_location},
    version::Millis,
};

mod counting;
mod delete;
mod error;
mod hint;
mod inventory;
mod io_stats;
mod listing;
mod local;
mod probe;
mod upload;

pub use self::{
    counting::CountingStore,
    delete::Removal,
    error::storage_error,
    hint::may_be_overwritten,
    inventory::{Found, Inventory},
    io_stats::{IoEvent, IoKind, IoStats, waves},
    local::LocalDisk,
    probe::{CreateSupport, probe_create},
};

/// What became of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// Ours is the object now.
    Won,
    /// Somebody else's was there first; ours is not.
    Lost,
    /// No answer: ours may be there. The caller must look.
    Unknown,
}

/// An object as a listing or a head shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Below the root, decoded.
    pub path: String,
    pub bytes: u64,
    pub modified_at: Millis,
    /// Changes when the object does; with size and time where the store has none.
    pub etag: Option<String>,
}

/// The objects of one table: those below its root, and those elsewhere that the path policy admits.
///
/// Cheap to clone. All reads and writes of floors 0 to 2 go through here; the engine takes [`Storage::object`]
/// and reads rows through the same store, so every byte is counted and no symlink leads out of the root.
#[derive(Debug, Clone)]
pub struct Storage {
    inner: Arc<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    store: Arc<dyn ObjectStore>,
    root: Path,
    location: String,
    policy: PathPolicy,
    outside: Vec<Outside>,
}

/// Where the files of an allowed place are found.
#[derive(Debug, Clone)]
struct Outside {
    location: String,
    store: Arc<dyn ObjectStore>,
    root: Path,
}

impl Storage {
    /// `root` is the table's place in `store`; `location` its canonical URL without a trailing slash and without
    /// percent-encoding, as `file:///data/t`, `s3://bucket/t`, `memory:///t`.
    pub fn new(store: Arc<dyn ObjectStore>, root: Path, location: impl Into<String>) -> Self {
        let location = location.into();
        let policy = PathPolicy::new(&location);
        Self::with_policy(store, root, location, policy)
    }

    /// [`Storage::new`] with a policy that admits more places; each needs a store, see [`Storage::with_outside`].
    pub fn with_policy(
        store: Arc<dyn ObjectStore>,
        root: Path,
        location: impl Into<String>,
        policy: PathPolicy,
    ) -> Self {
        let location = location.into();
        Self { inner: Arc::new(Inner { store, root, location, policy, outside: Vec::new() }) }
    }

    /// Admits the files below `location`, which are found below `root` in `store`. They are read, never deleted.
    #[must_use]
    pub fn with_outside(self, location: &str, store: Arc<dyn ObjectStore>, root: Path) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.inner);
        inner.policy = inner.policy.allow(location);
        let location = canonical_location(location).unwrap_or_else(|_| location.trim_end_matches('/').to_owned());
        inner.outside.push(Outside { location, store, root });
        Self { inner: Arc::new(inner) }
    }

    pub fn location(&self) -> &str {
        &self.inner.location
    }

    pub fn policy(&self) -> &PathPolicy {
        &self.inner.policy
    }

    /// The store and key of a file, for readers that bring their own I/O (Parquet).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] if no store was given for the place.
    pub fn object(&self, file: &FilePath) -> Result<(Arc<dyn ObjectStore>, Path)> {
        match file {
            FilePath::Below(path) => Ok((Arc::clone(&self.inner.store), self.key(path)?)),
            FilePath::Outside(location) => self.outside(location),
        }
    }

    fn outside(&self, location: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let found = self.inner.outside.iter().find_map(|place| {
            let rest = location.strip_prefix(&place.location)?.strip_prefix('/')?;
            Some((place, rest))
        });
        let Some((place, rest)) = found else {
            let message = format!("{} lies outside the table at {}", location.escape_debug(), self.inner.location);
            return Err(Error::new(ErrorKind::Refused, message));
        };
        Ok((Arc::clone(&place.store), join(&place.root, rest)?))
    }

    fn key(&self, below_root: &str) -> Result<Path> {
        join(&self.inner.root, below_root)
    }

    /// The path below the root of an object the store lists.
    fn below(&self, key: &Path) -> Option<String> {
        match self.inner.root.as_ref() {
            "" => Some(key.as_ref().to_owned()),
            root => Some(key.as_ref().strip_prefix(root)?.strip_prefix('/')?.to_owned()),
        }
    }

    /// The whole object, or `None` where there is none.
    pub async fn read(&self, file: &FilePath) -> Result<Option<Bytes>> {
        self.read_limited(file, u64::MAX).await
    }

    /// The whole object if it has at most `limit` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`], before a byte is read, if it has more.
    pub async fn read_limited(&self, file: &FilePath, limit: u64) -> Result<Option<Bytes>> {
        let (store, key) = self.object(file)?;
        let found = match store.get(&key).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(err) => return Err(storage_error(file.as_str(), err)),
        };
        if found.meta.size > limit {
            let message = format!("{file} has {} bytes, and {limit} are allowed", found.meta.size);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        body(file, found).await.map(Some)
    }

    /// Bytes `range` of an object; an error when it is shorter.
    pub async fn read_range(&self, file: &FilePath, range: Range<u64>) -> Result<Bytes> {
        let mut read = self.read_ranges(file, &[range]).await?;
        Ok(read.pop().expect("one range was asked for"))
    }

    /// Bytes of each of `ranges`, in their order, in as few requests as the store can do it; an error when the
    /// object is shorter.
    pub async fn read_ranges(&self, file: &FilePath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (store, key) = self.object(file)?;
        if let Some(bad) = ranges.iter().find(|it| it.start > it.end) {
            return Err(Error::corrupt(format!("{file}: bytes {} to {} are no range", bad.start, bad.end)));
        }
        let wanted: Vec<Range<u64>> = ranges.iter().filter(|it| !it.is_empty()).cloned().collect();
        let read = match wanted.as_slice() {
            [] => Vec::new(),
            // A plain ranged get: cheaper than the general call on every store.
            [one] => vec![self.get_range(&store, &key, file, one).await?],
            many => store.get_ranges(&key, many).await.map_err(|it| storage_error(file.as_str(), it))?,
        };
        let mut read = read.into_iter();
        ranges
            .iter()
            .map(|range| if range.is_empty() { Ok(Bytes::new()) } else { whole(file, range, read.next()) })
            .collect()
    }

    async fn get_range(
        &self,
        store: &Arc<dyn ObjectStore>,
        key: &Path,
        file: &FilePath,
        range: &Range<u64>,
    ) -> Result<Bytes> {
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let found = store.get_opts(key, options).await.map_err(|it| storage_error(file.as_str(), it))?;
        body(file, found).await
    }

    /// What the store says of an object, or `None` where there is none.
    pub async fn head(&self, file: &FilePath) -> Result<Option<Object>> {
        let (store, key) = self.object(file)?;
        match store.head(&key).await {
            Ok(meta) => Ok(Some(object_of(file.as_str().to_owned(), meta))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(err) => Err(storage_error(file.as_str(), err)),
        }
    }

    /// Creates the object; never overwrites one.
    ///
    /// # Errors
    /// Only a refusal from before anything was sent, or a store that cannot create conditionally. Everything that may
    /// have left the object there is [`Put::Unknown`].
    pub async fn create(&self, below_root: &str, body: Bytes) -> Result<Put> {
        let key = self.key(below_root)?;
        let put = self.inner.store.put_opts(&key, PutPayload::from(body), PutMode::Create.into()).await;
        error::outcome(below_root, put)
    }

    /// Creates an object from a stream that need not fit in memory; never overwrites one.
    ///
    /// Small bodies go the way of [`Storage::create`]. Large ones are uploaded in parts: cloud stores decide such a
    /// race by the last writer, so the name must be one that only equal content can have, or a fresh one.
    pub async fn create_stream(&self, below_root: &str, body: BoxStream<'static, Result<Bytes>>) -> Result<Put> {
        let key = self.key(below_root)?;
        upload::create(&self.inner.store, &key, below_root, body).await
    }

    /// Writes an object that may be overwritten: a hint (`_last_checkpoint`), a heartbeat, a lock. Nothing else.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for a name that is not one of those; nothing is written.
    pub async fn overwrite_hint(&self, below_root: &str, body: Bytes) -> Result<()> {
        if !may_be_overwritten(below_root) {
            return Err(Error::internal(format!("{below_root} is no hint: it must not be overwritten")));
        }
        let put = self.inner.store.put(&self.key(below_root)?, PutPayload::from(body)).await;
        put.map(|_| ()).map_err(|it| storage_error(below_root, it))
    }

    /// Deletes objects below the root, as many at once as the store takes, and says which are gone.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`], before anything is deleted, if one of `files` lies outside the root.
    pub async fn delete(&self, files: &[FilePath]) -> Result<Removal> {
        let mut keys = Vec::with_capacity(files.len());
        for file in files {
            match file {
                FilePath::Below(path) if !path.is_empty() => keys.push(self.key(path)?),
                _ => {
                    let message = format!("{file} does not lie below {}: it is not deleted", self.inner.location);
                    return Err(Error::new(ErrorKind::Refused, message));
                }
            }
        }
        Ok(delete::delete(&self.inner.store, files, keys).await)
    }

    /// Objects directly in `folder` (not deeper) with names after `start` (a bare name; `""` is all), in name order.
    ///
    /// Lazy: pages that the caller does not come to are not asked for, and a folder inside `folder` costs a request,
    /// not its content. A folder that is not there is empty.
    pub fn list_after(&self, folder: &str, start: &str) -> BoxStream<'static, Result<Object>> {
        listing::direct(self.clone(), folder.trim_matches('/').to_owned(), start.to_owned())
    }

    /// Every object below `prefix` (a folder; `""` is the root), however deep, in no particular order.
    ///
    /// A link among them is an error, and the listing goes on after it; [`Inventory`] takes it for an answer.
    pub fn list_all(&self, prefix: &str) -> BoxStream<'static, Result<Object>> {
        let found = listing::recursive(self.clone(), prefix.trim_matches('/').to_owned());
        let object = |it| match it {
            Listed::Object(object) => Ok(object),
            Listed::Link(_, err) => Err(err),
        };
        found.map(move |it| it.and_then(object)).boxed()
    }
}

fn join(root: &Path, below: &str) -> Result<Path> {
    let key = match (root.as_ref(), below) {
        (root, "") => root.to_owned(),
        ("", below) => below.to_owned(),
        (root, below) => format!("{root}/{below}"),
    };
    Path::parse(&key).map_err(|it| Error::new(ErrorKind::Invalid, it))
}

/// The bytes the store said it would send: fewer or more are a broken answer, not a short object.
async fn body(file: &FilePath, found: GetResult) -> Result<Bytes> {
    let promised = found.range.end.saturating_sub(found.range.start);
    let bytes = found.bytes().await.map_err(|it| storage_error(file.as_str(), it))?;
    if bytes.len() as u64 == promised {
        return Ok(bytes);
    }
    let message = format!("{file}: the store sent {} bytes of {promised}", bytes.len());
    Err(Error::new(ErrorKind::Unavailable, message))
}

fn whole(file: &FilePath, range: &Range<u64>, read: Option<Bytes>) -> Result<Bytes> {
    let bytes = read.unwrap_or_default();
    if bytes.len() as u64 == range.end - range.start {
        return Ok(bytes);
    }
    Err(Error::corrupt(format!("{file} ends before byte {}", range.end)))
}

fn object_of(path: String, meta: object_store::ObjectMeta) -> Object {
    Object { path, bytes: meta.size, modified_at: Millis(meta.last_modified.timestamp_millis()), etag: meta.e_tag }
}

#[cfg(test)]
mod tests;
