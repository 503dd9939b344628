//! Files as columns: a million of them cost arrays, not a million structs.
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, StringViewArray, builder::StringViewBuilder, new_null_array,
};
use arrow_schema::DataType;

use crate::spec::DeletionVectorDescriptor;

/// Files added, one a row.
#[derive(Debug, Clone)]
pub(crate) struct FileColumns {
    /// As written: percent-encoded.
    pub(crate) path: StringViewArray,
    pub(crate) bytes: Int64Array,
    /// Milliseconds since the epoch.
    pub(crate) modified_at: Option<Int64Array>,
    pub(crate) partition: Vec<PartitionColumn>,
    /// `None` when no file has a vector.
    pub(crate) vectors: Option<VectorColumns>,
    pub(crate) base_row_id: Option<Int64Array>,
    pub(crate) row_version: Option<Int64Array>,
    /// The commit that added each file; `None` in checkpoints, which no longer tell.
    pub(crate) added_in: Option<Int64Array>,
    /// Statistics as read with the files. `None` where they are read on demand.
    pub(crate) stats: Option<StatsText>,
}

impl FileColumns {
    pub(crate) fn rows(&self) -> usize {
        self.path.len()
    }

    /// The values of a partition column by its physical name, one a row.
    pub(crate) fn partition_values(&self, physical: &str) -> ArrayRef {
        match self.partition.iter().find(|it| it.key == physical) {
            Some(column) => column.dense(self.rows()),
            None => new_null_array(&DataType::Utf8View, self.rows()),
        }
    }

    pub(crate) fn vector(&self, row: usize) -> Option<DeletionVectorDescriptor> {
        self.vectors.as_ref()?.get(row)
    }
}

/// The values of one partition column.
#[derive(Debug, Clone)]
pub(crate) struct PartitionColumn {
    /// The column's physical name.
    pub(crate) key: String,
    /// Rows that have a value, ascending; `None` when every row does.
    pub(crate) rows: Option<Vec<u32>>,
    pub(crate) values: StringViewArray,
}

impl PartitionColumn {
    /// One value a row; rows without one are null.
    fn dense(&self, rows: usize) -> ArrayRef {
        let Some(having) = &self.rows else { return Arc::new(self.values.clone()) };
        let mut builder = StringViewBuilder::with_capacity(rows);
        let mut next = having.iter().zip(self.values.iter()).peekable();
        for row in 0..rows {
            match next.next_if(|(it, _)| **it as usize == row) {
                Some((_, value)) => builder.append_option(value),
                None => builder.append_null(),
            }
        }
        Arc::new(builder.finish())
    }
}

/// Deletion vectors by the row of their file; a null `place` is none.
#[derive(Debug, Clone)]
pub(crate) struct VectorColumns {
    pub(crate) storage_type: StringViewArray,
    pub(crate) place: StringViewArray,
    pub(crate) offset: Int32Array,
    pub(crate) size: Int32Array,
    pub(crate) cardinality: Int64Array,
}

impl VectorColumns {
    pub(crate) fn get(&self, row: usize) -> Option<DeletionVectorDescriptor> {
        self.place.is_valid(row).then(|| DeletionVectorDescriptor {
            storage_type: self.storage_type.value(row).to_owned(),
            path_or_inline_dv: self.place.value(row).to_owned(),
            offset: self.offset.is_valid(row).then(|| self.offset.value(row)),
            size_in_bytes: self.size.value(row),
            cardinality: self.cardinality.value(row),
        })
    }

    /// Rows the file's vector takes away; 0 without one.
    pub(crate) fn deleted(&self, row: usize) -> i64 {
        if self.place.is_valid(row) { self.cardinality.value(row) } else { 0 }
    }
}

/// Statistics as JSON text, one a row; null where a file has none.
#[derive(Debug, Clone)]
pub(crate) struct StatsText {
    pub(crate) text: StringViewArray,
    pub(crate) quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// The text itself.
    Plain,
    /// A JSON string literal, quotes and escapes included: as it stands in a commit.
    Literal,
}

impl StatsText {
    /// The text of a row as it is stored.
    pub(crate) fn raw(&self, row: usize) -> Option<&str> {
        self.text.is_valid(row).then(|| self.text.value(row))
    }

    /// The statistics of a row as JSON text; `None` where there are none or they are damaged.
    pub(crate) fn get(&self, row: usize) -> Option<std::borrow::Cow<'_, str>> {
        if self.text.is_null(row) {
            return None;
        }
        let text = self.text.value(row);
        match self.quoting {
            Quoting::Plain => Some(text.into()),
            Quoting::Literal => serde_json::from_str::<String>(text).ok().map(Into::into),
        }
    }
}

/// Files removed, one a row.
#[derive(Debug, Clone)]
pub(crate) struct RemovedColumns {
    pub(crate) path: StringViewArray,
    pub(crate) vectors: Option<VectorColumns>,
    /// Milliseconds since the epoch.
    pub(crate) removed_at: Int64Array,
}

impl RemovedColumns {
    pub(crate) fn rows(&self) -> usize {
        self.path.len()
    }
}
