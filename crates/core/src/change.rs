//! What a commit changes.
use std::collections::BTreeMap;

use arrow_schema::SchemaRef;

use crate::{
    file::{DataFile, DeleteFile, Encoding, FileKey},
    path::FilePath,
    timeline::Action,
    version::{AsOf, Ref, Version, VersionId},
};

/// Files that come and go in one commit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowDelta {
    pub added: Vec<DataFile>,
    pub added_deletes: Vec<DeleteFile>,
    pub removed: Vec<FileKey>,
    /// Delete files by the place and id they were added under.
    pub removed_deletes: Vec<FileKey>,
    /// Files that record row changes for change feeds, beside the rows themselves.
    pub change_files: Vec<ChangeFile>,
}

/// A file of changed rows; it has a column that tells the kind of change.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeFile {
    pub path: FilePath,
    pub encoding: Encoding,
    pub bytes: u64,
    pub partition: Vec<(String, Option<crate::expr::Scalar>)>,
}

/// One thing a commit does; a commit does its changes all together or not at all.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Change {
    Rows(RowDelta),
    /// The table's new schema; field metadata says which old field each new one is.
    Schema(SchemaRef),
    Properties {
        set: BTreeMap<String, String>,
        unset: Vec<String>,
    },
    /// A named boolean SQL expression every row must meet.
    AddConstraint {
        name: String,
        expression: String,
    },
    DropConstraint {
        name: String,
    },
    /// Features the table must have from now on, by the format's names. Only when the user asked.
    Upgrade {
        features: Vec<String>,
    },
    PutRef(Ref),
    DropRef(String),
    /// Make the table's rows those of an earlier version again.
    Restore(AsOf),
}

/// What one version changed, as read back from the table.
#[derive(Debug, Clone)]
pub struct VersionDelta {
    pub version: Version,
    /// The [`Write::id`](crate::commit::Write) that made it, where the format records one.
    pub write_id: Option<String>,
    /// Ids of jobs and how far they came (`txn`), for idempotent retries.
    pub applications: Vec<Application>,
    pub action: Action,
    pub native_action: String,
    pub rows: RowDelta,
    /// False for commits that only move rows between files.
    pub data_change: bool,
    /// True when the writer had read nothing of the table.
    pub blind_append: bool,
    pub schema_changed: bool,
    pub protocol_changed: bool,
    /// What the writer claimed beyond files; see [`Claim`].
    pub claims: Vec<Claim>,
}

/// A part of a table that a write owns although its files do not show it. Two writes with one claim conflict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// A Hudi file group, by partition and file id.
    FileGroup { partition: String, id: String },
    /// A Paimon bucket.
    Bucket { partition: String, bucket: u32 },
    /// A metadata domain, an index, a named constraint.
    Named(String),
}

/// How far a job came, by its own count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub id: String,
    pub version: i64,
}

/// One reading of changed rows.
#[derive(Debug, Clone)]
pub struct ChangeTask {
    pub task: crate::scan::ScanTask,
    pub kind: ChangeKind,
    pub version: Version,
}

/// What became of the rows of a [`ChangeTask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    Insert,
    Delete,
    /// Each row says it in this column of the file.
    InColumn(String),
}

/// The closed range of versions of a change feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSpan {
    pub first: AsOf,
    pub last: AsOf,
}

/// Shorthand for reading back who made a version.
impl VersionDelta {
    pub fn id(&self) -> &VersionId {
        &self.version.id
    }
}
