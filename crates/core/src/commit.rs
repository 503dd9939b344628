//! The one way a table changes: begin, stage, publish; on losing, check, rebase, again.
//!
//! 1. Where publishing excludes nobody, take the lease; there, and after every loss, read the versions committed since the
//!    base. If one carries our write id we have won. Else each must leave our commit standing ([`conflict`]), and the last
//!    one *that was checked* is the new base: "latest" could hold one that nobody checked.
//! 2. Stage the commit on the base.
//! 3. Ask for the lease again, and publish.
//! 4. Won: done, once the table has looked whether readers see it. Anything else: pause, look as in 1. While nobody holds
//!    the slot, publish the same bytes at the same slot again; once somebody else does, go on at 1.
//!
//! A conditional write that got no answer may land at any later time, but only in its slot: so the slot must be ours or
//! another's before anything new is staged. Until then every error is [`ErrorKind::Unknown`], and nothing is abandoned.
//!
//! [`conflict`]: crate::conflict
//! [`ErrorKind::Unknown`]: crate::ErrorKind::Unknown
use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

pub use self::attempts::commit;
use crate::{
    Error, Result,
    change::Application,
    storage::{Put, Storage},
    table::Snapshot,
    timeline::Action,
    version::Version,
};

mod attempts;

/// What a writer means to do, before it writes a byte.
#[derive(Debug, Clone)]
pub struct Intent {
    pub action: Action,
    /// The operation as history shows it: `WRITE`, `DELETE`, `OPTIMIZE`.
    pub operation: String,
    pub parameters: BTreeMap<String, String>,
    /// Filled by the writer before publishing; stands in the commit's own metadata.
    pub metrics: BTreeMap<String, String>,
    pub branch: Option<String>,
    /// The job and how far it came, so that a retry of the whole job is seen to be one.
    pub application: Option<Application>,
    /// Opaque text kept with the version: from which versions of which tables it came.
    pub lineage: Option<String>,
    pub user_metadata: Option<String>,
}

/// A write under way: its base, and what file names must carry.
#[derive(Debug)]
pub struct Write {
    pub base: Arc<dyn Snapshot>,
    pub intent: Intent,
    /// Hudi instant time, Paimon commit identifier, a fresh UUID elsewhere.
    pub id: String,
}

/// Metadata written but not visible, and the one step that will make it so.
#[derive(Debug, Clone)]
pub struct Staged {
    pub version: Version,
    pub publish: Publish,
}

/// The step that makes a version visible: all of it or none.
#[derive(Debug, Clone, PartialEq)]
pub enum Publish {
    /// Create this object, below the root. Delta's `N.json`, Paimon's `snapshot-N`, Hudi's completed instant.
    Create { path: String, body: Bytes },
    /// Move the catalog's pointer. Iceberg's metadata location.
    Swap { from: Option<String>, to: String },
    /// The catalog applies it. Iceberg REST, Paimon REST, Unity.
    Request(serde_json::Value),
}

/// Makes versions visible. Storage does for path tables, a catalog for its own.
#[async_trait]
pub trait Publisher: Debug + Send + Sync {
    async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put>;
}

/// The right to publish to one table.
///
/// Only for formats whose publish step excludes nobody: two Hudi writers complete two different
/// files. Where publishing is itself a race for one name, there is no lease. A dropped lease is not
/// released, it expires: releasing is I/O, and I/O is awaited.
#[async_trait]
pub trait Lease: Debug + Send + Sync {
    /// Whether the holder may still publish; asked right before it does. A paused holder may have lost it.
    async fn still_held(&self) -> Result<bool>;
    async fn release(self: Box<Self>) -> Result<()>;
}

/// A commit that is visible.
#[derive(Debug, Clone)]
pub struct Committed {
    pub version: Version,
    /// How often it was rebased over other writers.
    pub rebased: u32,
}

/// Publishes by creating objects: for tables whose directory is the truth.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoragePublisher;

#[async_trait]
impl Publisher for StoragePublisher {
    async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
        match publish {
            Publish::Create { path, body } => storage.create(path, body.clone()).await,
            Publish::Swap { .. } => Err(no_catalog("moves a pointer")),
            Publish::Request(_) => Err(no_catalog("is a request")),
        }
    }
}

fn no_catalog(step: &str) -> Error {
    Error::unsupported(format!("the commit {step}, which only a catalog can do"))
        .with_hint("open the table through its catalog")
}
