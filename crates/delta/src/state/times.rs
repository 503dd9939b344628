//! When a version became visible.
//!
//! Where the table stamps its commits, the stamp; it stands in the commit, not in checkpoints. Elsewhere the time
//! the store gives the commit's file, made to ascend: `max(time, previous + 1 ms)`.
//!
//! Spec: Delta PROTOCOL.md, "In-Commit Timestamps".
use lakebed_core::{Result, version::Millis};

use crate::{
    log::{Listing, Log, is_damage},
    spec::Metadata,
    timeline::times::{Clock, file_times},
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
    if !Clock::of(metadata).stamps(version) {
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
        Err(err) if !is_damage(&err) => Err(err),
        _ => {
            let why = "has no inCommitTimestamp although the table stamps its commits: the file's time is taken";
            warnings.push(format!("commit {version} {why}"));
            Ok(file_time(listing, version))
        }
    }
}

/// By the files of `listing`. It begins at the hint or at a page before the version, so a time that only still older
/// files move up is not moved up here: history, which lists the whole log, may say some milliseconds more.
fn file_time(listing: &Listing, version: u64) -> Millis {
    file_times(listing).get(version).unwrap_or(Millis(0))
}
