//! Upkeep as plans.
//!
//! *Expire.* 1. Sum up the oldest version that stays in a checkpoint. 2. Delete the old start of the log: with it
//! all older versions are forgotten at once. 3. Delete the rest of the old log. 4. Delete the data files that only
//! forgotten versions needed. Whoever stops in between leaves files nobody needs.
//!
//! *Vacuum, orphans.* Delete data files and vectors that no version of the log needs and that are old enough to belong
//! to no write under way.
use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt};
use lakebed_core::{
    Error, Result,
    file::DeletePlace,
    maintain::{Body, Doomed, Maintenance, MaintenancePlan, Retain, Step},
    path::FilePath,
    scan::{Scan, ScanTask},
    table::{Snapshot, Table},
    version::{Millis, Version, VersionId},
};

use super::{
    layout::{self, LogName},
    snapshot::PondSnapshot,
    state::State,
    table::{History, PondTable},
};

/// How large compaction makes files where nobody says.
const TARGET_BYTES: u64 = 128 << 20;

pub(super) async fn plan(table: &PondTable, action: &Maintenance) -> Result<MaintenancePlan> {
    let history = table.history().await?;
    let head = Some(VersionId::new(history.head()?.version));
    let steps = match action {
        Maintenance::Expire(retain) => expire(table, &history, retain)?,
        Maintenance::Vacuum { older_than: None, .. } => {
            return Err(Error::invalid("pond has no property that says how long files stay"));
        }
        Maintenance::Vacuum { older_than: Some(older_than), .. } | Maintenance::RemoveOrphans { older_than } => {
            orphans(table, &history, *older_than).await?
        }
        Maintenance::Compact { filter, target_bytes } => {
            let snapshot = PondSnapshot::new(history.head()?);
            let scan = Scan { predicate: filter.clone(), ..Scan::all() };
            let tasks: Vec<ScanTask> = snapshot.tasks(&scan).try_collect().await?;
            rewrites(tasks, &snapshot, target_bytes.unwrap_or(TARGET_BYTES))
        }
        Maintenance::Checkpoint => {
            let head = history.head()?;
            let there = history.names.iter().any(|it| it.checkpoint && it.version == head.version);
            if there { Vec::new() } else { vec![checkpoint(&head)] }
        }
        other => return Err(Error::unsupported(format!("pond cannot {other:?}"))),
    };
    Ok(MaintenancePlan { steps, head, ..MaintenancePlan::default() })
}

fn checkpoint(state: &State) -> Step {
    let body = serde_json::to_vec(state).expect("a state is plain data with text keys");
    Step::Write { path: layout::checkpoint(&state.version), body: Body::Bytes(body.into()) }
}

/// Versions that stay: by a rule, by a tag, and the newest.
fn kept(history: &History, retain: &Retain, now: Millis) -> Result<BTreeSet<String>> {
    let versions = history.versions();
    let head = history.head()?;
    let young = |it: &Version| {
        let age = retain.age.map(|it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX));
        retain.newer_than.is_some_and(|than| it.committed_at > than)
            || age.is_some_and(|age| it.committed_at.0 > now.0.saturating_sub(age))
    };
    let last = versions.len().saturating_sub(retain.at_least.max(1));
    let stay = versions.iter().enumerate().filter(|(at, it)| {
        *at >= last
            || young(it)
            || retain.ids.contains(&it.id)
            || head.tags.iter().any(|tag| tag.version == it.id.as_str())
    });
    Ok(stay.map(|(_, it)| it.id.as_str().to_owned()).collect())
}

fn expire(table: &PondTable, history: &History, retain: &Retain) -> Result<Vec<Step>> {
    let kept = kept(history, retain, table.at.env.clock.now())?;
    let states = history.states(None)?;
    let first = states.iter().position(|it| kept.contains(&it.version)).unwrap_or(states.len() - 1);
    let (forgotten, stay) = states.split_at(first);
    let oldest = &stay[0];
    let line = layout::stem(&oldest.version);
    let old = |it: &&LogName| layout::stem(&it.version) < line;
    let mut steps = Vec::new();
    if !forgotten.is_empty() && !history.names.iter().any(|it| it.checkpoint && it.version == oldest.version) {
        steps.push(checkpoint(oldest));
    }
    // The start goes first: what is left after it cannot be read, and that at once.
    let start = history.names.iter().filter(old).filter(|it| it.version == "0" || it.checkpoint);
    let rest = history.names.iter().filter(old).filter(|it| it.version != "0" && !it.checkpoint);
    let why = format!("version {} is the oldest that stays", oldest.version);
    let doom = |it: &LogName| {
        let path = if it.checkpoint { layout::checkpoint(&it.version) } else { layout::entry(&it.version) };
        Doomed { path: FilePath::below(path), bytes: None, why: why.clone() }
    };
    for batch in [start.map(doom).collect::<Vec<_>>(), rest.map(doom).collect()] {
        steps.extend((!batch.is_empty()).then_some(Step::Delete(batch)));
    }
    let needed: BTreeSet<FilePath> = stay.iter().flat_map(files).collect();
    let needed: BTreeSet<FilePath> = needed.into_iter().chain(change_files(history, &line)).collect();
    let unneeded: BTreeSet<FilePath> = forgotten.iter().flat_map(files).filter(|it| !needed.contains(it)).collect();
    let unneeded: Vec<Doomed> =
        unneeded.into_iter().map(|path| Doomed { path, bytes: None, why: why.clone() }).collect();
    steps.extend((!unneeded.is_empty()).then_some(Step::Delete(unneeded)));
    Ok(steps)
}

/// Every data file and vector file of a state.
fn files(state: &State) -> Vec<FilePath> {
    let vector = |place: &DeletePlace| match place {
        DeletePlace::File(path) | DeletePlace::Range { path, .. } => Some(path.clone()),
        DeletePlace::Inline(_) => None,
    };
    let mut found = Vec::new();
    for live in &state.files {
        found.push(live.file.path.clone());
        found.extend(live.vector.as_ref().and_then(|it| vector(&it.place)));
    }
    found
}

fn change_files(history: &History, from: &str) -> Vec<FilePath> {
    let entries = history.entries.iter().filter(|(version, _)| layout::stem(version).as_str() >= from);
    entries.flat_map(|(_, entry)| entry.change_files.iter().map(|it| it.path.clone())).collect()
}

pub(super) fn reachable(history: &History, retain: &Retain, now: Millis) -> Result<Vec<Result<FilePath>>> {
    let kept = kept(history, retain, now)?;
    let states = history.states(None)?;
    let first = states.iter().position(|it| kept.contains(&it.version)).unwrap_or(states.len() - 1);
    let line = layout::stem(&states[first].version);
    let mut found: BTreeSet<FilePath> = states[first..].iter().flat_map(files).collect();
    found.extend(change_files(history, &line));
    let starts = history.names.iter().filter(|it| it.checkpoint && layout::stem(&it.version) <= line);
    let start = starts.map(|it| layout::stem(&it.version)).max();
    for name in &history.names {
        let stem = layout::stem(&name.version);
        let path = if name.checkpoint { layout::checkpoint(&name.version) } else { layout::entry(&name.version) };
        let needed = start.as_ref().is_none_or(|start| stem > *start || (name.checkpoint && stem == *start));
        found.extend(needed.then(|| FilePath::below(path)));
    }
    Ok(found.into_iter().map(Ok).collect())
}

async fn orphans(table: &PondTable, history: &History, older_than: Millis) -> Result<Vec<Step>> {
    let mut needed: BTreeSet<FilePath> = history.states(None)?.iter().flat_map(files).collect();
    needed.extend(change_files(history, ""));
    let mut doomed = Vec::new();
    for folder in ["data", "pond/vectors"] {
        let mut found = table.storage().list_after(folder, "");
        while let Some(object) = found.next().await.transpose()? {
            let path = FilePath::below(object.path);
            if object.modified_at < older_than && !needed.contains(&path) {
                let why = format!("no version names it, last written {}", object.modified_at);
                doomed.push(Doomed { path, bytes: Some(object.bytes), why });
            }
        }
    }
    Ok(if doomed.is_empty() { Vec::new() } else { vec![Step::Delete(doomed)] })
}

/// Small files that have company in their partition, and merge units of more than one file.
fn rewrites(tasks: Vec<ScanTask>, snapshot: &PondSnapshot, target_bytes: u64) -> Vec<Step> {
    let keyed = !snapshot.layout().key.is_empty();
    let small = |it: &ScanTask| keyed || it.files.iter().all(|file| file.bytes < target_bytes);
    let small: Vec<ScanTask> = tasks.into_iter().filter(small).collect();
    if keyed {
        return small.into_iter().filter(|it| it.files.len() > 1).map(|it| Step::Rewrite(vec![it])).collect();
    }
    let mut steps = Vec::new();
    let mut partitions: Vec<_> = small.iter().map(|it| it.files[0].partition.clone()).collect();
    partitions.dedup();
    for partition in partitions {
        let together: Vec<_> = small.iter().filter(|it| it.files[0].partition == partition).cloned().collect();
        let again =
            steps.iter().any(|it| matches!(it, Step::Rewrite(tasks) if tasks[0].files[0].partition == partition));
        if together.len() > 1 && !again {
            steps.push(Step::Rewrite(together));
        }
    }
    steps
}
