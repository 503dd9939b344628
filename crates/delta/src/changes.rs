//! What each version changed: the actions of its commit, in the words of the rest of Lakebed.
//!
//! A file that is removed and added again in one commit, with another vector, stands in both lists: under its old key
//! among the removed, and with its new vector among the added.
//! Spec: Delta PROTOCOL.md, "Add File and Remove File", "Transaction Identifiers", "Domain Metadata".
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Result,
    change::{Application, ChangeFile, Claim, RowDelta, VersionDelta},
    file::{Encoding, FileKey},
    version::{AsOf, Millis, Span},
};

use crate::{
    error::DeltaError,
    log::{Commit, Listed, Listing, Log},
    spec::Action,
    state::{Head, State},
    table::DeltaTable,
    timeline::{
        self, details,
        times::{self, Clock, FileTimes},
        version_of,
    },
};

pub(crate) mod files;

use files::Files;

/// Commits read ahead.
const AT_ONCE: usize = 8;

/// What each version of `span` changed, oldest first.
///
/// Needs the commits themselves: a version whose commit is gone is an error that names it. Without a start the first
/// version is the oldest whose commit is left, but for those that a clean-up left behind when it was cut short.
pub(crate) fn read(table: &DeltaTable, span: &Span) -> BoxStream<'static, Result<VersionDelta>> {
    of_log(table.log().clone(), span.clone(), table.known())
}

/// `known` is a state read before: if it is not older than the span's start, none needs to be read for its schema.
fn of_log(log: Log, span: Span, known: Option<Arc<State>>) -> BoxStream<'static, Result<VersionDelta>> {
    stream::once(async move { prepare(log, span, known).await }).try_flatten().boxed()
}

async fn prepare(log: Log, span: Span, known: Option<Arc<State>>) -> Result<BoxStream<'static, Result<VersionDelta>>> {
    let listing = match &span.after {
        Some(after) => log.listing_from(timeline::number(after)?.saturating_add(1)).await?,
        None => log.listing().await?,
    };
    if listing.newest().is_none() {
        return nothing_since(&log, &span).await;
    }
    let (after, until) = timeline::bounds(&Head::new(log.clone()), &listing, &span).await?;
    let first = if after.is_none() { oldest(&listing, until) } else { 0 };
    let commits = dense(listing.commits().filter(|it| it.file.version >= first).cloned(), after, until)?;
    if commits.is_empty() {
        return Ok(stream::empty().boxed());
    }
    let reader = Reader::new(&log, &listing, known.filter(|it| after.is_some_and(|after| after <= it.version))).await?;
    let read_log = log.clone();
    let read = stream::iter(commits).map(move |it| {
        let log = read_log.clone();
        async move { log.read_commit(it.file.version).await }
    });
    let state = (read.buffered(AT_ONCE).boxed(), reader);
    let deltas = stream::try_unfold(state, |(mut commits, mut reader)| async move {
        let Some(commit) = commits.try_next().await? else { return Ok(None) };
        let delta = reader.delta(&commit)?;
        Ok(Some((delta, (commits, reader))))
    });
    Ok(deltas.boxed())
}

/// No changes, unless `until` names a version that there is not.
async fn nothing_since(log: &Log, span: &Span) -> Result<BoxStream<'static, Result<VersionDelta>>> {
    if matches!(span.until, AsOf::Version(_)) {
        timeline::bounds(&Head::new(log.clone()), &log.listing().await?, span).await?;
    }
    Ok(stream::empty().boxed())
}

/// The first commit after the last gap that a checkpoint up to `until` bridges: what lies before was left behind by a
/// clean-up.
fn oldest(listing: &Listing, until: u64) -> u64 {
    let versions: Vec<u64> = listing.commits().map(|it| it.file.version).filter(|it| *it <= until).collect();
    let newest = listing.checkpoints().0.iter().map(|it| it.version).find(|it| *it <= until);
    let bridged = |next: u64| newest.is_some_and(|it| it.checked_add(1).is_none_or(|it| it >= next));
    let gaps = versions.windows(2).rev().filter(|it| it[0].checked_add(1) != Some(it[1]));
    gaps.map(|it| it[1]).find(|it| bridged(*it)).unwrap_or(0)
}

/// The commits after `after` up to `until`, all of them.
pub(crate) fn dense(
    commits: impl Iterator<Item = Listed>,
    after: Option<u64>,
    until: u64,
) -> Result<Vec<Listed>, DeltaError> {
    let wanted = |it: &Listed| after.is_none_or(|after| it.file.version > after) && it.file.version <= until;
    let commits: Vec<Listed> = commits.filter(wanted).collect();
    let mut next = after.map_or_else(|| commits.first().map_or(0, |it| it.file.version), |it| it.saturating_add(1));
    for commit in &commits {
        if commit.file.version != next {
            return Err(DeltaError::ChangesGone { version: next });
        }
        next += 1;
    }
    if next <= until { Err(DeltaError::ChangesGone { version: next }) } else { Ok(commits) }
}

/// Turns commits into deltas, one after the other: a commit may change the schema the next is read with.
struct Reader {
    files: Files,
    file_times: FileTimes,
    clock: Clock,
    /// The version whose metadata told the clock.
    told_at: Option<u64>,
}

impl Reader {
    async fn new(log: &Log, listing: &Listing, known: Option<Arc<State>>) -> Result<Self> {
        let state = match known {
            Some(state) => Some(state),
            None => timeline::newest_state(log).await?.map(Arc::new),
        };
        let policy = log.storage().policy().clone();
        let file_times = times::file_times(listing);
        Ok(match state {
            Some(state) => Self {
                files: Files::new(policy, &state.protocol, &state.metadata),
                clock: Clock::of(&state.metadata),
                told_at: Some(state.version),
                file_times,
            },
            None => {
                let clock = Clock::of_commits(log, listing).await?;
                Self { files: Files::without_schema(policy), clock, told_at: None, file_times }
            }
        })
    }

    fn delta(&mut self, commit: &Commit) -> Result<VersionDelta> {
        self.files.follow(commit);
        if let Some(metadata) = commit.metadata().filter(|_| self.told_at.is_some_and(|it| commit.version > it)) {
            self.clock = Clock::of(metadata);
        }
        let told = details::of_commit(self.files.policy(), commit);
        let stamp = told.stamp.filter(|_| self.clock.stamps(commit.version));
        let at = stamp.or_else(|| self.file_times.get(commit.version)).unwrap_or(Millis(0));
        let mut delta = VersionDelta {
            version: version_of(commit.version, at),
            write_id: commit.info().and_then(|it| it.txn_id.clone()),
            applications: Vec::new(),
            action: told.action,
            native_action: told.native_action,
            rows: RowDelta::default(),
            data_change: false,
            blind_append: told.details.blind_append.unwrap_or(false),
            schema_changed: commit.metadata().is_some(),
            protocol_changed: commit.protocol().is_some(),
            claims: Vec::new(),
        };
        for action in commit.actions() {
            self.apply(action, &mut delta)?;
        }
        Ok(delta)
    }

    fn apply(&self, action: &Action, delta: &mut VersionDelta) -> Result<()> {
        match action {
            Action::Add(add) => {
                delta.data_change |= add.data_change;
                let (file, vector) = self.files.added(add)?;
                delta.rows.added.push(file);
                delta.rows.added_deletes.extend(vector);
            }
            Action::Remove(remove) => {
                delta.data_change |= remove.data_change;
                let path = self.files.policy().resolve_uri(&remove.path)?;
                let vector = remove.deletion_vector.as_ref().map(|it| it.unique_id());
                delta.rows.removed.push(FileKey { path, vector });
            }
            Action::Cdc(cdc) => delta.rows.change_files.push(ChangeFile {
                path: self.files.policy().resolve_uri(&cdc.path)?,
                encoding: Encoding::Parquet,
                bytes: files::bytes(&cdc.path, cdc.size)?,
                partition: self.files.partition(&cdc.path, &cdc.partition_values)?,
            }),
            Action::Txn(txn) => {
                delta.applications.push(Application { id: txn.app_id.clone(), version: txn.version });
            }
            Action::DomainMetadata(domain) => delta.claims.push(Claim::Named(format!("domain {}", domain.domain))),
            Action::Protocol(_)
            | Action::Metadata(_)
            | Action::CommitInfo(_)
            | Action::Sidecar(_)
            | Action::CheckpointMetadata(_)
            | Action::Unknown(_) => (),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
