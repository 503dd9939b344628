//! Rows of several files become one row a key.
//!
//! *One fold*: the rows of a key, sorted by the ordering columns (nulls lowest, ties in the order of files and rows), are
//! folded by the rule; a key whose last word is a deletion has no row.
//!
//! *Two stages*: the updates of a key are folded among themselves first, in the order of the chain: the newer row
//! wins when its ordering value is not lower. Then the outcome meets the base row under the same rule. The stages
//! differ: a deletion that wins the first may lose to the base row in the second, and an insertion that came after a
//! deletion may lose to it as well.
//!
//! *Commit-time deletes* (`unconditional_deletes`): a deletion whose ordering values are all null or the integer 0
//! wins over everything before it, and everything after it wins over the deletion.
use std::{cmp::Ordering, collections::BTreeMap};

use arrow_schema::Schema;
use lakebed_core::{
    Error, Result,
    expr::ColumnPath,
    scan::{KeyMerge, MergeRule, StagedMerge},
};

use super::Row;
use crate::value::{Decimal, Float, Value};

/// Looks up merge columns: the table's, else the file's own (a delete marker need not be a column of the table).
struct Columns<'a>(&'a Schema);

impl Columns<'_> {
    fn value(&self, row: &Row, path: &ColumnPath) -> Value {
        let Some((top, rest)) = path.0.split_first() else { return Value::Null };
        let start = match self.0.index_of(top) {
            Ok(at) => &row.values[at],
            Err(_) => row.raw.field(top),
        };
        rest.iter().fold(start, |value, name| value.field(name)).clone()
    }

    fn values(&self, row: &Row, paths: &[ColumnPath]) -> Vec<Value> {
        paths.iter().map(|it| self.value(row, it)).collect()
    }

    fn compare(&self, one: &Row, two: &Row, order: &[ColumnPath]) -> Ordering {
        let pairs = order.iter().map(|it| self.value(one, it).order(&self.value(two, it)));
        pairs.fold(Ordering::Equal, Ordering::then)
    }

    fn deletes(&self, row: &Row, rule: &KeyMerge) -> bool {
        rule.deletion.as_ref().is_some_and(|marker| {
            let value = self.value(row, &marker.column);
            !value.is_null() && marker.values.contains(&value.text())
        })
    }
}

/// Rows of one key in the order of files and rows; keys sorted.
fn by_key(columns: &Columns<'_>, key: &[ColumnPath], files: Vec<Vec<Row>>) -> BTreeMap<Vec<Value>, Vec<Row>> {
    let mut keys: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for row in files.into_iter().flatten() {
        keys.entry(columns.values(&row, key)).or_default().push(row);
    }
    keys
}

pub(super) fn one_fold(schema: &Schema, rule: &KeyMerge, files: Vec<Vec<Row>>) -> Result<Vec<Row>> {
    let columns = Columns(schema);
    let mut merged = Vec::new();
    for (_, mut rows) in by_key(&columns, &rule.key, files) {
        rows.sort_by(|one, two| columns.compare(one, two, &rule.order));
        merged.extend(fold(&columns, rule, rows)?);
    }
    Ok(merged)
}

fn fold(columns: &Columns<'_>, rule: &KeyMerge, rows: Vec<Row>) -> Result<Option<Row>> {
    match &rule.rule {
        MergeRule::LastRow => Ok(rows.into_iter().next_back().filter(|it| !columns.deletes(it, rule))),
        MergeRule::FirstRow => Ok(rows.into_iter().find(|it| !columns.deletes(it, rule))),
        MergeRule::PartialUpdate => {
            Ok(rows.into_iter().fold(None, |known: Option<Row>, row| match (columns.deletes(&row, rule), known) {
                (true, _) => None,
                (false, None) => Some(row),
                (false, Some(known)) => Some(overlay(known, row)),
            }))
        }
        MergeRule::Aggregate(functions) => aggregate(columns, rule, functions, rows),
    }
}

/// The newer row, with the older one's values where it has none.
fn overlay(older: Row, newer: Row) -> Row {
    let values = older.values.into_iter().zip(newer.values);
    let values = values.map(|(old, new)| if new.is_null() { old } else { new }).collect();
    Row { values, ..newer }
}

fn aggregate(
    columns: &Columns<'_>,
    rule: &KeyMerge,
    functions: &[(ColumnPath, String)],
    rows: Vec<Row>,
) -> Result<Option<Row>> {
    let mut known: Option<Row> = None;
    for row in rows {
        if columns.deletes(&row, rule) {
            known = None;
            continue;
        }
        let Some(older) = known.take() else {
            known = Some(row);
            continue;
        };
        let mut newer = row;
        for (at, field) in columns.0.fields().iter().enumerate() {
            let path = ColumnPath::top(field.name());
            if rule.key.contains(&path) {
                continue;
            }
            let named = functions.iter().find(|(it, _)| *it == path);
            let function = named.map_or("last_non_null_value", |(_, function)| function);
            newer.values[at] = combine(function, &older.values[at], &newer.values[at])?;
        }
        known = Some(newer);
    }
    Ok(known)
}

fn combine(function: &str, old: &Value, new: &Value) -> Result<Value> {
    let picked = match (function, old, new) {
        ("last_value", _, new) => new,
        ("first_value", old, _) => old,
        ("last_non_null_value", old, Value::Null) => old,
        ("last_non_null_value", _, new) => new,
        (_, Value::Null, value) | (_, value, Value::Null) => value,
        ("max", old, new) => {
            if old.order(new).is_ge() {
                old
            } else {
                new
            }
        }
        ("min", old, new) => {
            if old.order(new).is_le() {
                old
            } else {
                new
            }
        }
        ("sum", old, new) => return sum(old, new),
        ("bool_or", Value::Bool(old), Value::Bool(new)) => return Ok(Value::Bool(*old || *new)),
        ("bool_and", Value::Bool(old), Value::Bool(new)) => return Ok(Value::Bool(*old && *new)),
        _ => return Err(Error::unsupported(format!("the reference has no aggregate `{function}`"))),
    };
    Ok(picked.clone())
}

fn sum(old: &Value, new: &Value) -> Result<Value> {
    let sum = match (old, new) {
        (Value::Int(old), Value::Int(new)) => old.checked_add(*new).map(Value::Int),
        (Value::Float(old), Value::Float(new)) => Some(Value::Float(Float::new(old.get() + new.get()))),
        (Value::Decimal(old), Value::Decimal(new)) => {
            let scale = (0..=38).find(|it| old.at_scale(*it).is_some() && new.at_scale(*it).is_some());
            scale.and_then(|scale| {
                let total = old.at_scale(scale)?.checked_add(new.at_scale(scale)?)?;
                Some(Value::Decimal(Decimal::new(total, i32::try_from(scale).ok()?)))
            })
        }
        _ => None,
    };
    sum.ok_or_else(|| Error::unsupported(format!("no sum of {old} and {new}")))
}

pub(super) fn two_stages(schema: &Schema, staged: &StagedMerge, files: Vec<Vec<Row>>) -> Result<Vec<Row>> {
    let columns = Columns(schema);
    let partial = match staged.merge.rule {
        MergeRule::LastRow => false,
        MergeRule::PartialUpdate => true,
        _ => return Err(Error::unsupported("two stages merge by last row or partial update")),
    };
    let stage = Stage { columns: &columns, staged, partial };
    let mut files = files.into_iter();
    let base: Vec<_> = files.by_ref().take(staged.base_files).collect();
    let mut base = by_key(&columns, &staged.merge.key, base);
    let updates = by_key(&columns, &staged.merge.key, files.collect());
    let mut merged = Vec::new();
    for (key, chain) in updates {
        let outcome = chain.into_iter().reduce(|older, newer| stage.meet(older, newer));
        // A base file has one row a key; should it have more, the last one counts.
        let base_row = base.remove(&key).and_then(|it| it.into_iter().next_back());
        merged.extend(match (base_row, outcome) {
            (Some(base_row), Some(outcome)) => Some(stage.meet(base_row, outcome)),
            (base_row, outcome) => outcome.or(base_row),
        });
    }
    merged.extend(base.into_values().filter_map(|it| it.into_iter().next_back()));
    merged.retain(|row| !columns.deletes(row, &staged.merge));
    Ok(merged)
}

/// The comparison of both stages.
struct Stage<'a> {
    columns: &'a Columns<'a>,
    staged: &'a StagedMerge,
    partial: bool,
}

impl Stage<'_> {
    fn meet(&self, older: Row, newer: Row) -> Row {
        if !self.wins(&newer, &older) {
            return older;
        }
        let whole =
            self.columns.deletes(&older, &self.staged.merge) || self.columns.deletes(&newer, &self.staged.merge);
        if self.partial && !whole { overlay(older, newer) } else { newer }
    }

    fn wins(&self, newer: &Row, older: &Row) -> bool {
        let order = &self.staged.merge.order;
        self.unconditional(newer) || self.unconditional(older) || self.columns.compare(newer, older, order).is_ge()
    }

    fn unconditional(&self, row: &Row) -> bool {
        let order = self.columns.values(row, &self.staged.merge.order);
        self.staged.unconditional_deletes
            && self.columns.deletes(row, &self.staged.merge)
            && order.iter().all(|it| matches!(it, Value::Null | Value::Int(0)))
    }
}
