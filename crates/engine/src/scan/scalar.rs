//! Constants, between the formats' spelling and Arrow's.
use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};
use datafusion::{error::Result, scalar::ScalarValue};
use lakebed_core::{Error, expr::Scalar};

use super::error::external;

/// A constant as an Arrow value of `wanted`, the column's type.
///
/// # Errors
/// If the constant does not fit the type: a value is never rounded or cut.
pub(crate) fn to_arrow(scalar: &Scalar, wanted: &DataType) -> Result<ScalarValue> {
    let natural = natural(scalar, wanted);
    if natural.data_type() == *wanted {
        return Ok(natural);
    }
    let cast = natural.cast_to(wanted).map_err(|_| misfit(scalar, wanted))?;
    // A cast that loses something gives null or another value when cast back.
    match cast.is_null() || cast.cast_to(&natural.data_type()).ok().as_ref() != Some(&natural) {
        true => Err(misfit(scalar, wanted)),
        false => Ok(cast),
    }
}

fn natural(scalar: &Scalar, wanted: &DataType) -> ScalarValue {
    match scalar {
        Scalar::Boolean(it) => ScalarValue::Boolean(Some(*it)),
        Scalar::Int(it) => ScalarValue::Int64(Some(*it)),
        Scalar::Decimal(unscaled, scale) => {
            let precision = match wanted {
                DataType::Decimal128(precision, to) if to == scale => *precision,
                _ => 38,
            };
            ScalarValue::Decimal128(Some(*unscaled), precision, *scale)
        }
        Scalar::Float(it) => ScalarValue::Float32(Some(*it)),
        Scalar::Double(it) => ScalarValue::Float64(Some(*it)),
        Scalar::Utf8(it) => ScalarValue::Utf8(Some(it.clone())),
        Scalar::Binary(it) => ScalarValue::Binary(Some(it.clone())),
        Scalar::Date(it) => ScalarValue::Date32(Some(*it)),
        Scalar::Timestamp(it) => ScalarValue::TimestampMicrosecond(Some(*it), zone(wanted)),
        Scalar::TimestampNanos(it) => ScalarValue::TimestampNanosecond(Some(*it), zone(wanted)),
    }
}

fn zone(wanted: &DataType) -> Option<Arc<str>> {
    match wanted {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

fn misfit(scalar: &Scalar, wanted: &DataType) -> datafusion::error::DataFusionError {
    external(Error::corrupt(format!("the value {scalar:?} does not fit a column of type {wanted}")))
}

/// An Arrow value as a constant; `None` for null and for types that no format prunes with.
///
/// Types must be the column's own: a caller that compares across types casts first.
pub(crate) fn from_arrow(value: &ScalarValue) -> Option<Scalar> {
    Some(match value {
        ScalarValue::Boolean(Some(it)) => Scalar::Boolean(*it),
        ScalarValue::Int8(Some(it)) => Scalar::Int((*it).into()),
        ScalarValue::Int16(Some(it)) => Scalar::Int((*it).into()),
        ScalarValue::Int32(Some(it)) => Scalar::Int((*it).into()),
        ScalarValue::Int64(Some(it)) => Scalar::Int(*it),
        ScalarValue::Decimal128(Some(it), _, scale) => Scalar::Decimal(*it, *scale),
        ScalarValue::Float32(Some(it)) if !it.is_nan() => Scalar::Float(*it),
        ScalarValue::Float64(Some(it)) if !it.is_nan() => Scalar::Double(*it),
        ScalarValue::Utf8(Some(it)) | ScalarValue::LargeUtf8(Some(it)) | ScalarValue::Utf8View(Some(it)) => {
            Scalar::Utf8(it.clone())
        }
        ScalarValue::Binary(Some(it)) | ScalarValue::LargeBinary(Some(it)) | ScalarValue::BinaryView(Some(it)) => {
            Scalar::Binary(it.clone())
        }
        ScalarValue::Date32(Some(it)) => Scalar::Date(*it),
        ScalarValue::TimestampMicrosecond(Some(it), _) => Scalar::Timestamp(*it),
        ScalarValue::TimestampNanosecond(Some(it), _) => Scalar::TimestampNanos(*it),
        _ => return None,
    })
}

/// The type a column shows to SQL: strings and bytes as views, which filter and compare without copying.
///
/// Nested types stay as they are: the Parquet reader makes views of top-level columns only.
pub(crate) fn shown_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == "+00:00" => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        other => other.clone(),
    }
}
