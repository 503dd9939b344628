//! One data file that is being written.
//!
//! Rows gather until a chunk is worth encoding; chunks are encoded on blocking threads while the next ones gather. What
//! a row group has become goes to the [`Sink`] soon after it ends. A file of few rows is encoded in place.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use lakebed_core::{Error, Result, file::DataFile, path::FilePath};

use super::{
    Kind, Written,
    encode::{Chunk, Encoder, Finished},
    partition::Partition,
    sink::Sink,
    stats,
    target::Target,
};

/// A chunk ends at this many rows or bytes.
const CHUNK_ROWS: usize = 1 << 14;
const CHUNK_BYTES: usize = 16 << 20;
/// So many values are encoded faster than a thread is asked to.
const FEW_CELLS: usize = 1 << 15;

#[derive(Debug)]
pub(super) struct OpenFile {
    target: Arc<Target>,
    kind: Kind,
    schema: SchemaRef,
    partition: Partition,
    path: FilePath,
    sink: Sink,
    pending: Chunk,
    /// Absent before the first chunk.
    encoder: Option<Box<Encoder>>,
    rows: u64,
    /// As of the last chunk that was queued.
    size: u64,
}

impl OpenFile {
    pub(super) fn new(target: &Arc<Target>, kind: Kind, schema: &SchemaRef, partition: Partition) -> Result<Self> {
        let path = target.new_path(kind, &partition.folders)?;
        Ok(Self {
            target: Arc::clone(target),
            kind,
            schema: Arc::clone(schema),
            partition,
            sink: Sink::new(target.storage.clone(), path.clone()),
            path,
            pending: Chunk::default(),
            encoder: None,
            rows: 0,
            size: 0,
        })
    }

    /// Takes rows: arrays by column of the file.
    pub(super) async fn push(&mut self, arrays: Vec<ArrayRef>, rows: usize) -> Result<()> {
        self.pending.push(arrays, rows)?;
        self.rows += rows as u64;
        if self.pending.rows >= CHUNK_ROWS || self.pending.bytes() >= CHUNK_BYTES {
            self.encode().await?;
        }
        Ok(())
    }

    /// The file's size so far; what is not encoded yet does not count.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether rows are encoded already.
    pub(super) fn has_encoder(&self) -> bool {
        self.encoder.is_some()
    }

    /// Memory that [`OpenFile::flush`] frees.
    pub(super) fn in_rows(&self) -> usize {
        self.pending.bytes() + self.encoder.as_ref().map_or(0, |it| it.memory())
    }

    pub(super) fn memory(&self) -> usize {
        self.in_rows() + self.sink.held()
    }

    /// Ends the row group, so that its memory is free.
    pub(super) async fn flush(&mut self) -> Result<()> {
        self.encode().await?;
        if let Some(encoder) = &mut self.encoder {
            encoder.end_group();
            encoder.start(&self.target);
            encoder.idle().await?;
        }
        self.deliver().await
    }

    /// Queues what is pending; waits while too much is queued already.
    async fn encode(&mut self) -> Result<()> {
        let chunk = std::mem::take(&mut self.pending);
        if chunk.rows == 0 {
            return Ok(());
        }
        let mut encoder = self.encoder(&chunk)?;
        encoder.push(chunk).await?;
        encoder.start(&self.target);
        self.encoder = Some(encoder);
        self.deliver().await
    }

    /// The encoder, made for `first` if there was none.
    fn encoder(&mut self, first: &Chunk) -> Result<Box<Encoder>> {
        match self.encoder.take() {
            Some(encoder) => Ok(encoder),
            None => Ok(Box::new(Encoder::new(&self.target.shape, &self.schema, first)?)),
        }
    }

    /// Sends the bytes that can leave on their way.
    async fn deliver(&mut self) -> Result<()> {
        let Some(encoder) = &self.encoder else { return Ok(()) };
        self.size = encoder.size();
        for piece in encoder.take()? {
            self.sink.push(piece).await?;
        }
        Ok(())
    }

    /// Ends the file. It is in the store when this returns, and nobody sees it yet.
    pub(super) async fn finish(mut self) -> Result<Written> {
        let chunk = std::mem::take(&mut self.pending);
        let few = self.encoder.is_none() && chunk.cells() <= FEW_CELLS;
        let mut encoder = self.encoder(&chunk)?;
        encoder.push(chunk).await?;
        encoder.end_group();
        match few {
            true => encoder.work_here(),
            false => encoder.start(&self.target),
        }
        encoder.idle().await?;
        let Finished { rest, metadata, nan } = encoder.finish()?;
        for piece in rest {
            self.sink.push(piece).await?;
        }
        let bytes = self.sink.finish().await?;
        let mut file = DataFile::parquet(self.path, bytes);
        file.partition = self.partition.values;
        file.modified_at = Some(self.target.env.clock.now());
        if self.kind != Kind::Changes {
            file.stats = stats::of_file(&self.target, &metadata, &nan);
            if file.stats.rows != Some(self.rows) {
                return Err(Error::internal(format!("{} rows became {:?}", self.rows, file.stats.rows)));
            }
        }
        Ok(Written { file, rows: self.rows })
    }
}
