//! Delta Lake: a table is a folder of Parquet files and a log that says which of them count.
//!
//! In reading order: names of the log's files (`layout`), its wire types (`spec`), reading them (`log`, `checkpoint`),
//! the files that are live (`state`), one version (`snapshot`, `scan`, `prune`, `listing`), the handle (`table`).
//! Beside them what a version means: `schema`, `partition`, `stats`, `deletes`, `properties`, `protocol`; and
//! what happened: `timeline`, `changes`, `feed`, `examine`. Then making the next one (`write`), and keeping all of them
//! (`upkeep`).
mod changes;
mod checkpoint;
mod deletes;
mod error;
mod examine;
mod extensions;
mod feed;
mod layout;
mod listing;
mod log;
mod partition;
mod properties;
mod protocol;
mod prune;
mod scan;
mod schema;
mod snapshot;
mod spec;
mod state;
mod stats;
mod table;
mod timeline;
mod upkeep;
mod write;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, Result,
    commit::Intent,
    extension::Extensions,
    file::{DataFile, DeleteFile},
    format::{CreateTable, Creation, FormatKind, OpenOptions, TableFormat, TableLocation},
    storage::Storage,
    table::Table,
};
use roaring::RoaringTreemap;

pub use self::{snapshot::DeltaSnapshot, table::DeltaTable};

/// The format's name.
pub const KIND: FormatKind = FormatKind::new("delta");

/// Delta Lake.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delta;

#[async_trait]
impl TableFormat for Delta {
    fn kind(&self) -> FormatKind {
        KIND
    }

    fn extensions(&self) -> Extensions {
        extensions::extensions()
    }

    async fn detect(&self, storage: &Storage) -> Result<bool> {
        // Names that sort before a version's are few and strange; a log without a version in its first names is none.
        const STRANGE: usize = 100;
        let mut names = storage.list_after(layout::LOG, "").take(STRANGE);
        while let Some(object) = names.try_next().await? {
            let name = object.path.rsplit('/').next().unwrap_or_default();
            if layout::parse(name).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn open(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        check_options(&at.options)?;
        Ok(Arc::new(DeltaTable::new(at)))
    }

    async fn begin_create(&self, at: TableLocation, table: CreateTable, intent: Intent) -> Result<Creation> {
        check_options(&at.options)?;
        write::create::begin(at, table, intent).await
    }

    async fn begin_replace(&self, at: TableLocation, table: CreateTable, intent: Intent) -> Result<Creation> {
        check_options(&at.options)?;
        write::replace::begin(at, table, intent).await
    }

    async fn create(&self, at: TableLocation, table: CreateTable) -> Result<Arc<dyn Table>> {
        check_options(&at.options)?;
        write::create::create(at, table).await
    }

    async fn decode_vector(&self, storage: &Storage, file: &DeleteFile) -> Result<RoaringTreemap> {
        deletes::read(storage, file).await
    }

    fn decode_rows(&self, _: &Storage, file: &DataFile, _: SchemaRef) -> BoxStream<'static, Result<RecordBatch>> {
        let err = Error::unsupported(format!("{}: a delta table has no files in an encoding of its own", file.path));
        stream::once(async { Err(err) }).boxed()
    }
}

fn check_options(options: &OpenOptions) -> Result<()> {
    let unknown = match options {
        OpenOptions { metadata_file: Some(_), .. } => Some("metadata_file"),
        OpenOptions { location_map, .. } if !location_map.is_empty() => Some("location_map"),
        OpenOptions { other, .. } => other.keys().next().map(String::as_str),
    };
    match unknown {
        Some(name) => Err(Error::invalid(format!("a delta table has no option `{name}`"))),
        None => Ok(()),
    }
}
