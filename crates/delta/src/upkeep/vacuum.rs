//! Deleting files that no kept version needs.
//!
//! 1. Needed is what kept versions name (the newest, those of tags, those the caller names), and what was removed so
//!    lately that readers of older versions may still want it: by the time of its tombstone, however old the file is.
//! 2. Of the rest a tombstone dooms what it names. *Lite* ends here, without looking at the folder.
//! 3. A file that no version names is doomed if it was last written before the same moment; a younger one may belong to a
//!    write under way.
//!
//! Tombstones are forgotten by checkpoints after `delta.deletedFileRetentionDuration`. Who wants older versions kept than
//! that gets them kept by what they name.
//! Spec: Delta PROTOCOL.md, "Vacuum Protocol Check"; the rest is the reference implementation's.
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
    time::Duration,
};

use lakebed_core::{
    Error, ErrorKind, Result,
    maintain::{Doomed, MaintenancePlan, Retain},
    path::FilePath,
    version::{Millis, Ref},
};

use super::{
    Upkeep, WEEK, ago, before, deletes,
    kept::{self, Kept},
    named::{self, Needed},
    note_of_tags,
    sweep::Sweep,
};
use crate::{properties::Properties, state::State, timeline::refs};

const MOMENT: Duration = Duration::from_secs(60);

/// What a caller of vacuum says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) retain: &'a Retain,
    pub(super) older_than: Option<Millis>,
    pub(super) lite: bool,
    pub(super) forced: bool,
}

/// # Errors
/// Refused if files would go that were removed more lately than the table allows, unless forced.
pub(super) async fn plan(upkeep: Upkeep<'_>, state: &Arc<State>, asked: Asked<'_>) -> Result<MaintenancePlan> {
    let now = upkeep.now();
    let properties = Properties(&state.metadata.configuration);
    let own = before(now, properties.interval("delta.deletedFileRetentionDuration")?.unwrap_or(WEEK));
    let cut = asked.older_than.unwrap_or(own);
    if cut > own && !asked.forced {
        return Err(too_short(now, cut, own));
    }
    let refs = refs::refs(state).await?;
    // Whoever says what the table says was a moment earlier at its clock.
    let longer = cut < before(own, MOMENT);
    let kept = kept(upkeep, state, asked.retain, &refs, longer.then_some(cut)).await?;
    let mut needed = Needed::default();
    for run in kept.runs() {
        needed.extend(named::of_run(upkeep, Arc::clone(state), run, !asked.lite)).await?;
    }
    let graves = Graves::of(state, cut, &mut needed).await?;
    let sweep = Sweep::of(state);
    let mut plan = MaintenancePlan::default();
    let doomed = match asked.lite {
        true => graves.lite(&sweep, now),
        false => full(upkeep, &sweep, &needed, &graves, cut, &mut plan.notes).await?,
    };
    if asked.lite {
        plan.notes
            .push("lite: only files that the log still remembers as removed; others need a full vacuum".to_owned());
    }
    plan.notes.extend(note_of_tags(&refs));
    plan.steps = deletes(doomed);
    Ok(plan)
}

fn too_short(now: Millis, cut: Millis, own: Millis) -> Error {
    let hours = |then: Millis| now.0.saturating_sub(then.0) / 3_600_000;
    let message = format!(
        "files removed {} hours ago may still be read: the table keeps removed files for {} hours \
         (`delta.deletedFileRetentionDuration`)",
        hours(cut),
        hours(own)
    );
    Error::new(ErrorKind::Refused, message)
        .with_hint("if no reader and no writer is under way: `SET lakebed.vacuum.retention_check = false`")
}

/// The versions whose files stay: with `since`, all that could be read at that moment or later.
async fn kept(upkeep: Upkeep<'_>, state: &State, retain: &Retain, refs: &[Ref], since: Option<Millis>) -> Result<Kept> {
    let newest_only = retain.newer_than.is_none() && retain.age.is_none() && retain.ids.is_empty();
    if newest_only && retain.at_least <= 1 && refs.is_empty() && since.is_none() {
        return Ok(Kept::head(state));
    }
    let (mut kept, listing) = Kept::of(upkeep, state, retain, refs).await?;
    if let Some(since) = since {
        let current = kept::current_at(upkeep, since).await?.unwrap_or(0);
        kept.keep_from(current, &listing);
    }
    Ok(kept)
}

/// Files that were removed, and when: those nobody needs any more.
#[derive(Debug, Default)]
struct Graves(BTreeMap<FilePath, Grave>);

#[derive(Debug, Clone, Copy)]
struct Grave {
    removed_at: Millis,
    bytes: Option<u64>,
}

impl Graves {
    /// Adds to `needed` what was removed at `cut` or later; the rest that is not needed are the graves.
    async fn of(state: &State, cut: Millis, needed: &mut Needed) -> Result<Self> {
        let policy = state.log.storage().policy();
        let tombstones = state.tombstones().await?;
        let paths = |(removed, row): (&crate::state::columns::RemovedColumns, usize)| {
            let vector = removed.vectors.as_ref().and_then(|it| it.get(row));
            named::of_file(policy, removed.path.value(row), vector.as_ref())
        };
        for (removed, row) in tombstones.rows().filter(|(it, row)| it.time(*row) >= cut.0) {
            paths((removed, row))?.for_each(|it| needed.insert(&it));
        }
        let mut graves = Self::default();
        for (removed, row) in tombstones.rows().filter(|(it, row)| it.time(*row) < cut.0) {
            let grave = Grave {
                removed_at: Millis(removed.time(row)),
                bytes: removed.size(row).and_then(|it| u64::try_from(it).ok()),
            };
            // The data file comes first; nobody says how large the file of a vector is.
            let sized = [grave, Grave { bytes: None, ..grave }];
            for (path, grave) in paths((removed, row))?.zip(sized) {
                if matches!(&path, FilePath::Below(it) if !needed.may_hold(it)) {
                    graves.dig(path, grave);
                }
            }
        }
        Ok(graves)
    }

    fn dig(&mut self, path: FilePath, grave: Grave) {
        match self.0.entry(path) {
            Entry::Vacant(entry) => drop(entry.insert(grave)),
            Entry::Occupied(mut entry) if entry.get().removed_at < grave.removed_at => drop(entry.insert(grave)),
            Entry::Occupied(_) => (),
        }
    }

    fn lite(&self, sweep: &Sweep, now: Millis) -> Vec<Doomed> {
        let seen = self.0.iter().filter(|(path, _)| sweep.sees(path.as_str()));
        seen.map(|(path, it)| Doomed { path: path.clone(), bytes: it.bytes, why: it.why(now) }).collect()
    }
}

impl Grave {
    fn why(self, now: Millis) -> String {
        match self.removed_at.0 {
            0 => "removed, nobody says when".to_owned(),
            _ => format!("removed {}, {}", self.removed_at, ago(now, self.removed_at)),
        }
    }
}

async fn full(
    upkeep: Upkeep<'_>,
    sweep: &Sweep,
    needed: &Needed,
    graves: &Graves,
    cut: Millis,
    notes: &mut Vec<String>,
) -> Result<Vec<Doomed>> {
    let now = upkeep.now();
    let mut doomed = Vec::new();
    let mut young = 0_u64;
    let links = sweep.each(upkeep.head.log().storage(), |object| {
        if needed.may_hold(&object.path) {
            return;
        }
        let path = FilePath::below(object.path);
        let why = match graves.0.get(&path) {
            Some(grave) => grave.why(now),
            None if object.modified_at < cut => format!("no version names it, last written {}", object.modified_at),
            None => {
                young += 1;
                return;
            }
        };
        doomed.push(Doomed { path, bytes: Some(object.bytes), why });
    });
    let links = links.await?;
    if young > 0 {
        notes.push(format!("files that no version names, but written too lately to tell: {young}"));
    }
    if links > 0 {
        notes.push(format!("symbolic links, which are left alone: {links}"));
    }
    doomed.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(doomed)
}
