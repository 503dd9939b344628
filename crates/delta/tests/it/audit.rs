//! What the objects of a log say against each other, read slowly: the commits are the truth, all else must agree.
//!
//! 1. Each commit is written once, and they are numbered without gaps.
//! 2. A checkpoint holds the files, tombstones, applications, domains, protocol and metadata that the commits up to it
//!    make; tombstones of the audit's tables are all too young to be left out. Sidecars come before who names them.
//! 3. A checksum file counts what the commits make.
//! 4. The hint names a checkpoint that was complete when it was written, and never an older one than before.
use std::collections::BTreeMap;

use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

type Lines = Vec<Value>;

/// `written` are paths below the root and bodies, in the order they were written.
pub(crate) fn audit(written: &[(String, Bytes)]) -> Result<(), String> {
    let mut log = Log::default();
    for (path, body) in written {
        let Some(name) = path.strip_prefix("_delta_log/") else { continue };
        log.take(name, body).map_err(|it| format!("{path}: {it}"))?;
    }
    Ok(())
}

#[derive(Default)]
struct Log {
    commits: Vec<Lines>,
    /// Files of checkpoints that top levels name.
    sidecars: BTreeMap<String, Lines>,
    complete: Vec<u64>,
    hinted: Option<u64>,
}

impl Log {
    fn take(&mut self, name: &str, body: &Bytes) -> Result<(), String> {
        if let Some(name) = name.strip_prefix("_sidecars/") {
            self.sidecars.insert(name.to_owned(), parquet_lines(body)?);
            return Ok(());
        }
        if name == "_last_checkpoint" {
            return self.hint(body);
        }
        let Some((version, rest)) = name.split_once('.') else { return Ok(()) };
        let Ok(version) = version.parse::<u64>() else { return Ok(()) };
        match rest {
            "json" => self.commit(version, body),
            "crc" => self.checksum(version, body),
            rest if rest.starts_with("checkpoint") => self.checkpoint(version, rest, body),
            _ => Ok(()),
        }
    }

    fn commit(&mut self, version: u64, body: &Bytes) -> Result<(), String> {
        if version != self.commits.len() as u64 {
            return Err(format!("written after version {:?}", self.commits.len().checked_sub(1)));
        }
        self.commits.push(json_lines(body)?);
        Ok(())
    }

    fn state(&self, version: u64) -> State {
        let commits = usize::try_from(version).expect("few commits") + 1;
        State::of(self.commits.iter().take(commits).flatten())
    }

    fn checkpoint(&mut self, version: u64, rest: &str, body: &Bytes) -> Result<(), String> {
        if rest.split('.').count() > 3 && !rest.contains('-') {
            return Err("checkpoints in parts are not written here".to_owned());
        }
        let mut lines = if rest.ends_with("json") { json_lines(body)? } else { parquet_lines(body)? };
        let named: Vec<String> =
            lines.iter().filter_map(|it| it["sidecar"]["path"].as_str().map(str::to_owned)).collect();
        for path in named {
            let sidecar = self.sidecars.get(path.rsplit('/').next().unwrap_or_default());
            lines.extend(sidecar.ok_or_else(|| format!("names {path}, which was not written before"))?.clone());
        }
        self.state(version).compare(&State::of(&lines))?;
        self.complete.push(version);
        Ok(())
    }

    fn checksum(&self, version: u64, body: &Bytes) -> Result<(), String> {
        let found: Value = serde_json::from_slice(body).map_err(|it| it.to_string())?;
        let state = self.state(version);
        let bytes: i64 = state.files.values().filter_map(|it| it["size"].as_i64()).sum();
        for (name, counted) in [("numFiles", state.files.len() as i64), ("tableSizeBytes", bytes)] {
            if found[name].as_i64() != Some(counted) {
                return Err(format!("{name} is {}, and the commits make {counted}", found[name]));
            }
        }
        let commit = &self.commits[usize::try_from(version).expect("few commits")];
        let id = commit.iter().find_map(|it| it["commitInfo"]["txnId"].as_str());
        match found["txnId"].as_str() {
            Some(named) if Some(named) != id => Err(format!("is of the commit {named}, which is not there")),
            _ => Ok(()),
        }
    }

    fn hint(&mut self, body: &Bytes) -> Result<(), String> {
        let hint: Value = serde_json::from_slice(body).map_err(|it| it.to_string())?;
        let version = hint["version"].as_u64().ok_or("names no version")?;
        if !self.complete.contains(&version) {
            return Err(format!("names version {version}, which has no complete checkpoint"));
        }
        if let Some(before) = self.hinted.filter(|it| *it > version) {
            return Err(format!("goes back from version {before} to {version}"));
        }
        self.hinted = Some(version);
        Ok(())
    }
}

/// A file's path, and the id of the vector on it.
type Key = (String, String);

/// What a log comes to, from newest to oldest in the obvious way.
#[derive(Default)]
struct State {
    files: BTreeMap<Key, Value>,
    tombstones: BTreeMap<Key, Value>,
    applications: BTreeMap<String, Value>,
    domains: BTreeMap<String, Value>,
    protocol: Value,
    metadata: Value,
}

fn key(action: &Value) -> Key {
    let vector = &action["deletionVector"];
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let id = match vector.is_object() {
        true => format!("{}{}@{}", text(&vector["storageType"]), text(&vector["pathOrInlineDv"]), vector["offset"]),
        false => String::new(),
    };
    (text(&action["path"]), id)
}

impl State {
    fn of<'a>(lines: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut state = Self::default();
        for line in lines {
            let Some((kind, action)) = line.as_object().and_then(|it| it.iter().find(|(_, it)| !it.is_null())) else {
                continue;
            };
            match kind.as_str() {
                "add" => {
                    state.tombstones.remove(&key(action));
                    state.files.insert(key(action), action.clone());
                }
                "remove" => {
                    state.files.remove(&key(action));
                    state.tombstones.insert(key(action), action.clone());
                }
                "txn" => {
                    state.applications.insert(action["appId"].to_string(), action["version"].clone());
                }
                "domainMetadata" => {
                    let domain = action["domain"].to_string();
                    match action["removed"] == json!(true) {
                        true => state.domains.remove(&domain),
                        false => state.domains.insert(domain, action["configuration"].clone()),
                    };
                }
                "protocol" => state.protocol = action.clone(),
                "metaData" => state.metadata = action.clone(),
                _ => (),
            }
        }
        state
    }

    /// Whether `found` is what this state is.
    fn compare(&self, found: &Self) -> Result<(), String> {
        same("files", self.files.keys(), found.files.keys())?;
        same("tombstones", self.tombstones.keys(), found.tombstones.keys())?;
        for (key, add) in &self.files {
            let there = &found.files[key];
            for name in ["size", "modificationTime"] {
                equal(name, &add[name], &there[name])?;
            }
            equal("partitionValues", &pairs(&add["partitionValues"]), &pairs(&there["partitionValues"]))?;
            if let Some(stats) = there["stats"].as_str() {
                let of = |it: &str| serde_json::from_str::<Value>(it).unwrap_or_default();
                equal("stats", &of(add["stats"].as_str().unwrap_or_default()), &of(stats))?;
            }
        }
        for (key, remove) in &self.tombstones {
            let there = &found.tombstones[key];
            equal("deletionTimestamp", &remove["deletionTimestamp"], &there["deletionTimestamp"])?;
        }
        equal("txn", &json!(self.applications), &json!(found.applications))?;
        equal("domainMetadata", &json!(self.domains), &json!(found.domains))?;
        for name in ["minReaderVersion", "minWriterVersion"] {
            equal(name, &self.protocol[name], &found.protocol[name])?;
        }
        for name in ["id", "schemaString", "partitionColumns"] {
            equal(name, &self.metadata[name], &found.metadata[name])?;
        }
        equal("configuration", &pairs(&self.metadata["configuration"]), &pairs(&found.metadata["configuration"]))
    }
}

/// Empty where there is none: maps of Parquet and of JSON say that differently.
fn pairs(map: &Value) -> Value {
    if map.is_null() { json!({}) } else { map.clone() }
}

fn equal(name: &str, expected: &Value, found: &Value) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{name} is {found}, and the commits make {expected}")) }
}

fn same<'a>(
    what: &str,
    expected: impl Iterator<Item = &'a Key>,
    found: impl Iterator<Item = &'a Key>,
) -> Result<(), String> {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.collect(), found.collect());
    match expected == found {
        true => Ok(()),
        false => Err(format!("{what} are {found:?}, and the commits make {expected:?}")),
    }
}

fn json_lines(body: &Bytes) -> Result<Lines, String> {
    serde_json::Deserializer::from_slice(body)
        .into_iter::<Value>()
        .collect::<Result<_, _>>()
        .map_err(|it| it.to_string())
}

/// A Parquet file of actions as the JSON lines it stands for.
pub(crate) fn parquet_lines(body: &Bytes) -> Result<Lines, String> {
    let failed = |it: &dyn std::fmt::Display| it.to_string();
    let reader = ParquetRecordBatchReaderBuilder::try_new(body.clone()).map_err(|it| failed(&it))?;
    let mut writer = arrow_json::LineDelimitedWriter::new(Vec::new());
    for batch in reader.build().map_err(|it| failed(&it))? {
        writer.write(&batch.map_err(|it| failed(&it))?).map_err(|it| failed(&it))?;
    }
    writer.finish().map_err(|it| failed(&it))?;
    json_lines(&writer.into_inner().into())
}
