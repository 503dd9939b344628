//! A table format, as the rest of Lakebed sees it.
use std::{borrow::Cow, collections::BTreeMap, fmt, fmt::Debug, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::stream::BoxStream;
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    commit::{Intent, Publisher, Write},
    env::Env,
    extension::Extensions,
    file::{DataFile, DeleteFile},
    storage::Storage,
    table::{Layout, Table},
};

/// Names a format: `delta`. Open, so that a toy format can stand in tests; nobody above the formats matches on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FormatKind(Cow<'static, str>);

impl FormatKind {
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Lower case.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FormatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a table lives and who makes its commits visible.
#[derive(Debug, Clone)]
pub struct TableLocation {
    pub storage: Storage,
    pub publisher: Arc<dyn Publisher>,
    pub env: Env,
    pub options: OpenOptions,
}

/// What a caller says about a table beyond its place. A format refuses options it does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Read this metadata file instead of looking for the newest (Iceberg).
    pub metadata_file: Option<String>,
    /// Places the table's metadata name, and where they are now.
    pub location_map: Vec<(String, String)>,
    /// Other options by name, as SQL or the configuration gave them.
    pub other: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct CreateTable {
    pub schema: SchemaRef,
    pub layout: Layout,
    pub properties: Vec<(String, String)>,
    pub comment: Option<String>,
}

/// A table that does not exist yet, and the write that will make it: [`commit`](crate::commit::commit) it with the first
/// rows, or with no change.
#[derive(Debug)]
pub struct Creation {
    pub table: Arc<dyn Table>,
    pub write: Write,
}

/// A format. Implemented by a unit struct in each format crate.
#[async_trait]
pub trait TableFormat: Debug + Send + Sync {
    fn kind(&self) -> FormatKind;
    /// The format's own functions, settings, system tables and procedures, as data.
    fn extensions(&self) -> Extensions {
        Extensions::default()
    }
    /// Whether there is a table of this format here. Cheap: one list or head.
    async fn detect(&self, storage: &Storage) -> Result<bool>;
    async fn open(&self, at: TableLocation) -> Result<Arc<dyn Table>>;
    /// Begins a table where none is: nothing is there before the returned write is committed.
    ///
    /// # Errors
    /// Already exists; invalid properties, types or names; unsupported features, by name.
    async fn begin_create(&self, _at: TableLocation, _table: CreateTable, _intent: Intent) -> Result<Creation> {
        Err(Error::unsupported(format!("this build does not create {} tables", self.kind())))
    }
    /// Begins to put a table in place of the one that is there: schema, layout, properties and rows are those of the new
    /// one, history stays. The write's base is the new table without rows, at the version of the old one; whatever is
    /// committed to that meanwhile is a conflict.
    ///
    /// # Errors
    /// Not found; those of [`TableFormat::begin_create`]; refused where the old rows may not go.
    async fn begin_replace(&self, _at: TableLocation, _table: CreateTable, _intent: Intent) -> Result<Creation> {
        Err(Error::unsupported(format!("this build does not replace {} tables", self.kind()))
            .with_hint("INSERT OVERWRITE replaces its rows; DROP TABLE makes room for another"))
    }
    /// Creates a table without rows.
    async fn create(&self, _at: TableLocation, _table: CreateTable) -> Result<Arc<dyn Table>> {
        Err(Error::unsupported(format!("this build does not create {} tables", self.kind())))
    }

    // The bytes only this format can decode. Stateless, so that a worker that has nothing but a
    // scan task can call them.
    /// Row positions a vector takes away. Checks size, checksum and count.
    async fn decode_vector(&self, storage: &Storage, file: &DeleteFile) -> Result<RoaringTreemap>;
    /// Rows of a file in [`Encoding::Native`](crate::file::Encoding::Native).
    fn decode_rows(
        &self,
        storage: &Storage,
        file: &DataFile,
        schema: SchemaRef,
    ) -> BoxStream<'static, Result<RecordBatch>>;
}
