//! The parts of an object that are in memory, as the Parquet decoder wants to see them.
use std::{io::Cursor, ops::Range};

use bytes::Bytes;
use lakebed_core::{Result, path::FilePath, storage::Storage};
use parquet::{
    errors::ParquetError,
    file::reader::{ChunkReader, Length},
};

/// Ranges this close together are fetched as one.
const GAP: u64 = 1 << 20;
/// One request for everything when at least this share of it (1 in n) is wanted.
const DENSE: u64 = 4;

/// Some ranges of an object of known length. Asking for a byte that is not held is an error, not a request.
#[derive(Debug, Clone)]
pub(super) struct Chunks {
    length: u64,
    held: Vec<(u64, Bytes)>,
}

impl Chunks {
    pub(super) fn new(length: u64) -> Self {
        Self { length, held: Vec::new() }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn hold(&mut self, start: u64, bytes: Bytes) {
        // Two ranges that touch become one, so that a footer read in two pieces is whole.
        let end = start + bytes.len() as u64;
        match self.held.iter().position(|(at, _)| *at == end) {
            Some(next) => {
                let (_, after) = self.held.swap_remove(next);
                self.held.push((start, [bytes, after].concat().into()));
            }
            None => self.held.push((start, bytes)),
        }
    }

    pub(super) fn bytes(&self, range: Range<u64>) -> Option<Bytes> {
        self.held.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
            let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
            (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
        })
    }

    /// What is held and `ranges`, read from the object where they are not: one request if they lie close together.
    pub(super) async fn fetch(&self, storage: &Storage, file: &FilePath, ranges: &[Range<u64>]) -> Result<Self> {
        let mut missing: Vec<_> = ranges.iter().filter(|it| self.bytes((*it).clone()).is_none()).cloned().collect();
        missing.sort_by_key(|it| it.start);
        let mut fetched = Self { length: self.length, held: self.held.clone() };
        let requests = join(&missing).into_iter().map(|it| async move {
            let bytes = storage.read_range(file, it.clone()).await?;
            Ok::<_, lakebed_core::Error>((it.start, bytes))
        });
        fetched.held.extend(futures::future::try_join_all(requests).await?);
        Ok(fetched)
    }
}

/// `ranges`, sorted by start, with small gaps filled; all gaps where most bytes are wanted anyway.
fn join(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let (Some(first), Some(end)) = (ranges.first(), ranges.iter().map(|it| it.end).max()) else { return Vec::new() };
    let wanted: u64 = ranges.iter().map(|it| it.end - it.start).sum();
    let gap = if wanted >= (end - first.start) / DENSE { u64::MAX } else { GAP };
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start.saturating_sub(last.end) <= gap => last.end = last.end.max(range.end),
            _ => joined.push(range.clone()),
        }
    }
    joined
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Chunks {
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let found = self.held.iter().find_map(|(at, bytes)| {
            let from = usize::try_from(start.checked_sub(*at)?).ok()?;
            (from < bytes.len()).then(|| bytes.slice(from..))
        });
        found.map(Cursor::new).ok_or_else(|| not_held(start, 0))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let range = start.checked_add(length as u64).map(|end| start..end);
        range.and_then(|it| self.bytes(it)).ok_or_else(|| not_held(start, length))
    }
}

fn not_held(start: u64, length: usize) -> ParquetError {
    ParquetError::General(format!("a page of {length} bytes at {start} lies outside its column"))
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn ranges_close_together_are_one_request() {
        const M: u64 = 1 << 20;
        let one = |it| std::iter::once(it).collect::<Vec<_>>();
        assert_eq!(join(&[]), []);
        assert_eq!(join(&[0..10, 20..30]), one(0..30));
        assert_eq!(join(&[0..10, 5..30, 10 * M..10 * M + 5]), [0..30, 10 * M..10 * M + 5]);
        assert_eq!(join(&[0..3 * M, 7 * M..10 * M]), one(0..10 * M), "dense enough to read the gap too");
    }
}
