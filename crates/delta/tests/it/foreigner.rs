//! A writer as Spark is one: it knows the log's rules and nothing of Lakebed, and says things no build here has heard of.
use async_trait::async_trait;
use futures::TryStreamExt;
use lakebed_core::{
    Error, ErrorKind, Result,
    env::Env,
    file::DataFile,
    path::FilePath,
    storage::{Put, Storage},
    version::{Version, VersionId},
};
use lakebed_testkit::{
    batch::{parquet_bytes, to_batch},
    conformance::Foreigner,
    files::put_fresh,
    rows::Rows,
};
use serde_json::{Value, json};

use crate::{
    neutral::{arrow_schema, stats},
    world::text,
};

/// Commits by put-if-absent, without anything of Lakebed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spark;

/// How often it tries the next version.
const TRIES: usize = 8;

/// The newest version of the log.
pub(crate) async fn newest(storage: &Storage) -> Result<u64> {
    let names: Vec<String> = storage.list_after("_delta_log", "").map_ok(|it| it.path).try_collect().await?;
    let version = |it: &String| it.strip_prefix("_delta_log/")?.strip_suffix(".json")?.parse::<u64>().ok();
    let newest = names.iter().filter_map(version).max();
    newest.ok_or_else(|| Error::not_found("the log is empty"))
}

pub(crate) fn commit_path(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}

fn info(env: &Env, id: &str, operation: &str, blind: bool) -> Value {
    let now = env.clock.now().0;
    json!({"commitInfo": {
        "timestamp": now, "inCommitTimestamp": now, "operation": operation, "operationParameters": {"mode": "Append"},
        "isolationLevel": "Serializable", "isBlindAppend": blind, "engineInfo": "Another-Engine/1", "txnId": id,
        "tags": {"unheardOf": "kept"},
    }})
}

/// Writes the file of an append; says its `add`.
pub(crate) async fn added(storage: &Storage, env: &Env, rows: &Rows) -> Result<Value> {
    let body = parquet_bytes(&[to_batch(rows, &arrow_schema())?], &arrow_schema(), 1024)?;
    let (path, bytes) = (format!("part-00000-{:032x}.c000.snappy.parquet", env.ids.uuid()), body.len());
    put_fresh(storage, &path, body).await?;
    Ok(json!({"add": {
        "path": path, "partitionValues": {}, "size": bytes, "modificationTime": env.clock.now().0, "dataChange": true,
        "stats": stats(rows).to_string(), "tags": {}, "unheardOf": {"deep": [1, 2]},
    }}))
}

async fn publish(storage: &Storage, version: u64, lines: &[Value]) -> Result<Put> {
    storage.create(&commit_path(version), text(lines).into()).await
}

fn silent(version: u64) -> Error {
    Error::new(ErrorKind::Unknown, format!("no answer about version {version}"))
}

/// Times in commits never go back; who writes one after another's takes care of that.
async fn after(storage: &Storage, mut info: Value, before: u64) -> Result<Value> {
    let body = storage.read(&FilePath::below(commit_path(before))).await?.unwrap_or_default();
    let first = serde_json::Deserializer::from_slice(&body).into_iter::<Value>().next();
    let stamp = first.and_then(Result::ok).and_then(|it| it["commitInfo"]["inCommitTimestamp"].as_i64());
    let own = info["commitInfo"]["inCommitTimestamp"].as_i64().expect("made above");
    if let Some(stamp) = stamp {
        info["commitInfo"]["inCommitTimestamp"] = json!(own.max(stamp + 1));
    }
    Ok(info)
}

#[async_trait]
impl Foreigner for Spark {
    async fn append(&self, storage: &Storage, env: &Env, id: &str, rows: &Rows) -> Result<VersionId> {
        // Until something was sent, every error is a refusal.
        let refused = |it: Error| Error::new(ErrorKind::Conflict, it);
        let add = added(storage, env, rows).await.map_err(refused)?;
        let unheard = json!({"unheardOfAction": {"nothing": null}});
        let mut version = newest(storage).await.map_err(refused)? + 1;
        for _ in 0..TRIES {
            let info = after(storage, info(env, id, "WRITE", true), version - 1).await.map_err(refused)?;
            match publish(storage, version, &[info, add.clone(), unheard.clone()]).await.map_err(refused)? {
                Put::Won => return Ok(VersionId::from(version)),
                // A loss may be its own first try.
                Put::Lost if holds(storage, version, id).await? => return Ok(VersionId::from(version)),
                Put::Lost => version += 1,
                Put::Unknown => return Err(silent(version)),
            }
        }
        Err(Error::new(ErrorKind::Conflict, "too many others"))
    }

    async fn remove(
        &self,
        storage: &Storage,
        env: &Env,
        id: &str,
        base: &Version,
        file: &DataFile,
    ) -> Result<VersionId> {
        let version = base.id.as_str().parse::<u64>().expect("Delta's versions are numbers") + 1;
        let remove = json!({"remove": {
            "path": file.path.as_str(), "deletionTimestamp": env.clock.now().0, "dataChange": true,
            "extendedFileMetadata": true, "partitionValues": {}, "size": file.bytes,
        }});
        let refused = |it: Error| Error::new(ErrorKind::Conflict, it);
        let info = after(storage, info(env, id, "DELETE", false), version - 1).await.map_err(refused)?;
        match publish(storage, version, &[info, remove]).await.map_err(refused)? {
            Put::Won => Ok(VersionId::from(version)),
            Put::Lost if holds(storage, version, id).await? => Ok(VersionId::from(version)),
            Put::Lost => Err(Error::new(ErrorKind::Conflict, format!("version {version} is another's"))),
            Put::Unknown => Err(silent(version)),
        }
    }
}

/// Whether a version is the commit of this id.
async fn holds(storage: &Storage, version: u64, id: &str) -> Result<bool> {
    let body = storage.read(&FilePath::below(commit_path(version))).await.map_err(|_| silent(version))?;
    let text = String::from_utf8(body.unwrap_or_default().to_vec()).expect("JSON");
    Ok(text.contains(id))
}
