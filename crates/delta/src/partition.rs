//! Partition values: the text in the log ⟷ values of the column's type.
//!
//! The log spells every value as text; the directories of data files are never looked at. Null and the empty string
//! both mean NULL, for every type.
//!
//! | type | spellings |
//! |---|---|
//! | integers | decimal digits |
//! | decimal | plain or with exponent; no more fraction digits than the column |
//! | float, double | Java's: `1.0E10`, `NaN`, `Infinity`, `-Infinity` |
//! | boolean | `true`, `false` |
//! | date | `yyyy-MM-dd` |
//! | timestamp | `yyyy-MM-dd HH:mm:ss[.SSSSSS]`, taken as UTC; ISO 8601 with zone, as `2024-06-14T09:58:54.123456Z` |
//! | timestamp_ntz | either form without zone |
//! | binary | the bytes of the text in UTF-8, as Spark writes and reads it |
//!
//! Written are ISO 8601 in UTC with six fraction digits for `timestamp`, and decimals at the column's scale.
//!
//! Spec: Delta PROTOCOL.md, "Partition Value Serialization".
use arrow_schema::{DataType, Field, TimeUnit};
use lakebed_core::expr::Scalar;

use crate::{error::DeltaError, state::columns::PartitionValues};

pub(crate) mod text;

/// The value of partition column `field` of a file.
///
/// # Errors
/// Names the file and the column when the text is no value of the column's type.
pub(crate) fn parse(file: &str, field: &Field, text: Option<&str>) -> Result<Option<Scalar>, DeltaError> {
    let Some(text) = text.filter(|it| !it.is_empty()) else { return Ok(None) };
    match value(text, field.data_type()) {
        Some(value) => Ok(Some(value)),
        None => Err(DeltaError::PartitionValue {
            file: file.to_owned(),
            column: field.name().clone(),
            value: text.to_owned(),
            kind: field.data_type().to_string(),
        }),
    }
}

/// The value of partition column `field` of the file in `row`.
///
/// # Errors
/// As [`parse`]; also when the file does not name the column, which is not null.
pub(crate) fn of_row(
    file: &str,
    field: &Field,
    values: &PartitionValues,
    row: usize,
) -> Result<Option<Scalar>, DeltaError> {
    if !values.is_named(row) {
        return Err(missing(file, field));
    }
    parse(file, field, values.get(row))
}

/// A file that does not name a partition column.
pub(crate) fn missing(file: &str, field: &Field) -> DeltaError {
    DeltaError::NoPartitionValue { file: file.to_owned(), column: field.name().clone() }
}

/// Whether a timestamp's text leaves its zone to be guessed: it was written in the writer's local time.
pub(crate) fn lacks_zone(kind: &DataType, text: &str) -> bool {
    let with_time = text.len() > "yyyy-MM-dd".len();
    matches!(kind, DataType::Timestamp(_, Some(_))) && with_time && text::timestamp_with_zone(text).is_none()
}

/// A value of type `kind`; `None` if the text is none.
fn value(text: &str, kind: &DataType) -> Option<Scalar> {
    Some(match kind {
        DataType::Utf8 => Scalar::Utf8(text.to_owned()),
        DataType::Int8 => Scalar::Int(text.parse::<i8>().ok()?.into()),
        DataType::Int16 => Scalar::Int(text.parse::<i16>().ok()?.into()),
        DataType::Int32 => Scalar::Int(text.parse::<i32>().ok()?.into()),
        DataType::Int64 => Scalar::Int(text.parse().ok()?),
        DataType::Float32 => Scalar::Float(text.parse().ok()?),
        DataType::Float64 => Scalar::Double(text.parse().ok()?),
        DataType::Boolean => Scalar::Boolean(text::boolean(text)?),
        DataType::Date32 => Scalar::Date(text::date(text)?),
        DataType::Decimal128(precision, scale) => Scalar::Decimal(text::decimal(text, *precision, *scale)?, *scale),
        DataType::Timestamp(TimeUnit::Microsecond, None) => Scalar::Timestamp(text::timestamp_without_zone(text)?),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
            Scalar::Timestamp(text::timestamp_with_zone(text).or_else(|| text::timestamp_without_zone(text))?)
        }
        DataType::Binary => Scalar::Binary(text.as_bytes().to_vec()),
        _ => return None,
    })
}

/// The text of a value in the log: the inverse of [`parse`]. Null and the empty string are no text.
///
/// # Errors
/// Invalid, naming the column, for a value that is none of its type or has no text there (bytes that are not UTF-8, a
/// year beyond 9999).
pub(crate) fn text_of(field: &Field, value: Option<&Scalar>) -> lakebed_core::Result<Option<String>> {
    let Some(value) = value else { return Ok(None) };
    match spell(value, field.data_type()) {
        Some(text) => Ok(Some(text).filter(|it| !it.is_empty())),
        None => Err(lakebed_core::Error::invalid(format!(
            "column `{}` is a {}: {value:?} cannot be the value of its partition",
            field.name(),
            field.data_type()
        ))),
    }
}

fn spell(value: &Scalar, kind: &DataType) -> Option<String> {
    Some(match (value, kind) {
        (Scalar::Utf8(it), DataType::Utf8) => it.clone(),
        (Scalar::Int(it), DataType::Int8) => i8::try_from(*it).ok()?.to_string(),
        (Scalar::Int(it), DataType::Int16) => i16::try_from(*it).ok()?.to_string(),
        (Scalar::Int(it), DataType::Int32) => i32::try_from(*it).ok()?.to_string(),
        (Scalar::Int(it), DataType::Int64) => it.to_string(),
        (Scalar::Float(it), DataType::Float32) if it.is_finite() => text::show_java_float(&format!("{it:e}")),
        (Scalar::Double(it), DataType::Float64) if it.is_finite() => text::show_java_float(&format!("{it:e}")),
        (Scalar::Float(it), DataType::Float32) => text::show_odd_float((*it).into()).to_owned(),
        (Scalar::Double(it), DataType::Float64) => text::show_odd_float(*it).to_owned(),
        (Scalar::Boolean(it), DataType::Boolean) => it.to_string(),
        (Scalar::Date(it), DataType::Date32) => text::write_date(*it)?,
        (Scalar::Decimal(it, from), DataType::Decimal128(precision, scale)) => {
            let at_scale = text::decimal(&text::show_decimal(*it, *from), *precision, *scale)?;
            text::show_decimal(at_scale, *scale)
        }
        (Scalar::Timestamp(it), DataType::Timestamp(_, Some(_))) => text::write_micros(*it, "%Y-%m-%dT%H:%M:%S%.6fZ")?,
        (Scalar::Timestamp(it), DataType::Timestamp(_, None)) => {
            // Without a fraction where there is none, as Spark spells it.
            let format = if it.rem_euclid(1_000_000) == 0 { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M:%S%.6f" };
            text::write_micros(*it, format)?
        }
        (Scalar::Binary(it), DataType::Binary) => String::from_utf8(it.clone()).ok()?,
        _ => return None,
    })
}

/// A value as JSON, for listings: numbers as numbers, times in ISO 8601, decimals as text so that no digit is lost.
pub(crate) fn json(value: &Scalar, kind: &DataType) -> serde_json::Value {
    match value {
        Scalar::Boolean(it) => (*it).into(),
        Scalar::Int(it) => (*it).into(),
        Scalar::Decimal(unscaled, scale) => text::show_decimal(*unscaled, *scale).into(),
        Scalar::Float(it) if it.is_finite() => f64::from(*it).into(),
        Scalar::Float(it) => text::show_odd_float((*it).into()).into(),
        Scalar::Double(it) if it.is_finite() => (*it).into(),
        Scalar::Double(it) => text::show_odd_float(*it).into(),
        Scalar::Utf8(it) => it.as_str().into(),
        Scalar::Binary(it) => it.iter().map(|it| format!("{it:02x}")).collect::<String>().into(),
        Scalar::Date(days) => text::show_date(*days).into(),
        Scalar::Timestamp(micros) => {
            let zone = if matches!(kind, DataType::Timestamp(_, Some(_))) { "Z" } else { "" };
            format!("{}{zone}", text::show_micros(*micros)).into()
        }
        Scalar::TimestampNanos(nanos) => text::show_micros(nanos.div_euclid(1000)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: DataType, text: &str, expected: Option<Scalar>) {
        let field = Field::new("p", kind, true);
        match (parse("part-0.parquet", &field, Some(text)), expected) {
            (Ok(found), Some(expected)) => assert_eq!(found, Some(expected), "{text}"),
            (Err(err), None) => {
                let message = err.to_string();
                assert!(message.contains("part-0.parquet") && message.contains("column `p`"), "{message}");
            }
            (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
        }
    }

    const ZONED: fn() -> DataType = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    const LOCAL: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

    #[test]
    fn null_and_the_empty_string_are_null_for_every_type() {
        for kind in
            [DataType::Utf8, DataType::Int32, DataType::Boolean, ZONED(), DataType::Decimal128(5, 2), DataType::Binary]
        {
            let field = Field::new("p", kind, true);
            assert_eq!(parse("f", &field, None).unwrap(), None);
            assert_eq!(parse("f", &field, Some("")).unwrap(), None);
        }
    }

    #[test]
    fn numbers_keep_to_their_width() {
        check(DataType::Int8, "-128", Some(Scalar::Int(-128)));
        check(DataType::Int8, "128", None);
        check(DataType::Int64, "9223372036854775807", Some(Scalar::Int(i64::MAX)));
        check(DataType::Int32, "1.0", None);
        check(DataType::Decimal128(8, 5), "234.00000", Some(Scalar::Decimal(23_400_000, 5)));
        check(DataType::Decimal128(8, 5), "-0.5", Some(Scalar::Decimal(-50_000, 5)));
        check(DataType::Decimal128(8, 5), "1E+2", Some(Scalar::Decimal(10_000_000, 5)));
        check(DataType::Decimal128(8, 5), "1E-5", Some(Scalar::Decimal(1, 5)));
        check(DataType::Decimal128(8, 5), "0.000001", None);
        check(DataType::Decimal128(8, 5), "1000", None);
        check(DataType::Decimal128(8, 5), "1E+9999999", None);
    }

    #[test]
    fn floats_are_spelled_as_java_spells_them() {
        check(DataType::Float64, "1.0E10", Some(Scalar::Double(1.0e10)));
        check(DataType::Float64, "-Infinity", Some(Scalar::Double(f64::NEG_INFINITY)));
        check(DataType::Float32, "0.5", Some(Scalar::Float(0.5)));
        let field = Field::new("p", DataType::Float64, true);
        let Some(Scalar::Double(nan)) = parse("f", &field, Some("NaN")).unwrap() else { panic!("no double") };
        assert!(nan.is_nan());
        check(DataType::Float64, "one", None);
    }

    #[test]
    fn timestamps_have_three_spellings() {
        let noon = 1_718_366_334_123_456;
        check(ZONED(), "2024-06-14 11:58:54.123456", Some(Scalar::Timestamp(noon)));
        check(ZONED(), "2024-06-14T11:58:54.123456Z", Some(Scalar::Timestamp(noon)));
        check(ZONED(), "2024-06-14T13:58:54.123456+02:00", Some(Scalar::Timestamp(noon)));
        check(LOCAL, "2024-06-14 11:58:54.123456", Some(Scalar::Timestamp(noon)));
        check(LOCAL, "2024-06-14T11:58:54.123456", Some(Scalar::Timestamp(noon)));
        check(LOCAL, "2024-06-14T11:58:54.123456Z", None);
        check(LOCAL, "2000-01-01", Some(Scalar::Timestamp(946_684_800_000_000)));
        check(ZONED(), "1969-12-31 23:59:59.9", Some(Scalar::Timestamp(-100_000)));
        check(ZONED(), "2024-06-14 25:00:00", None);
        check(ZONED(), "2024-06-14 11:58:54.1234567", None);
        assert!(lacks_zone(&ZONED(), "2024-06-14 11:58:54") && !lacks_zone(&ZONED(), "2024-06-14T11:58:54Z"));
        assert!(!lacks_zone(&LOCAL, "2024-06-14 11:58:54"));
    }

    #[test]
    fn dates_reach_from_year_one_to_beyond_9999() {
        check(DataType::Date32, "0001-01-01", Some(Scalar::Date(-719_162)));
        check(DataType::Date32, "9999-12-31", Some(Scalar::Date(2_932_896)));
        check(DataType::Date32, "+10000-01-01", Some(Scalar::Date(2_932_897)));
        check(DataType::Date32, "2023-02-29", None);
        check(DataType::Date32, "2023-2-3", None);
        check(DataType::Date32, "2023-02-03 ", None);
    }

    #[test]
    fn other_types() {
        check(DataType::Boolean, "true", Some(Scalar::Boolean(true)));
        check(DataType::Boolean, "yes", None);
        check(DataType::Binary, "\u{1}\u{2}", Some(Scalar::Binary(vec![1, 2])));
        check(DataType::Binary, "é", Some(Scalar::Binary(vec![0xc3, 0xa9])));
        check(DataType::Utf8, " a b ", Some(Scalar::Utf8(" a b ".into())));
    }

    fn spelled(kind: DataType, value: Scalar, expected: &str) {
        let field = Field::new("p", kind, true);
        assert_eq!(text_of(&field, Some(&value)).unwrap().as_deref(), Some(expected));
        assert_eq!(parse("f", &field, Some(expected)).unwrap(), Some(value), "{expected}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        spelled(DataType::Utf8, Scalar::Utf8(" a/b ".into()), " a/b ");
        spelled(DataType::Int8, Scalar::Int(-128), "-128");
        spelled(DataType::Boolean, Scalar::Boolean(false), "false");
        spelled(DataType::Date32, Scalar::Date(-719_162), "0001-01-01");
        spelled(DataType::Decimal128(8, 5), Scalar::Decimal(23_400_000, 5), "234.00000");
        spelled(DataType::Decimal128(8, 5), Scalar::Decimal(-1, 5), "-0.00001");
        spelled(ZONED(), Scalar::Timestamp(1_718_366_334_123_456), "2024-06-14T11:58:54.123456Z");
        spelled(ZONED(), Scalar::Timestamp(0), "1970-01-01T00:00:00.000000Z");
        spelled(LOCAL, Scalar::Timestamp(0), "1970-01-01 00:00:00");
        spelled(LOCAL, Scalar::Timestamp(-1), "1969-12-31 23:59:59.999999");
        spelled(DataType::Binary, Scalar::Binary("é".into()), "é");
        for (value, text) in [
            (0.0, "0.0"),
            (-0.5, "-0.5"),
            (1.0, "1.0"),
            (1_234_567.0, "1234567.0"),
            (1e7, "1.0E7"),
            (1.25e10, "1.25E10"),
            (0.001, "0.001"),
            (0.000_99, "9.9E-4"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            spelled(DataType::Float64, Scalar::Double(value), text);
        }
        spelled(DataType::Float32, Scalar::Float(0.1), "0.1");
    }

    #[test]
    fn what_has_no_text_is_null_or_refused() {
        let of = |kind, value: Option<Scalar>| text_of(&Field::new("p", kind, true), value.as_ref());
        assert_eq!(of(DataType::Utf8, None).unwrap(), None);
        assert_eq!(of(DataType::Utf8, Some(Scalar::Utf8(String::new()))).unwrap(), None);
        assert_eq!(of(DataType::Binary, Some(Scalar::Binary(Vec::new()))).unwrap(), None);
        for (kind, value) in [
            (DataType::Int8, Scalar::Int(128)),
            (DataType::Utf8, Scalar::Int(1)),
            (DataType::Binary, Scalar::Binary(vec![0xff])),
            (DataType::Date32, Scalar::Date(i32::MAX)),
            (DataType::Decimal128(3, 1), Scalar::Decimal(1, 2)),
        ] {
            let err = of(kind, Some(value)).unwrap_err();
            assert!(err.to_string().contains("column `p`"), "{err}");
        }
    }

    #[test]
    fn values_are_shown_as_json() {
        let show = |kind: DataType, value: Scalar| json(&value, &kind).to_string();
        assert_eq!(show(DataType::Int32, Scalar::Int(3)), "3");
        assert_eq!(show(DataType::Decimal128(5, 2), Scalar::Decimal(-5, 2)), "\"-0.05\"");
        assert_eq!(show(DataType::Float64, Scalar::Double(f64::NAN)), "\"NaN\"");
        assert_eq!(show(DataType::Date32, Scalar::Date(0)), "\"1970-01-01\"");
        assert_eq!(show(ZONED(), Scalar::Timestamp(-1)), "\"1969-12-31T23:59:59.999999Z\"");
        assert_eq!(show(LOCAL, Scalar::Timestamp(0)), "\"1970-01-01T00:00:00\"");
        assert_eq!(show(DataType::Binary, Scalar::Binary(vec![0, 255])), "\"00ff\"");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}", digits in "[-+0-9.eE:TZ ]{0,30}") {
            for kind in [DataType::Decimal128(38, 37), DataType::Date32, ZONED(), LOCAL, DataType::Float32, DataType::Binary] {
                let _ = value(&text, &kind);
                let _ = value(&digits, &kind);
            }
        }
    }
}
