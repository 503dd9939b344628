//! Which versions stay.
use std::collections::BTreeSet;

use lakebed_core::{
    ErrorKind, Result,
    maintain::Retain,
    version::{AsOf, Millis, Ref},
};

use super::{Upkeep, before};
use crate::{
    checkpoint::Checkpoint,
    log::{Listing, Log, LogError, can_do_without},
    state::State,
    timeline::{
        number,
        resolve::{self, candidates},
    },
};

/// Versions that stay, oldest first; the head is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    versions: Vec<u64>,
    /// Those whose commit is there.
    commits: BTreeSet<u64>,
}

/// Versions next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Whether the commit of the first is there; those of the others are.
    pub(super) whole: bool,
}

impl Kept {
    /// The head alone.
    pub(super) fn head(state: &State) -> Self {
        Self { versions: vec![state.version], commits: commits(state.listing()) }
    }

    /// What a rule or a ref keeps, and the listing of the whole log. What cannot be rebuilt any more is not kept.
    pub(super) async fn of(
        upkeep: Upkeep<'_>,
        state: &State,
        retain: &Retain,
        refs: &[Ref],
    ) -> Result<(Self, Listing)> {
        let listing = upkeep.head.log().listing().await?;
        let readable = readable(&listing, state.version);
        let newest = readable.len().saturating_sub(retain.at_least.max(1));
        let mut from = readable[newest];
        let cuts = retain.newer_than.into_iter().chain(retain.age.map(|it| before(upkeep.now(), it)));
        if let Some(cut) = cuts.min() {
            // Those after the one that was the newest then.
            let current = current_at(upkeep, cut).await?;
            let next = readable.iter().find(|it| current.is_none_or(|current| **it > current));
            from = from.min(next.copied().unwrap_or(state.version));
        }
        let named = retain.ids.iter().chain(refs.iter().map(|it| &it.version));
        let named = named.map(number).collect::<Result<BTreeSet<u64>, _>>()?;
        let versions = readable.into_iter().filter(|it| *it >= from || named.contains(it)).collect();
        let kept = Self { versions, commits: commits(&listing) };
        Ok((kept, listing))
    }

    /// Keeps all versions of the log from `from` on, too.
    pub(super) fn keep_from(&mut self, from: u64, listing: &Listing) {
        let head = self.versions.last().copied().unwrap_or(0);
        let all: BTreeSet<u64> =
            readable(listing, head).into_iter().filter(|it| *it >= from).chain(self.versions.drain(..)).collect();
        self.versions = all.into_iter().collect();
    }

    pub(super) fn oldest(&self) -> u64 {
        self.versions.first().copied().unwrap_or(0)
    }

    /// Runs of versions, oldest first: each but the first of a run is the one before it and its own commit.
    pub(super) fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for version in &self.versions {
            let whole = self.commits.contains(version);
            match runs.last_mut() {
                Some(run) if run.last + 1 == *version && whole => run.last = *version,
                _ => runs.push(Run { first: *version, last: *version, whole }),
            }
        }
        runs
    }
}

fn commits(listing: &Listing) -> BTreeSet<u64> {
    listing.commits().map(|it| it.file.version).collect()
}

/// The versions up to the head that can be rebuilt, oldest first; the head is one of them: it was read.
fn readable(listing: &Listing, head: u64) -> Vec<u64> {
    let mut readable: Vec<u64> = candidates(listing).iter().map(|it| it.file.version).filter(|it| *it < head).collect();
    readable.push(head);
    readable
}

/// The version that was the newest at a moment; `None` if none that is left is so old.
pub(super) async fn current_at(upkeep: Upkeep<'_>, at: Millis) -> Result<Option<u64>> {
    match resolve::resolve(upkeep.head, &AsOf::Time(at)).await {
        Ok(resolved) => Ok(Some(number(&resolved.version.id)?)),
        // There is a table: it was read before.
        Err(err) if err.kind() == ErrorKind::NotFound && err.cause::<LogError>().is_none() => Ok(None),
        Err(err) => Err(err),
    }
}

/// The version whose checkpoint `version` is rebuilt from: the newest that can be opened; 0 without one.
pub(super) async fn start(log: &Log, listing: &Listing, version: u64) -> Result<u64> {
    let (complete, _) = listing.checkpoints();
    for files in complete.iter().filter(|it| it.version <= version) {
        match Checkpoint::open(log, files, None).await {
            Ok(opened) if opened.small.protocol.is_some() && opened.small.metadata.is_some() => {
                return Ok(files.version);
            }
            Ok(_) => (),
            Err(err) if can_do_without(&err) => (),
            Err(err) => return Err(err),
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(versions: &[u64], gone: &[u64], expected: &str) {
        let commits = (0..10).filter(|it| !gone.contains(it)).collect();
        let runs = Kept { versions: versions.to_vec(), commits }.runs();
        let shown = runs.iter().map(|it| format!("{}-{}{}", it.first, it.last, if it.whole { "" } else { "!" }));
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn a_run_goes_as_far_as_commits_tell() {
        check(&[7], &[], "7-7");
        check(&[0, 1, 4, 6, 7], &[], "0-1 4-4 6-7");
        check(&[3, 4, 5, 6], &[5], "3-4 5-6!");
        check(&[4, 5], &[4], "4-5!");
    }
}
