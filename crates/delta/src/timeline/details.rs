//! What one commit says of itself.
//!
//! Files are counted from the commit's actions. Rows are the operation's own metrics where it has them, since an
//! update that rewrites a file of a million rows changes one; else they are counted from the files' statistics.
use std::collections::{BTreeMap, BTreeSet};

use lakebed_core::{
    Error, Result,
    path::PathPolicy,
    timeline::{Action, Details},
    version::{Millis, VersionId},
};
use serde_json::Value;

use crate::{
    log::{Commit, Listed, Log},
    spec::{self, CommitInfo, DeletionVectorDescriptor},
    state::key,
    stats::num_records,
};

/// The columns of history that come from a commit.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) action: Action,
    pub(crate) native_action: String,
    pub(crate) details: Details,
    /// The time in the commit, where it has one.
    pub(crate) stamp: Option<Millis>,
    /// The writer's clock when it committed.
    pub(crate) started_at: Option<Millis>,
}

impl Told {
    /// A commit that cannot be read: its place in history stays.
    pub(crate) fn unreadable(err: &Error) -> Self {
        let native = serde_json::json!({ "error": err.to_string() });
        let details = Details { native, ..Details::default() };
        Self { action: Action::Other, native_action: String::new(), details, stamp: None, started_at: None }
    }
}

/// Reads a commit whole if it has up to `whole` bytes, else what its first line says.
pub(crate) async fn read(log: &Log, commit: &Listed, whole: u64) -> Result<Told> {
    let version = commit.file.version;
    if commit.bytes > whole
        && let Some(info) = log.read_first_line(version, commit.bytes).await?
    {
        let native = serde_json::to_value(&info).unwrap_or_default();
        return Ok(told(version, Some(&info), native, &Counted::default()));
    }
    let commit = log.read_commit(version).await?;
    Ok(of_commit(log.storage().policy(), &commit))
}

/// What a commit that was read whole says.
pub(crate) fn of_commit(policy: &PathPolicy, commit: &Commit) -> Told {
    told(commit.version, commit.info(), native(commit), &Counted::of(policy, commit))
}

/// The commitInfo as it was written.
fn native(commit: &Commit) -> Value {
    let entry = commit.entries.iter().find(|it| matches!(it.action, spec::Action::CommitInfo(_)));
    let line = entry.and_then(|it| serde_json::from_str::<Value>(commit.json(it)).ok());
    line.and_then(|mut it| it.get_mut("commitInfo").map(Value::take)).unwrap_or_default()
}

fn told(version: u64, info: Option<&CommitInfo>, native: Value, counted: &Counted) -> Told {
    let operation = info.and_then(|it| it.operation.clone()).unwrap_or_default();
    let none = CommitInfo::default();
    let info = info.unwrap_or(&none);
    let parameters = texts(info.operation_parameters.as_ref());
    let metrics = texts(info.operation_metrics.as_ref());
    let (rows_added, rows_removed) = rows(&operation, &metrics, counted);
    let details = Details {
        files_added: counted
            .known
            .then_some(counted.files_added)
            .or_else(|| metric(&metrics, &["numFiles", "numAddedFiles"])),
        files_removed: counted
            .known
            .then_some(counted.files_removed)
            .or_else(|| metric(&metrics, &["numRemovedFiles"])),
        rows_added,
        rows_removed,
        bytes_added: counted.bytes_added,
        bytes_removed: counted.bytes_removed,
        user: info.user_name.clone().or_else(|| info.rest.get("userId").and_then(|it| it.as_str()).map(str::to_owned)),
        engine: info.engine_info.clone(),
        read_version: info.read_version.and_then(|it| u64::try_from(it).ok()).map(VersionId::from),
        isolation: info.isolation_level.clone(),
        blind_append: info.is_blind_append,
        user_metadata: info.user_metadata.clone(),
        parameters,
        metrics,
        native,
    };
    Told {
        action: action(version, &operation, &details.parameters, counted),
        native_action: operation,
        stamp: info.in_commit_timestamp.map(Millis),
        started_at: info.timestamp.map(Millis),
        details,
    }
}

/// What the actions of a commit add up to. `None` is unknown.
#[derive(Debug, Clone, Default)]
struct Counted {
    /// Whether the actions were seen at all.
    known: bool,
    files_added: u64,
    files_removed: u64,
    bytes_added: Option<u64>,
    bytes_removed: Option<u64>,
    rows_added: Option<u64>,
    rows_removed: Option<u64>,
    /// Files that only have another vector now.
    vectors_changed: u64,
    data_change: bool,
    metadata: bool,
    protocol: bool,
}

impl Counted {
    fn of(policy: &PathPolicy, commit: &Commit) -> Self {
        let mut sum = Self {
            known: true,
            bytes_added: Some(0),
            bytes_removed: Some(0),
            rows_added: Some(0),
            rows_removed: Some(0),
            metadata: commit.metadata().is_some(),
            protocol: commit.protocol().is_some(),
            ..Self::default()
        };
        // A file that is removed and added in one commit only has another vector: the same file, other rows.
        let added: BTreeSet<_> = commit.adds().map(|it| key::canonical(policy, &it.path)).collect();
        let mut vectors = BTreeMap::new();
        for it in commit.removes() {
            sum.data_change |= it.data_change;
            let path = key::canonical(policy, &it.path);
            if added.contains(&path) {
                vectors.insert(path, cardinality(it.deletion_vector.as_ref()));
                continue;
            }
            sum.files_removed += 1;
            add(&mut sum.bytes_removed, it.size.and_then(|it| u64::try_from(it).ok()));
            add(&mut sum.rows_removed, live_rows(it.stats.as_deref(), it.deletion_vector.as_ref()));
        }
        for it in commit.adds() {
            sum.data_change |= it.data_change;
            if let Some(before) = vectors.get(&key::canonical(policy, &it.path)) {
                let now = cardinality(it.deletion_vector.as_ref());
                sum.vectors_changed += 1;
                add(&mut sum.rows_removed, Some(now.saturating_sub(*before)));
                add(&mut sum.rows_added, Some(before.saturating_sub(now)));
                continue;
            }
            sum.files_added += 1;
            add(&mut sum.bytes_added, u64::try_from(it.size).ok());
            add(&mut sum.rows_added, live_rows(it.stats.as_deref(), it.deletion_vector.as_ref()));
        }
        sum
    }
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    *sum = sum.zip(more).and_then(|(sum, more)| sum.checked_add(more));
}

fn cardinality(vector: Option<&DeletionVectorDescriptor>) -> u64 {
    vector.and_then(|it| u64::try_from(it.cardinality).ok()).unwrap_or(0)
}

fn live_rows(stats: Option<&str>, vector: Option<&DeletionVectorDescriptor>) -> Option<u64> {
    num_records(stats?)?.checked_sub(cardinality(vector))
}

/// Rows added and removed, as the operation's own metrics say, else as counted.
fn rows(operation: &str, metrics: &BTreeMap<String, String>, counted: &Counted) -> (Option<u64>, Option<u64>) {
    if counted.known && !counted.data_change && counted.files_added + counted.files_removed > 0 {
        return (Some(0), Some(0));
    }
    let of = |names: &[&str]| metric(metrics, names);
    let (added, removed) = match operation {
        "DELETE" => {
            let deleted = of(&["numDeletedRows"]);
            (deleted.map(|_| 0), deleted)
        }
        "UPDATE" => (of(&["numUpdatedRows"]), of(&["numUpdatedRows"])),
        "MERGE" => {
            let updated = of(&["numTargetRowsUpdated"]);
            let plus = |name: &str| updated.zip(of(&[name])).and_then(|(a, b)| a.checked_add(b));
            (plus("numTargetRowsInserted"), plus("numTargetRowsDeleted"))
        }
        _ => (of(&["numOutputRows"]), None),
    };
    (added.or(counted.rows_added), removed.or(counted.rows_removed))
}

/// The first of `names` among the metrics that is a number; other writers spell `num_deleted_rows`.
fn metric(metrics: &BTreeMap<String, String>, names: &[&str]) -> Option<u64> {
    let plain = |it: &str| it.replace('_', "").to_ascii_lowercase();
    names.iter().find_map(|name| {
        let found =
            metrics.get(*name).or_else(|| metrics.iter().find(|(key, _)| plain(key) == plain(name)).map(|it| it.1));
        found?.parse().ok()
    })
}

fn texts(values: Option<&serde_json::Map<String, Value>>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    values.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

/// The operation in Lakebed's words; where the commit names none, what its actions amount to.
fn action(version: u64, operation: &str, parameters: &BTreeMap<String, String>, counted: &Counted) -> Action {
    let parameter = |name: &str| parameters.get(name).map_or("", String::as_str);
    let first = version == 0;
    match operation {
        "" => from_files(version, counted),
        // Lakebed's own: other engines have no tags.
        "CREATE TAG" | "DROP TAG" => Action::Ref,
        _ if operation.starts_with("CREATE") || operation == "CONVERT" || operation == "CLONE" => {
            if first {
                Action::Create
            } else {
                Action::Overwrite
            }
        }
        _ if operation.starts_with("REPLACE TABLE") => Action::Overwrite,
        "WRITE" | "STREAMING UPDATE" => match (parameter("mode"), parameter("outputMode")) {
            ("Overwrite", _) | (_, "Complete") => Action::Overwrite,
            ("ErrorIfExists", _) if first => Action::Create,
            _ => Action::Append,
        },
        "DELETE" | "TRUNCATE" => Action::Delete,
        "UPDATE" | "MERGE" => Action::RowDelta,
        "OPTIMIZE" | "AUTO COMPACTION" | "REORG" => {
            let clusters = |name| !matches!(parameter(name), "" | "[]");
            if clusters("zOrderBy") || clusters("clusterBy") { Action::Clustering } else { Action::Compaction }
        }
        "ADD COLUMNS"
        | "CHANGE COLUMN"
        | "CHANGE COLUMNS"
        | "REPLACE COLUMNS"
        | "DROP COLUMNS"
        | "RENAME COLUMN"
        | "UPDATE SCHEMA"
        | "UPDATE COLUMN METADATA"
        | "CLUSTER BY" => Action::Schema,
        "SET TBLPROPERTIES"
        | "UNSET TBLPROPERTIES"
        | "ADD CONSTRAINT"
        | "DROP CONSTRAINT"
        | "UPGRADE PROTOCOL"
        | "ADD FEATURE"
        | "DROP FEATURE" => Action::Properties,
        "RESTORE" => Action::Restore,
        "VACUUM START" | "VACUUM END" => Action::Clean,
        _ => Action::Other,
    }
}

fn from_files(version: u64, counted: &Counted) -> Action {
    let deletes = counted.files_removed + counted.vectors_changed > 0;
    match (counted.files_added > 0, deletes) {
        (false, false) if version == 0 => Action::Create,
        (false, false) if counted.metadata => Action::Schema,
        (false, false) if counted.protocol => Action::Properties,
        (false, false) => Action::Other,
        _ if !counted.data_change => Action::Compaction,
        (true, false) => Action::Append,
        (false, true) => Action::Delete,
        (true, true) => Action::RowDelta,
    }
}
