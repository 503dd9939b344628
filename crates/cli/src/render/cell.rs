//! One value as text and as JSON.
//!
//! | type | text | JSON |
//! |---|---|---|
//! | integers, decimals | all digits, nothing rounded | a number with the same digits |
//! | floats | shortest text that reads back equal; `NaN`, `Infinity`, `-Infinity` | a number; those three as strings |
//! | timestamps | RFC 3339, in UTC with `Z` where the type has a zone, else without offset | a string |
//! | dates, times, durations | ISO 8601 where it has a form | a string |
//! | instants, dates and times beyond the calendar | the number, with its unit | a string |
//! | binary | lower-case hexadecimal | a string |
//! | lists, structs, maps | their JSON | arrays and objects; map keys as text |
//!
//! Reading is set up once a column and batch, so that a cell costs no look at types.
use std::fmt::Write as _;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Int64Array,
    LargeBinaryArray, LargeListArray, LargeStringArray, ListArray, MapArray, RecordBatch, StringArray, StringViewArray,
    StructArray,
    cast::AsArray,
    types::{
        Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, TimeUnit};
use chrono::{DateTime, SecondsFormat};
use lakebed_core::{Error, Result};

/// Metadata key of a field whose text is JSON already.
pub(crate) const JSON_TEXT: &str = "lakebed.json";
const OPTIONS: FormatOptions<'static> = FormatOptions::new();
/// Integers beyond this lose digits in readers that hold numbers as doubles.
const EXACT_IN_A_DOUBLE: u64 = 1 << 53;

/// Who reads the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Integers are numbers, however large.
    Bare,
    /// Integers beyond 2^53 are strings.
    Careful,
}

/// A column, ready to be read cell by cell.
pub(crate) struct Cells<'a> {
    array: &'a dyn Array,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Null,
    Bool(&'a BooleanArray),
    Integer(ArrayFormatter<'a>),
    Decimal(ArrayFormatter<'a>),
    Float(ArrayFormatter<'a>),
    Text(Texts<'a>),
    /// Text that is JSON already.
    Json(Texts<'a>),
    Bytes(Bytes<'a>),
    Timestamp(&'a dyn Array, TimeUnit, Zone),
    /// Dates, times and durations; of a number that is none, the number and what it counts.
    Calendar(ArrayFormatter<'a>, Int64Array, String),
    /// Whatever Arrow makes of it.
    Other(ArrayFormatter<'a>),
    List(Ranges<'a>, Box<Cells<'a>>),
    Struct(Vec<(String, Cells<'a>)>),
    Map(&'a MapArray, Box<Cells<'a>>, Box<Cells<'a>>),
    Dictionary(Vec<usize>, Box<Cells<'a>>),
}

enum Texts<'a> {
    Utf8(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a StringViewArray),
}

enum Bytes<'a> {
    Binary(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
    View(&'a BinaryViewArray),
    Fixed(&'a FixedSizeBinaryArray),
}

enum Ranges<'a> {
    List(&'a ListArray),
    Large(&'a LargeListArray),
    Fixed(&'a FixedSizeListArray),
}

#[derive(Clone, Copy)]
enum Zone {
    Utc,
    None,
}

/// The columns of a batch, in order.
pub(crate) fn columns(batch: &RecordBatch) -> Result<Vec<Cells<'_>>> {
    let schema = batch.schema_ref();
    batch.columns().iter().zip(schema.fields()).map(|(array, field)| Cells::new(array, field)).collect()
}

impl<'a> Cells<'a> {
    pub(crate) fn new(array: &'a ArrayRef, field: &Field) -> Result<Self> {
        let json = field.metadata().contains_key(JSON_TEXT);
        let kind = match Self::kind(array.as_ref())? {
            Kind::Text(texts) if json => Kind::Json(texts),
            other => other,
        };
        Ok(Self { array: array.as_ref(), kind })
    }

    fn of(array: &'a dyn Array) -> Result<Box<Self>> {
        Ok(Box::new(Self { array, kind: Self::kind(array)? }))
    }

    fn kind(array: &'a dyn Array) -> Result<Kind<'a>> {
        let other = || {
            ArrayFormatter::try_new(array, &OPTIONS).map_err(|err| Error::unsupported(format!("cannot print: {err}")))
        };
        Ok(match array.data_type() {
            DataType::Null => Kind::Null,
            DataType::Boolean => Kind::Bool(array.as_boolean()),
            kind if kind.is_integer() => Kind::Integer(other()?),
            kind if kind.is_floating() => Kind::Float(other()?),
            kind if kind.is_decimal() => Kind::Decimal(other()?),
            DataType::Utf8 => Kind::Text(Texts::Utf8(array.as_string())),
            DataType::LargeUtf8 => Kind::Text(Texts::Large(array.as_string())),
            DataType::Utf8View => Kind::Text(Texts::View(array.as_string_view())),
            DataType::Binary => Kind::Bytes(Bytes::Binary(array.as_binary())),
            DataType::LargeBinary => Kind::Bytes(Bytes::Large(array.as_binary())),
            DataType::BinaryView => Kind::Bytes(Bytes::View(array.as_binary_view())),
            DataType::FixedSizeBinary(_) => Kind::Bytes(Bytes::Fixed(array.as_fixed_size_binary())),
            DataType::Timestamp(unit, zone) => {
                Kind::Timestamp(array, *unit, if zone.is_some() { Zone::Utc } else { Zone::None })
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Kind::List(Ranges::List(list), Self::of(list.values().as_ref())?)
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                Kind::List(Ranges::Large(list), Self::of(list.values().as_ref())?)
            }
            DataType::FixedSizeList(..) => {
                let list = array.as_fixed_size_list();
                Kind::List(Ranges::Fixed(list), Self::of(list.values().as_ref())?)
            }
            DataType::Struct(fields) => {
                Kind::Struct(Self::fields(array.as_struct(), fields.iter().map(AsRef::as_ref))?)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                Kind::Map(map, Self::of(map.keys().as_ref())?, Self::of(map.values().as_ref())?)
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                if dictionary.values().is_empty() {
                    Kind::Null
                } else {
                    Kind::Dictionary(dictionary.normalized_keys(), Self::of(dictionary.values().as_ref())?)
                }
            }
            DataType::Date32 => Kind::Calendar(other()?, raw_numbers(array)?, "days since 1970".to_owned()),
            DataType::Date64 => Kind::Calendar(other()?, raw_numbers(array)?, "milliseconds since 1970".to_owned()),
            DataType::Time32(unit) | DataType::Time64(unit) => {
                Kind::Calendar(other()?, raw_numbers(array)?, format!("{unit:?}s since midnight"))
            }
            DataType::Duration(unit) => Kind::Calendar(other()?, raw_numbers(array)?, format!("{unit:?}s")),
            _ => {
                let values = other()?;
                // Arrow writes its error where the value should stand.
                let shown = |row| values.value(row).try_to_string().map(drop);
                let all: Result<(), _> = (0..array.len()).try_for_each(shown);
                all.map_err(|err| Error::unsupported(format!("cannot print a {}: {err}", array.data_type())))?;
                Kind::Other(values)
            }
        })
    }

    fn fields<'f>(array: &'a StructArray, fields: impl Iterator<Item = &'f Field>) -> Result<Vec<(String, Self)>> {
        let named = array.columns().iter().zip(fields);
        named.map(|(column, field)| Ok((field.name().clone(), Self::new(column, field)?))).collect()
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        match &self.kind {
            Kind::Null => true,
            Kind::Dictionary(keys, values) => self.array.is_null(row) || values.is_null(keys[row]),
            _ => self.array.is_null(row),
        }
    }

    /// Whether people expect the column flush right.
    pub(crate) fn is_number(&self) -> bool {
        match &self.kind {
            Kind::Integer(_) | Kind::Decimal(_) | Kind::Float(_) => true,
            Kind::Dictionary(_, values) => values.is_number(),
            _ => false,
        }
    }

    /// Appends the value as text; nothing for null.
    pub(crate) fn text(&self, row: usize, out: &mut String) {
        if self.is_null(row) {
            return;
        }
        match &self.kind {
            Kind::Text(texts) | Kind::Json(texts) => out.push_str(texts.at(row)),
            Kind::Bytes(bytes) => hex(bytes.at(row), out),
            Kind::Timestamp(array, unit, zone) => timestamp(*array, *unit, *zone, row, out),
            Kind::Float(values) => out.push_str(&float(values, row)),
            Kind::Integer(values) | Kind::Decimal(values) | Kind::Other(values) => put(out, values, row),
            Kind::Calendar(values, numbers, unit) => match values.value(row).try_to_string() {
                Ok(text) => out.push_str(&text),
                Err(_) => write!(out, "{} {unit}", numbers.value(row)).expect("writing to a string does not fail"),
            },
            Kind::Dictionary(keys, values) => values.text(keys[row], out),
            Kind::Null | Kind::Bool(_) | Kind::List(..) | Kind::Struct(_) | Kind::Map(..) => {
                self.json(row, Numbers::Bare, out);
            }
        }
    }

    /// Appends the value as JSON.
    pub(crate) fn json(&self, row: usize, numbers: Numbers, out: &mut String) {
        if self.is_null(row) {
            out.push_str("null");
            return;
        }
        match &self.kind {
            Kind::Null => out.push_str("null"),
            Kind::Bool(values) => out.push_str(if values.value(row) { "true" } else { "false" }),
            Kind::Decimal(values) => put(out, values, row),
            Kind::Integer(values) => integer(values, row, numbers, out),
            Kind::Float(values) => {
                let text = float(values, row);
                if text.ends_with(|it: char| it.is_ascii_digit()) { out.push_str(&text) } else { quote(&text, out) }
            }
            Kind::Json(texts) => out.push_str(texts.at(row)),
            Kind::Text(texts) => quote(texts.at(row), out),
            Kind::Dictionary(keys, values) => values.json(keys[row], numbers, out),
            Kind::List(ranges, values) => {
                let range = ranges.at(row);
                joined(out, ('[', ']'), range, |at, out| values.json(at, numbers, out));
            }
            Kind::Struct(fields) => joined(out, ('{', '}'), 0..fields.len(), |at, out| {
                let (name, values) = &fields[at];
                quote(name, out);
                out.push(':');
                values.json(row, numbers, out);
            }),
            Kind::Map(map, keys, values) => {
                let offsets = map.value_offsets();
                joined(out, ('{', '}'), position(offsets[row])..position(offsets[row + 1]), |at, out| {
                    let mut key = String::new();
                    keys.text(at, &mut key);
                    quote(&key, out);
                    out.push(':');
                    values.json(at, numbers, out);
                });
            }
            Kind::Bytes(_) | Kind::Timestamp(..) | Kind::Calendar(..) | Kind::Other(_) => {
                let mut text = String::new();
                self.text(row, &mut text);
                quote(&text, out);
            }
        }
    }

    /// The instant in milliseconds, where the column has instants.
    pub(crate) fn millis(&self, row: usize) -> Option<i64> {
        let Kind::Timestamp(array, unit, _) = &self.kind else { return None };
        let value = raw(*array, *unit, row);
        Some(match unit {
            TimeUnit::Second => value.saturating_mul(1000),
            TimeUnit::Millisecond => value,
            TimeUnit::Microsecond => value.div_euclid(1000),
            TimeUnit::Nanosecond => value.div_euclid(1_000_000),
        })
    }
}

impl Texts<'_> {
    fn at(&self, row: usize) -> &str {
        match self {
            Self::Utf8(values) => values.value(row),
            Self::Large(values) => values.value(row),
            Self::View(values) => values.value(row),
        }
    }
}

impl Bytes<'_> {
    fn at(&self, row: usize) -> &[u8] {
        match self {
            Self::Binary(values) => values.value(row),
            Self::Large(values) => values.value(row),
            Self::View(values) => values.value(row),
            Self::Fixed(values) => values.value(row),
        }
    }
}

impl Ranges<'_> {
    fn at(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::List(list) => position(list.value_offsets()[row])..position(list.value_offsets()[row + 1]),
            Self::Large(list) => {
                let at = |it: i64| usize::try_from(it).expect("Arrow offsets are not negative");
                at(list.value_offsets()[row])..at(list.value_offsets()[row + 1])
            }
            Self::Fixed(list) => {
                let from = position(list.value_offset(row));
                from..from + position(list.value_length())
            }
        }
    }
}

fn position(offset: i32) -> usize {
    usize::try_from(offset).expect("Arrow offsets are not negative")
}

fn put(out: &mut String, values: &ArrayFormatter<'_>, row: usize) {
    write!(out, "{}", values.value(row)).expect("writing to a string does not fail");
}

fn integer(values: &ArrayFormatter<'_>, row: usize, numbers: Numbers, out: &mut String) {
    let from = out.len();
    put(out, values, row);
    let digits = out[from..].trim_start_matches('-');
    if numbers == Numbers::Careful && digits.parse::<u64>().is_ok_and(|it| it > EXACT_IN_A_DOUBLE) {
        out.insert(from, '"');
        out.push('"');
    }
}

/// Arrow says `inf`; the field says `Infinity`.
fn float(values: &ArrayFormatter<'_>, row: usize) -> String {
    values.value(row).to_string().replace("inf", "Infinity")
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        write!(out, "{byte:02x}").expect("writing to a string does not fail");
    }
}

/// The numbers behind dates, times and durations.
fn raw_numbers(array: &dyn Array) -> Result<Int64Array> {
    let numbers = arrow_cast::cast(array, &DataType::Int64);
    let numbers = numbers.map_err(|err| Error::unsupported(format!("cannot print: {err}")))?;
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

fn raw(array: &dyn Array, unit: TimeUnit, row: usize) -> i64 {
    match unit {
        TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row),
        TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
        TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row),
    }
}

fn timestamp(array: &dyn Array, unit: TimeUnit, zone: Zone, row: usize, out: &mut String) {
    let value = raw(array, unit, row);
    let at = match unit {
        TimeUnit::Second => DateTime::from_timestamp(value, 0),
        TimeUnit::Millisecond => DateTime::from_timestamp_millis(value),
        TimeUnit::Microsecond => DateTime::from_timestamp_micros(value),
        TimeUnit::Nanosecond => Some(DateTime::from_timestamp_nanos(value)),
    };
    let Some(at) = at else {
        // No calendar date stands for it: the number and its unit are still true.
        write!(out, "{value} {unit:?}s since 1970").expect("writing to a string does not fail");
        return;
    };
    // Milliseconds are the unit of versions, whose times stand below each other.
    let digits = if unit == TimeUnit::Millisecond { SecondsFormat::Millis } else { SecondsFormat::AutoSi };
    let text = at.to_rfc3339_opts(digits, true);
    out.push_str(if matches!(zone, Zone::Utc) { &text } else { text.trim_end_matches('Z') });
}

fn joined(
    out: &mut String,
    (open, close): (char, char),
    range: std::ops::Range<usize>,
    mut each: impl FnMut(usize, &mut String),
) {
    out.push(open);
    let first = range.start;
    for at in range {
        if at > first {
            out.push(',');
        }
        each(at, out);
    }
    out.push(close);
}

/// Appends `text` as a JSON string.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        Date32Array, Date64Array, Decimal128Array, DictionaryArray, Float64Array, Time32SecondArray,
        Time64MicrosecondArray, TimestampMicrosecondArray,
        builder::{Date32Builder, Int64Builder, ListBuilder, MapBuilder, StringBuilder},
        types::Int32Type,
    };

    use super::*;

    fn check(array: ArrayRef, expected: &[(&str, &str)]) {
        let field = Field::new("c", array.data_type().clone(), true);
        let cells = Cells::new(&array, &field).unwrap();
        for (row, (text, json)) in expected.iter().enumerate() {
            let (mut as_text, mut as_json) = (String::new(), String::new());
            cells.text(row, &mut as_text);
            cells.json(row, Numbers::Bare, &mut as_json);
            assert_eq!((as_text.as_str(), as_json.as_str()), (*text, *json), "row {row}");
        }
    }

    #[test]
    fn numbers_keep_every_digit() {
        check(
            Arc::new(Int64Array::from(vec![Some(i64::MAX), None])),
            &[("9223372036854775807", "9223372036854775807"), ("", "null")],
        );
        let decimals =
            Decimal128Array::from(vec![-5, 1_234_567_890_123_456_789]).with_precision_and_scale(38, 2).unwrap();
        check(Arc::new(decimals), &[("-0.05", "-0.05"), ("12345678901234567.89", "12345678901234567.89")]);
        let floats = Float64Array::from(vec![0.1, 1e300, f64::NAN, f64::NEG_INFINITY]);
        let expected = [("0.1", "0.1"), ("1e300", "1e300"), ("NaN", "\"NaN\""), ("-Infinity", "\"-Infinity\"")];
        check(Arc::new(floats), &expected);
    }

    #[test]
    fn instants_have_a_zone_when_the_type_has_one() {
        let at = TimestampMicrosecondArray::from(vec![1_700_000_000_123_000]);
        check(Arc::new(at.clone()), &[("2023-11-14T22:13:20.123", "\"2023-11-14T22:13:20.123\"")]);
        let zoned = at.with_timezone("Europe/Berlin");
        check(Arc::new(zoned), &[("2023-11-14T22:13:20.123Z", "\"2023-11-14T22:13:20.123Z\"")]);
        let far = TimestampMicrosecondArray::from(vec![i64::MAX]).with_timezone("UTC");
        check(
            Arc::new(far),
            &[("9223372036854775807 Microseconds since 1970", "\"9223372036854775807 Microseconds since 1970\"")],
        );
    }

    #[test]
    fn what_no_calendar_has_is_its_number() {
        let dates = Date32Array::from(vec![0, i32::MAX]);
        check(
            Arc::new(dates.clone()),
            &[("1970-01-01", "\"1970-01-01\""), ("2147483647 days since 1970", "\"2147483647 days since 1970\"")],
        );
        let mut list = ListBuilder::new(Date32Builder::new());
        list.values().append_value(i32::MAX);
        list.append(true);
        let nested = "[\"2147483647 days since 1970\"]";
        check(Arc::new(list.finish()), &[(nested, nested)]);
        let far = "9000000000000000000 milliseconds since 1970";
        check(Arc::new(Date64Array::from(vec![9_000_000_000_000_000_000])), &[(far, &format!("\"{far}\""))]);
        let times = Time64MicrosecondArray::from(vec![3_600_000_000, -5]);
        let late = "-5 Microseconds since midnight";
        check(Arc::new(times), &[("01:00:00", "\"01:00:00\""), (late, &format!("\"{late}\""))]);
        let late = "90000 Seconds since midnight";
        check(Arc::new(Time32SecondArray::from(vec![90_000])), &[(late, &format!("\"{late}\""))]);
    }

    #[test]
    fn nested_values_are_json_and_bytes_are_hex() {
        let mut list = ListBuilder::new(StringBuilder::new());
        list.values().append_value("a\"b");
        list.values().append_null();
        list.append(true);
        check(Arc::new(list.finish()), &[("[\"a\\\"b\",null]", "[\"a\\\"b\",null]")]);
        let mut map = MapBuilder::new(None, Int64Builder::new(), StringBuilder::new());
        map.keys().append_value(7);
        map.values().append_value("x");
        map.append(true).unwrap();
        check(Arc::new(map.finish()), &[("{\"7\":\"x\"}", "{\"7\":\"x\"}")]);
        check(Arc::new(BinaryArray::from(vec![&[0_u8, 255][..]])), &[("00ff", "\"00ff\"")]);
        let words: DictionaryArray<Int32Type> = [Some("a"), None, Some("a")].into_iter().collect();
        check(Arc::new(words), &[("a", "\"a\""), ("", "null"), ("a", "\"a\"")]);
    }

    #[test]
    fn large_integers_are_strings_for_careful_readers() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![1 << 53, (1 << 53) + 1]));
        let cells = Cells::new(&array, &Field::new("c", DataType::Int64, false)).unwrap();
        let mut out = String::new();
        cells.json(0, Numbers::Careful, &mut out);
        out.push(' ');
        cells.json(1, Numbers::Careful, &mut out);
        assert_eq!(out, "9007199254740992 \"9007199254740993\"");
    }
}
