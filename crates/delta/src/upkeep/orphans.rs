//! Deleting files that no metadata ever named.
//!
//! Named is what the log still tells of, in any version: the oldest state that can be rebuilt with its tombstones, and
//! every commit and compacted file that is left. What the log has forgotten was removed long ago, and looks like an orphan.
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Result,
    maintain::{Doomed, MaintenancePlan},
    path::FilePath,
    version::Millis,
};

use super::{
    Upkeep, deletes,
    named::{self, Needed},
    sweep::Sweep,
};
use crate::{
    layout::LogFileKind,
    log::{Commit, Listed, LogError},
    state::State,
    timeline::resolve::candidates,
};

/// Commits read at once.
const AT_ONCE: usize = 16;

pub(super) async fn plan(upkeep: Upkeep<'_>, state: &Arc<State>, older_than: Millis) -> Result<MaintenancePlan> {
    let needed = named(upkeep, state).await?;
    let mut doomed = Vec::new();
    let sweep = Sweep::of(state);
    let links = sweep.each(upkeep.head.log().storage(), |object| {
        if object.modified_at < older_than && !needed.may_hold(&object.path) {
            let why = format!("no version names it, last written {}", object.modified_at);
            doomed.push(Doomed { path: FilePath::below(object.path), bytes: Some(object.bytes), why });
        }
    });
    let links = links.await?;
    doomed.sort_by(|a, b| a.path.cmp(&b.path));
    let mut plan = MaintenancePlan { steps: deletes(doomed), ..MaintenancePlan::default() };
    if links > 0 {
        plan.notes.push(format!("symbolic links, which are left alone: {links}"));
    }
    Ok(plan)
}

async fn named(upkeep: Upkeep<'_>, state: &Arc<State>) -> Result<Needed> {
    let listing = upkeep.head.log().listing().await?;
    let mut needed = Needed::default();
    let oldest = candidates(&listing).first().map_or(state.version, |it| it.file.version).min(state.version);
    of_state(&mut needed, &*upkeep.state_at(state, oldest).await?).await?;
    of_state(&mut needed, state).await?;
    let told = |it: &&Listed| match it.file.kind {
        LogFileKind::Commit => true,
        // Its commits may be gone.
        LogFileKind::Compacted { .. } => it.bytes > 0,
        LogFileKind::Checksum | LogFileKind::Checkpoint(_) | LogFileKind::Staged => false,
    };
    let files: Vec<Listed> = listing.files.iter().filter(told).cloned().collect();
    let mut read = stream::iter(files).map(|it| read(upkeep, it)).buffered(AT_ONCE);
    while let Some(paths) = read.try_next().await? {
        paths.iter().for_each(|it| needed.insert(it));
    }
    Ok(needed)
}

/// What the state has and remembers.
async fn of_state(needed: &mut Needed, state: &State) -> Result<()> {
    let policy = state.log.storage().policy();
    for batch in &state.files().await?.batches {
        named::of_batch(policy, batch)?.iter().for_each(|it| needed.insert(it));
    }
    for (removed, row) in state.tombstones().await?.rows() {
        let vector = removed.vectors.as_ref().and_then(|it| it.get(row));
        named::of_file(policy, removed.path.value(row), vector.as_ref())?.for_each(|it| needed.insert(&it));
    }
    Ok(())
}

async fn read(upkeep: Upkeep<'_>, file: Listed) -> Result<Vec<FilePath>> {
    let (log, path) = (upkeep.head.log(), file.file.path());
    let body = log.read(&path).await?.ok_or(LogError::Vanished { file: path })?;
    let commit = Commit::parse(file.file.version, body)?;
    let policy = log.storage().policy();
    Ok([named::of_commit(policy, &commit)?, named::of_removes(policy, &commit)?].concat())
}
