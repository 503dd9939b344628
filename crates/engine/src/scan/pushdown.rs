//! Whether a scan's filters run inside the Parquet decoder.
//!
//! Inside, columns other than the filter's are decoded for the surviving rows only. That pays when few rows survive and
//! most bytes lie in other columns, and costs otherwise: the filter's columns are decoded twice as carefully, and each
//! conjunct is one more pass. So the survivors are estimated: every conjunct that compares a column with constants
//! keeps the share of the column's range that it covers, as if values were spread evenly.
use datafusion::{
    common::{Column, ColumnStatistics},
    logical_expr::{BinaryExpr, Expr, Operator, utils::split_conjunction},
    scalar::ScalarValue,
};

use super::options::ScanOptions;

/// The largest share of rows that a filter worth pushing keeps.
const FEW: f64 = 1.0 / 500.0;

/// Decides for a scan that reads `columns` columns under `filters`; `stats` knows the bounds of a column.
pub(crate) fn worthwhile<'a>(
    options: &ScanOptions,
    filters: &[Expr],
    columns: usize,
    stats: impl Fn(&str) -> Option<&'a ColumnStatistics>,
) -> bool {
    match options.filter_pushdown.as_str() {
        "on" => return true,
        "off" => return false,
        _ => (),
    }
    let conjuncts: Vec<&Expr> = filters.iter().flat_map(split_conjunction).collect();
    let mut used = std::collections::BTreeSet::new();
    for conjunct in &conjuncts {
        used.extend(conjunct.column_refs().into_iter().map(Column::name));
    }
    if columns < 2 * used.len().max(1) {
        return false;
    }
    let share: f64 = conjuncts.iter().map(|it| kept(it, &stats)).product();
    share <= FEW
}

/// The share of rows that a conjunct keeps, 1 where nothing is known.
fn kept<'a>(conjunct: &Expr, stats: &impl Fn(&str) -> Option<&'a ColumnStatistics>) -> f64 {
    match conjunct {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) => compared(stats(&column.name), *op, value),
            (Expr::Literal(value, _), Expr::Column(column)) => match op.swap() {
                Some(op) => compared(stats(&column.name), op, value),
                None => 1.0,
            },
            _ => 1.0,
        },
        Expr::InList(list) if !list.negated => match list.expr.as_ref() {
            Expr::Column(column) => {
                let known = stats(&column.name);
                let each = |it: &Expr| match it {
                    Expr::Literal(value, _) => compared(known, Operator::Eq, value),
                    _ => 1.0,
                };
                list.list.iter().map(each).sum::<f64>().min(1.0)
            }
            _ => 1.0,
        },
        Expr::Between(between) if !between.negated => {
            match (between.expr.as_ref(), between.low.as_ref(), between.high.as_ref()) {
                (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) => {
                    let known = stats(&column.name);
                    let above = compared(known, Operator::GtEq, low);
                    let below = compared(known, Operator::LtEq, high);
                    (above + below - 1.0).clamp(0.0, 1.0)
                }
                _ => 1.0,
            }
        }
        _ => 1.0,
    }
}

fn compared(known: Option<&ColumnStatistics>, op: Operator, value: &ScalarValue) -> f64 {
    let Some((low, high, whole)) = known.and_then(range) else { return 1.0 };
    let Some(at) = number(value) else { return 1.0 };
    let width = high - low;
    match op {
        // Only whole numbers tell how many values a range holds.
        Operator::Eq if whole => 1.0 / (width + 1.0),
        Operator::Gt | Operator::GtEq if width > 0.0 => ((high - at) / width).clamp(0.0, 1.0),
        Operator::Lt | Operator::LtEq if width > 0.0 => ((at - low) / width).clamp(0.0, 1.0),
        _ => 1.0,
    }
}

fn range(known: &ColumnStatistics) -> Option<(f64, f64, bool)> {
    let (low, high) = (known.min_value.get_value()?, known.max_value.get_value()?);
    Some((number(low)?, number(high)?, low.data_type().is_integer() || low.data_type().is_temporal()))
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn number(value: &ScalarValue) -> Option<f64> {
    Some(match value {
        ScalarValue::Int8(Some(it)) => f64::from(*it),
        ScalarValue::Int16(Some(it)) => f64::from(*it),
        ScalarValue::Int32(Some(it)) | ScalarValue::Date32(Some(it)) => f64::from(*it),
        ScalarValue::Int64(Some(it)) | ScalarValue::TimestampMicrosecond(Some(it), _) => *it as f64,
        ScalarValue::Float32(Some(it)) => f64::from(*it),
        ScalarValue::Float64(Some(it)) => *it,
        ScalarValue::Decimal128(Some(it), _, scale) => *it as f64 / 10f64.powi(i32::from(*scale)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::{
        common::stats::Precision,
        prelude::{col, lit},
    };

    use super::*;

    fn check(filter: Expr, columns: usize, expected: bool) {
        let known = ColumnStatistics {
            min_value: Precision::Inexact(ScalarValue::Int64(Some(1))),
            max_value: Precision::Inexact(ScalarValue::Int64(Some(1_000_000))),
            ..ColumnStatistics::new_unknown()
        };
        let stats = |name: &str| (name == "k").then_some(&known);
        assert_eq!(
            worthwhile(&ScanOptions::default(), std::slice::from_ref(&filter), columns, stats),
            expected,
            "{filter}"
        );
    }

    #[test]
    fn few_rows_of_many_columns_are_worth_it() {
        check(col("k").eq(lit(7i64)), 16, true);
        check(lit(7i64).eq(col("k")), 16, true);
        check(col("k").in_list(vec![lit(7i64), lit(9i64)], false), 16, true);
        check(col("k").between(lit(10i64), lit(900i64)), 16, true);
        check(col("k").gt(lit(10i64)).and(col("k").lt(lit(900i64))), 16, true);
    }

    #[test]
    fn many_rows_few_columns_or_the_unknown_are_not() {
        check(col("k").eq(lit(7i64)), 1, false);
        check(col("k").gt(lit(10i64)), 16, false);
        check(col("k").eq(lit(7i64)).or(col("k").gt(lit(3i64))), 16, false);
        check(col("s").eq(lit("x")), 16, false);
    }
}
