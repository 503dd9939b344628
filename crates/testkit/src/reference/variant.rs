//! Variants as JSON text, shredded or not.
//!
//! Spec: Parquet "Variant Shredding". A value is in `value` (binary), in `typed_value` (typed), or, for an object, in
//! both: typed fields there, the rest here. Neither is a missing field.
use arrow_schema::{DataType, Field};
use chrono::DateTime;
use lakebed_core::{Error, Result};
use parquet_variant::Variant;
use parquet_variant_json::VariantToJson;
use serde_json::{Map, Number, Value as Json};

use crate::value::{Value, canonical_json};

/// The canonical JSON of `value`, the struct that a file has for a variant; `from` is its field there.
pub fn variant_json(value: &Value, from: &Field) -> Result<Value> {
    let Value::Bytes(metadata) = value.field("metadata") else {
        return Err(Error::corrupt(format!("variant `{}` has no metadata", from.name())));
    };
    let json = unshredded(metadata, value, from.data_type())?.unwrap_or(Json::Null);
    let text = canonical_json(&json.to_string()).expect("JSON that was just written");
    Ok(Value::Json(text))
}

/// The JSON of a (value, typed_value) pair; `None` when the field is missing.
fn unshredded(metadata: &[u8], pair: &Value, pair_type: &DataType) -> Result<Option<Json>> {
    let untyped = match pair.field("value") {
        Value::Bytes(bytes) => Some(plain(metadata, bytes)?),
        _ => None,
    };
    match (pair.field("typed_value"), child(pair_type, "typed_value")) {
        (Value::Null, _) | (_, None) => Ok(untyped),
        (Value::Struct(fields), Some(DataType::Struct(types))) => {
            let mut object = match untyped {
                Some(Json::Object(rest)) => rest,
                _ => Map::new(),
            };
            for ((name, field), field_type) in fields.iter().zip(types) {
                if let Some(json) = unshredded(metadata, field, field_type.data_type())? {
                    object.insert(name.clone(), json);
                }
            }
            Ok(Some(Json::Object(object)))
        }
        (Value::List(items), Some(DataType::List(item) | DataType::LargeList(item))) => {
            let items = items.iter().map(|it| Ok(unshredded(metadata, it, item.data_type())?.unwrap_or(Json::Null)));
            Ok(Some(Json::Array(items.collect::<Result<_>>()?)))
        }
        (typed, Some(typed_type)) => scalar(typed, typed_type).map(Some),
    }
}

fn child<'a>(parent: &'a DataType, name: &str) -> Option<&'a DataType> {
    match parent {
        DataType::Struct(fields) => fields.find(name).map(|(_, field)| field.data_type()),
        _ => None,
    }
}

fn plain(metadata: &[u8], value: &[u8]) -> Result<Json> {
    let parsed = Variant::try_new(metadata, value).and_then(|it| it.to_json_value());
    parsed.map_err(|it| Error::corrupt(format!("variant: {it}")))
}

fn scalar(value: &Value, data_type: &DataType) -> Result<Json> {
    let shown = |text: Option<String>| {
        text.map(Json::String).ok_or_else(|| Error::corrupt(format!("variant holds {value}, which is no date")))
    };
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(it) => Json::Bool(*it),
        Value::Int(it) => Number::from_i128(*it).map_or(Json::Null, Json::Number),
        Value::Float(it) => Number::from_f64(it.get()).map_or(Json::Null, Json::Number),
        Value::Decimal(it) => match (it.at_scale(0), it.at_scale(18)) {
            (Some(whole), _) => Number::from_i128(whole).map_or(Json::Null, Json::Number),
            (None, Some(unscaled)) => Number::from_f64(unscaled as f64 / 1e18).map_or(Json::Null, Json::Number),
            (None, None) => return Err(Error::unsupported("decimals of more than 18 digits after the point")),
        },
        Value::Text(it) => Json::String(it.clone()),
        Value::Date(days) => {
            let at = days.checked_mul(86_400).and_then(|it| DateTime::from_timestamp(it, 0));
            shown(at.map(|it| it.format("%Y-%m-%d").to_string()))?
        }
        Value::Timestamp(nanos) => {
            let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok();
            let rest = u32::try_from(nanos.rem_euclid(1_000_000_000)).expect("less than a second");
            let at = seconds.and_then(|it| DateTime::from_timestamp(it, rest));
            shown(at.map(|it| match data_type {
                DataType::Timestamp(_, Some(_)) => it.to_rfc3339(),
                _ => it.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
            }))?
        }
        other => return Err(Error::unsupported(format!("the reference does not unshred {other}"))),
    })
}
