//! Rows as a multiset: what two readers of one table must agree on.
//!
//! Order does not count, neither of rows nor of columns, and neither do nullability and integer or float widths (see
//! [`value`](crate::value)). Timestamps are compared in microseconds. Where one side has a variant, text on the other
//! side is compared after parsing it as JSON.
use std::{cmp::Ordering, collections::BTreeMap, fmt};

use arrow_array::RecordBatch;
use lakebed_core::{Error, Result};

use crate::value::{Value, canonical_json, value_at};

/// Rows of named columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    pub fn new(columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// The rows of all batches, in order. All batches have the columns of the first.
    pub fn from_batches(batches: &[RecordBatch]) -> Result<Self> {
        let Some(first) = batches.first() else { return Ok(Self::default()) };
        let mut rows = Self::new(first.schema().fields().iter().map(|it| it.name().clone()));
        for batch in batches {
            for row in 0..batch.num_rows() {
                rows.rows.push(batch.columns().iter().map(|it| value_at(it, row)).collect::<Result<_>>()?);
            }
        }
        Ok(rows)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The position of a column, exactly by name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|it| it == name)
    }

    /// The same rows with these columns, in this order.
    pub fn project(&self, names: &[impl AsRef<str>]) -> Result<Self> {
        let places = names.iter().map(|name| {
            let place = self.column(name.as_ref());
            place.ok_or_else(|| {
                Error::not_found(format!("no column `{}` among {}", name.as_ref(), self.columns.join(", ")))
            })
        });
        let places = places.collect::<Result<Vec<_>>>()?;
        let mut out = Self::new(names.iter().map(|it| it.as_ref()));
        out.rows = self.rows.iter().map(|row| places.iter().map(|at| row[*at].clone()).collect()).collect();
        Ok(out)
    }

    /// What `actual` lacks and has too much, `None` when both are the same multiset.
    pub fn difference(&self, actual: &Self) -> Option<Difference> {
        let mut names: [Vec<&String>; 2] = [self.columns.iter().collect(), actual.columns.iter().collect()];
        names.iter_mut().for_each(|it| it.sort());
        if names[0] != names[1] && !(self.is_empty() && actual.columns.is_empty()) {
            return Some(Difference::Columns { expected: self.columns.clone(), actual: actual.columns.clone() });
        }
        let actual = match actual.columns.is_empty() {
            true => actual.clone(),
            false => actual.project(&self.columns).expect("the names are the same"),
        };
        let json: Vec<bool> = (0..self.columns.len()).map(|at| self.has_json(at) || actual.has_json(at)).collect();
        let counts = |rows: &Self| {
            let mut counts: BTreeMap<Vec<Value>, i64> = BTreeMap::new();
            for row in &rows.rows {
                let row = row.iter().zip(&json).map(|(value, json)| comparable(value, *json)).collect();
                *counts.entry(row).or_default() += 1;
            }
            counts
        };
        compare(&self.columns, &counts(self), &counts(&actual))
    }

    /// Takes text that is a JSON document for the document, so that spelling does not count.
    pub fn read_json_text(&mut self) {
        for value in self.rows.iter_mut().flatten() {
            if let Value::Text(text) = value
                && let Some(document) = canonical_json(text)
            {
                *value = Value::Json(document);
            }
        }
    }

    fn has_json(&self, column: usize) -> bool {
        self.rows.iter().any(|row| holds_json(&row[column]))
    }
}

fn holds_json(value: &Value) -> bool {
    match value {
        Value::Json(_) => true,
        Value::List(items) => items.iter().any(holds_json),
        Value::Struct(fields) => fields.iter().any(|(_, it)| holds_json(it)),
        Value::Map(pairs) => pairs.iter().any(|(_, it)| holds_json(it)),
        _ => false,
    }
}

/// The value with all that does not count taken away.
fn comparable(value: &Value, json: bool) -> Value {
    match value {
        Value::Text(text) if json => Value::Json(canonical_json(text).unwrap_or_else(|| text.clone())),
        Value::Timestamp(nanos) => Value::Timestamp(nanos.div_euclid(1000) * 1000),
        Value::List(items) => Value::List(items.iter().map(|it| comparable(it, json)).collect()),
        Value::Struct(fields) => {
            Value::Struct(fields.iter().map(|(name, it)| (name.clone(), comparable(it, json))).collect())
        }
        Value::Map(pairs) => {
            let mut pairs: Vec<_> =
                pairs.iter().map(|(key, it)| (comparable(key, json), comparable(it, json))).collect();
            pairs.sort();
            Value::Map(pairs)
        }
        other => other.clone(),
    }
}

fn compare(
    columns: &[String],
    expected: &BTreeMap<Vec<Value>, i64>,
    actual: &BTreeMap<Vec<Value>, i64>,
) -> Option<Difference> {
    let mut balance = actual.clone();
    for (row, count) in expected {
        *balance.entry(row.clone()).or_default() -= count;
    }
    balance.retain(|_, count| *count != 0);
    if balance.is_empty() {
        return None;
    }
    Some(Difference::Rows { columns: columns.to_vec(), balance })
}

/// How two multisets of rows differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    Columns {
        expected: Vec<String>,
        actual: Vec<String>,
    },
    Rows {
        columns: Vec<String>,
        /// Rows with how many times too often they are there; negative is missing.
        balance: BTreeMap<Vec<Value>, i64>,
    },
}

/// Most rows a difference shows; the rest is counted.
const SHOWN: usize = 20;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (columns, balance) = match self {
            Self::Columns { expected, actual } => {
                return write!(f, "columns differ: expected {}, got {}", expected.join(", "), actual.join(", "));
            }
            Self::Rows { columns, balance } => (columns, balance),
        };
        let missing: i64 = balance.values().filter(|it| **it < 0).map(|it| -it).sum();
        let extra: i64 = balance.values().filter(|it| **it > 0).sum();
        writeln!(f, "{missing} rows missing (-), {extra} too many (+); columns {}", columns.join(", "))?;
        for (row, count) in balance.iter().take(SHOWN) {
            let sign = if count.cmp(&0) == Ordering::Less { '-' } else { '+' };
            let times = if count.abs() == 1 { String::new() } else { format!(" ({} times)", count.abs()) };
            writeln!(f, "{sign} {}{times}", row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))?;
        }
        match balance.len().checked_sub(SHOWN) {
            Some(more) if more > 0 => writeln!(f, "… and {more} more"),
            _ => Ok(()),
        }
    }
}

/// Fails with a readable difference unless both are the same multiset of rows.
#[track_caller]
pub fn assert_same(expected: &Rows, actual: &Rows) {
    if let Some(difference) = expected.difference(actual) {
        panic!("{difference}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &[&str], rows: &[&[Value]]) -> Rows {
        Rows { rows: rows.iter().map(|it| it.to_vec()).collect(), ..Rows::new(columns.to_vec()) }
    }

    fn int(value: i128) -> Value {
        Value::Int(value)
    }

    #[test]
    fn order_of_rows_and_columns_does_not_count() {
        let one = rows(&["a", "b"], &[&[int(1), int(2)], &[int(3), int(4)]]);
        let two = rows(&["b", "a"], &[&[int(4), int(3)], &[int(2), int(1)]]);
        assert_same(&one, &two);
    }

    #[test]
    fn how_often_a_row_is_there_counts() {
        let one = rows(&["a"], &[&[int(1)], &[int(1)], &[int(2)]]);
        let two = rows(&["a"], &[&[int(1)], &[int(2)], &[int(2)], &[int(2)]]);
        let shown = one.difference(&two).unwrap().to_string();
        assert_eq!(shown, "1 rows missing (-), 2 too many (+); columns a\n- 1\n+ 2 (2 times)\n");
    }

    #[test]
    fn text_meets_a_variant_as_json() {
        let one = rows(&["v"], &[&[Value::Text(r#"{"b":1, "a":2}"#.into())]]);
        let two = rows(&["v"], &[&[Value::Json(canonical_json(r#"{"a":2,"b":1}"#).unwrap())]]);
        assert_same(&one, &two);
    }

    #[test]
    fn no_batches_are_no_rows() {
        assert_same(&rows(&["a"], &[]), &Rows::default());
        assert!(rows(&["a"], &[&[int(1)]]).difference(&Rows::default()).is_some());
    }
}
