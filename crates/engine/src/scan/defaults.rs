//! The value that rows older than a column have.
use arrow_schema::{DataType, Field};
use datafusion::scalar::ScalarValue;
use lakebed_core::scan::INITIAL_DEFAULT;
use serde_json::Value;

use super::shape::Mismatch;

/// The field's [`INITIAL_DEFAULT`] as a value of `kind`; null without one.
pub(crate) fn initial_default(table: &Field, kind: &DataType) -> Result<ScalarValue, Mismatch> {
    let null = || ScalarValue::try_new_null(kind).map_err(|_| bad(table, kind, "its type has no null"));
    let Some(text) = table.metadata().get(INITIAL_DEFAULT) else { return null() };
    let value: Value = serde_json::from_str(text).map_err(|_| bad(table, kind, "its initial default is no JSON"))?;
    match value {
        Value::Null => null(),
        Value::Bool(it) => cast(table, kind, ScalarValue::Boolean(Some(it))),
        Value::Number(it) => cast(table, kind, ScalarValue::Utf8(Some(it.to_string()))),
        Value::String(it) => cast(table, kind, ScalarValue::Utf8(Some(it))),
        Value::Array(_) | Value::Object(_) => Err(bad(table, kind, "nested initial defaults are not read")),
    }
}

fn cast(table: &Field, kind: &DataType, value: ScalarValue) -> Result<ScalarValue, Mismatch> {
    match value.cast_to(kind) {
        Ok(it) if !it.is_null() => Ok(it),
        _ => Err(bad(table, kind, "its initial default is no value of its type")),
    }
}

fn bad(table: &Field, kind: &DataType, reason: &'static str) -> Mismatch {
    Mismatch { column: table.name().clone(), found: "missing".to_owned(), wanted: kind.to_string(), reason }
}
