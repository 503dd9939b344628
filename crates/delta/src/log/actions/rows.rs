//! The columns of files, built line by line.
use arrow_array::{
    Array, Int32Array, Int64Array, StringViewArray,
    builder::{Int32Builder, Int64Builder, StringViewBuilder},
};
use serde_json::value::RawValue;

use super::{
    MAX_PARTITION_COLUMNS,
    line::{AddLine, RemoveLine, VectorLine},
};
use crate::state::columns::{Extras, FileColumns, PartitionColumn, Quoting, RemovedColumns, StatsText, VectorColumns};

#[derive(Debug, Default)]
pub(super) struct AddRows {
    pub(super) len: usize,
    /// The commit being parsed.
    pub(super) version: i64,
    path: StringViewBuilder,
    bytes: Vec<i64>,
    modified_at: Int64Builder,
    partition: Vec<ValueRows>,
    vectors: VectorRows,
    base_row_id: Int64Builder,
    row_version: Int64Builder,
    added_in: Vec<i64>,
    stats: StringViewBuilder,
    tags: SparseTexts,
    clustering: SparseTexts,
}

#[derive(Debug)]
struct ValueRows {
    key: String,
    rows: Vec<u32>,
    values: StringViewBuilder,
}

impl AddRows {
    pub(super) fn push(&mut self, add: AddLine<'_>) -> Result<(), String> {
        if add.size < 0 {
            return Err(format!("the size of `{}` is negative", add.path.0.escape_debug()));
        }
        for (at, (key, value)) in add.partition_values.into_iter().flat_map(|it| it.0).enumerate() {
            self.push_value(at, &key.0, value.as_ref().map(|it| &*it.0))?;
        }
        self.path.append_value(&add.path.0);
        self.bytes.push(add.size);
        self.modified_at.append_option(add.modification_time);
        self.vectors.push(self.len, add.deletion_vector.as_ref());
        self.base_row_id.append_option(add.base_row_id);
        self.row_version.append_option(add.default_row_commit_version);
        self.added_in.push(self.version);
        self.stats.append_option(add.stats.map(RawValue::get));
        self.tags.push(self.len, add.tags.map(RawValue::get));
        self.clustering.push(self.len, add.clustering_provider.as_ref().map(|it| &*it.0));
        self.len += 1;
        Ok(())
    }

    /// `at` is where the key stood in the row: most rows name the same keys in the same order.
    fn push_value(&mut self, at: usize, key: &str, value: Option<&str>) -> Result<(), String> {
        let row = u32::try_from(self.len).map_err(|_| "too many files in one commit".to_owned())?;
        let known = match self.partition.get(at).filter(|it| it.key == key) {
            Some(_) => Some(at),
            None => self.partition.iter().position(|it| it.key == key),
        };
        let at = match known {
            Some(at) => at,
            None if self.partition.len() == MAX_PARTITION_COLUMNS => {
                return Err(format!("files name more than {MAX_PARTITION_COLUMNS} partition columns"));
            }
            None => {
                let column = ValueRows {
                    key: key.to_owned(),
                    rows: Vec::new(),
                    values: StringViewBuilder::new().with_deduplicate_strings(),
                };
                self.partition.push(column);
                self.partition.len() - 1
            }
        };
        let column = &mut self.partition[at];
        if column.rows.last() != Some(&row) {
            column.rows.push(row);
            column.values.append_option(value);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> FileColumns {
        let rows = self.len;
        let partition = self.partition.into_iter().map(|mut it| PartitionColumn {
            key: it.key,
            values: it.values.finish(),
            rows: if it.rows.len() == rows { None } else { Some(it.rows) },
        });
        let stats = self.stats.finish();
        FileColumns {
            path: self.path.finish(),
            bytes: self.bytes.into(),
            modified_at: some_values(self.modified_at.finish()),
            partition: partition.collect(),
            vectors: self.vectors.finish(rows),
            base_row_id: some_values(self.base_row_id.finish()),
            row_version: some_values(self.row_version.finish()),
            added_in: Some(self.added_in.into()),
            stats: Some(StatsText { text: stats, quoting: Quoting::Literal }),
            extras: Extras { tags: self.tags.finish(rows), clustering: self.clustering.finish(rows) },
        }
    }
}

/// Texts that few rows have; rows before the first cost nothing.
#[derive(Debug, Default)]
struct SparseTexts {
    len: usize,
    texts: StringViewBuilder,
}

impl SparseTexts {
    fn push(&mut self, row: usize, text: Option<&str>) {
        let Some(text) = text else { return };
        self.pad(row);
        self.texts.append_value(text);
        self.len = row + 1;
    }

    fn pad(&mut self, rows: usize) {
        (self.len..rows).for_each(|_| self.texts.append_null());
        self.len = self.len.max(rows);
    }

    fn finish(mut self, rows: usize) -> Option<StringViewArray> {
        if self.len == 0 {
            return None;
        }
        self.pad(rows);
        Some(self.texts.finish())
    }
}

#[derive(Debug, Default)]
pub(super) struct RemoveRows {
    pub(super) len: usize,
    path: StringViewBuilder,
    removed_at: Int64Builder,
    bytes: Int64Builder,
    vectors: VectorRows,
}

impl RemoveRows {
    pub(super) fn push(&mut self, remove: &RemoveLine<'_>) {
        self.path.append_value(&remove.path.0);
        self.removed_at.append_option(remove.deletion_timestamp);
        self.bytes.append_option(remove.size);
        self.vectors.push(self.len, remove.deletion_vector.as_ref());
        self.len += 1;
    }

    pub(super) fn finish(mut self) -> RemovedColumns {
        RemovedColumns {
            path: self.path.finish(),
            vectors: self.vectors.finish(self.len),
            removed_at: self.removed_at.finish(),
            bytes: some_values(self.bytes.finish()),
        }
    }
}

/// Vectors of the rows so far; rows before the first vector cost nothing.
#[derive(Debug, Default)]
struct VectorRows {
    len: usize,
    storage_type: StringViewBuilder,
    place: StringViewBuilder,
    offset: Int32Builder,
    size: Vec<i32>,
    cardinality: Vec<i64>,
}

impl VectorRows {
    fn push(&mut self, row: usize, vector: Option<&VectorLine<'_>>) {
        let Some(vector) = vector else { return };
        self.pad(row);
        self.storage_type.append_value(&vector.storage_type.0);
        self.place.append_value(&vector.path_or_inline_dv.0);
        self.offset.append_option(vector.offset);
        self.size.push(vector.size_in_bytes);
        self.cardinality.push(vector.cardinality);
        self.len = row + 1;
    }

    fn pad(&mut self, rows: usize) {
        for _ in self.len..rows {
            self.storage_type.append_null();
            self.place.append_null();
            self.offset.append_null();
            self.size.push(0);
            self.cardinality.push(0);
        }
        self.len = self.len.max(rows);
    }

    fn finish(mut self, rows: usize) -> Option<VectorColumns> {
        if self.len == 0 {
            return None;
        }
        self.pad(rows);
        Some(VectorColumns {
            storage_type: self.storage_type.finish(),
            place: self.place.finish(),
            offset: self.offset.finish(),
            size: Int32Array::from(self.size),
            cardinality: Int64Array::from(self.cardinality),
        })
    }
}

/// The column, unless it is null throughout.
fn some_values(column: Int64Array) -> Option<Int64Array> {
    (column.null_count() < column.len()).then_some(column)
}
