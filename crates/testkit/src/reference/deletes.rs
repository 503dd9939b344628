//! Rows that are gone, and the rows that alone are wanted.
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use arrow_schema::Schema;
use lakebed_core::{
    Error, Result,
    file::{DataFile, DeleteFile, DeleteKind, DeletePlace},
    format::TableFormat,
    path::FilePath,
    scan::ScanTask,
    storage::Storage,
};

use super::{Row, columns::Finder, file};
use crate::value::Value;

/// The rows of `data` that the task's `only` and `deletes` leave, in order.
pub(super) async fn apply(
    format: &dyn TableFormat,
    storage: &Storage,
    data: &DataFile,
    task: &ScanTask,
    mut rows: Vec<Row>,
) -> Result<Vec<Row>> {
    if !task.only.is_empty() {
        let mut wanted = BTreeSet::new();
        for delete in &task.only {
            wanted.extend(named(format, storage, data, task, delete, &rows).await?);
        }
        rows.retain(|row| wanted.contains(&row.position));
    }
    for delete in &task.deletes {
        let gone = named(format, storage, data, task, delete, &rows).await?;
        rows.retain(|row| !gone.contains(&row.position));
    }
    Ok(rows)
}

/// Positions in `data` that one delete file names.
async fn named(
    format: &dyn TableFormat,
    storage: &Storage,
    data: &DataFile,
    task: &ScanTask,
    delete: &DeleteFile,
    rows: &[Row],
) -> Result<BTreeSet<u64>> {
    if !delete.targets.is_empty() && !delete.targets.contains(&data.path) {
        return Ok(BTreeSet::new());
    }
    match &delete.kind {
        DeleteKind::Vector => Ok(format.decode_vector(storage, delete).await?.iter().collect()),
        DeleteKind::Positions => positions(storage, data, place(delete)?).await,
        DeleteKind::Equality { columns } => {
            let names: Vec<&String> = columns.iter().filter_map(|it| it.0.first()).collect();
            let places = names.iter().map(|name| task.columns.schema.index_of(name));
            let places = places.collect::<Result<Vec<_>, _>>().map_err(|it| Error::corrupt(it.to_string()))?;
            let gone = equality(storage, place(delete)?, task, &places).await?;
            let is_gone = |row: &&Row| gone.contains(&pick(&row.values, &places));
            Ok(rows.iter().filter(is_gone).map(|row| row.position).collect())
        }
    }
}

fn place(delete: &DeleteFile) -> Result<&FilePath> {
    match &delete.place {
        DeletePlace::File(path) => Ok(path),
        _ => Err(Error::corrupt("position and equality deletes are files of their own")),
    }
}

fn pick(values: &[Value], places: &[usize]) -> Vec<Value> {
    places.iter().map(|at| values[*at].clone()).collect()
}

/// Spec: Iceberg, "Position Delete Files": columns `file_path` and `pos`.
async fn positions(storage: &Storage, data: &DataFile, path: &FilePath) -> Result<BTreeSet<u64>> {
    let rows = file::parquet_rows(&file::whole(storage, path).await?, path.as_str())?;
    let rows = rows.project(&["file_path", "pos"])?;
    let mut gone = BTreeSet::new();
    for row in &rows.rows {
        let [Value::Text(target), Value::Int(position)] = row.as_slice() else {
            return Err(Error::corrupt(format!("{path}: a row without path or position")));
        };
        if storage.policy().resolve_plain(target)? == data.path {
            gone.insert(u64::try_from(*position).map_err(|_| Error::corrupt(format!("{path}: position {position}")))?);
        }
    }
    Ok(gone)
}

/// The values of the table's columns at `places` in each row of an equality delete file.
async fn equality(
    storage: &Storage,
    path: &FilePath,
    task: &ScanTask,
    places: &[usize],
) -> Result<HashSet<Vec<Value>>> {
    let (schema, raw) = file::parquet_file(&file::whole(storage, path).await?, path.as_str())?;
    let mut mapping = task.columns.as_ref().clone();
    let fields: Vec<_> = places.iter().map(|at| Arc::clone(&mapping.schema.fields()[*at])).collect();
    mapping.schema = Schema::new(fields).into();
    let as_data = DataFile::parquet(path.clone(), 0);
    let finder = Finder::new(&schema, &mapping, mapping.by, &as_data);
    raw.iter().map(|row| finder.values(row)).collect()
}
