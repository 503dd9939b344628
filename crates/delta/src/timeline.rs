//! What was done to a table: its commits as a timeline, and which of them a moment or a name stands for.
//!
//! 1. One listing of the log shows which commits are left, and when their files were written.
//! 2. The table's newest metadata say whether commits carry their own time ([`times`]).
//! 3. Each commit of the span is read, several at once ([`details`]): whole where it is small, else its first line. One
//!    that cannot be read stays in the history, with the reason: history must not depend on rows that can be read.
//! 4. A version of which only a checkpoint is left stands in the history without details.
//!
//! Spec: Delta PROTOCOL.md, "Commit Provenance Information", "In-Commit Timestamps".
use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Result,
    timeline::{Action, Details, Instant, State as Stage, Timeline},
    version::{AsOf, Millis, Span, Version, VersionId},
};

use crate::{
    error::DeltaError,
    log::{Listed, Listing, Log, LogError},
    state::State,
};

pub(crate) mod details;
pub(crate) mod refs;
pub(crate) mod resolve;
pub(crate) mod times;

use times::Clock;

/// Commits read at once.
const AT_ONCE: usize = 16;
/// Commits up to this size are read whole, to count their files.
const WHOLE: u64 = 4 << 20;

/// The commits of `span`, oldest first.
///
/// # Errors
/// Not found when there is no table, or `span` names a version that does not exist.
pub(crate) async fn history(log: &Log, span: &Span) -> Result<Timeline> {
    let listing = log.listing().await?;
    let (after, until) = bounds(log, &listing, span).await?;
    let clock = Clock::of_table(log, &listing).await?;
    let file_times = times::file_times(&listing);
    let wanted = |version: u64| after.is_none_or(|it| version > it) && version <= until;
    let commits: Vec<Listed> = listing.commits().filter(|it| wanted(it.file.version)).cloned().collect();
    let read = stream::iter(commits).map(|it| instant(log, clock, &file_times, it)).buffered(AT_ONCE);
    let mut instants: Vec<(u64, Instant)> = read.try_collect().await?;
    let known: BTreeSet<u64> = instants.iter().map(|(version, _)| *version).collect();
    let orphans = listing.checkpoints().0.into_iter().filter(|it| wanted(it.version) && !known.contains(&it.version));
    instants.extend(orphans.map(|it| (it.version, checkpoint_only(it.version, file_times.get(it.version)))));
    instants.sort_by_key(|(version, _)| *version);
    instants.dedup_by_key(|(version, _)| *version);
    Ok(Timeline::new(instants.into_iter().map(|(_, it)| it).collect()))
}

/// The version as the rest of Lakebed knows it.
pub(crate) fn version_of(version: u64, committed_at: Millis) -> Version {
    Version { id: version.into(), committed_at, parent: version.checked_sub(1).map(VersionId::from), schema_id: None }
}

/// The number of a version id.
pub(crate) fn number(id: &VersionId) -> Result<u64, DeltaError> {
    let text = id.as_str();
    let plain = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let number = if plain { text.parse::<u64>().ok().filter(|it| i64::try_from(*it).is_ok()) } else { None };
    number.ok_or_else(|| DeltaError::NotAVersion(text.to_owned()))
}

/// The versions of a span: after the first (none for all), up to the second.
pub(crate) async fn bounds(log: &Log, listing: &Listing, span: &Span) -> Result<(Option<u64>, u64)> {
    let after = span.after.as_ref().map(number).transpose()?;
    let newest = listing.newest().unwrap_or(0);
    let until = match &span.until {
        AsOf::Latest => newest,
        AsOf::Version(id) => match number(id)? {
            wanted if wanted > newest => return Err(LogError::TooNew { wanted, newest }.into()),
            wanted => wanted,
        },
        AsOf::Time(_) | AsOf::Ref(_) => number(&resolve::resolve(log, &span.until).await?.version.id)?,
    };
    Ok((after, until))
}

async fn instant(log: &Log, clock: Clock, file_times: &times::FileTimes, commit: Listed) -> Result<(u64, Instant)> {
    let version = commit.file.version;
    let told = match details::read(log, &commit, WHOLE).await {
        Ok(told) => told,
        Err(err) if times::is_damage(&err) => details::Told::unreadable(&err),
        Err(err) => return Err(err),
    };
    let stamp = told.stamp.filter(|_| clock.stamps(version));
    let at = stamp.or_else(|| file_times.get(version)).unwrap_or(commit.modified_at);
    let instant = Instant {
        requested_at: told.started_at.unwrap_or(at),
        action: told.action,
        state: Stage::Completed { at, version: Some(version_of(version, at)) },
        native_action: told.native_action,
        details: told.details,
    };
    Ok((version, instant))
}

/// A version whose commit is gone and whose checkpoint is not.
fn checkpoint_only(version: u64, at: Option<Millis>) -> Instant {
    let at = at.unwrap_or(Millis(0));
    let native = serde_json::json!({ "checkpoint": version });
    Instant {
        requested_at: at,
        action: Action::Other,
        state: Stage::Completed { at, version: Some(version_of(version, at)) },
        native_action: String::new(),
        details: Details { native, ..Details::default() },
    }
}

/// The newest state's metadata, where it can be had; for rules that depend on the table's properties.
pub(crate) async fn newest_state(log: &Log) -> Result<Option<State>> {
    match State::open(log, None).await {
        Ok(state) => Ok(Some(state)),
        Err(err) if times::is_damage(&err) => Ok(None),
        Err(err) => Err(err),
    }
}

#[cfg(test)]
mod tests;
