//! What a Parquet footer says of the file's rows.
//!
//! A column has bounds only if every row group has them, in the column's own order: one group without bounds may hold
//! anything. Bounds cut short by the writer are kept and marked inexact. NaN is never a bound, and a zero is widened
//! to both zeros.
use lakebed_core::{
    expr::{ColumnPath, Scalar},
    file::{ColumnStats, FileStats},
};
use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit},
    file::{
        metadata::{ParquetMetaData, RowGroupMetaData},
        statistics::Statistics,
    },
    schema::types::ColumnDescriptor,
};

/// Rows of the file, and bounds and nulls of every column that is not inside a list or map, by names in the file.
pub fn file_stats(metadata: &ParquetMetaData) -> FileStats {
    let rows = metadata.row_groups().iter().try_fold(0u64, |sum, it| sum.checked_add(it.num_rows().try_into().ok()?));
    let leaves = metadata.file_metadata().schema_descr().columns().iter().enumerate();
    let columns = leaves.filter(|(_, it)| it.max_rep_level() == 0).filter_map(|(leaf, column)| {
        let stats = column_stats(metadata.row_groups(), leaf, column)?;
        Some((ColumnPath(column.path().parts().to_vec()), stats))
    });
    FileStats { rows, columns: columns.collect() }
}

fn column_stats(groups: &[RowGroupMetaData], leaf: usize, column: &ColumnDescriptor) -> Option<ColumnStats> {
    let mut whole: Option<ColumnStats> = None;
    for group in groups.iter().filter(|it| it.num_rows() != 0) {
        let one = group_stats(group.columns().get(leaf)?.statistics()?, column);
        let all_null = one.nulls.is_some_and(|it| i64::try_from(it) == Ok(group.num_rows()));
        whole = Some(match whole {
            None => one,
            Some(sum) => merge(sum, one, all_null),
        });
    }
    whole.filter(|it| it.lower.is_some() || it.upper.is_some() || it.nulls.is_some())
}

/// Bounds of two row groups; a group of nothing but nulls (`second_is_null`) leaves the first's as they are.
fn merge(first: ColumnStats, second: ColumnStats, second_is_null: bool) -> ColumnStats {
    let nulls = first.nulls.zip(second.nulls).and_then(|(a, b)| a.checked_add(b));
    if second_is_null {
        return ColumnStats { nulls, ..first };
    }
    ColumnStats {
        lower: first.lower.zip(second.lower).and_then(|(a, b)| pick(a, b, |order| order.is_le())),
        upper: first.upper.zip(second.upper).and_then(|(a, b)| pick(a, b, |order| order.is_ge())),
        nulls,
        exact: first.exact && second.exact,
    }
}

fn pick(a: Scalar, b: Scalar, first_wins: impl Fn(std::cmp::Ordering) -> bool) -> Option<Scalar> {
    Some(if first_wins(a.order(&b)?) { a } else { b })
}

fn group_stats(stats: &Statistics, column: &ColumnDescriptor) -> ColumnStats {
    let signed = |it: &Statistics| !it.is_min_max_deprecated();
    let (lower, upper) = match stats {
        Statistics::Boolean(it) => {
            (it.min_opt().map(|it| Scalar::Boolean(*it)), it.max_opt().map(|it| Scalar::Boolean(*it)))
        }
        Statistics::Int32(it) => {
            (integer(it.min_opt().map(|it| (*it).into()), column), integer(it.max_opt().map(|it| (*it).into()), column))
        }
        Statistics::Int64(it) => (integer(it.min_opt().copied(), column), integer(it.max_opt().copied(), column)),
        Statistics::Float(it) => (float(it.min_opt(), -0.0), float(it.max_opt(), 0.0)),
        Statistics::Double(it) => (double(it.min_opt(), -0.0), double(it.max_opt(), 0.0)),
        // Old writers compared bytes as signed numbers.
        Statistics::ByteArray(it) if signed(stats) => {
            (bytes(it.min_bytes_opt(), column), bytes(it.max_bytes_opt(), column))
        }
        Statistics::FixedLenByteArray(it) if signed(stats) => {
            (bytes(it.min_bytes_opt(), column), bytes(it.max_bytes_opt(), column))
        }
        // INT96 has no order that writers agree on.
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) | Statistics::Int96(_) => (None, None),
    };
    let exact = stats.min_is_exact() && stats.max_is_exact();
    ColumnStats { lower, upper, nulls: stats.null_count_opt(), exact }
}

fn float(value: Option<&f32>, zero: f32) -> Option<Scalar> {
    value.filter(|it| !it.is_nan()).map(|it| Scalar::Float(if *it == 0.0 { zero } else { *it }))
}

fn double(value: Option<&f64>, zero: f64) -> Option<Scalar> {
    value.filter(|it| !it.is_nan()).map(|it| Scalar::Double(if *it == 0.0 { zero } else { *it }))
}

fn integer(value: Option<i64>, column: &ColumnDescriptor) -> Option<Scalar> {
    let value = value?;
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Some(Scalar::Date(value.try_into().ok()?)),
        (Some(LogicalType::Timestamp(it)), _) => match it.unit {
            TimeUnit::MILLIS => value.checked_mul(1000).map(Scalar::Timestamp),
            TimeUnit::MICROS => Some(Scalar::Timestamp(value)),
            TimeUnit::NANOS => Some(Scalar::TimestampNanos(value)),
        },
        (None, ConvertedType::TIMESTAMP_MILLIS) => value.checked_mul(1000).map(Scalar::Timestamp),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(Scalar::Timestamp(value)),
        (Some(LogicalType::Decimal(_)), _) | (None, ConvertedType::DECIMAL) => decimal(value.into(), column),
        (Some(LogicalType::Integer(it)), _) if it.is_signed => Some(Scalar::Int(value)),
        (None, ConvertedType::NONE | ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32) => {
            Some(Scalar::Int(value))
        }
        (None, ConvertedType::INT_64) => Some(Scalar::Int(value)),
        _ => None,
    }
}

fn bytes(value: Option<&[u8]>, column: &ColumnDescriptor) -> Option<Scalar> {
    let value = value?;
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::String), _) | (None, ConvertedType::UTF8) => {
            Some(Scalar::Utf8(String::from_utf8(value.to_vec()).ok()?))
        }
        (Some(LogicalType::Decimal(_)), _) | (None, ConvertedType::DECIMAL) => decimal(big_endian(value)?, column),
        (None, ConvertedType::NONE) => Some(Scalar::Binary(value.to_vec())),
        _ => None,
    }
}

fn decimal(unscaled: i128, column: &ColumnDescriptor) -> Option<Scalar> {
    Some(Scalar::Decimal(unscaled, column.type_scale().try_into().ok()?))
}

/// A two's complement number of up to 16 bytes, most significant first.
fn big_endian(value: &[u8]) -> Option<i128> {
    let missing = 16usize.checked_sub(value.len())?;
    let sign = if value.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut padded = [sign; 16];
    padded[missing..].copy_from_slice(value);
    Some(i128::from_be_bytes(padded))
}
