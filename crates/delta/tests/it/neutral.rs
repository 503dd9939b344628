//! Delta in the suite every format runs: small tables written by hand, commits and data files, as another engine would.
use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use futures::TryStreamExt;
use lakebed_core::{
    Result,
    env::Env,
    format::{TableFormat, TableLocation},
    storage::{Put, Storage},
    table::Table,
};
use lakebed_delta::Delta;
use lakebed_testkit::{
    batch::{parquet_bytes, to_batch},
    conformance::Subject,
    rows::Rows,
    value,
};
use serde_json::{Value, json};

use crate::world::{checkpoint_bytes, protocol, text};

/// With or without a checkpoint of every version.
#[derive(Debug, Clone, Copy, Default)]
struct DeltaSubject {
    checkpoints: bool,
}

impl DeltaSubject {
    /// Writes `version`, and where there are checkpoints the state that it and the versions before make.
    async fn publish(self, storage: &Storage, version: u64, lines: &[Value]) -> Result<()> {
        let put = storage.create(&format!("_delta_log/{version:020}.json"), text(lines).into()).await?;
        assert_eq!(put, Put::Won, "one writer at a time");
        if self.checkpoints {
            let mut state = Vec::new();
            for version in 0..=version {
                state.extend(lines_of(storage, version).await?);
            }
            let body = checkpoint_bytes(&state);
            let put = storage.create(&format!("_delta_log/{version:020}.checkpoint.parquet"), body).await?;
            assert_eq!(put, Put::Won, "one writer at a time");
        }
        Ok(())
    }
}

async fn lines_of(storage: &Storage, version: u64) -> Result<Vec<Value>> {
    let path = lakebed_core::path::FilePath::below(format!("_delta_log/{version:020}.json"));
    let body = storage.read(&path).await?.expect("a commit written before");
    let lines = serde_json::Deserializer::from_slice(&body).into_iter::<Value>().map(|it| it.expect("our own JSON"));
    Ok(lines.filter(|it| it.get("commitInfo").is_none()).collect())
}

/// How many commits there are, which is the next one's version.
async fn next_version(storage: &Storage) -> Result<u64> {
    let names: Vec<String> = storage.list_after("_delta_log", "").map_ok(|it| it.path).try_collect().await?;
    Ok(names.iter().filter(|it| it.ends_with(".json")).count() as u64)
}

fn commit_info(operation: &str) -> Value {
    json!({"commitInfo": {"operation": operation, "operationParameters": {}, "engineInfo": "by hand"}})
}

fn metadata() -> Value {
    let schema = json!({"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": true, "metadata": {}},
        {"name": "name", "type": "string", "nullable": true, "metadata": {}},
    ]});
    json!({"metaData": {
        "id": "00000000-0000-0000-0000-000000000002",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.to_string(),
        "partitionColumns": [],
        "configuration": {},
    }})
}

pub(crate) fn arrow_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, true)]))
}

/// Bounds and nulls of each column, as writers leave them.
pub(crate) fn stats(rows: &Rows) -> Value {
    let mut bounds: [BTreeMap<&str, Value>; 2] = Default::default();
    let mut nulls = BTreeMap::new();
    for (at, name) in rows.columns.iter().enumerate() {
        let mut values: Vec<&value::Value> = rows.rows.iter().map(|it| &it[at]).filter(|it| !it.is_null()).collect();
        nulls.insert(name.as_str(), rows.len() - values.len());
        values.sort();
        for (bounds, value) in bounds.iter_mut().zip([values.first(), values.last()]) {
            let shown = match value {
                Some(value::Value::Int(it)) => json!(i64::try_from(*it).expect("an id")),
                Some(value::Value::Text(it)) => json!(it),
                _ => continue,
            };
            bounds.insert(name, shown);
        }
    }
    let [least, greatest] = bounds;
    json!({"numRecords": rows.len(), "minValues": least, "maxValues": greatest, "nullCount": nulls})
}

#[async_trait]
impl Subject for DeltaSubject {
    fn format(&self) -> Arc<dyn TableFormat> {
        Arc::new(Delta)
    }

    async fn create(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        self.publish(&at.storage, 0, &[commit_info("CREATE TABLE"), protocol(), metadata()]).await?;
        Delta.open(at).await
    }

    async fn append(&self, table: &dyn Table, _: &Env, rows: &Rows) -> Result<()> {
        let storage = table.storage();
        let version = next_version(storage).await?;
        let schema = arrow_schema();
        let body = parquet_bytes(&[to_batch(rows, &schema)?], &schema, 1024)?;
        let (path, bytes) = (format!("part-{version}.parquet"), body.len());
        assert_eq!(storage.create(&path, body).await?, Put::Won, "one writer at a time");
        let add = json!({"add": {
            "path": path, "partitionValues": {}, "size": bytes, "modificationTime": 1_700_000_000_000_u64 + version,
            "dataChange": true, "stats": stats(rows).to_string(),
        }});
        self.publish(storage, version, &[commit_info("WRITE"), add]).await
    }

    async fn demand_unknown_feature(&self, storage: &Storage) -> Result<String> {
        demand_unknown_feature(storage).await
    }
}

/// Commits a protocol that asks for a feature nobody has.
pub(crate) async fn demand_unknown_feature(storage: &Storage) -> Result<String> {
    let protocol = json!({"protocol": {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["tides"], "writerFeatures": ["tides"],
    }});
    let version = next_version(storage).await?;
    let plain = DeltaSubject { checkpoints: false };
    plain.publish(storage, version, &[commit_info("UPGRADE PROTOCOL"), protocol]).await?;
    Ok("tides".to_owned())
}

mod memory {
    use lakebed_testkit::{conformance::World, conformance_tests};

    use super::DeltaSubject;

    conformance_tests!(reading, DeltaSubject::default(), World::memory());
}

mod disk {
    use lakebed_testkit::{conformance::World, conformance_tests};

    use super::DeltaSubject;

    conformance_tests!(reading, DeltaSubject::default(), World::disk());
}

mod checkpointed {
    use lakebed_testkit::{conformance::World, conformance_tests};

    use super::DeltaSubject;

    conformance_tests!(reading, DeltaSubject { checkpoints: true }, World::memory());
}
