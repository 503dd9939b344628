//! The JSON text of a schema.
use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::{
    Arc, DataType, DeltaError, FIELD_ID, Field, FieldRef, Fields, Mapping, PHYSICAL_NAME, Schema, TYPE, TimeUnit,
    VARIANT,
};

/// Columns of one table, nested ones counted.
const MAX_COLUMNS: usize = 100_000;
/// Bytes of the text.
const MAX_TEXT: usize = 128 << 20;
pub(super) const MAPPED_ID: &str = "delta.columnMapping.id";
pub(super) const MAPPED_NAME: &str = "delta.columnMapping.physicalName";
pub(super) const NESTED_IDS: &str = "parquet.field.nested.ids";
const CHAR_VARCHAR: &str = "__CHAR_VARCHAR_TYPE_STRING";
pub(super) const EXTENSION_NAME: &str = "ARROW:extension:name";

type Result<T> = std::result::Result<T, DeltaError>;

pub(super) fn parse(text: &str, mapping: Mapping) -> Result<Schema> {
    if text.len() > MAX_TEXT {
        return Err(DeltaError::SchemaLimit { what: "bytes:", found: text.len(), limit: MAX_TEXT });
    }
    let value: Value = serde_json::from_str(text).map_err(|err| {
        // The parser gives up at a depth no table has; deeper text would exhaust the stack.
        if err.to_string().contains("recursion limit") {
            DeltaError::SchemaLimit { what: "nesting deeper than", found: 128, limit: 127 }
        } else {
            DeltaError::Schema(format!("not JSON: {err}"))
        }
    })?;
    let mut parser = Parser { mapping, columns: 0 };
    let root = object(&value, "the schema")?;
    if root.get("type").and_then(Value::as_str) != Some("struct") {
        return Err(DeltaError::Schema("the outermost type is not a struct".to_owned()));
    }
    Ok(Schema::new(parser.fields(root, &Place::default())?))
}

/// Where in the schema, for messages.
#[derive(Debug, Clone, Default)]
struct Place(Vec<String>);

impl Place {
    fn below(&self, name: &str) -> Self {
        Self([&self.0[..], &[name.to_owned()]].concat())
    }

    fn error(&self, reason: impl std::fmt::Display) -> DeltaError {
        let path = self.0.join(".");
        if path.is_empty() {
            DeltaError::Schema(reason.to_string())
        } else {
            DeltaError::Schema(format!("column `{}`: {reason}", path.escape_debug()))
        }
    }
}

/// Ids of the elements, keys and values inside one column, by path from the column's physical name.
struct Nested<'a> {
    ids: Option<&'a Map<String, Value>>,
    prefix: String,
}

impl Nested<'_> {
    fn below(&self, part: &str) -> Self {
        Self { ids: self.ids, prefix: format!("{}.{part}", self.prefix) }
    }

    fn id(&self) -> Option<i64> {
        self.ids?.get(&self.prefix)?.as_i64()
    }
}

struct Parser {
    mapping: Mapping,
    columns: usize,
}

impl Parser {
    fn fields(&mut self, container: &Map<String, Value>, place: &Place) -> Result<Fields> {
        let listed =
            container.get("fields").and_then(Value::as_array).ok_or_else(|| place.error("a struct without fields"))?;
        let mut names = BTreeSet::new();
        let mut physical = BTreeSet::new();
        let mut fields = Vec::with_capacity(listed.len());
        for value in listed {
            let field = self.field(value, place)?;
            if !names.insert(field.name().to_lowercase()) {
                return Err(self.twice(&fields, &field, place));
            }
            if !physical.insert(super::physical_name(&field).to_owned()) {
                return Err(
                    place.error(format!("two columns have the physical name `{}`", super::physical_name(&field)))
                );
            }
            fields.push(Arc::new(field));
        }
        Ok(fields.into())
    }

    fn twice(&self, fields: &[FieldRef], second: &Field, place: &Place) -> DeltaError {
        let first = fields.iter().find(|it| it.name().to_lowercase() == second.name().to_lowercase());
        let first = first.map_or("", |it| it.name());
        place.error(format!(
            "columns `{first}` and `{}` differ by case only: names must differ without it",
            second.name()
        ))
    }

    fn field(&mut self, value: &Value, place: &Place) -> Result<Field> {
        self.columns += 1;
        if self.columns > MAX_COLUMNS {
            return Err(DeltaError::SchemaLimit { what: "columns:", found: self.columns, limit: MAX_COLUMNS });
        }
        let field = object(value, "a field")?;
        let name = field.get("name").and_then(Value::as_str).ok_or_else(|| place.error("a field without a name"))?;
        let place = place.below(name);
        let none = Map::new();
        let metadata = field.get("metadata").and_then(Value::as_object).unwrap_or(&none);
        let mut kept = self.mapped(metadata, &place)?;
        kept.extend(metadata.iter().map(|(key, value)| (key.clone(), text_of(value))));
        let physical = kept.get(PHYSICAL_NAME).cloned().unwrap_or_else(|| name.to_owned());
        let ids = metadata.get(NESTED_IDS).and_then(Value::as_object);
        let kind = field.get("type").ok_or_else(|| place.error("a field without a type"))?;
        let nullable = field.get("nullable").and_then(Value::as_bool).unwrap_or(true);
        let (kind, marks) = self.data_type(kind, &Nested { ids, prefix: physical }, &place)?;
        kept.extend(marks);
        Ok(Field::new(name, kind, nullable).with_metadata(kept))
    }

    /// The metadata that make a column mapped, under the keys the engine reads.
    fn mapped(&self, metadata: &Map<String, Value>, place: &Place) -> Result<HashMap<String, String>> {
        let id = metadata.get(MAPPED_ID).and_then(Value::as_i64);
        let name = metadata.get(MAPPED_NAME).and_then(Value::as_str);
        let missing = |key: &str| place.error(format!("columns are mapped, but it has no `{key}`"));
        match self.mapping {
            Mapping::None => return Ok(HashMap::new()),
            Mapping::Id if id.is_none() => return Err(missing(MAPPED_ID)),
            Mapping::Id | Mapping::Name => (),
        }
        let name = name.ok_or_else(|| missing(MAPPED_NAME))?;
        let id = id.map(|it| (FIELD_ID.to_owned(), it.to_string()));
        Ok(id.into_iter().chain([(PHYSICAL_NAME.to_owned(), name.to_owned())]).collect())
    }

    /// The type, and what the field must say beside it.
    fn data_type(
        &mut self,
        value: &Value,
        nested: &Nested<'_>,
        place: &Place,
    ) -> Result<(DataType, Vec<(String, String)>)> {
        match value {
            Value::String(name) => primitive(name, place),
            Value::Object(kind) => Ok((self.nested_type(kind, nested, place)?, Vec::new())),
            _ => Err(place.error("its type is neither a name nor an object")),
        }
    }

    fn nested_type(&mut self, kind: &Map<String, Value>, nested: &Nested<'_>, place: &Place) -> Result<DataType> {
        let inner = |key: &str| kind.get(key).ok_or_else(|| place.error(format!("its type has no `{key}`")));
        let flag = |key: &str| kind.get(key).and_then(Value::as_bool).unwrap_or(true);
        match kind.get("type").and_then(Value::as_str) {
            Some("struct") => Ok(DataType::Struct(self.fields(kind, place)?)),
            Some("array") => {
                let element = self.part("element", inner("elementType")?, flag("containsNull"), nested, place)?;
                Ok(DataType::List(Arc::new(element)))
            }
            Some("map") => {
                let key = self.part("key", inner("keyType")?, false, nested, place)?;
                let value = self.part("value", inner("valueType")?, flag("valueContainsNull"), nested, place)?;
                let entries = Field::new("key_value", DataType::Struct(vec![key, value].into()), false);
                Ok(DataType::Map(Arc::new(entries), false))
            }
            // A user-defined type is stored as its SQL type.
            Some("udt") => Ok(self.data_type(inner("sqlType")?, nested, place)?.0),
            other => Err(place.error(format!("its type is {other:?}"))),
        }
    }

    /// An element, key or value.
    fn part(&mut self, name: &str, kind: &Value, nullable: bool, nested: &Nested<'_>, place: &Place) -> Result<Field> {
        self.columns += 1;
        let nested = nested.below(name);
        let (kind, marks) = self.data_type(kind, &nested, &place.below(name))?;
        let id = nested.id().filter(|_| self.mapping != Mapping::None).map(|it| (FIELD_ID.to_owned(), it.to_string()));
        Ok(Field::new(name, kind, nullable).with_metadata(marks.into_iter().chain(id).collect()))
    }
}

/// The type of a name without parts; `None` for a name that is none.
pub(super) fn primitive_type(name: &str) -> Option<DataType> {
    primitive(name, &Place::default()).ok().map(|(kind, _)| kind)
}

fn primitive(name: &str, place: &Place) -> Result<(DataType, Vec<(String, String)>)> {
    let plain = |kind| Ok((kind, Vec::new()));
    match name {
        "string" => plain(DataType::Utf8),
        "long" => plain(DataType::Int64),
        "integer" => plain(DataType::Int32),
        "short" => plain(DataType::Int16),
        "byte" => plain(DataType::Int8),
        "float" => plain(DataType::Float32),
        "double" => plain(DataType::Float64),
        "boolean" => plain(DataType::Boolean),
        "binary" => plain(DataType::Binary),
        "date" => plain(DataType::Date32),
        "timestamp" => plain(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        "timestamp_ntz" => plain(DataType::Timestamp(TimeUnit::Microsecond, None)),
        "void" | "null" => plain(DataType::Null),
        "decimal" => plain(DataType::Decimal128(10, 0)),
        "variant" => Ok((
            variant(),
            vec![
                (TYPE.to_owned(), VARIANT.to_owned()),
                (EXTENSION_NAME.to_owned(), "arrow.parquet.variant".to_owned()),
            ],
        )),
        _ => parameterised(name, place),
    }
}

/// `decimal(p,s)`, `char(n)`, `varchar(n)`, and collated strings.
fn parameterised(name: &str, place: &Place) -> Result<(DataType, Vec<(String, String)>)> {
    if let Some(inside) = inside(name, "decimal") {
        let decimal = || {
            let (precision, scale) = inside.split_once(',')?;
            Some((precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?))
        };
        let valid =
            |(precision, scale): &(u8, i8)| (1..=38).contains(precision) && (0..=*precision as i8).contains(scale);
        let (precision, scale) =
            decimal().filter(valid).ok_or_else(|| place.error(format!("`{name}` is no decimal of up to 38 digits")))?;
        return Ok((DataType::Decimal128(precision, scale), Vec::new()));
    }
    let bounded = inside(name, "char").or_else(|| inside(name, "varchar"));
    if bounded.is_some_and(|it| it.trim().parse::<u32>().is_ok()) {
        return Ok((DataType::Utf8, vec![(CHAR_VARCHAR.to_owned(), name.to_owned())]));
    }
    if name.starts_with("string collate ") {
        return Ok((DataType::Utf8, Vec::new()));
    }
    Err(DeltaError::UnsupportedType { column: place.0.join("."), kind: name.to_owned() })
}

fn inside<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    name.strip_prefix(prefix)?.trim_start().strip_prefix('(')?.strip_suffix(')')
}

fn variant() -> DataType {
    let part = |name: &str| Field::new(name, DataType::Binary, false);
    DataType::Struct(vec![part("metadata"), part("value")].into())
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| DeltaError::Schema(format!("{what} is not an object")))
}

/// Metadata as Arrow holds them.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
