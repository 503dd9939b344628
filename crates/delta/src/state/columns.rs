//! Files as columns: a million of them cost arrays, not a million structs.
use std::collections::BTreeMap;

use arrow_array::{Array, Int32Array, Int64Array, StringViewArray, builder::StringViewBuilder};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

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
    /// As read with the files; a checkpoint's are read on demand.
    pub(crate) extras: Extras,
}

/// What few files have, and only a writer who adds one anew needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    /// A JSON object of texts, one a row; `None` when no file has tags.
    pub(crate) tags: Option<StringViewArray>,
    /// Who clustered the file; `None` when nobody did any.
    pub(crate) clustering: Option<StringViewArray>,
}

impl Extras {
    /// The tags of a row; a text that is no such object is as if absent.
    pub(crate) fn tags(&self, row: usize) -> Option<BTreeMap<String, Option<String>>> {
        serde_json::from_str(value(self.tags.as_ref(), row)?).ok()
    }

    pub(crate) fn clustering(&self, row: usize) -> Option<String> {
        value(self.clustering.as_ref(), row).map(str::to_owned)
    }
}

fn value(column: Option<&StringViewArray>, row: usize) -> Option<&str> {
    column.filter(|it| it.is_valid(row)).map(|it| it.value(row))
}

impl FileColumns {
    pub(crate) fn rows(&self) -> usize {
        self.path.len()
    }

    /// The values of a partition column by its physical name.
    pub(crate) fn partition_values(&self, physical: &str) -> PartitionValues {
        let rows = self.rows();
        match self.partition.iter().find(|it| it.key == physical) {
            Some(column) => column.dense(rows),
            None => {
                PartitionValues { values: StringViewArray::new_null(rows), named: Some(BooleanBuffer::new_unset(rows)) }
            }
        }
    }

    pub(crate) fn vector(&self, row: usize) -> Option<DeletionVectorDescriptor> {
        self.vectors.as_ref()?.get(row)
    }
}

/// The values of one partition column, one a row.
#[derive(Debug, Clone)]
pub(crate) struct PartitionValues {
    values: StringViewArray,
    /// Rows whose file names the column at all; `None` when every row does.
    named: Option<BooleanBuffer>,
}

impl PartitionValues {
    /// The text of a row; `None` for null, and where the file does not name the column.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        self.values.is_valid(row).then(|| self.values.value(row))
    }

    /// Whether the file of a row names the column. Null is a value; no entry is damage.
    pub(crate) fn is_named(&self, row: usize) -> bool {
        self.named.as_ref().is_none_or(|it| it.value(row))
    }
}

/// The values of one partition column, as many as there are.
#[derive(Debug, Clone)]
pub(crate) struct PartitionColumn {
    /// The column's physical name.
    pub(crate) key: String,
    /// Rows that have a value, ascending; `None` when every row does.
    pub(crate) rows: Option<Vec<u32>>,
    pub(crate) values: StringViewArray,
}

impl PartitionColumn {
    /// One value a row; rows without one are null, and known.
    fn dense(&self, rows: usize) -> PartitionValues {
        let Some(having) = &self.rows else { return PartitionValues { values: self.values.clone(), named: None } };
        let mut builder = StringViewBuilder::with_capacity(rows);
        let mut named = BooleanBufferBuilder::new(rows);
        let mut next = having.iter().zip(self.values.iter()).peekable();
        for row in 0..rows {
            let value = next.next_if(|(it, _)| **it as usize == row);
            named.append(value.is_some());
            builder.append_option(value.and_then(|(_, text)| text));
        }
        PartitionValues { values: builder.finish(), named: Some(named.finish()) }
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
    /// `None` where no removal says it.
    pub(crate) bytes: Option<Int64Array>,
}

impl RemovedColumns {
    pub(crate) fn rows(&self) -> usize {
        self.path.len()
    }
}
