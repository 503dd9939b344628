//! From a location to the store behind it: opened once, counted, and kept from writing where the caller said so.
//!
//! A local folder gets a store of its own, jailed in that folder. A bucket, container or host gets one store for all
//! its tables. Connecting is lazy: opening a store makes no request.
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path as FsPath, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use lakebed_core::{
    Error, ErrorKind, Result,
    storage::{CountingStore, IoStats, LocalDisk, Storage},
};
use lakebed_engine::session::Locator;
use object_store::{ObjectStore, memory::InMemory, path::Path};

use crate::{
    config::Config,
    location::{Place, Scheme},
};

pub(crate) mod cloud;
pub(crate) mod probe;
pub(crate) mod read_only;

use self::read_only::{ReadOnlyStore, read_only};

/// The stores of one process, by their canonical scheme and authority.
#[derive(Debug)]
pub struct Stores {
    base: PathBuf,
    config: Config,
    environment: BTreeMap<String, String>,
    io: Arc<IoStats>,
    read_only: bool,
    allowed: Vec<String>,
    open: Mutex<HashMap<(Scheme, String), Connected>>,
}

/// One store, as it is and as callers get it.
#[derive(Debug, Clone)]
struct Connected {
    raw: Arc<dyn ObjectStore>,
    counted: Arc<dyn ObjectStore>,
}

impl Stores {
    /// Relative locations start at `base`; `environment` holds the stores' own variables (`AWS_…`).
    pub fn new(base: PathBuf, config: Config, environment: BTreeMap<String, String>) -> Self {
        let allowed = config.list("paths.allow");
        let read_only = config.bool("read_only");
        Self { base, config, environment, io: Arc::default(), read_only, allowed, open: Mutex::default() }
    }

    /// The folder relative locations start at.
    pub fn base(&self) -> &FsPath {
        &self.base
    }

    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// # Errors
    /// [`ErrorKind::Refused`] where writes are switched off: to say so before anything is planned.
    pub fn check_writes(&self) -> Result<()> {
        if self.read_only { Err(read_only()) } else { Ok(()) }
    }

    /// The same stores, with every request of theirs in the log of [`Locator::io`].
    #[must_use]
    pub fn with_log(mut self) -> Self {
        self.io = Arc::new(IoStats::with_log());
        self
    }

    /// The endpoint set for a kind of store, where it is not the vendor's own.
    pub(crate) fn endpoint(&self, scheme: Scheme) -> Option<&str> {
        match scheme {
            Scheme::S3 => {
                let set = self.config.get("store.s3.endpoint");
                set.or_else(|| self.environment.get("AWS_ENDPOINT_URL").map(String::as_str))
            }
            Scheme::Gs => self.config.get("store.gcs.endpoint"),
            Scheme::Abfss | Scheme::Az => self.config.get("store.azure.endpoint"),
            Scheme::Memory | Scheme::Http | Scheme::Https => None,
        }
    }

    /// The place `location` names, without looking whether anything is there.
    pub fn place(&self, location: &str) -> Result<Place> {
        Place::parse(location, &self.base)
    }

    /// The objects below `place`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a store whose settings do not fit; nothing is asked of the store itself.
    pub fn storage(&self, place: &Place) -> Result<Storage> {
        let place = resolved(place);
        let (store, root) = self.connect(&place)?;
        let location = place.location();
        let mut storage = Storage::new(store, root, location);
        for text in &self.allowed {
            let allowed = resolved(&Place::parse(text, &self.base)?);
            let (store, root) = self.connect(&allowed)?;
            storage = storage.with_outside(&allowed.location(), store, root);
        }
        Ok(storage)
    }

    /// The store and the key of `place` in it.
    fn connect(&self, place: &Place) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let (found, root) = self.connected(place)?;
        Ok((found.counted, root))
    }

    /// [`Self::connect`] for requests that are no part of a command's own.
    pub(crate) fn uncounted(&self, place: &Place) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let (found, root) = self.connected(place)?;
        Ok((found.raw, root))
    }

    fn connected(&self, place: &Place) -> Result<(Connected, Path)> {
        match place {
            Place::Local(path) => Ok((self.wrapped(Arc::new(LocalDisk::new(path))), Path::default())),
            Place::Remote { scheme, authority, key } => {
                let root = Path::parse(key).map_err(|it| Error::new(ErrorKind::Invalid, it))?;
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(known) = open.get(&(*scheme, authority.clone())) {
                    return Ok((known.clone(), root));
                }
                let store: Arc<dyn ObjectStore> = match scheme {
                    Scheme::Memory => Arc::new(InMemory::new()),
                    _ => cloud::open(*scheme, authority, &self.config, &self.environment)?,
                };
                let store = self.wrapped(store);
                open.insert((*scheme, authority.clone()), store.clone());
                Ok((store, root))
            }
        }
    }

    fn wrapped(&self, raw: Arc<dyn ObjectStore>) -> Connected {
        let counted: Arc<dyn ObjectStore> = Arc::new(CountingStore::new(Arc::clone(&raw), Arc::clone(&self.io)));
        let counted = if self.read_only { Arc::new(ReadOnlyStore::new(counted)) } else { counted };
        Connected { raw, counted }
    }
}

#[async_trait]
impl Locator for Stores {
    async fn locate(&self, location: &str) -> Result<Storage> {
        self.storage(&self.place(location)?)
    }

    fn io(&self) -> Arc<IoStats> {
        Arc::clone(&self.io)
    }
}

/// A local path with the symlinks of the part that exists followed: the table's own folder may be reached through
/// a link, files below it may not.
fn resolved(place: &Place) -> Place {
    let Place::Local(path) = place else { return place.clone() };
    let mut missing = Vec::new();
    let mut existing = path.as_path();
    loop {
        if let Ok(real) = existing.canonicalize() {
            return Place::Local(missing.iter().rev().fold(real, |it, name| it.join(name)));
        }
        let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else { return place.clone() };
        missing.push(name);
        existing = parent;
    }
}
