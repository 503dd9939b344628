use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray, StructArray, TimestampMicrosecondArray};
use arrow_schema::TimeUnit;
use proptest::prelude::*;

use super::*;
use crate::schema::Mapping;

fn plan(fields: Vec<Field>, wanted: Option<&[&[&str]]>) -> StatsPlan {
    let schema = arrow_schema::Schema::new(fields);
    let schema = TableSchema { arrow: Arc::new(schema), mapping: Mapping::None, partition: Vec::new() };
    let wanted: Option<BTreeSet<ColumnPath>> =
        wanted.map(|it| it.iter().map(|it| ColumnPath(it.iter().map(|it| (*it).to_owned()).collect())).collect());
    StatsPlan::of(&schema, wanted.as_ref())
}

const ZONED: fn() -> DataType = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));

/// The one column's statistics after reading `text`, with `min` and `max` put in.
fn column(kind: DataType, min: &str, max: &str) -> ColumnStats {
    let text =
        format!(r#"{{"numRecords":10,"minValues":{{"c":{min}}},"maxValues":{{"c":{max}}},"nullCount":{{"c":1}}}}"#);
    let stats = plan(vec![Field::new("c", kind, true)], None).read(&text);
    assert_eq!(stats.rows, Some(10));
    stats.columns[0].1.clone()
}

fn check(kind: DataType, min: &str, max: &str, lower: Option<Scalar>, upper: Option<Scalar>, exact: bool) {
    let found = column(kind, min, max);
    assert_eq!(found, ColumnStats { lower, upper, nulls: Some(1), exact }, "{min}..{max}");
}

#[test]
fn bounds_have_the_type_of_the_column() {
    check(DataType::Int32, "-5", "7", Some(Scalar::Int(-5)), Some(Scalar::Int(7)), true);
    check(DataType::Date32, "\"1970-01-02\"", "\"1970-01-03\"", Some(Scalar::Date(1)), Some(Scalar::Date(2)), true);
    let decimal = DataType::Decimal128(38, 2);
    let huge = "123456789012345678901234567890.12";
    check(
        decimal,
        "1.5",
        huge,
        Some(Scalar::Decimal(150, 2)),
        Some(Scalar::Decimal(12345678901234567890123456789012, 2)),
        true,
    );
    let text = |it: &str| Some(Scalar::Utf8(it.to_owned()));
    check(DataType::Utf8, "\"a\"", r#""\u00e9\"""#, text("a"), text("é\""), false);
}

#[test]
fn a_timestamp_cut_to_milliseconds_is_an_upper_bound_999_microseconds_later() {
    let at = 1_700_000_000_123_000;
    let text = "\"2023-11-14T22:13:20.123Z\"";
    check(ZONED(), text, text, Some(Scalar::Timestamp(at)), Some(Scalar::Timestamp(at + 999)), false);
    let offset = "\"2023-11-14T23:13:20.123+01:00\"";
    check(ZONED(), offset, offset, Some(Scalar::Timestamp(at)), Some(Scalar::Timestamp(at + 999)), false);
    check(ZONED(), "\"2023-11-14 22:13:20\"", text, None, Some(Scalar::Timestamp(at + 999)), false);
    let local = DataType::Timestamp(TimeUnit::Microsecond, None);
    let date = "\"2000-01-01\"";
    let day = 946_684_800_000_000;
    check(local, date, date, Some(Scalar::Timestamp(day)), Some(Scalar::Timestamp(day + 999)), false);
}

#[test]
fn a_float_has_no_upper_bound_and_zero_is_both_zeros() {
    check(DataType::Float64, "0", "1.5", Some(Scalar::Double(-0.0)), None, false);
    assert!(matches!(column(DataType::Float64, "0.0", "1").lower, Some(Scalar::Double(it)) if it.is_sign_negative()));
    check(DataType::Float64, "\"NaN\"", "\"NaN\"", None, None, false);
    // 0.7 as a float is 0.699999988…: a bound of 0.7 would lose it.
    check(DataType::Float64, "0.7", "1", Some(Scalar::Double(f64::from(0.7f32))), None, false);
    check(DataType::Float32, "0.7", "1", Some(Scalar::Float(0.7)), None, false);
}

#[test]
fn statistics_of_a_narrower_type_are_widened() {
    check(DataType::Decimal128(12, 2), "5", "6", Some(Scalar::Decimal(500, 2)), Some(Scalar::Decimal(600, 2)), true);
    check(DataType::Float64, "5", "6", Some(Scalar::Double(5.0)), None, false);
}

#[test]
fn a_value_of_the_wrong_type_spoils_only_itself() {
    check(DataType::Int32, "\"five\"", "7", None, Some(Scalar::Int(7)), true);
    check(DataType::Int32, "{\"a\":[1]}", "7.5", None, None, true);
    check(DataType::Utf8, "3", "null", None, None, false);
    check(DataType::Decimal128(4, 2), "1.234", "99999", None, None, true);
    check(DataType::Int32, "9", "3", None, None, true);
}

#[test]
fn loose_bounds_are_bounds_and_null_counts_only_at_the_ends() {
    let nulls = |count: i64, tight: &str| {
        let text =
            format!(r#"{{"numRecords":10,"tightBounds":{tight},"minValues":{{"c":1}},"nullCount":{{"c":{count}}}}}"#);
        let stats = plan(vec![Field::new("c", DataType::Int64, true)], None).read(&text).columns[0].1.clone();
        (stats.nulls, stats.exact)
    };
    assert_eq!(nulls(3, "true"), (Some(3), true));
    assert_eq!(nulls(3, "false"), (None, false));
    assert_eq!(nulls(0, "false"), (Some(0), false));
    assert_eq!(nulls(10, "false"), (Some(10), false));
    assert_eq!(nulls(11, "true"), (None, true));
    assert_eq!(nulls(-1, "true"), (None, true));
}

#[test]
fn what_is_no_json_says_nothing() {
    let plan = plan(vec![Field::new("c", DataType::Int64, true)], None);
    for text in ["", "null", "[]", "3", "{\"numRecords\":5", "{\"numRecords\":5}}", "{\"numRecords\":5,}"] {
        assert_eq!(plan.read(text), FileStats::default(), "{text}");
    }
    for text in [r#"{"numRecords":-5}"#, r#"{"numRecords":"5"}"#, r#"{"minValues":7,"maxValues":[1],"nullCount":null}"#]
    {
        assert_eq!(plan.read(text), FileStats::default(), "{text}");
    }
}

#[test]
fn only_wanted_columns_are_read_by_their_physical_names() {
    let physical = |name: &str, as_: &str, kind| {
        Field::new(name, kind, true).with_metadata([("lakebed.physical_name".to_owned(), as_.to_owned())].into())
    };
    let inner =
        DataType::Struct(vec![physical("x", "col-2", DataType::Int64), physical("y", "col-3", DataType::Int64)].into());
    let fields = vec![physical("s", "col-1", inner), physical("z", "col-4", DataType::Int64)];
    let text = r#"{"numRecords":2,"minValues":{"col-1":{"col-2":1,"col-3":2},"col-4":3,"z":9}}"#;
    let read = |wanted: Option<&[&[&str]]>| {
        let stats = plan(fields.clone(), wanted).read(text);
        stats.columns.iter().map(|it| it.0.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read(None), "s.x s.y z");
    assert_eq!(read(Some(&[&["s", "y"]])), "s.y");
    assert_eq!(read(Some(&[&["s"]])), "s.x s.y");
    assert_eq!(read(Some(&[])), "");
    assert!(plan(fields.clone(), Some(&[])).is_empty());
    let plan = plan(fields, None);
    assert_eq!(plan.bounds_json(&plan.read(text)).0.unwrap(), r#"{"s":{"x":1,"y":2},"z":3}"#);
}

#[test]
fn the_row_count_alone_is_found_without_parsing() {
    for (text, expected) in [
        (r#"{"numRecords":12,"minValues":{}}"#, Some(12)),
        (r#"{"numRecords":12}"#, Some(12)),
        (r#"{"minValues":{"numRecords":7},"numRecords":12}"#, Some(12)),
        (r#"{"numRecords": 12}"#, Some(12)),
        (r#""{\"numRecords\":12,\"minValues\":{}}""#, Some(12)),
        (r#""{\"a\":1,\"numRecords\":12}""#, Some(12)),
        (r#"{"numRecords":1e3}"#, None),
        (r#"{"numRecords":-1}"#, None),
        (r#"{"numRecords":99999999999999999999}"#, None),
        (r#"{"numRecords":12"#, None),
        ("", None),
        ("{}", None),
    ] {
        assert_eq!(num_records(text), expected, "{text}");
    }
}

#[test]
fn struct_columns_say_the_same_as_json() {
    let fields = vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("at", ZONED(), true),
    ];
    let plan = plan(fields, None);
    let of = |fields: Vec<(&str, ArrayRef)>| {
        let fields =
            fields.into_iter().map(|(name, it)| (Arc::new(Field::new(name, it.data_type().clone(), true)), it));
        StructArray::from(fields.collect::<Vec<_>>())
    };
    let times = |at: i64| Arc::new(TimestampMicrosecondArray::from(vec![at; 2]).with_timezone("UTC")) as ArrayRef;
    let min = of(vec![
        ("id", Arc::new(Int64Array::from(vec![Some(1), None]))),
        ("name", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("at", times(5000)),
    ]);
    let max = of(vec![("id", Arc::new(Int64Array::from(vec![9, 8]))), ("at", times(6000))]);
    let nulls = of(vec![("id", Arc::new(Int64Array::from(vec![0, 4])))]);
    let stats = of(vec![
        ("numRecords", Arc::new(Int64Array::from(vec![3, 10]))),
        ("tightBounds", Arc::new(BooleanArray::from(vec![true, false]))),
        ("minValues", Arc::new(min)),
        ("maxValues", Arc::new(max)),
        ("nullCount", Arc::new(nulls)),
    ]);
    let columns = StatsColumns::of(&plan, &stats);
    let json = r#"{"numRecords":3,"tightBounds":true,"minValues":{"id":1,"name":"a","at":"1970-01-01T00:00:00.005Z"},
        "maxValues":{"id":9,"at":"1970-01-01T00:00:00.006Z"},"nullCount":{"id":0}}"#;
    assert_eq!(columns.read(&plan, 0), plan.read(json));
    let second = columns.read(&plan, 1);
    assert_eq!(
        (columns.rows(1), second.columns[0].1.clone()),
        (Some(10), ColumnStats { lower: None, upper: Some(Scalar::Int(8)), nulls: None, exact: false })
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,120}", value in "[-0-9a-zA-Z\":{}.,\\[\\]]{0,20}") {
        let kinds = [DataType::Int8, DataType::Utf8, DataType::Decimal128(38, 10), ZONED(), DataType::Date32, DataType::Float64];
        for kind in kinds {
            let plan = plan(vec![Field::new("c", kind, true)], None);
            let _ = plan.read(&text);
            let _ = plan.read(&format!(r#"{{"numRecords":{value},"minValues":{{"c":{value}}},"maxValues":{{"c":{value}}}}}"#));
        }
        let _ = num_records(&text);
        let _ = num_records(&format!(r#"{{"numRecords":{value}"#));
    }
}
