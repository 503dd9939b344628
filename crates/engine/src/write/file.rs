//! One data file that is being written.
//!
//! Rows gather until a chunk is worth encoding; the chunk is encoded on blocking threads while the next one gathers. What
//! a row group has become goes to the [`Sink`] as soon as it ends. A file of few rows is encoded in place.
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use lakebed_core::{Error, Result, file::DataFile, path::FilePath};

use super::{
    Kind, Written,
    encode::{Busy, Chunk, Encoder, Finished},
    partition::Partition,
    sink::Sink,
    stats,
    target::Target,
};

/// A chunk ends at this many rows or bytes.
const CHUNK_ROWS: usize = 1 << 15;
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
    work: Work,
    rows: u64,
    /// As of the last chunk that was encoded.
    size: u64,
    encoder_memory: usize,
}

#[derive(Debug)]
enum Work {
    Fresh,
    Ready(Box<Encoder>),
    Busy(SpawnedTask<Result<Box<Encoder>>>),
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
            work: Work::Fresh,
            rows: 0,
            size: 0,
            encoder_memory: 0,
        })
    }

    /// Takes rows: arrays by column of the file.
    pub(super) async fn push(&mut self, arrays: Vec<ArrayRef>, rows: usize) -> Result<()> {
        self.pending.push(arrays, rows)?;
        self.rows += rows as u64;
        if self.pending.rows >= CHUNK_ROWS || self.pending.bytes >= CHUNK_BYTES {
            self.encode(false).await?;
        }
        Ok(())
    }

    /// The file's size so far; what is not encoded yet does not count.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether rows are encoded already.
    pub(super) fn has_encoder(&self) -> bool {
        !matches!(self.work, Work::Fresh)
    }

    /// Memory that [`OpenFile::flush`] frees.
    pub(super) fn in_rows(&self) -> usize {
        self.pending.bytes + self.encoder_memory
    }

    pub(super) fn memory(&self) -> usize {
        self.pending.bytes + self.encoder_memory + self.sink.held()
    }

    /// Ends the row group, so that its memory is free.
    pub(super) async fn flush(&mut self) -> Result<()> {
        self.encode(true).await?;
        let encoder = self.ready().await?;
        self.work = encoder.map_or(Work::Fresh, Work::Ready);
        Ok(())
    }

    /// Begins to encode what is pending, once the chunk before it is done.
    async fn encode(&mut self, end_group: bool) -> Result<()> {
        let encoder = self.ready().await?;
        let chunk = std::mem::take(&mut self.pending);
        if chunk.rows == 0 && !end_group {
            self.work = encoder.map_or(Work::Fresh, Work::Ready);
            return Ok(());
        }
        self.encoder_memory += chunk.bytes;
        let (target, schema) = (Arc::clone(&self.target), Arc::clone(&self.schema));
        self.work = Work::Busy(SpawnedTask::spawn_blocking(move || {
            let (_busy, threads) = Busy::enter(&target.encoding, target.threads);
            let mut encoder = match encoder {
                Some(encoder) => encoder,
                None => Box::new(Encoder::new(&target.shape, &schema, &chunk)?),
            };
            encoder.write(&chunk, threads)?;
            if end_group {
                encoder.end_group(threads)?;
            }
            Ok(encoder)
        }));
        Ok(())
    }

    /// The encoder, when it is done with its chunk; bytes that can leave are on their way. `None` before the first chunk.
    async fn ready(&mut self) -> Result<Option<Box<Encoder>>> {
        let mut encoder = match std::mem::replace(&mut self.work, Work::Fresh) {
            Work::Fresh => return Ok(None),
            Work::Ready(encoder) => return Ok(Some(encoder)),
            Work::Busy(task) => {
                task.join().await.map_err(|it| Error::internal(format!("an encoder ended: {it}")))??
            }
        };
        self.size = encoder.size();
        let bytes = encoder.take()?;
        self.encoder_memory = encoder.memory();
        if !bytes.is_empty() {
            self.sink.push(bytes).await?;
        }
        Ok(Some(encoder))
    }

    /// Ends the file. It is in the store when this returns, and nobody sees it yet.
    pub(super) async fn finish(mut self) -> Result<Written> {
        let encoder = self.ready().await?;
        let chunk = std::mem::take(&mut self.pending);
        let (target, schema) = (Arc::clone(&self.target), Arc::clone(&self.schema));
        let few = encoder.is_none() && chunk.cells() <= FEW_CELLS;
        let finish = move || {
            let (_busy, threads) = Busy::enter(&target.encoding, target.threads);
            let threads = if few { 1 } else { threads };
            let mut encoder = match encoder {
                Some(encoder) => encoder,
                None => Box::new(Encoder::new(&target.shape, &schema, &chunk)?),
            };
            encoder.write(&chunk, threads)?;
            encoder.finish(threads)
        };
        let finished: Result<Finished> = match few {
            true => finish(),
            false => {
                let task = SpawnedTask::spawn_blocking(finish);
                task.join().await.map_err(|it| Error::internal(format!("an encoder ended: {it}")))?
            }
        };
        let Finished { rest, metadata, nan } = finished?;
        self.sink.push(rest).await?;
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
