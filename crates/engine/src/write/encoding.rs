//! How the columns of one file are encoded, decided from its first rows.
//!
//! | column | few distinct values | else |
//! |---|---|---|
//! | whole numbers, dates, times, decimals of up to 18 digits | dictionary | differences (`DELTA_BINARY_PACKED`), or plain where old readers count |
//! | text, bytes, floating point, long decimals | dictionary | plain |
//! | booleans | plain | plain |
//!
//! A dictionary that does not pay costs most of the time of a write, and readers more than a plain page. Files of fewer
//! than [`FEW_ROWS`] rows have none.
use std::collections::HashSet;

use arrow_array::{Array, ArrayRef, UInt32Array, cast::AsArray};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use arrow_select::take::take;
use lakebed_core::write::{Compression, FileShape};
use parquet::{
    basic::{Compression as Codec, Encoding, GzipLevel, Type, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties, WriterVersion},
    schema::types::{ColumnDescriptor, SchemaDescriptor},
};

/// Files with fewer rows have no dictionaries.
const FEW_ROWS: usize = 100;
/// Rows looked at.
const SAMPLE: usize = 4096;
/// Rows of a page, which is what filters skip by.
const PAGE_ROWS: usize = 20_000;

/// The properties of a file whose first rows are `first`: arrays by column of the file.
pub(super) fn properties(shape: &FileShape, schema: &SchemaDescriptor, first: &[ArrayRef]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(format!("lakebed version {}", env!("CARGO_PKG_VERSION")))
        .set_compression(codec(shape.compression))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_data_page_row_count_limit(PAGE_ROWS)
        // The rows of a group are counted by whoever writes it.
        .set_max_row_group_row_count(None);
    let leaves: Vec<ArrayRef> = first.iter().flat_map(leaves).collect();
    for (column, array) in schema.columns().iter().zip(&leaves) {
        let path = column.path().clone();
        if array.data_type() != &DataType::Boolean && few_distinct(array) {
            properties = properties.set_column_dictionary_enabled(path.clone(), true);
        }
        if let Some(encoding) = fallback(shape, column) {
            properties = properties.set_column_encoding(path, encoding);
        }
    }
    properties.build()
}

/// The encoding where there is no dictionary, or it has become too large.
fn fallback(shape: &FileShape, column: &ColumnDescriptor) -> Option<Encoding> {
    match column.physical_type() {
        Type::INT32 | Type::INT64 if shape.packed_integers => Some(Encoding::DELTA_BINARY_PACKED),
        // Booleans are packed bits in any case.
        Type::BOOLEAN => None,
        _ => Some(Encoding::PLAIN),
    }
}

fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::Zstd => Codec::ZSTD(ZstdLevel::default()),
        Compression::Snappy => Codec::SNAPPY,
        Compression::Gzip => Codec::GZIP(GzipLevel::default()),
        Compression::Lz4 => Codec::LZ4_RAW,
        Compression::Uncompressed => Codec::UNCOMPRESSED,
    }
}

/// The leaf arrays of a column, in the order of the file's.
pub(super) fn leaves(array: &ArrayRef) -> Vec<ArrayRef> {
    match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().iter().flat_map(leaves).collect(),
        DataType::List(_) => leaves(array.as_list::<i32>().values()),
        DataType::Map(..) => {
            let map = array.as_map();
            [map.keys(), map.values()].into_iter().flat_map(leaves).collect()
        }
        _ => vec![ArrayRef::clone(array)],
    }
}

/// Whether a sample of the values says that a dictionary pays.
fn few_distinct(array: &ArrayRef) -> bool {
    if array.len() < FEW_ROWS {
        return false;
    }
    let Some(sample) = sample(array) else { return false };
    let valid = sample.len() - sample.logical_null_count();
    let most = match sample.data_type() {
        // Text is long: even a value that comes a few times pays for its place.
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => valid / 4,
        _ => valid / 10,
    };
    distinct(&sample, most).is_some_and(|it| it <= most.max(1))
}

/// Values from all over the array.
fn sample(array: &ArrayRef) -> Option<ArrayRef> {
    if array.len() <= SAMPLE {
        return Some(ArrayRef::clone(array));
    }
    let step = array.len() / SAMPLE;
    let rows: UInt32Array = (0..SAMPLE).map(|it| u32::try_from(it * step).ok()).collect();
    take(array, &rows, None).ok()
}

/// How many values differ; some number above `most` if more than that.
fn distinct(array: &ArrayRef, most: usize) -> Option<usize> {
    let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())]).ok()?;
    let rows = converter.convert_columns(&[ArrayRef::clone(array)]).ok()?;
    let mut seen = HashSet::new();
    for row in (0..array.len()).filter(|it| array.is_valid(*it)) {
        seen.insert(rows.row(row).data().to_vec());
        if seen.len() > most {
            break;
        }
    }
    Some(seen.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn dictionaries_are_for_values_that_come_back() {
        let ints =
            |distinct: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..10_000).map(|it| it % distinct))) };
        let texts = |distinct: i64| -> ArrayRef {
            Arc::new(StringArray::from_iter_values((0..10_000).map(|it| format!("{}", it % distinct))))
        };
        for (array, expected) in [
            (ints(7), true),
            (ints(300), true),
            (ints(10_000), false),
            (texts(900), true),
            (texts(9_000), false),
            (ints(7).slice(0, 50), false),
        ] {
            assert_eq!(few_distinct(&array), expected);
        }
    }
}
