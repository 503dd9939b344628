//! The log by its listing: hint, checkpoints, gaps, leftovers.
use lakebed_core::{Result, table::Level};

use super::{Report, ranges};
use crate::{
    layout::{self, LogFileKind},
    log::{Listing, Log, hint},
    timeline::{resolve::candidates, times},
};

/// So many commits after a checkpoint make opening slow.
const MANY_COMMITS: usize = 100;

pub(super) async fn examine(log: &Log, listing: &Listing, report: &mut Report) -> Result<()> {
    examine_hint(log, listing, report).await?;
    let (complete, incomplete) = listing.checkpoints();
    for evidence in incomplete {
        let fix = "remove the incomplete checkpoint's files, or put the missing ones back; readers do without";
        report.add("D002", Level::Warn, layout::LOG, evidence, fix);
    }
    gaps(listing, report);
    for name in &listing.staged {
        let evidence = "a commit under a unique name: only a catalog can say whether it holds";
        report.add(
            "D014",
            Level::Info,
            format!("{}/{name}", layout::LOG),
            evidence,
            "open the table through its catalog",
        );
    }
    for file in listing.files.iter().filter(|it| it.bytes == 0 && it.file.kind != LogFileKind::Commit) {
        let fix = "remove the empty file: it holds nothing";
        report.add("D015", Level::Warn, file.file.path(), "the file is empty: ignored", fix);
    }
    let base = complete.first().map(|it| it.version);
    let since = listing.commits().filter(|it| base.is_none_or(|base| it.file.version > base)).count();
    if since > MANY_COMMITS {
        let object = base.map_or("no checkpoint".to_owned(), |it| format!("checkpoint {it}"));
        report.add(
            "D018",
            Level::Info,
            object,
            format!("{since} commits since"),
            "a checkpoint, by another writer of Delta, makes opening fast again",
        );
    }
    Ok(())
}

async fn examine_hint(log: &Log, listing: &Listing, report: &mut Report) -> Result<()> {
    let mut warnings = Vec::new();
    let hint = hint::read(log, &mut warnings).await?;
    let fix = "readers find the table without; the next checkpoint of whoever writes the table brings a new hint";
    for evidence in warnings {
        report.add("D001", Level::Warn, layout::LAST_CHECKPOINT, evidence, fix);
    }
    let Some(hint) = hint else { return Ok(()) };
    let (complete, _) = listing.checkpoints();
    if !complete.iter().any(|it| it.version == hint.version) {
        let evidence = format!("names checkpoint {}, which is not there or not complete", hint.version);
        report.add("D001", Level::Warn, layout::LAST_CHECKPOINT, evidence, fix);
    } else if let Some(newer) = complete.first().filter(|it| it.version > hint.version) {
        let evidence = format!("names checkpoint {}; {} is newer", hint.version, newer.version);
        report.add("D001", Level::Info, layout::LAST_CHECKPOINT, evidence, fix);
    }
    Ok(())
}

/// Versions between the oldest and the newest that nothing rebuilds, and what can still be read.
///
/// Commits below the oldest base that is complete are leftovers of a clean-up, which is normal.
fn gaps(listing: &Listing, report: &mut Report) {
    let readable: Vec<u64> = candidates(listing).iter().map(|it| it.file.version).collect();
    let newest = listing.newest().unwrap_or(0);
    let commits: std::collections::BTreeSet<u64> = listing.commits().map(|it| it.file.version).collect();
    let oldest = readable.first().copied().unwrap_or(0);
    let fix = format!(
        "put the missing file back from a backup; versions that can still be read: {}",
        ranges(readable.iter().copied())
    );
    let mut expected = oldest;
    for version in readable.iter().chain(commits.range(oldest..)).copied().collect::<std::collections::BTreeSet<_>>() {
        // A checkpoint bridges a gap for what comes after it; what lies in the gap stays lost.
        if version > expected {
            let missing = layout::commit_path(expected);
            let bridged = readable.binary_search(&version).is_ok();
            let level = if bridged && readable.binary_search(&newest).is_ok() { Level::Warn } else { Level::Error };
            let lost =
                if version - expected == 1 { expected.to_string() } else { format!("{expected}-{}", version - 1) };
            report.add("D004", level, missing, format!("log version {lost} is gone, but {version} is there"), &fix);
        }
        expected = version.saturating_add(1);
    }
    if readable.is_empty() {
        let missing = layout::commit_path(0);
        let evidence = "neither the first commit nor a complete checkpoint is left: no version can be rebuilt";
        report.add("D004", Level::Error, missing, evidence, &fix);
    }
    let times = times::file_times(listing);
    if let Some(first) = times.mended.first() {
        let evidence = format!(
            "{} files of commits are older than the one before, first that of version {first}",
            times.mended.len()
        );
        let fix = "time travel by moment moves such times up; `delta.enableInCommitTimestamps` gives commits a time of their own";
        report.add("D013", Level::Info, layout::commit_path(*first), evidence, fix);
    }
}
