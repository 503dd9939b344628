//! One table's objects, and the conditional writes a commit rests on.
use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload, path::Path};

use crate::{
    Error, ErrorKind, Result,
    path::{FilePath, PathPolicy},
    version::Millis,
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

#[derive(Debug)]
struct Inner {
    store: Arc<dyn ObjectStore>,
    root: Path,
    location: String,
    policy: PathPolicy,
}

impl Storage {
    /// `root` is the table's place in `store`; `location` its canonical URL without a trailing slash, as
    /// `file:///data/t`, `s3://bucket/t`, `memory:///t`.
    pub fn new(store: Arc<dyn ObjectStore>, root: Path, location: impl Into<String>) -> Self {
        let location = location.into();
        Self { inner: Arc::new(Inner { store, root, policy: PathPolicy::new(&location), location }) }
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
    /// [`ErrorKind::Refused`](crate::ErrorKind) if no store was given for the place.
    pub fn object(&self, file: &FilePath) -> Result<(Arc<dyn ObjectStore>, Path)> {
        match file {
            FilePath::Below(path) => Ok((Arc::clone(&self.inner.store), self.key(path)?)),
            FilePath::Outside(location) => Err(Error::new(
                ErrorKind::Refused,
                format!("{location} lies outside the table at {}", self.inner.location),
            )),
        }
    }

    fn key(&self, below_root: &str) -> Result<Path> {
        let key = match (self.inner.root.as_ref(), below_root) {
            (root, "") => root.to_owned(),
            ("", below) => below.to_owned(),
            (root, below) => format!("{root}/{below}"),
        };
        Path::parse(&key).map_err(|it| Error::new(ErrorKind::Invalid, it))
    }

    /// The whole object, or `None` where there is none.
    pub async fn read(&self, file: &FilePath) -> Result<Option<Bytes>> {
        let (store, key) = self.object(file)?;
        match store.get(&key).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(|it| storage_error(file.as_str(), it))?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(err) => Err(storage_error(file.as_str(), err)),
        }
    }

    /// Bytes `range` of an object; an error when it is shorter.
    pub async fn read_range(&self, file: &FilePath, range: Range<u64>) -> Result<Bytes> {
        let (store, key) = self.object(file)?;
        let wanted = range.end - range.start;
        let bytes = store.get_range(&key, range.clone()).await.map_err(|it| storage_error(file.as_str(), it))?;
        if bytes.len() as u64 == wanted {
            return Ok(bytes);
        }
        Err(Error::corrupt(format!("{file} ends before byte {}", range.end)))
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
    pub async fn create(&self, below_root: &str, body: Bytes) -> Result<Put> {
        let put =
            self.inner.store.put_opts(&self.key(below_root)?, PutPayload::from(body), PutMode::Create.into()).await;
        match put {
            Ok(_) => Ok(Put::Won),
            // An SDK's own retry meets its first try as "already exists": the caller must look whose it is.
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(Put::Lost),
            Err(object_store::Error::Generic { .. }) => Ok(Put::Unknown),
            Err(err) => Err(storage_error(below_root, err)),
        }
    }

    /// Writes an object that may be overwritten: a hint (`_last_checkpoint`), a heartbeat, a lock. Nothing else.
    pub async fn overwrite_hint(&self, below_root: &str, body: Bytes) -> Result<()> {
        let put = self.inner.store.put(&self.key(below_root)?, PutPayload::from(body)).await;
        put.map(|_| ()).map_err(|it| storage_error(below_root, it))
    }

    /// Deletes objects below the root and says how many were there.
    pub async fn delete(&self, files: &[FilePath]) -> Result<u64> {
        let mut gone = 0;
        for file in files {
            let (store, key) = self.object(file)?;
            match store.delete(&key).await {
                Ok(()) => gone += 1,
                Err(object_store::Error::NotFound { .. }) => (),
                Err(err) => return Err(storage_error(file.as_str(), err)),
            }
        }
        Ok(gone)
    }

    /// Objects directly in `folder` (not deeper) with names after `start` (a bare name; `""` is all), in name order.
    pub fn list_after(&self, folder: &str, start: &str) -> BoxStream<'static, Result<Object>> {
        let listed = self.key(folder).and_then(|prefix| Ok((prefix, self.key(&format!("{folder}/{start}"))?)));
        let (prefix, offset) = match listed {
            Ok(keys) => keys,
            Err(err) => return stream::once(async { Err(err) }).boxed(),
        };
        let objects = match start {
            "" => self.inner.store.list(Some(&prefix)),
            _ => self.inner.store.list_with_offset(Some(&prefix), &offset),
        };
        let root_len = if self.inner.root.as_ref().is_empty() { 0 } else { self.inner.root.as_ref().len() + 1 };
        let folder = folder.to_owned();
        objects
            .map(move |it| match it {
                Ok(meta) => {
                    let below = meta.location.as_ref()[root_len..].to_owned();
                    let direct = !below[folder.len() + 1..].contains('/');
                    Ok(direct.then(|| object_of(below, meta)))
                }
                Err(err) => Err(storage_error(&folder, err)),
            })
            .try_filter_map(|it| async { Ok(it) })
            .boxed()
    }
}

fn object_of(path: String, meta: object_store::ObjectMeta) -> Object {
    Object { path, bytes: meta.size, modified_at: Millis(meta.last_modified.timestamp_millis()), etag: meta.e_tag }
}

/// An error of the store about `what`, with the kind that tells what to do.
pub fn storage_error(what: &str, err: object_store::Error) -> Error {
    let kind = match &err {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            ErrorKind::Unauthorized
        }
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => ErrorKind::Unsupported,
        object_store::Error::InvalidPath { .. } => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{what}: {err}"))
}
