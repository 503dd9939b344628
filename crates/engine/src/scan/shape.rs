//! How a value in a file becomes a value of the table.
//!
//! A [`Shape`] is found once per file and column by comparing the file's field with the table's, and applied to every
//! batch. It renames, reorders and fills the children of structs, lists and maps; it widens types, and never narrows
//! one: a file whose type could hold values that the table's cannot is an error, not nulls.
//!
//! Where the types fit but a value may not (instants of a finer unit or beyond the range, bytes that are no text), each
//! value becomes its exact equal or an error.
//!
//! Children are found by [`MatchBy`], as top-level columns are. Spec: Delta PROTOCOL.md, "Column Mapping" and "Type
//! Widening"; Iceberg spec, "Column Projection" and "Schema Evolution".
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, cast::AsArray, new_null_array};
use arrow_cast::{CastOptions, cast_with_options, display::FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, TimeUnit};
use datafusion::scalar::ScalarValue;
use lakebed_core::scan::{FIELD_ID, MatchBy, PHYSICAL_NAME};

use super::{defaults::initial_default, instants};
use crate::variant;

/// The way from a file's array to the table's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// The types are equal to the last field name and piece of metadata.
    Same,
    /// Every value of the file's type has its equal in this type.
    Cast(DataType),
    /// A value of the file's type has its equal in this type, or is an error.
    Checked(DataType),
    Struct(Fields, Vec<Child>),
    List(FieldRef, Box<Shape>),
    /// Entries, then how key and value become the table's.
    Map(FieldRef, Box<[Shape; 2]>),
    /// Whatever the writer shredded goes back into one value.
    Variant(Fields),
    /// The file holds nothing but nulls.
    Nulls(DataType),
}

/// Where a child of a struct comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Child {
    File(usize, Shape),
    /// The file is older than the child.
    Constant(ScalarValue),
}

/// Why a file's type cannot be read as the table's.
///
/// Travels as an error of its own until a reader adds the file's name, see [`super::error::about_file`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column `{column}` is {found} in the file and {wanted} in the table: {reason}")]
pub(crate) struct Mismatch {
    pub column: String,
    pub found: String,
    pub wanted: String,
    pub reason: &'static str,
}

impl Shape {
    /// Compares a file's field with the table's; `shown` is the table's field as the plan has it.
    pub(crate) fn find(by: MatchBy, file: &Field, table: &Field, shown: &Field) -> Result<Self, Mismatch> {
        if variant::is_variant(table) {
            return variant_shape(file, shown);
        }
        if file.data_type() == shown.data_type() && !has_mapped_children(by, table) {
            return Ok(Self::Same);
        }
        match (file.data_type(), table.data_type(), shown.data_type()) {
            (DataType::Struct(file), DataType::Struct(table), DataType::Struct(shown)) => {
                Self::children(by, file, table, shown)
            }
            (DataType::List(file), DataType::List(table), DataType::List(shown)) => {
                let item = Self::find(by, file, table, shown)?;
                Ok(Self::List(Arc::clone(shown), Box::new(item)))
            }
            (DataType::Map(file, _), DataType::Map(table, _), DataType::Map(shown, _)) => {
                Self::entries(by, file, table, shown)
            }
            (DataType::Null, ..) => Ok(Self::Nulls(shown.data_type().clone())),
            (found, _, wanted) => match widening(found, wanted) {
                Ok(()) if may_not_fit(found, wanted) => Ok(Self::Checked(wanted.clone())),
                Ok(()) => Ok(Self::Cast(wanted.clone())),
                Err(reason) => Err(mismatch(file, shown, reason)),
            },
        }
    }

    fn children(by: MatchBy, file: &Fields, table: &Fields, shown: &Fields) -> Result<Self, Mismatch> {
        let children = table.iter().zip(shown).map(|(table, shown)| match find_field(by, file, table)? {
            Some(at) => Ok(Child::File(at, Self::find(by, &file[at], table, shown)?)),
            None => Ok(Child::Constant(initial_default(table, shown.data_type())?)),
        });
        Ok(Self::Struct(shown.clone(), children.collect::<Result<_, _>>()?))
    }

    fn entries(by: MatchBy, file: &FieldRef, table: &FieldRef, shown: &FieldRef) -> Result<Self, Mismatch> {
        let pairs = (file.data_type(), table.data_type(), shown.data_type());
        let (DataType::Struct(from), DataType::Struct(to), DataType::Struct(as_shown)) = pairs else {
            return Err(mismatch(file, shown, "a map's entries are no struct"));
        };
        if from.len() != 2 || to.len() != 2 {
            return Err(mismatch(file, shown, "a map's entries are no pairs"));
        }
        let shapes = [0, 1].map(|at| Self::find(by, &from[at], &to[at], &as_shown[at]));
        let [key, value] = shapes;
        Ok(Self::Map(Arc::clone(shown), Box::new([key?, value?])))
    }

    /// Turns one of the file's arrays into the table's.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Same => Ok(Arc::clone(array)),
            Self::Cast(kind) => cast_with_options(array, kind, &STRICT),
            Self::Checked(kind) => checked(array, kind).map_err(|it| ArrowError::ExternalError(Box::new(it))),
            Self::Nulls(kind) => Ok(new_null_array(kind, array.len())),
            Self::Struct(fields, children) => {
                let parts = array.as_struct();
                let columns = children.iter().map(|it| it.apply(parts)).collect::<Result<Vec<_>, _>>()?;
                if fields.is_empty() {
                    return Ok(Arc::new(StructArray::new_empty_fields(parts.len(), parts.nulls().cloned())));
                }
                Ok(Arc::new(StructArray::try_new(fields.clone(), columns, parts.nulls().cloned())?))
            }
            Self::List(field, item) => {
                let list = array.as_list::<i32>();
                let values = item.apply(list.values())?;
                let list =
                    ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, list.nulls().cloned())?;
                Ok(Arc::new(list))
            }
            Self::Map(entries, shapes) => {
                let map = array.as_map();
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(ArrowError::SchemaError("a map's entries are no struct".to_owned()));
                };
                let columns = vec![shapes[0].apply(map.keys())?, shapes[1].apply(map.values())?];
                let pairs = StructArray::try_new(fields.clone(), columns, None)?;
                let map =
                    MapArray::try_new(Arc::clone(entries), map.offsets().clone(), pairs, map.nulls().cloned(), false)?;
                Ok(Arc::new(map))
            }
            Self::Variant(fields) => variant::plain(array, fields),
        }
    }
}

impl Child {
    fn apply(&self, parent: &StructArray) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::File(at, shape) => shape.apply(parent.column(*at)),
            Self::Constant(value) => {
                value.to_array_of_size(parent.len()).map_err(|it| ArrowError::ComputeError(it.to_string()))
            }
        }
    }
}

/// Values that do not fit are errors, never nulls.
const STRICT: CastOptions<'static> = CastOptions { safe: false, format_options: FormatOptions::new() };

fn checked(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef, Misfit> {
    let array = match array.data_type() {
        DataType::Dictionary(_, values) => cast_with_options(array, values, &STRICT),
        _ => Ok(Arc::clone(array)),
    };
    let cast = |it: ArrayRef| match kind {
        DataType::Timestamp(unit, zone) => instants::exact(&it, *unit, zone.clone()),
        kind => cast_with_options(&it, kind, &STRICT),
    };
    array.and_then(cast).map_err(|it| Misfit(it.to_string()))
}

/// A value of a file that the table's type does not have. Travels as [`Mismatch`] does.
#[derive(Debug, thiserror::Error)]
#[error("it holds a value that the table's type does not have: {0}")]
pub(crate) struct Misfit(String);

/// The position of the table's field among a file's; `None` when the file does not have it.
///
/// # Errors
/// If two fields of the file answer to it.
pub(crate) fn find_field(by: MatchBy, file: &Fields, table: &Field) -> Result<Option<usize>, Mismatch> {
    match by {
        MatchBy::FieldId => match table.metadata().get(FIELD_ID) {
            Some(id) => only(file, table, |it| it.metadata().get(FIELD_ID) == Some(id)),
            // The reader must not guess by name: the name may have belonged to another column.
            None => Ok(None),
        },
        MatchBy::PhysicalName => {
            let name = physical_name(table);
            only(file, table, |it| it.name() == name)
        }
        MatchBy::Name => match only(file, table, |it| it.name() == table.name())? {
            Some(at) => Ok(Some(at)),
            None => only(file, table, |it| same_without_case(it.name(), table.name())),
        },
    }
}

/// The column's name in files of the table.
pub(crate) fn physical_name(table: &Field) -> &str {
    table.metadata().get(PHYSICAL_NAME).unwrap_or(table.name())
}

pub(crate) fn same_without_case(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || a.to_lowercase() == b.to_lowercase()
}

fn only(file: &Fields, table: &Field, fits: impl Fn(&Field) -> bool) -> Result<Option<usize>, Mismatch> {
    let mut found = file.iter().enumerate().filter(|(_, it)| fits(it)).map(|(at, _)| at);
    match (found.next(), found.next()) {
        (at, None) => Ok(at),
        (_, Some(second)) => Err(mismatch(&file[second], table, "two columns of the file answer to it")),
    }
}

/// Whether equal types do not yet say that children sit at equal positions.
fn has_mapped_children(by: MatchBy, table: &Field) -> bool {
    let children: &[FieldRef] = match table.data_type() {
        DataType::Struct(fields) => fields,
        DataType::List(item) => std::slice::from_ref(item),
        DataType::Map(entries, _) => std::slice::from_ref(entries),
        _ => return false,
    };
    by != MatchBy::Name && matches!(table.data_type(), DataType::Struct(_))
        || children.iter().any(|it| variant::is_variant(it) || has_mapped_children(by, it))
}

fn variant_shape(file: &Field, shown: &Field) -> Result<Shape, Mismatch> {
    match (file.data_type(), shown.data_type()) {
        (DataType::Struct(found), DataType::Struct(fields)) if found.iter().any(|it| it.name() == "metadata") => {
            Ok(Shape::Variant(fields.clone()))
        }
        _ => Err(mismatch(file, shown, "a variant is a struct of `metadata` and `value`")),
    }
}

fn mismatch(file: &Field, wanted: &Field, reason: &'static str) -> Mismatch {
    Mismatch {
        column: wanted.name().clone(),
        found: file.data_type().to_string(),
        wanted: wanted.data_type().to_string(),
        reason,
    }
}

/// Whether every value of `found` is exactly one of `wanted`; else why not.
fn widening(found: &DataType, wanted: &DataType) -> Result<(), &'static str> {
    use DataType as T;
    if let T::Dictionary(_, values) = found {
        return if values.as_ref() == wanted { Ok(()) } else { widening(values, wanted) };
    }
    if let (Some((from, scale)), T::Decimal128(precision, to)) = (digits(found), wanted) {
        let whole = i16::from(from) - i16::from(scale);
        let fits = *to >= scale && i16::from(*precision) - i16::from(*to) >= whole;
        return if fits { Ok(()) } else { Err("the table's decimals are narrower than the file's") };
    }
    let fits = match (found, wanted) {
        (T::Utf8 | T::LargeUtf8 | T::Utf8View, T::Utf8 | T::LargeUtf8 | T::Utf8View) => true,
        (T::Binary | T::LargeBinary | T::BinaryView, T::Binary | T::LargeBinary | T::BinaryView) => true,
        (T::FixedSizeBinary(_), T::Binary | T::LargeBinary | T::BinaryView) => true,
        // Old writers leave the annotation out; bytes that are no text are an error when they are read.
        (T::Binary | T::LargeBinary | T::BinaryView, T::Utf8 | T::LargeUtf8 | T::Utf8View) => true,
        (T::Int8, T::Int16 | T::Int32 | T::Int64) | (T::Int16, T::Int32 | T::Int64) | (T::Int32, T::Int64) => true,
        (T::UInt8, T::Int16 | T::Int32 | T::Int64) | (T::UInt16, T::Int32 | T::Int64) | (T::UInt32, T::Int64) => true,
        (T::Int8 | T::Int16 | T::Int32 | T::Float32, T::Float64) => true,
        (T::Date32, T::Timestamp(TimeUnit::Microsecond, None)) => true,
        (T::Timestamp(..), T::Timestamp(TimeUnit::Microsecond, _)) => true,
        (T::Timestamp(from, _), T::Timestamp(TimeUnit::Nanosecond, _)) => *from != TimeUnit::Second,
        (T::Time32(_), T::Time64(_)) | (T::Time64(TimeUnit::Microsecond), T::Time64(TimeUnit::Nanosecond)) => true,
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err("no widening leads from one to the other"),
    }
}

/// Whether some values of `found`, which widens to `wanted`, have no equal there.
fn may_not_fit(found: &DataType, wanted: &DataType) -> bool {
    use DataType as T;
    match (found, wanted) {
        (T::Dictionary(_, values), wanted) => may_not_fit(values, wanted),
        (T::Timestamp(from, _), T::Timestamp(to, _)) => from != to,
        (T::Date32, T::Timestamp(..)) => true,
        (T::Binary | T::LargeBinary | T::BinaryView, T::Utf8 | T::LargeUtf8 | T::Utf8View) => true,
        _ => false,
    }
}

/// Decimal digits and scale of an exact number type.
fn digits(kind: &DataType) -> Option<(u8, i8)> {
    Some(match kind {
        DataType::Int8 => (3, 0),
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => (*precision, *scale),
        _ => return None,
    })
}
