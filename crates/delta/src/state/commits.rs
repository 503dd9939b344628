//! Reads commits: fetched many at once, parsed on two cores, in order.
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, future::BoxFuture, stream, stream::FuturesOrdered};
use lakebed_core::Result;

use super::replay::check_compacted;
use crate::{
    checkpoint::on_a_thread,
    layout::LogFileKind,
    log::{
        Listed, Log, LogError,
        actions::{self, ActionBatch, Piece, PieceKind},
    },
    write::own::OwnCommits,
};

/// Requests under way at once.
const FETCH_AT_ONCE: usize = 32;
/// Units being parsed at once.
const PARSE_AT_ONCE: usize = 3;
/// A unit of parsing is this long, or has this many pieces.
const UNIT_BYTES: usize = 4 << 20;
const UNIT_PIECES: usize = 1_024;

/// Reads `files`, commits and compacted files, oldest first.
pub(super) async fn read(log: &Log, files: &[Listed]) -> Result<Vec<Arc<ActionBatch>>> {
    read_with(log, files, None).await
}

/// Reads the commits that followed on a version which still is the one read before; those that `log`'s handle made need
/// not be fetched.
pub(super) async fn read_on(log: &Log, files: &[Listed]) -> Result<Vec<Arc<ActionBatch>>> {
    read_with(log, files, Some(&log.own)).await
}

async fn read_with(log: &Log, files: &[Listed], own: Option<&OwnCommits>) -> Result<Vec<Arc<ActionBatch>>> {
    let mut fetched = stream::iter(files.to_vec()).map(|it| fetch(log, it, own)).buffered(FETCH_AT_ONCE);
    let mut parsing: FuturesOrdered<BoxFuture<'static, Result<ActionBatch>>> = FuturesOrdered::new();
    let mut batches = Vec::new();
    let mut unit = Unit::default();
    while let Some(pieces) = fetched.try_next().await? {
        let compacted = pieces.iter().any(|it| it.kind == PieceKind::Compacted);
        // A compacted file is a unit of its own, so that it can be checked as a whole.
        if compacted && !unit.pieces.is_empty() {
            parsing.push_back(std::mem::take(&mut unit).parse(log));
        }
        for piece in pieces {
            unit.push(piece);
            if unit.is_full() && !compacted {
                parsing.push_back(std::mem::take(&mut unit).parse(log));
            }
        }
        if compacted {
            parsing.push_back(std::mem::take(&mut unit).parse(log));
        }
        while parsing.len() >= PARSE_AT_ONCE {
            batches.extend(parsing.try_next().await?.map(Arc::new));
        }
    }
    if !unit.pieces.is_empty() {
        parsing.push_back(unit.parse(log));
    }
    while let Some(batch) = parsing.try_next().await? {
        batches.push(Arc::new(batch));
    }
    Ok(batches)
}

async fn fetch(log: &Log, listed: Listed, own: Option<&OwnCommits>) -> Result<Vec<Piece>> {
    let path = listed.file.path();
    let made = own.filter(|_| listed.file.kind == LogFileKind::Commit);
    let body = match made.and_then(|it| it.take(listed.file.version, listed.bytes)) {
        Some(body) => body,
        None => log.read(&path).await?.ok_or_else(|| LogError::Vanished { file: path.clone() })?,
    };
    let kind = match listed.file.kind {
        LogFileKind::Compacted { .. } => PieceKind::Compacted,
        _ => PieceKind::Commit,
    };
    Ok(Piece::cut(listed.file.version, &path, &body, kind))
}

#[derive(Default)]
struct Unit {
    pieces: Vec<Piece>,
    bytes: usize,
}

impl Unit {
    fn push(&mut self, piece: Piece) {
        self.bytes += piece.range.len();
        self.pieces.push(piece);
    }

    fn is_full(&self) -> bool {
        self.bytes >= UNIT_BYTES || self.pieces.len() >= UNIT_PIECES
    }

    fn parse(self, log: &Log) -> BoxFuture<'static, Result<ActionBatch>> {
        let policy = log.storage().policy().clone();
        Box::pin(on_a_thread(self.bytes, move || {
            let batch = actions::parse(&self.pieces)?;
            let compacted = self.pieces.iter().find(|it| it.kind == PieceKind::Compacted);
            match compacted.and_then(|it| Some((it, check_compacted(&policy, &batch)?))) {
                Some((piece, rule)) => {
                    Err(LogError::BadFile { file: piece.file.clone(), rule: rule.to_owned() }.into())
                }
                None => Ok(batch),
            }
        }))
    }
}
