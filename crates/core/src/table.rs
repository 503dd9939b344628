//! A table, and one state of it.
use std::{any::Any, collections::BTreeMap, fmt::Debug, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::{
    Error, Result,
    change::{Change, ChangeSpan, ChangeTask, Claim, VersionDelta},
    commit::{Committed, Intent, Lease, Staged, Write},
    expr::ColumnPath,
    file::DeleteFile,
    format::FormatKind,
    listing::ListingColumns,
    maintain::{Maintenance, MaintenancePlan, Retain},
    path::FilePath,
    scan::{Scan, ScanTask},
    storage::Storage,
    timeline::Timeline,
    version::{AsOf, Ref, Resolved, Span, Version},
    write::{NewVector, WriteRules},
};

/// A handle to one table. Holds no state of it: every answer is as fresh as the call.
///
/// Writing and upkeep default to `Unsupported`, so that a format that is only read says so itself.
#[async_trait]
pub trait Table: Any + Debug + Send + Sync {
    fn format(&self) -> FormatKind;
    fn storage(&self) -> &Storage;

    // Reading.
    /// Which version `as_of` names now. Cheaper than [`Self::snapshot`]; works on tables whose rows this build cannot read.
    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved>;
    async fn timeline(&self, span: &Span) -> Result<Timeline>;
    /// The newest `limit` versions of `span`, and what is pending; [`Timeline::earlier`] counts the versions left out.
    /// A format that can do so reads nothing of those.
    async fn timeline_newest(&self, span: &Span, limit: usize) -> Result<Timeline> {
        Ok(self.timeline(span).await?.newest(limit))
    }
    async fn refs(&self) -> Result<Vec<Ref>>;
    async fn snapshot(&self, as_of: &AsOf) -> Result<Arc<dyn Snapshot>>;
    /// What each version of `span` changed, oldest first.
    fn changes(&self, span: &Span) -> BoxStream<'_, Result<VersionDelta>>;
    /// The changed rows of a closed range of versions, oldest version first.
    async fn change_feed(&self, span: &ChangeSpan) -> Result<ChangeFeed>;
    /// Every file, data and metadata, that a version kept by `retain` needs.
    fn reachable(&self, retain: &Retain) -> BoxStream<'_, Result<FilePath>>;
    /// What is wrong or odd with the table's metadata: `doctor`'s findings, worst first. Empty is healthy.
    async fn examine(&self) -> Result<Vec<Finding>>;

    // Writing: begin, write data files, stage, publish (see `commit`).
    async fn begin(&self, _intent: Intent) -> Result<Write> {
        Err(no_writes(&self.format()))
    }
    /// See [`Lease`]; most formats need none.
    async fn lease(&self, _write: &Write) -> Result<Option<Box<dyn Lease>>> {
        Ok(None)
    }
    /// Writes what takes `vectors` away, for [`RowDelta::added_deletes`](crate::change::RowDelta); in their order.
    async fn write_vectors(&self, _write: &Write, _vectors: Vec<NewVector>) -> Result<Vec<DeleteFile>> {
        Err(no_writes(&self.format()))
    }
    async fn stage(&self, _write: &Write, _onto: &dyn Snapshot, _changes: &[Change]) -> Result<Staged> {
        Err(no_writes(&self.format()))
    }
    /// `write.base` as it will be once its schema is `schema` ([`Change::Schema`]): what the write's files must look like
    /// then, new columns named and numbered as the format does. Its schema is the one to commit with the files; nothing is
    /// published.
    ///
    /// # Errors
    /// As staging that change.
    async fn evolve(&self, _write: &Write, _schema: &SchemaRef) -> Result<Arc<dyn Snapshot>> {
        Err(no_writes(&self.format()))
    }
    /// Looks whether what was just published is where readers find it. A writer that was paused for longer than the log
    /// goes back may have won a slot that was freed meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Unknown`](crate::ErrorKind::Unknown) if readers may not find it; others if that could not be learned.
    async fn confirm(&self, _staged: &Staged) -> Result<()> {
        Ok(())
    }
    /// Told by [`commit`](crate::commit::commit) that the write is visible: a handle may remember what it staged.
    fn committed(&self, _write: &Write, _committed: &Committed) {}
    /// Undoes `begin`; idempotent. Never called after an unknown outcome.
    async fn abandon(&self, _write: &Write) -> Result<()> {
        Ok(())
    }

    // Upkeep.
    async fn plan(&self, _action: &Maintenance) -> Result<MaintenancePlan> {
        Err(no_writes(&self.format()))
    }
    /// What this table's own properties say is due after a commit.
    async fn due(&self, _after: &Committed) -> Result<Vec<Maintenance>> {
        Ok(Vec::new())
    }
}

fn no_writes(format: &FormatKind) -> Error {
    Error::unsupported(format!("this build does not write {format} tables"))
}

/// One immutable state of a table.
#[async_trait]
pub trait Snapshot: Any + Debug + Send + Sync {
    fn version(&self) -> &Version;
    /// The table's columns in the table's order and case, partition columns included; fields may carry
    /// [`PHYSICAL_NAME`](crate::scan::PHYSICAL_NAME), [`FIELD_ID`](crate::scan::FIELD_ID) and comments as metadata.
    fn schema(&self) -> &SchemaRef;
    fn layout(&self) -> &Layout;
    fn properties(&self) -> &BTreeMap<String, String>;
    /// What a writer of rows on top of this version must obey.
    ///
    /// # Errors
    /// Unsupported, naming every feature of the table that this build does not write.
    fn write_rules(&self) -> Result<WriteRules> {
        Err(Error::unsupported("this build does not write tables of this format"))
    }
    /// The features, by the format's names, that `changes` turn on and the table lacks: properties and constraints that a
    /// user sets on purpose. A commit of them also has to be a [`Change::Upgrade`] to these; what that costs is the
    /// user's to agree to.
    fn features_for(&self, _changes: &[Change]) -> Vec<String> {
        Vec::new()
    }
    /// What naming versions asks of this table.
    ///
    /// # Errors
    /// Unsupported where the format, or this build, has no such names.
    fn ref_rules(&self) -> Result<RefRules> {
        Err(Error::unsupported("this build names no versions in tables of this format"))
    }
    /// How far the job `application` came by this version, where the table knows: a write that goes no farther
    /// ([`Application`](crate::change::Application)) has been done already.
    async fn application(&self, _id: &str) -> Result<Option<i64>> {
        Ok(None)
    }
    /// Which versions the table's own properties keep, or its format where those are silent; `None`: nobody says.
    fn retention(&self) -> Option<Retain> {
        None
    }
    /// Whether rows keep an id and the version that wrote them, so that both can be read.
    fn tracks_rows(&self) -> bool {
        false
    }
    /// What `DESCRIBE DETAIL` and `info` show beyond schema, layout and properties, in display order.
    fn facts(&self) -> Vec<(String, serde_json::Value)>;
    /// Files to read for `scan`, pruned; the stream may be dropped early.
    fn tasks(&self, scan: &Scan) -> BoxStream<'static, Result<ScanTask>>;
    /// Live files as Arrow batches with [`crate::listing::schema`] of `columns`, pruned by `scan`; no task is made.
    fn files(&self, scan: &Scan, columns: ListingColumns) -> BoxStream<'static, Result<RecordBatch>>;
    /// What is known of the table's size without reading files.
    async fn totals(&self) -> Result<Totals>;
    /// How many files `tasks` of this scan would drop and keep; for EXPLAIN.
    async fn pruning(&self, scan: &Scan) -> Result<Pruning>;
}

/// What a table needs to keep names of its versions (tags, branches), and who will not respect them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefRules {
    /// Features the table lacks for it, by the format's names: the commit that puts its first ref also has to be a
    /// [`Change::Upgrade`] to them, which the user has to agree to.
    pub missing: Vec<String>,
    /// Who loses what by that upgrade, as a sentence.
    pub upgrade_costs: Option<String>,
    /// Who does not respect the names, as a sentence.
    pub caution: Option<String>,
    /// What every commit that moves a ref claims, where they are kept in one place: without it two writers could both
    /// make one name.
    pub claim: Option<Claim>,
}

/// Live files, bytes and rows of a snapshot. Rows are `None` when some file does not say how many it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub files: u64,
    pub bytes: u64,
    pub rows: Option<u64>,
    pub deleted_rows: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruning {
    pub files_total: u64,
    pub files_kept: u64,
}

/// The rows that changed, and the schema they are read with (the newest version's, without the `_change…` columns).
pub struct ChangeFeed {
    pub schema: SchemaRef,
    pub tasks: BoxStream<'static, Result<ChangeTask>>,
}

impl Debug for ChangeFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeFeed").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Something `doctor` reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable: `D001`; the letter is the format's.
    pub code: String,
    pub level: Level,
    /// The file, version or property it is about.
    pub object: String,
    pub evidence: String,
    /// What to do, as a sentence or a command.
    pub fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Info,
    Warn,
    Error,
}

/// How rows are laid out in files: what a writer must obey and a planner may exploit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    pub partition: Vec<PartitionField>,
    pub key: Vec<ColumnPath>,
    pub sort: Vec<ColumnPath>,
    pub bucket: Option<Bucket>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PartitionField {
    pub name: String,
    pub source: ColumnPath,
    pub transform: Transform,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transform {
    Identity,
    Bucket(u32),
    Truncate(u32),
    Year,
    Month,
    Day,
    Hour,
    /// Known by name only: never prune by it.
    Other(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    pub key: Vec<ColumnPath>,
    pub count: u32,
}
