//! When a version became visible.
//!
//! Where the table stamps its commits, the stamp; it stands in the commit, not in checkpoints. Elsewhere the time
//! the store gives the commit's file, made to ascend: `max(time, previous + 1 ms)`.
//!
//! Spec: Delta PROTOCOL.md, "In-Commit Timestamps".
use lakebed_core::{Result, version::Millis};

use crate::{
    layout::LogFileKind,
    log::{Listing, Log},
    spec::Metadata,
};

/// The time of `version`. `stamp` is what its commit says, where it was read.
pub(super) async fn committed_at(
    log: &Log,
    listing: &Listing,
    version: u64,
    metadata: &Metadata,
    stamp: Option<i64>,
    warnings: &mut Vec<String>,
) -> Result<Millis> {
    if !stamped(metadata) {
        return Ok(file_time(listing, version));
    }
    if let Some(stamp) = stamp {
        return Ok(Millis(stamp));
    }
    let commit = listing.commits().rev().find(|it| it.file.version == version);
    let read = match commit {
        Some(commit) => log.read_commit_info(version, commit.bytes).await,
        None => Ok(None),
    };
    match read {
        Ok(Some(info)) if info.in_commit_timestamp.is_some() => Ok(Millis(info.in_commit_timestamp.unwrap_or(0))),
        Err(err) if !super::base::is_damage(&err) => Err(err),
        _ => {
            let why = "has no inCommitTimestamp although the table stamps its commits: the file's time is taken";
            warnings.push(format!("commit {version} {why}"));
            Ok(file_time(listing, version))
        }
    }
}

pub(super) fn stamped(metadata: &Metadata) -> bool {
    let on = metadata.configuration.get("delta.enableInCommitTimestamps");
    on.is_some_and(|it| it.eq_ignore_ascii_case("true"))
}

fn file_time(listing: &Listing, version: u64) -> Millis {
    let mut time: Option<i64> = None;
    for commit in listing.commits().take_while(|it| it.file.version <= version) {
        let ascending = time.map_or(i64::MIN, |it| it.saturating_add(1));
        time = Some(commit.modified_at.0.max(ascending));
    }
    let newest = listing.commits().rev().find(|it| it.file.version <= version).map(|it| it.file.version);
    match time.filter(|_| newest == Some(version)) {
        Some(time) => Millis(time),
        // The commit is gone and a checkpoint stands for it.
        None => {
            let checkpoint = |kind: &LogFileKind| matches!(kind, LogFileKind::Checkpoint(_));
            let found = listing.files.iter().rev().find(|it| it.file.version == version && checkpoint(&it.file.kind));
            found.map_or(Millis(time.unwrap_or(0)), |it| Millis(it.modified_at.0.max(time.unwrap_or(i64::MIN))))
        }
    }
}
