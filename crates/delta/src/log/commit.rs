//! One commit, everything it says kept: for history, changes and examination.
//!
//! The list of live files is built by [`super::actions`] instead, which keeps columns.
use bytes::Bytes;
use lakebed_core::Result;

use super::{
    LogError,
    line::{Lines, check_text},
};
use crate::{
    layout,
    spec::{Action, Add, Cdc, CommitInfo, Metadata, Protocol, Remove},
};

/// A commit, parsed.
#[derive(Debug, Clone)]
pub(crate) struct Commit {
    pub(crate) version: u64,
    /// In the order of the file.
    pub(crate) entries: Vec<Entry>,
    body: Bytes,
}

/// A line of a commit.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    start: usize,
    end: usize,
}

impl Commit {
    /// # Errors
    /// [`LogError::BadLine`] for the first line that is no action.
    pub(crate) fn parse(version: u64, body: Bytes) -> Result<Self> {
        let file = layout::commit_path(version);
        let text = check_text(&file, &body)?;
        let mut entries = Vec::new();
        for line in Lines::new(text) {
            let action = serde_json::from_str(line.text).map_err(|it| line.error(&file, text, &it))?;
            entries.push(Entry { action, start: line.start, end: line.start + line.text.len() });
        }
        if entries.is_empty() {
            return Err(LogError::BadFile { file, rule: "a commit has at least one action".to_owned() }.into());
        }
        Ok(Self { version, entries, body })
    }

    /// The line of `entry` as it was written.
    pub(crate) fn json(&self, entry: &Entry) -> &str {
        self.body.get(entry.start..entry.end).and_then(|it| std::str::from_utf8(it).ok()).unwrap_or_default()
    }

    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.entries.iter().map(|it| &it.action)
    }

    pub(crate) fn info(&self) -> Option<&CommitInfo> {
        self.actions().find_map(|it| if let Action::CommitInfo(info) = it { Some(info) } else { None })
    }

    /// Milliseconds since the epoch, where the writer stamped the commit.
    pub(crate) fn in_commit_timestamp(&self) -> Option<i64> {
        self.info()?.in_commit_timestamp
    }

    pub(crate) fn protocol(&self) -> Option<&Protocol> {
        self.actions().filter_map(|it| if let Action::Protocol(it) = it { Some(it) } else { None }).last()
    }

    pub(crate) fn metadata(&self) -> Option<&Metadata> {
        self.actions().filter_map(|it| if let Action::Metadata(it) = it { Some(it) } else { None }).last()
    }

    pub(crate) fn adds(&self) -> impl Iterator<Item = &Add> {
        self.actions().filter_map(|it| if let Action::Add(it) = it { Some(it) } else { None })
    }

    pub(crate) fn removes(&self) -> impl Iterator<Item = &Remove> {
        self.actions().filter_map(|it| if let Action::Remove(it) = it { Some(it) } else { None })
    }

    pub(crate) fn cdc(&self) -> impl Iterator<Item = &Cdc> {
        self.actions().filter_map(|it| if let Action::Cdc(it) = it { Some(it) } else { None })
    }
}

/// The commitInfo of a commit of which only the first bytes are known, if it stands whole in the first line.
pub(crate) fn first_line_info(head: &[u8]) -> Option<CommitInfo> {
    let end = head.iter().position(|it| *it == b'\n')?;
    match serde_json::from_slice(&head[..end]).ok()? {
        Action::CommitInfo(info) => Some(info),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: &str) {
        let shown = match Commit::parse(3, Bytes::copy_from_slice(body.as_bytes())) {
            Ok(commit) => commit.actions().map(Action::name).collect::<Vec<_>>().join(" "),
            Err(err) => err.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_commit_is_one_action_a_line() {
        check(
            "{\"commitInfo\":{}}\n{\"txn\":{\"appId\":\"a\",\"version\":1}}\r\n\n{\"later\":1}\n",
            "commitInfo txn later",
        );
        check("{\"commitInfo\":{}}", "commitInfo");
    }

    #[test]
    fn damage_is_named_with_line_and_byte() {
        let file = "_delta_log/00000000000000000003.json";
        check("", &format!("{file}: the file is empty"));
        check("\n\n", &format!("{file}: a commit has at least one action"));
        check("\u{feff}{}", &format!("{file}, line 1, byte 0: a byte order mark is not JSON"));
        check("{\"commitInfo\":{}}\n{\"a\":\0}", &format!("{file}, line 2, byte 23: expected value"));
        check("{\"commitInfo\":{}}\n{\"add\":{\"pa", &format!("{file}, line 2, byte 28: EOF while parsing a string"));
        check("{\"add\":{\"size\":1}}", &format!("{file}, line 1, byte 16: missing field `path`"));
    }

    #[test]
    fn the_first_line_is_enough_for_its_info() {
        let info = first_line_info(b"{\"commitInfo\":{\"inCommitTimestamp\":7}}\n{\"add\":{\"pa");
        assert_eq!(info.and_then(|it| it.in_commit_timestamp), Some(7));
        assert!(first_line_info(b"{\"commitInfo\":{\"inCommit").is_none());
        assert!(first_line_info(b"{\"add\":{}}\n").is_none());
    }
}
