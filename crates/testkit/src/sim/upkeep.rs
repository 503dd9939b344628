//! Who compacts, tags, checkpoints, forgets versions, vacuums and clears away orphans.
use lakebed_core::{
    Result,
    change::Change,
    commit::StoragePublisher,
    conflict::{ConflictPolicy, Isolation},
    env::Clock,
    maintain::{self, Maintenance, Retain},
    table::Table,
    timeline::Action,
    version::{AsOf, Millis, Ref, RefKind, Span, VersionId},
};

use super::{
    Process, Safety, Sea,
    actors::{attempt, pause},
    history::{Effect, Violation, note_versions},
    judge,
};
use crate::{conformance, pond::intent, seed::Dice};

/// Younger files may belong to a write under way, and younger versions have readers: nothing here takes as long.
pub(super) const WINDOW_MS: i64 = 60_000;

/// How many versions stay when others are forgotten.
pub(super) const AT_LEAST: usize = 3;

/// Dies at times, but sees no stale lists, which no store shows that long.
pub(super) async fn keeper(sea: &Sea<'_>, dice: Dice) -> Result<(), Violation> {
    for _ in 0..sea.schedule.steps {
        pause(sea, &dice).await;
        let process = sea.process(&dice);
        if sea.schedule.faults && dice.chance(40) {
            process.store.crash_after(dice.below(60));
        }
        let Ok(table) = sea.open(&process).await else { continue };
        let cutoff = Millis(sea.clock.now().0 - WINDOW_MS);
        let choice = match sea.schedule.off {
            // What is to be noticed must happen.
            Some(Safety::WindowKept) => 6,
            Some(Safety::TagsKept) if dice.chance(70) => 1 + 5 * dice.below(2),
            _ => dice.below(7),
        };
        match choice {
            0 => _ = compact(sea, &dice, &process, table.as_ref()).await?,
            1 => _ = tag(sea, &dice, &process, table.as_ref()).await?,
            2 => {
                let orphans = Maintenance::RemoveOrphans { older_than: cutoff };
                let done = carry_out(sea, &process, table.as_ref(), &orphans).await?;
                sea.history().report.orphaned += usize::from(done);
            }
            3 | 4 => {
                let done = carry_out(sea, &process, table.as_ref(), &Maintenance::Checkpoint).await?;
                sea.history().report.checkpoints += usize::from(done);
            }
            5 => {
                let retain = Retain { at_least: AT_LEAST, ..Retain::default() };
                let done = carry_out(sea, &process, table.as_ref(), &Maintenance::Expire(retain)).await?;
                sea.history().report.expired += usize::from(done);
            }
            _ => vacuum(sea, &dice, &process, table.as_ref(), cutoff).await?,
        }
    }
    Ok(())
}

async fn vacuum(
    sea: &Sea<'_>,
    dice: &Dice,
    process: &Process,
    table: &dyn Table,
    cutoff: Millis,
) -> Result<(), Violation> {
    // Far shorter than any check allows.
    let (retain, lite) = (Retain::default(), dice.chance(30));
    let action = Maintenance::Vacuum { retain, older_than: Some(cutoff), lite, forced: true };
    sea.history().note_vacuum(cutoff);
    let done = carry_out(sea, process, table, &action).await?;
    sea.history().report.vacuumed += usize::from(done);
    Ok(())
}

async fn compact(sea: &Sea<'_>, dice: &Dice, process: &Process, table: &dyn Table) -> Result<Result<()>, Violation> {
    let prepared = async {
        let write = table.begin(intent(Action::Compaction)).await?;
        let changes = sea.subject.compaction(table, &process.env, &write).await?;
        Ok((write, changes))
    };
    let (write, changes) = match prepared.await {
        Ok(prepared) => prepared,
        Err(err) => return Ok(Err(err)),
    };
    if changes.is_empty() {
        return Ok(table.abandon(&write).await);
    }
    attempt(sea, dice, process, table, &write, &changes, Effect::default(), &blind()).await?;
    Ok(Ok(()))
}

fn blind() -> ConflictPolicy {
    ConflictPolicy { isolation: Isolation::Snapshot, read: None, claims: Vec::new(), retries: 4 }
}

/// Puts or drops a tag. Only on what can be read: a vacuum may have been there.
async fn tag(sea: &Sea<'_>, dice: &Dice, process: &Process, table: &dyn Table) -> Result<Result<()>, Violation> {
    let chosen = async {
        let refs = table.refs().await?;
        let timeline = table.timeline(&Span::all()).await?;
        let versions: Vec<VersionId> = timeline.versions().map(|it| it.id.clone()).collect();
        let at = usize::try_from(dice.below(versions.len() as u64)).unwrap_or(0);
        Ok(match (refs.first(), versions.get(at)) {
            (Some(tag), _) if dice.chance(50) => Some(Change::DropRef(tag.name.clone())),
            (_, Some(version)) => {
                conformance::ids(sea.subject, table, &AsOf::Version(version.clone())).await?;
                Some(Change::PutRef(Ref {
                    name: format!("tag-{}", refs.len()),
                    kind: RefKind::Tag,
                    version: version.clone(),
                    created_at: None,
                    expires_at: None,
                }))
            }
            (_, None) => None,
        })
    };
    let change = match chosen.await {
        Ok(Some(change)) => change,
        Ok(None) => return Ok(Ok(())),
        Err(err) => return Ok(Err(err)),
    };
    let write = match table.begin(intent(Action::Ref)).await {
        Ok(write) => write,
        Err(err) => return Ok(Err(err)),
    };
    attempt(sea, dice, process, table, &write, &[change], Effect::default(), &blind()).await?;
    Ok(Ok(()))
}

/// Plans and carries out; whether to the end. The history must know every version before it may be forgotten.
async fn carry_out(
    sea: &Sea<'_>,
    process: &Process,
    table: &dyn Table,
    action: &Maintenance,
) -> Result<bool, Violation> {
    let plan = match table.plan(action).await {
        Ok(plan) => plan,
        Err(err) if process.store.crashed() || err.kind() == lakebed_core::ErrorKind::Unavailable => return Ok(false),
        // Where a safety is off there may be nothing left to plan with.
        Err(_) if sea.schedule.off.is_some_and(|it| it != Safety::TagsKept) => return Ok(false),
        Err(err) => return Err(Violation::new(format!("{action:?} cannot be planned: {err}"))),
    };
    let healthy = sea.process(&Dice::new(sea.schedule.seed));
    if let Ok(table) = sea.open_whole(&healthy).await {
        note_versions(&sea.history, table.as_ref()).await?;
    }
    let done = maintain::run(table, &StoragePublisher, &process.env, plan).await;
    if let Ok(table) = sea.open_whole(&healthy).await {
        judge::everything_reachable_is_there(table.as_ref()).await?;
    }
    Ok(done.is_ok_and(|it| it.stopped.is_none()))
}
