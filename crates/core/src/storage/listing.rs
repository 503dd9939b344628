//! Listing a folder, and listing everything below it.
//!
//! Stores list recursively and by name, in pages. To list only what lies directly in a folder:
//!
//! 1. List from `start` on and pass on the direct objects.
//! 2. Once [`PATIENCE`] objects of one inner folder have gone by, begin a new listing behind that folder. At most
//!    [`JUMPS`] times: a store that filters offsets on our side reads every page again for each.
//! 3. A name that is not greater than the one before is an object listed twice, or a store that does not sort.
use futures::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use object_store::{ObjectMeta, path::Path};

use super::{Object, Storage, local::DiskError, object_of, storage_error};
use crate::{Error, Result};

const PATIENCE: usize = 16;
const JUMPS: usize = 8;

/// What stands at a name.
pub(super) enum Listed {
    Object(Object),
    /// A symbolic link at this path, and what a reader of it would be told.
    Link(String, Error),
}

/// Everything below `prefix`. After a link the listing goes on.
pub(super) fn recursive(storage: Storage, prefix: String) -> impl Stream<Item = Result<Listed>> + Send + 'static {
    let listed = storage.key(&prefix).map(|key| storage.inner.store.list(some(&key)));
    let listed = match listed {
        Ok(listed) => listed,
        Err(err) => return stream::once(async { Err(err) }).left_stream(),
    };
    let objects = listed.filter_map(move |it| {
        let entry = match it {
            Ok(meta) => storage.below(&meta.location).map(|below| Ok(Listed::Object(object_of(below, meta)))),
            Err(object_store::Error::NotFound { .. }) => None,
            Err(err) => {
                let link = DiskError::link(&err).and_then(|it| storage.below(&Path::parse(it).ok()?));
                let err = storage_error(shown(&storage, &prefix), err);
                Some(match link {
                    Some(link) => Ok(Listed::Link(link, err)),
                    None => Err(err),
                })
            }
        };
        async { entry }
    });
    objects.right_stream()
}

/// The folder in a message: the root has a location, but no name.
fn shown<'a>(storage: &'a Storage, folder: &'a str) -> &'a str {
    if folder.is_empty() { storage.location() } else { folder }
}

/// The objects directly in `folder` whose names are greater than `start`.
pub(super) fn direct(storage: Storage, folder: String, start: String) -> BoxStream<'static, Result<Object>> {
    let walk = Walk { storage, folder, last: start, listed: None, inside: None, jumps: 0, done: false };
    stream::try_unfold(walk, |mut walk| async move { Ok(walk.next().await?.map(|it| (it, walk))) }).boxed()
}

struct Walk {
    storage: Storage,
    folder: String,
    /// The last name passed on, or where to start.
    last: String,
    listed: Option<BoxStream<'static, object_store::Result<ObjectMeta>>>,
    /// The inner folder gone by last, and how many of its objects were seen.
    inside: Option<(String, usize)>,
    jumps: usize,
    done: bool,
}

impl Walk {
    async fn next(&mut self) -> Result<Option<Object>> {
        while !self.done {
            if self.listed.is_none() {
                self.listed = Some(self.list_from(&self.last.clone())?);
            }
            let listed = self.listed.as_mut().expect("set above");
            let next = listed.try_next().await;
            let Some(meta) = next.or_else(|it| self.refused(it))? else {
                self.done = true;
                break;
            };
            let Some(below) = self.storage.below(&meta.location) else { continue };
            let Some(name) = self.name(&below) else { continue };
            if let Some((inner, _)) = name.split_once('/') {
                let inner = inner.to_owned();
                self.pass_inner(inner)?;
                continue;
            }
            if name == self.last {
                continue;
            }
            if name < self.last.as_str() {
                return Err(Error::unsupported(format!(
                    "the store lists {} out of order: `{}` after `{}`",
                    shown(&self.storage, &self.folder),
                    name.escape_debug(),
                    self.last.escape_debug()
                )));
            }
            self.last = name.to_owned();
            return Ok(Some(object_of(below, meta)));
        }
        Ok(None)
    }

    /// A folder that is not there is empty; every other error is one.
    fn refused(&self, err: object_store::Error) -> Result<Option<ObjectMeta>> {
        match err {
            object_store::Error::NotFound { .. } => Ok(None),
            err => Err(storage_error(shown(&self.storage, &self.folder), err)),
        }
    }

    fn name<'a>(&self, below: &'a str) -> Option<&'a str> {
        if self.folder.is_empty() { Some(below) } else { below.strip_prefix(&self.folder)?.strip_prefix('/') }
    }

    fn list_from(&self, start: &str) -> Result<BoxStream<'static, object_store::Result<ObjectMeta>>> {
        let prefix = self.storage.key(&self.folder)?;
        let store = &self.storage.inner.store;
        if start.is_empty() {
            return Ok(store.list(some(&prefix)));
        }
        let offset = if self.folder.is_empty() { start.to_owned() } else { format!("{}/{start}", self.folder) };
        Ok(store.list_with_offset(some(&prefix), &self.storage.key(&offset)?))
    }

    /// Counts an object of an inner folder; jumps behind the folder when there are many.
    fn pass_inner(&mut self, inner: String) -> Result<()> {
        let seen = match &self.inside {
            Some((before, seen)) if *before == inner => seen + 1,
            _ => 1,
        };
        if seen == PATIENCE && self.jumps < JUMPS {
            self.jumps += 1;
            // No name in the folder is greater: U+10FFFF is the last character.
            self.listed = Some(self.list_from(&format!("{inner}/{}", char::MAX))?);
        }
        self.inside = Some((inner, seen));
        Ok(())
    }
}

fn some(key: &Path) -> Option<&Path> {
    if key.as_ref().is_empty() { None } else { Some(key) }
}
