//! The files of a checkpoint, by the column.
use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, MapArray, RecordBatch, StringViewArray, StructArray,
    builder::StringViewBuilder,
    cast::AsArray,
    types::{Int32Type, Int64Type},
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType};
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_codec::parquet::Wanted;
use lakebed_core::Result;
use parquet::arrow::ProjectionMask;

use super::{Part, leaves};
use crate::log::actions::MAX_PARTITION_COLUMNS;
use crate::state::columns::{Extras, FileColumns, PartitionColumn, Quoting, RemovedColumns, StatsText, VectorColumns};

const BATCH_ROWS: usize = 128 << 10;

/// Files of a checkpoint, and where more of their columns can be read.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointBatch {
    pub(crate) files: FileColumns,
    source: Option<Source>,
}

/// A run of rows of one row group.
#[derive(Debug, Clone)]
struct Source {
    part: Part,
    group: usize,
    /// Which batch of the row group, at [`BATCH_ROWS`] rows each.
    batch: usize,
    /// The rows that are files; `None` when all are.
    files: Option<BooleanBuffer>,
}

/// What a checkpoint knows of its files' contents.
#[derive(Debug, Clone)]
pub(crate) enum FileStatistics {
    None,
    Text(StatsText),
    /// `stats_parsed`, one row a file.
    Parsed(StructArray),
}

impl CheckpointBatch {
    /// Files of a checkpoint in JSON; their statistics are read already.
    pub(super) fn of_json(files: FileColumns) -> Self {
        Self { files, source: None }
    }

    /// The statistics of these files, read now. `wanted` says which leaves below `stats_parsed` are needed.
    pub(crate) async fn statistics(&self, wanted: impl Fn(&[String]) -> bool) -> Result<FileStatistics> {
        let Some(source) = &self.source else {
            return Ok(self.files.stats.clone().map_or(FileStatistics::None, FileStatistics::Text));
        };
        let metadata = source.part.object.metadata();
        let holds = |leaf: Option<usize>| leaf.is_some_and(|it| !leaves::is_empty_throughout(metadata, it));
        if holds(leaves::find(metadata, &["add", "stats"])) {
            let column = source.read(|path| path.len() == 2 && path[0] == "add" && path[1] == "stats", "stats").await?;
            let text = column
                .map(|it| Ok::<_, ArrowError>(arrow_cast::cast(&it, &DataType::Utf8View)?.as_string_view().clone()));
            let text = text.transpose().map_err(|it| source.part.bad(it.to_string()))?;
            return Ok(text.map_or(FileStatistics::None, |text| {
                FileStatistics::Text(StatsText { text, quoting: Quoting::Plain })
            }));
        }
        let inside =
            |path: &[String]| path.len() > 2 && path[0] == "add" && path[1] == "stats_parsed" && wanted(&path[2..]);
        let column = source.read(inside, "stats_parsed").await?;
        Ok(column.and_then(|it| it.as_struct_opt().cloned()).map_or(FileStatistics::None, FileStatistics::Parsed))
    }
}

impl CheckpointBatch {
    /// Tags and clustering of these files, read now.
    pub(crate) async fn extras(&self) -> Result<Extras> {
        let Some(source) = &self.source else { return Ok(self.files.extras.clone()) };
        let metadata = source.part.object.metadata();
        let named = |name: &'static str| move |path: &[String]| path.len() > 1 && path[0] == "add" && path[1] == name;
        // Of a map the first leaf is its keys, which no entry lacks.
        let holds = |name| {
            let columns = metadata.file_metadata().schema_descr().columns();
            let first = columns.iter().position(|it| named(name)(it.path().parts()));
            first.is_some_and(|it| !leaves::is_empty_throughout(metadata, it))
        };
        let bad = |it: ArrowError| source.part.bad(it.to_string());
        let mut extras = Extras::default();
        if holds("tags")
            && let Some(column) = source.read(named("tags"), "tags").await?
        {
            extras.tags = Some(objects(&column).map_err(bad)?);
        }
        if holds("clusteringProvider")
            && let Some(column) = source.read(named("clusteringProvider"), "clusteringProvider").await?
        {
            extras.clustering =
                Some(arrow_cast::cast(&column, &DataType::Utf8View).map_err(bad)?.as_string_view().clone());
        }
        Ok(extras)
    }
}

/// Maps of texts as JSON objects.
fn objects(column: &ArrayRef) -> Result<StringViewArray, ArrowError> {
    let Some(maps) = column.as_map_opt() else {
        return Err(ArrowError::SchemaError("`tags` is no map".to_owned()));
    };
    let keys = arrow_cast::cast(maps.keys(), &DataType::Utf8View)?;
    let values = arrow_cast::cast(maps.values(), &DataType::Utf8View)?;
    let (keys, values, offsets) = (keys.as_string_view(), values.as_string_view(), maps.value_offsets());
    let mut texts = StringViewBuilder::with_capacity(maps.len());
    for row in 0..maps.len() {
        if maps.is_null(row) {
            texts.append_null();
            continue;
        }
        let mut object = serde_json::Map::new();
        for at in usize::try_from(offsets[row]).unwrap_or(0)..usize::try_from(offsets[row + 1]).unwrap_or(0) {
            let value = values.is_valid(at).then(|| values.value(at));
            object.insert(keys.value(at).to_owned(), value.into());
        }
        texts.append_value(serde_json::Value::Object(object).to_string());
    }
    Ok(texts.finish())
}

impl Source {
    /// The field `name` of `add` for these files, of the leaves that `wanted` wants; `None` where no leaf is one.
    async fn read(&self, wanted: impl Fn(&[String]) -> bool, name: &str) -> Result<Option<ArrayRef>> {
        let columns = leaves::mask(self.part.object.metadata(), wanted);
        if columns == ProjectionMask::none(self.part.object.metadata().file_metadata().schema_descr().num_columns()) {
            return Ok(None);
        }
        let wanted = Wanted { columns, row_groups: Some(vec![self.group]), batch_rows: BATCH_ROWS };
        let batch = self.part.object.clone().read(wanted).skip(self.batch).boxed().try_next().await?;
        let column = batch.as_ref().and_then(|it| it.column_by_name("add")).and_then(|it| it.as_struct_opt());
        let Some(column) = column.and_then(|it| it.column_by_name(name)) else { return Ok(None) };
        match &self.files {
            None => Ok(Some(ArrayRef::clone(column))),
            Some(files) if files.len() == column.len() => {
                let some = arrow_select::filter::filter(column, &files.clone().into());
                some.map(Some).map_err(|it| self.part.bad(it.to_string()))
            }
            Some(_) => Err(self.part.bad("its columns are of different lengths")),
        }
    }
}

/// Reads the files of one Parquet file. `partitioned` says whether partition values are needed.
pub(super) async fn read(part: Part, partitioned: bool) -> Result<Vec<CheckpointBatch>> {
    let columns = file_columns(&part, partitioned);
    // Both: an `add` without a path must be seen, not passed over.
    let metadata = part.object.metadata();
    let required: Vec<usize> =
        [["add", "path"], ["add", "size"]].iter().filter_map(|it| leaves::find(metadata, it)).collect();
    let groups = metadata.row_groups().iter().enumerate();
    let some = groups.filter(|(_, group)| required.iter().any(|it| !leaves::is_empty(group, *it)));
    let groups: Vec<usize> = some.map(|(at, _)| at).collect();
    stream::iter(groups).map(|group| read_group(part.clone(), group, columns.clone())).buffered(4).try_concat().await
}

/// The columns of `add` that every list of files needs, without those that hold nothing.
fn file_columns(part: &Part, partitioned: bool) -> ProjectionMask {
    let metadata = part.object.metadata();
    let holds =
        |path: &[&str]| leaves::find(metadata, path).is_some_and(|it| !leaves::is_empty_throughout(metadata, it));
    let vectors = holds(&["add", "deletionVector", "storageType"]);
    let row_ids = holds(&["add", "baseRowId"]);
    let row_versions = holds(&["add", "defaultRowCommitVersion"]);
    leaves::mask(metadata, |path| {
        let [first, second, ..] = path else { return false };
        first == "add"
            && match second.as_str() {
                "path" | "size" | "modificationTime" => path.len() == 2,
                "partitionValues" => partitioned,
                "deletionVector" => vectors,
                "baseRowId" => row_ids,
                "defaultRowCommitVersion" => row_versions,
                _ => false,
            }
    })
}

/// The removed files of one Parquet file.
pub(super) async fn read_removed(part: Part) -> Result<Vec<RemovedColumns>> {
    let metadata = part.object.metadata();
    let Some(path) = leaves::find(metadata, &["remove", "path"]) else { return Ok(Vec::new()) };
    let groups = metadata.row_groups().iter().enumerate().filter(|(_, it)| !leaves::is_empty(it, path));
    let row_groups = Some(groups.map(|(at, _)| at).collect());
    let columns = leaves::mask(metadata, |path| match path {
        [first, second, ..] if first == "remove" => {
            matches!(second.as_str(), "path" | "deletionTimestamp" | "size" | "deletionVector")
        }
        _ => false,
    });
    let mut batches = part.object.clone().read(Wanted { columns, row_groups, batch_rows: BATCH_ROWS });
    let mut removed = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        let columns = removed_rows(&batch).map_err(|it| part.bad(it.to_string()))?;
        removed.extend((columns.rows() > 0).then_some(columns));
    }
    Ok(removed)
}

fn removed_rows(batch: &RecordBatch) -> Result<RemovedColumns, ArrowError> {
    let bad = |rule: &str| ArrowError::SchemaError(rule.to_owned());
    let remove = batch.column_by_name("remove").and_then(|it| it.as_struct_opt());
    let remove = remove.ok_or_else(|| bad("`remove` is no struct"))?;
    let path = remove.column_by_name("path").ok_or_else(|| bad("the column `remove.path` is missing"))?;
    let has = BooleanBuffer::collect_bool(remove.len(), |row| remove.is_valid(row) && path.is_valid(row));
    let rows = arrow_select::filter::filter(remove, &has.into())?;
    let rows: &StructArray = rows.as_struct();
    let path = text(rows, "path")?.ok_or_else(|| bad("the column `remove.path` is missing"))?;
    let removed_at = long(rows, "deletionTimestamp")?.unwrap_or_else(|| Int64Array::new_null(rows.len()));
    Ok(RemovedColumns { path, vectors: vector_columns(rows)?, removed_at, bytes: long(rows, "size")? })
}

async fn read_group(part: Part, group: usize, columns: ProjectionMask) -> Result<Vec<CheckpointBatch>> {
    let wanted = Wanted { columns, row_groups: Some(vec![group]), batch_rows: BATCH_ROWS };
    let mut batches = part.object.clone().read(wanted);
    let mut files = Vec::new();
    let mut at = 0;
    while let Some(batch) = batches.try_next().await? {
        let (mask, columns) = file_rows(&batch).map_err(|it| part.bad(it.to_string()))?;
        let source = Source { part: part.clone(), group, batch: at, files: mask };
        at += 1;
        if columns.rows() > 0 {
            files.push(CheckpointBatch { files: columns, source: Some(source) });
        }
    }
    Ok(files)
}

/// The rows of a batch that are files, and their columns.
fn file_rows(batch: &RecordBatch) -> Result<(Option<BooleanBuffer>, FileColumns), ArrowError> {
    let bad = |rule: &str| ArrowError::SchemaError(rule.to_owned());
    let add = batch.column_by_name("add").and_then(|it| it.as_struct_opt()).ok_or_else(|| bad("`add` is no struct"))?;
    let path = add.column_by_name("path").ok_or_else(|| bad("the column `add.path` is missing"))?;
    let is_file = BooleanBuffer::collect_bool(add.len(), |row| add.is_valid(row) && path.is_valid(row));
    let all = is_file.count_set_bits() == add.len();
    if (0..add.len()).any(|row| add.is_valid(row) && path.is_null(row)) {
        return Err(bad("an `add` has no path"));
    }
    let filtered = if all { None } else { Some(arrow_select::filter::filter(add, &is_file.clone().into())?) };
    let rows = filtered.as_ref().map_or(add, |it| it.as_struct());
    let columns = columns_of(rows)?;
    Ok(((!all).then_some(is_file), columns))
}

fn columns_of(add: &StructArray) -> Result<FileColumns, ArrowError> {
    let bad = |rule: &str| ArrowError::SchemaError(rule.to_owned());
    let path = text(add, "path")?.ok_or_else(|| bad("the column `add.path` is missing"))?;
    let bytes = long(add, "size")?.ok_or_else(|| bad("the column `add.size` is missing"))?;
    if bytes.null_count() > 0 {
        return Err(bad("an `add` has no size"));
    }
    if bytes.values().iter().any(|it| *it < 0) {
        return Err(bad("the size of a file is negative"));
    }
    Ok(FileColumns {
        modified_at: long(add, "modificationTime")?,
        partition: partition_columns(add)?,
        vectors: vector_columns(add)?,
        base_row_id: long(add, "baseRowId")?,
        row_version: long(add, "defaultRowCommitVersion")?,
        added_in: None,
        stats: None,
        extras: Extras::default(),
        path,
        bytes,
    })
}

fn text(rows: &StructArray, name: &str) -> Result<Option<StringViewArray>, ArrowError> {
    let Some(column) = rows.column_by_name(name) else { return Ok(None) };
    Ok(Some(arrow_cast::cast(column, &DataType::Utf8View)?.as_string_view().clone()))
}

fn long(rows: &StructArray, name: &str) -> Result<Option<Int64Array>, ArrowError> {
    let Some(column) = rows.column_by_name(name) else { return Ok(None) };
    Ok(Some(arrow_cast::cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
}

fn int(rows: &StructArray, name: &str) -> Result<Int32Array, ArrowError> {
    match rows.column_by_name(name) {
        Some(column) => Ok(arrow_cast::cast(column, &DataType::Int32)?.as_primitive::<Int32Type>().clone()),
        None => Ok(Int32Array::new_null(rows.len())),
    }
}

fn vector_columns(add: &StructArray) -> Result<Option<VectorColumns>, ArrowError> {
    let Some(vectors) = add.column_by_name("deletionVector").and_then(|it| it.as_struct_opt()) else { return Ok(None) };
    // A struct of nulls is no vector, whatever the struct itself says; neither is a null struct, whose members are empty
    // texts where the schema says that they are never null.
    let place = text(vectors, "pathOrInlineDv")?.map(|it| {
        let (views, buffers, nulls) = it.into_parts();
        StringViewArray::new(views, buffers, NullBuffer::union(nulls.as_ref(), vectors.nulls()))
    });
    let Some(place) = place.filter(|it| it.null_count() < it.len()) else { return Ok(None) };
    let bad = |rule: &str| ArrowError::SchemaError(rule.to_owned());
    let storage_type = text(vectors, "storageType")?.ok_or_else(|| bad("a deletion vector has no storage type"))?;
    let size = int(vectors, "sizeInBytes")?;
    let cardinality = long(vectors, "cardinality")?.unwrap_or_else(|| Int64Array::new_null(vectors.len()));
    let whole =
        |row| place.is_null(row) || storage_type.is_valid(row) && size.is_valid(row) && cardinality.is_valid(row);
    if !(0..place.len()).all(whole) {
        return Err(bad("a deletion vector has no storage type, size or cardinality"));
    }
    Ok(Some(VectorColumns { storage_type, place, offset: int(vectors, "offset")?, size, cardinality }))
}

/// Partition values by key. They are a map, or in some files a list of pairs.
fn partition_columns(add: &StructArray) -> Result<Vec<PartitionColumn>, ArrowError> {
    let Some(column) = add.column_by_name("partitionValues") else { return Ok(Vec::new()) };
    let (offsets, entries, valid): (Vec<i32>, StructArray, _) = match column.data_type() {
        DataType::Map(..) => {
            let map: &MapArray = column.as_map();
            (map.value_offsets().to_vec(), map.entries().clone(), map.nulls().cloned())
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            let pairs = list.values().as_struct_opt().cloned();
            let pairs = pairs.ok_or_else(|| ArrowError::SchemaError("`partitionValues` is no map".to_owned()))?;
            (list.value_offsets().to_vec(), pairs, list.nulls().cloned())
        }
        _ => return Err(ArrowError::SchemaError("`partitionValues` is no map".to_owned())),
    };
    if entries.num_columns() < 2 {
        return Err(ArrowError::SchemaError("`partitionValues` is no map".to_owned()));
    }
    let keys = arrow_cast::cast(entries.column(0), &DataType::Utf8View)?;
    let values = arrow_cast::cast(entries.column(1), &DataType::Utf8View)?;
    let (keys, values) = (keys.as_string_view(), values.as_string_view());
    let mut columns: Vec<(String, Vec<u32>, StringViewBuilder)> = Vec::new();
    for row in 0..add.len() {
        if valid.as_ref().is_some_and(|it| it.is_null(row)) {
            continue;
        }
        let (Ok(from), Ok(to)) = (usize::try_from(offsets[row]), usize::try_from(offsets[row + 1])) else { continue };
        let row = u32::try_from(row).map_err(|_| ArrowError::SchemaError("too many rows".to_owned()))?;
        for (at, entry) in (from..to).enumerate() {
            if keys.is_valid(entry) {
                let value = values.is_valid(entry).then(|| values.value(entry));
                push(&mut columns, at, keys.value(entry), row, value)?;
            }
        }
    }
    let rows = add.len();
    let columns = columns.into_iter().map(|(key, having, mut values)| PartitionColumn {
        key,
        rows: if having.len() == rows { None } else { Some(having) },
        values: values.finish(),
    });
    Ok(columns.collect())
}

/// `at` is where the key stood in the row: most rows name the same keys in the same order.
fn push(
    columns: &mut Vec<(String, Vec<u32>, StringViewBuilder)>,
    at: usize,
    key: &str,
    row: u32,
    value: Option<&str>,
) -> Result<(), ArrowError> {
    let known = match columns.get(at).filter(|it| it.0 == key) {
        Some(_) => Some(at),
        None => columns.iter().position(|it| it.0 == key),
    };
    if known.is_none() {
        if columns.len() == MAX_PARTITION_COLUMNS {
            let rule = format!("files name more than {MAX_PARTITION_COLUMNS} partition columns");
            return Err(ArrowError::SchemaError(rule));
        }
        columns.push((key.to_owned(), Vec::new(), StringViewBuilder::new()));
    }
    let at = known.unwrap_or(columns.len() - 1);
    let (_, having, values) = &mut columns[at];
    if having.last() != Some(&row) {
        having.push(row);
        values.append_option(value);
    }
    Ok(())
}
