//! Keeping a table: every action is a plan first, and a plan is data.
//!
//! - [`checkpoint`] writes the state of a version down, so that it opens fast; [`expire`] then forgets old log files.
//! - [`vacuum`] and [`orphans`] find files that no version needs; [`named`] says which files versions need, and [`kept`]
//!   which versions stay.
//! - [`compact`] finds small files that belong together; the engine rewrites them.
//! - [`restore`] and [`tags`] are changes, not upkeep, but rest on the same knowledge of what older versions hold.
//!
//! What a plan deletes is checked again by [`maintain::run`](lakebed_core::maintain::run), with [`reachable`].
use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, Result,
    commit::Committed,
    env::Env,
    maintain::{Doomed, Maintenance, MaintenancePlan, Retain, Step},
    path::FilePath,
    version::{Millis, Ref},
};

use self::kept::Kept;
use crate::{
    error::DeltaError,
    layout::LogFileKind,
    properties::Properties,
    protocol::is_known,
    spec::Protocol,
    state::{Head, State},
    timeline::{self, refs},
};

mod checkpoint;
mod compact;
mod expire;
mod kept;
pub(crate) mod live;
mod named;
mod orphans;
pub(crate) mod restore;
mod sweep;
pub(crate) mod tags;
mod vacuum;

/// Commits between checkpoints where the table says nothing sensible.
const INTERVAL: u64 = 10;
/// How long removed files stay where the table does not say.
const WEEK: Duration = Duration::from_secs(7 * 86_400);
/// How long history stays where the table does not say.
const MONTH: Duration = Duration::from_secs(30 * 86_400);
/// Files deleted before refs and head are looked at again.
const DELETED_AT_ONCE: usize = 5_000;

/// A table to be kept, and the world around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Upkeep<'a> {
    pub(crate) head: &'a Head,
    pub(crate) env: &'a Env,
}

impl<'a> Upkeep<'a> {
    /// What `action` would do.
    ///
    /// # Errors
    /// Unsupported, naming features, for a table that this build must not write; refused where a safety rule forbids it.
    pub(crate) async fn plan(self, action: &Maintenance) -> Result<MaintenancePlan> {
        let state = self.newest().await?;
        let mut plan = match action {
            Maintenance::Checkpoint => self.checkpoint(&state).await?,
            Maintenance::Expire(retain) => expire::plan(self, &state, retain).await?,
            Maintenance::Vacuum { retain, older_than, lite, forced } => {
                let asked = vacuum::Asked { retain, older_than: *older_than, lite: *lite, forced: *forced };
                vacuum::plan(self, &state, asked).await?
            }
            Maintenance::RemoveOrphans { older_than } => orphans::plan(self, &state, *older_than).await?,
            Maintenance::Compact { filter, target_bytes } => compact::plan(&state, filter, *target_bytes).await?,
            Maintenance::RollBack { .. } => {
                return Err(Error::unsupported("versions of a Delta table do not cease to exist")
                    .with_hint("restore the version: its rows become those of a new one"));
            }
            _ => return Err(Error::unsupported("a Delta table has no such upkeep")),
        };
        plan.head = Some(state.version.into());
        Ok(plan)
    }

    /// What the table's own properties say is due after a commit: every so many versions a checkpoint, and log clean-up
    /// after it. Asks the store nothing if the table was read before.
    pub(crate) async fn due(self, after: &Committed) -> Result<Vec<Maintenance>> {
        let version = timeline::number(&after.version.id)?;
        let state = match self.head.known() {
            Some(state) => state,
            None => self.head.newest().await?,
        };
        let properties = Properties(&state.metadata.configuration);
        let interval = properties.count("delta.checkpointInterval").ok().flatten();
        let interval = interval.and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0).unwrap_or(INTERVAL);
        if version == 0 || !version.is_multiple_of(interval) {
            return Ok(Vec::new());
        }
        let mut due = vec![Maintenance::Checkpoint];
        // An age that cannot be read keeps all.
        let age = properties.interval("delta.logRetentionDuration").ok().map(|it| it.unwrap_or(MONTH));
        if let Some(age) = age.filter(|_| properties.flag("delta.enableExpiredLogCleanup").unwrap_or(false)) {
            due.push(Maintenance::Expire(Retain { age: Some(age), at_least: 1, ..Retain::default() }));
        }
        Ok(due)
    }

    /// Every file that a version kept by `retain` needs, of rows and of the log.
    pub(crate) fn reachable(self, retain: &Retain) -> BoxStream<'a, Result<FilePath>> {
        let retain = retain.clone();
        stream::once(async move { self.reached(&retain).await }).try_flatten().boxed()
    }

    async fn reached(self, retain: &Retain) -> Result<BoxStream<'a, Result<FilePath>>> {
        let state = self.newest_readable().await?;
        let refs = refs::refs(&state).await?;
        let (kept, listing) = Kept::of(self, &state, retain, &refs).await?;
        let start = kept::start(self.head.log(), &listing, kept.oldest()).await?;
        let log = listing.files.iter().filter(|it| it.file.version >= start).map(|it| it.file.path());
        let mut log: Vec<FilePath> = log.map(FilePath::below).collect();
        for run in kept.runs() {
            let state = self.state_at(&state, run.first).await?;
            if let Some((checkpoint, _)) = state.checkpoint().await? {
                log.extend(checkpoint.sidecars().cloned());
            }
        }
        let runs = stream::iter(kept.runs()).map(move |run| named::of_run(self, Arc::clone(&state), run, true));
        let rows = runs.flatten().map_ok(|it| stream::iter(it.into_iter().map(Ok))).try_flatten();
        Ok(stream::iter(log.into_iter().map(Ok)).chain(rows).boxed())
    }

    async fn checkpoint(self, state: &Arc<State>) -> Result<MaintenancePlan> {
        let here = state.listing().files.iter().filter(|it| it.file.version == state.version);
        let there = here.into_iter().any(|it| matches!(it.file.kind, LogFileKind::Checkpoint(_)));
        if !there {
            let steps = checkpoint::steps(state, self.env, checkpoint::Hint::Name).await?;
            return Ok(MaintenancePlan { steps, ..MaintenancePlan::default() });
        }
        let mut plan = MaintenancePlan::default();
        let (complete, _) = state.listing().checkpoints();
        match complete.iter().find(|it| it.version == state.version) {
            None => plan.notes.push(format!(
                "version {} has a checkpoint that is not complete; the next version gets a new one",
                state.version
            )),
            // Its writer ended before it wrote the hint.
            Some(files) if checkpoint::hint_older_than(&state.log, files.version).await? => {
                plan.steps.push(hint_step(checkpoint::hint_of(&state.log, files).await?));
            }
            Some(_) => plan.notes.push(format!("version {} has a checkpoint", state.version)),
        }
        Ok(plan)
    }

    /// The newest state as the log has it, of a table whose every feature is known.
    async fn newest(self) -> Result<Arc<State>> {
        let state = self.newest_readable().await?;
        check_known(&state.protocol)?;
        Ok(state)
    }

    async fn newest_readable(self) -> Result<Arc<State>> {
        let state = self.head.newest().await?;
        let state = state.confirmed().await?.map_or(state, Arc::new);
        state.readable()?;
        Ok(state)
    }

    /// `newest` itself where it is the version asked for.
    async fn state_at(self, newest: &Arc<State>, version: u64) -> Result<Arc<State>> {
        match version == newest.version {
            true => Ok(Arc::clone(newest)),
            false => self.head.at(version).await,
        }
    }

    fn now(self) -> Millis {
        self.env.clock.now()
    }
}

/// Upkeep writes no rows, so it need not write what a feature asks of rows; but of a feature nobody here has heard of,
/// nobody knows which files it needs.
///
/// Spec: Delta PROTOCOL.md, "Vacuum Protocol Check".
fn check_known(protocol: &Protocol) -> Result<(), DeltaError> {
    let version = protocol.min_writer_version;
    if !(1..=7).contains(&version) {
        return Err(DeltaError::WriterVersion { version });
    }
    let features: Vec<String> = protocol.features().into_iter().filter(|it| !is_known(it)).collect();
    if features.is_empty() { Ok(()) } else { Err(DeltaError::WriterFeatures { version, features }) }
}

/// The moment `span` before `now`.
fn before(now: Millis, span: Duration) -> Millis {
    Millis(now.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
}

/// Tombstones of files removed up to this moment are forgotten.
fn tombstones_kept_since(state: &State, now: Millis) -> Millis {
    match Properties(&state.metadata.configuration).interval("delta.deletedFileRetentionDuration") {
        Ok(span) => before(now, span.unwrap_or(WEEK)),
        // What cannot be understood forgets nothing.
        Err(_) => Millis(i64::MIN),
    }
}

fn hint_step(body: bytes::Bytes) -> Step {
    let body = lakebed_core::maintain::Body::Bytes(body);
    Step::Write { path: crate::layout::LAST_CHECKPOINT.to_owned(), body }
}

/// Batches of deletes, in the order given.
fn deletes(doomed: Vec<Doomed>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = doomed.into_iter().peekable();
    while rest.peek().is_some() {
        steps.push(Step::Delete(rest.by_ref().take(DELETED_AT_ONCE).collect()));
    }
    steps
}

/// What tags keep, and who will not respect it.
fn note_of_tags(refs: &[Ref]) -> Option<String> {
    let names: Vec<String> = refs.iter().map(|it| format!("`{}` ({})", it.name.escape_debug(), it.version)).collect();
    let what = match names.len() {
        0 => return None,
        1 => "version",
        _ => "versions",
    };
    Some(format!(
        "kept for tags: {what} {}; VACUUM and log clean-up of other engines do not respect tags",
        names.join(", ")
    ))
}

/// How long ago, in words: `9 days ago`.
fn ago(now: Millis, then: Millis) -> String {
    let hours = now.0.saturating_sub(then.0) / 3_600_000;
    match (hours / 24, hours) {
        (0, 0) => "less than an hour ago".to_owned(),
        (0, 1) => "1 hour ago".to_owned(),
        (0, hours) => format!("{hours} hours ago"),
        (1, _) => "1 day ago".to_owned(),
        (days, _) => format!("{days} days ago"),
    }
}
