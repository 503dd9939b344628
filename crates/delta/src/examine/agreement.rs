//! The newest checkpoint against the log it sums up: both must make the same files.
//!
//! They differ where the checkpoint is wrong, or where a commit is not what it was: a writer that does not create its
//! commit only if absent replaces another's, whose rows are then gone from every version without a checkpoint of theirs.
//! Where the log does not go back beyond the checkpoint, nothing can be said.
use std::collections::BTreeSet;

use lakebed_core::{Result, path::PathPolicy, table::Level};

use super::Report;
use crate::{
    log::{Listing, Log, is_damage},
    state::{FileList, State, key},
};

pub(super) async fn examine(log: &Log, listing: &Listing, report: &mut Report) -> Result<()> {
    let (complete, _) = listing.checkpoints();
    let Some(newest) = complete.first() else { return Ok(()) };
    let state = match State::open(log, Some(newest.version)).await {
        Err(err) if is_damage(&err) => return Ok(()),
        state => state?,
    };
    let (with, without) = match (state.files().await, state.files_without(newest).await) {
        (Ok(with), Ok(without)) => (with, without),
        (Err(err), _) | (_, Err(err)) if is_damage(&err) => return Ok(()),
        (Err(err), _) | (_, Err(err)) => return Err(err),
    };
    let policy = log.storage().policy();
    let (with, without) = (keys(policy, &with), keys(policy, &without));
    let differs = with.symmetric_difference(&without).next();
    let Some(first) = differs else { return Ok(()) };
    let path = first.split('\0').next().unwrap_or_default();
    let (there, not_there) = match with.contains(first) {
        true => ("the checkpoint", "the commits before it"),
        false => ("the commits before it", "the checkpoint"),
    };
    let evidence = format!(
        "of {} files, {} are not those that the commits up to version {} make: {path} is in {there} and not in \
         {not_there}. Either the checkpoint is wrong, or another writer has overwritten a commit",
        with.len(),
        with.symmetric_difference(&without).count(),
        newest.version,
    );
    let fix = "find the writer that commits without put-if-absent and stop it; compare the versions around the \
               checkpoint (`lakebed diff`) before anything is cleaned up";
    report.add("D025", Level::Error, newest.name(), evidence, fix);
    Ok(())
}

/// Path and vector of each live file.
fn keys(policy: &PathPolicy, list: &FileList) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for batch in &list.batches {
        let files = batch.files();
        let key = |row| key::of_row(policy, files.path.value(row), files.vectors.as_ref(), row).into_owned();
        keys.extend(batch.live_rows().map(key));
    }
    keys
}
