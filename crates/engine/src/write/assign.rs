//! Store assignment: how a value becomes one of a column's type, or an error.
//!
//! A cast keeps the value, rounds decimals to the column's scale and floating point to its precision, or fails: numbers
//! that do not fit, fractions where there are none, text that is no number. It never makes a null and never wraps around.
//! Structs go by the names of their fields, without case; a field the input lacks is null, one the column lacks an error.
//! The way is found once a statement, so that types that never fit fail before a row is read.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, MapArray, StructArray, cast::AsArray, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options, display::FormatOptions};
use arrow_ord::cmp::distinct;
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use arrow_select::nullif::nullif;
use lakebed_core::{Error, Result};

use super::{check::value_text, refit::same_text};
use crate::{system::types, text::did_you_mean, variant::is_variant};

/// The way from an input column to a column of the table.
#[derive(Debug, Clone)]
pub(super) enum Assign {
    /// Types are equal, or both text.
    Same,
    Cast(Cast),
    /// The input is nothing but nulls.
    Nulls(DataType),
    Struct(Fields, Vec<Option<(usize, Assign)>>),
    List(FieldRef, Box<Assign>),
    Map(FieldRef, bool, Box<[Assign; 2]>),
}

/// A cast of flat values that is checked.
#[derive(Debug, Clone)]
pub(super) struct Cast {
    /// The column's path and the name of its type, for errors.
    path: String,
    kind: String,
    to: DataType,
    /// Whether values must come back from the cast as they were.
    exact: bool,
}

impl Assign {
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) if values of `from` never go into `to`.
    pub(super) fn find(from: &Field, to: &Field, path: &str) -> Result<Self> {
        if is_variant(from) || is_variant(to) {
            return Err(super::refuse_type(path, "VARIANT"));
        }
        match (from.data_type(), to.data_type()) {
            (a, b) if a == b || same_text(a, b) => Ok(Self::Same),
            (DataType::Null, _) => Ok(Self::Nulls(to.data_type().clone())),
            (DataType::Struct(found), DataType::Struct(wanted)) => Self::fields(found, wanted, path),
            (DataType::List(found), DataType::List(wanted)) => {
                let item = Self::find(found, wanted, &format!("{path}.element"))?;
                Ok(Self::List(Arc::clone(wanted), Box::new(item)))
            }
            (DataType::Map(found, _), DataType::Map(wanted, sorted)) => {
                let (DataType::Struct(found), DataType::Struct(pair)) = (found.data_type(), wanted.data_type()) else {
                    return Err(never(from, to, path));
                };
                if found.len() != 2 || pair.len() != 2 {
                    return Err(never(from, to, path));
                }
                let key = Self::find(&found[0], &pair[0], &format!("{path}.key"))?;
                let value = Self::find(&found[1], &pair[1], &format!("{path}.value"))?;
                Ok(Self::Map(Arc::clone(wanted), *sorted, Box::new([key, value])))
            }
            (a, b) => match castable(a, b) {
                true => Ok(Self::Cast(Cast {
                    path: path.to_owned(),
                    kind: types::name(to),
                    to: b.clone(),
                    exact: must_be_exact(a, b),
                })),
                false => Err(never(from, to, path)),
            },
        }
    }

    fn fields(found: &Fields, wanted: &Fields, path: &str) -> Result<Self> {
        let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
        if let Some(extra) = found.iter().find(|it| !wanted.iter().any(|to| same(to.name(), it.name()))) {
            let error = Error::invalid(format!("column `{path}` has no field `{}`", extra.name()));
            return Err(match did_you_mean(extra.name(), wanted.iter().map(|it| it.name().as_str())) {
                Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                None => error,
            });
        }
        let mut children = Vec::with_capacity(wanted.len());
        for to in wanted {
            let exact = found.iter().position(|it| it.name() == to.name());
            let at = exact.or_else(|| found.iter().position(|it| same(it.name(), to.name())));
            let path = format!("{path}.{}", to.name());
            children.push(match at {
                Some(at) => Some((at, Self::find(&found[at], to, &path)?)),
                None if to.is_nullable() => None,
                None => {
                    return Err(Error::invalid(format!("`{path}` may not be null, and the statement has no value")));
                }
            });
        }
        Ok(Self::Struct(wanted.clone(), children))
    }

    pub(super) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Same => Ok(Arc::clone(array)),
            Self::Nulls(kind) => Ok(new_null_array(kind, array.len())),
            Self::Cast(cast) => cast.apply(array),
            Self::Struct(fields, children) => {
                let parts = array.as_struct();
                let child = |(field, child): (&FieldRef, &Option<(usize, Self)>)| match child {
                    None => Ok((Arc::clone(field), new_null_array(field.data_type(), parts.len()))),
                    Some((at, way)) => {
                        let made = way.apply(&visible(parts.column(*at), parts.nulls(), way)?)?;
                        Ok((retyped(field, &made), made))
                    }
                };
                let made = fields.iter().zip(children).map(child).collect::<Result<Vec<_>>>()?;
                let (fields, columns): (Vec<_>, Vec<_>) = made.into_iter().unzip();
                let made = StructArray::try_new(fields.into(), columns, parts.nulls().cloned());
                Ok(Arc::new(made.map_err(internal)?))
            }
            Self::List(item, way) => {
                let list = array.as_list::<i32>();
                let values = way.apply(list.values())?;
                let (item, offsets) = (retyped(item, &values), list.offsets().clone());
                Ok(Arc::new(ListArray::try_new(item, offsets, values, list.nulls().cloned()).map_err(internal)?))
            }
            Self::Map(entries, sorted, ways) => {
                let map = array.as_map();
                let (keys, values) = (ways[0].apply(map.keys())?, ways[1].apply(map.values())?);
                let DataType::Struct(pair) = entries.data_type() else {
                    return Err(Error::internal("a map's entries are no struct"));
                };
                let pair: Fields = vec![retyped(&pair[0], &keys), retyped(&pair[1], &values)].into();
                let pairs = StructArray::try_new(pair.clone(), vec![keys, values], None).map_err(internal)?;
                let entries = Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(pair)));
                let nulls = map.nulls().cloned();
                let made = MapArray::try_new(entries, map.offsets().clone(), pairs, nulls, *sorted);
                Ok(Arc::new(made.map_err(internal)?))
            }
        }
    }
}

impl Cast {
    fn apply(&self, array: &ArrayRef) -> Result<ArrayRef> {
        const STRICT: CastOptions<'static> = CastOptions { safe: false, format_options: FormatOptions::new() };
        const LENIENT: CastOptions<'static> = CastOptions { safe: true, format_options: FormatOptions::new() };
        let made = match cast_with_options(array, &self.to, &STRICT) {
            Ok(made) => made,
            Err(err) => {
                let lost = cast_with_options(array, &self.to, &LENIENT).ok().and_then(|it| newly_null(array, &it));
                return Err(match lost {
                    Some(row) => self.misfit(array, row),
                    None => Error::invalid(format!("column `{}`: {err}", self.path)),
                });
            }
        };
        // A cast that makes nulls of values has lost them.
        if made.null_count() != array.logical_null_count()
            && let Some(row) = newly_null(array, &made)
        {
            return Err(self.misfit(array, row));
        }
        if self.exact
            && let Some(row) = self.changed(array, &made)
        {
            return Err(self.misfit(array, row));
        }
        Ok(made)
    }

    /// The first row whose value is another one when cast back.
    fn changed(&self, array: &ArrayRef, made: &ArrayRef) -> Option<usize> {
        let back = cast_with_options(made, array.data_type(), &CastOptions::default()).ok()?;
        if self.to == DataType::Float32 {
            // Digits may go, the value may not become infinite.
            let (made, array) = (made.as_primitive::<arrow_array::types::Float32Type>(), array);
            let finite = cast_with_options(array, &DataType::Float64, &CastOptions::default()).ok()?;
            let finite = finite.as_primitive::<arrow_array::types::Float64Type>();
            let lost =
                |row: &usize| made.is_valid(*row) && made.value(*row).is_infinite() && finite.value(*row).is_finite();
            return (0..made.len()).find(lost);
        }
        let differs: BooleanArray = distinct(array, &back).ok()?;
        (differs.true_count() > 0).then(|| (0..differs.len()).find(|row| differs.value(*row))).flatten()
    }

    fn misfit(&self, array: &ArrayRef, row: usize) -> Error {
        let value = value_text(array, row);
        let (path, kind) = (&self.path, &self.kind);
        match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Error::invalid(format!("column `{path}`: '{value}' is no {kind}"))
            }
            _ => Error::invalid(format!("column `{path}`: {value} does not fit {kind}")),
        }
    }
}

fn newly_null(array: &ArrayRef, made: &ArrayRef) -> Option<usize> {
    let before = array.logical_nulls();
    let was_valid = |row: usize| before.as_ref().is_none_or(|it| it.is_valid(row));
    (0..made.len()).find(|row| made.is_null(*row) && was_valid(*row))
}

/// A child without what lies below null parents: nobody vouches for it, and it must not fail a cast.
fn visible(child: &ArrayRef, parent: Option<&NullBuffer>, way: &Assign) -> Result<ArrayRef> {
    match parent.filter(|it| it.null_count() > 0 && !matches!(way, Assign::Same)) {
        None => Ok(Arc::clone(child)),
        Some(nulls) => {
            let hidden = BooleanArray::new(!nulls.inner(), None);
            nullif(child, &hidden).map_err(internal)
        }
    }
}

/// The field as the made array has it: text may be laid out otherwise, and files decide about nulls later.
fn retyped(field: &FieldRef, array: &ArrayRef) -> FieldRef {
    let nullable = field.is_nullable() || array.null_count() > 0;
    Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone()).with_nullable(nullable))
}

fn internal(err: arrow_schema::ArrowError) -> Error {
    Error::internal(err.to_string())
}

fn never(from: &Field, to: &Field, path: &str) -> Error {
    let (from, to) = (types::name(from), types::name(to));
    Error::invalid(format!("column `{path}` has type {to}, into which {from} does not go"))
        .with_hint("cast the value in the query")
}

fn castable(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let text = |it: &T| matches!(it, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let bytes = |it: &T| matches!(it, T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_));
    let number = |it: &T| it.is_numeric();
    let time = |it: &T| matches!(it, T::Date32 | T::Date64 | T::Timestamp(..));
    let flat = |it: &T| number(it) || time(it) || *it == T::Boolean;
    match (from, to) {
        (T::Dictionary(_, values), to) => values.as_ref() == to || castable(values, to),
        (from, to) if number(from) && number(to) => true,
        (from, to) if time(from) && time(to) => true,
        (from, to) if text(from) && (flat(to) || bytes(to)) => true,
        (from, to) if (flat(from) || bytes(from)) && text(to) => true,
        (T::FixedSizeBinary(_), to) => bytes(to),
        (T::LargeList(_) | T::FixedSizeList(..), T::List(_)) => false,
        (T::Timestamp(..), T::Time64(TimeUnit::Microsecond)) => false,
        _ => false,
    }
}

/// Whether a cast may lose what no rounding of SQL may: fractions of whole numbers, the time of a date, the infinite.
fn must_be_exact(from: &DataType, to: &DataType) -> bool {
    let fractional = from.is_floating() || from.is_decimal();
    fractional && to.is_integer()
        || matches!((from, to), (DataType::Timestamp(..), DataType::Date32))
        || *to == DataType::Float32 && from.is_numeric()
}

#[cfg(test)]
mod tests;
