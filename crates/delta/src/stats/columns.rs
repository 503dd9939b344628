//! Statistics as struct columns of a checkpoint (`stats_parsed`).
use arrow_array::{Array, ArrayRef, StructArray, cast::AsArray, types};
use arrow_schema::{DataType, TimeUnit};
use lakebed_core::{expr::Scalar, file::FileStats};

use super::{Member, Node, Raw, StatsPlan};

/// The struct columns of one batch, found once; files are then read by row.
#[derive(Debug, Clone)]
pub(crate) struct StatsColumns {
    whole: StructArray,
    rows: Option<ArrayRef>,
    tight_bounds: Option<ArrayRef>,
    /// In the order of the plan's leaves.
    leaves: Vec<LeafColumns>,
}

#[derive(Debug, Clone, Default)]
struct LeafColumns {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    nulls: Option<ArrayRef>,
}

impl StatsColumns {
    /// Finds the columns of `plan` in `stats`, a `stats_parsed` column. What is not there is unknown.
    pub(crate) fn of(plan: &StatsPlan, stats: &StructArray) -> Self {
        let mut leaves = vec![LeafColumns::default(); plan.leaves.len()];
        for (group, set) in [
            ("minValues", (|leaf, it| leaf.min = Some(it)) as fn(&mut LeafColumns, ArrayRef)),
            ("maxValues", |leaf, it| leaf.max = Some(it)),
            ("nullCount", |leaf, it| leaf.nulls = Some(it)),
        ] {
            if let Some(values) = stats.column_by_name(group).and_then(|it| it.as_struct_opt()) {
                find(&plan.root, values, &mut |index, it| set(&mut leaves[index], it));
            }
        }
        let column = |name| stats.column_by_name(name).cloned();
        Self { whole: stats.clone(), rows: column("numRecords"), tight_bounds: column("tightBounds"), leaves }
    }

    /// The statistics of the file in `row`.
    pub(crate) fn read(&self, plan: &StatsPlan, row: usize) -> FileStats {
        self.raw(plan, row).map_or_else(FileStats::default, |it| plan.judge(it))
    }

    /// What the statistics of the file in `row` say that cannot be.
    pub(crate) fn faults(&self, plan: &StatsPlan, row: usize) -> Vec<String> {
        self.raw(plan, row).map(|it| plan.contradictions(it)).unwrap_or_default()
    }

    fn raw(&self, plan: &StatsPlan, row: usize) -> Option<Raw> {
        if self.whole.is_null(row) {
            return None;
        }
        let mut raw = Raw::of(plan);
        raw.rows = self.rows.as_ref().and_then(|it| integer(it, row));
        raw.tight_bounds = self.tight_bounds.as_ref().and_then(|it| boolean(it, row));
        for (columns, into) in self.leaves.iter().zip(&mut raw.leaves) {
            into.min = columns.min.as_ref().and_then(|it| scalar(it, row));
            into.max = columns.max.as_ref().and_then(|it| scalar(it, row));
            into.nulls = columns.nulls.as_ref().and_then(|it| integer(it, row));
        }
        Some(raw)
    }

    /// `numRecords` of the file in `row`.
    pub(crate) fn rows(&self, row: usize) -> Option<u64> {
        let valid = self.whole.is_valid(row);
        self.rows.as_ref().filter(|_| valid).and_then(|it| integer(it, row)).and_then(|it| it.try_into().ok())
    }
}

fn find(node: &Node, values: &StructArray, found: &mut impl FnMut(usize, ArrayRef)) {
    for (name, member) in &node.members {
        let Some(column) = values.column_by_name(name) else { continue };
        match member {
            Member::Leaf(index) => found(*index, std::sync::Arc::clone(column)),
            Member::Struct(inner) => {
                if let Some(values) = column.as_struct_opt() {
                    find(inner, values, found);
                }
            }
        }
    }
}

fn boolean(array: &ArrayRef, row: usize) -> Option<bool> {
    let array = array.as_boolean_opt()?;
    array.is_valid(row).then(|| array.value(row))
}

fn integer(array: &ArrayRef, row: usize) -> Option<i64> {
    match scalar(array, row)? {
        Scalar::Int(it) => Some(it),
        _ => None,
    }
}

/// The value in a column, whatever its type; `None` for null and for types that have no order here.
fn scalar(array: &ArrayRef, row: usize) -> Option<Scalar> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => Scalar::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => Scalar::Int(array.as_primitive::<types::Int8Type>().value(row).into()),
        DataType::Int16 => Scalar::Int(array.as_primitive::<types::Int16Type>().value(row).into()),
        DataType::Int32 => Scalar::Int(array.as_primitive::<types::Int32Type>().value(row).into()),
        DataType::Int64 => Scalar::Int(array.as_primitive::<types::Int64Type>().value(row)),
        DataType::Float32 => Scalar::Float(array.as_primitive::<types::Float32Type>().value(row)),
        DataType::Float64 => Scalar::Double(array.as_primitive::<types::Float64Type>().value(row)),
        DataType::Utf8 => Scalar::Utf8(array.as_string::<i32>().value(row).to_owned()),
        DataType::Utf8View => Scalar::Utf8(array.as_string_view().value(row).to_owned()),
        DataType::Date32 => Scalar::Date(array.as_primitive::<types::Date32Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            Scalar::Decimal(array.as_primitive::<types::Decimal128Type>().value(row), *scale)
        }
        DataType::Timestamp(unit, _) => Scalar::Timestamp(micros(array, *unit, row)?),
        _ => return None,
    })
}

fn micros(array: &ArrayRef, unit: TimeUnit, row: usize) -> Option<i64> {
    match unit {
        TimeUnit::Second => array.as_primitive::<types::TimestampSecondType>().value(row).checked_mul(1_000_000),
        TimeUnit::Millisecond => array.as_primitive::<types::TimestampMillisecondType>().value(row).checked_mul(1_000),
        TimeUnit::Microsecond => Some(array.as_primitive::<types::TimestampMicrosecondType>().value(row)),
        TimeUnit::Nanosecond => {
            Some(array.as_primitive::<types::TimestampNanosecondType>().value(row).div_euclid(1_000))
        }
    }
}
