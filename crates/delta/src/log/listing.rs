//! What lies in `_delta_log/`.
use futures::TryStreamExt;
use lakebed_core::{Result, storage::Storage, version::Millis};

use super::LogError;
use crate::layout::{self, CheckpointName, LOG, LogFile, LogFileKind};

/// A file of the log as the store lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) file: LogFile,
    pub(crate) bytes: u64,
    pub(crate) modified_at: Millis,
    pub(crate) etag: Option<String>,
}

/// The files of the log from one version on, in name order: versions ascend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) files: Vec<Listed>,
    /// The version it starts at; older ones may exist.
    pub(crate) first: u64,
    /// Files that look like the log's but are no part of it: commits under unique names.
    pub(crate) staged: Vec<String>,
}

/// The files of one checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointFiles {
    pub(crate) version: u64,
    /// In order of parts.
    pub(crate) files: Vec<Listed>,
}

impl CheckpointFiles {
    /// What tells it from other checkpoints of its version.
    pub(crate) fn name(&self) -> String {
        self.files.first().map(|it| it.file.to_string()).unwrap_or_default()
    }
}

impl Listing {
    /// Lists versions `first..=last`. Empty when there is nothing, or no folder.
    ///
    /// A listing is ascending, so it ends at the first name past `last`: later pages are never asked for.
    pub(crate) async fn read(storage: &Storage, first: u64, last: u64) -> Result<Self> {
        let start = if first == 0 { String::new() } else { layout::before(first) };
        let mut objects = storage.list_after(LOG, &start);
        let mut listing = Self { first, ..Self::default() };
        while let Some(object) = objects.try_next().await? {
            let name = object.path.rsplit('/').next().unwrap_or_default();
            // Names of versions start with a digit; `_last_checkpoint` and the folders sort behind them all.
            if name.as_bytes().first().is_some_and(|it| *it > b'9') {
                break;
            }
            let Some(file) = layout::parse(name) else { continue };
            if file.version > last {
                break;
            }
            if file.version < first {
                continue;
            }
            if file.kind == LogFileKind::Staged {
                listing.staged.push(name.to_owned());
                continue;
            }
            let (bytes, modified_at, etag) = (object.bytes, object.modified_at, object.etag);
            listing.files.push(Listed { file, bytes, modified_at, etag });
        }
        Ok(listing)
    }

    /// The listing, unless it shows that there is no table.
    pub(crate) fn some_table(self, storage: &Storage) -> Result<Self> {
        let some = self.commits().next().is_some() || self.newest().is_some();
        if some { Ok(self) } else { Err(LogError::NotATable { location: storage.location().to_owned() }.into()) }
    }

    /// The newest version a commit or a checkpoint names.
    pub(crate) fn newest(&self) -> Option<u64> {
        let counts = |it: &&Listed| matches!(it.file.kind, LogFileKind::Commit | LogFileKind::Checkpoint(_));
        self.files.iter().filter(counts).map(|it| it.file.version).max()
    }

    /// Commits, oldest first.
    pub(crate) fn commits(&self) -> impl DoubleEndedIterator<Item = &Listed> {
        self.files.iter().filter(|it| it.file.kind == LogFileKind::Commit)
    }

    /// The checksum file of `version`, if it is not empty.
    pub(crate) fn checksum(&self, version: u64) -> Option<&Listed> {
        let wanted = |it: &&Listed| it.file.kind == LogFileKind::Checksum && it.file.version == version && it.bytes > 0;
        self.files.iter().rev().find(wanted)
    }

    /// Compacted files with the range they stand for.
    pub(crate) fn compacted(&self) -> impl Iterator<Item = (u64, u64, &Listed)> {
        self.files.iter().filter_map(|it| match it.file.kind {
            LogFileKind::Compacted { until } if it.bytes > 0 => Some((it.file.version, until, it)),
            _ => None,
        })
    }

    /// Checkpoints that may be complete, newest first, and what is said of those that are not.
    ///
    /// A checkpoint in parts is complete when all parts of one count are there; parts of two counts can lie at one
    /// version. Whether the sidecars of a V2 checkpoint are there shows when it is read. At one version a V2
    /// checkpoint comes first, then one file, then parts.
    pub(crate) fn checkpoints(&self) -> (Vec<CheckpointFiles>, Vec<String>) {
        let mut complete = Vec::new();
        let mut warnings = Vec::new();
        let mut rest = &self.files[..];
        while let Some(first) = rest.first() {
            let version = first.file.version;
            let (here, later) = rest.split_at(rest.iter().take_while(|it| it.file.version == version).count());
            rest = later;
            let mut found = complete_at(here, &mut warnings);
            found.reverse();
            complete.append(&mut found);
        }
        complete.reverse();
        (complete, warnings)
    }
}

/// The complete checkpoints among the files of one version, best first.
fn complete_at(here: &[Listed], warnings: &mut Vec<String>) -> Vec<CheckpointFiles> {
    let mut unique = Vec::new();
    let mut classic = Vec::new();
    let mut parts: Vec<(u32, Vec<Listed>)> = Vec::new();
    for it in here {
        let LogFileKind::Checkpoint(name) = &it.file.kind else { continue };
        if it.bytes == 0 {
            warnings.push(format!("{} is empty: ignored", it.file));
            continue;
        }
        match name {
            CheckpointName::Unique { .. } => unique.push(vec![it.clone()]),
            CheckpointName::Classic => classic.push(vec![it.clone()]),
            CheckpointName::Part { of, .. } => match parts.iter_mut().find(|(count, _)| count == of) {
                Some((_, files)) => files.push(it.clone()),
                None => parts.push((*of, vec![it.clone()])),
            },
        }
    }
    let version = here.first().map_or(0, |it| it.file.version);
    let mut whole = Vec::new();
    for (of, files) in parts {
        // Names are unique and parts in range, so the count alone tells.
        if files.len() as u64 == u64::from(of) {
            whole.push(files);
        } else {
            warnings.push(format!("checkpoint {version} has {} of {of} parts: ignored", files.len()));
        }
    }
    let all = unique.into_iter().chain(classic).chain(whole);
    all.map(|files| CheckpointFiles { version, files }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A listing of names as people write them: `0.json 1.json 1.checkpoint 1.checkpoint.1.2 3-5.compacted 5.crc`;
    /// a `!` at the end makes the file empty.
    pub(crate) fn listing(names: &str) -> Listing {
        let mut files: Vec<Listed> = names.split_whitespace().map(listed).collect();
        files.sort_by_key(|it| it.file.to_string());
        Listing { files, first: 0, staged: Vec::new() }
    }

    fn listed(name: &str) -> Listed {
        let (name, bytes) = name.strip_suffix('!').map_or((name, 10), |it| (it, 0));
        let (version, kind) = name.split_once('.').unwrap();
        let number = |it: &str| it.parse::<u64>().unwrap();
        let parts: Vec<&str> = kind.split('.').collect();
        let (version, kind) = match parts[..] {
            ["json"] => (number(version), LogFileKind::Commit),
            ["crc"] => (number(version), LogFileKind::Checksum),
            ["compacted"] => {
                let (from, until) = version.split_once('-').unwrap();
                (number(from), LogFileKind::Compacted { until: number(until) })
            }
            ["checkpoint"] => (number(version), LogFileKind::Checkpoint(CheckpointName::Classic)),
            ["checkpoint", "v2"] => {
                let name = CheckpointName::Unique { id: uuid::Uuid::nil(), json: true };
                (number(version), LogFileKind::Checkpoint(name))
            }
            ["checkpoint", part, of] => {
                let name = CheckpointName::Part { part: part.parse().unwrap(), of: of.parse().unwrap() };
                (number(version), LogFileKind::Checkpoint(name))
            }
            _ => panic!("{name}"),
        };
        Listed { file: LogFile { version, kind }, bytes, modified_at: Millis(0), etag: None }
    }

    fn check(names: &str, expected: &str) {
        let (found, warnings) = listing(names).checkpoints();
        let shown: Vec<String> = found.iter().map(|it| format!("{}x{}", it.version, it.files.len())).collect();
        let shown = [vec![shown.join(" ")], warnings].concat().join("; ");
        assert_eq!(shown, expected, "{names}");
    }

    #[test]
    fn a_checkpoint_is_complete_or_does_not_exist() {
        check("0.json", "");
        check("0.json 1.checkpoint 2.checkpoint.1.2 2.checkpoint.2.2", "2x2 1x1");
        check("1.checkpoint 2.checkpoint.2.2", "1x1; checkpoint 2 has 1 of 2 parts: ignored");
        check("1.checkpoint! 1.json", "; 00000000000000000001.checkpoint.parquet is empty: ignored");
        check(
            "4.checkpoint.1.2 4.checkpoint.1.3 4.checkpoint.2.3 4.checkpoint.3.3",
            "4x3; checkpoint 4 has 1 of 2 parts: ignored",
        );
        check("4.checkpoint 4.checkpoint.v2 4.checkpoint.1.1 4.json", "4x1 4x1 4x1");
    }

    #[test]
    fn the_best_checkpoint_of_a_version_comes_first() {
        let (found, _) = listing("4.checkpoint 4.checkpoint.v2 4.checkpoint.1.1 3.checkpoint").checkpoints();
        let names: Vec<String> = found.iter().map(|it| it.files[0].file.to_string()).collect();
        insta::assert_snapshot!(names.join("\n"), @r"
        00000000000000000004.checkpoint.00000000-0000-0000-0000-000000000000.json
        00000000000000000004.checkpoint.parquet
        00000000000000000004.checkpoint.0000000001.0000000001.parquet
        00000000000000000003.checkpoint.parquet
        ");
    }
}
