//! From "what rows are wanted" to "which files to open, and how". Plain data: it can be sent to another machine.
use std::sync::Arc;

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::{
    expr::{ColumnPath, Predicate},
    file::{DataFile, DeleteFile},
};

/// What a reader wants of a snapshot.
#[derive(Debug, Clone)]
pub struct Scan {
    /// `None` is every column.
    pub projection: Option<Vec<ColumnPath>>,
    pub predicate: Predicate,
    /// A hint: a plan may stop once it surely holds this many rows.
    pub limit: Option<u64>,
    /// Whether tasks shall carry per-file column statistics; a count of files does not need them.
    pub statistics: bool,
}

impl Scan {
    /// Every row and every column.
    pub fn all() -> Self {
        Self { projection: None, predicate: Predicate::True, limit: None, statistics: true }
    }
}

/// One unit of reading.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScanTask {
    /// Oldest first. More than one only where `merge` says how they become one.
    pub files: Vec<DataFile>,
    /// Rows that are gone.
    pub deletes: Vec<DeleteFile>,
    /// When not empty, only rows that one of these names are read (and `deletes` still applies): a change feed
    /// reads the rows that a newer vector took away as `only` = newer, `deletes` = older.
    pub only: Vec<DeleteFile>,
    pub merge: Merge,
    /// How the table's columns are found in the files; shared by the tasks of a scan.
    pub columns: Arc<ColumnMapping>,
    /// What remains to be checked row by row after pruning.
    pub residual: Predicate,
}

/// How the rows of a task's files become rows of the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Merge {
    /// Every row of every file is a row of the table.
    Concat,
    /// One row a key, one fold over all files.
    ByKey(Arc<KeyMerge>),
    /// One row a key in two stages: first the newer files among themselves, then the outcome against the oldest.
    ///
    /// The stages differ: a deletion that wins the first stage may lose to the base row in the second.
    Staged(Arc<StagedMerge>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyMerge {
    pub key: Vec<ColumnPath>,
    /// Compared left to right; ties go to the later file, then to the later row.
    pub order: Vec<ColumnPath>,
    pub rule: MergeRule,
    /// Tells a deletion from an insertion; `None` if the files hold no deletions.
    pub deletion: Option<DeleteMarker>,
}

/// A merge of a base file with a chain of updates (Hudi's file slice).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StagedMerge {
    /// How many of the task's files, from the front, are the base (0 or 1); the rest are updates in order.
    pub base_files: usize,
    /// Folds the updates of a key, then the result onto the base row.
    pub merge: KeyMerge,
    /// Deletes that win by position in the chain whatever the ordering columns say ("commit-time deletes").
    pub unconditional_deletes: bool,
}

/// How a row says that it is a deletion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteMarker {
    pub column: ColumnPath,
    /// The row is a deletion when the column has one of these, as text.
    pub values: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MergeRule {
    LastRow,
    FirstRow,
    /// The newest value of each column that is not null.
    PartialUpdate,
    /// One aggregate function a column.
    Aggregate(Vec<(ColumnPath, String)>),
}

/// Metadata key of an Arrow field: the column's name inside data files, where it differs from the table's.
pub const PHYSICAL_NAME: &str = "lakebed.physical_name";
/// Metadata key of an Arrow field: the column's id inside data files. The key is the one the Parquet reader uses.
pub const FIELD_ID: &str = "PARQUET:field_id";
/// Metadata key of an Arrow field: JSON text of the value that rows older than the column have.
pub const INITIAL_DEFAULT: &str = "lakebed.initial_default";

/// How the table's columns are found in a file.
///
/// A column that is not found has the file's partition value, else its [`INITIAL_DEFAULT`], else null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnMapping {
    pub by: MatchBy,
    /// The table's schema, partition columns included; nested fields carry [`PHYSICAL_NAME`] and [`FIELD_ID`].
    pub schema: SchemaRef,
    /// Where the table tracks rows: the file columns that override `first_row_id + position` and `row_version`.
    pub row_id_column: Option<String>,
    pub row_version_column: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MatchBy {
    /// Iceberg, Paimon, Delta's `id` mode. A file without ids has no columns of the table; never by name.
    FieldId,
    /// Hudi, plain Delta. Exact first, then without case.
    Name,
    /// Delta's `name` mode: the name in the file is the field's [`PHYSICAL_NAME`].
    PhysicalName,
}
