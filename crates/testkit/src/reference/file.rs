//! One file, read whole.
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use futures::TryStreamExt;
use lakebed_core::{
    Error, Result,
    file::{DataFile, Encoding},
    format::TableFormat,
    path::FilePath,
    scan::{MatchBy, ScanTask},
    storage::Storage,
};
use parquet::{
    arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    basic::Type as PhysicalType,
    schema::types::SchemaDescriptor,
};

use super::{Reading, Row, columns};
use crate::{
    rows::Rows,
    value::{Value, value_at},
};

/// The rows of a data file as the table sees them, in file order, nothing deleted yet.
pub(super) async fn rows(
    format: &dyn TableFormat,
    storage: &Storage,
    file: &DataFile,
    task: &ScanTask,
    reading: &Reading,
) -> Result<Vec<Row>> {
    let (schema, raw, by) = match file.encoding {
        Encoding::Parquet => {
            let (schema, raw) = parquet_file(&whole(storage, &file.path).await?, file.path.as_str())?;
            (schema, raw, task.columns.by)
        }
        // What the format decodes itself already has the table's columns.
        Encoding::Native => {
            let schema = SchemaRef::clone(&task.columns.schema);
            let batches: Vec<RecordBatch> =
                format.decode_rows(storage, file, SchemaRef::clone(&schema)).try_collect().await?;
            let schema = batches.first().map_or(schema, RecordBatch::schema);
            (schema, structs(&batches)?, MatchBy::Name)
        }
        other => return Err(Error::unsupported(format!("{}: the reference does not read {other:?}", file.path))),
    };
    check_count(file, raw.len())?;
    let finder = columns::Finder::new(&schema, &task.columns, by, file);
    raw.into_iter()
        .zip(0u64..)
        .map(|(raw, position)| {
            let values = finder.values(&raw)?;
            let more = additional(file, task, reading, &raw, position);
            Ok(Row { values, raw, position, more })
        })
        .collect()
}

fn check_count(file: &DataFile, rows: usize) -> Result<()> {
    match file.stats.rows {
        Some(said) if said != rows as u64 => {
            Err(Error::corrupt(format!("{} has {rows} rows, its metadata say {said}", file.path)))
        }
        _ => Ok(()),
    }
}

fn additional(file: &DataFile, task: &ScanTask, reading: &Reading, raw: &Value, position: u64) -> Vec<Value> {
    let mut more = Vec::new();
    if reading.places {
        more.extend([Value::Text(file.path.as_str().to_owned()), Value::Int(position.into())]);
    }
    if reading.row_ids {
        let stored = |column: &Option<String>| column.as_ref().map_or(Value::Null, |it| raw.field(it).clone());
        let or = |stored: Value, otherwise: Option<u64>| match (stored, otherwise) {
            (Value::Null, Some(known)) => Value::Int(known.into()),
            (stored, _) => stored,
        };
        let counted = file.first_row_id.map(|it| it.saturating_add(position));
        more.push(or(stored(&task.columns.row_id_column), counted));
        more.push(or(stored(&task.columns.row_version_column), file.row_version));
    }
    more.extend(reading.raw.iter().map(|name| raw.field(name).clone()));
    more
}

pub(super) async fn whole(storage: &Storage, path: &FilePath) -> Result<Bytes> {
    storage.read(path).await?.ok_or_else(|| Error::not_found(format!("{path} is gone")))
}

/// Every row of a Parquet file that stands for itself, such as the expected rows of a conformance case.
pub fn parquet_rows(body: &Bytes, name: &str) -> Result<Rows> {
    let (schema, raw) = parquet_file(body, name)?;
    let mut rows = Rows::new(schema.fields().iter().map(|it| it.name().clone()));
    rows.rows = raw.into_iter().map(fields_of).collect();
    Ok(rows)
}

fn fields_of(row: Value) -> Vec<Value> {
    match row {
        Value::Struct(fields) => fields.into_iter().map(|(_, value)| value).collect(),
        other => vec![other],
    }
}

/// The file's own schema and its rows, each a struct.
///
/// The Arrow schema that some writers embed is ignored: what counts is the Parquet schema. INT96 is read in
/// microseconds, as years far from 1970 do not fit nanoseconds.
pub(super) fn parquet_file(body: &Bytes, name: &str) -> Result<(SchemaRef, Vec<Value>)> {
    let unreadable = |err: &dyn std::fmt::Display| Error::corrupt(format!("{name}: {err}"));
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let mut builder =
        ParquetRecordBatchReaderBuilder::try_new_with_options(body.clone(), options).map_err(|it| unreadable(&it))?;
    if let Some(schema) = without_int96(builder.schema(), builder.parquet_schema()) {
        let options = ArrowReaderOptions::new().with_schema(schema);
        builder = ParquetRecordBatchReaderBuilder::try_new_with_options(body.clone(), options)
            .map_err(|it| unreadable(&it))?;
    }
    let schema = SchemaRef::clone(builder.schema());
    let reader = builder.build().map_err(|it| unreadable(&it))?;
    let batches = reader.collect::<Result<Vec<RecordBatch>, _>>().map_err(|it| unreadable(&it))?;
    Ok((schema, structs(&batches)?))
}

fn structs(batches: &[RecordBatch]) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let fields = schema.fields().iter().zip(batch.columns());
            let fields = fields.map(|(field, column)| Ok((field.name().clone(), value_at(column, row)?)));
            rows.push(Value::Struct(fields.collect::<Result<_>>()?));
        }
    }
    Ok(rows)
}

/// The schema with INT96 columns in microseconds; `None` when the file has none.
fn without_int96(schema: &Schema, parquet: &SchemaDescriptor) -> Option<SchemaRef> {
    let is_int96 = |leaf: usize| parquet.column(leaf).physical_type() == PhysicalType::INT96;
    if !(0..parquet.num_columns()).any(is_int96) {
        return None;
    }
    let mut leaf = 0;
    let fields: Fields = schema.fields().iter().map(|it| retimed(it, &mut leaf, &is_int96)).collect();
    Some(Schema::new_with_metadata(fields, schema.metadata().clone()).into())
}

/// `leaf` counts the Parquet columns passed; Arrow's fields have them in the same order.
fn retimed(field: &FieldRef, leaf: &mut usize, is_int96: &dyn Fn(usize) -> bool) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|it| retimed(it, leaf, is_int96)).collect()),
        DataType::List(item) => DataType::List(retimed(item, leaf, is_int96)),
        DataType::Map(entries, sorted) => DataType::Map(retimed(entries, leaf, is_int96), *sorted),
        other => {
            let int96 = is_int96(*leaf);
            *leaf += 1;
            if int96 { DataType::Timestamp(TimeUnit::Microsecond, None) } else { other.clone() }
        }
    };
    Field::clone(field).with_data_type(data_type).into()
}
