//! Statistics of data files: JSON text, or struct columns of a checkpoint → [`FileStats`].
//!
//! A [`StatsPlan`] says which columns are wanted and what they are called in the log; reading with it builds no tree
//! and skips everything else. Statistics only ever help: whatever is missing, of the wrong type or contradicts itself is
//! left out, which means that the file may hold anything.
//!
//! - `numRecords` counts rows on disk, deleted ones included.
//! - `tightBounds` absent means true. Where it is false, bounds are outer bounds, and a null count counts only if it is
//!   0 or all.
//! - Strings may be cut: bounds, not values. Timestamps are cut to milliseconds: the upper bound is 999 µs later.
//! - A float column has no upper bound: NaN sorts above everything and is not counted. Its lower bound may have been
//!   written as the shortest text of a narrower float.
//!
//! Spec: Delta PROTOCOL.md, "Per-file Statistics".
use std::collections::BTreeSet;

use arrow_schema::{DataType, Field, Fields};
use lakebed_core::{
    expr::{ColumnPath, Scalar},
    file::{ColumnStats, FileStats},
};

use crate::{
    partition,
    schema::{TableSchema, is_variant, physical_name},
};

mod columns;
mod json;

pub(crate) use columns::StatsColumns;
pub(crate) use json::num_records;

/// Which statistics to read, and where they are.
#[derive(Debug, Clone)]
pub(crate) struct StatsPlan {
    leaves: Vec<Leaf>,
    root: Node,
}

/// A column that may have statistics.
#[derive(Debug, Clone)]
struct Leaf {
    /// By the table's names.
    path: ColumnPath,
    kind: DataType,
}

/// A struct of the statistics: its members, sorted by physical name.
#[derive(Debug, Clone, Default)]
struct Node {
    members: Vec<(String, Member)>,
}

#[derive(Debug, Clone)]
enum Member {
    /// Index into [`StatsPlan::leaves`].
    Leaf(usize),
    Struct(Node),
}

impl Node {
    fn get(&self, name: &str) -> Option<&Member> {
        let found = self.members.binary_search_by(|(it, _)| it.as_str().cmp(name)).ok()?;
        Some(&self.members[found].1)
    }
}

impl StatsPlan {
    /// The statistics of the columns in `wanted` (a struct stands for its members); `None` is every column. Partition
    /// columns have none.
    pub(crate) fn of(schema: &TableSchema, wanted: Option<&BTreeSet<ColumnPath>>) -> Self {
        let mut plan = Self { leaves: Vec::new(), root: Node::default() };
        let partition: BTreeSet<usize> = schema.partition.iter().copied().collect();
        let fields = schema.arrow.fields().iter().enumerate().filter(|(index, _)| !partition.contains(index));
        let fields: Fields = fields.map(|(_, field)| std::sync::Arc::clone(field)).collect();
        plan.root = plan.node(&fields, &[], wanted);
        plan
    }

    /// Whether no column is wanted: only `numRecords` would be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    fn node(&mut self, fields: &Fields, above: &[String], wanted: Option<&BTreeSet<ColumnPath>>) -> Node {
        let mut node = Node::default();
        for field in fields {
            let path = ColumnPath([above, &[field.name().clone()]].concat());
            let wanted = if wanted.is_some_and(|it| it.contains(&path)) { None } else { wanted };
            let member = match field.data_type() {
                DataType::Struct(inner) if !is_variant(field) => {
                    let inner = self.node(inner, &path.0, wanted);
                    if inner.members.is_empty() {
                        continue;
                    }
                    Member::Struct(inner)
                }
                _ if wanted.is_some() => continue,
                _ => Member::Leaf(self.leaf(path, field)),
            };
            node.members.push((physical_name(field).to_owned(), member));
        }
        node.members.sort_by(|a, b| a.0.cmp(&b.0));
        node
    }

    fn leaf(&mut self, path: ColumnPath, field: &Field) -> usize {
        self.leaves.push(Leaf { path, kind: field.data_type().clone() });
        self.leaves.len() - 1
    }

    /// The bounds of `stats`, made with this plan, as the text of two JSON objects by the table's names.
    pub(crate) fn bounds_json(&self, stats: &FileStats) -> (Option<String>, Option<String>) {
        let text = |bound: fn(&ColumnStats) -> Option<&Scalar>| {
            let mut root = serde_json::Map::new();
            // Both stand in the order of the plan.
            let mut leaves = self.leaves.iter();
            for (path, stats) in &stats.columns {
                let leaf = leaves.find(|it| it.path == *path);
                if let Some((leaf, value)) = leaf.zip(bound(stats)) {
                    insert(&mut root, &path.0, partition::json(value, &leaf.kind));
                }
            }
            (!root.is_empty()).then(|| serde_json::Value::Object(root).to_string())
        };
        (text(|it| it.lower.as_ref()), text(|it| it.upper.as_ref()))
    }

    /// What was read of one file → what may be believed of it.
    fn judge(&self, raw: Raw) -> FileStats {
        let rows = raw.rows.and_then(|it| u64::try_from(it).ok());
        let tight = raw.tight_bounds.unwrap_or(true);
        let columns = self.leaves.iter().zip(raw.leaves).filter_map(|(leaf, raw)| {
            let stats = judge_column(leaf, raw, rows, tight)?;
            Some((leaf.path.clone(), stats))
        });
        FileStats { rows, columns: columns.collect() }
    }

    /// What was read of one file that cannot be.
    fn contradictions(&self, raw: Raw) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(rows) = raw.rows.filter(|it| *it < 0) {
            found.push(format!("numRecords is {rows}"));
        }
        for (leaf, column) in self.leaves.iter().zip(raw.leaves) {
            let name = leaf.path.to_string();
            let name = name.escape_debug();
            if let Some(nulls) = column.nulls.filter(|it| *it < 0 || raw.rows.is_some_and(|rows| *it > rows.max(0))) {
                let rows = raw.rows.map_or_else(String::new, |it| format!(" of {it} rows"));
                found.push(format!("nullCount of `{name}` is {nulls}{rows}"));
            }
            let bound = |it: Option<Scalar>| it.and_then(|it| coerce(it, &leaf.kind));
            if let Some((min, max)) = bound(column.min).zip(bound(column.max)).filter(|(min, max)| above(min, max)) {
                let shown = |it| partition::json(it, &leaf.kind);
                found.push(format!("the minimum of `{name}` is {}, its maximum {}", shown(&min), shown(&max)));
            }
        }
        found
    }
}

fn insert(object: &mut serde_json::Map<String, serde_json::Value>, path: &[String], value: serde_json::Value) {
    match path {
        [] => (),
        [last] => drop(object.insert(last.clone(), value)),
        [first, rest @ ..] => {
            let inner = object.entry(first).or_insert_with(|| serde_json::Map::new().into());
            if let serde_json::Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// One file's statistics as they stand, in the order of the plan's leaves.
#[derive(Debug, Clone, Default)]
struct Raw {
    rows: Option<i64>,
    tight_bounds: Option<bool>,
    leaves: Vec<RawColumn>,
}

#[derive(Debug, Clone, Default)]
struct RawColumn {
    min: Option<Scalar>,
    max: Option<Scalar>,
    nulls: Option<i64>,
}

impl Raw {
    fn of(plan: &StatsPlan) -> Self {
        Self { leaves: vec![RawColumn::default(); plan.leaves.len()], ..Self::default() }
    }
}

fn judge_column(leaf: &Leaf, raw: RawColumn, rows: Option<u64>, tight: bool) -> Option<ColumnStats> {
    let nulls = raw.nulls.and_then(|it| u64::try_from(it).ok()).filter(|it| rows.is_none_or(|rows| *it <= rows));
    let nulls = nulls.filter(|it| tight || *it == 0 || Some(*it) == rows);
    let lower = raw.min.and_then(|it| widen_lower(it, &leaf.kind));
    let upper = raw.max.and_then(|it| widen_upper(it, &leaf.kind));
    // Bounds the wrong way round say that one of them lies, but not which.
    let crossed = lower.as_ref().zip(upper.as_ref()).is_some_and(|(lower, upper)| above(lower, upper));
    let (lower, upper) = if crossed { (None, None) } else { (lower, upper) };
    if lower.is_none() && upper.is_none() && nulls.is_none() {
        return None;
    }
    Some(ColumnStats { lower, upper, nulls, exact: tight && keeps_values(&leaf.kind) })
}

/// Whether bounds of this type are stored as the values they are.
fn keeps_values(kind: &DataType) -> bool {
    kind.is_integer() || matches!(kind, DataType::Date32 | DataType::Boolean | DataType::Decimal128(..))
}

fn widen_lower(value: Scalar, kind: &DataType) -> Option<Scalar> {
    match coerce(value, kind)? {
        Scalar::Float(it) if it.is_nan() => None,
        Scalar::Float(it) => Some(Scalar::Float(if it == 0.0 { -0.0 } else { it })),
        Scalar::Double(it) if it.is_nan() => None,
        Scalar::Double(it) => {
            // The text of a float, read as a double, may lie a hair above the float itself.
            #[expect(clippy::cast_possible_truncation, reason = "rounding to the narrower float is the point")]
            let narrow = f64::from(it as f32);
            let lower = if narrow.is_finite() { it.min(narrow) } else { it };
            Some(Scalar::Double(if lower == 0.0 { -0.0 } else { lower }))
        }
        other => Some(other),
    }
}

fn widen_upper(value: Scalar, kind: &DataType) -> Option<Scalar> {
    match coerce(value, kind)? {
        Scalar::Float(_) | Scalar::Double(_) => None,
        Scalar::Timestamp(micros) => micros.checked_add(999).map(Scalar::Timestamp),
        other => Some(other),
    }
}

/// A value in the column's type of today; statistics keep the type the column had when the file was written.
fn coerce(value: Scalar, kind: &DataType) -> Option<Scalar> {
    match (value, kind) {
        (Scalar::Int(it), DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64) => {
            Some(Scalar::Int(it))
        }
        (Scalar::Int(it), DataType::Float64) => Some(Scalar::Double(exact_double(it)?)),
        (Scalar::Int(it), DataType::Decimal128(_, scale)) => at_scale(it.into(), 0, *scale),
        (Scalar::Decimal(it, from), DataType::Decimal128(_, scale)) => at_scale(it, from, *scale),
        (Scalar::Float(it), DataType::Float32) => Some(Scalar::Float(it)),
        (Scalar::Float(it), DataType::Float64) => Some(Scalar::Double(it.into())),
        (Scalar::Double(it), DataType::Float64) => Some(Scalar::Double(it)),
        (Scalar::Utf8(it), DataType::Utf8) => Some(Scalar::Utf8(it)),
        (Scalar::Boolean(it), DataType::Boolean) => Some(Scalar::Boolean(it)),
        (Scalar::Date(it), DataType::Date32) => Some(Scalar::Date(it)),
        (Scalar::Date(it), DataType::Timestamp(_, None)) => Some(Scalar::Timestamp(i64::from(it) * 86_400_000_000)),
        (Scalar::Timestamp(it), DataType::Timestamp(..)) => Some(Scalar::Timestamp(it)),
        _ => None,
    }
}

fn exact_double(value: i64) -> Option<f64> {
    i32::try_from(value).ok().map(f64::from)
}

fn at_scale(unscaled: i128, from: i8, to: i8) -> Option<Scalar> {
    let more = u32::try_from(i16::from(to) - i16::from(from)).ok()?;
    Some(Scalar::Decimal(unscaled.checked_mul(10i128.checked_pow(more)?)?, to))
}

fn above(lower: &Scalar, upper: &Scalar) -> bool {
    match (lower, upper) {
        (Scalar::Int(a), Scalar::Int(b)) | (Scalar::Timestamp(a), Scalar::Timestamp(b)) => a > b,
        (Scalar::Decimal(a, _), Scalar::Decimal(b, _)) => a > b,
        (Scalar::Date(a), Scalar::Date(b)) => a > b,
        (Scalar::Utf8(a), Scalar::Utf8(b)) => a > b,
        (Scalar::Boolean(a), Scalar::Boolean(b)) => a > b,
        (Scalar::Float(a), Scalar::Float(b)) => a > b,
        (Scalar::Double(a), Scalar::Double(b)) => a > b,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
