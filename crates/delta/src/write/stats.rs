//! Statistics of a new file → JSON text.
//!
//! Written are `numRecords`, and for the indexed columns bounds and null counts, nested as the columns are and by their
//! physical names. Indexed are the columns `delta.dataSkippingStatsColumns` names, else the first
//! `delta.dataSkippingNumIndexedCols` leaves of the schema without partition columns, depth first.
//!
//! Bounds: strings longer than [`PREFIX`] characters are cut, a maximum that was cut is raised past what it was;
//! timestamps are cut to milliseconds, a maximum up; a float that is no number, infinite values, bytes, and years that
//! other readers may not know have none. `tightBounds` is said to be false where some bound is no value that occurs.
//!
//! Spec: Delta PROTOCOL.md, "Per-file Statistics"; the rules of cutting are the reference implementation's.
use std::collections::HashMap;

use arrow_schema::{DataType, Fields};
use lakebed_core::{
    expr::{ColumnPath, Scalar},
    file::{ColumnStats, FileStats},
};

use crate::{
    partition::text as spelled,
    properties::Properties,
    schema::{TableSchema, is_variant, physical_name},
};

/// Characters of a string that are kept.
const PREFIX: usize = 32;
/// Columns with statistics where the table does not say.
const INDEXED: i64 = 32;

/// A column that has statistics.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexedColumn {
    /// By the table's names.
    pub(crate) path: ColumnPath,
    physical: Vec<String>,
    kind: DataType,
}

/// The columns of a table that have statistics, in its order; and whether they are all.
pub(crate) fn indexed_columns(schema: &TableSchema, properties: Properties<'_>) -> (Vec<IndexedColumn>, bool) {
    let partition = &schema.partition;
    let fields = schema.arrow.fields().iter().enumerate().filter(|(index, _)| !partition.contains(index));
    let fields: Fields = fields.map(|(_, field)| std::sync::Arc::clone(field)).collect();
    let mut leaves = Vec::new();
    collect(&fields, &[], &[], &mut leaves);
    let all = leaves.len();
    if let Some(named) = properties.text("delta.dataSkippingStatsColumns") {
        let named = column_names(named);
        leaves.retain(|leaf| named.iter().any(|it| begins_with(&leaf.path.0, it)));
    } else {
        let limit = properties.count("delta.dataSkippingNumIndexedCols").ok().flatten().unwrap_or(INDEXED);
        leaves.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    let complete = leaves.len() == all;
    (leaves, complete)
}

fn collect(fields: &Fields, path: &[String], physical: &[String], leaves: &mut Vec<IndexedColumn>) {
    for field in fields {
        let path = [path, &[field.name().clone()]].concat();
        let physical = [physical, &[physical_name(field).to_owned()]].concat();
        match field.data_type() {
            DataType::Struct(inner) if !is_variant(field) => collect(inner, &path, &physical, leaves),
            DataType::Null => (),
            kind => leaves.push(IndexedColumn { path: ColumnPath(path), physical, kind: kind.clone() }),
        }
    }
}

fn begins_with(path: &[String], names: &[String]) -> bool {
    names.len() <= path.len() && path.iter().zip(names).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// Reads `a, b.c, `odd, name`.d`.
pub(crate) fn column_names(text: &str) -> Vec<Vec<String>> {
    let mut columns = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let last = columns.last_mut().expect("one from the start");
        match character {
            '`' if quoted && characters.peek() == Some(&'`') => {
                characters.next();
                last.last_mut().expect("one from the start").push('`');
            }
            '`' => quoted = !quoted,
            ',' if !quoted => columns.push(vec![String::new()]),
            '.' if !quoted => last.push(String::new()),
            it if it.is_whitespace() && !quoted => (),
            it => last.last_mut().expect("one from the start").push(it),
        }
    }
    columns.retain(|it| it.iter().all(|it| !it.is_empty()));
    columns
}

/// The text of `stats`, with what is known of `columns`; `None` when nothing is.
///
/// `says_tight`: whether the text shall say it when all bounds are values that occur, which is what saying nothing means.
pub(crate) fn text(columns: &[IndexedColumn], stats: &FileStats, says_tight: bool) -> Option<String> {
    let by_path: HashMap<&ColumnPath, &ColumnStats> = stats.columns.iter().map(|(path, it)| (path, it)).collect();
    let known: Vec<(&IndexedColumn, &ColumnStats)> =
        columns.iter().filter_map(|it| Some((it, *by_path.get(&it.path)?))).collect();
    let mut parts = Vec::new();
    if let Some(rows) = stats.rows {
        parts.push(format!("\"numRecords\":{rows}"));
    }
    let group = |name: &str, value: fn(&ColumnStats, &DataType) -> Option<String>| {
        let values = known.iter().filter_map(|(it, stats)| Some((it.physical.as_slice(), value(stats, &it.kind)?)));
        object(values).map(|it| format!("\"{name}\":{it}"))
    };
    parts.extend(group("minValues", |it, kind| bounds(it, kind)?.0));
    parts.extend(group("maxValues", |it, kind| bounds(it, kind)?.1));
    parts.extend(group("nullCount", |it, _| it.nulls.map(|it| it.to_string())));
    if parts.is_empty() {
        return None;
    }
    let tight =
        known.iter().all(|(it, stats)| stats.exact || !keeps_values(&it.kind) || bounds(stats, &it.kind).is_none());
    if says_tight || !tight {
        parts.push(format!("\"tightBounds\":{tight}"));
    }
    Some(format!("{{{}}}", parts.join(",")))
}

/// Whether bounds of this type are written as the values they are: others are known to be cut.
fn keeps_values(kind: &DataType) -> bool {
    !matches!(kind, DataType::Utf8 | DataType::Timestamp(..))
}

/// Values by path as one JSON object; paths with a common beginning stand together.
fn object<'a>(values: impl Iterator<Item = (&'a [String], String)>) -> Option<String> {
    let mut text = String::new();
    let mut open: &[String] = &[];
    for (path, value) in values {
        let (name, above) = path.split_last()?;
        let shared = open.iter().zip(above).take_while(|(a, b)| a == b).count();
        text.extend(std::iter::repeat_n('}', open.len() - shared));
        text.push(if text.is_empty() { '{' } else { ',' });
        for outer in &above[shared..] {
            text.push_str(&format!("{}:{{", quoted(outer)));
        }
        text.push_str(&format!("{}:{value}", quoted(name)));
        open = above;
    }
    text.extend(std::iter::repeat_n('}', open.len()));
    if text.is_empty() { None } else { Some(text + "}") }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Both bounds as JSON; `None` where they say nothing.
fn bounds(stats: &ColumnStats, kind: &DataType) -> Option<(Option<String>, Option<String>)> {
    let is_nan = |it: &Option<Scalar>| match it {
        Some(Scalar::Float(it)) => it.is_nan(),
        Some(Scalar::Double(it)) => it.is_nan(),
        _ => false,
    };
    if is_nan(&stats.lower) || is_nan(&stats.upper) {
        return None;
    }
    let lower = stats.lower.as_ref().and_then(|it| bound(it, kind, Side::Lower));
    let upper = stats.upper.as_ref().and_then(|it| bound(it, kind, Side::Upper));
    (lower.is_some() || upper.is_some()).then_some((lower, upper))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

fn bound(value: &Scalar, kind: &DataType, side: Side) -> Option<String> {
    match (value, kind) {
        (Scalar::Boolean(it), DataType::Boolean) => Some(it.to_string()),
        (Scalar::Int(it), kind) if kind.is_signed_integer() => Some(it.to_string()),
        (Scalar::Decimal(it, scale), DataType::Decimal128(..)) if *scale >= 0 => {
            Some(spelled::show_decimal(*it, *scale))
        }
        (Scalar::Float(it), DataType::Float32) if it.is_finite() => serde_json::to_string(it).ok(),
        (Scalar::Double(it), DataType::Float64) if it.is_finite() => serde_json::to_string(it).ok(),
        (Scalar::Utf8(it), DataType::Utf8) => Some(quoted(&match side {
            Side::Lower => it.chars().take(PREFIX).collect(),
            Side::Upper => cut_up(it)?,
        })),
        (Scalar::Date(it), DataType::Date32) => spelled::write_date(*it).map(|it| quoted(&it)),
        (Scalar::Timestamp(it), DataType::Timestamp(_, zone)) => {
            let up = if side == Side::Upper { it.checked_add(999)? } else { *it };
            let format = if zone.is_some() { "%Y-%m-%dT%H:%M:%S%.3fZ" } else { "%Y-%m-%dT%H:%M:%S%.3f" };
            spelled::write_micros(up, format).map(|it| quoted(&it))
        }
        _ => None,
    }
}

/// The first characters of `text`, and where that cuts it a character that sorts behind all that could follow.
fn cut_up(text: &str) -> Option<String> {
    const GREATEST: char = char::MAX;
    let Some((end, _)) = text.char_indices().nth(PREFIX) else { return Some(text.to_owned()) };
    let (kept, rest) = text.split_at(end);
    match rest.chars().next()? {
        // ASCII's last character where that is enough: other writers do so, and it is a byte.
        next if next < '\u{7f}' => Some(format!("{kept}\u{7f}")),
        next if next < GREATEST => Some(format!("{kept}{GREATEST}")),
        _ => None,
    }
}

/// The statistics of a file that a vector takes rows from: what they say stays, as it is written, but their bounds may now
/// be values that no longer occur.
///
/// `None` for a text that is no JSON object.
pub(crate) fn loosened(text: &str) -> Option<Loosened<'_>> {
    serde_json::from_str(text).ok()
}

/// Statistics in their parts, so that no digit is lost.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Loosened<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) num_records: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    min_values: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    max_values: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    null_count: Option<&'a serde_json::value::RawValue>,
    #[serde(skip_deserializing)]
    tight_bounds: bool,
}

#[cfg(test)]
mod tests;
