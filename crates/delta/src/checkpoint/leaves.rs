//! Parquet columns of a checkpoint by name. What a writer leaves out is simply not found.
use parquet::{
    arrow::ProjectionMask,
    file::metadata::{ParquetMetaData, RowGroupMetaData},
};

/// The index of the leaf column at `path`.
pub(super) fn find(metadata: &ParquetMetaData, path: &[&str]) -> Option<usize> {
    let columns = metadata.file_metadata().schema_descr().columns();
    columns.iter().position(|it| it.path().parts().iter().map(String::as_str).eq(path.iter().copied()))
}

/// The leaves whose path `wanted` wants.
pub(super) fn mask(metadata: &ParquetMetaData, wanted: impl Fn(&[String]) -> bool) -> ProjectionMask {
    let schema = metadata.file_metadata().schema_descr();
    let leaves = schema.columns().iter().enumerate().filter(|(_, it)| wanted(it.path().parts()));
    ProjectionMask::leaves(schema, leaves.map(|(index, _)| index))
}

/// Whether the leaf surely holds nothing in this row group.
pub(super) fn is_empty(group: &RowGroupMetaData, leaf: usize) -> bool {
    let Some(column) = group.columns().get(leaf) else { return true };
    let nulls = column.statistics().and_then(|it| it.null_count_opt());
    // A leaf below a list counts its own entries, so only columns with one value a row are asked about.
    nulls.is_some_and(|it| i64::try_from(it) == Ok(group.num_rows()))
}

/// Whether the leaf surely holds nothing in the whole file.
pub(super) fn is_empty_throughout(metadata: &ParquetMetaData, leaf: usize) -> bool {
    metadata.row_groups().iter().all(|it| is_empty(it, leaf))
}
