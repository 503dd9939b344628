//! Every commit that is left, read one after the other.
use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{Result, table::Level};

use super::{Report, files::ANEW};
use crate::{
    layout,
    log::{Commit, Listing, Log, is_damage},
    spec::Add,
    state::key,
    stats::num_records,
};

/// Commits read at once.
const AT_ONCE: usize = 16;
/// Files remembered to find one added twice.
const MAX_FILES: usize = 1_000_000;

pub(super) async fn examine(log: &Log, listing: &Listing, report: &mut Report) -> Result<()> {
    let versions: Vec<u64> = listing.commits().map(|it| it.file.version).collect();
    let read =
        stream::iter(versions).map(|it| async move { Ok::<_, lakebed_core::Error>((it, log.read_commit(it).await)) });
    let mut read = read.buffered(AT_ONCE);
    let mut follow = Follow { live: Some(BTreeSet::new()), next: 0, stamp: None };
    while let Some((version, commit)) = read.try_next().await? {
        match commit {
            Ok(commit) => follow.commit(log, &commit, report),
            Err(err) if is_damage(&err) => {
                let fix = "put the commit back from a backup; versions before it, and after the next checkpoint, can still be read";
                report.add("D005", Level::Error, layout::commit_path(version), err.to_string(), fix);
                follow.live = None;
            }
            Err(err) => return Err(err),
        }
    }
    Ok(())
}

/// What is known while commits are followed from version 0.
struct Follow {
    /// Keys of live files; `None` when commits before are missing, or there are too many.
    live: Option<BTreeSet<String>>,
    next: u64,
    stamp: Option<(u64, i64)>,
}

impl Follow {
    fn commit(&mut self, log: &Log, commit: &Commit, report: &mut Report) {
        if commit.version != self.next {
            self.live = None;
        }
        self.next = commit.version.saturating_add(1);
        self.times(commit, report);
        for add in commit.adds() {
            numbers(commit.version, add, report);
        }
        self.files(log, commit, report);
        if self.live.as_ref().is_some_and(|it| it.len() > MAX_FILES) {
            self.live = None;
        }
    }

    fn times(&mut self, commit: &Commit, report: &mut Report) {
        let Some(stamp) = commit.in_commit_timestamp() else { return };
        if let Some((version, before)) = self.stamp.filter(|(_, before)| *before >= stamp) {
            let evidence = format!("inCommitTimestamp {stamp} is not later than {before} of version {version}");
            let fix = "time travel by moment may miss versions here: name them by number";
            report.add("D013", Level::Warn, layout::commit_path(commit.version), evidence, fix);
        }
        self.stamp = Some((commit.version, stamp));
    }

    fn files(&mut self, log: &Log, commit: &Commit, report: &mut Report) {
        let policy = log.storage().policy();
        let key = |path: &str, vector: Option<String>| {
            let path = key::canonical(policy, path);
            vector.map_or_else(|| path.clone().into_owned(), |it| format!("{path}\0{it}"))
        };
        let Some(live) = &mut self.live else { return };
        let file = layout::commit_path(commit.version);
        let shown = |key: &str| key.split('\0').next().unwrap_or_default().escape_debug().to_string();
        for remove in commit.removes() {
            let key = key(&remove.path, remove.deletion_vector.as_ref().map(|it| it.unique_id()));
            if !live.remove(&key) {
                let evidence = format!("removes {}, which was not there (with that vector)", shown(&key));
                report.add("D011", Level::Info, file.clone(), evidence, "harmless: readers ignore it");
            }
        }
        let mut here = BTreeSet::new();
        for add in commit.adds() {
            let key = key(&add.path, add.deletion_vector.as_ref().map(|it| it.unique_id()));
            if !here.insert(key.clone()) {
                let evidence = format!("adds {} twice", shown(&key));
                report.add("D011", Level::Warn, file.clone(), evidence, "the last one counts");
            } else if !live.insert(key.clone()) && add.data_change {
                let evidence = format!("adds {}, which was there already", shown(&key));
                report.add("D011", Level::Info, file.clone(), evidence, "harmless: the newer one counts");
            }
        }
    }
}

/// What an add says of itself that cannot be.
fn numbers(version: u64, add: &Add, report: &mut Report) {
    let object = format!("version {version}: {}", add.path.escape_debug());
    if add.size < 0 {
        report.add("D012", Level::Error, object.clone(), format!("size is {}", add.size), ANEW);
    }
    let rows = match &add.stats {
        None => None,
        Some(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() => {
            report.add("D012", Level::Warn, object.clone(), "stats is not JSON: ignored", ANEW);
            None
        }
        Some(text) => num_records(text),
    };
    let Some(vector) = &add.deletion_vector else { return };
    match rows {
        None => report.add("D012", Level::Warn, object, "a file with a deletion vector must have numRecords", ANEW),
        Some(rows) if i64::try_from(rows).is_ok_and(|rows| rows < vector.cardinality) => {
            let evidence = format!("{rows} rows, of which its deletion vector takes away {}", vector.cardinality);
            report.add("D012", Level::Error, object, evidence, ANEW);
        }
        Some(_) => (),
    }
}
