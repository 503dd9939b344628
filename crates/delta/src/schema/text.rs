//! Arrow → `schemaString`.
//!
//! The inverse of [`super::parse`]. What Arrow cannot say (a user-defined type, metadata that are no text) is taken over from
//! the text the table had before, column by column, where the column is the same.
//! Spec: Delta PROTOCOL.md, "Schema Serialization Format".
use std::collections::HashMap;

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{FIELD_ID, PHYSICAL_NAME, TYPE, parse};
use crate::error::DeltaError;

type Result<T> = std::result::Result<T, DeltaError>;

/// The text of `fields`. `before` is the text the table has.
///
/// # Errors
/// Unsupported, naming the column, for a type that Delta does not have.
pub(crate) fn to_text(fields: &Fields, before: Option<&str>) -> Result<String> {
    let before: Option<Value> = before.and_then(|it| serde_json::from_str(it).ok());
    let text = struct_type(fields, before.as_ref(), &[])?;
    serde_json::to_string(&Ordered(&text)).map_err(|it| DeltaError::Schema(it.to_string()))
}

/// A value whose objects have their members in the order that other writers give them.
struct Ordered<'a>(&'a Value);

/// Members of fields and types; others come after them.
const MEMBERS: [&str; 10] = [
    "name",
    "type",
    "fields",
    "elementType",
    "containsNull",
    "keyType",
    "valueType",
    "valueContainsNull",
    "nullable",
    "metadata",
];

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let first = MEMBERS.iter().filter_map(|it| members.get_key_value(*it));
                let rest = members.iter().filter(|(name, _)| !MEMBERS.contains(&name.as_str()));
                serializer.collect_map(first.chain(rest).map(|(name, value)| (name, Ordered(value))))
            }
            Value::Array(values) => serializer.collect_seq(values.iter().map(Ordered)),
            other => other.serialize(serializer),
        }
    }
}

fn struct_type(fields: &Fields, before: Option<&Value>, above: &[String]) -> Result<Value> {
    let old = before.and_then(|it| it.get("fields")).and_then(Value::as_array);
    let fields = fields.iter().map(|field| {
        let same = old.and_then(|old| old.iter().find(|it| is_same(it, field)));
        field_text(field, same, above)
    });
    Ok(json!({ "type": "struct", "fields": fields.collect::<Result<Vec<_>>>()? }))
}

/// Whether `old` is the text of `field`'s column: by physical name where it has one, else by name.
fn is_same(old: &Value, field: &Field) -> bool {
    let physical = field.metadata().get(PHYSICAL_NAME);
    match (physical, old.pointer("/metadata").and_then(|it| it.get(parse::MAPPED_NAME))) {
        (Some(name), Some(old)) => old.as_str() == Some(name),
        _ => old.get("name").and_then(Value::as_str).is_some_and(|it| it.eq_ignore_ascii_case(field.name())),
    }
}

fn field_text(field: &Field, before: Option<&Value>, above: &[String]) -> Result<Value> {
    let path = [above, &[field.name().clone()]].concat();
    let old = before.and_then(|it| it.get("metadata")).and_then(Value::as_object);
    Ok(json!({
        "name": field.name(),
        "type": type_text(field, before.and_then(|it| it.get("type")), &path)?,
        "nullable": field.is_nullable(),
        "metadata": metadata_text(field.metadata(), old),
    }))
}

/// What the field says beside its type. A value that reads as it did before stays what it was.
fn metadata_text(metadata: &HashMap<String, String>, before: Option<&Map<String, Value>>) -> Value {
    let mut text = Map::new();
    for (key, value) in metadata {
        let (key, value) = match key.as_str() {
            PHYSICAL_NAME => (parse::MAPPED_NAME, Value::from(value.as_str())),
            FIELD_ID => match value.parse::<i64>() {
                Ok(id) => (parse::MAPPED_ID, Value::from(id)),
                Err(_) => continue,
            },
            // The mark of an Arrow type; the mapped ones stand under the keys above.
            TYPE | parse::EXTENSION_NAME | lakebed_core::scan::INITIAL_DEFAULT => continue,
            parse::MAPPED_NAME if metadata.contains_key(PHYSICAL_NAME) => continue,
            parse::MAPPED_ID if metadata.contains_key(FIELD_ID) => continue,
            key => match before.and_then(|it| it.get(key)).filter(|it| parse::text_of(it) == *value) {
                Some(same) => (key, same.clone()),
                None => (key, Value::from(value.as_str())),
            },
        };
        text.insert(key.to_owned(), value);
    }
    // Only the text before has them: they belong to elements, keys and values.
    if let Some(ids) = before.and_then(|it| it.get(parse::NESTED_IDS)) {
        text.insert(parse::NESTED_IDS.to_owned(), ids.clone());
    }
    Value::Object(text)
}

fn type_text(field: &Field, before: Option<&Value>, path: &[String]) -> Result<Value> {
    let unsupported = || DeltaError::UnsupportedType { column: path.join("."), kind: field.data_type().to_string() };
    let name = |it: &str| Ok(Value::from(it));
    match field.data_type() {
        DataType::Struct(_) if super::is_variant(field) => name("variant"),
        DataType::Struct(inner) => struct_type(inner, before, path),
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => Ok(json!({
            "type": "array",
            "elementType": type_text(element, before.and_then(|it| it.get("elementType")), &below(path, "element"))?,
            "containsNull": element.is_nullable(),
        })),
        DataType::Map(entries, _) => {
            let DataType::Struct(entries) = entries.data_type() else { return Err(unsupported()) };
            let [key, value] = &entries[..] else { return Err(unsupported()) };
            Ok(json!({
                "type": "map",
                "keyType": type_text(key, before.and_then(|it| it.get("keyType")), &below(path, "key"))?,
                "valueType": type_text(value, before.and_then(|it| it.get("valueType")), &below(path, "value"))?,
                "valueContainsNull": value.is_nullable(),
            }))
        }
        // A name that reads as this very type says more than Arrow does.
        kind => match before.filter(|it| reads_as(it, kind)) {
            Some(same) => Ok(same.clone()),
            None => match primitive(kind) {
                Some(it) => name(&it),
                None => Err(unsupported()),
            },
        },
    }
}

/// Whether a type without parts, or one stored as such, reads as `kind`.
fn reads_as(text: &Value, kind: &DataType) -> bool {
    let name = match text.get("type").and_then(Value::as_str) {
        Some("udt") => text.get("sqlType"),
        _ => Some(text),
    };
    name.and_then(Value::as_str).and_then(parse::primitive_type).as_ref() == Some(kind)
}

/// Whether both are spelled alike: kinds of Arrow that hold the same values.
pub(crate) fn same_type(a: &DataType, b: &DataType) -> bool {
    primitive(a).is_some_and(|it| Some(it) == primitive(b))
}

fn below(path: &[String], part: &str) -> Vec<String> {
    [path, &[part.to_owned()]].concat()
}

/// The name of a type without parts.
fn primitive(kind: &DataType) -> Option<String> {
    let name = match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string",
        DataType::Int64 => "long",
        DataType::Int32 => "integer",
        DataType::Int16 => "short",
        DataType::Int8 => "byte",
        DataType::Float32 => "float",
        DataType::Float64 => "double",
        DataType::Boolean => "boolean",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "binary",
        DataType::Date32 => "date",
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond, zone) => {
            if zone.is_some() { "timestamp" } else { "timestamp_ntz" }
        }
        DataType::Null => "void",
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
            if (1..=38).contains(precision) && *scale >= 0 && scale.unsigned_abs() <= *precision =>
        {
            return Some(format!("decimal({precision},{scale})"));
        }
        _ => return None,
    };
    Some(name.to_owned())
}
