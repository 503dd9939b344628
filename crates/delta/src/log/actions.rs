//! Commits by the column: one pass over the text, files straight into arrays.
//!
//! A unit of parsing is a list of pieces, oldest first: whole small commits, or one part of a large one, cut after a
//! line. Units are parsed on several cores; nothing is kept of the text.
mod line;
mod rows;

use std::{fmt, ops::Range};

use bytes::Bytes;
use lakebed_core::Result;
use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};

use self::{
    line::{AddLine, InfoLine, RemoveLine, Text},
    rows::{AddRows, RemoveRows},
};
use super::{
    LogError,
    line::{Lines, check_text},
};
use crate::{
    spec::{CheckpointMetadata, DomainMetadata, Metadata, Protocol, Sidecar, Txn},
    state::columns::{FileColumns, RemovedColumns},
};

/// More partition columns than any table has; bounds what damaged text can make of memory.
pub(crate) const MAX_PARTITION_COLUMNS: usize = 1_000;
/// Pieces of large commits are about this long.
const PIECE_BYTES: usize = 8 << 20;

/// A run of lines of one log file.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) version: u64,
    /// The file's path, for errors.
    pub(crate) file: String,
    pub(crate) body: Bytes,
    /// The part of `body` to parse.
    pub(crate) range: Range<usize>,
    pub(crate) kind: PieceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// Of one commit: the order of its lines says nothing.
    Commit,
    /// Of a file that stands for several commits.
    Compacted,
}

impl Piece {
    /// `body` cut into pieces of whole lines. An empty file is one piece, whose parsing says so.
    pub(crate) fn cut(version: u64, file: &str, body: &Bytes, kind: PieceKind) -> Vec<Self> {
        let piece = |range| Self { version, file: file.to_owned(), body: body.clone(), range, kind };
        let mut pieces = Vec::new();
        let mut start = 0;
        while body.len() - start > PIECE_BYTES {
            let rest = &body[start + PIECE_BYTES..];
            let Some(end) = rest.iter().position(|it| *it == b'\n') else { break };
            let end = start + PIECE_BYTES + end + 1;
            pieces.push(piece(start..end));
            start = end;
        }
        if start < body.len() || body.is_empty() {
            pieces.push(piece(start..body.len()));
        }
        pieces
    }
}

/// What some commits say. The small actions stand in the order of the text, with the version of their commit.
#[derive(Debug)]
pub(crate) struct ActionBatch {
    /// Oldest first.
    pub(crate) commits: Vec<CommitRows>,
    pub(crate) adds: FileColumns,
    pub(crate) removes: RemovedColumns,
    pub(crate) small: SmallActions,
}

/// The rows of one commit, or of one piece of it.
#[derive(Debug, Clone)]
pub(crate) struct CommitRows {
    pub(crate) adds: Range<usize>,
    pub(crate) removes: Range<usize>,
    /// Of a compacted file: its files in the order of the lines.
    pub(crate) order: Option<Vec<Mention>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mention {
    Added,
    Removed,
}

/// Everything but files; the last of a kind is the newest.
#[derive(Debug, Clone, Default)]
pub(crate) struct SmallActions {
    pub(crate) protocol: Option<Protocol>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) txns: Vec<Txn>,
    pub(crate) domains: Vec<DomainMetadata>,
    pub(crate) sidecars: Vec<Sidecar>,
    pub(crate) checkpoint: Option<CheckpointMetadata>,
    /// Whether protocol or metadata came more than once.
    pub(crate) repeated: bool,
    /// Version and time of the newest commit that has one.
    pub(crate) in_commit_timestamp: Option<(u64, i64)>,
}

impl SmallActions {
    /// Adds what newer commits say.
    pub(crate) fn extend(&mut self, newer: &Self) {
        self.protocol = newer.protocol.clone().or(self.protocol.take());
        self.metadata = newer.metadata.clone().or(self.metadata.take());
        self.txns.extend(newer.txns.iter().cloned());
        self.domains.extend(newer.domains.iter().cloned());
        self.sidecars.extend(newer.sidecars.iter().cloned());
        self.checkpoint = newer.checkpoint.clone().or(self.checkpoint.take());
        self.in_commit_timestamp = newer.in_commit_timestamp.or(self.in_commit_timestamp);
    }
}

/// Parses `pieces`, oldest first.
///
/// # Errors
/// [`LogError::BadLine`] for the first line that is no action, [`LogError::BadFile`] for a file that is no text.
pub(crate) fn parse(pieces: &[Piece]) -> Result<ActionBatch> {
    let mut rows = Rows::default();
    let mut commits: Vec<CommitRows> = Vec::new();
    let mut previous = None;
    for piece in pieces {
        let (adds, removes) = (rows.adds.len, rows.removes.len);
        rows.order = (piece.kind == PieceKind::Compacted).then(Vec::new);
        parse_piece(piece, &mut rows)?;
        let (adds, removes) = (adds..rows.adds.len, removes..rows.removes.len);
        let here = CommitRows { adds, removes, order: rows.order.take() };
        match commits.last_mut().filter(|_| previous == Some(piece.version)) {
            Some(commit) => {
                commit.adds.end = here.adds.end;
                commit.removes.end = here.removes.end;
                commit.order = commit.order.take().zip(here.order).map(|(first, rest)| [first, rest].concat());
            }
            None => commits.push(here),
        }
        previous = Some(piece.version);
    }
    Ok(ActionBatch { commits, adds: rows.adds.finish(), removes: rows.removes.finish(), small: rows.small })
}

fn parse_piece(piece: &Piece, rows: &mut Rows) -> Result<()> {
    let body = piece.body.get(piece.range.clone()).unwrap_or_default();
    let text = check_text(&piece.file, body).map_err(|it| whole_file(piece, it))?;
    let mut lines = 0_usize;
    rows.adds.version = i64::try_from(piece.version).unwrap_or(i64::MAX);
    for line in Lines::new(text) {
        lines += 1;
        let mut json = serde_json::Deserializer::from_str(line.text);
        let parsed = LineSeed(rows).deserialize(&mut json).and_then(|()| json.end());
        if let Err(err) = parsed {
            return Err(whole_file(piece, line.error(&piece.file, text, &err).into()));
        }
    }
    if lines == 0 && piece.range.start == 0 {
        let rule = "a commit has at least one action".to_owned();
        return Err(LogError::BadFile { file: piece.file.clone(), rule }.into());
    }
    Ok(())
}

/// The error of a piece, with line and byte counted from the start of the file.
fn whole_file(piece: &Piece, err: lakebed_core::Error) -> lakebed_core::Error {
    match err.cause::<LogError>() {
        Some(LogError::BadLine { file, line, offset, rule }) => {
            let before = piece.body.get(..piece.range.start).unwrap_or_default();
            let lines = before.iter().filter(|it| **it == b'\n').count();
            let (line, offset) = (line + lines, offset + before.len());
            LogError::BadLine { file: file.clone(), line, offset, rule: rule.clone() }.into()
        }
        _ => err,
    }
}

#[derive(Debug, Default)]
struct Rows {
    adds: AddRows,
    removes: RemoveRows,
    small: SmallActions,
    order: Option<Vec<Mention>>,
}

/// Parses one line into the rows.
struct LineSeed<'r>(&'r mut Rows);

impl<'de> DeserializeSeed<'de> for LineSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for LineSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one action")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        use serde::de::Error;
        let Rows { adds, removes, small, order } = self.0;
        while let Some(name) = map.next_key::<Text<'de>>()? {
            match &*name.0 {
                "add" => {
                    if let Some(add) = map.next_value::<Option<AddLine<'de>>>()? {
                        adds.push(add).map_err(A::Error::custom)?;
                        order.iter_mut().for_each(|it| it.push(Mention::Added));
                    }
                }
                "remove" => {
                    if let Some(remove) = map.next_value::<Option<RemoveLine<'de>>>()? {
                        removes.push(&remove);
                        order.iter_mut().for_each(|it| it.push(Mention::Removed));
                    }
                }
                "protocol" => {
                    if let Some(protocol) = map.next_value::<Option<Protocol>>()? {
                        small.repeated |= small.protocol.replace(protocol).is_some();
                    }
                }
                "metaData" => {
                    if let Some(metadata) = map.next_value::<Option<Metadata>>()? {
                        small.repeated |= small.metadata.replace(metadata).is_some();
                    }
                }
                "txn" => small.txns.extend(map.next_value::<Option<Txn>>()?),
                "domainMetadata" => small.domains.extend(map.next_value::<Option<DomainMetadata>>()?),
                "sidecar" => small.sidecars.extend(map.next_value::<Option<Sidecar>>()?),
                "checkpointMetadata" => small.checkpoint = map.next_value()?,
                "commitInfo" => {
                    let info = map.next_value::<Option<InfoLine>>()?;
                    let stamp = info.and_then(|it| it.in_commit_timestamp).and_then(|it| it.as_i64());
                    if let (Some(stamp), Ok(version)) = (stamp, u64::try_from(adds.version)) {
                        small.in_commit_timestamp = Some((version, stamp));
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}
