//! Delta tables made and changed through the contract every format meets, in a store that counts and fails on command.
use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use lakebed_core::{
    Result,
    change::{Application, Change, RowDelta},
    commit::{self, Committed, Intent, StoragePublisher, Write},
    conflict::{ConflictPolicy, Isolation},
    env::Env,
    expr::{ColumnPath, Predicate, Scalar},
    file::{ColumnStats, DataFile, FileKey, FileStats},
    format::{CreateTable, TableFormat, TableLocation},
    path::FilePath,
    storage::Storage,
    table::{Layout, PartitionField, Snapshot, Table, Transform},
    timeline::Action,
    version::AsOf,
};
use lakebed_delta::Delta;
use lakebed_testkit::{conformance, env, seed::Seed, store::FaultyStore};
use serde_json::Value;

mod create;
mod files;
mod race;
mod replace;
mod schema;
mod settings;

/// A place for one table.
#[derive(Debug, Clone)]
struct Place {
    store: FaultyStore,
    env: Env,
}

impl Place {
    fn new() -> Self {
        Self { store: FaultyStore::new(Seed(1)), env: env::env(Seed(2)) }
    }

    fn location(&self) -> TableLocation {
        conformance::location(self.store.storage("t"), &self.env)
    }

    fn storage(&self) -> Storage {
        self.store.storage("t")
    }

    async fn create(&self, create: CreateTable) -> Result<Arc<dyn Table>> {
        Delta.create(self.location(), create).await
    }

    /// The table as another process sees it.
    async fn opened(&self) -> Arc<dyn Table> {
        Delta.open(self.location()).await.unwrap()
    }

    /// The actions of a commit.
    async fn lines(&self, version: u64) -> Vec<Value> {
        let path = FilePath::below(format!("_delta_log/{version:020}.json"));
        let body = self.storage().read(&path).await.unwrap().expect("a commit");
        serde_json::Deserializer::from_slice(&body).into_iter().map(|it| it.unwrap()).collect()
    }

    /// The first action of this kind in a commit; null where there is none.
    async fn action(&self, version: u64, name: &str) -> Value {
        self.lines(version).await.iter().find_map(|it| it.get(name).cloned()).unwrap_or_default()
    }

    async fn commit(&self, table: &dyn Table, intent: Intent, changes: &[Change]) -> Result<Committed> {
        let write = table.begin(intent).await?;
        self.conclude(table, &write, changes).await
    }

    async fn conclude(&self, table: &dyn Table, write: &Write, changes: &[Change]) -> Result<Committed> {
        let read = (write.intent.action != Action::Append).then_some(Predicate::True);
        let policy = ConflictPolicy { isolation: Isolation::WriteSerializable, read, claims: Vec::new(), retries: 20 };
        commit::commit(table, &StoragePublisher, &self.env, write, changes, &policy).await
    }

    async fn append(&self, table: &dyn Table, files: Vec<DataFile>) -> Result<Committed> {
        self.commit(table, intent(Action::Append), &[added(files)]).await
    }
}

fn intent(action: Action) -> Intent {
    let operation = match action {
        Action::Delete => "DELETE",
        Action::Compaction => "OPTIMIZE",
        Action::Schema => "ADD COLUMNS",
        Action::Properties => "SET TBLPROPERTIES",
        _ => "WRITE",
    };
    Intent {
        action,
        operation: operation.to_owned(),
        parameters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    }
}

fn of_application(id: &str, version: i64) -> Intent {
    Intent { application: Some(Application { id: id.to_owned(), version }), ..intent(Action::Append) }
}

fn added(files: Vec<DataFile>) -> Change {
    Change::Rows(RowDelta { added: files, ..RowDelta::default() })
}

fn removed(path: &str, vector: Option<String>) -> Change {
    let key = FileKey { path: FilePath::below(path), vector };
    Change::Rows(RowDelta { removed: vec![key], ..RowDelta::default() })
}

/// A file of ten rows with ids from `first` on, which nobody wrote.
fn file(path: &str, first: i64) -> DataFile {
    let ids = ColumnStats {
        lower: Some(Scalar::Int(first)),
        upper: Some(Scalar::Int(first + 9)),
        nulls: Some(0),
        exact: true,
    };
    let stats = FileStats { rows: Some(10), columns: vec![(ColumnPath::top("id"), ids)] };
    DataFile { stats, ..DataFile::parquet(FilePath::below(path), 100) }
}

fn zoned() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn columns(columns: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect::<Vec<_>>()))
}

/// `id BIGINT, name STRING` with these properties.
fn plain(properties: &[(&str, &str)]) -> CreateTable {
    described(columns(&[("id", DataType::Int64), ("name", DataType::Utf8)]), &[], properties)
}

fn described(schema: SchemaRef, partition: &[&str], properties: &[(&str, &str)]) -> CreateTable {
    let partition = partition.iter().map(|it| PartitionField {
        name: (*it).to_owned(),
        source: ColumnPath::top(*it),
        transform: Transform::Identity,
    });
    CreateTable {
        schema,
        layout: Layout { partition: partition.collect(), ..Layout::default() },
        properties: properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        comment: None,
    }
}

async fn latest(table: &dyn Table) -> Arc<dyn Snapshot> {
    table.snapshot(&AsOf::Latest).await.unwrap()
}

/// The paths of the live files, sorted.
async fn paths(table: &dyn Table) -> Vec<String> {
    let files = crate::world::paths(&latest(table).await).await.unwrap();
    files.into_iter().map(|it| it.0).collect()
}

fn set(pairs: &[(&str, &str)]) -> Change {
    let set = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Change::Properties { set, unset: Vec::new() }
}

/// The message and the hint of an error.
fn shown(err: &lakebed_core::Error) -> String {
    format!("{:?}: {err} ({})", err.kind(), err.hint().unwrap_or("-"))
}
