//! Writing rows, whatever the format: shaping, files, and the commit around them.
//!
//! 1. [`Driver::begin`] asks the table for a write and its rules; [`Driver::create`] takes a write that makes a table.
//! 2. [`Shaping`] turns a query's columns into the table's: by an explicit [`Source`] a column, with checked casts.
//! 3. A [`FileWriter`] checks rows against NOT NULL and constraints ([`check`]), routes them to partitions
//!    ([`partition`]) and writes Parquet files ([`file`], [`encoding`]) with their statistics ([`stats`]).
//! 4. [`Driver::conclude`] puts files into one commit and runs the upkeep that the commit made due. Whatever fails before
//!    the commit, or makes it surely fail, takes the files this write made with it; nothing of an unknown commit goes.
//!
//! [`insert`] is `INSERT`, `INSERT OVERWRITE`, `CREATE TABLE AS` and `TRUNCATE` on top of it; [`compact`] is the rows' part
//! of upkeep. DELETE, UPDATE and MERGE use the same writer and driver:
//!
//! ```text
//! let driver = Driver::begin(&context, intent).await?;            // rules checked, write begun
//! let prepared = async {
//!     let written = driver.write(plan, Kind::Data).await?;        // a plan whose columns are the table's
//!     //  or by hand:  let mut writer = driver.writer(Kind::Moved);  one a stream, from any task
//!     //               writer.write(batch).await?;  writer.finish().await? -> Vec<Written>
//!     let vectors = driver.vectors(new_vectors).await?;
//!     Ok(Prepared { changes: vec![Change::Rows(delta)], read: Some(predicate), metrics, count })
//! }.await;
//! let done = driver.conclude(prepared).await?;                    // Done { count, version, warnings }
//! ```
//!
//! A dropped future leaves no task behind, and no file that any version names.
mod assign;
mod check;
mod compact;
mod crowd;
mod driver;
mod encode;
mod encoding;
mod file;
mod insert;
mod lanes;
mod live;
mod partition;
mod pieces;
mod refit;
mod route;
mod shaping;
mod sink;
mod stats;
mod streams;
mod target;
mod writer;

use std::{collections::BTreeMap, sync::Arc};

use datafusion::{
    execution::{SessionState, TaskContext},
    scalar::ScalarValue,
};
use lakebed_core::{
    Error, Result,
    change::{Change, ChangeFile},
    commit::Publisher,
    env::Env,
    expr::Predicate,
    file::DataFile,
    format::TableFormat,
    table::Table,
    version::Version,
};

pub(crate) use self::{
    check::{Compiled, compile},
    compact::compact,
    driver::{Driver, intent},
    insert::{Extent, Insert, create_as, insert, truncate},
    shaping::Shaping,
    target::Target,
    writer::FileWriter,
};
use crate::registry::Formats;

/// Everything a statement that writes one table needs.
#[derive(Debug, Clone)]
pub(crate) struct WriteContext {
    pub(crate) table: Arc<dyn Table>,
    pub(crate) format: Arc<dyn TableFormat>,
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) env: Env,
    /// The statement's functions, settings, memory and disk.
    pub(crate) state: Arc<SessionState>,
}

impl WriteContext {
    /// # Errors
    /// [`ErrorKind::Unsupported`](lakebed_core::ErrorKind) if the build lacks the table's format.
    pub(crate) fn new(
        table: Arc<dyn Table>,
        formats: &Formats,
        publisher: Arc<dyn Publisher>,
        env: Env,
        state: Arc<SessionState>,
    ) -> Result<Self> {
        let format = formats.of(&table.format())?;
        Ok(Self { table, format, publisher, env, state })
    }

    /// What plans of this statement run in.
    pub(crate) fn task(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::from(self.state.as_ref()))
    }
}

/// What the rows of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// New or changed rows: checked against NOT NULL and constraints.
    Data,
    /// Rows of the table that only move to another file: not checked again.
    Moved,
    /// Rows of a change file: the table's columns, then `_change_type`.
    Changes,
}

/// A file of rows that nobody sees yet.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) file: DataFile,
    pub(crate) rows: u64,
}

impl Written {
    /// The file as one of changed rows; see [`Kind::Changes`].
    pub(crate) fn into_change(self) -> ChangeFile {
        let DataFile { path, encoding, bytes, partition, .. } = self.file;
        ChangeFile { path, encoding, bytes, partition }
    }
}

/// Where a column of the table comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// The input's column at this position.
    Input(usize),
    /// One value for every row: `PARTITION (p = 'x')`, a default.
    Constant(ScalarValue),
    /// The statement does not name it: null.
    Missing,
}

/// A commit that is ready but for the commit.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) changes: Vec<Change>,
    /// The rows of the table that the statement read; `None` for one that read none.
    pub(crate) read: Option<Predicate>,
    /// As history shows them; see [`Intent::metrics`](lakebed_core::commit::Intent).
    pub(crate) metrics: BTreeMap<String, String>,
    /// What the statement answers.
    pub(crate) count: u64,
}

/// What became of a statement that writes.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) count: u64,
    /// `None` where there was nothing to commit: the job had been here before, or no row was touched.
    pub(crate) version: Option<Version>,
    /// What went wrong after the commit: it stands all the same.
    pub(crate) warnings: Vec<String>,
}

impl Done {
    pub(crate) fn nothing() -> Self {
        Self { count: 0, version: None, warnings: Vec::new() }
    }
}

/// Metrics of files that were written, as Spark spells them.
pub(crate) fn metrics_of(written: &[Written]) -> BTreeMap<String, String> {
    let rows: u64 = written.iter().map(|it| it.rows).sum();
    let bytes: u64 = written.iter().map(|it| it.file.bytes).sum();
    BTreeMap::from([
        ("numFiles".to_owned(), written.len().to_string()),
        ("numOutputRows".to_owned(), rows.to_string()),
        ("numOutputBytes".to_owned(), bytes.to_string()),
    ])
}

/// The rows of files that were written.
pub(crate) fn rows_of(written: &[Written]) -> u64 {
    written.iter().map(|it| it.rows).sum()
}

fn refuse_type(column: &str, what: &str) -> Error {
    Error::unsupported(format!("column `{column}` has type {what}, which this build does not write"))
}

#[cfg(test)]
mod tests;
