//! Values that fit, and those that do not.
use arrow_array::{
    Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};

use super::*;

fn check(array: impl Array + 'static, to: DataType, expected: &str) {
    let array: ArrayRef = Arc::new(array);
    let from = Field::new("c", array.data_type().clone(), true);
    let way = Assign::find(&from, &Field::new("c", to, true), "c");
    let outcome = match way.and_then(|it| it.apply(&array)) {
        Ok(made) => (0..made.len()).map(|row| value_text(&made, row)).collect::<Vec<_>>().join(" "),
        Err(err) => err.to_string(),
    };
    assert_eq!(outcome, expected);
}

#[test]
fn values_fit_or_are_named() {
    let texts = || StringArray::from(vec![Some("1"), None, Some("2x")]);
    check(texts(), DataType::Int32, "column `c`: '2x' is no INT");
    check(texts(), DataType::Boolean, "column `c`: '2x' is no BOOLEAN");
    check(texts(), DataType::Binary, "31 NULL 3278");
    check(StringArray::from(vec!["2020-01-02"]), DataType::Date32, "2020-01-02");
    check(StringArray::from(vec!["soon"]), DataType::Date32, "column `c`: 'soon' is no DATE");
    check(StringArray::from(vec!["1.255"]), DataType::Decimal128(5, 2), "1.26");
    check(Int64Array::from(vec![1, 300]), DataType::Int8, "column `c`: 300 does not fit TINYINT");
    check(Int64Array::from(vec![Some(1), None]), DataType::Decimal128(5, 2), "1.00 NULL");
    check(Int64Array::from(vec![1000]), DataType::Decimal128(5, 2), "column `c`: 1000 does not fit DECIMAL(5,2)");
    check(Int32Array::from(vec![7]), DataType::Utf8, "7");
    check(Int32Array::from(vec![7]), DataType::Boolean, "column `c` has type BOOLEAN, into which INT does not go");
    check(Int32Array::from(vec![7]), DataType::Date32, "column `c` has type DATE, into which INT does not go");
}

#[test]
fn fractions_and_infinities_are_not_lost_in_silence() {
    check(Float64Array::from(vec![2.0, 2.5]), DataType::Int32, "column `c`: 2.5 does not fit INT");
    check(Float64Array::from(vec![2.0, f64::NAN]), DataType::Int32, "column `c`: NaN does not fit INT");
    check(Float64Array::from(vec![1e300]), DataType::Float32, "column `c`: 1e300 does not fit FLOAT");
    check(Float64Array::from(vec![0.1, f64::INFINITY]), DataType::Float32, "0.1 inf");
    check(Float64Array::from(vec![2.345]), DataType::Decimal128(5, 1), "2.3");
    let decimal = |it: i128| Decimal128Array::from(vec![it]).with_precision_and_scale(10, 2).unwrap();
    check(decimal(200), DataType::Int64, "2");
    check(decimal(250), DataType::Int64, "column `c`: 2.50 does not fit BIGINT");
    check(decimal(255), DataType::Decimal128(10, 1), "2.6");
    check(decimal(12_345), DataType::Decimal128(4, 2), "column `c`: 123.45 does not fit DECIMAL(4,2)");
}

#[test]
fn times_keep_their_instant() {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
    check(TimestampNanosecondArray::from(vec![1_500]), micros.clone(), "1970-01-01T00:00:00.000001");
    check(StringArray::from(vec!["2020-01-02 03:04:05"]), micros, "2020-01-02T03:04:05");
    check(TimestampMicrosecondArray::from(vec![0]), DataType::Date32, "1970-01-01");
    let late = TimestampMicrosecondArray::from(vec![1]);
    check(late, DataType::Date32, "column `c`: 1970-01-01T00:00:00.000001 does not fit DATE");
}

#[test]
fn structs_go_by_name() {
    let field = |name: &str, kind| Arc::new(Field::new(name, kind, true));
    let a: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let b: ArrayRef = Arc::new(StringArray::from(vec!["3", "garbage"]));
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let fields = Fields::from(vec![field("A", DataType::Int32), field("b", DataType::Utf8)]);
    let wanted = |names: &[(&str, DataType)]| {
        DataType::Struct(names.iter().map(|(name, kind)| field(name, kind.clone())).collect())
    };
    let made = || StructArray::new(fields.clone(), vec![Arc::clone(&a), Arc::clone(&b)], nulls.clone());
    let all = [("b", DataType::Int64), ("a", DataType::Int64), ("c", DataType::Utf8)];
    check(made(), wanted(&all), "{b: 3, a: 1, c: NULL} NULL");
    check(made(), wanted(&all[..1]), "column `c` has no field `A`");
}
