//! Forgetting versions: old files of the log go.
//!
//! 1. The oldest version that stays is rebuilt from a checkpoint: the *start*. Everything before the start can go; the
//!    start's own commit stays, since only it tells when and by whom the version was made.
//! 2. Where an age decides ([`Retain::age`], which log clean-up uses), it reaches to the start of a day, the version that
//!    was the newest when that day began stays, and the start is a checkpoint that is there. Other rules are carried out to
//!    the version: a checkpoint of the oldest one is written first, if it has none.
//! 3. The start must be readable, whole, before anything older is touched, and the hint must not name an older one.
//! 4. Files go from the newest to the oldest: at any moment each version that is still listed can be rebuilt.
//!
//! Files of rows stay where they are: a vacuum finds them.
//! Spec: Delta PROTOCOL.md, "Checkpoint Protection" (feature `checkpointProtection`), "Sidecar Files".
use std::{cmp::Reverse, collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use lakebed_core::{
    Result,
    maintain::{Doomed, MaintenancePlan, Retain, Step},
    path::FilePath,
    version::{Millis, Ref},
};

use super::{
    Upkeep, before, checkpoint, deletes, hint_step,
    kept::{self, Kept},
    note_of_tags,
};
use crate::{
    checkpoint::Checkpoint,
    layout::{self, CheckpointName, LogFileKind},
    log::{Listed, Listing, can_do_without, listing::CheckpointFiles},
    properties::Properties,
    state::State,
    timeline::refs,
};

const DAY_MS: i64 = 86_400_000;
/// A sidecar that no checkpoint names may belong to one under way.
const YOUNG_SIDECAR: Duration = Duration::from_secs(86_400);
/// So many checkpoints are opened to see which sidecars they name.
const MOST_OPENED: usize = 100;

pub(super) async fn plan(upkeep: Upkeep<'_>, state: &Arc<State>, retain: &Retain) -> Result<MaintenancePlan> {
    let mut plan = MaintenancePlan::default();
    let retain = in_days(upkeep.now(), retain);
    if let Some(cut) = retain.newer_than.filter(|_| retain.ids.is_empty())
        && by_age(&retain)
        && !reaches(upkeep, cut).await?
    {
        return Ok(plan);
    }
    let refs = refs::refs(state).await?;
    let (kept, listing) = Kept::of(upkeep, state, &retain, &refs).await?;
    let mut oldest = kept.oldest();
    if let Some(cut) = retain.newer_than.filter(|_| by_age(&retain)) {
        let before_that_day = Millis(cut.0.saturating_sub(1));
        oldest = oldest.min(kept::current_at(upkeep, before_that_day).await?.unwrap_or(0));
    }
    if oldest == 0 || !listing.files.iter().any(|it| last_version(it) < oldest) {
        return Ok(plan);
    }
    let search = Search { upkeep, state, listing: &listing, oldest };
    let Some(start) = search.start(by_age(&retain), &mut plan).await? else { return Ok(plan) };
    if let Some(why) = protected(state, &listing, start) {
        return Ok(MaintenancePlan { notes: vec![why], ..MaintenancePlan::default() });
    }
    let why = format!("version {oldest} is the oldest that stays, and is read from checkpoint {start}");
    let doomed = before_start(&listing, start, &why);
    if doomed.is_empty() {
        return Ok(plan);
    }
    notes(&mut plan, &listing, start, &refs);
    let unnamed = unnamed_sidecars(upkeep, state, &listing, start, &doomed, &mut plan.notes).await?;
    plan.steps.extend(deletes(doomed));
    plan.steps.extend(deletes(unnamed));
    Ok(plan)
}

/// Whether an age is the rule: then `newer_than` is that age in whole days.
fn by_age(retain: &Retain) -> bool {
    retain.age.is_some()
}

/// An age as a moment, at the start of a day.
fn in_days(now: Millis, retain: &Retain) -> Retain {
    let mut retain = retain.clone();
    if let Some(age) = retain.age {
        let cut = before(now, age);
        let day = Millis(cut.0.div_euclid(DAY_MS).saturating_mul(DAY_MS));
        retain.newer_than = Some(retain.newer_than.map_or(day, |it| it.min(day)));
    }
    retain
}

/// Whether the log's first file is as old as `cut`: if not, there is nothing to look for.
async fn reaches(upkeep: Upkeep<'_>, cut: Millis) -> Result<bool> {
    let mut names = upkeep.head.log().storage().list_after(layout::LOG, "");
    let first = names.try_next().await?;
    Ok(first.is_some_and(|it| it.modified_at <= cut))
}

/// The last version that a file of the log tells of.
fn last_version(file: &Listed) -> u64 {
    match file.file.kind {
        LogFileKind::Compacted { until } => until,
        _ => file.file.version,
    }
}

struct Search<'a> {
    upkeep: Upkeep<'a>,
    state: &'a Arc<State>,
    listing: &'a Listing,
    oldest: u64,
}

impl Search<'_> {
    /// The checkpoint that `oldest` will be rebuilt from; `None` if nothing can go. Steps that have to come first are
    /// added to the plan.
    async fn start(&self, there_already: bool, plan: &mut MaintenancePlan) -> Result<Option<u64>> {
        let (complete, _) = self.listing.checkpoints();
        let usable = complete.iter().filter(|it| it.version <= self.oldest);
        // One that is there and not complete stands in the way of a new one.
        let of_oldest = |it: &&Listed| it.file.version == self.oldest;
        let taken =
            self.listing.files.iter().filter(of_oldest).any(|it| matches!(it.file.kind, LogFileKind::Checkpoint(_)));
        if !there_already && !taken {
            let state = self.upkeep.state_at(self.state, self.oldest).await?;
            let newest = complete.first().is_none_or(|it| it.version < self.oldest);
            let hint = if newest { checkpoint::Hint::Name } else { checkpoint::Hint::Keep };
            plan.steps.extend(checkpoint::steps(&state, self.upkeep.env, hint).await?);
            return Ok(Some(self.oldest));
        }
        for files in usable {
            match self.reads(files).await {
                Ok(()) => {
                    plan.steps.extend(self.hint(files).await?);
                    return Ok(Some(files.version));
                }
                Err(err) if can_do_without(&err) => {
                    plan.notes.push(format!("checkpoint {} cannot stand for older versions: {err}", files.version));
                }
                Err(err) => return Err(err),
            }
        }
        Ok(None)
    }

    /// Reads a checkpoint through, as far as the state of its version rests on it.
    async fn reads(&self, files: &CheckpointFiles) -> Result<()> {
        let opened = Checkpoint::open(&self.state.log, files, None).await?;
        let whole = opened.small.protocol.is_some() && opened.small.metadata.is_some();
        if !whole {
            let rule = "a checkpoint has a protocol and a metaData action".to_owned();
            return Err(crate::log::LogError::BadFile { file: files.name(), rule }.into());
        }
        opened.files(!self.state.metadata.partition_columns.is_empty()).await?;
        opened.removed().await.map(|_| ())
    }

    /// Readers that trust the hint must not be led to what is gone.
    async fn hint(&self, start: &CheckpointFiles) -> Result<Option<Step>> {
        let lags = checkpoint::hint_older_than(&self.state.log, start.version).await?;
        Ok(if lags { Some(hint_step(checkpoint::hint_of(&self.state.log, start).await?)) } else { None })
    }
}

/// Why checkpoints must not be removed; `None` where they may.
///
/// Versions before the boundary may hold features that this build does not know: they go all together, or stay.
fn protected(state: &State, listing: &Listing, start: u64) -> Option<String> {
    const BOUNDARY: &str = "delta.requireCheckpointProtectionBeforeVersion";
    if !state.protocol.supports("checkpointProtection") {
        return None;
    }
    // A boundary that cannot be read protects everything.
    let boundary = Properties(&state.metadata.configuration)
        .count(BOUNDARY)
        .map_or(u64::MAX, |it| it.map_or(0, |it| u64::try_from(it).unwrap_or(0)));
    let first = listing.files.first().map_or(0, |it| it.file.version);
    (first < boundary && start < boundary)
        .then(|| format!("nothing goes: `{BOUNDARY}` is {boundary}, and what stays would start at version {start}"))
}

/// Every file that tells of nothing but versions before the start, newest first; of one version the commit first and
/// checkpoints last, so that a version is listed no longer than it can be rebuilt.
fn before_start(listing: &Listing, start: u64, why: &str) -> Vec<Doomed> {
    let mut old: Vec<&Listed> = listing.files.iter().filter(|it| last_version(it) < start).collect();
    let last = |it: &Listed| matches!(it.file.kind, LogFileKind::Checkpoint(_));
    old.sort_by_key(|it| (Reverse(last_version(it)), last(it)));
    let doom =
        |it: &&Listed| Doomed { path: FilePath::below(it.file.path()), bytes: Some(it.bytes), why: why.to_owned() };
    old.iter().map(doom).collect()
}

fn notes(plan: &mut MaintenancePlan, listing: &Listing, start: u64, refs: &[Ref]) {
    let commits = listing.commits().map(|it| it.file.version).filter(|it| *it < start).count();
    plan.notes.push(format!("{commits} commits before version {start} are forgotten; their files stay until a vacuum"));
    plan.notes.extend(note_of_tags(refs));
}

/// Sidecars that no checkpoint names which stays, and none under way can.
async fn unnamed_sidecars(
    upkeep: Upkeep<'_>,
    state: &State,
    listing: &Listing,
    start: u64,
    doomed: &[Doomed],
    notes: &mut Vec<String>,
) -> Result<Vec<Doomed>> {
    let of_v2 = |it: &&Listed| matches!(it.file.kind, LogFileKind::Checkpoint(CheckpointName::Unique { .. }));
    let old = listing.files.iter().filter(of_v2).any(|it| it.file.version < start);
    if doomed.is_empty() || !old {
        return Ok(Vec::new());
    }
    let (complete, _) = listing.checkpoints();
    let stay: Vec<&CheckpointFiles> = complete.iter().filter(|it| it.version >= start).collect();
    if stay.len() > MOST_OPENED {
        notes.push("sidecars of old checkpoints stay: too many newer ones would have to be opened".to_owned());
        return Ok(Vec::new());
    }
    let mut named: BTreeSet<FilePath> = BTreeSet::new();
    for files in stay {
        match Checkpoint::open(&state.log, files, None).await {
            Ok(opened) => named.extend(opened.sidecars().cloned()),
            Err(err) => {
                notes.push(format!("sidecars of old checkpoints stay: {err}"));
                return Ok(Vec::new());
            }
        }
    }
    let cut = before(upkeep.now(), YOUNG_SIDECAR);
    let mut found = state.log.storage().list_after(layout::SIDECARS, "");
    let mut doomed = Vec::new();
    while let Some(object) = found.next().await.transpose()? {
        let path = FilePath::below(object.path);
        if object.modified_at < cut && !named.contains(&path) {
            let why = "no checkpoint that stays names it".to_owned();
            doomed.push(Doomed { path, bytes: Some(object.bytes), why });
        }
    }
    Ok(doomed)
}
