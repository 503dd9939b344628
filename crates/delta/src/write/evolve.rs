//! A table's schema changed.
//!
//! 1. Each field of the new schema is an old column or a new one. Where columns are mapped the id decides, or the physical
//!    name; a field that carries neither is the column of its name, so that nobody loses a column by leaving its marks out.
//!    Elsewhere the name decides.
//! 2. Old columns may take nulls from now on, get comments, and stand in another order; mapped ones may get another name, or
//!    go. They keep whatever the format itself wrote about them.
//! 3. New columns take nulls, unless the table has no rows. Mapped ones get the next id and a physical name of their own;
//!    one that comes with both, from an earlier try, keeps them.
//! 4. What names columns follows: the partition, and the list of columns with statistics. A CHECK constraint is text: a
//!    column it speaks of can neither go nor be renamed.
//!
//! Spec: Delta PROTOCOL.md, "Column Mapping", "Writer Requirements for Column Mapping", "Schema Serialization Format".
use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Fields};
use lakebed_core::{
    Error, ErrorKind, Result,
    change::Change,
    env::Env,
    scan::{FIELD_ID, PHYSICAL_NAME},
};

use self::numbers::Numbers;
pub(super) use self::numbers::turn_on_mapping;
use super::{constraints, draft::Draft, settings::MODE};
use crate::schema::{Mapping, physical_name, text};

mod names;
mod numbers;

const MAX_ID: &str = "delta.columnMapping.maxColumnId";
const STATS_COLUMNS: &str = "delta.dataSkippingStatsColumns";
/// Metadata that the format wrote about a column, and that stay with it.
const KEPT: [&str; 3] = ["CURRENT_DEFAULT", "EXISTS_DEFAULT", "__CHAR_VARCHAR_TYPE_STRING"];
/// Metadata that say which column in a file it is, under all their names.
const MARKS: [&str; 4] = [FIELD_ID, PHYSICAL_NAME, "delta.columnMapping.id", "delta.columnMapping.physicalName"];

/// Makes the schemas of `changes` the table's, one after the other.
pub(super) async fn apply(draft: &mut Draft<'_>, changes: &[Change]) -> Result<()> {
    for change in changes {
        if let Change::Schema(schema) = change {
            evolve(draft, schema.fields()).await?;
        }
    }
    Ok(())
}

async fn evolve(draft: &mut Draft<'_>, wanted: &Fields) -> Result<()> {
    let old = draft.schema()?;
    let numbers = match old.mapping {
        Mapping::None => None,
        Mapping::Id | Mapping::Name => Some(Numbers::of(draft.env, old.arrow.fields(), &draft.metadata.configuration)?),
    };
    let mut evolution = Evolution { numbers, not_null: Vec::new(), gone: Vec::new() };
    let fields: Fields = evolution.fields(old.arrow.fields(), wanted, &[])?.into();
    let Evolution { numbers, not_null, gone } = evolution;
    if let Some(column) = not_null.first()
        && draft.onto.state.files().await?.count() > 0
    {
        let message =
            format!("column `{column}` cannot be NOT NULL: the table has rows that have no value there, or may");
        return Err(Error::invalid(message).with_hint("add it as it is, and fill it"));
    }
    for column in &gone {
        if let Some(name) = constraints::speaks_of(&draft.metadata.configuration, column) {
            let message = format!("constraint `{name}` speaks of column `{column}`");
            return Err(Error::new(ErrorKind::Refused, message).with_hint("drop the constraint first"));
        }
    }
    let partition = old.partition_fields().map(|field| {
        let now = fields.iter().find(|it| physical_name(it) == physical_name(field));
        now.map(|it| it.name().clone())
            .ok_or_else(|| Error::invalid(format!("column `{}` partitions the table: it cannot go", field.name())))
    });
    draft.metadata.partition_columns = partition.collect::<Result<_>>()?;
    names::follow(&mut draft.metadata.configuration, STATS_COLUMNS, old.arrow.fields(), &fields);
    if let Some(numbers) = numbers {
        draft.metadata.configuration.insert(MAX_ID.to_owned(), numbers.last.to_string());
    }
    draft.metadata.schema_string = text::to_text(&fields, Some(&draft.metadata.schema_string))?;
    require_types(draft, &fields)?;
    draft.schema().map(|_| ())
}

/// The features that the types of `fields` need.
pub(super) fn features(fields: &Fields) -> BTreeSet<&'static str> {
    let mut needed = BTreeSet::new();
    for field in fields {
        if !field.is_nullable() {
            needed.insert("invariants");
        }
        needed.extend(match field.data_type() {
            DataType::Timestamp(_, None) => BTreeSet::from(["timestampNtz"]),
            DataType::Struct(_) if crate::schema::is_variant(field) => BTreeSet::from(["variantType"]),
            DataType::Struct(inner) => features(inner),
            DataType::List(inner) => features(&vec![relaxed(inner)].into()),
            DataType::Map(entries, _) => features(&vec![relaxed(entries)].into()),
            _ => BTreeSet::new(),
        });
    }
    needed
}

/// Elements and entries are no columns: that they are there says nothing of nulls.
fn relaxed(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Struct(parts) if field.name() == "key_value" => {
            let parts: Fields = parts.iter().map(relaxed).collect();
            Arc::new(Field::new(field.name(), DataType::Struct(parts), true))
        }
        _ => Arc::new(field.as_ref().clone().with_nullable(true)),
    }
}

fn require_types(draft: &mut Draft<'_>, fields: &Fields) -> Result<()> {
    features(fields).into_iter().try_for_each(|it| draft.require(it, "a type of the new schema"))
}

/// The schema of a new table: marks of its own, with ids above `highest`, or none.
pub(super) fn of_new(env: &Env, fields: &Fields, mapped: bool, highest: i64) -> Result<(Fields, Option<i64>)> {
    let numbers = mapped.then(|| Numbers::above(env, highest));
    let mut evolution = Evolution { numbers, not_null: Vec::new(), gone: Vec::new() };
    let fields = fields.iter().map(|it| evolution.added(&without_marks(it), &[])).collect::<Result<Vec<_>>>()?;
    Ok((fields.into(), evolution.numbers.map(|it| it.last)))
}

/// Whether these names can be columns of a table.
pub(super) fn check_names(fields: &Fields, mapped: bool) -> Result<()> {
    if fields.is_empty() {
        return Err(Error::invalid("a table has at least one column"));
    }
    names::check_distinct(fields, &[])?;
    fields.iter().try_for_each(|it| names::check(it.name(), it.name(), mapped))
}

fn without_marks(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| !MARKS.contains(&key.as_str()));
    field.clone().with_metadata(metadata)
}

/// The field with the members of every struct in its type replaced, however deep in lists and maps.
fn inside(field: Field, each: &mut dyn FnMut(&FieldRef) -> Result<FieldRef>) -> Result<Field> {
    let kind = match field.data_type() {
        _ if crate::schema::is_variant(&field) => return Ok(field),
        DataType::Struct(members) => DataType::Struct(members.iter().map(&mut *each).collect::<Result<_>>()?),
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            DataType::List(Arc::new(inside(element.as_ref().clone(), each)?))
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(parts) = entries.data_type() else { return Ok(field) };
            let parts = parts.iter().map(|it| Ok(Arc::new(inside(it.as_ref().clone(), each)?)));
            let parts = DataType::Struct(parts.collect::<Result<_>>()?);
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(parts)), *sorted)
        }
        _ => return Ok(field),
    };
    Ok(field.with_data_type(kind))
}

struct Evolution<'a> {
    /// `None` where columns are not mapped.
    numbers: Option<Numbers<'a>>,
    /// Columns that were not there, or took nulls, and no longer may.
    not_null: Vec<String>,
    /// Names that are no longer those of their columns.
    gone: Vec<String>,
}

impl Evolution<'_> {
    fn fields(&mut self, old: &Fields, new: &Fields, above: &[String]) -> Result<Vec<Field>> {
        if new.is_empty() {
            return Err(Error::invalid("a table, and a struct in it, has at least one column"));
        }
        names::check_distinct(new, above)?;
        let mut left: Vec<&FieldRef> = old.iter().collect();
        let mut fields = Vec::with_capacity(new.len());
        for field in new {
            let at = left.iter().position(|it| self.is_same(it, field, old));
            fields.push(match at {
                Some(at) => self.kept(left.remove(at), field, above)?,
                None => self.added(field, above)?,
            });
        }
        for dropped in left {
            let path = names::joined(above, dropped.name());
            if self.numbers.is_none() {
                return Err(needs_mapping(format!("column `{path}` cannot be dropped")));
            }
            self.gone.push(dropped.name().clone());
        }
        Ok(fields)
    }

    fn is_same(&self, old: &Field, new: &Field, all: &Fields) -> bool {
        let by = |key: &str| Some((old.metadata().get(key)?, new.metadata().get(key)?)).map(|(a, b)| a == b);
        let marked = MARKS.iter().any(|it| new.metadata().contains_key(*it));
        match &self.numbers {
            Some(_) if marked => by(PHYSICAL_NAME).or_else(|| by(FIELD_ID)).unwrap_or(false),
            _ => {
                let exact = all.iter().any(|it| it.name() == new.name());
                if exact { old.name() == new.name() } else { old.name().eq_ignore_ascii_case(new.name()) }
            }
        }
    }

    /// An old column as it is from now on.
    fn kept(&mut self, old: &Field, new: &Field, above: &[String]) -> Result<Field> {
        let path = names::joined(above, old.name());
        if old.name() != new.name() {
            if self.numbers.is_none() {
                return Err(needs_mapping(format!("column `{path}` cannot be renamed to `{}`", new.name())));
            }
            self.gone.push(old.name().clone());
        }
        if old.is_nullable() && !new.is_nullable() {
            self.not_null.push(path);
        }
        let mut metadata = without_marks(new).metadata().clone();
        for (key, value) in old.metadata() {
            if MARKS.contains(&key.as_str())
                || KEPT.contains(&key.as_str())
                || key.starts_with("delta.")
                || key.starts_with("lakebed.")
            {
                metadata.insert(key.clone(), value.clone());
            }
        }
        let below = [above, &[new.name().clone()]].concat();
        let kind = self.kind(old, new, &below)?;
        Ok(Field::new(new.name(), kind, new.is_nullable()).with_metadata(metadata))
    }

    fn kind(&mut self, old: &Field, new: &Field, path: &[String]) -> Result<DataType> {
        use DataType::{FixedSizeList, LargeList, List, Map, Null, Struct};
        Ok(match (old.data_type(), new.data_type()) {
            (a, b) if a == b => a.clone(),
            (Struct(a), Struct(b)) => Struct(self.fields(a, b, path)?.into()),
            (List(a), List(b) | LargeList(b) | FixedSizeList(b, _)) => List(self.part(a, b, "element", path)?),
            (Map(a, sorted), Map(b, _)) => {
                let (Struct(a), Struct(b)) = (a.data_type(), b.data_type()) else {
                    return Err(other_type(old, new, path));
                };
                let ([key_a, value_a], [key_b, value_b]) = (&a[..], &b[..]) else {
                    return Err(other_type(old, new, path));
                };
                let parts = vec![self.part(key_a, key_b, "key", path)?, self.part(value_a, value_b, "value", path)?];
                Map(Arc::new(Field::new("key_value", Struct(parts.into()), false)), *sorted)
            }
            (Null, _) => self.added(new, path.split_last().map_or(&[], |it| it.1))?.data_type().clone(),
            (a, b) if text::same_type(a, b) => a.clone(),
            _ => return Err(other_type(old, new, path)),
        })
    }

    /// An element, key or value.
    fn part(&mut self, old: &Field, new: &Field, name: &str, above: &[String]) -> Result<FieldRef> {
        let path = [above, &[name.to_owned()]].concat();
        if old.is_nullable() && !new.is_nullable() {
            self.not_null.push(path.join("."));
        }
        let kind = self.kind(old, new, &path)?;
        Ok(Arc::new(Field::new(name, kind, new.is_nullable()).with_metadata(old.metadata().clone())))
    }

    /// A column that was not there.
    fn added(&mut self, new: &Field, above: &[String]) -> Result<Field> {
        let path = names::joined(above, new.name());
        names::check(new.name(), &path, self.numbers.is_some())?;
        if !new.is_nullable() {
            self.not_null.push(path);
        }
        let field = match &mut self.numbers {
            Some(numbers) => numbers.give(new),
            None => without_marks(new),
        };
        let below = [above, &[new.name().clone()]].concat();
        if let DataType::Struct(members) = field.data_type() {
            names::check_distinct(members, &below)?;
        }
        // What stands inside takes nulls or not as it says: there is no row that has it yet.
        let before = self.not_null.len();
        let field = inside(field, &mut |it| Ok(Arc::new(self.added(it, &below)?)))?;
        self.not_null.truncate(before);
        Ok(field)
    }
}

fn needs_mapping(message: String) -> Error {
    Error::invalid(format!("{message}: its columns are not mapped")).with_hint(
        "`ALTER TABLE … SET TBLPROPERTIES ('delta.feature.columnMapping' = 'supported', 'delta.columnMapping.mode' = 'name')` \
         maps them: engines that do not know column mapping can then no longer read the table",
    )
}

fn other_type(old: &Field, new: &Field, path: &[String]) -> Error {
    let (before, after) = (old.data_type(), new.data_type());
    Error::unsupported(format!(
        "column `{}` is {before} and cannot become {after}: this build changes no types",
        path.join(".")
    ))
}
