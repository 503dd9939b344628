//! What `ALTER TABLE` makes of a table's columns: pure functions from schema to schema.
//!
//! A path goes through structs by field name, through lists by `element`, through maps by `key` and `value`; names match
//! without case and keep theirs. Fields that stay keep their metadata, by which a format knows them again; new ones have
//! none but their comment.
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use lakebed_core::{Error, ErrorKind, Result};

use crate::sql::{
    parse::types::COMMENT,
    scope::same,
    write::{ColumnChange, ColumnPlace, NewColumn},
};

/// The columns with `new` added; `None` if all are there and that is no mistake.
pub(super) fn add(schema: &Schema, new: &[NewColumn], if_not_exists: bool) -> Result<Option<Schema>> {
    let mut fields = schema.fields().clone();
    let mut changed = false;
    for column in new {
        let (name, parent) = split(&column.path)?;
        if !column.field.is_nullable() {
            return Err(Error::invalid(format!(
                "new column `{name}` cannot be NOT NULL: the rows that are there have none"
            ))
            .with_hint("add it, fill it with UPDATE, then ALTER COLUMN … SET NOT NULL"));
        }
        let mut there = false;
        fields = within(&fields, parent, &mut |siblings| {
            if find(siblings, name).is_ok() {
                there = true;
                return Ok(siblings.clone());
            }
            let mut siblings: Vec<FieldRef> = siblings.iter().cloned().collect();
            let at = position(&siblings, column.place.as_ref())?.unwrap_or(siblings.len());
            siblings.insert(at, Arc::clone(&column.field));
            Ok(siblings.into())
        })?;
        if there && !if_not_exists {
            let message = format!("there is a column `{}`", column.path.join("."));
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        changed |= !there;
    }
    Ok(changed.then(|| with(schema, fields)))
}

/// The columns without those at `paths`; `None` if none is there and that is no mistake.
pub(super) fn drop(schema: &Schema, paths: &[Vec<String>], if_exists: bool) -> Result<Option<Schema>> {
    let mut fields = schema.fields().clone();
    let mut changed = false;
    for path in paths {
        if if_exists && spelled(&with(schema, fields.clone()), path).is_err() {
            continue;
        }
        let (name, parent) = split(path)?;
        fields = within(&fields, parent, &mut |siblings| {
            let at = find(siblings, name)?;
            if siblings.len() == 1 {
                return Err(Error::invalid(format!("`{}` is the last column: something must stay", path.join("."))));
            }
            Ok(siblings.iter().enumerate().filter(|it| it.0 != at).map(|it| Arc::clone(it.1)).collect())
        })?;
        changed = true;
    }
    Ok(changed.then(|| with(schema, fields)))
}

pub(super) fn rename(schema: &Schema, path: &[String], to: &str) -> Result<Schema> {
    let (name, parent) = split(path)?;
    let fields = within(schema.fields(), parent, &mut |siblings| {
        let at = find(siblings, name)?;
        if siblings.iter().enumerate().any(|(other, it)| other != at && same(it.name(), to)) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is a column `{to}`")));
        }
        Ok(replaced(siblings, at, siblings[at].as_ref().clone().with_name(to)))
    })?;
    Ok(with(schema, fields))
}

pub(super) fn alter(schema: &Schema, path: &[String], change: &ColumnChange) -> Result<Schema> {
    let (name, parent) = split(path)?;
    let fields = within(schema.fields(), parent, &mut |siblings| {
        let at = find(siblings, name)?;
        let field = siblings[at].as_ref().clone();
        let field = match change {
            ColumnChange::Comment(text) => {
                let mut metadata = field.metadata().clone();
                metadata.insert(COMMENT.to_owned(), text.clone());
                field.with_metadata(metadata)
            }
            ColumnChange::SetNotNull => field.with_nullable(false),
            ColumnChange::DropNotNull => field.with_nullable(true),
            ColumnChange::Type(to) => field.with_data_type(to.data_type().clone()),
            ColumnChange::Place(place) => return moved(siblings, at, place),
        };
        Ok(replaced(siblings, at, field))
    })?;
    Ok(with(schema, fields))
}

/// The path in the spelling of the schema.
///
/// # Errors
/// [`ErrorKind::Invalid`] for a column that is not there.
pub(super) fn spelled(schema: &Schema, path: &[String]) -> Result<Vec<String>> {
    let (name, parent) = split(path)?;
    let mut found = Vec::new();
    let mut fields = schema.fields().clone();
    for step in parent {
        let (step, inside) = enter(&fields, step)?;
        found.push(step);
        fields = inside;
    }
    found.push(fields[find(&fields, name)?].name().clone());
    Ok(found)
}

fn split(path: &[String]) -> Result<(&str, &[String])> {
    let (name, parent) = path.split_last().ok_or_else(|| Error::internal("a column without a name"))?;
    Ok((name, parent))
}

fn with(schema: &Schema, fields: Fields) -> Schema {
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// `fields` with `change` made to those inside the field that `path` leads to.
fn within(fields: &Fields, path: &[String], change: &mut dyn FnMut(&Fields) -> Result<Fields>) -> Result<Fields> {
    let Some((first, rest)) = path.split_first() else { return change(fields) };
    let at = find(fields, first)?;
    let kind = inside(fields[at].data_type(), first, rest, change)?;
    Ok(replaced(fields, at, fields[at].as_ref().clone().with_data_type(kind)))
}

fn inside(
    kind: &DataType,
    name: &str,
    path: &[String],
    change: &mut dyn FnMut(&Fields) -> Result<Fields>,
) -> Result<DataType> {
    match kind {
        DataType::Struct(fields) => Ok(DataType::Struct(within(fields, path, change)?)),
        DataType::List(item) => {
            let rest = step(path, &["element"], name)?.1;
            let changed = inside(item.data_type(), "element", rest, change)?;
            Ok(DataType::List(Arc::new(item.as_ref().clone().with_data_type(changed))))
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(pair) = entries.data_type() else { return Err(no_fields(name)) };
            let (at, rest) = step(path, &["key", "value"], name)?;
            let changed = inside(pair[at].data_type(), ["key", "value"][at], rest, change)?;
            let pair = replaced(pair, at, pair[at].as_ref().clone().with_data_type(changed));
            let entries = entries.as_ref().clone().with_data_type(DataType::Struct(pair));
            Ok(DataType::Map(Arc::new(entries), *sorted))
        }
        _ => Err(no_fields(name)),
    }
}

/// The step into a list or map: which of `words` it is, and the path behind it.
fn step<'a>(path: &'a [String], words: &[&str], name: &str) -> Result<(usize, &'a [String])> {
    let found = path.split_first().and_then(|(first, rest)| Some((words.iter().position(|it| same(it, first))?, rest)));
    found
        .ok_or_else(|| Error::invalid(format!("`{name}` holds elements: go on with `{name}.{}`", words.join("` or `"))))
}

/// One step into a field of `fields`, by the same rules.
fn enter(fields: &Fields, step: &str) -> Result<(String, Fields)> {
    let field = &fields[find(fields, step)?];
    let inside = match field.data_type() {
        DataType::Struct(fields) => fields.clone(),
        DataType::List(item) => vec![item.as_ref().clone().with_name("element")].into(),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => ["key", "value"]
                .iter()
                .zip(pair)
                .map(|(name, it)| Arc::new(it.as_ref().clone().with_name(*name)))
                .collect(),
            _ => return Err(no_fields(step)),
        },
        _ => return Err(no_fields(step)),
    };
    Ok((field.name().clone(), inside))
}

fn no_fields(name: &str) -> Error {
    Error::invalid(format!("`{name}` is no struct: it has no fields"))
}

/// The field that `name` stands for.
pub(super) fn find(fields: &Fields, name: &str) -> Result<usize> {
    if let Some(exact) = fields.iter().position(|it| it.name() == name) {
        return Ok(exact);
    }
    let mut alike = fields.iter().enumerate().filter(|it| same(it.1.name(), name));
    match (alike.next(), alike.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some((_, one)), Some((_, two))) => Err(Error::invalid(format!(
            "column `{name}` is ambiguous: `{}` and `{}` differ by case only",
            one.name(),
            two.name()
        ))),
        (None, _) => {
            let names = || fields.iter().map(|it| it.name().as_str());
            let error = Error::invalid(format!("no column is called `{name}`"));
            Err(match crate::text::did_you_mean(name, names()) {
                Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                None => error.with_hint(format!("the columns here are {}", names().collect::<Vec<_>>().join(", "))),
            })
        }
    }
}

/// Where a column of this place goes; `None` is the end.
fn position(siblings: &[FieldRef], place: Option<&ColumnPlace>) -> Result<Option<usize>> {
    match place {
        None => Ok(None),
        Some(ColumnPlace::First) => Ok(Some(0)),
        Some(ColumnPlace::After(name)) => Ok(Some(find(&siblings.to_vec().into(), name)? + 1)),
    }
}

fn moved(siblings: &Fields, at: usize, place: &ColumnPlace) -> Result<Fields> {
    let mut siblings: Vec<FieldRef> = siblings.iter().cloned().collect();
    let field = siblings.remove(at);
    let to = position(&siblings, Some(place))?.unwrap_or(siblings.len());
    siblings.insert(to, field);
    Ok(siblings.into())
}

fn replaced(fields: &Fields, at: usize, field: Field) -> Fields {
    let mut fields: Vec<FieldRef> = fields.iter().cloned().collect();
    fields[at] = Arc::new(field);
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{
        parse::parse,
        statement::Kind,
        write::{Alteration, Write},
    };

    fn altered(statement: &str) -> Result<Option<Schema>> {
        let address = DataType::Struct(vec![Field::new("City", DataType::Utf8, true)].into());
        let list = DataType::List(Arc::new(Field::new("element", address.clone(), true)));
        let schema = Schema::new(vec![
            Field::new("Id", DataType::Int64, false),
            Field::new("addr", address, true),
            Field::new("past", list, true),
        ]);
        let parsed = parse(&format!("ALTER TABLE t {statement}"))?.remove(0);
        let Kind::Write(write) = parsed.kind else { panic!("{statement}") };
        let Write::Alter { change, .. } = *write else { panic!("{statement}") };
        match *change {
            Alteration::AddColumns { columns, if_not_exists } => add(&schema, &columns, if_not_exists),
            Alteration::DropColumns { columns, if_exists } => drop(&schema, &columns, if_exists),
            Alteration::RenameColumn { from, to } => rename(&schema, &from, &to).map(Some),
            Alteration::AlterColumn { column, change } => alter(&schema, &column, &change).map(Some),
            other => panic!("{other:?}"),
        }
    }

    fn shown(fields: &Fields) -> String {
        fields.iter().map(|it| one(it)).collect::<Vec<_>>().join(", ")
    }

    fn one(field: &Field) -> String {
        let null = if field.is_nullable() { "" } else { "!" };
        let comment = field.metadata().get(COMMENT).map(|it| format!(" '{it}'")).unwrap_or_default();
        match field.data_type() {
            DataType::Struct(fields) => format!("{}{null}{{{}}}{comment}", field.name(), shown(fields)),
            DataType::List(item) => format!("{}{null}[{}]{comment}", field.name(), one(item)),
            other => format!("{}{null} {other}{comment}", field.name()),
        }
    }

    #[test]
    fn columns_come_go_and_change() {
        for (statement, expected) in [
            ("ADD COLUMN n INT COMMENT 'x'", "Id! Int64, addr{City Utf8}, past[element{City Utf8}], n Int32 'x'"),
            (
                "ADD COLUMNS (a INT FIRST, b DATE AFTER id)",
                "a Int32, Id! Int64, b Date32, addr{City Utf8}, past[element{City Utf8}]",
            ),
            ("ADD COLUMN ADDR.zip STRING FIRST", "Id! Int64, addr{zip Utf8, City Utf8}, past[element{City Utf8}]"),
            ("ADD COLUMN past.element.zip STRING", "Id! Int64, addr{City Utf8}, past[element{City Utf8, zip Utf8}]"),
            ("ADD COLUMN id INT", "there is a column `id`"),
            ("ADD COLUMN IF NOT EXISTS id INT", "as it was"),
            ("ADD COLUMN n INT NOT NULL", "new column `n` cannot be NOT NULL: the rows that are there have none"),
            ("ADD COLUMN id.x INT", "`id` is no struct: it has no fields"),
            ("ADD COLUMN past.zip INT", "`past` holds elements: go on with `past.element`"),
            ("DROP COLUMN ADDR", "Id! Int64, past[element{City Utf8}]"),
            ("DROP COLUMNS (addr, past)", "Id! Int64"),
            ("DROP COLUMN addr.city", "`addr.city` is the last column: something must stay"),
            ("DROP COLUMN IF EXISTS nope, nope2", "as it was"),
            ("DROP COLUMN nope", "no column is called `nope`"),
            ("RENAME COLUMN ID TO Nr", "Nr! Int64, addr{City Utf8}, past[element{City Utf8}]"),
            ("RENAME COLUMN id TO ID", "ID! Int64, addr{City Utf8}, past[element{City Utf8}]"),
            ("RENAME COLUMN addr.city TO town", "Id! Int64, addr{town Utf8}, past[element{City Utf8}]"),
            ("RENAME COLUMN id TO ADDR", "there is a column `ADDR`"),
            ("ALTER COLUMN id DROP NOT NULL", "Id Int64, addr{City Utf8}, past[element{City Utf8}]"),
            ("ALTER COLUMN addr.city SET NOT NULL", "Id! Int64, addr{City! Utf8}, past[element{City Utf8}]"),
            ("ALTER COLUMN addr COMMENT 'where'", "Id! Int64, addr{City Utf8} 'where', past[element{City Utf8}]"),
            ("ALTER COLUMN id TYPE DECIMAL(20, 0)", "Id! Decimal128(20, 0), addr{City Utf8}, past[element{City Utf8}]"),
            ("ALTER COLUMN past FIRST", "past[element{City Utf8}], Id! Int64, addr{City Utf8}"),
            ("ALTER COLUMN id AFTER addr", "addr{City Utf8}, Id! Int64, past[element{City Utf8}]"),
        ] {
            let found = match altered(statement) {
                Ok(Some(schema)) => shown(schema.fields()),
                Ok(None) => "as it was".to_owned(),
                Err(err) => err.to_string(),
            };
            assert_eq!(found, expected, "{statement}");
        }
    }
}
