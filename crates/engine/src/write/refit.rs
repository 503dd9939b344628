//! Arrays in exactly the type that a file's column has: names and nullability of children included.
//!
//! Values never change here. Text and bytes at the top may stay views: the Parquet writer takes either.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, cast::AsArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field};
use lakebed_core::{Error, Result};

/// `array` as the Parquet writer takes it for `field`.
pub(super) fn refit(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    match same_text(array.data_type(), field.data_type()) {
        true => Ok(Arc::clone(array)),
        false => exactly(array, field),
    }
}

/// `array` in the very type of `field`.
pub(super) fn exactly(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    fit(array, field).map_err(|it| {
        let (name, found, wanted) = (field.name(), array.data_type(), field.data_type());
        Error::internal(format!("column `{name}` is {found}, and its file wants {wanted}: {it}"))
    })
}

fn fit(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == field.data_type() {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), field.data_type()) {
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let parts = array.as_struct();
            if parts.num_columns() != fields.len() {
                return Err(ArrowError::SchemaError(format!("{} fields for {}", parts.num_columns(), fields.len())));
            }
            let children = parts.columns().iter().zip(fields).map(|(child, field)| fit(child, field));
            let children = children.collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new(fields.clone(), children, parts.nulls().cloned())?))
        }
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let values = fit(list.values(), item)?;
            Ok(Arc::new(ListArray::try_new(Arc::clone(item), list.offsets().clone(), values, list.nulls().cloned())?))
        }
        (DataType::Map(..), DataType::Map(entries, sorted)) => {
            let map = array.as_map();
            let DataType::Struct(pair) = entries.data_type() else {
                return Err(ArrowError::SchemaError("a map's entries are no struct".to_owned()));
            };
            let columns = vec![fit(map.keys(), &pair[0])?, fit(map.values(), &pair[1])?];
            let pairs = StructArray::try_new(pair.clone(), columns, None)?;
            let nulls = map.nulls().cloned();
            Ok(Arc::new(MapArray::try_new(Arc::clone(entries), map.offsets().clone(), pairs, nulls, *sorted)?))
        }
        (from, to) if same_text(from, to) || same_instants(from, to) => strict(array, to),
        (DataType::Dictionary(_, values), to) if values.as_ref() == to || same_text(values, to) => strict(array, to),
        _ => Err(ArrowError::SchemaError("values would change".to_owned())),
    }
}

fn strict(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

/// Whether both are text, or both bytes, whatever their layout.
pub(super) fn same_text(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let text = |it: &T| matches!(it, T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let bytes = |it: &T| matches!(it, T::Binary | T::LargeBinary | T::BinaryView);
    text(from) && text(to) || bytes(from) && bytes(to)
}

/// Whether both count the same unit and only spell the zone otherwise.
fn same_instants(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Timestamp(from, zone), DataType::Timestamp(to, other)) => {
            from == to && zone.is_some() == other.is_some()
        }
        _ => false,
    }
}
