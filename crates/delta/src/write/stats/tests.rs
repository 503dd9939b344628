use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{Field, Schema, TimeUnit};
use lakebed_core::scan::PHYSICAL_NAME;
use proptest::prelude::*;

use super::*;
use crate::{schema::Mapping, stats::StatsPlan};

fn schema(fields: Vec<Field>, partition: Vec<usize>) -> TableSchema {
    TableSchema { arrow: Arc::new(Schema::new(fields)), mapping: Mapping::None, partition }
}

fn bounded(path: &[&str], lower: Scalar, upper: Scalar) -> (ColumnPath, ColumnStats) {
    let path = ColumnPath(path.iter().map(|it| (*it).to_owned()).collect());
    (path, ColumnStats { lower: Some(lower), upper: Some(upper), nulls: Some(0), exact: true })
}

/// The text of one column's bounds.
fn check(kind: DataType, lower: Scalar, upper: Scalar, expected: &str) {
    let schema = schema(vec![Field::new("c", kind, true)], Vec::new());
    let (columns, _) = indexed_columns(&schema, Properties(&BTreeMap::new()));
    let stats = FileStats { rows: Some(2), columns: vec![bounded(&["c"], lower, upper)] };
    let text = text(&columns, &stats, false).unwrap();
    let inner = text.strip_prefix("{\"numRecords\":2,").and_then(|it| it.strip_suffix("\"nullCount\":{\"c\":0}}"));
    assert_eq!(inner, Some(expected), "{text}");
    // What is written holds for the values when it is read.
    let read = StatsPlan::of(&schema, None).read(&text);
    assert_eq!(read.rows, Some(2));
    if let Some((_, column)) = read.columns.first() {
        let (lower, upper) = (&stats.columns[0].1.lower, &stats.columns[0].1.upper);
        let below = |a: &Option<Scalar>, b: &Option<Scalar>| match (a, b) {
            (Some(a), Some(b)) => a.order(b) != Some(std::cmp::Ordering::Greater),
            _ => true,
        };
        assert!(below(&column.lower, lower) && below(upper, &column.upper), "{text}: {column:?}");
    }
}

fn minmax(min: &str, max: &str) -> String {
    format!("\"minValues\":{{\"c\":{min}}},\"maxValues\":{{\"c\":{max}}},")
}

#[test]
fn bounds_are_spelled_by_type() {
    let zoned = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let local = DataType::Timestamp(TimeUnit::Microsecond, None);
    check(DataType::Int64, Scalar::Int(i64::MIN), Scalar::Int(9), &minmax("-9223372036854775808", "9"));
    check(
        DataType::Decimal128(38, 2),
        Scalar::Decimal(-1, 2),
        Scalar::Decimal(10i128.pow(37), 2),
        &minmax("-0.01", &format!("1{}.00", "0".repeat(35))),
    );
    check(DataType::Float64, Scalar::Double(-0.5), Scalar::Double(1e300), &minmax("-0.5", "1e+300"));
    check(DataType::Float32, Scalar::Float(0.1), Scalar::Float(0.2), &minmax("0.1", "0.2"));
    check(DataType::Boolean, Scalar::Boolean(false), Scalar::Boolean(true), &minmax("false", "true"));
    check(DataType::Date32, Scalar::Date(0), Scalar::Date(1), &minmax("\"1970-01-01\"", "\"1970-01-02\""));
    check(
        zoned(),
        Scalar::Timestamp(1_001),
        Scalar::Timestamp(2_001),
        &minmax("\"1970-01-01T00:00:00.001Z\"", "\"1970-01-01T00:00:00.003Z\""),
    );
    check(
        local,
        Scalar::Timestamp(-1),
        Scalar::Timestamp(2_000),
        &minmax("\"1969-12-31T23:59:59.999\"", "\"1970-01-01T00:00:00.002\""),
    );
}

#[test]
fn what_cannot_be_a_bound_is_left_out() {
    check(DataType::Float64, Scalar::Double(1.0), Scalar::Double(f64::NAN), "");
    check(DataType::Float64, Scalar::Double(f64::NEG_INFINITY), Scalar::Double(1.0), "\"maxValues\":{\"c\":1.0},");
    check(DataType::Binary, Scalar::Binary(vec![1]), Scalar::Binary(vec![2]), "");
    check(DataType::Date32, Scalar::Date(i32::MIN), Scalar::Date(0), "\"maxValues\":{\"c\":\"1970-01-01\"},");
}

#[test]
fn strings_are_cut_and_a_maximum_raised() {
    let long = "a".repeat(32);
    let text = |it: &str| Scalar::Utf8(it.to_owned());
    let json = |it: &str| serde_json::to_string(it).unwrap();
    check(DataType::Utf8, text(&long), text(&long), &minmax(&json(&long), &json(&long)));
    let longer = format!("{long}b");
    check(DataType::Utf8, text(&longer), text(&longer), &minmax(&json(&long), &json(&format!("{long}\u{7f}"))));
    let wide = format!("{}ü", "é".repeat(32));
    check(
        DataType::Utf8,
        text(&wide),
        text(&wide),
        &minmax(&json(&"é".repeat(32)), &json(&format!("{}{}", "é".repeat(32), char::MAX))),
    );
    // Nothing sorts behind these.
    let top = format!("{long}{}", char::MAX);
    check(DataType::Utf8, text(&long), text(&top), &format!("\"minValues\":{{\"c\":{}}},", json(&long)));
}

#[test]
fn columns_nest_and_go_by_their_physical_names() {
    let mapped = |name: &str, physical: &str, kind| {
        Field::new(name, kind, true).with_metadata([(PHYSICAL_NAME.to_owned(), physical.to_owned())].into())
    };
    let inner = Fields::from(vec![mapped("x", "col-x", DataType::Int64), mapped("y", "col-y", DataType::Int64)]);
    let fields = vec![
        mapped("p", "col-p", DataType::Int64),
        mapped("s", "col-s", DataType::Struct(inner)),
        mapped("z", "col-z", DataType::Int64),
    ];
    let schema = schema(fields, vec![0]);
    let (columns, all) = indexed_columns(&schema, Properties(&BTreeMap::new()));
    assert!(all);
    let one = |path: &[&str]| bounded(path, Scalar::Int(1), Scalar::Int(1));
    let stats =
        FileStats { rows: Some(1), columns: vec![one(&["s", "x"]), one(&["z"]), one(&["s", "y"]), one(&["p"])] };
    insta::assert_snapshot!(text(&columns, &stats, true).unwrap(), @r#"{"numRecords":1,"minValues":{"col-s":{"col-x":1,"col-y":1},"col-z":1},"maxValues":{"col-s":{"col-x":1,"col-y":1},"col-z":1},"nullCount":{"col-s":{"col-x":0,"col-y":0},"col-z":0},"tightBounds":true}"#);
}

#[test]
fn bounds_that_do_not_occur_are_said_to_be_loose() {
    let schema = schema(vec![Field::new("c", DataType::Int64, true)], Vec::new());
    let (columns, _) = indexed_columns(&schema, Properties(&BTreeMap::new()));
    let mut stats = FileStats { rows: Some(1), columns: vec![bounded(&["c"], Scalar::Int(1), Scalar::Int(2))] };
    stats.columns[0].1.exact = false;
    assert!(text(&columns, &stats, false).unwrap().ends_with("\"tightBounds\":false}"));
    assert_eq!(text(&columns, &FileStats::default(), true), None);
}

#[test]
fn properties_say_which_columns_are_indexed() {
    let inner =
        Fields::from(vec![Field::new("x", DataType::Int64, true), Field::new("odd, name", DataType::Int64, true)]);
    let mut fields = vec![Field::new("s", DataType::Struct(inner), true)];
    fields.extend((0..40).map(|it| Field::new(format!("c{it}"), DataType::Int32, true)));
    let schema = schema(fields, Vec::new());
    let shown = |set: &[(&str, &str)]| {
        let set = set.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let (columns, all) = indexed_columns(&schema, Properties(&set));
        let names: Vec<String> = columns.iter().map(|it| it.path.to_string()).collect();
        (names.len(), names.into_iter().take(3).collect::<Vec<_>>().join(" "), all)
    };
    let first = || "s.x s.odd, name c0".to_owned();
    assert_eq!(shown(&[]), (32, first(), false));
    assert_eq!(shown(&[("delta.dataSkippingNumIndexedCols", "-1")]), (42, first(), true));
    assert_eq!(shown(&[("delta.dataSkippingNumIndexedCols", "0")]), (0, String::new(), false));
    assert_eq!(
        shown(&[("delta.dataSkippingStatsColumns", "C39, s.`odd, name`")]),
        (2, "s.odd, name c39".to_owned(), false)
    );
    assert_eq!(shown(&[("delta.dataSkippingStatsColumns", "s")]), (2, "s.x s.odd, name".to_owned(), false));
}

#[test]
fn a_vector_loosens_and_keeps_every_digit() {
    let before = r#"{"minValues":{"d":123456789012345678901234567890.12},"numRecords":7,"tightBounds":true}"#;
    let after = serde_json::to_string(&loosened(before).unwrap()).unwrap();
    assert_eq!(after, r#"{"numRecords":7,"minValues":{"d":123456789012345678901234567890.12},"tightBounds":false}"#);
    assert!(loosened("nonsense").is_none());
}

proptest! {
    #[test]
    fn a_cut_maximum_is_never_below_the_text(text in "\\PC{0,50}") {
        if let Some(cut) = cut_up(&text) {
            prop_assert!(cut.as_bytes() >= text.as_bytes());
            prop_assert!(cut.chars().count() <= PREFIX + 1);
        }
    }
}
