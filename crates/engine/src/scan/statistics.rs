//! What is known of a scan's rows before it runs.
//!
//! DataFusion answers `count(*)`, `min` and `max` from statistics that are *exact*, without a scan. Bounds never are:
//! formats cut them short, and deleted rows stay in them. Row counts are only when the session trusts them, every file
//! records one, and every vector the number of rows it takes.
use std::{cmp::Ordering, sync::Arc};

use arrow_schema::{Field, Schema};
use datafusion::{
    common::{ColumnStatistics, Statistics, stats::Precision},
    scalar::ScalarValue,
};
use lakebed_core::{
    expr::ColumnPath,
    file::{ColumnStats, DataFile},
    scan::ScanTask,
};

use super::{
    layout::Layout,
    reading::Part,
    scalar::to_arrow,
    unit::{Unit, Way, concerns},
};

/// Bounds of the layout's file columns in one file, in the order of the scan's columns.
pub(crate) fn of_unit(layout: &Layout, table: &Schema, unit: &Unit) -> Statistics {
    let mut statistics = Statistics::new_unknown(layout.schema.file_schema());
    if unit.way == Way::Merged {
        return statistics;
    }
    let file = unit.data_file();
    statistics.num_rows = inexact(file.stats.rows);
    statistics.total_byte_size = inexact(Some(file.bytes));
    for (at, name) in &layout.read {
        let Ok(place) = layout.schema.file_schema().index_of(name) else { continue };
        let shown = layout.schema.file_schema().field(place);
        let known = column_stats(file, table.field(*at).name());
        statistics.column_statistics[place] = match stated(file, table.field(*at).name()) {
            Some(value) => constant(value, shown, &mut statistics.num_rows),
            None => known.map_or_else(ColumnStatistics::new_unknown, |it| bounds(it, shown)),
        };
    }
    statistics
}

/// A value that this file states for the column though other files of the scan do not.
fn stated<'a>(file: &'a DataFile, column: &str) -> Option<&'a Option<lakebed_core::expr::Scalar>> {
    file.partition.iter().find(|(name, _)| name == column).map(|(_, value)| value)
}

/// The reader puts a constant in the place of a column with equal exact bounds, or with nothing but nulls.
fn constant(
    value: &Option<lakebed_core::expr::Scalar>,
    shown: &Field,
    rows: &mut Precision<usize>,
) -> ColumnStatistics {
    let mut known = ColumnStatistics::new_unknown();
    match value.as_ref().map(|it| to_arrow(it, shown.data_type())) {
        Some(Ok(value)) => {
            known.min_value = Precision::Exact(value.clone());
            known.max_value = Precision::Exact(value);
            known.null_count = Precision::Exact(0);
        }
        Some(Err(_)) => (),
        None => {
            let count = rows.get_value().copied().unwrap_or(1);
            *rows = Precision::Exact(count);
            known.null_count = Precision::Exact(count);
        }
    }
    known
}

fn column_stats<'a>(file: &'a DataFile, column: &str) -> Option<&'a ColumnStats> {
    let top = |path: &ColumnPath| path.0.len() == 1 && path.0[0] == column;
    file.stats.columns.iter().find(|(path, _)| top(path)).map(|(_, known)| known)
}

fn bounds(known: &ColumnStats, shown: &Field) -> ColumnStatistics {
    let value = |it: &Option<lakebed_core::expr::Scalar>| match it.as_ref().map(|it| to_arrow(it, shown.data_type())) {
        Some(Ok(value)) => Precision::Inexact(value),
        _ => Precision::Absent,
    };
    ColumnStatistics {
        min_value: value(&known.lower),
        max_value: value(&known.upper),
        null_count: inexact(known.nulls),
        ..ColumnStatistics::new_unknown()
    }
}

fn inexact(count: Option<u64>) -> Precision<usize> {
    match count.map(usize::try_from) {
        Some(Ok(count)) => Precision::Inexact(count),
        _ => Precision::Absent,
    }
}

/// Rows, bytes and bounds of the whole scan, for all columns of the layout.
pub(crate) fn of_scan(layout: &Layout, units: &[(Arc<Unit>, Arc<Statistics>)], trusted: bool) -> Statistics {
    let mut all = Statistics::new_unknown(layout.schema.table_schema());
    let rows = units.iter().try_fold(0u64, |sum, (unit, _)| sum.checked_add(live_rows(unit)?));
    all.num_rows = match (rows.map(usize::try_from), trusted) {
        (Some(Ok(rows)), true) => Precision::Exact(rows),
        (Some(Ok(rows)), false) => Precision::Inexact(rows),
        _ => Precision::Absent,
    };
    all.total_byte_size = inexact(Some(units.iter().map(|(unit, _)| bytes(unit)).fold(0, u64::saturating_add)));
    for (place, known) in all.column_statistics.iter_mut().enumerate() {
        if place < layout.schema.file_schema().fields().len() {
            *known = across(units.iter().map(|(_, it)| it.column_statistics.get(place)));
        }
    }
    all
}

fn bytes(unit: &Unit) -> u64 {
    match unit.way {
        Way::Merged => unit.task.files.iter().map(|it| it.bytes).fold(0, u64::saturating_add),
        _ => unit.data_file().bytes,
    }
}

/// Rows of the unit after its vectors; `None` when some count is not recorded or a merge decides.
fn live_rows(unit: &Unit) -> Option<u64> {
    if unit.way == Way::Merged {
        return None;
    }
    let file = unit.data_file();
    let count = |deletes: &[lakebed_core::file::DeleteFile]| {
        deletes.iter().filter(|it| concerns(it, file)).try_fold(0u64, |sum, it| sum.checked_add(it.rows?))
    };
    let ScanTask { deletes, only, .. } = unit.task.as_ref();
    let live = match only.is_empty() {
        true => file.stats.rows?.checked_sub(count(deletes)?),
        // The older vector lies within the newer one.
        false => count(only)?.checked_sub(count(deletes)?),
    };
    // A part is made of rows that were read.
    match &unit.part {
        Part::Whole => live,
        Part::Only(rows) => Some(rows.len()),
        Part::Without(rows) => live?.checked_sub(rows.len()),
    }
}

/// Bounds over all files; unknown as soon as one file's are.
fn across<'a>(mut files: impl Iterator<Item = Option<&'a ColumnStatistics>>) -> ColumnStatistics {
    let Some(Some(first)) = files.next() else { return ColumnStatistics::new_unknown() };
    let mut all = ColumnStatistics {
        min_value: first.min_value.clone().to_inexact(),
        max_value: first.max_value.clone().to_inexact(),
        null_count: first.null_count.to_inexact(),
        ..ColumnStatistics::new_unknown()
    };
    for file in files {
        let Some(file) = file else { return ColumnStatistics::new_unknown() };
        all.min_value = outer(&all.min_value, &file.min_value, Ordering::Less);
        all.max_value = outer(&all.max_value, &file.max_value, Ordering::Greater);
        all.null_count = match (all.null_count.get_value(), file.null_count.get_value()) {
            (Some(a), Some(b)) => Precision::Inexact(a.saturating_add(*b)),
            _ => Precision::Absent,
        };
    }
    all
}

fn outer(a: &Precision<ScalarValue>, b: &Precision<ScalarValue>, wanted: Ordering) -> Precision<ScalarValue> {
    match (a.get_value(), b.get_value()) {
        (Some(a), Some(b)) => match b.partial_cmp(a) {
            Some(order) if order == wanted => Precision::Inexact(b.clone()),
            Some(_) => Precision::Inexact(a.clone()),
            None => Precision::Absent,
        },
        _ => Precision::Absent,
    }
}
