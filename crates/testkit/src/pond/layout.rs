//! Every name in a pond table.
use lakebed_core::version::Millis;

pub(super) const LOG: &str = "pond/log";
pub(super) const LOCK: &str = "pond/lock";
pub(super) const PENDING: &str = "pond/pending";

/// What an object of the log is; sorted as the log reads. A checkpoint stands after the entry it sums up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogName {
    /// The version id: digits, or a time and a write id.
    pub(super) version: String,
    pub(super) checkpoint: bool,
}

impl LogName {
    /// `None` for names that readers ignore.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let stem = path.strip_prefix(LOG)?.strip_prefix('/')?.strip_suffix(".json")?;
        let (stem, checkpoint) = match stem.strip_suffix(".checkpoint") {
            Some(stem) => (stem, true),
            None => (stem, false),
        };
        let version = match stem.split_once('-') {
            Some(_) => stem.to_owned(),
            None => stem.parse::<u64>().ok()?.to_string(),
        };
        Some(Self { version, checkpoint })
    }
}

/// Versions are dense numbers, or times with a write id behind.
pub(super) fn stem(version: &str) -> String {
    match version.parse::<u64>() {
        Ok(number) => format!("{number:020}"),
        Err(_) => version.to_owned(),
    }
}

pub(super) fn entry(version: &str) -> String {
    format!("{LOG}/{}.json", stem(version))
}

pub(super) fn checkpoint(version: &str) -> String {
    format!("{LOG}/{}.checkpoint.json", stem(version))
}

/// The id of a version that a leased table completes at `at`.
pub(super) fn leased_version(at: Millis, write_id: &str) -> String {
    format!("{:020}-{write_id}", at.0)
}

pub(super) fn pending(write_id: &str) -> String {
    format!("{PENDING}/{write_id}.json")
}

pub(super) fn lock(generation: u64) -> String {
    format!("{LOCK}/{generation:020}.json")
}

pub(super) fn released(generation: u64) -> String {
    format!("{LOCK}/{generation:020}.released")
}

pub(super) fn vector(id: &str) -> String {
    format!("pond/vectors/{id}.json")
}

pub(super) fn data(write_id: &str, index: usize, extension: &str) -> String {
    format!("data/{write_id}-{index}.{extension}")
}
