//! Delta in the suite every format runs, written by Lakebed itself: data files are prepared, everything else is the
//! format's.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use futures::TryStreamExt;
use lakebed_core::{
    Result,
    change::{Change, RowDelta},
    commit::Write,
    env::Env,
    expr::{ColumnPath, Scalar},
    file::{DataFile, FileKey},
    format::{CreateTable, TableFormat, TableLocation},
    path::FilePath,
    scan::{Scan, ScanTask},
    storage::Storage,
    table::{Layout, PartitionField, Table, Transform},
    timeline::Action,
    write::{NewVector, RowDeletes},
};
use lakebed_delta::Delta;
use lakebed_testkit::{
    batch::{parquet_bytes, to_batch},
    conformance::{self, Foreigner, Subject},
    files::{put_fresh, scalar, statistics},
    pond::intent,
    reference::{self, Reading},
    rows::Rows,
    value::Value,
};
use roaring::RoaringTreemap;

use crate::{audit, foreigner::Spark, neutral};

/// How the tables of the suite are made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    /// Deletes write vectors; files are rewritten otherwise.
    pub(crate) vectors: bool,
    /// Commits carry their time.
    pub(crate) clock: bool,
    pub(crate) v2_checkpoints: bool,
}

impl Written {
    pub(crate) const PLAIN: Self = Self { vectors: false, clock: false, v2_checkpoints: false };
    pub(crate) const VECTORS: Self = Self { vectors: true, clock: false, v2_checkpoints: false };
    pub(crate) const MODERN: Self = Self { vectors: true, clock: true, v2_checkpoints: true };

    pub(crate) fn properties(self) -> Vec<(String, String)> {
        let mut properties = BTreeMap::from([
            ("delta.enableChangeDataFeed", "true"),
            ("delta.feature.domainMetadata", "supported"),
            ("delta.isolationLevel", "Serializable"),
        ]);
        if self.vectors {
            properties.insert("delta.enableDeletionVectors", "true");
        }
        if self.clock {
            properties.insert("delta.enableInCommitTimestamps", "true");
        }
        if self.v2_checkpoints {
            properties.insert("delta.checkpointPolicy", "v2");
        }
        properties.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)]))
}

/// Makes a table of `id BIGINT, name VARCHAR` by committing what `begin_create` began.
pub(crate) async fn create(
    at: TableLocation,
    partition: &[&str],
    properties: Vec<(String, String)>,
) -> Result<Arc<dyn Table>> {
    let fields = partition.iter().map(|name| PartitionField {
        name: (*name).to_owned(),
        source: ColumnPath::top(*name),
        transform: Transform::Identity,
    });
    let layout = Layout { partition: fields.collect(), ..Layout::default() };
    let table = CreateTable { schema: columns(), layout, properties, comment: None };
    let env = at.env.clone();
    let begun = Delta.begin_create(at, table, intent(Action::Create)).await?;
    conformance::commit(begun.table.as_ref(), &env, &begun.write, &[]).await?;
    Ok(begun.table)
}

/// One data file of `rows`, in the shape the table asks for; in a partitioned table all have the first one's values.
pub(crate) async fn data_file(storage: &Storage, env: &Env, write: &Write, rows: &Rows) -> Result<DataFile> {
    let shape = write.base.write_rules()?.files;
    let mut named = rows.project(&shape.columns)?;
    named.columns = shape.schema.fields().iter().map(|it| it.name().clone()).collect();
    let body = parquet_bytes(&[to_batch(&named, &shape.schema)?], &shape.schema, 1024)?;
    let partition = write.base.layout().partition.iter().map(|it| {
        let value = rows.column(&it.name).and_then(|at| scalar(&rows.rows[0][at]));
        (it.name.clone(), value)
    });
    let partition: Vec<(String, Option<Scalar>)> = partition.collect();
    let folders = partition.iter().map(|(name, value)| match value {
        Some(Scalar::Utf8(text)) => format!("{name}={text}/"),
        _ => format!("{name}=none/"),
    });
    let folder = if shape.folder.is_empty() { String::new() } else { format!("{}/", shape.folder) };
    let path = format!("{folder}{}part-{:032x}.parquet", folders.collect::<String>(), env.ids.uuid());
    let mut file = DataFile::parquet(FilePath::below(path.as_str()), body.len() as u64);
    put_fresh(storage, &path, body).await?;
    file.stats.rows = Some(rows.len() as u64);
    file.stats.columns = statistics(rows, write.base.schema());
    file.partition = partition;
    Ok(file)
}

/// The rows of a file with their positions.
async fn placed(storage: &Storage, task: &ScanTask) -> Result<Vec<(u64, Vec<Value>)>> {
    let reading = Reading { places: true, ..Reading::default() };
    let rows = reference::read_with(&Delta, storage, std::slice::from_ref(task), &reading).await?;
    let place = rows.column("_row_index").expect("asked for");
    let position = |row: &[Value]| match &row[place] {
        Value::Int(position) => u64::try_from(*position).expect("a row's position"),
        other => panic!("{other} is no position"),
    };
    Ok(rows.rows.iter().map(|row| (position(row), row[..2].to_vec())).collect())
}

fn key_of(task: &ScanTask) -> FileKey {
    FileKey { path: task.files[0].path.clone(), vector: task.deletes.first().and_then(|it| it.id.clone()) }
}

fn rows_of(values: impl IntoIterator<Item = Vec<Value>>) -> Rows {
    let mut rows = Rows::new(["id", "name"]);
    rows.rows = values.into_iter().collect();
    rows
}

#[async_trait]
impl Subject for Written {
    fn format(&self) -> Arc<dyn TableFormat> {
        Arc::new(Delta)
    }

    async fn create(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        create(at, &[], self.properties()).await
    }

    async fn demand_unknown_feature(&self, storage: &Storage) -> Result<String> {
        neutral::demand_unknown_feature(storage).await
    }

    fn writes(&self) -> bool {
        true
    }

    async fn data_file(&self, table: &dyn Table, env: &Env, write: &Write, rows: &Rows) -> Result<DataFile> {
        data_file(table.storage(), env, write, rows).await
    }

    async fn deletion(&self, table: &dyn Table, env: &Env, write: &Write, ids: &[i64]) -> Result<Vec<Change>> {
        let gone: Vec<Value> = ids.iter().map(|it| Value::from(*it)).collect();
        let by_vector = write.base.write_rules()?.deletes == RowDeletes::Vectors;
        let tasks: Vec<ScanTask> = write.base.tasks(&Scan::all()).try_collect().await?;
        let (mut delta, mut vectors) = (RowDelta::default(), Vec::new());
        for task in tasks {
            let rows = placed(table.storage(), &task).await?;
            let (hit, stay): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, row)| gone.contains(&row[0]));
            if hit.is_empty() {
                continue;
            }
            // A file without rows goes whole.
            if !by_vector || stay.is_empty() {
                delta.removed.push(key_of(&task));
                if !stay.is_empty() {
                    let stay = rows_of(stay.into_iter().map(|(_, row)| row));
                    delta.added.push(data_file(table.storage(), env, write, &stay).await?);
                }
                continue;
            }
            let mut rows: RoaringTreemap = hit.iter().map(|(position, _)| *position).collect();
            for old in &task.deletes {
                rows |= Delta.decode_vector(table.storage(), old).await?;
            }
            vectors.push(NewVector { target: task.files[0].path.clone(), rows });
        }
        if !vectors.is_empty() {
            delta.added_deletes = table.write_vectors(write, vectors).await?;
        }
        Ok(vec![Change::Rows(delta)])
    }

    async fn compaction(&self, table: &dyn Table, env: &Env, write: &Write) -> Result<Vec<Change>> {
        let tasks: Vec<ScanTask> = write.base.tasks(&Scan::all()).try_collect().await?;
        if tasks.len() < 2 {
            return Ok(Vec::new());
        }
        let rows = reference::read(&Delta, table.storage(), &tasks).await?;
        let added = vec![data_file(table.storage(), env, write, &rows).await?];
        let removed = tasks.iter().map(key_of).collect();
        Ok(vec![Change::Rows(RowDelta { added, removed, ..RowDelta::default() })])
    }

    fn holds_rows(&self) -> fn(&str) -> bool {
        |it| !it.starts_with("_delta_log/")
    }

    fn caches(&self, all: &[String]) -> Vec<String> {
        let name = |it: &&String| it.strip_prefix("_delta_log/").map(str::to_owned);
        let commits = all.iter().filter_map(|it| name(&it)?.strip_suffix(".json")?.parse::<u64>().ok());
        let commits: BTreeSet<u64> = commits.collect();
        // While every commit is there, checkpoints are caches like the rest.
        let whole = commits.last().is_some_and(|it| commits.len() as u64 == it + 1);
        let is_cache = |it: &str| {
            let checkpoint = it.contains(".checkpoint") || it.starts_with("_sidecars/");
            it == "_last_checkpoint" || it.ends_with(".crc") || (whole && checkpoint)
        };
        all.iter().filter(|it| name(it).is_some_and(|it| is_cache(&it))).cloned().collect()
    }

    fn foreigner(&self) -> Option<&dyn Foreigner> {
        Some(&Spark)
    }

    fn audit(&self, written: &[(String, bytes::Bytes)]) -> Result<(), String> {
        audit::audit(written)
    }
}

mod plain {
    use lakebed_testkit::{conformance::World, conformance_tests};

    use super::Written;

    conformance_tests!(all, Written::PLAIN, World::memory());
}

mod vectors {
    use lakebed_testkit::{conformance::World, conformance_tests};

    use super::Written;

    conformance_tests!(all, Written::VECTORS, World::memory());
}

mod modern {
    use lakebed_testkit::{conformance::World, conformance_tests};

    use super::Written;

    conformance_tests!(all, Written::MODERN, World::memory());
}

mod disk {
    use lakebed_testkit::{conformance::World, conformance_tests};

    use super::Written;

    conformance_tests!(healthy, Written::VECTORS, World::disk());
}
