//! Data files of Pond's own encoding: a JSON array of rows, each an object by column name.
//!
//! For tables without key that say `pond.files = json`: they try the path of bytes that only a format can decode, and
//! cost less than Parquet where a test writes thousands of small files.
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use lakebed_core::{Error, Result, file::DataFile, storage::Storage};
use serde_json::{Map, Value as Json};

use crate::{batch::to_batch, reference, rows::Rows, value::Value};

pub(super) fn bytes(rows: &Rows) -> Result<Bytes> {
    let cell = |value: &Value| match value {
        Value::Null => Ok(Json::Null),
        Value::Bool(it) => Ok(Json::from(*it)),
        Value::Int(it) => i64::try_from(*it).map(Json::from).map_err(|_| Error::invalid(format!("{it} is too large"))),
        Value::Text(it) => Ok(Json::from(it.as_str())),
        other => Err(Error::unsupported(format!("pond's own files do not hold {other}"))),
    };
    let row = |row: &Vec<Value>| -> Result<Json> {
        let cells = rows.columns.iter().zip(row).map(|(name, value)| Ok((name.clone(), cell(value)?)));
        Ok(Json::Object(cells.collect::<Result<Map<_, _>>>()?))
    };
    let all = rows.rows.iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(serde_json::to_vec(&all).expect("JSON values are JSON").into())
}

/// The rows of `file` with exactly `schema`; columns it does not have are null.
pub(super) async fn decode(storage: Storage, file: DataFile, schema: SchemaRef) -> Result<RecordBatch> {
    let body = storage.read(&file.path).await?.ok_or_else(|| Error::not_found(format!("{} is gone", file.path)))?;
    let wrong = |it: &dyn std::fmt::Display| Error::corrupt(format!("{}: {it}", file.path));
    let all: Vec<Map<String, Json>> = serde_json::from_slice(&body).map_err(|it| wrong(&it))?;
    let mut rows = Rows::new(schema.fields().iter().map(|it| it.name().clone()));
    for row in &all {
        let cells = schema.fields().iter().map(|field| match row.get(field.name()) {
            Some(cell) => reference::json_value(cell, field.data_type()),
            None => Ok(Value::Null),
        });
        rows.rows.push(cells.collect::<Result<_>>()?);
    }
    to_batch(&rows, &schema)
}
