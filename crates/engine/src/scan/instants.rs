//! Instants in another unit: the same instant to the last digit, or an error.
//!
//! Arrow's cast leaves off the digits that a coarser unit lacks.
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int64Array, TimestampMicrosecondArray, TimestampNanosecondArray,
    cast::AsArray,
    types::{Int64Type, TimestampMicrosecondType, TimestampNanosecondType},
};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};

const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Dates or timestamps as timestamps of micro- or nanoseconds.
pub(super) fn exact(array: &ArrayRef, unit: TimeUnit, zone: Option<Arc<str>>) -> Result<ArrayRef, ArrowError> {
    let (from, to) = (nanos(array.data_type()), nanos_of(unit));
    let convert = |value: i64| {
        let made = if from >= to { value.checked_mul(from / to) } else { divided(value, to / from) };
        made.ok_or_else(|| {
            ArrowError::ComputeError(format!("{value} times {from} ns since 1970 is no number of {unit:?}s"))
        })
    };
    let raw = cast(array, &DataType::Int64)?;
    let raw: &Int64Array = raw.as_primitive::<Int64Type>();
    Ok(match unit {
        TimeUnit::Nanosecond => {
            let made: TimestampNanosecondArray = raw.try_unary::<_, TimestampNanosecondType, _>(convert)?;
            Arc::new(made.with_timezone_opt(zone))
        }
        _ => {
            let made: TimestampMicrosecondArray = raw.try_unary::<_, TimestampMicrosecondType, _>(convert)?;
            Arc::new(made.with_timezone_opt(zone))
        }
    })
}

fn divided(value: i64, by: i64) -> Option<i64> {
    (value % by == 0).then_some(value / by)
}

fn nanos(kind: &DataType) -> i64 {
    match kind {
        DataType::Timestamp(unit, _) => nanos_of(*unit),
        _ => NANOS_PER_DAY,
    }
}

fn nanos_of(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
