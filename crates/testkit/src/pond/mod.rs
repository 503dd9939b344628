//! Pond: the toy fifth format. Small enough to read in one sitting, and with every shape the four real ones need.
//!
//! ```text
//! pond/log/00000000000000000012.json             one entry a version; the name is put if absent
//! pond/log/00000000000000000012.checkpoint.json  the whole state at that version; older entries may go
//! pond/log/<time>-<write id>.json                leased tables instead: every writer its own name
//! pond/pending/<write id>.json                   leased tables: a write that has begun
//! pond/lock/00000000000000000003.json            leased tables: who may publish, until when (`.released`: no more)
//! pond/vectors/<id>.json                         deletion vectors; small ones lie inline
//! data/<write id>-<n>.parquet                    rows; `.json` in tables with `pond.files = json`
//! ```
//!
//! *Reading.* List the log; begin at the newest checkpoint at or below the wanted version, or at the first entry; fold the
//! entries after it. Versions before the oldest readable start are forgotten.
//!
//! *Writing.* Plain tables race for the next number, as Delta and Paimon do. Tables with `pond.leased` publish a
//! name nobody else has, as Hudi does: publishing excludes nobody, so writers need the [lease].
//!
//! *Rows.* A table without key has rows where its files have them, minus deletion vectors. A table with key has update
//! files beside base files in each bucket; `pond.merge` says whether they merge in one fold or in two stages.
//! An unknown feature, property or entry field is refused by name.
mod changes;
mod entry;
mod extensions;
mod layout;
mod lease;
mod maintain;
mod native;
mod play;
mod rules;
mod snapshot;
mod stage;
mod state;
mod subject;
mod table;
mod vector;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, ErrorKind, Result,
    extension::Extensions,
    file::{DataFile, DeleteFile},
    format::{CreateTable, FormatKind, TableFormat, TableLocation},
    storage::{Put, Storage},
    table::Table,
};
use roaring::RoaringTreemap;

pub use self::{
    play::{Key, Merging, Played, PondSpec, intent},
    snapshot::PondSnapshot,
    subject::PondSubject,
    table::PondTable,
    vector::Vector,
};

/// The format's name.
pub const POND: FormatKind = FormatKind::new("pond");

/// See the [module](self).
#[derive(Debug, Clone, Copy, Default)]
pub struct Pond;

#[async_trait]
impl TableFormat for Pond {
    fn kind(&self) -> FormatKind {
        POND
    }

    fn extensions(&self) -> Extensions {
        extensions::all()
    }

    async fn detect(&self, storage: &Storage) -> Result<bool> {
        let mut log = storage.list_after(layout::LOG, "");
        Ok(log.next().await.transpose()?.is_some())
    }

    async fn open(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        if let Some(name) = at.options.other.keys().next() {
            return Err(Error::invalid(format!("pond has no option `{name}`")));
        }
        if !self.detect(&at.storage).await? {
            return Err(Error::not_found(format!("no pond table at {}", at.storage.location())));
        }
        Ok(Arc::new(PondTable::new(at)))
    }

    async fn create(&self, at: TableLocation, table: CreateTable) -> Result<Arc<dyn Table>> {
        let entry = entry::Entry::creation(&table, at.env.clock.now(), format!("{:032x}", at.env.ids.uuid()))?;
        let path = entry.path(0);
        match at.storage.create(&path, entry.bytes()).await? {
            Put::Won => Ok(Arc::new(PondTable::new(at))),
            Put::Lost => {
                Err(Error::new(ErrorKind::AlreadyExists, format!("there is a table at {}", at.storage.location())))
            }
            Put::Unknown => Err(Error::new(ErrorKind::Unknown, "storage did not say whether the table was made")),
        }
    }

    async fn decode_vector(&self, storage: &Storage, file: &DeleteFile) -> Result<RoaringTreemap> {
        Ok(Vector::read(storage, file).await?.rows)
    }

    fn decode_rows(
        &self,
        storage: &Storage,
        file: &DataFile,
        schema: SchemaRef,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        stream::once(native::decode(storage.clone(), file.clone(), schema)).boxed()
    }
}

#[cfg(test)]
mod tests;
