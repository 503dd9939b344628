//! The bytes of a file as they are encoded, in pieces: what is sent is free piece by piece, and nothing is moved to grow.
use std::io::{Result, Write};

use bytes::Bytes;

const PIECE: usize = 1 << 20;

/// Takes bytes until somebody takes the pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    whole: Vec<Bytes>,
    open: Vec<u8>,
}

impl Pieces {
    /// Bytes that nobody has taken yet.
    pub(super) fn held(&self) -> usize {
        self.whole.iter().map(Bytes::len).sum::<usize>() + self.open.capacity()
    }

    /// All bytes since the last call.
    pub(super) fn take(&mut self) -> Vec<Bytes> {
        self.end_piece();
        std::mem::take(&mut self.whole)
    }

    fn end_piece(&mut self) {
        if !self.open.is_empty() {
            self.whole.push(std::mem::take(&mut self.open).into());
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.open.extend_from_slice(bytes);
        if self.open.len() >= PIECE {
            self.end_piece();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
