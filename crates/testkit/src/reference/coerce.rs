//! Values of a file as values of the table's type, and defaults out of JSON.
//!
//! Only what cannot lose anything: integers to wider integers, decimals, doubles; dates to timestamps; bytes that some
//! writers did not mark as text.
use arrow_schema::DataType;
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use lakebed_core::{Error, Result};

use crate::value::{Decimal, Float, Value};

const NANOS_PER_DAY: i128 = 86_400_000_000_000;

pub(super) fn to_type(value: Value, to: &DataType) -> Result<Value> {
    Ok(match (value, to) {
        (Value::Null, _) | (_, DataType::Null) => Value::Null,
        (Value::Int(it), to) if to.is_integer() => Value::Int(it),
        (Value::Int(it), DataType::Float32 | DataType::Float64) => Value::Float(Float::new(it as f64)),
        (Value::Int(it), to) if is_decimal(to) => Value::Decimal(Decimal::new(it, 0)),
        (Value::Date(it), DataType::Timestamp(..)) => Value::Timestamp(i128::from(it) * NANOS_PER_DAY),
        (Value::Bytes(it), to) if is_text(to) => {
            Value::Text(String::from_utf8(it).map_err(|_| Error::corrupt("text that is not UTF-8"))?)
        }
        (value, to) if fits(&value, to) => value,
        (value, to) => return Err(Error::corrupt(format!("{value} cannot be read as {to}"))),
    })
}

fn fits(value: &Value, to: &DataType) -> bool {
    match value {
        Value::Bool(_) => *to == DataType::Boolean,
        Value::Decimal(_) => is_decimal(to),
        Value::Float(_) => to.is_floating(),
        Value::Text(_) => is_text(to),
        Value::Bytes(_) => {
            matches!(to, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
        }
        Value::Date(_) => matches!(to, DataType::Date32 | DataType::Date64),
        Value::Time(_) => matches!(to, DataType::Time32(_) | DataType::Time64(_)),
        Value::Timestamp(_) => matches!(to, DataType::Timestamp(..)),
        Value::Null | Value::Int(_) | Value::Json(_) | Value::List(_) | Value::Struct(_) | Value::Map(_) => false,
    }
}

fn is_decimal(it: &DataType) -> bool {
    matches!(
        it,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..)
    )
}

fn is_text(it: &DataType) -> bool {
    matches!(it, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// An initial default: JSON as Iceberg's single-value form writes it.
pub(super) fn from_json(json: &str, to: &DataType) -> Result<Value> {
    let parsed = serde_json::from_str(json).map_err(|_| Error::corrupt(format!("default {json} is no JSON")))?;
    json_value(&parsed, to)
}

/// A JSON value as a value of the table's type.
pub fn json_value(parsed: &serde_json::Value, to: &DataType) -> Result<Value> {
    let wrong = || Error::corrupt(format!("{parsed} is no {to}"));
    let value = match (parsed, to) {
        (serde_json::Value::Null, _) => Some(Value::Null),
        (serde_json::Value::Bool(it), DataType::Boolean) => Some(Value::Bool(*it)),
        (serde_json::Value::Number(it), to) if to.is_integer() => it.as_i64().map(|it| Value::Int(it.into())),
        (serde_json::Value::Number(it), to) if to.is_floating() => it.as_f64().map(|it| Value::Float(Float::new(it))),
        (serde_json::Value::Number(it), to) if is_decimal(to) => decimal(&it.to_string()),
        (serde_json::Value::String(it), to) if is_decimal(to) => decimal(it),
        (serde_json::Value::String(it), to) if is_text(to) => Some(Value::Text(it.clone())),
        (serde_json::Value::String(it), DataType::Date32) => date(it),
        (serde_json::Value::String(it), DataType::Timestamp(..)) => timestamp(it),
        (serde_json::Value::String(it), DataType::Binary | DataType::FixedSizeBinary(_)) => hex(it),
        _ => None,
    };
    value.ok_or_else(wrong)
}

fn decimal(text: &str) -> Option<Value> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let unscaled = format!("{whole}{fraction}").parse().ok()?;
    Some(Value::Decimal(Decimal::new(unscaled, i32::try_from(fraction.len()).ok()?)))
}

fn date(text: &str) -> Option<Value> {
    let days = text.parse::<NaiveDate>().ok()?.signed_duration_since(NaiveDate::default()).num_days();
    Some(Value::Date(days))
}

fn timestamp(text: &str) -> Option<Value> {
    let zoned = DateTime::parse_from_rfc3339(text).map(|it| it.naive_utc());
    let at = zoned.or_else(|_| text.parse::<NaiveDateTime>()).ok()?.and_utc();
    Some(Value::Timestamp(i128::from(at.timestamp()) * 1_000_000_000 + i128::from(at.timestamp_subsec_nanos())))
}

fn hex(text: &str) -> Option<Value> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect::<Option<_>>().map(Value::Bytes)
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;

    fn check(from: Value, to: DataType, expected: Value) {
        assert_eq!(to_type(from, &to).unwrap(), expected);
    }

    #[test]
    fn values_widen() {
        check(Value::Int(3), DataType::Int64, Value::Int(3));
        check(Value::Int(3), DataType::Float64, Value::Float(Float::new(3.0)));
        check(Value::Int(3), DataType::Decimal128(12, 2), Value::Decimal(Decimal::new(300, 2)));
        check(Value::Date(1), DataType::Timestamp(TimeUnit::Microsecond, None), Value::Timestamp(NANOS_PER_DAY));
        check(Value::Bytes(b"x".to_vec()), DataType::Utf8, Value::Text("x".into()));
        assert!(to_type(Value::Text("3".into()), &DataType::Int32).is_err());
        assert!(to_type(Value::Bytes(vec![0xff]), &DataType::Utf8).is_err());
    }

    #[test]
    fn defaults_come_out_of_json() {
        let check = |json, to, expected| assert_eq!(from_json(json, &to).unwrap(), expected, "{json}");
        check("5", DataType::Int32, Value::Int(5));
        check("\"1.50\"", DataType::Decimal128(9, 2), Value::Decimal(Decimal::new(15, 1)));
        check("\"1970-01-03\"", DataType::Date32, Value::Date(2));
        let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        check("\"1970-01-01T01:00:00.5+01:00\"", micros, Value::Timestamp(500_000_000));
        check("\"0aff\"", DataType::Binary, Value::Bytes(vec![10, 255]));
        assert!(from_json("\"x\"", &DataType::Int32).is_err());
    }
}
