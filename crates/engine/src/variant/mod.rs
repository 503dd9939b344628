//! Variants: semi-structured values in Parquet's encoding.
//!
//! In the plan a variant is a struct of two binaries, `metadata` (its field names) and `value`, marked by the Arrow
//! extension of that name. What a writer shredded into typed columns goes back into `value` as files are read. At the
//! edge of a session variants become JSON text, see [`variant_json_array`].
mod functions;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray, StructArray, cast::AsArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Fields, extension::EXTENSION_TYPE_NAME_KEY};
use lakebed_codec::fence::fence;
use parquet_variant_compute::{VariantArray, unshred_variant, variant_to_json};

pub use functions::functions;

/// The name Parquet gives the type, and the one Delta's documents use.
const NAMES: [&str; 2] = ["arrow.parquet.variant", "parquet.variant"];

/// Whether the field's struct is a variant.
pub fn is_variant(field: &Field) -> bool {
    field.metadata().get(EXTENSION_TYPE_NAME_KEY).is_some_and(|it| NAMES.contains(&it.as_str()))
}

/// Variants as JSON text; nulls stay null.
///
/// `array` is a variant's struct, shredded or not.
///
/// # Errors
/// If it is no such struct, or a value breaks the encoding.
pub fn variant_json_array(array: &ArrayRef) -> Result<StringArray, ArrowError> {
    fenced(|| {
        let parts = plain(array, &binary_fields())?;
        variant_to_json(&parts)
    })
}

/// Runs a decoder of variants, which may panic on bytes that are none.
pub(crate) fn fenced<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    let corrupt = |it: lakebed_core::Error| ArrowError::ExternalError(Box::new(it));
    fence("a variant value", decode).map_err(|it| corrupt(it.into()))?
}

/// Puts what was shredded back, and gives the struct the types of `fields`.
pub(crate) fn plain(array: &ArrayRef, fields: &Fields) -> Result<ArrayRef, ArrowError> {
    let variants = unshred_variant(&VariantArray::try_new(array.as_ref())?)?;
    let columns = fields.iter().map(|field| {
        let column = match field.name().as_str() {
            "metadata" => variants.metadata_column(),
            "value" => variants.value_column(),
            other => return Err(ArrowError::SchemaError(format!("a variant has no part `{other}`"))),
        };
        cast(column, field.data_type())
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    // A null variant's parts may be null where the plan says they are not.
    let nulls = array.nulls().cloned();
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?))
}

fn binary_fields() -> Fields {
    ["metadata", "value"].map(|it| Field::new(it, DataType::Binary, true)).into_iter().collect()
}

/// The same column with every variant in it, however deep, as JSON text.
pub fn variants_as_json(field: &Field, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if is_variant(field) {
        return Ok(Arc::new(variant_json_array(array)?));
    }
    if !holds_variant(field) {
        return Ok(Arc::clone(array));
    }
    let shown = json_field(field);
    match (field.data_type(), shown.data_type()) {
        (DataType::Struct(from), DataType::Struct(to)) => {
            let parts = array.as_struct();
            let columns = from.iter().zip(parts.columns()).map(|(field, it)| variants_as_json(field, it));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new(to.clone(), columns, parts.nulls().cloned())?))
        }
        (DataType::List(from), DataType::List(to)) => {
            let list = array.as_list::<i32>();
            let values = variants_as_json(from, list.values())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(arrow_array::ListArray::try_new(Arc::clone(to), offsets, values, nulls)?))
        }
        (DataType::Map(from, _), DataType::Map(to, sorted)) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = variants_as_json(from, &entries)?.as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Ok(Arc::new(arrow_array::MapArray::try_new(Arc::clone(to), offsets, entries, nulls, *sorted)?))
        }
        (other, _) => Err(ArrowError::NotYetImplemented(format!("variants inside {other}"))),
    }
}

/// The field that [`variants_as_json`] makes of `field`.
pub fn json_field(field: &Field) -> Field {
    if is_variant(field) {
        return Field::new(field.name(), DataType::Utf8, field.is_nullable());
    }
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|it| Arc::new(json_field(it))).collect()),
        DataType::List(item) => DataType::List(Arc::new(json_field(item))),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(json_field(entries)), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(kind)
}

/// Whether there is a variant in the field, at any depth.
pub fn holds_variant(field: &Field) -> bool {
    is_variant(field)
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|it| holds_variant(it)),
            DataType::List(item) | DataType::Map(item, _) => holds_variant(item),
            _ => false,
        }
}

#[cfg(test)]
mod tests;
