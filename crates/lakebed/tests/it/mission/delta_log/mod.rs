//! The Delta transaction log.
mod caches;
mod commits;
mod crash;
mod growth;
mod reading;
mod writers;

use std::path::Path;

use serde_json::Value;

/// The name of a version's commit.
fn commit_name(version: u64) -> String {
    format!("{version:020}.json")
}

/// The names of the log's commits, sorted.
fn commits(table: &Path) -> Vec<String> {
    let is_commit = |it: &String| it.strip_suffix(".json").is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
    super::names(&table.join("_delta_log")).into_iter().filter(is_commit).collect()
}

/// The lines of a commit.
fn lines(table: &Path, version: u64) -> Vec<Value> {
    let text = std::fs::read_to_string(table.join("_delta_log").join(commit_name(version))).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap_or_else(|err| panic!("{it}: {err}"))).collect()
}
