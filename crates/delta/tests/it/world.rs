//! Small tables made line by line, in a store that counts and fails on command.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use futures::TryStreamExt;
use lakebed_core::{
    Result,
    commit::StoragePublisher,
    format::{OpenOptions, TableFormat, TableLocation},
    listing::ListingColumns,
    scan::{Scan, ScanTask},
    storage::Storage,
    table::{Snapshot, Table},
    version::{AsOf, VersionId},
};
use lakebed_delta::{Delta, DeltaSnapshot, DeltaTable};
use lakebed_testkit::{env, seed::Seed, store::FaultyStore};
use object_store::{ObjectStoreExt, PutPayload, path::Path};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

/// A table named `t` in memory.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) store: FaultyStore,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { store: FaultyStore::new(Seed(1)) }
    }

    /// A table whose version `v` adds the file `v.parquet`, up to version `last`.
    pub(crate) async fn with_versions(last: u64) -> Self {
        let world = Self::new();
        for version in 0..=last {
            world.commit(version, &version_lines(version)).await;
        }
        world
    }

    pub(crate) fn storage(&self) -> Storage {
        self.store.storage("t")
    }

    pub(crate) async fn put(&self, name: &str, body: impl Into<Bytes>) {
        let key = Path::from(format!("t/_delta_log/{name}"));
        self.store.put(&key, PutPayload::from(body.into())).await.unwrap();
    }

    pub(crate) async fn get(&self, name: &str) -> Bytes {
        let key = Path::from(format!("t/_delta_log/{name}"));
        self.store.get(&key).await.unwrap().bytes().await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.store.delete(&Path::from(format!("t/_delta_log/{name}"))).await.unwrap();
    }

    pub(crate) async fn commit(&self, version: u64, lines: &[Value]) {
        self.put(&format!("{version:020}.json"), text(lines)).await;
    }

    /// Writes the state after `with_versions(version)` as a classic checkpoint, and the hint.
    pub(crate) async fn checkpoint(&self, version: u64) {
        self.put(&format!("{version:020}.checkpoint.parquet"), checkpoint_bytes(&state_lines(version))).await;
        self.put("_last_checkpoint", json!({"version": version, "size": version + 4}).to_string()).await;
    }

    pub(crate) async fn table(&self) -> Arc<DeltaTable> {
        open(self.storage()).await
    }

    pub(crate) async fn latest(&self) -> Result<Arc<DeltaSnapshot>> {
        self.table().await.latest().await
    }

    pub(crate) async fn at(&self, version: u64) -> Result<Arc<DeltaSnapshot>> {
        self.table().await.at(version).await
    }

    /// The live files of the newest version by a table that knows nothing yet, or the error's text.
    pub(crate) async fn files(&self) -> Result<Vec<File>, String> {
        let snapshot = self.table().await.snapshot(&AsOf::Latest).await.map_err(|it| it.to_string())?;
        paths(&snapshot).await.map_err(|it| it.to_string())
    }

    /// What reading the newest version warns of.
    pub(crate) async fn warnings(&self) -> Vec<String> {
        let snapshot = self.table().await.snapshot(&AsOf::Latest).await.unwrap();
        paths(&snapshot).await.unwrap();
        let warnings = snapshot.facts().into_iter().find(|(name, _)| name == "warnings");
        warnings.map(|(_, it)| serde_json::from_value(it).unwrap()).unwrap_or_default()
    }
}

pub(crate) async fn open(storage: Storage) -> Arc<DeltaTable> {
    let table = Delta.open(location(storage)).await.unwrap();
    let table: Arc<dyn std::any::Any + Send + Sync> = table;
    table.downcast().unwrap()
}

pub(crate) fn location(storage: Storage) -> TableLocation {
    let publisher = Arc::new(StoragePublisher);
    TableLocation { storage, publisher, env: env::env(Seed(1)), options: OpenOptions::default() }
}

/// A live file: its path, and the id of its deletion vector.
pub(crate) type File = (String, Option<String>);

/// The live files, sorted; one listed twice is there twice.
///
/// Vectors are known of files inside the table only: others are listed and not read.
pub(crate) async fn paths<S: Snapshot + ?Sized>(snapshot: &Arc<S>) -> Result<Vec<File>> {
    let columns = ListingColumns { path: true, ..ListingColumns::NONE };
    let batches: Vec<_> = snapshot.files(&Scan::all(), columns).try_collect().await?;
    let listed = batches.iter().flat_map(|it| it.column(0).as_string::<i32>().iter().flatten().map(str::to_owned));
    let mut files: Vec<File> = match snapshot.tasks(&Scan::all()).try_collect::<Vec<_>>().await {
        Ok(tasks) => {
            let id = |it: &ScanTask| it.deletes.first().and_then(|it| it.id.clone());
            let files: Vec<File> = tasks.iter().map(|it| (it.files[0].path.as_str().to_owned(), id(it))).collect();
            assert_eq!(files.len(), listed.count(), "a scan and a listing show the same files");
            files
        }
        Err(_) => listed.map(|it| (it, None)).collect(),
    };
    files.sort();
    Ok(files)
}

pub(crate) fn as_of(version: u64) -> AsOf {
    AsOf::Version(VersionId::from(version))
}

/// The files of these versions, without vectors.
pub(crate) fn names(versions: impl IntoIterator<Item = u64>) -> Vec<File> {
    let mut files: Vec<File> = versions.into_iter().map(|it| (format!("{it}.parquet"), None)).collect();
    files.sort();
    files
}

pub(crate) fn protocol() -> Value {
    json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
}

pub(crate) fn metadata(partition: &[&str], configuration: Value) -> Value {
    let schema = json!({"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": true, "metadata": {}},
        {"name": "day", "type": "date", "nullable": true, "metadata": {}},
    ]});
    json!({"metaData": {
        "id": "00000000-0000-0000-0000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.to_string(),
        "partitionColumns": partition,
        "configuration": configuration,
        "createdTime": 1_700_000_000_000_i64,
    }})
}

/// `{version}.parquet`, with ids from `10 * version` to `10 * version + 9`.
pub(crate) fn add(version: u64) -> Value {
    let stats = json!({"numRecords": 10, "minValues": {"id": version * 10}, "maxValues": {"id": version * 10 + 9}, "nullCount": {"id": 0}});
    json!({"add": {
        "path": format!("{version}.parquet"),
        "partitionValues": {},
        "size": 100 + version,
        "modificationTime": 1_700_000_000_000_u64 + version,
        "dataChange": true,
        "stats": stats.to_string(),
    }})
}

pub(crate) fn remove(path: &str) -> Value {
    json!({"remove": {"path": path, "deletionTimestamp": 1_700_000_000_500_i64, "dataChange": true}})
}

fn version_lines(version: u64) -> Vec<Value> {
    let info = json!({"commitInfo": {"timestamp": 1_700_000_000_000_u64 + version, "operation": "WRITE"}});
    let mut lines = vec![info];
    if version == 0 {
        lines.extend([protocol(), metadata(&[], json!({}))]);
    }
    lines.push(add(version));
    lines
}

/// What a checkpoint of `with_versions(version)` holds.
pub(crate) fn state_lines(version: u64) -> Vec<Value> {
    let small = [protocol(), metadata(&[], json!({})), json!({"txn": {"appId": "app", "version": 7}})];
    small.into_iter().chain((0..=version).map(add)).collect()
}

pub(crate) fn text(lines: &[Value]) -> String {
    lines.iter().map(|it| format!("{it}\n")).collect()
}

/// A checkpoint of `lines`, with the columns writers commonly write.
pub(crate) fn checkpoint_bytes(lines: &[Value]) -> Bytes {
    parquet_bytes(lines, checkpoint_fields())
}

/// A sidecar of `lines`, adds only.
pub(crate) fn sidecar_bytes(lines: &[Value]) -> Bytes {
    let fields = checkpoint_fields().into_iter().filter(|it| it.name() == "add" || it.name() == "remove");
    parquet_bytes(lines, fields.collect())
}

pub(crate) fn parquet_bytes(lines: &[Value], fields: Vec<Field>) -> Bytes {
    let schema = Arc::new(Schema::new(fields));
    let mut decoder = arrow_json::ReaderBuilder::new(Arc::clone(&schema)).build_decoder().unwrap();
    decoder.serialize(lines).unwrap();
    let batch = decoder.flush().unwrap().unwrap();
    let mut body = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut body, schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    body.into()
}

fn group(name: &str, fields: Vec<Field>) -> Field {
    Field::new(name, DataType::Struct(Fields::from(fields)), true)
}

fn text_field(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn long(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn int(name: &str) -> Field {
    Field::new(name, DataType::Int32, true)
}

fn map(name: &str) -> Field {
    let entries = vec![Field::new("key", DataType::Utf8, false), text_field("value")];
    let entries = Field::new("key_value", DataType::Struct(Fields::from(entries)), false);
    Field::new(name, DataType::Map(Arc::new(entries), false), true)
}

fn list(name: &str) -> Field {
    Field::new(name, DataType::List(Arc::new(text_field("element"))), true)
}

fn vector() -> Field {
    let fields = [
        text_field("storageType"),
        text_field("pathOrInlineDv"),
        int("offset"),
        int("sizeInBytes"),
        long("cardinality"),
    ];
    group("deletionVector", fields.to_vec())
}

pub(crate) fn checkpoint_fields() -> Vec<Field> {
    vec![
        group("txn", vec![text_field("appId"), long("version"), long("lastUpdated")]),
        group(
            "add",
            vec![
                text_field("path"),
                map("partitionValues"),
                long("size"),
                long("modificationTime"),
                Field::new("dataChange", DataType::Boolean, true),
                text_field("stats"),
                vector(),
                long("baseRowId"),
                long("defaultRowCommitVersion"),
            ],
        ),
        group("remove", vec![text_field("path"), long("deletionTimestamp"), vector()]),
        group(
            "metaData",
            vec![
                text_field("id"),
                text_field("name"),
                text_field("description"),
                group("format", vec![text_field("provider"), map("options")]),
                text_field("schemaString"),
                list("partitionColumns"),
                map("configuration"),
                long("createdTime"),
            ],
        ),
        group(
            "protocol",
            vec![int("minReaderVersion"), int("minWriterVersion"), list("readerFeatures"), list("writerFeatures")],
        ),
        group(
            "domainMetadata",
            vec![text_field("domain"), text_field("configuration"), Field::new("removed", DataType::Boolean, true)],
        ),
        group("sidecar", vec![text_field("path"), long("sizeInBytes"), long("modificationTime")]),
        group("checkpointMetadata", vec![long("version")]),
    ]
}
