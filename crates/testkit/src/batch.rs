//! Rows as Arrow batches and as Parquet files, for tables that tests make.
use std::sync::Arc;

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, ListArray, MapArray, NullArray, PrimitiveArray,
    RecordBatch, StringArray, StructArray, types,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, FieldRef, SchemaRef, TimeUnit};
use bytes::Bytes;
use lakebed_core::{Error, Result};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};

use crate::{
    rows::Rows,
    value::{Float, Value},
};

impl From<i64> for Value {
    fn from(it: i64) -> Self {
        Self::Int(it.into())
    }
}

impl From<f64> for Value {
    fn from(it: f64) -> Self {
        Self::Float(Float::new(it))
    }
}

impl From<bool> for Value {
    fn from(it: bool) -> Self {
        Self::Bool(it)
    }
}

impl From<&str> for Value {
    fn from(it: &str) -> Self {
        Self::Text(it.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(it: Option<T>) -> Self {
        it.map_or(Self::Null, Into::into)
    }
}

/// The rows as one batch with `schema`, whose columns are found by name.
///
/// Variants become text. Errors where a value is not of its column's type.
pub fn to_batch(rows: &Rows, schema: &SchemaRef) -> Result<RecordBatch> {
    let names: Vec<&String> = schema.fields().iter().map(|it| it.name()).collect();
    let rows =
        if rows.columns.is_empty() { Rows::new(names.iter().map(|it| it.as_str())) } else { rows.project(&names)? };
    let columns = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(at, field)| array_of(&rows.rows.iter().map(|row| &row[at]).collect::<Vec<_>>(), field.data_type()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)
        .map_err(|it| Error::invalid(it.to_string()))
}

/// The bytes of a Parquet file of these batches, in row groups of `group_rows`.
pub fn parquet_bytes(batches: &[RecordBatch], schema: &SchemaRef, group_rows: usize) -> Result<Bytes> {
    let failed = |it: parquet::errors::ParquetError| Error::invalid(it.to_string());
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, SchemaRef::clone(schema), Some(properties)).map_err(failed)?;
    for batch in batches {
        writer.write(batch).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(out.into())
}

/// The values as an array of `data_type`.
pub fn array_of(values: &[&Value], data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(values.len())),
        DataType::Boolean => Arc::new(
            collect(values, data_type, |it| match it {
                Value::Bool(it) => Some(*it),
                _ => None,
            })?
            .into_iter()
            .collect::<BooleanArray>(),
        ),
        DataType::Int8 => ints::<types::Int8Type>(values, data_type)?,
        DataType::Int16 => ints::<types::Int16Type>(values, data_type)?,
        DataType::Int32 => ints::<types::Int32Type>(values, data_type)?,
        DataType::Int64 => ints::<types::Int64Type>(values, data_type)?,
        DataType::Float32 => primitive::<types::Float32Type>(values, data_type, |it| Some(float(it)? as f32))?,
        DataType::Float64 => primitive::<types::Float64Type>(values, data_type, float)?,
        DataType::Date32 => primitive::<types::Date32Type>(values, data_type, |it| match it {
            Value::Date(it) => i32::try_from(*it).ok(),
            _ => None,
        })?,
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            primitive::<types::TimestampMicrosecondType>(values, data_type, |it| nanos(it, 1000))?
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            primitive::<types::TimestampNanosecondType>(values, data_type, |it| nanos(it, 1))?
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            primitive::<types::TimestampMillisecondType>(values, data_type, |it| nanos(it, 1_000_000))?
        }
        DataType::Decimal128(_, scale) => {
            let scale = u32::try_from(*scale).map_err(|_| wrong(data_type))?;
            primitive::<types::Decimal128Type>(values, data_type, |it| match it {
                Value::Decimal(it) => it.at_scale(scale),
                _ => None,
            })?
        }
        DataType::Utf8 => Arc::new(collect(values, data_type, text)?.into_iter().collect::<StringArray>()),
        DataType::Binary => Arc::new(collect(values, data_type, bytes)?.into_iter().collect::<BinaryArray>()),
        DataType::List(item) => lists(values, item)?,
        DataType::Struct(fields) => {
            let child = |field: &FieldRef| {
                let children: Vec<_> = values.iter().map(|it| it.field(field.name())).collect();
                array_of(&children, field.data_type())
            };
            let children = fields.iter().map(child).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), children, Some(validity(values))).map_err(arrow)?)
        }
        DataType::Map(entries, sorted) => maps(values, entries, *sorted)?,
        _ => return Err(wrong(data_type)),
    })
}

fn wrong(data_type: &DataType) -> Error {
    Error::unsupported(format!("test rows have no columns of type {data_type}"))
}

fn arrow(err: arrow_schema::ArrowError) -> Error {
    Error::invalid(err.to_string())
}

fn validity(values: &[&Value]) -> NullBuffer {
    values.iter().map(|it| !it.is_null()).collect::<Vec<_>>().into()
}

fn lists(values: &[&Value], item: &FieldRef) -> Result<ArrayRef> {
    let items = |value: &&Value| match value {
        Value::List(items) => items.len(),
        _ => 0,
    };
    let offsets = OffsetBuffer::from_lengths(values.iter().map(items));
    let flat: Vec<&Value> = values
        .iter()
        .flat_map(|it| match it {
            Value::List(items) => items.as_slice(),
            _ => &[],
        })
        .collect();
    let child = array_of(&flat, item.data_type())?;
    let list = ListArray::try_new(FieldRef::clone(item), offsets, child, Some(validity(values)));
    Ok(Arc::new(list.map_err(arrow)?))
}

fn maps(values: &[&Value], entries: &FieldRef, sorted: bool) -> Result<ArrayRef> {
    let DataType::Struct(fields) = entries.data_type() else { return Err(wrong(entries.data_type())) };
    let pairs = |value: &&'_ Value| match value {
        Value::Map(pairs) => pairs.clone(),
        _ => Vec::new(),
    };
    let offsets = OffsetBuffer::from_lengths(values.iter().map(|it| pairs(it).len()));
    let flat: Vec<(Value, Value)> = values.iter().flat_map(pairs).collect();
    let keys = array_of(&flat.iter().map(|(key, _)| key).collect::<Vec<_>>(), fields[0].data_type())?;
    let items = array_of(&flat.iter().map(|(_, item)| item).collect::<Vec<_>>(), fields[1].data_type())?;
    let child = StructArray::try_new(fields.clone(), vec![keys, items], None).map_err(arrow)?;
    let map = MapArray::try_new(FieldRef::clone(entries), offsets, child, Some(validity(values)), sorted);
    Ok(Arc::new(map.map_err(arrow)?))
}

fn collect<'a, T>(
    values: &[&'a Value],
    data_type: &DataType,
    pick: impl Fn(&'a Value) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    let one = |value: &&'a Value| match value.is_null() {
        true => Ok(None),
        false => pick(value).map(Some).ok_or_else(|| Error::invalid(format!("{value} is no {data_type}"))),
    };
    values.iter().map(one).collect()
}

fn primitive<T: ArrowPrimitiveType>(
    values: &[&Value],
    data_type: &DataType,
    pick: impl Fn(&Value) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let array: PrimitiveArray<T> = collect(values, data_type, pick)?.into_iter().collect();
    Ok(Arc::new(array.with_data_type(data_type.clone())))
}

fn ints<T: ArrowPrimitiveType>(values: &[&Value], data_type: &DataType) -> Result<ArrayRef>
where
    T::Native: TryFrom<i128>,
{
    primitive::<T>(values, data_type, |it| match it {
        Value::Int(it) => T::Native::try_from(*it).ok(),
        _ => None,
    })
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(it) => Some(it.get()),
        _ => None,
    }
}

fn nanos(value: &Value, unit: i128) -> Option<i64> {
    match value {
        Value::Timestamp(it) => i64::try_from(it.div_euclid(unit)).ok(),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(it) | Value::Json(it) => Some(it),
        _ => None,
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bytes(it) => Some(it),
        _ => None,
    }
}
