//! One file of a checkpoint as a stream: encoded while it is sent.
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_codec::parquet::ParquetStream;
use lakebed_core::{Error, Result};

use super::schema::PLAIN;
use crate::checkpoint::on_a_thread;

/// Files a row group: some megabytes, encoded.
const GROUP_ROWS: usize = 64 << 10;

/// What goes into a file.
pub(super) enum Piece {
    Rows(RecordBatch),
    /// What follows shall be read without what came before.
    EndOfGroup,
}

/// What a file turned out to be, once its stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) bytes: u64,
}

/// Tells what became of a file that is written later.
pub(super) type Outcome = Arc<OnceLock<Written>>;

/// The bytes of the file of `pieces`; `outcome` is set when the last of them is out.
pub(super) fn stream_of(
    name: &str,
    schema: SchemaRef,
    pieces: BoxStream<'static, Result<Piece>>,
    outcome: Outcome,
) -> BoxStream<'static, Result<Bytes>> {
    let name = name.to_owned();
    let begun = async move {
        let file = ParquetStream::new(&name, schema, GROUP_ROWS, &PLAIN)?;
        Ok::<_, Error>(chunks(File { file, pieces, bytes: 0, outcome }))
    };
    stream::once(begun).try_flatten().boxed()
}

struct File {
    file: ParquetStream,
    pieces: BoxStream<'static, Result<Piece>>,
    bytes: u64,
    outcome: Outcome,
}

fn chunks(file: File) -> impl stream::Stream<Item = Result<Bytes>> {
    stream::try_unfold(Some(file), |file| async move {
        let Some(mut file) = file else { return Ok(None) };
        while let Some(piece) = file.pieces.try_next().await? {
            let chunk = file.encode(piece).await?;
            if !chunk.0.is_empty() {
                return Ok(Some((chunk.0, Some(chunk.1))));
            }
            file = chunk.1;
        }
        let last = file.file.finish()?;
        // Set once: a stream is read once.
        let _ = file.outcome.set(Written { bytes: file.bytes + last.len() as u64 });
        Ok(Some((last, None)))
    })
}

impl File {
    /// Encodes a piece; the bytes that became final by it.
    async fn encode(self, piece: Piece) -> Result<(Bytes, Self)> {
        let Self { mut file, pieces, bytes, outcome } = self;
        let size = match &piece {
            Piece::Rows(rows) => rows.get_array_memory_size(),
            Piece::EndOfGroup => 0,
        };
        let encoded = on_a_thread(size, move || {
            match piece {
                Piece::Rows(rows) => file.write(&rows)?,
                Piece::EndOfGroup => file.end_group()?,
            }
            Ok((file.taken(), file))
        });
        let (chunk, file) = encoded.await?;
        let bytes = bytes + chunk.len() as u64;
        Ok((chunk, Self { file, pieces, bytes, outcome }))
    }
}
