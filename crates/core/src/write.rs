//! What a writer of rows must obey, in words that mean the same for every format.
//!
//! The engine makes files of rows and knows no format; a format knows what its files must look like and writes none.
//! [`Snapshot::write_rules`](crate::table::Snapshot::write_rules) is what the one tells the other, once a write.
use arrow_schema::SchemaRef;
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use crate::{conflict::Isolation, path::FilePath};

/// What a writer must obey.
#[derive(Debug, Clone)]
pub struct WriteRules {
    pub files: FileShape,
    /// What every row must meet, beside the columns of the table's schema that are not nullable.
    pub constraints: Vec<Constraint>,
    pub deletes: RowDeletes,
    /// Where files of changed rows go, below the root; `None` where the table records no changes.
    ///
    /// They have the columns of data files and `_change_type` (text: `insert`, `delete`, `update_preimage`,
    /// `update_postimage`) as the last.
    pub change_folder: Option<String>,
    /// Rows may be added only.
    pub append_only: bool,
    pub isolation: Isolation,
}

/// What data files look like, and where they go. Plain data: it can be sent to another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileShape {
    /// The columns of a file, named, typed and annotated ([`FIELD_ID`](crate::scan::FIELD_ID)) as they stand in it.
    pub schema: SchemaRef,
    /// The table's column that each of them holds.
    pub columns: Vec<String>,
    /// Folder below the root, without a slash at its end; empty is the root.
    pub folder: String,
    /// The names of partition folders (`name=value`) in the order of the table's partition; `None`: no such folders.
    ///
    /// Readers never look at the folders: values are the record's to say.
    pub partition_folders: Option<Vec<String>>,
    /// Whether an empty text that partitions the table is recorded as null, and so is one.
    pub empty_partition_is_null: bool,
    /// Characters of a random folder that stands instead of partition folders; 0: none.
    pub random_prefix: usize,
    /// A file that has grown to this is closed, and the next one begun.
    pub target_bytes: u64,
    pub compression: Compression,
    /// Whether integers and dates may be packed as differences, which old readers lack.
    pub packed_integers: bool,
    /// The leading columns whose bounds are recorded; `None`: all.
    pub indexed_columns: Option<Vec<crate::expr::ColumnPath>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    Zstd,
    Snappy,
    Gzip,
    Lz4,
    Uncompressed,
}

/// A boolean SQL expression over the table's columns that no row may make false (null passes where `null_passes`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    pub name: String,
    pub expression: String,
    pub null_passes: bool,
}

/// How rows that go leave their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowDeletes {
    /// The rows that stay are written anew.
    Rewrite,
    /// A vector takes them away.
    Vectors,
}

/// The rows of one file that are gone after a write: those gone before, too.
#[derive(Debug, Clone)]
pub struct NewVector {
    pub target: FilePath,
    pub rows: RoaringTreemap,
}
