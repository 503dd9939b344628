//! Carrying out a plan, and stopping in time.
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures::TryStreamExt;

use super::{Body, Doomed, MaintenancePlan, Retain, Step};
use crate::{
    Error, ErrorKind, Result,
    commit::{Publish, Publisher},
    env::Env,
    path::FilePath,
    storage::{Put, may_be_overwritten},
    table::Table,
    version::{AsOf, Ref, Span, VersionId},
};

const TRIES: u32 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// Steps carried out, from the first.
    pub steps: usize,
    /// Steps of the plan.
    pub of: usize,
    /// Files the store confirmed to be gone.
    pub removed: u64,
    /// Their bytes, where the plan knew them.
    pub bytes: u64,
    /// Files that were not there any more.
    pub missing: u64,
    /// Files that may still be there.
    pub failed: Vec<(FilePath, Error)>,
    /// Why the plan ended before its last step.
    pub stopped: Option<Error>,
}

/// Carries out `plan`, and nothing else, step by step.
///
/// # Errors
/// [`ErrorKind::Unsupported`] before anything is done, if the plan rewrites rows: the engine must do that first.
/// Everything that goes wrong later is [`Applied::stopped`], beside what was done until then.
pub async fn run(table: &dyn Table, publisher: &dyn Publisher, env: &Env, plan: MaintenancePlan) -> Result<Applied> {
    if plan.steps.iter().any(|it| matches!(it, Step::Rewrite(_))) {
        return Err(Error::unsupported("this plan rewrites rows, which only the engine can do"));
    }
    let mut guard = Guard::new(table, &plan);
    if !plan.forgets.is_empty() {
        guard.know_versions().await?;
    }
    let mut applied = Applied { of: plan.steps.len(), ..Applied::default() };
    for step in plan.steps {
        let done = match step {
            Step::Write { path, body } => write(table, env, &path, body).await,
            Step::Publish(publish) => make_visible(table, publisher, env, &publish).await,
            Step::Delete(batch) => match guard.check(&batch).await {
                Ok(()) => delete(table, batch, &mut applied).await,
                Err(err) => Err(err),
            },
            Step::Rewrite(_) => Err(Error::internal("a rewrite among the steps")),
        };
        if let Err(err) = done {
            applied.stopped = Some(err);
            break;
        }
        applied.steps += 1;
    }
    Ok(applied)
}

/// Creates an object nobody sees yet. One of that name has the same content, or the name is of no use to anybody.
async fn write(table: &dyn Table, env: &Env, path: &str, body: Body) -> Result<()> {
    let storage = table.storage();
    if may_be_overwritten(path) {
        let body = whole(body).await?;
        return if body.is_empty() { Ok(()) } else { storage.overwrite_hint(path, body).await };
    }
    let outcome = match body {
        Body::Bytes(bytes) => return create(table, env, path, bytes).await.map(|_| ()),
        Body::Stream(stream) => storage.create_stream(path, stream).await?,
    };
    match outcome {
        Put::Won | Put::Lost => Ok(()),
        Put::Unknown if storage.head(&FilePath::below(path)).await?.is_some() => Ok(()),
        Put::Unknown => Err(Error::new(
            ErrorKind::Unavailable,
            format!("storage did not say whether it took {path}; run the plan again"),
        )),
    }
}

async fn whole(body: Body) -> Result<Bytes> {
    match body {
        Body::Bytes(bytes) => Ok(bytes),
        Body::Stream(stream) => Ok(stream.try_collect::<Vec<Bytes>>().await?.concat().into()),
    }
}

/// Creates an object, with the same bytes until the slot is somebody's. Whether it holds these bytes.
async fn create(table: &dyn Table, env: &Env, path: &str, body: Bytes) -> Result<bool> {
    let file = FilePath::below(path);
    for _ in 0..TRIES {
        let put = table.storage().create(path, body.clone()).await?;
        if put == Put::Won {
            return Ok(true);
        }
        if let Some(there) = table.storage().read(&file).await? {
            return Ok(there == body);
        }
        env.clock.sleep(PAUSE).await;
    }
    Err(unknown(path))
}

async fn make_visible(table: &dyn Table, publisher: &dyn Publisher, env: &Env, publish: &Publish) -> Result<()> {
    for _ in 0..TRIES {
        match (publisher.publish(table.storage(), publish).await?, publish) {
            (Put::Won, _) => return Ok(()),
            (Put::Lost | Put::Unknown, Publish::Create { path, body }) => {
                // Whose it is, its bytes say: they carry what only this plan has.
                match table.storage().read(&FilePath::below(path.as_str())).await? {
                    Some(there) if there == *body => return Ok(()),
                    Some(_) => return Err(first(path)),
                    None => env.clock.sleep(PAUSE).await,
                }
            }
            (Put::Lost, _) => return Err(first("the table's pointer")),
            (Put::Unknown, _) => return Err(unknown("the table's pointer")),
        }
    }
    Err(unknown("the commit"))
}

fn first(what: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("another writer was first at {what}")).with_hint("make the plan again")
}

fn unknown(what: &str) -> Error {
    Error::new(ErrorKind::Unknown, format!("storage did not say whether it took {what}"))
        .with_hint("look at the table before running the plan again")
}

async fn delete(table: &dyn Table, batch: Vec<Doomed>, applied: &mut Applied) -> Result<()> {
    let sizes: HashMap<&FilePath, u64> = batch.iter().map(|it| (&it.path, it.bytes.unwrap_or(0))).collect();
    let files: Vec<FilePath> = batch.iter().map(|it| it.path.clone()).collect();
    let removal = table.storage().delete(&files).await?;
    applied.removed += removal.removed.len() as u64;
    applied.bytes += removal.removed.iter().filter_map(|it| sizes.get(it)).sum::<u64>();
    applied.missing += removal.missing.len() as u64;
    let Some((path, err)) = removal.failed.first() else { return Ok(()) };
    let (kind, count) = (err.kind(), removal.failed.len());
    let message = format!("{count} files of this batch may still be there, {path} the first: {err}");
    applied.failed.extend(removal.failed);
    Err(Error::new(kind, message).with_hint("what is done is complete: make the plan again for the rest"))
}

/// Keeps reachable files from being deleted.
struct Guard<'a> {
    table: &'a dyn Table,
    /// Everything the plan would delete.
    doomed: HashSet<FilePath>,
    planned_on: Option<VersionId>,
    /// Of a plan that makes versions disappear: those that were there when it began.
    known: Option<HashSet<VersionId>>,
    /// What was reachable of `doomed`, and the head and refs for which that was so.
    seen: Option<(VersionId, Vec<Ref>, HashSet<FilePath>)>,
}

impl<'a> Guard<'a> {
    /// Not async: a plan may hold streams, and nothing borrowed from it may live across a wait.
    fn new(table: &'a dyn Table, plan: &MaintenancePlan) -> Self {
        let batches = plan.steps.iter().filter_map(|it| match it {
            Step::Delete(batch) => Some(batch),
            _ => None,
        });
        let doomed: HashSet<FilePath> = batches.flatten().map(|it| it.path.clone()).collect();
        Self { table, doomed, planned_on: plan.head.clone(), known: None, seen: None }
    }

    /// Notes the versions that are there before some of them are made to disappear.
    async fn know_versions(&mut self) -> Result<()> {
        let timeline = self.table.timeline(&Span::all()).await?;
        self.known = Some(timeline.versions().map(|it| it.id.clone()).collect());
        Ok(())
    }

    async fn check(&mut self, batch: &[Doomed]) -> Result<()> {
        let head = self.table.resolve(&AsOf::Latest).await?.version.id;
        if let Some(known) = &self.known {
            return match known.contains(&head) {
                true => Ok(()),
                false => Err(moved(format!("version {head} was committed while versions were being rolled back"))),
            };
        }
        let refs = self.table.refs().await?;
        let seen = match self.seen.take() {
            Some(seen) if (&seen.0, &seen.1) == (&head, &refs) => seen,
            _ => {
                let reachable = self.reachable(&head).await?;
                (head, refs, reachable)
            }
        };
        let needed = batch.iter().find(|it| seen.2.contains(&it.path));
        let outcome = needed.map_or(Ok(()), |it| Err(moved(format!("{} has become reachable", it.path))));
        self.seen = Some(seen);
        outcome
    }

    /// What head, refs, and every version since the plan was made need of what is to be deleted.
    async fn reachable(&self, head: &VersionId) -> Result<HashSet<FilePath>> {
        let mut ids = vec![head.clone()];
        if let Some(planned_on) = self.planned_on.as_ref().filter(|it| *it != head) {
            let span = Span { after: Some(planned_on.clone()), until: AsOf::Latest };
            ids.extend(self.table.timeline(&span).await?.versions().map(|it| it.id.clone()));
        }
        let retain = Retain { ids, at_least: 1, ..Retain::default() };
        let doomed = &self.doomed;
        self.table.reachable(&retain).try_filter(|it| futures::future::ready(doomed.contains(it))).try_collect().await
    }
}

fn moved(what: String) -> Error {
    Error::new(ErrorKind::Refused, what).with_hint("nothing more was deleted: make the plan again")
}
