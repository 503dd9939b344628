//! Which version a moment, a number or a tag stands for.
//!
//! A moment stands for the newest version that was visible then. Where commits carry their time, the one is found by
//! bisection, reading the first kilobytes of a few commits; only on that side of the version that turned it on where the
//! moment lies. Elsewhere the times of the listing decide, at the cost of one look at the newest commit.
//! Spec: Delta PROTOCOL.md, "In-Commit Timestamps", "Recommendations for Readers of Tables with In-Commit Timestamps".
use std::collections::BTreeSet;

use lakebed_core::{
    Result,
    version::{AsOf, Millis, Resolved},
};

use super::{
    number, refs,
    times::{self, Clock, FileTimes},
    version_of,
};
use crate::{
    error::DeltaError,
    layout::LogFileKind,
    log::{Listed, Listing},
    state::{Head, State},
};

const FILE_TIMES: &str = "times are those of the log's files, which change when a table is copied; \
     `delta.enableInCommitTimestamps` gives commits a time of their own";

/// The version that `as_of` stands for, whether or not this build can read its rows.
///
/// # Errors
/// Not found when it stands for none; the message names the newest, or the earliest that can be read.
pub(crate) async fn resolve(head: &Head, as_of: &AsOf) -> Result<Resolved> {
    match as_of {
        AsOf::Latest => {
            let state = head.newest().await?;
            Ok(resolved(&state, "the newest version".to_owned()))
        }
        AsOf::Version(id) => {
            let version = number(id)?;
            let state = head.at(version).await?;
            Ok(resolved(&state, format!("version {version} by number")))
        }
        AsOf::Ref(name) => by_tag(head, name).await,
        AsOf::Time(at) => by_time(head, *at).await,
    }
}

fn resolved(state: &State, rule: String) -> Resolved {
    Resolved { version: version_of(state.version, state.committed_at), rule, warnings: state.warnings() }
}

async fn by_tag(head: &Head, name: &str) -> Result<Resolved> {
    let tags = refs::refs(&*head.newest().await?).await?;
    let Some(tag) = tags.iter().find(|it| it.name == name) else {
        let known = tags.into_iter().map(|it| it.name).collect();
        return Err(DeltaError::NoRef { name: name.to_owned(), known }.into());
    };
    let version = number(&tag.version)?;
    let state = head.at(version).await?;
    Ok(resolved(&state, format!("tag `{name}` names version {version}")))
}

async fn by_time(head: &Head, at: Millis) -> Result<Resolved> {
    let listing = head.log().listing().await?;
    let clock = Clock::of_table(head, &listing).await?;
    let file_times = times::file_times(&listing);
    let search = Search { head, clock, file_times: &file_times };
    let mut candidates = candidates(&listing);
    // A checkpoint does not hold the time of its commit; where stamps decide, the commit itself is needed.
    candidates.retain(|it| it.file.kind == LogFileKind::Commit || !clock.stamps(it.file.version));
    let (before, since): (Vec<_>, Vec<_>) = candidates.iter().partition(|it| !clock.stamps(it.file.version));
    // The stamped side is the newer one: if its first version is late enough, the other side need not be looked at.
    let (mut found, mut next) = search.around(&since, at).await?;
    if found.is_none() {
        let (earlier, later) = search.around(&before, at).await?;
        (found, next) = (earlier, later.or(next));
    }
    let Some((version, committed_at)) = found else {
        return Err(search.too_early(next, at).await?);
    };
    let source = if clock.stamps(version) { "in-commit timestamps" } else { "times of log files" };
    let mut rule = format!("the newest version committed at or before {at}, by {source}");
    let mut warnings = Vec::new();
    match next {
        Some((next, time)) => rule.push_str(&format!("; the next is {next} of {time}")),
        None if at > committed_at => {
            rule.push_str("; there is no later one");
            warnings.push(format!("{at} is later than the newest version, {version} of {committed_at}"));
        }
        None => (),
    }
    if !clock.stamps(version) {
        warnings.push(FILE_TIMES.to_owned());
        warnings.extend(mended(&file_times));
    }
    Ok(Resolved { version: version_of(version, committed_at), rule, warnings })
}

fn mended(file_times: &FileTimes) -> Option<String> {
    let first = file_times.mended.first()?;
    let count = file_times.mended.len();
    Some(format!(
        "the files of {count} commits, first of version {first}, are older than the commit before: times were moved up"
    ))
}

/// Commits of versions that can be rebuilt, oldest first. Where only a checkpoint is left, it stands for its commit.
pub(crate) fn candidates(listing: &Listing) -> Vec<Listed> {
    let (checkpoints, _) = listing.checkpoints();
    let complete: BTreeSet<u64> = checkpoints.iter().map(|it| it.version).collect();
    let commits: BTreeSet<u64> = listing.commits().map(|it| it.file.version).collect();
    let bare = checkpoints.iter().rev().filter(|it| !commits.contains(&it.version));
    let mut all: Vec<Listed> = bare.filter_map(|it| it.files.first().cloned()).collect();
    all.extend(listing.commits().cloned());
    all.sort_by_key(|it| it.file.version);
    all.dedup_by_key(|it| it.file.version);
    let mut readable: Option<u64> = None;
    all.retain(|it| {
        let version = it.file.version;
        let follows = readable.is_some_and(|it| it.checked_add(1) == Some(version)) && commits.contains(&version);
        let stands = complete.contains(&version) || version == 0;
        if follows || stands {
            readable = Some(version);
        }
        follows || stands
    });
    all
}

/// A version and its time.
type Dated = (u64, Millis);

struct Search<'a> {
    head: &'a Head,
    clock: Clock,
    file_times: &'a FileTimes,
}

impl Search<'_> {
    /// The newest of `commits`, whose times ascend, that is not later than `at`, and the one after it.
    async fn around(&self, commits: &[&Listed], at: Millis) -> Result<(Option<Dated>, Option<Dated>)> {
        let (mut low, mut high) = (0, commits.len());
        let (mut found, mut next) = (None, None);
        while low < high {
            let middle = low + (high - low) / 2;
            let time = self.time(commits[middle]).await?;
            let dated = Some((commits[middle].file.version, time));
            if time <= at {
                (found, low) = (dated, middle + 1);
            } else {
                (next, high) = (dated, middle);
            }
        }
        Ok((found, next))
    }

    async fn time(&self, commit: &Listed) -> Result<Millis> {
        let version = commit.file.version;
        let Clock::Stamps { since } = self.clock else { return Ok(self.file_time(commit)) };
        if version < since {
            return Ok(self.file_time(commit));
        }
        let info = self.head.log().read_commit_info(version, commit.bytes).await?;
        let file = commit.file.path();
        let stamp = info.and_then(|it| it.in_commit_timestamp).ok_or(DeltaError::NoCommitTime { file, since })?;
        Ok(Millis(stamp))
    }

    fn file_time(&self, commit: &Listed) -> Millis {
        self.file_times.get(commit.file.version).unwrap_or(commit.modified_at)
    }

    /// `first` is the oldest that can be rebuilt.
    async fn too_early(&self, first: Option<Dated>, at: Millis) -> Result<lakebed_core::Error> {
        let Some((earliest, committed_at)) = first else {
            // Nothing can be rebuilt: opening says what is missing.
            return match self.head.newest().await {
                Err(err) => Ok(err),
                Ok(state) => {
                    Ok(DeltaError::TimeBeforeFirst { at, earliest: state.version, committed_at: state.committed_at }
                        .into())
                }
            };
        };
        Ok(DeltaError::TimeBeforeFirst { at, earliest, committed_at }.into())
    }
}
