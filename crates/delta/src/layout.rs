//! Every name below `_delta_log/`, made and parsed.
//!
//! | name | kind |
//! |---|---|
//! | `<20 digits>.json` | a commit |
//! | `<20 digits>.checkpoint.parquet` | a checkpoint in one file, V1 or V2 inside |
//! | `<20 digits>.checkpoint.<10 digits>.<10 digits>.parquet` | part *i* of *n* of a checkpoint |
//! | `<20 digits>.checkpoint.<uuid>.parquet`, `….json` | a V2 checkpoint |
//! | `<20 digits>.<20 digits>.compacted.json` | the commits of a range, reconciled |
//! | `<20 digits>.crc` | what a version's state adds up to |
//! | `_last_checkpoint` | a hint where to start |
//! | `_sidecars/<name>.parquet` | files of a V2 checkpoint |
//!
//! Everything else (`.tmp`, `._x`, `_staged_commits/`, `_commits/`) is not part of the log.
//! Spec: Delta PROTOCOL.md, "Delta Log Entries", "Checkpoints", "Log Compaction Files", "Version Checksum File".
use std::fmt;

use uuid::Uuid;

/// The folder of the log, below the table's root.
pub(crate) const LOG: &str = "_delta_log";
/// The folder of V2 checkpoint sidecars, below the table's root.
pub(crate) const SIDECARS: &str = "_delta_log/_sidecars";
/// The hint, below the table's root.
pub(crate) const LAST_CHECKPOINT: &str = "_delta_log/_last_checkpoint";

/// A file of the log, named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogFile {
    pub(crate) version: u64,
    pub(crate) kind: LogFileKind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogFileKind {
    Commit,
    /// The commits from the file's version to `until`, both included.
    Compacted {
        until: u64,
    },
    Checksum,
    Checkpoint(CheckpointName),
    /// A commit under a unique name, which only a catalog can ratify. Readers by path ignore it.
    Staged,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckpointName {
    Classic,
    /// Part `part` of `of`, counted from 1.
    Part {
        part: u32,
        of: u32,
    },
    Unique {
        id: Uuid,
        json: bool,
    },
}

impl LogFile {
    /// The file's path below the table's root.
    pub(crate) fn path(&self) -> String {
        format!("{LOG}/{self}")
    }
}

impl fmt::Display for LogFile {
    /// The bare file name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version;
        match &self.kind {
            LogFileKind::Commit => write!(f, "{version:020}.json"),
            LogFileKind::Compacted { until } => write!(f, "{version:020}.{until:020}.compacted.json"),
            LogFileKind::Checksum => write!(f, "{version:020}.crc"),
            LogFileKind::Checkpoint(CheckpointName::Classic) => write!(f, "{version:020}.checkpoint.parquet"),
            LogFileKind::Checkpoint(CheckpointName::Part { part, of }) => {
                write!(f, "{version:020}.checkpoint.{part:010}.{of:010}.parquet")
            }
            LogFileKind::Checkpoint(CheckpointName::Unique { id, json }) => {
                write!(f, "{version:020}.checkpoint.{id}.{}", if *json { "json" } else { "parquet" })
            }
            LogFileKind::Staged => write!(f, "{version:020}.<staged>.json"),
        }
    }
}

/// Parses a bare name such as `00000000000000000012.json`; `None` for files readers must ignore.
pub(crate) fn parse(name: &str) -> Option<LogFile> {
    let (version, rest) = name.split_once('.')?;
    // Versions are 64-bit signed in the protocol; the bound also keeps `version + 1` in range.
    let version = digits(version, 20).filter(|it| i64::try_from(*it).is_ok())?;
    let kind = parse_kind(rest)?;
    match kind {
        LogFileKind::Compacted { until } if until < version || i64::try_from(until).is_err() => None,
        kind => Some(LogFile { version, kind }),
    }
}

fn parse_kind(rest: &str) -> Option<LogFileKind> {
    let parts: Vec<&str> = rest.split('.').collect();
    match parts[..] {
        ["json"] => Some(LogFileKind::Commit),
        ["crc"] => Some(LogFileKind::Checksum),
        [until, "compacted", "json"] => Some(LogFileKind::Compacted { until: digits(until, 20)? }),
        ["checkpoint", "parquet"] => Some(LogFileKind::Checkpoint(CheckpointName::Classic)),
        ["checkpoint", part, of, "parquet"] => {
            let part = u32::try_from(digits(part, 10)?).ok()?;
            let of = u32::try_from(digits(of, 10)?).ok()?;
            let sound = (1..=of).contains(&part);
            sound.then_some(LogFileKind::Checkpoint(CheckpointName::Part { part, of }))
        }
        ["checkpoint", id, suffix @ ("parquet" | "json")] => {
            let id = Uuid::try_parse(id).ok()?;
            Some(LogFileKind::Checkpoint(CheckpointName::Unique { id, json: suffix == "json" }))
        }
        [id, "json"] => Uuid::try_parse(id).ok().map(|_| LogFileKind::Staged),
        _ => None,
    }
}

fn digits(text: &str, width: usize) -> Option<u64> {
    let plain = text.len() == width && text.bytes().all(|it| it.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// The path of a commit below the table's root.
pub(crate) fn commit_path(version: u64) -> String {
    format!("{LOG}/{version:020}.json")
}

/// The path of a classic checkpoint in one file, below the table's root.
pub(crate) fn classic_checkpoint_path(version: u64) -> String {
    LogFile { version, kind: LogFileKind::Checkpoint(CheckpointName::Classic) }.path()
}

/// The path of a version's checksum file below the table's root.
pub(crate) fn checksum_path(version: u64) -> String {
    format!("{LOG}/{version:020}.crc")
}

/// A bare name that sorts right before every file of `version`, and after every file of the version before.
pub(crate) fn before(version: u64) -> String {
    // `N.checkpoint…`, `N.crc`, `N.json` and `N.M.compacted.json` all sort after the bare digits.
    format!("{version:020}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: &str) {
        let file = parse(name);
        let shown = file.as_ref().map_or("ignored".to_owned(), |it| format!("{} {:?}", it.version, it.kind));
        assert_eq!(shown, expected, "{name}");
        if let Some(file) = file.filter(|it| it.kind != LogFileKind::Staged) {
            assert_eq!(file.to_string(), name.to_ascii_lowercase());
        }
    }

    #[test]
    fn names_are_told_apart() {
        check("00000000000000000012.json", "12 Commit");
        check("00000000000000000012.crc", "12 Checksum");
        check("00000000000000000012.checkpoint.parquet", "12 Checkpoint(Classic)");
        check(
            "00000000000000000012.checkpoint.0000000001.0000000002.parquet",
            "12 Checkpoint(Part { part: 1, of: 2 })",
        );
        check(
            "00000000000000000012.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
            "12 Checkpoint(Unique { id: 80a083e8-7026-4e79-81be-64bd76c43a11, json: true })",
        );
        check("00000000000000000004.00000000000000000007.compacted.json", "4 Compacted { until: 7 }");
        check("00000000000000000012.4cb9708e-b478-44de-b203-53f9ba9b2876.json", "12 Staged");
    }

    #[test]
    fn other_names_are_ignored() {
        for name in [
            "",
            "12.json",
            "000000000000000000012.json",
            "0000000000000000001a.json",
            "00000000000000000012.json.tmp",
            ".00000000000000000012.json.crc",
            "._00000000000000000012.json",
            "_last_checkpoint",
            "00000000000000000012.checkpoint.0000000003.0000000002.parquet",
            "00000000000000000012.checkpoint.0000000000.0000000002.parquet",
            "00000000000000000012.checkpoint.9999999999.9999999999.parquet",
            "00000000000000000007.00000000000000000004.compacted.json",
            "99999999999999999999.json",
            "18446744073709551615.json",
        ] {
            check(name, "ignored");
        }
    }

    #[test]
    fn a_version_lies_between_its_own_marks() {
        let mut names: Vec<String> = ["checkpoint.parquet", "crc", "json", "00000000000000000013.compacted.json"]
            .map(|it| format!("{:020}.{it}", 12))
            .to_vec();
        names.sort();
        assert!(names.iter().all(|it| *it > before(12) && *it < before(13)));
        assert!(names[0].contains("compacted"), "a compacted file sorts first");
    }
}
