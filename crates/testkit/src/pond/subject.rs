//! Pond's part in the conformance suite.
use std::sync::Arc;

use async_trait::async_trait;
use lakebed_core::{
    Result,
    change::Change,
    commit::Write,
    env::Env,
    file::DataFile,
    format::{TableFormat, TableLocation},
    storage::Storage,
    table::Table,
};

use super::{Played, Pond, PondSpec, entry::Entry, layout, play};
use crate::{conformance::Subject, rows::Rows, value::Value};

/// Pond as it is, or with the lease, or with data files of its own encoding.
#[derive(Debug, Clone, Copy, Default)]
pub struct PondSubject {
    pub leased: bool,
    pub native: bool,
}

impl PondSubject {
    fn played(table: &dyn Table, env: &Env) -> Played {
        // The table is only borrowed here; a handle is its location, so another one is the same.
        let at = crate::conformance::location(table.storage().clone(), env);
        Played::at(Arc::new(super::PondTable::new(at.clone())), at)
    }
}

#[async_trait]
impl Subject for PondSubject {
    fn format(&self) -> Arc<dyn TableFormat> {
        Arc::new(Pond)
    }

    async fn create(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        let spec = PondSpec { leased: self.leased, ..PondSpec::default() };
        let spec = if self.native { spec.native() } else { spec };
        Pond.create(at, spec.create()).await
    }

    async fn demand_unknown_feature(&self, storage: &Storage) -> Result<String> {
        let entry = Entry { features: vec!["tides".into()], at: play::FAR, ..Entry::default() };
        let path = if self.leased { format!("{}/{:020}-tides.json", layout::LOG, play::FAR) } else { entry.path(4) };
        let _ = storage.create(&path, entry.bytes()).await?;
        Ok("tides".into())
    }

    fn writes(&self) -> bool {
        true
    }

    async fn data_file(&self, table: &dyn Table, env: &Env, write: &Write, rows: &Rows) -> Result<DataFile> {
        Self::played(table, env).write_file(write, rows).await
    }

    async fn deletion(&self, table: &dyn Table, env: &Env, write: &Write, ids: &[i64]) -> Result<Vec<Change>> {
        let gone: Vec<Value> = ids.iter().map(|it| Value::from(*it)).collect();
        Self::played(table, env).deletion(write, |row| gone.contains(&row[0])).await
    }

    async fn compaction(&self, table: &dyn Table, env: &Env, write: &Write) -> Result<Vec<Change>> {
        Self::played(table, env).compaction(write).await
    }

    fn holds_rows(&self) -> fn(&str) -> bool {
        |it| it.starts_with("data/") || it.starts_with("pond/vectors/")
    }
}
