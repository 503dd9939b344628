//! What the table is told of a file's columns: bounds and null counts, by the table's names.
//!
//! The file's own footer says them, and where it cuts or widens one it says so. It leaves NaN out of its bounds, and the
//! engines of the field order NaN above every number: a column with a NaN has no bounds.
use arrow_array::{
    Array, ArrayRef, Float32Array, Float64Array,
    cast::AsArray,
    types::{Float32Type, Float64Type},
};
use arrow_schema::DataType;
use lakebed_codec::parquet::file_stats;
use lakebed_core::file::FileStats;
use parquet::file::metadata::ParquetMetaData;

use super::target::Target;

/// The statistics of a file of data. `nan` says of each leaf whether a NaN was written.
pub(super) fn of_file(target: &Target, metadata: &ParquetMetaData, nan: &[bool]) -> FileStats {
    let names = target.leaf_names();
    let leaves = metadata.file_metadata().schema_descr().columns();
    let with_nan = |path: &[String]| {
        let leaf = leaves.iter().position(|it| it.path().parts() == path);
        leaf.is_none_or(|it| nan.get(it).copied().unwrap_or(false))
    };
    let FileStats { rows, columns } = file_stats(metadata);
    let named = columns.into_iter().filter_map(|(path, mut stats)| {
        if with_nan(&path.0) {
            (stats.lower, stats.upper, stats.exact) = (None, None, false);
        }
        Some((names.get(&path.0)?.clone(), stats))
    });
    FileStats { rows, columns: named.filter(|(name, _)| target.indexed(name)).collect() }
}

/// Whether a leaf array holds a NaN that is a value.
pub(super) fn has_nan(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Float32 => {
            let array: &Float32Array = array.as_primitive::<Float32Type>();
            array.values().iter().any(|it| it.is_nan()) && array.iter().flatten().any(f32::is_nan)
        }
        DataType::Float64 => {
            let array: &Float64Array = array.as_primitive::<Float64Type>();
            array.values().iter().any(|it| it.is_nan()) && array.iter().flatten().any(f64::is_nan)
        }
        _ => false,
    }
}
