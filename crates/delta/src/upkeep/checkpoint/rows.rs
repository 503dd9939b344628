//! Files and small actions → rows of a checkpoint.
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, MapArray, RecordBatch, StringArray, StructArray,
    builder::StringBuilder, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use lakebed_core::{Error, Result};
use serde_json::Value;

use super::schema;
use crate::{
    spec::DeletionVectorDescriptor,
    state::columns::{PartitionValues, RemovedColumns},
    upkeep::live::Whole,
};

/// Actions, each as a line of a commit spells it.
pub(super) fn small(schema: &SchemaRef, actions: &[Value]) -> Result<RecordBatch> {
    let decode = || {
        let mut decoder =
            arrow_json::ReaderBuilder::new(Arc::clone(schema)).with_batch_size(actions.len().max(1)).build_decoder()?;
        decoder.serialize(actions)?;
        Ok::<_, ArrowError>(decoder.flush()?.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(schema))))
    };
    decode().map_err(internal)
}

/// The `add` actions of `rows` among the files of `whole`.
pub(super) fn adds(schema: &SchemaRef, whole: &Whole, rows: &[usize]) -> Result<RecordBatch> {
    let files = whole.files();
    let longs = |column: Option<&Int64Array>| {
        let value = |row: &usize| column.filter(|it| it.is_valid(*row)).map(|it| it.value(*row));
        Arc::new(rows.iter().map(value).collect::<Int64Array>()) as ArrayRef
    };
    let written_at = rows.iter().map(|row| files.modified_at.as_ref().map_or(0, |it| long(it, *row)));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| files.path.value(*row)))),
        partition_values(whole.partition(), rows),
        longs(Some(&files.bytes)),
        Arc::new(Int64Array::from_iter_values(written_at)),
        never(rows.len()),
        Arc::new(rows.iter().map(|row| whole.stats(*row)).collect::<StringArray>()),
        tags(whole, rows),
        vectors(rows.iter().map(|row| files.vector(*row)).collect()),
        longs(files.base_row_id.as_ref()),
        longs(files.row_version.as_ref()),
        Arc::new(rows.iter().map(|row| whole.clustering(*row)).collect::<StringArray>()),
    ];
    one_kind(schema, "add", columns, rows.len())
}

/// The tombstones at `rows`.
pub(super) fn removes(schema: &SchemaRef, rows: &[(&RemovedColumns, usize)]) -> Result<RecordBatch> {
    let null = |kind: DataType| new_null_array(&kind, rows.len());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(it, row)| it.path.value(*row)))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(it, row)| it.time(*row)))),
        never(rows.len()),
        null(DataType::Boolean),
        null(DataType::Map(schema::entries(), false)),
        Arc::new(rows.iter().map(|(it, row)| it.size(*row)).collect::<Int64Array>()),
        vectors(rows.iter().map(|(it, row)| it.vectors.as_ref().and_then(|it| it.get(*row))).collect()),
        null(DataType::Int64),
        null(DataType::Int64),
    ];
    one_kind(schema, "remove", columns, rows.len())
}

fn long(column: &Int64Array, row: usize) -> i64 {
    if column.is_valid(row) { column.value(row) } else { 0 }
}

/// `dataChange`: a checkpoint changes nothing.
fn never(rows: usize) -> ArrayRef {
    Arc::new(BooleanArray::from(vec![false; rows]))
}

/// A batch whose rows all are actions of one kind.
fn one_kind(schema: &SchemaRef, kind: &str, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let of = |field: &FieldRef| match field.data_type() {
        DataType::Struct(fields) if field.name() == kind => {
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns.clone(), None)?) as ArrayRef)
        }
        other => Ok(new_null_array(other, rows)),
    };
    let made = schema.fields().iter().map(of).collect::<Result<Vec<_>, ArrowError>>();
    made.and_then(|it| RecordBatch::try_new(Arc::clone(schema), it)).map_err(internal)
}

/// Maps of texts, made row by row.
#[derive(Default)]
struct Maps {
    keys: StringBuilder,
    values: StringBuilder,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl Maps {
    fn row<'a>(&mut self, pairs: Option<impl Iterator<Item = (&'a str, Option<&'a str>)>>) {
        self.valid.push(pairs.is_some());
        let mut length = 0;
        for (key, value) in pairs.into_iter().flatten() {
            self.keys.append_value(key);
            self.values.append_option(value);
            length += 1;
        }
        self.lengths.push(length);
    }

    fn finish(mut self) -> ArrayRef {
        let entries = schema::entries();
        let DataType::Struct(pair) = entries.data_type().clone() else { unreachable!("entries are pairs") };
        let columns: Vec<ArrayRef> = vec![Arc::new(self.keys.finish()), Arc::new(self.values.finish())];
        let pairs = StructArray::new(pair, columns, None);
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Arc::new(MapArray::new(entries, offsets, pairs, Some(NullBuffer::from(self.valid)), false))
    }
}

fn partition_values(partition: &[(String, PartitionValues)], rows: &[usize]) -> ArrayRef {
    let mut maps = Maps::default();
    for row in rows {
        let named = partition.iter().filter(|(_, it)| it.is_named(*row));
        maps.row(Some(named.map(|(key, it)| (key.as_str(), it.get(*row)))));
    }
    maps.finish()
}

fn tags(whole: &Whole, rows: &[usize]) -> ArrayRef {
    let mut maps = Maps::default();
    for row in rows {
        let tags = whole.tags(*row);
        maps.row(tags.as_ref().map(|it| it.iter().map(|(key, value)| (key.as_str(), value.as_deref()))));
    }
    maps.finish()
}

fn vectors(vectors: Vec<Option<DeletionVectorDescriptor>>) -> ArrayRef {
    let valid = NullBuffer::from_iter(vectors.iter().map(Option::is_some));
    let some = || vectors.iter().map(Option::as_ref);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(some().map(|it| it.map(|it| it.storage_type.as_str())).collect::<StringArray>()),
        Arc::new(some().map(|it| it.map(|it| it.path_or_inline_dv.as_str())).collect::<StringArray>()),
        Arc::new(some().map(|it| it.and_then(|it| it.offset)).collect::<Int32Array>()),
        Arc::new(some().map(|it| it.map(|it| it.size_in_bytes)).collect::<Int32Array>()),
        Arc::new(some().map(|it| it.map(|it| it.cardinality)).collect::<Int64Array>()),
    ];
    Arc::new(StructArray::new(schema::vector(), columns, Some(valid)))
}

pub(super) fn internal(err: ArrowError) -> Error {
    Error::internal(format!("a row of a checkpoint cannot be made: {err}"))
}
