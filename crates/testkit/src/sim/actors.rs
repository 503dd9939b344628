//! Who acts on the table.
use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use lakebed_core::{
    ErrorKind, Result,
    change::{Change, RowDelta},
    commit::{self, StoragePublisher, Write},
    conflict::{ConflictPolicy, Isolation},
    env::Clock,
    expr::Predicate,
    path::FilePath,
    table::Table,
    timeline::Action,
    version::{AsOf, Span, VersionId},
};

use super::{
    Process, Safety, Sea,
    history::{Effect, Violation, note_versions},
};
use crate::{
    conformance::rows,
    pond::intent,
    reference,
    seed::Dice,
    store::{Fault, Op, Times},
    value::Value,
};

/// Longest pause between two things an actor does.
const PAUSE_MS: u64 = 20_000;

pub(super) async fn pause(sea: &Sea<'_>, dice: &Dice) {
    sea.clock.sleep(Duration::from_millis(dice.below(PAUSE_MS))).await;
}

/// A process with the faults that this moment of the schedule has for it.
pub(super) fn doomed(sea: &Sea<'_>, dice: &Dice) -> Process {
    let process = sea.process(dice);
    if !sea.schedule.faults {
        return process;
    }
    let faults =
        [Fault::FailBefore, Fault::FailAfter, Fault::LoseAnswer, Fault::LoseRequest, Fault::LoseAnswerAndRetry];
    let fault = faults[usize::try_from(dice.below(faults.len() as u64)).expect("an index")].clone();
    if dice.chance(15) {
        // What it wrote last is there, and it never heard of it.
        process.store.add_rule(Op::Create, "", Fault::CrashAfter, Times::Nth(1 + dice.below(3)));
    }
    if dice.chance(50) {
        process.store.add_rule(Op::Create, "", fault, Times::Percent(20));
    }
    if dice.chance(30) {
        process.store.add_rule(Op::Get, "", Fault::FailBefore, Times::Percent(2));
        process.store.add_rule(Op::List, "", Fault::FailBefore, Times::Percent(5));
    }
    if sea.schedule.stale_lists && dice.chance(20) {
        process.store.add_rule(Op::List, "", Fault::StaleList(1), Times::Percent(50));
    }
    if sea.schedule.slow_publish && dice.chance(30) {
        let long = Duration::from_millis(dice.below(8_000));
        process.store.add_rule(Op::Create, "", Fault::Delay(long), Times::Percent(30));
    }
    if dice.chance(15) {
        process.store.crash_after(dice.below(40));
    }
    process
}

/// Adds, deletes, replaces and restores rows; dies at times.
pub(super) async fn writer(sea: &Sea<'_>, dice: Dice, mut next_id: i64) -> Result<(), Violation> {
    for _ in 0..sea.schedule.steps {
        pause(sea, &dice).await;
        let process = doomed(sea, &dice);
        let Ok(table) = sea.open(&process).await else { continue };
        // What cannot even begin has no outcome.
        let _ = write_once(sea, &dice, &process, table.as_ref(), &mut next_id).await?;
        if process.store.crashed() {
            sea.history().report.crashes += 1;
        }
    }
    Ok(())
}

/// One write. The inner error is the store's, from before anything was tried.
async fn write_once(
    sea: &Sea<'_>,
    dice: &Dice,
    process: &Process,
    table: &dyn Table,
    next_id: &mut i64,
) -> Result<Result<()>, Violation> {
    let choice = dice.below(100);
    let action = match choice {
        0..50 => Action::Append,
        50..70 => Action::Delete,
        70..92 => Action::RowDelta,
        _ => Action::Restore,
    };
    let write = match table.begin(intent(action)).await {
        Ok(write) => write,
        Err(err) => return Ok(Err(err)),
    };
    let format = sea.subject.format();
    let seen = match reference::read_snapshot(format.as_ref(), table.storage(), write.base.as_ref()).await {
        Ok(rows) => rows,
        Err(err) => return no_rows(sea, process, write.base.version().id.clone(), err).await.map(Err),
    };
    let mut ids: Vec<i64> = seen.rows.iter().filter_map(|row| id_of(&row[0])).collect();
    ids.sort_unstable();
    sea.history().note_rows(&write.base.version().id, ids.clone())?;
    let staged = prepare(sea, dice, process, table, &write, &ids, next_id).await;
    let (changes, effect) = match staged {
        Ok(staged) => staged,
        Err(err) => return Ok(Err(err)),
    };
    let policy = ConflictPolicy {
        isolation: Isolation::Serializable,
        read: (action != Action::Append).then_some(Predicate::True),
        claims: Vec::new(),
        retries: 4,
    };
    attempt(sea, dice, process, table, &write, &changes, effect, &policy).await?;
    Ok(Ok(()))
}

pub(super) fn id_of(value: &Value) -> Option<i64> {
    match value {
        Value::Int(id) => i64::try_from(*id).ok(),
        _ => None,
    }
}

async fn prepare(
    sea: &Sea<'_>,
    dice: &Dice,
    process: &Process,
    table: &dyn Table,
    write: &Write,
    ids: &[i64],
    next_id: &mut i64,
) -> Result<(Vec<Change>, Effect)> {
    let pick = || usize::try_from(dice.below(ids.len() as u64)).ok().and_then(|at| ids.get(at).copied());
    let mut effect = Effect::default();
    let mut changes = Vec::new();
    match write.intent.action {
        Action::Restore => {
            let versions = table.timeline(&Span::all()).await?;
            let versions: Vec<VersionId> = versions.versions().map(|it| it.id.clone()).collect();
            let at = usize::try_from(dice.below(versions.len() as u64)).unwrap_or(0);
            effect.restored = versions.get(at).cloned();
            changes.extend(effect.restored.clone().map(|it| Change::Restore(AsOf::Version(it))));
            return Ok((changes, effect));
        }
        Action::Append => (),
        _ => {
            let gone: BTreeSet<i64> = (0..2).filter_map(|_| pick()).collect();
            if !gone.is_empty() {
                let list: Vec<i64> = gone.iter().copied().collect();
                changes = sea.subject.deletion(table, &process.env, write, &list).await?;
            }
            effect.removed = gone;
        }
    }
    if write.intent.action != Action::Delete {
        let many = i64::try_from(1 + dice.below(3)).unwrap_or(1);
        effect.added = (*next_id..*next_id + many).collect();
        *next_id += many;
        let file = sea.subject.data_file(table, &process.env, write, &rows(effect.added.clone())).await?;
        changes.push(Change::Rows(RowDelta { added: vec![file], ..RowDelta::default() }));
    }
    Ok((changes, effect))
}

/// How often a writer tries again what it knows to be done, of 100 times.
const AGAIN: u64 = 15;
/// And what it knows nothing of.
const AGAIN_AFTER_SILENCE: u64 = 60;

/// Commits, as whoever drives a commit does: what surely failed is cleaned up, what may have landed is tried again.
#[expect(clippy::too_many_arguments, reason = "all that a commit takes, and who makes it")]
pub(super) async fn attempt(
    sea: &Sea<'_>,
    dice: &Dice,
    process: &Process,
    table: &dyn Table,
    write: &Write,
    changes: &[Change],
    effect: Effect,
    policy: &ConflictPolicy,
) -> Result<(), Violation> {
    sea.history().note_attempt(&write.id, effect);
    let commit = async || {
        let done = commit::commit(table, &StoragePublisher, &process.env, write, changes, policy).await;
        done.map(|it| it.version.id)
    };
    let done = commit().await;
    sea.history().note_answer(&write.id, &done)?;
    let known = done.as_ref().map_or_else(|it| Some(it.kind()), |_| None);
    let silent = matches!(known, Some(ErrorKind::Unknown | ErrorKind::Unavailable));
    if known.is_some() && !silent {
        let _ = table.storage().delete(&fresh(changes)).await;
        return Ok(());
    }
    if silent && sea.schedule.lacks(Safety::UnknownKept) {
        // Whoever cleans up after the dead would do it.
        let _ = sea.process(dice).store.storage("t").delete(&fresh(changes)).await;
        return Ok(());
    }
    if process.store.crashed() || !dice.chance(if silent { AGAIN_AFTER_SILENCE } else { AGAIN }) {
        return Ok(());
    }
    process.store.heal();
    sea.history().report.again += 1;
    let done = commit().await;
    sea.history().note_answer(&write.id, &done)
}

/// Files that only these changes name.
fn fresh(changes: &[Change]) -> Vec<FilePath> {
    let rows = || changes.iter().filter_map(|it| if let Change::Rows(rows) = it { Some(rows) } else { None });
    let old: HashSet<&FilePath> = rows().flat_map(|it| it.removed.iter().map(|it| &it.path)).collect();
    let data = rows().flat_map(|it| it.added.iter().map(|it| &it.path));
    let vectors = rows().flat_map(|it| it.added_deletes.iter().filter_map(|it| it.place.path()));
    data.chain(vectors).filter(|it| !old.contains(it)).cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// A version that cannot be read must have been forgotten meanwhile, and the error says so, or the store failed.
async fn no_rows(
    sea: &Sea<'_>,
    process: &Process,
    version: VersionId,
    err: lakebed_core::Error,
) -> Result<lakebed_core::Error, Violation> {
    if err.kind() == ErrorKind::Unavailable || process.store.crashed() {
        return Ok(err);
    }
    let healthy = sea.process(&Dice::new(sea.schedule.seed));
    let Ok(table) = sea.open_whole(&healthy).await else { return Ok(err) };
    note_versions(&sea.history, table.as_ref()).await?;
    if err.kind() != ErrorKind::NotFound {
        return Err(Violation::new(format!("version {version} cannot be read, and is not said to be gone: {err}")));
    }
    match table.resolve(&AsOf::Version(version.clone())).await {
        Err(gone) if gone.kind() == ErrorKind::NotFound => Ok(err),
        Ok(_) if sea.history().may_be_emptied(&version) => Ok(err),
        _ => Err(Violation::new(format!("version {version} is listed, and cannot be read: {err}"))),
    }
}

/// Reads versions, some of them slowly.
pub(super) async fn reader(sea: &Sea<'_>, dice: Dice) -> Result<(), Violation> {
    let process = sea.process(&dice);
    for _ in 0..sea.schedule.steps {
        pause(sea, &dice).await;
        let Ok(table) = sea.open_whole(&process).await else { continue };
        note_versions(&sea.history, table.as_ref()).await?;
        let Ok(timeline) = table.timeline(&Span::all()).await else { continue };
        let versions: Vec<VersionId> = timeline.versions().map(|it| it.id.clone()).collect();
        let at = usize::try_from(dice.below(versions.len() as u64)).unwrap_or(0);
        let Some(version) = versions.get(at) else { continue };
        let Ok(snapshot) = table.snapshot(&AsOf::Version(version.clone())).await else { continue };
        if dice.chance(50) {
            pause(sea, &dice).await;
        }
        let format = sea.subject.format();
        match reference::read_snapshot(format.as_ref(), table.storage(), snapshot.as_ref()).await {
            Ok(rows) => {
                let mut ids: Vec<i64> = rows.rows.iter().filter_map(|row| id_of(&row[0])).collect();
                ids.sort_unstable();
                sea.history().note_rows(version, ids)?;
            }
            Err(err) => {
                no_rows(sea, &process, version.clone(), err).await?;
            }
        }
    }
    Ok(())
}
