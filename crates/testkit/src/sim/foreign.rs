//! Another engine's writer among ours: it adds rows blindly, and removes whole files.
use std::collections::BTreeSet;

use futures::TryStreamExt;
use lakebed_core::{
    Result,
    scan::{Scan, ScanTask},
    version::{AsOf, VersionId},
};

use super::{
    Process, Sea,
    actors::{doomed, id_of, pause},
    history::{Effect, Violation},
};
use crate::{
    conformance::{Foreigner, rows},
    reference,
    seed::Dice,
};

/// How often it removes a file, of 100 times.
const REMOVES: u64 = 25;

pub(super) async fn writer(
    sea: &Sea<'_>,
    foreigner: &dyn Foreigner,
    dice: Dice,
    mut next_id: i64,
) -> Result<(), Violation> {
    for _ in 0..sea.schedule.steps {
        pause(sea, &dice).await;
        let process = doomed(sea, &dice);
        if dice.chance(REMOVES) {
            // What cannot even begin has no outcome.
            let _ = remove(sea, foreigner, &dice, &process).await?;
        } else {
            append(sea, foreigner, &process, &mut next_id).await?;
        }
    }
    Ok(())
}

async fn append(
    sea: &Sea<'_>,
    foreigner: &dyn Foreigner,
    process: &Process,
    next_id: &mut i64,
) -> Result<(), Violation> {
    let added: BTreeSet<i64> = (*next_id..*next_id + 2).collect();
    *next_id += 2;
    let (id, rows) = (write_id(process), rows(added.clone()));
    sea.history().note_attempt(&id, Effect { added, ..Effect::default() });
    let done = foreigner.append(&process.store.storage("t"), &process.env, &id, &rows).await;
    note(sea, &id, &done)
}

async fn remove(
    sea: &Sea<'_>,
    foreigner: &dyn Foreigner,
    dice: &Dice,
    process: &Process,
) -> Result<Result<()>, Violation> {
    let chosen = async {
        let table = sea.open_whole(process).await?;
        let base = table.snapshot(&AsOf::Latest).await?;
        let mut tasks: Vec<ScanTask> = base.tasks(&Scan::all()).try_collect().await?;
        tasks.retain(|it| it.deletes.is_empty());
        let at = usize::try_from(dice.below(tasks.len() as u64)).unwrap_or(0);
        let Some(task) = tasks.get(at) else { return Ok(None) };
        let format = sea.subject.format();
        let rows = reference::read(format.as_ref(), table.storage(), std::slice::from_ref(task)).await?;
        let removed: BTreeSet<i64> = rows.rows.iter().filter_map(|row| id_of(&row[0])).collect();
        Ok(Some((base, task.files[0].clone(), removed)))
    };
    let (base, file, removed) = match chosen.await {
        Ok(Some(chosen)) => chosen,
        Ok(None) => return Ok(Ok(())),
        Err(err) => return Ok(Err(err)),
    };
    let id = write_id(process);
    sea.history().note_attempt(&id, Effect { removed, ..Effect::default() });
    let done = foreigner.remove(&process.store.storage("t"), &process.env, &id, base.version(), &file).await;
    note(sea, &id, &done)?;
    Ok(Ok(()))
}

fn note(sea: &Sea<'_>, id: &str, done: &Result<VersionId>) -> Result<(), Violation> {
    sea.history().report.foreign += usize::from(done.is_ok());
    sea.history().note_answer(id, done)
}

fn write_id(process: &Process) -> String {
    format!("{:032x}", process.env.ids.uuid())
}
