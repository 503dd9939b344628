//! One value of one row, in a form that is equal exactly when the values are.
//!
//! Integers of every width are one kind, decimals are kept without trailing zeros, timestamps are instants in
//! nanoseconds, floats are compared bit by bit with every NaN the same, maps are sorted. So a value read from an
//! old file, from a new one or out of a query engine is the same value.
use std::{cmp::Ordering, fmt};

use arrow_array::{Array, cast::AsArray, types};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use lakebed_core::{Error, Result, expr::Scalar};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i128),
    Decimal(Decimal),
    /// Both widths: every single is a double.
    Float(Float),
    Text(String),
    Bytes(Vec<u8>),
    /// Days since the epoch.
    Date(i64),
    /// Nanoseconds since midnight.
    Time(i64),
    /// Nanoseconds since the epoch.
    Timestamp(i128),
    /// A variant, as canonical JSON text.
    Json(String),
    List(Vec<Value>),
    Struct(Vec<(String, Value)>),
    /// Sorted by key.
    Map(Vec<(Value, Value)>),
}

/// A double by its bits; all NaNs are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Float(u64);

impl Float {
    pub fn new(value: f64) -> Self {
        Self(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
    }

    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// `unscaled` × 10^-`scale`, with the smallest scale that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    unscaled: i128,
    scale: u32,
}

impl Decimal {
    pub fn new(mut unscaled: i128, scale: i32) -> Self {
        let Ok(mut scale) = u32::try_from(scale) else {
            return Self { unscaled: unscaled.saturating_mul(power_of_ten(scale.unsigned_abs())), scale: 0 };
        };
        while scale > 0 && unscaled % 10 == 0 {
            (unscaled, scale) = (unscaled / 10, scale - 1);
        }
        Self { unscaled, scale }
    }

    /// The unscaled value at `scale`, `None` where digits would be lost.
    pub fn at_scale(self, scale: u32) -> Option<i128> {
        let more = scale.checked_sub(self.scale)?;
        self.unscaled.checked_mul(10i128.checked_pow(more)?)
    }

    fn compare(self, other: Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        match (self.at_scale(scale), other.at_scale(scale)) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ => self.approximate().total_cmp(&other.approximate()),
        }
    }

    fn approximate(self) -> f64 {
        self.unscaled as f64 / 10f64.powi(i32::try_from(self.scale).unwrap_or(i32::MAX))
    }
}

fn power_of_ten(exponent: u32) -> i128 {
    10i128.checked_pow(exponent).unwrap_or(i128::MAX)
}

impl Value {
    /// Compares as SQL orders them, null lowest; values of different kinds in the order of the enum.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Decimal(one), Self::Decimal(two)) => one.compare(*two),
            (Self::Float(one), Self::Float(two)) => one.get().total_cmp(&two.get()),
            (one, two) => one.cmp(two),
        }
    }

    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// The field of a struct; null of a null struct or a missing field.
    pub fn field(&self, name: &str) -> &Value {
        match self {
            Self::Struct(fields) => fields.iter().find(|(it, _)| it == name).map_or(&Self::Null, |(_, value)| value),
            _ => &Self::Null,
        }
    }

    /// The value as delete markers and partition folders spell it.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl From<&Scalar> for Value {
    fn from(scalar: &Scalar) -> Self {
        match scalar {
            Scalar::Boolean(it) => Self::Bool(*it),
            Scalar::Int(it) => Self::Int((*it).into()),
            Scalar::Decimal(unscaled, scale) => Self::Decimal(Decimal::new(*unscaled, (*scale).into())),
            Scalar::Float(it) => Self::Float(Float::new((*it).into())),
            Scalar::Double(it) => Self::Float(Float::new(*it)),
            Scalar::Utf8(it) => Self::Text(it.clone()),
            Scalar::Binary(it) => Self::Bytes(it.clone()),
            Scalar::Date(it) => Self::Date((*it).into()),
            Scalar::Timestamp(it) => Self::Timestamp(i128::from(*it) * 1000),
            Scalar::TimestampNanos(it) => Self::Timestamp((*it).into()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(it) => write!(f, "{it}"),
            Self::Int(it) => write!(f, "{it}"),
            Self::Decimal(it) => write!(f, "{}e-{}", it.unscaled, it.scale),
            Self::Float(it) => write!(f, "{:?}", it.get()),
            Self::Text(it) => write!(f, "{it:?}"),
            Self::Bytes(it) => write!(f, "x'{}'", it.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            Self::Date(it) => write!(f, "day {it}"),
            Self::Time(it) => write!(f, "time {it} ns"),
            Self::Timestamp(it) => write!(f, "at {it} ns"),
            Self::Json(it) => f.write_str(it),
            Self::List(it) => joined(f, "[", it.iter().map(ToString::to_string), "]"),
            Self::Struct(it) => joined(f, "{", it.iter().map(|(name, value)| format!("{name}: {value}")), "}"),
            Self::Map(it) => joined(f, "{", it.iter().map(|(key, value)| format!("{key} => {value}")), "}"),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, open: &str, items: impl Iterator<Item = String>, close: &str) -> fmt::Result {
    write!(f, "{open}{}{close}", items.collect::<Vec<_>>().join(", "))
}

/// The value of `array` at `row`.
///
/// # Errors
/// `Unsupported` for Arrow types that no table format stores.
pub fn value_at(array: &dyn Array, row: usize) -> Result<Value> {
    if array.data_type() == &DataType::Null || array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row).to_owned()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::List(_) => list(&array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(_, _) => list(&array.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let fields = columns.map(|(column, field)| Ok((field.name().clone(), value_at(column, row)?)));
            Value::Struct(fields.collect::<Result<_>>()?)
        }
        DataType::Map(_, _) => map(&array.as_map().value(row))?,
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            value_at(dictionary.values(), dictionary.normalized_keys()[row])?
        }
        _ => scalar_at(array, row)?,
    })
}

fn scalar_at(array: &dyn Array, row: usize) -> Result<Value> {
    macro_rules! at {
        ($kind:ident) => {
            array.as_primitive::<types::$kind>().value(row)
        };
    }
    Ok(match array.data_type() {
        DataType::Int8 => Value::Int(at!(Int8Type).into()),
        DataType::Int16 => Value::Int(at!(Int16Type).into()),
        DataType::Int32 => Value::Int(at!(Int32Type).into()),
        DataType::Int64 => Value::Int(at!(Int64Type).into()),
        DataType::UInt8 => Value::Int(at!(UInt8Type).into()),
        DataType::UInt16 => Value::Int(at!(UInt16Type).into()),
        DataType::UInt32 => Value::Int(at!(UInt32Type).into()),
        DataType::UInt64 => Value::Int(at!(UInt64Type).into()),
        DataType::Float32 => Value::Float(Float::new(at!(Float32Type).into())),
        DataType::Float64 => Value::Float(Float::new(at!(Float64Type))),
        DataType::Decimal32(_, scale) => Value::Decimal(Decimal::new(at!(Decimal32Type).into(), (*scale).into())),
        DataType::Decimal64(_, scale) => Value::Decimal(Decimal::new(at!(Decimal64Type).into(), (*scale).into())),
        DataType::Decimal128(_, scale) => Value::Decimal(Decimal::new(at!(Decimal128Type), (*scale).into())),
        DataType::Date32 => Value::Date(at!(Date32Type).into()),
        DataType::Date64 => Value::Date(at!(Date64Type).div_euclid(86_400_000)),
        DataType::Time32(TimeUnit::Second) => Value::Time(i64::from(at!(Time32SecondType)) * 1_000_000_000),
        DataType::Time32(_) => Value::Time(i64::from(at!(Time32MillisecondType)) * 1_000_000),
        DataType::Time64(TimeUnit::Microsecond) => Value::Time(at!(Time64MicrosecondType).saturating_mul(1000)),
        DataType::Time64(_) => Value::Time(at!(Time64NanosecondType)),
        DataType::Timestamp(unit, _) => Value::Timestamp(match unit {
            TimeUnit::Second => i128::from(at!(TimestampSecondType)) * 1_000_000_000,
            TimeUnit::Millisecond => i128::from(at!(TimestampMillisecondType)) * 1_000_000,
            TimeUnit::Microsecond => i128::from(at!(TimestampMicrosecondType)) * 1000,
            TimeUnit::Nanosecond => at!(TimestampNanosecondType).into(),
        }),
        DataType::Interval(IntervalUnit::YearMonth) => Value::Int(at!(IntervalYearMonthType).into()),
        other => return Err(Error::unsupported(format!("the reference has no values of type {other}"))),
    })
}

fn list(items: &dyn Array) -> Result<Value> {
    Ok(Value::List((0..items.len()).map(|row| value_at(items, row)).collect::<Result<_>>()?))
}

fn map(entries: &arrow_array::StructArray) -> Result<Value> {
    let pair = |row| Ok((value_at(entries.column(0), row)?, value_at(entries.column(1), row)?));
    let mut pairs = (0..entries.len()).map(pair).collect::<Result<Vec<_>>>()?;
    pairs.sort();
    Ok(Value::Map(pairs))
}

/// JSON text with sorted keys and one spelling for each number, so that equal documents are equal text.
pub fn canonical_json(text: &str) -> Option<String> {
    let parsed: serde_json::Value = serde_json::from_str(text).ok()?;
    let mut out = String::new();
    write_json(&unquoted(parsed), &mut out);
    Some(out)
}

/// DuckDB's `to_json` of a variant is a JSON string that holds DuckDB's own spelling of a struct or list, with single
/// quotes: the document it means is compared, not the spelling.
fn unquoted(value: serde_json::Value) -> serde_json::Value {
    match &value {
        serde_json::Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(&text.replace('\'', "\"")).unwrap_or(value)
        }
        _ => value,
    }
}

fn write_json(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::Number(number) => out.push_str(&json_number(number)),
        serde_json::Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write_json(item, out);
            }
            out.push(']');
        }
        serde_json::Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, field)) in sorted.into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                out.push(':');
                write_json(field, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn json_number(number: &serde_json::Number) -> String {
    match (number.as_i128(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        (None, Some(real)) if real.fract() == 0.0 && real.abs() < 9.0e15 => format!("{real:.0}"),
        (None, Some(real)) => format!("{real:?}"),
        (None, None) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array, TimestampMillisecondArray};

    use super::*;

    fn same(one: Arc<dyn Array>, two: Arc<dyn Array>) {
        assert_eq!(value_at(&one, 0).unwrap(), value_at(&two, 0).unwrap());
    }

    #[test]
    fn the_type_does_not_tell_equal_values_apart() {
        same(Arc::new(Int32Array::from(vec![7])), Arc::new(Int64Array::from(vec![7])));
        same(Arc::new(Float32Array::from(vec![0.5])), Arc::new(Float64Array::from(vec![0.5])));
        same(Arc::new(Float32Array::from(vec![-f32::NAN])), Arc::new(Float64Array::from(vec![f64::NAN])));
        let decimal = |unscaled, scale| {
            let array = Decimal128Array::from(vec![unscaled]).with_precision_and_scale(20, scale).unwrap();
            Arc::new(array) as Arc<dyn Array>
        };
        same(decimal(1250, 3), decimal(125, 2));
        same(
            Arc::new(TimestampMillisecondArray::from(vec![5])),
            Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![5000]).with_timezone("UTC")),
        );
    }

    #[test]
    fn negative_zero_is_another_value() {
        assert_ne!(Value::Float(Float::new(0.0)), Value::Float(Float::new(-0.0)));
    }

    #[test]
    fn json_is_equal_after_parsing() {
        assert_eq!(canonical_json(r#"{"b": 1.0, "a": [null, "x"]}"#), canonical_json(r#"{"a":[null,"x"],"b":1}"#));
        assert_eq!(canonical_json("{"), None);
    }

    #[test]
    fn order_is_by_value() {
        let decimal = |unscaled, scale| Value::Decimal(Decimal::new(unscaled, scale));
        assert_eq!(decimal(15, 1).order(&decimal(2, 0)), Ordering::Less);
        assert_eq!(Value::Float(Float::new(-2.0)).order(&Value::Float(Float::new(1.0))), Ordering::Less);
        assert_eq!(Value::Null.order(&Value::Int(i128::MIN)), Ordering::Less);
    }
}
