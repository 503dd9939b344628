//! Which files of the log make up one version.
//!
//! A segment is a complete checkpoint (or none, then version 0 is the start) and the commits after it up to the
//! version. A compacted file stands for the commits of its range when the whole range lies between; among all
//! ways to cover the versions the one with the fewest files is taken.
//!
//! Spec: Delta PROTOCOL.md, "Log Compaction Files", "Checkpoints".
use std::collections::BTreeMap;

use super::{
    LogError,
    listing::{CheckpointFiles, Listed, Listing},
};

/// What to read for one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) version: u64,
    pub(crate) checkpoint: Option<CheckpointFiles>,
    /// Commits and compacted files after the checkpoint, oldest first.
    pub(crate) commits: Vec<Listed>,
}

/// Whether compacted files may stand for commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compacted {
    Use,
    /// One of them is damaged: read the commits themselves.
    Avoid,
}

impl Segment {
    /// The segment of `version` on `checkpoint`.
    ///
    /// # Errors
    /// [`LogError::Gap`] or [`LogError::NoBase`] naming the first version that nothing covers.
    pub(crate) fn on(
        listing: &Listing,
        version: u64,
        checkpoint: Option<CheckpointFiles>,
        compacted: Compacted,
    ) -> Result<Self, LogError> {
        let first = checkpoint.as_ref().map_or(0, |it| it.version + 1);
        let commits = cover(listing, first, version, compacted).map_err(|missing| {
            let readable = missing.checked_sub(1).filter(|_| checkpoint.is_some() || missing > 0);
            let next = listing.commits().map(|it| it.file.version).find(|it| *it > missing && *it <= version);
            match next {
                Some(next) if checkpoint.is_some() || missing > 0 => LogError::Gap { missing, next, readable },
                _ => LogError::NoBase { missing, readable },
            }
        })?;
        Ok(Self { version, checkpoint, commits })
    }
}

/// The fewest files that cover `first..=last`, oldest first; the first version not covered otherwise.
fn cover(listing: &Listing, first: u64, last: u64, compacted: Compacted) -> Result<Vec<Listed>, u64> {
    let inside = |it: &&Listed| (first..=last).contains(&it.file.version);
    let commits: BTreeMap<u64, &Listed> = listing.commits().filter(inside).map(|it| (it.file.version, it)).collect();
    let mut jumps: BTreeMap<u64, Vec<(u64, &Listed)>> = BTreeMap::new();
    if compacted == Compacted::Use {
        for (from, until, it) in listing.compacted().filter(|(from, until, _)| *from >= first && *until <= last) {
            jumps.entry(from).or_default().push((until, it));
        }
    }
    // Without compacted files the commits must simply be dense; no table is needed to see it.
    if jumps.is_empty() {
        let mut wanted = first;
        for version in commits.keys() {
            if *version != wanted {
                return Err(wanted);
            }
            wanted += 1;
        }
        return if wanted > last { Ok(commits.into_values().cloned().collect()) } else { Err(wanted) };
    }
    cheapest(&commits, &jumps, first, last)
}

/// The way from `first` to past `last` with the fewest files; every way goes through versions that are listed.
fn cheapest(
    commits: &BTreeMap<u64, &Listed>,
    jumps: &BTreeMap<u64, Vec<(u64, &Listed)>>,
    first: u64,
    last: u64,
) -> Result<Vec<Listed>, u64> {
    // How many files it takes from a version to past `last`, and the first of them. A version that is no key
    // cannot be covered.
    let mut best: BTreeMap<u64, (usize, &Listed, u64)> = BTreeMap::new();
    let starts: std::collections::BTreeSet<u64> = commits.keys().chain(jumps.keys()).copied().collect();
    for version in starts.iter().rev() {
        let single = commits.get(version).map(|it| (*version, *it));
        let ways = jumps.get(version).into_iter().flatten().copied().chain(single);
        for (until, file) in ways {
            let rest = if until == last { Some(0) } else { best.get(&(until + 1)).map(|(count, ..)| *count) };
            let Some(rest) = rest else { continue };
            if best.get(version).is_none_or(|(count, ..)| rest + 1 < *count) {
                best.insert(*version, (rest + 1, file, until + 1));
            }
        }
    }
    let mut files = Vec::new();
    let mut at = first;
    while at <= last {
        let Some((_, file, next)) = best.get(&at) else {
            return Err(first_uncovered(commits, jumps, first, last));
        };
        files.push((*file).clone());
        at = *next;
    }
    Ok(files)
}

/// The first version in the range that neither a commit nor a compacted file covers; `last` if all are.
fn first_uncovered(
    commits: &BTreeMap<u64, &Listed>,
    jumps: &BTreeMap<u64, Vec<(u64, &Listed)>>,
    first: u64,
    last: u64,
) -> u64 {
    let mut ranges: Vec<(u64, u64)> = commits.keys().map(|it| (*it, *it)).collect();
    ranges.extend(jumps.iter().flat_map(|(from, ways)| ways.iter().map(|(until, _)| (*from, *until))));
    ranges.sort_unstable();
    let mut next = first;
    for (from, until) in ranges {
        if from > next {
            break;
        }
        next = next.max(until + 1);
    }
    next.min(last)
}

#[cfg(test)]
mod tests {
    use super::{super::listing::tests::listing, *};

    fn check(names: &str, version: u64, expected: &str) {
        let listing = listing(names);
        let (mut checkpoints, _) = listing.checkpoints();
        checkpoints.retain(|it| it.version <= version);
        let base = checkpoints.into_iter().next();
        let shown = match Segment::on(&listing, version, base, Compacted::Use) {
            Ok(it) => {
                let base = it.checkpoint.map(|it| format!("on {}", it.version));
                let files = it.commits.iter().map(|it| match it.file.kind {
                    crate::layout::LogFileKind::Compacted { until } => format!("{}-{until}", it.file.version),
                    _ => it.file.version.to_string(),
                });
                base.into_iter().chain(files).collect::<Vec<_>>().join(" ")
            }
            Err(err) => err.to_string(),
        };
        assert_eq!(shown, expected, "{names}");
    }

    #[test]
    fn a_version_starts_at_the_newest_checkpoint_below_it() {
        check("0.json 1.json 1.checkpoint 2.json", 2, "on 1 2");
        check("0.json 1.json 1.checkpoint 2.json", 0, "0");
        check("1.checkpoint", 1, "on 1");
        check("0.json 1.json 2.json", 2, "0 1 2");
    }

    #[test]
    fn a_gap_is_named() {
        check("0.json 2.json", 2, "log version 1 is gone, but 2 is there");
        check("10.checkpoint 11.json 13.json", 13, "log version 12 is gone, but 13 is there");
        check("10.checkpoint 11.json 13.json", 11, "on 10 11");
        check("0.json 2.checkpoint 2.json 3.json", 3, "on 2 3");
        check("1.json 2.json", 2, "log version 0 is gone, and no checkpoint covers it");
    }

    #[test]
    fn compacted_files_stand_for_their_range_when_it_fits() {
        let all: String = (0..=25).map(|it| format!("{it}.json ")).collect();
        check(
            &format!("{all} 0-5.compacted 6-15.compacted 4-9.compacted"),
            25,
            "0-5 6-15 16 17 18 19 20 21 22 23 24 25",
        );
        check("0.json 1.json 2.json 3.json 1-2.compacted", 1, "0 1");
        check("0.json 1.json 1.checkpoint 2.json 1-2.compacted", 2, "on 1 2");
        check("0.json 1.json 2.json 3.json 0-1.compacted 1-3.compacted", 3, "0 1-3");
        check("0.json 3.json 1-2.compacted", 3, "0 1-2 3");
        check("0.json 4.json 1-2.compacted", 4, "log version 3 is gone, but 4 is there");
    }
}
