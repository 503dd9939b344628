use proptest::prelude::*;

use super::*;
use crate::{
    expr::Scalar::{Boolean, Date, Decimal, Double, Int, Timestamp, TimestampNanos, Utf8},
    file::FileStats,
    path::FilePath,
};

fn column(name: &str) -> ColumnPath {
    ColumnPath::top(name)
}

fn stats(lower: impl Into<Option<Scalar>>, upper: impl Into<Option<Scalar>>, nulls: Option<u64>) -> ColumnStats {
    ColumnStats { lower: lower.into(), upper: upper.into(), nulls, exact: true }
}

/// A file of 10 rows with these statistics of `x`.
fn file(stats: ColumnStats) -> DataFile {
    let mut file = DataFile::parquet(FilePath::below("f"), 1);
    file.stats = FileStats { rows: Some(10), columns: vec![(column("x"), stats)] };
    file
}

fn text(it: &str) -> Scalar {
    Utf8(it.to_owned())
}

fn x(cmp: Cmp, value: Scalar) -> Predicate {
    Predicate::Compare(column("x"), cmp, value)
}

fn not(it: Predicate) -> Predicate {
    Predicate::Not(Box::new(it))
}

#[track_caller]
fn check(file: &DataFile, cases: &[(Predicate, bool)]) {
    for (predicate, kept) in cases {
        assert_eq!(keep(predicate, file), *kept, "{predicate:?}");
    }
}

#[test]
fn bounds_decide_comparisons() {
    check(
        &file(stats(Int(10), Int(20), Some(0))),
        &[
            (x(Cmp::Eq, Int(9)), false),
            (x(Cmp::Eq, Int(10)), true),
            (x(Cmp::Eq, Int(20)), true),
            (x(Cmp::Eq, Int(21)), false),
            (x(Cmp::Lt, Int(10)), false),
            (x(Cmp::LtEq, Int(10)), true),
            (x(Cmp::Gt, Int(20)), false),
            (x(Cmp::GtEq, Int(20)), true),
            (x(Cmp::NotEq, Int(10)), true),
            (not(x(Cmp::GtEq, Int(10))), false),
            (not(x(Cmp::LtEq, Int(10))), true),
            (Predicate::In(column("x"), vec![Int(1), Int(30)]), false),
            (Predicate::In(column("x"), vec![Int(1), Int(15)]), true),
            (Predicate::In(column("x"), vec![]), false),
            (not(Predicate::In(column("x"), vec![])), true),
            (Predicate::And(vec![x(Cmp::Gt, Int(5)), x(Cmp::Gt, Int(25))]), false),
            (Predicate::Or(vec![x(Cmp::Lt, Int(5)), x(Cmp::Gt, Int(25))]), false),
            (Predicate::Or(vec![]), false),
            (Predicate::And(vec![]), true),
            (Predicate::False, false),
            (Predicate::True, true),
            (not(Predicate::True), true),
        ],
    );
    check(&file(stats(Int(7), Int(7), Some(0))), &[(x(Cmp::NotEq, Int(7)), false), (x(Cmp::NotEq, Int(8)), true)]);
}

#[test]
fn null_counts_decide_null_tests() {
    let is_null = Predicate::IsNull(column("x"));
    check(&file(stats(Int(1), Int(2), Some(0))), &[(is_null.clone(), false), (not(is_null.clone()), true)]);
    check(
        &file(stats(None, None, Some(10))),
        &[
            (is_null.clone(), true),
            (not(is_null.clone()), false),
            (x(Cmp::Eq, Int(1)), false),
            (not(x(Cmp::Eq, Int(1))), false),
            (Predicate::StartsWith(column("x"), String::new()), false),
        ],
    );
    check(&file(stats(None, None, None)), &[(is_null.clone(), true), (not(is_null.clone()), true)]);
    let mut unknown = file(stats(None, None, Some(10)));
    unknown.stats.rows = None;
    check(&unknown, &[(is_null.clone(), true), (not(is_null), true), (x(Cmp::Eq, Int(1)), true)]);
}

#[test]
fn what_is_unknown_is_kept() {
    check(&file(stats(None, Int(5), Some(0))), &[(x(Cmp::Lt, Int(-100)), true), (x(Cmp::Gt, Int(5)), false)]);
    // Bounds out of order, of two types, or of another type than the value.
    check(&file(stats(Int(9), Int(1), None)), &[(x(Cmp::Eq, Int(100)), true)]);
    check(&file(stats(Int(1), text("z"), None)), &[(x(Cmp::Eq, Int(100)), true)]);
    check(&file(stats(Date(1), Date(2), None)), &[(x(Cmp::Eq, Timestamp(10_000_000_000)), true)]);
    check(&file(stats(text("1"), text("2"), None)), &[(x(Cmp::Eq, Int(9)), true)]);
    check(&file(stats(Boolean(true), Boolean(true), None)), &[(x(Cmp::Eq, Boolean(false)), false)]);
    let other = Predicate::Compare(column("y"), Cmp::Eq, Int(1));
    check(&file(stats(Int(1), Int(1), Some(0))), &[(other.clone(), true), (not(other), true)]);
}

#[test]
fn floats_have_no_upper_bound() {
    check(
        &file(stats(Double(1.0), Double(2.0), Some(0))),
        &[
            (x(Cmp::Gt, Double(2.0)), true),
            (x(Cmp::Lt, Double(1.0)), false),
            (x(Cmp::Eq, Double(0.5)), false),
            (x(Cmp::Eq, Double(f64::NAN)), true),
        ],
    );
    check(&file(stats(Double(1.0), Double(1.0), Some(0))), &[(x(Cmp::NotEq, Double(1.0)), true)]);
    check(
        &file(stats(Double(0.0), Double(0.0), Some(0))),
        &[(x(Cmp::Lt, Double(0.0)), true), (x(Cmp::Eq, Double(-0.0)), true)],
    );
    check(&file(stats(Double(f64::NAN), Double(f64::NAN), Some(0))), &[(x(Cmp::Lt, Double(-5.0)), true)]);
    check(&file(stats(Scalar::Float(1.5), Scalar::Float(1.5), Some(0))), &[(x(Cmp::Lt, Double(1.5)), false)]);
}

#[test]
fn decimals_and_times_of_different_scale_compare_exactly() {
    check(
        &file(stats(Decimal(100, 1), Decimal(200, 1), Some(0))),
        &[
            (x(Cmp::Eq, Decimal(2001, 2)), false),
            (x(Cmp::Eq, Decimal(2000, 2)), true),
            (x(Cmp::Lt, Int(10)), false),
            (x(Cmp::Gt, Int(19)), true),
            (x(Cmp::Eq, Decimal(i128::MAX, -10)), true),
        ],
    );
    check(
        &file(stats(Timestamp(1), Timestamp(2), Some(0))),
        &[(x(Cmp::Gt, TimestampNanos(2_000)), false), (x(Cmp::Gt, TimestampNanos(1_999)), true)],
    );
    check(
        &file(stats(TimestampNanos(1_500), TimestampNanos(i64::MAX), Some(0))),
        &[(x(Cmp::Lt, Timestamp(1)), false), (x(Cmp::Gt, Timestamp(i64::MAX)), false)],
    );
}

#[test]
fn text_bounds_may_be_cut() {
    let cut = ColumnStats { exact: false, ..stats(text("ba"), text("bc"), Some(0)) };
    let starts = |it: &str| Predicate::StartsWith(column("x"), it.to_owned());
    check(
        &file(cut),
        &[
            (x(Cmp::Eq, text("bcd")), true),
            (x(Cmp::Gt, text("bcd")), true),
            (x(Cmp::Gt, text("bd")), false),
            (starts("b"), true),
            (starts("bcd"), true),
            (starts("bd"), false),
            (starts("a"), false),
            (not(starts("b")), false),
            (not(starts("ba")), true),
        ],
    );
    check(
        &file(stats(text("ba"), text("bc"), Some(0))),
        &[(x(Cmp::Eq, text("bcd")), false), (starts("bcd"), false), (starts(""), true), (starts("baa"), true)],
    );
    let equal = ColumnStats { exact: false, ..stats(text("a"), text("a"), Some(0)) };
    check(&file(equal), &[(x(Cmp::NotEq, text("a")), true)]);
}

#[test]
fn partition_values_win_over_statistics() {
    let mut file = file(stats(Int(100), Int(200), Some(0)));
    file.partition = vec![("x".to_owned(), Some(Int(7))), ("day".to_owned(), None)];
    file.stats.rows = None;
    let day = |cmp| Predicate::Compare(column("day"), cmp, Date(1));
    check(
        &file,
        &[
            (x(Cmp::Eq, Int(7)), true),
            (x(Cmp::NotEq, Int(7)), false),
            (x(Cmp::Eq, Int(150)), false),
            (Predicate::IsNull(column("x")), false),
            (Predicate::IsNull(column("day")), true),
            (not(Predicate::IsNull(column("day"))), false),
            (day(Cmp::Eq), false),
            (not(day(Cmp::Eq)), false),
        ],
    );
}

// Against the obvious: a file that holds a row for which the predicate is true must be kept.

type Row = [Option<Scalar>; 3];

fn value(at: usize) -> BoxedStrategy<Option<Scalar>> {
    match at {
        0 => prop_oneof![1 => Just(None), 5 => (-3_i64..4).prop_map(|it| Some(Int(it)))].boxed(),
        1 => prop_oneof![1 => Just(None), 5 => "[ab]{0,3}".prop_map(|it| Some(Utf8(it)))].boxed(),
        _ => {
            let numbers = prop::sample::select(vec![-1.0, -0.0, 0.0, 1.0, f64::NAN, f64::INFINITY]);
            prop_oneof![1 => Just(None), 5 => numbers.prop_map(|it| Some(Double(it)))].boxed()
        }
    }
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((value(0), value(1), value(2)).prop_map(|(a, b, c)| [a, b, c]), 1..6)
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let cmp = prop::sample::select(vec![Cmp::Eq, Cmp::NotEq, Cmp::Lt, Cmp::LtEq, Cmp::Gt, Cmp::GtEq]);
    let some = |at| value(at).prop_map(|it| it.unwrap_or(Int(0)));
    let name = |at: usize| column(["a", "b", "c"][at]);
    let leaf = (0_usize..3).prop_flat_map(move |at| {
        prop_oneof![
            Just(Predicate::IsNull(name(at))),
            (cmp.clone(), some(at)).prop_map(move |(cmp, it)| Predicate::Compare(name(at), cmp, it)),
            prop::collection::vec(some(at), 0..3).prop_map(move |it| Predicate::In(name(at), it)),
            "[ab]{0,2}".prop_map(move |it| Predicate::StartsWith(name(at), it)),
        ]
    });
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(not),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::And),
            prop::collection::vec(inner, 0..3).prop_map(Predicate::Or),
        ]
    })
}

/// How a reader compares floats.
#[derive(Debug, Clone, Copy)]
enum Floats {
    /// NaN is the greatest and equals itself, `-0.0` is less than `0.0`.
    Total,
    /// NaN is the greatest and equals itself, `-0.0` equals `0.0`.
    Spark,
}

fn compared(a: &Scalar, b: &Scalar, floats: Floats) -> Option<std::cmp::Ordering> {
    match (a, b, floats) {
        (Double(a), Double(b), Floats::Spark) if *a == 0.0 && *b == 0.0 => Some(std::cmp::Ordering::Equal),
        _ => a.order(b),
    }
}

fn eval(predicate: &Predicate, row: &Row, floats: Floats) -> Option<bool> {
    let cell = |it: &ColumnPath| row[["a", "b", "c"].iter().position(|name| *name == it.0[0]).unwrap()].clone();
    match predicate {
        Predicate::True => Some(true),
        Predicate::False => Some(false),
        Predicate::Not(it) => eval(it, row, floats).map(|it| !it),
        Predicate::And(all) => {
            let all: Vec<_> = all.iter().map(|it| eval(it, row, floats)).collect();
            if all.contains(&Some(false)) {
                Some(false)
            } else {
                all.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
        }
        Predicate::Or(any) => {
            let any: Vec<_> = any.iter().map(|it| eval(it, row, floats)).collect();
            if any.contains(&Some(true)) {
                Some(true)
            } else {
                any.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
        }
        Predicate::IsNull(it) => Some(cell(it).is_none()),
        Predicate::Compare(it, cmp, value) => {
            let order = compared(&cell(it)?, value, floats)?;
            Some(match cmp {
                Cmp::Eq => order.is_eq(),
                Cmp::NotEq => order.is_ne(),
                Cmp::Lt => order.is_lt(),
                Cmp::LtEq => order.is_le(),
                Cmp::Gt => order.is_gt(),
                Cmp::GtEq => order.is_ge(),
            })
        }
        Predicate::In(_, values) if values.is_empty() => Some(false),
        Predicate::In(it, values) => {
            let cell = cell(it)?;
            let found: Vec<_> =
                values.iter().map(|it| compared(&cell, it, floats).map(std::cmp::Ordering::is_eq)).collect();
            if found.contains(&Some(true)) {
                Some(true)
            } else {
                found.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
        }
        Predicate::StartsWith(it, prefix) => match cell(it)? {
            Utf8(text) => Some(text.starts_with(prefix.as_str())),
            _ => None,
        },
    }
}

/// What a writer that knows its business says of the rows; text cut to `cut` characters, the upper bound not rounded.
fn described(rows: &[Row], cut: usize, with_nulls: bool) -> DataFile {
    let mut file = DataFile::parquet(FilePath::below("f"), 1);
    file.stats.rows = Some(rows.len() as u64);
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let mut values: Vec<Scalar> = rows.iter().filter_map(|it| it[at].clone()).collect();
        values.retain(|it| !matches!(it, Double(it) if it.is_nan()));
        values.sort_by(|a, b| a.order(b).unwrap());
        let shorten = |it: Option<&Scalar>| match it {
            Some(Utf8(text)) => Some(Utf8(text.chars().take(cut).collect())),
            // Some writers write either zero as the other.
            Some(Double(it)) if *it == 0.0 => Some(Double(0.0)),
            other => other.cloned(),
        };
        let nulls = rows.iter().filter(|it| it[at].is_none()).count() as u64;
        let stats = ColumnStats {
            lower: shorten(values.first()),
            upper: shorten(values.last()),
            nulls: with_nulls.then_some(nulls),
            exact: false,
        };
        file.stats.columns.push((column(name), stats));
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_file_with_a_wanted_row_is_kept(rows in rows(), predicate in predicate(), cut in 1_usize..4, nulls: bool) {
        let file = described(&rows, cut, nulls);
        for floats in [Floats::Total, Floats::Spark] {
            if rows.iter().any(|it| eval(&predicate, it, floats) == Some(true)) {
                prop_assert!(keep(&predicate, &file), "{:?} on {:?} with {:?}", predicate, rows, file.stats);
            }
        }
    }

    #[test]
    fn a_partition_value_is_like_a_column_of_it(value in value(0), predicate in predicate()) {
        let row: Row = [value.clone(), None, None];
        let mut file = DataFile::parquet(FilePath::below("f"), 1);
        file.partition = vec![("a".to_owned(), value), ("b".to_owned(), None), ("c".to_owned(), None)];
        if eval(&predicate, &row, Floats::Total) == Some(true) {
            prop_assert!(keep(&predicate, &file));
        }
    }

    #[test]
    fn pruning_is_not_idle(low in -100_i64..100, width in 0_i64..10, at in -200_i64..200) {
        let kept = keep(&x(Cmp::Eq, Int(at)), &file(stats(Int(low), Int(low + width), Some(0))));
        prop_assert_eq!(kept, (low..=low + width).contains(&at));
    }
}
