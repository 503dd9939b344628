use arrow_schema::{Field, Fields, TimeUnit};
use datafusion::{
    functions::core::expr_fn::get_field,
    logical_expr::{Expr, cast, col, in_list, is_null, lit, not},
};

use super::*;

fn table() -> Schema {
    let inner = Fields::from(vec![Field::new("b", DataType::Int64, true)]);
    Schema::new(vec![
        Field::new("i", DataType::Int32, true),
        Field::new("l", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("f", DataType::Float64, true),
        Field::new("flag", DataType::Boolean, true),
        Field::new("d", DataType::Decimal128(9, 2), true),
        Field::new("day", DataType::Date32, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("a", DataType::Struct(inner), true),
    ])
}

/// `expected` is the predicate as Rust prints it, shortened; `exact` or `weak` first.
fn check(expr: Expr, expected: &str) {
    let Lowered { predicate, exact } = lower(&expr, &table());
    let text = format!("{} {}", if exact { "exact" } else { "weak" }, shown(&predicate));
    assert_eq!(text, expected, "{expr}");
}

fn shown(predicate: &Predicate) -> String {
    let list = |all: &[Predicate], word: &str| {
        let parts: Vec<_> = all.iter().map(shown).collect();
        format!("({})", parts.join(word))
    };
    match predicate {
        Predicate::And(all) => list(all, " and "),
        Predicate::Or(all) => list(all, " or "),
        Predicate::Not(it) => format!("not {}", shown(it)),
        Predicate::IsNull(path) => format!("{path} null"),
        Predicate::Compare(path, cmp, value) => format!("{path} {cmp:?} {value:?}"),
        Predicate::In(path, values) => format!("{path} in {values:?}"),
        Predicate::StartsWith(path, prefix) => format!("{path} starts {prefix}"),
        Predicate::True | Predicate::False => format!("{predicate:?}"),
    }
}

#[test]
fn comparisons_in_the_columns_own_type() {
    check(col("i").eq(lit(3i32)), "exact i Eq Int(3)");
    check(lit(3i64).lt(col("l")), "exact l Gt Int(3)");
    check(cast(col("i"), DataType::Int64).gt_eq(lit(3i64)), "exact i GtEq Int(3)");
    check(cast(col("i"), DataType::Int64).gt(lit(1i64 << 40)), "weak True");
    check(cast(col("l"), DataType::Int32).eq(lit(3i32)), "weak True");
    check(cast(col("i"), DataType::Utf8).eq(lit("3")), "weak True");
    check(col("i").eq(col("l")), "weak True");
    check(col("i").eq(Expr::Literal(ScalarValue::Int32(None), None)), "weak False");
    check(col("d").lt(Expr::Literal(ScalarValue::Decimal128(Some(150), 9, 2), None)), "exact d Lt Decimal(150, 2)");
    check(col("day").eq(Expr::Literal(ScalarValue::Date32(Some(4)), None)), "exact day Eq Date(4)");
    let seconds = ScalarValue::TimestampSecond(Some(2), None);
    check(col("at").gt(Expr::Literal(seconds, None)), "exact at Gt Timestamp(2000000)");
    check(col("f").gt(lit(1.5)), "weak f Gt Double(1.5)");
    check(col("f").gt(lit(f64::NAN)), "weak True");
    check(get_field(col("a"), "b").eq(lit(7i64)), "exact a.b Eq Int(7)");
    check(col("missing").eq(lit(7i64)), "weak True");
}

#[test]
fn connectives_keep_what_is_necessary() {
    let unknown = || col("i").eq(col("l"));
    check(col("i").eq(lit(1i32)).and(unknown()), "weak i Eq Int(1)");
    check(col("i").eq(lit(1i32)).or(unknown()), "weak True");
    check(col("i").eq(lit(1i32)).or(col("l").eq(lit(2i64))), "exact (i Eq Int(1) or l Eq Int(2))");
    check(not(col("i").eq(lit(1i32))), "exact not i Eq Int(1)");
    check(not(col("i").eq(lit(1i32)).and(unknown())), "weak True");
    check(not(col("f").gt(lit(1.0))), "weak True");
    check(col("flag"), "exact flag Eq Boolean(true)");
    check(not(col("flag")), "exact not flag Eq Boolean(true)");
    check(lit(true), "exact True");
    check(lit(false), "exact False");
    check(not(Expr::Literal(ScalarValue::Boolean(None), None)), "weak True");
    check(is_null(col("s")), "exact s null");
    check(col("s").is_not_null(), "exact not s null");
    check(is_null(get_field(col("a"), "b")), "weak True");
}

#[test]
fn lists_ranges_and_prefixes() {
    check(in_list(col("i"), vec![lit(1i32), lit(2i32)], false), "exact i in [Int(1), Int(2)]");
    check(in_list(col("i"), vec![lit(1i32), lit(2i32)], true), "exact not i in [Int(1), Int(2)]");
    let null = Expr::Literal(ScalarValue::Int32(None), None);
    check(in_list(col("i"), vec![lit(1i32), null.clone()], false), "weak i in [Int(1)]");
    check(in_list(col("i"), vec![lit(1i32), null], true), "weak True");
    check(col("i").between(lit(1i32), lit(5i32)), "exact (i GtEq Int(1) and i LtEq Int(5))");
    check(col("i").not_between(lit(1i32), lit(5i32)), "exact not (i GtEq Int(1) and i LtEq Int(5))");
    check(col("s").like(lit("abc%")), "exact s starts abc");
    check(col("s").like(lit("abc%d")), "weak s starts abc");
    check(col("s").like(lit("a_c%")), "weak s starts a");
    check(col("s").like(lit("%c")), "weak True");
    check(col("s").like(lit("abc")), "exact s Eq Utf8(\"abc\")");
    check(col("s").not_like(lit("abc%")), "exact not s starts abc");
    check(col("s").not_like(lit("abc%d")), "weak True");
    check(col("s").ilike(lit("abc%")), "weak True");
}
