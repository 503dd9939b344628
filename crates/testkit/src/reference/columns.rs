//! Finds the table's columns in a file.
//!
//! At the top a partition value wins over what the file holds. Then, at every level of nesting: the child that matches by
//! id, physical name or name; if there is none, the initial default, else null. The elements of lists and maps match by
//! their place.
use arrow_schema::{DataType, Field, Fields, SchemaRef};
use lakebed_core::{
    Error, Result,
    file::DataFile,
    scan::{ColumnMapping, FIELD_ID, INITIAL_DEFAULT, MatchBy, PHYSICAL_NAME},
};

use super::{coerce, variant};
use crate::value::Value;

/// The columns of one table in one file.
pub(super) struct Finder<'a> {
    file_schema: &'a SchemaRef,
    table: &'a ColumnMapping,
    by: MatchBy,
    file: &'a DataFile,
}

impl<'a> Finder<'a> {
    pub(super) fn new(file_schema: &'a SchemaRef, table: &'a ColumnMapping, by: MatchBy, file: &'a DataFile) -> Self {
        Self { file_schema, table, by, file }
    }

    /// One value a column of the table.
    pub(super) fn values(&self, row: &Value) -> Result<Vec<Value>> {
        let fields = self.table.schema.fields();
        fields
            .iter()
            .map(|field| self.value(row, field))
            .collect::<Result<_>>()
            .map_err(|err| Error::new(err.kind(), format!("{}: {err}", self.file.path)))
    }

    fn value(&self, row: &Value, field: &Field) -> Result<Value> {
        match self.file.partition.iter().find(|(name, _)| name == field.name()) {
            Some((_, Some(scalar))) => coerce::to_type(Value::from(scalar), field.data_type()),
            Some((_, None)) => Ok(Value::Null),
            None => child(row, self.file_schema.fields(), field, self.by),
        }
    }
}

/// The value of the table's `field` in `row`, a struct of the file with `fields`.
fn child(row: &Value, fields: &Fields, field: &Field, by: MatchBy) -> Result<Value> {
    let Some(place) = place_of(fields, field, by) else { return default_of(field) };
    match row {
        Value::Struct(values) => resolve(&values[place].1, &fields[place], field, by),
        _ => Ok(Value::Null),
    }
}

fn place_of(fields: &Fields, wanted: &Field, by: MatchBy) -> Option<usize> {
    let position = |test: &dyn Fn(&Field) -> bool| fields.iter().position(|it| test(it));
    match by {
        MatchBy::FieldId => {
            let id = wanted.metadata().get(FIELD_ID)?;
            position(&|it| it.metadata().get(FIELD_ID) == Some(id))
        }
        MatchBy::PhysicalName => {
            let name = wanted.metadata().get(PHYSICAL_NAME).unwrap_or(wanted.name());
            position(&|it| it.name() == name)
        }
        MatchBy::Name => position(&|it| it.name() == wanted.name())
            .or_else(|| position(&|it| it.name().to_lowercase() == wanted.name().to_lowercase())),
    }
}

fn default_of(field: &Field) -> Result<Value> {
    match field.metadata().get(INITIAL_DEFAULT) {
        Some(json) => coerce::from_json(json, field.data_type()),
        None => Ok(Value::Null),
    }
}

/// `value` of the file's field `from` as a value of the table's field `to`.
fn resolve(value: &Value, from: &Field, to: &Field, by: MatchBy) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if is_variant(to) {
        return variant::variant_json(value, from);
    }
    match (value, from.data_type(), to.data_type()) {
        (Value::Struct(_), DataType::Struct(have), DataType::Struct(want)) => {
            let fields = want.iter().map(|it| Ok((it.name().clone(), child(value, have, it, by)?)));
            Ok(Value::Struct(fields.collect::<Result<_>>()?))
        }
        (Value::List(items), have, want) => {
            let (Some(have), Some(want)) = (item_of(have), item_of(want)) else { return mismatch(from, to) };
            Ok(Value::List(items.iter().map(|it| resolve(it, have, want, by)).collect::<Result<_>>()?))
        }
        (Value::Map(pairs), DataType::Map(have, _), DataType::Map(want, _)) => {
            let (Some((have_key, have_value)), Some((want_key, want_value))) = (entry_of(have), entry_of(want)) else {
                return mismatch(from, to);
            };
            let pair = |(key, value): &(Value, Value)| {
                Ok((resolve(key, have_key, want_key, by)?, resolve(value, have_value, want_value, by)?))
            };
            Ok(Value::Map(pairs.iter().map(pair).collect::<Result<_>>()?))
        }
        (Value::Struct(_) | Value::Map(_), ..) => mismatch(from, to),
        (leaf, _, want) => coerce::to_type(leaf.clone(), want)
            .map_err(|err| Error::new(err.kind(), format!("column `{}`: {err}", to.name()))),
    }
}

fn mismatch(from: &Field, to: &Field) -> Result<Value> {
    Err(Error::corrupt(format!(
        "column `{}` is {} in the file, {} in the table",
        to.name(),
        from.data_type(),
        to.data_type()
    )))
}

fn item_of(list: &DataType) -> Option<&Field> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

fn entry_of(entries: &Field) -> Option<(&Field, &Field)> {
    match entries.data_type() {
        DataType::Struct(fields) => Some((fields.first()?, fields.get(1)?)),
        _ => None,
    }
}

/// Whether the table's field is a variant: a struct that carries Parquet's extension name.
pub fn is_variant(field: &Field) -> bool {
    let name = field.metadata().get("ARROW:extension:name").map(String::as_str);
    matches!(name, Some("arrow.parquet.variant" | "parquet.variant"))
}
