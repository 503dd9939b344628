//! Files that come and go → `add`, `remove` and `cdc` actions.
//!
//! 1. Every file that goes, and every file that a vector takes rows from, is looked up among the live files of the version
//!    the commit is staged on, by its canonical path. One that is not there, or lies under another vector than the writer
//!    saw, is a conflict.
//! 2. A file that goes is removed under the very vector it has, with everything its `add` said.
//! 3. A vector removes its file under the old vector, and adds it anew under the new one with everything its `add` said; only
//!    the bounds of its statistics are said to be no longer tight. The count of rows on disk is needed then, and read from
//!    the file where nobody wrote it down.
//!
//! What is held is what changes: the list of files stays columns.
//! Spec: Delta PROTOCOL.md, "Add File and Remove File", "Add CDC File", "Deletion Vectors".
use std::collections::{BTreeMap, HashMap, HashSet};

use lakebed_codec::parquet::ParquetObject;
use lakebed_core::{
    Error, ErrorKind, Result,
    change::{ChangeFile, RowDelta},
    expr::Scalar,
    file::{DataFile, DeleteFile, Encoding},
    path::FilePath,
    storage::Storage,
};

use super::{
    path,
    stats::{self, IndexedColumn},
    vectors,
};
use crate::{
    partition,
    schema::{TableSchema, physical_name},
    spec::{Add, Cdc, DeletionVectorDescriptor, Remove},
    state::{State, key},
    stats::num_records,
    upkeep::live::Whole,
};

/// The actions of files in one commit.
#[derive(Debug, Default)]
pub(crate) struct FileActions {
    pub(crate) adds: Vec<Add>,
    pub(crate) removes: Vec<Remove>,
    pub(crate) cdc: Vec<Cdc>,
}

/// What every file of a commit is described with.
#[derive(Debug)]
pub(super) struct Describer<'a> {
    pub(super) schema: &'a TableSchema,
    pub(super) columns: &'a [IndexedColumn],
    pub(super) says_tight: bool,
    /// Whether rows change, or only move between files.
    pub(super) data_change: bool,
    /// Milliseconds since the epoch.
    pub(super) now: i64,
}

impl Describer<'_> {
    /// The actions of `rows`, staged on `onto`.
    ///
    /// # Errors
    /// Conflict for a file that is not there as the writer saw it; invalid for values that are none of their columns.
    pub(super) async fn actions(&self, onto: &State, rows: &RowDelta) -> Result<FileActions> {
        if let Some(key) = rows.removed_deletes.first() {
            let message = format!("rows that {} had lost cannot come back but by restoring a version", key.path);
            return Err(Error::unsupported(message));
        }
        let targets = targets(&rows.added_deletes)?;
        let removed = rows.removed.iter().map(|it| &it.path);
        let wanted: HashSet<&FilePath> = removed.chain(targets.keys().copied()).collect();
        let live = live(onto, &wanted).await?;
        let mut actions = FileActions::default();
        for key in &rows.removed {
            let file = live.get(&key.path).ok_or_else(|| gone(&key.path, onto))?;
            if file.deletion_vector.as_ref().map(DeletionVectorDescriptor::unique_id) != key.vector {
                return Err(other_vector(&key.path, onto));
            }
            // A vector on it, below, removes it as well.
            if !targets.contains_key(&key.path) {
                actions.removes.push(self.remove(file));
            }
        }
        let added: HashSet<&FilePath> = rows.added.iter().map(|it| &it.path).collect();
        for (target, vector) in &targets {
            match live.get(*target) {
                Some(file) => {
                    actions.removes.push(self.remove(file));
                    actions.adds.push(self.under(onto.log.storage(), target, file, vector).await?);
                }
                // A vector on a file of this very commit is part of its add.
                None if added.contains(target) => (),
                None => return Err(gone(target, onto)),
            }
        }
        for file in rows.added.iter().filter(|it| !live.contains_key(&it.path) || !targets.contains_key(&it.path)) {
            let vector = targets.get(&file.path).cloned();
            actions.adds.push(self.add(file, vector)?);
        }
        actions.cdc = rows.change_files.iter().map(|it| self.cdc(it)).collect::<Result<_>>()?;
        Ok(actions)
    }

    fn add(&self, file: &DataFile, vector: Option<DeletionVectorDescriptor>) -> Result<Add> {
        if file.encoding != Encoding::Parquet {
            return Err(Error::invalid(format!("{}: data files of a delta table are Parquet", file.path)));
        }
        let stats = stats::text(self.columns, &file.stats, self.says_tight);
        let stats = match &vector {
            Some(_) => stats.map(|it| loosen(&it, None)).transpose()?,
            None => stats,
        };
        Ok(Add {
            path: path::encode(&file.path),
            partition_values: self.partition(&file.path, &file.partition)?,
            size: size(&file.path, file.bytes)?,
            modification_time: file.modified_at.map_or(self.now, |it| it.0),
            data_change: self.data_change,
            stats,
            deletion_vector: vector,
            ..Add::default()
        })
    }

    /// A live file under a new vector.
    async fn under(
        &self,
        storage: &Storage,
        target: &FilePath,
        file: &Add,
        vector: &DeletionVectorDescriptor,
    ) -> Result<Add> {
        let text = file.stats.as_deref().unwrap_or("{}");
        let rows = match num_records(text) {
            Some(_) => None,
            None => Some(rows_on_disk(storage, target, file.size).await?),
        };
        let stats = Some(loosen(text, rows)?);
        let deletion_vector = Some(vector.clone());
        Ok(Add { deletion_vector, stats, data_change: self.data_change, ..file.clone() })
    }

    /// The removal of a live file.
    pub(super) fn remove(&self, file: &Add) -> Remove {
        Remove {
            path: file.path.clone(),
            deletion_timestamp: Some(self.now),
            data_change: self.data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(file.partition_values.clone()),
            size: Some(file.size),
            stats: file.stats.clone(),
            tags: file.tags.clone(),
            deletion_vector: file.deletion_vector.clone(),
            base_row_id: file.base_row_id,
            default_row_commit_version: file.default_row_commit_version,
        }
    }

    fn cdc(&self, file: &ChangeFile) -> Result<Cdc> {
        Ok(Cdc {
            path: path::encode(&file.path),
            partition_values: self.partition(&file.path, &file.partition)?,
            size: size(&file.path, file.bytes)?,
            data_change: false,
            tags: None,
        })
    }

    /// Values of the partition columns, by physical name: all of them, null where a value is.
    fn partition(
        &self,
        file: &FilePath,
        values: &[(String, Option<Scalar>)],
    ) -> Result<BTreeMap<String, Option<String>>> {
        let texts = self.schema.partition_fields().map(|field| {
            let value = values.iter().find(|(name, _)| name.eq_ignore_ascii_case(field.name()));
            let (_, value) = value.ok_or_else(|| {
                Error::invalid(format!("{file} has no value of the partition column `{}`", field.name()))
            })?;
            Ok((physical_name(field).to_owned(), partition::text_of(field, value.as_ref())?))
        });
        texts.collect()
    }
}

/// The new vector of each file.
fn targets(deletes: &[DeleteFile]) -> Result<BTreeMap<&FilePath, DeletionVectorDescriptor>> {
    let mut targets = BTreeMap::new();
    for delete in deletes {
        let [target] = &delete.targets[..] else {
            return Err(Error::invalid("a deletion vector of Delta takes rows from exactly one file"));
        };
        if targets.insert(target, vectors::descriptor(delete)?).is_some() {
            return Err(Error::invalid(format!("two vectors of one commit take rows from {target}")));
        }
    }
    Ok(targets)
}

/// The live files among `wanted`, as their `add` actions say them.
async fn live<'a>(onto: &State, wanted: &HashSet<&'a FilePath>) -> Result<HashMap<&'a FilePath, Add>> {
    let mut found = HashMap::with_capacity(wanted.len());
    if wanted.is_empty() {
        return Ok(found);
    }
    let policy = onto.log.storage().policy();
    let by_key: HashMap<&str, &'a FilePath> = wanted.iter().map(|it| (it.as_str(), *it)).collect();
    for batch in &onto.files().await?.batches {
        let path_of = |row| by_key.get(&*key::canonical(policy, batch.files().path.value(row))).copied();
        let rows: Vec<(usize, &FilePath)> = batch.live_rows().filter_map(|row| Some((row, path_of(row)?))).collect();
        if rows.is_empty() {
            continue;
        }
        let whole = Whole::of(batch.clone()).await?;
        found.extend(rows.into_iter().map(|(row, path)| (path, whole.add(row))));
        if found.len() == wanted.len() {
            break;
        }
    }
    Ok(found)
}

/// Statistics as a vector leaves them; `rows` where they do not say how many the file has.
fn loosen(text: &str, rows: Option<u64>) -> Result<String> {
    let mut parts = stats::loosened(text).unwrap_or_else(|| stats::loosened("{}").expect("an object"));
    parts.num_records = parts.num_records.or(rows);
    serde_json::to_string(&parts).map_err(|it| Error::internal(it.to_string()))
}

async fn rows_on_disk(storage: &Storage, file: &FilePath, bytes: i64) -> Result<u64> {
    let bytes = u64::try_from(bytes).map_err(|_| Error::corrupt(format!("the size of {file} is negative")))?;
    let object = ParquetObject::open(storage, file, bytes).await?;
    let rows = object.metadata().file_metadata().num_rows();
    u64::try_from(rows).map_err(|_| Error::corrupt(format!("{file} has {rows} rows")))
}

fn size(file: &FilePath, bytes: u64) -> Result<i64> {
    i64::try_from(bytes).map_err(|_| Error::internal(format!("{file} has {bytes} bytes")))
}

fn gone(file: &FilePath, onto: &State) -> Error {
    conflict(format!("{file}, from which this commit takes rows, is not in version {}", onto.shown_version()))
}

fn other_vector(file: &FilePath, onto: &State) -> Error {
    let version = onto.shown_version();
    conflict(format!("in version {version} other rows of {file} are deleted than this commit had read"))
}

fn conflict(message: String) -> Error {
    Error::new(ErrorKind::Conflict, message)
        .with_hint("nothing was committed: read the table again and redo the change")
}
