//! What was done to a table: its commits as a timeline, and which of them a moment or a name stands for.
//!
//! 1. One listing of the log shows which commits are left, and when their files were written.
//! 2. Each commit of the span is read, several at once ([`details`]): whole where it is small, else its first line. One
//!    that cannot be read stays in the history, with the reason: history must not depend on rows that can be read. Who
//!    asks for the newest few pays for those alone.
//! 3. The newest commit, or the table's newest metadata, say whether commits carry their own time ([`times`]).
//! 4. A version of which only a checkpoint is left stands in the history without details.
//!
//! Spec: Delta PROTOCOL.md, "Commit Provenance Information", "In-Commit Timestamps".
use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Result,
    timeline::{Action, Details, Instant, State as Stage, Timeline},
    version::{AsOf, Millis, Span, Version, VersionId},
};

use crate::{
    error::DeltaError,
    log::{Listed, Listing, Log, LogError, is_damage},
    state::{Head, State},
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

/// The commits of `span`, oldest first; with a `limit` only the newest are read.
///
/// # Errors
/// Not found when there is no table, or `span` names a version that does not exist.
pub(crate) async fn history(head: &Head, span: &Span, limit: Option<usize>) -> Result<Timeline> {
    let log = head.log();
    let listing = log.listing().await?;
    let (after, until) = bounds(head, &listing, span).await?;
    let wanted = |version: u64| after.is_none_or(|it| version > it) && version <= until;
    let checkpoints = listing.checkpoints().0.into_iter().map(|it| (it.version, None));
    let commits = listing.commits().map(|it| (it.file.version, Some(it.clone())));
    let versions: BTreeMap<u64, Option<Listed>> = checkpoints.chain(commits).filter(|it| wanted(it.0)).collect();
    let earlier = limit.map_or(0, |it| versions.len().saturating_sub(it));
    let newest = versions.into_iter().skip(earlier);
    let read: Vec<Read> = stream::iter(newest).map(|it| read(log, it)).buffered(AT_ONCE).try_collect().await?;
    let clock = clock(head, &listing, read.last()).await?;
    let file_times = times::file_times(&listing);
    let instants = read.into_iter().map(|it| instant(clock, &file_times, it));
    Ok(Timeline::new(instants.collect()).with_earlier(earlier))
}

/// The table's clock, which the newest commit may already have settled.
async fn clock(head: &Head, listing: &Listing, last: Option<&Read>) -> Result<Clock> {
    match last.filter(|it| Some(it.version) == listing.newest()).and_then(|it| it.told.as_ref()) {
        Some((_, Ok(told))) if told.stamp.is_none() => Ok(Clock::Files),
        Some(_) => Clock::of_metadata(head, listing).await,
        None => Clock::of_table(head, listing).await,
    }
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
pub(crate) async fn bounds(head: &Head, listing: &Listing, span: &Span) -> Result<(Option<u64>, u64)> {
    let after = span.after.as_ref().map(number).transpose()?;
    let newest = listing.newest().unwrap_or(0);
    let until = match &span.until {
        AsOf::Latest => newest,
        AsOf::Version(id) => match number(id)? {
            wanted if wanted > newest => return Err(LogError::TooNew { wanted, newest }.into()),
            wanted => wanted,
        },
        AsOf::Time(_) | AsOf::Ref(_) => number(&resolve::resolve(head, &span.until).await?.version.id)?,
    };
    Ok((after, until))
}

/// A version, and what its commit says or why it cannot be read; nothing where only a checkpoint is left.
struct Read {
    version: u64,
    told: Option<(Listed, Result<details::Told>)>,
}

async fn read(log: &Log, (version, commit): (u64, Option<Listed>)) -> Result<Read> {
    let Some(commit) = commit else { return Ok(Read { version, told: None }) };
    match details::read(log, &commit, WHOLE).await {
        Err(err) if !is_damage(&err) => Err(err),
        told => Ok(Read { version, told: Some((commit, told)) }),
    }
}

fn instant(clock: Clock, file_times: &times::FileTimes, read: Read) -> Instant {
    let version = read.version;
    let Some((commit, told)) = read.told else { return checkpoint_only(version, file_times.get(version)) };
    let told = told.unwrap_or_else(|err| details::Told::unreadable(&err));
    let stamp = told.stamp.filter(|_| clock.stamps(version));
    let at = stamp.or_else(|| file_times.get(version)).unwrap_or(commit.modified_at);
    Instant {
        requested_at: told.started_at.unwrap_or(at),
        action: told.action,
        state: Stage::Completed { at, version: Some(version_of(version, at)) },
        native_action: told.native_action,
        details: told.details,
    }
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
        Err(err) if is_damage(&err) => Ok(None),
        Err(err) => Err(err),
    }
}

#[cfg(test)]
mod tests;
