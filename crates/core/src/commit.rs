//! The one way a table changes: begin, stage, publish; on losing, check, rebase, again.
use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    Result,
    change::Application,
    storage::{Put, Storage},
    table::Snapshot,
    timeline::Action,
    version::Version,
};

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
