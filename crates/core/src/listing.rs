//! The live files of a snapshot as Arrow batches: what `files`, `<format>_files()` and `t$files` show.
//!
//! Files stay columnar until pruning is done: a million files cost columns, not a million structs.
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

/// Which columns a caller wants; formats need not decode what nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListingColumns {
    pub path: bool,
    pub bytes: bool,
    pub rows: bool,
    pub partition: bool,
    pub format: bool,
    pub deletes: bool,
    pub min: bool,
    pub max: bool,
    pub added_in: bool,
}

impl ListingColumns {
    pub const ALL: Self = Self {
        path: true,
        bytes: true,
        rows: true,
        partition: true,
        format: true,
        deletes: true,
        min: true,
        max: true,
        added_in: true,
    };
    /// Counting only: batches have no columns, just row counts.
    pub const NONE: Self = Self {
        path: false,
        bytes: false,
        rows: false,
        partition: false,
        format: false,
        deletes: false,
        min: false,
        max: false,
        added_in: false,
    };

    /// The columns named, in the listing's order; `None` when a name is not one of them.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut wanted = Self::NONE;
        for name in names {
            match name {
                "path" => wanted.path = true,
                "bytes" => wanted.bytes = true,
                "rows" => wanted.rows = true,
                "partition" => wanted.partition = true,
                "format" => wanted.format = true,
                "deletes" => wanted.deletes = true,
                "min" => wanted.min = true,
                "max" => wanted.max = true,
                "added_in" => wanted.added_in = true,
                _ => return None,
            }
        }
        Some(wanted)
    }
}

/// The Arrow schema of a listing with `columns`.
///
/// `path` decoded, `bytes` as recorded, `rows` live (deleted ones subtracted; null when unknown), `partition`, `min`
/// and `max` as JSON object text by column name, `format` lower case, `deletes` rows taken away (null when unknown),
/// `added_in` the version that added the file (null where the metadata no longer tell).
pub fn schema(columns: ListingColumns) -> SchemaRef {
    let all = [
        (columns.path, "path", DataType::Utf8, false),
        (columns.bytes, "bytes", DataType::Int64, false),
        (columns.rows, "rows", DataType::Int64, true),
        (columns.partition, "partition", DataType::Utf8, true),
        (columns.format, "format", DataType::Utf8, false),
        (columns.deletes, "deletes", DataType::Int64, true),
        (columns.min, "min", DataType::Utf8, true),
        (columns.max, "max", DataType::Utf8, true),
        (columns.added_in, "added_in", DataType::Utf8, true),
    ];
    let wanted = all.into_iter().filter(|(wanted, ..)| *wanted);
    Arc::new(Schema::new(wanted.map(|(_, name, kind, null)| Field::new(name, kind, null)).collect::<Vec<_>>()))
}
