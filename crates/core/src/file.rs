//! Files that hold rows, and files that take rows away.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    expr::{ColumnPath, Scalar},
    path::FilePath,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    Parquet,
    Orc,
    Avro,
    /// Only the table's format can decode it: Hudi log blocks.
    Native,
}

/// Bounds and counts of one file. A missing entry means unknown, never zero.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileStats {
    /// Rows in the file as it lies on disk, deleted ones included.
    pub rows: Option<u64>,
    pub columns: Vec<(ColumnPath, ColumnStats)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    pub lower: Option<Scalar>,
    pub upper: Option<Scalar>,
    pub nulls: Option<u64>,
    /// Whether the bounds are values that occur (`true`) or only bounds (`false`).
    pub exact: bool,
}

/// A file of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataFile {
    pub path: FilePath,
    pub encoding: Encoding,
    pub bytes: u64,
    pub stats: FileStats,
    /// Values every row of the file has, by the table's column name. They win over what the file holds.
    pub partition: Vec<(String, Option<Scalar>)>,
    /// Row lineage: the id of the file's row 0 and the version that gave it, where the table tracks rows.
    pub first_row_id: Option<u64>,
    pub row_version: Option<u64>,
    /// When the file was written, where the table records it.
    pub modified_at: Option<crate::version::Millis>,
    /// Facts only the format reads back: Paimon level, Hudi file id, Iceberg sequence number.
    pub native: BTreeMap<String, String>,
}

impl DataFile {
    /// A Parquet file with nothing known but its place and size.
    pub fn parquet(path: FilePath, bytes: u64) -> Self {
        Self {
            path,
            encoding: Encoding::Parquet,
            bytes,
            stats: FileStats::default(),
            partition: Vec::new(),
            first_row_id: None,
            row_version: None,
            modified_at: None,
            native: BTreeMap::new(),
        }
    }
}

/// What a commit means by "this file": a data file together with the vector that was on it.
///
/// The same data file under another vector is another identity: a removal must name the very one it read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileKey {
    pub path: FilePath,
    pub vector: Option<String>,
}

/// A file, or inline bytes, that takes rows away from data files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteFile {
    pub kind: DeleteKind,
    pub place: DeletePlace,
    /// Names a vector apart from others on the same data file, as the format spells it; see [`FileKey`].
    pub id: Option<String>,
    /// The data files it takes rows from, where known; a vector has exactly one.
    pub targets: Vec<FilePath>,
    /// How many rows it takes away, where recorded. A reader must check it.
    pub rows: Option<u64>,
    /// Facts only the format reads back: sequence number, blob type.
    pub native: BTreeMap<String, String>,
}

/// Where the bytes of a delete file are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DeletePlace {
    File(FilePath),
    /// `length` bytes of a shared file from `offset`, as the format counts them.
    Range {
        path: FilePath,
        offset: u64,
        length: u64,
    },
    Inline(Vec<u8>),
}

impl DeletePlace {
    /// The file the bytes are in; `None` when they are inline.
    pub fn path(&self) -> Option<&FilePath> {
        match self {
            Self::File(path) | Self::Range { path, .. } => Some(path),
            Self::Inline(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DeleteKind {
    /// A bitmap of row positions of one data file.
    Vector,
    /// Pairs of data file path and row position.
    Positions,
    /// Rows equal to one of these in `columns` are gone.
    Equality { columns: Vec<ColumnPath> },
}
