//! The columns of one file, encoded side by side.
//!
//! Each column is a lane: a queue of what is to be done with it, in order. A worker takes the idle lane with the most
//! bytes waiting, does one job of it, and puts it back. So no column waits for another, and whoever makes the rows waits
//! only while [`AHEAD`] chunks are under way. The worker that ends the last column of a row group writes the group.
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use arrow_array::ArrayRef;
use arrow_schema::{FieldRef, SchemaRef};
use bytes::Bytes;
use lakebed_codec::fence::fence;
use lakebed_core::{Error, ErrorKind, Result};
use parquet::{
    arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves},
    errors::ParquetError,
    file::{metadata::ParquetMetaData, writer::SerializedFileWriter},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    encode::{Chunk, leaf_count},
    encoding,
    pieces::Pieces,
    stats,
};

/// Chunks of one file that are under way at most.
const AHEAD: usize = 3;

/// The lanes of one file, and the file they end in.
pub(super) struct Lanes {
    state: Mutex<State>,
    output: Mutex<Output>,
    room: Arc<Semaphore>,
    /// Bytes of rows that are not encoded yet.
    under_way: Arc<AtomicUsize>,
    /// Bytes of row groups that nobody has taken yet.
    held: AtomicUsize,
}

#[derive(Default)]
struct State {
    lanes: Vec<Lane>,
    workers: usize,
    /// The first thing that went wrong.
    failure: Option<Error>,
    /// Nobody wants the file any more.
    stopped: bool,
}

/// One column's queue.
struct Lane {
    /// Absent while a worker has it.
    column: Option<Column>,
    jobs: VecDeque<Job>,
    /// Bytes of the rows in `jobs`.
    waiting: usize,
    /// The row group that `encoded` belongs to.
    group: usize,
    encoded: usize,
    memory: usize,
    leaves: usize,
}

/// One of the file's columns.
struct Column {
    field: FieldRef,
    /// Where its leaves begin among the file's.
    first_leaf: usize,
    /// Of its leaves; empty between two row groups.
    writers: Vec<ArrowColumnWriter>,
    /// Whether a leaf has held a NaN.
    nan: Vec<bool>,
}

enum Job {
    /// A row group begins, by its number.
    Open(usize, Vec<ArrowColumnWriter>),
    Rows(Arc<Flying>),
    Close(usize),
}

/// A chunk on its way through the lanes. It makes room for the next one when the last column is done with it.
struct Flying {
    chunk: Chunk,
    under_way: Arc<AtomicUsize>,
    _room: OwnedSemaphorePermit,
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.under_way.fetch_sub(self.chunk.bytes(), Ordering::Relaxed);
    }
}

struct Output {
    writer: SerializedFileWriter<Pieces>,
    leaves: usize,
    /// Row groups that are written.
    done: usize,
    /// Columns of the groups after those, by leaf.
    ended: VecDeque<Vec<(usize, ArrowColumnChunk)>>,
}

impl Lanes {
    pub(super) fn new(writer: SerializedFileWriter<Pieces>, schema: &SchemaRef) -> Self {
        let (mut lanes, mut leaves) = (Vec::new(), 0);
        for field in schema.fields() {
            let own = leaf_count(field.data_type());
            let column =
                Column { field: Arc::clone(field), first_leaf: leaves, writers: Vec::new(), nan: vec![false; own] };
            lanes.push(Lane {
                column: Some(column),
                jobs: VecDeque::new(),
                waiting: 0,
                group: 0,
                encoded: 0,
                memory: 0,
                leaves: own,
            });
            leaves += own;
        }
        Self {
            state: Mutex::new(State { lanes, ..State::default() }),
            output: Mutex::new(Output { writer, leaves, done: 0, ended: VecDeque::new() }),
            room: Arc::new(Semaphore::new(AHEAD)),
            under_way: Arc::default(),
            held: AtomicUsize::new(0),
        }
    }

    /// Queues the beginning of row group `group`; `writers` are those of its leaves.
    pub(super) fn open(&self, group: usize, writers: Vec<ArrowColumnWriter>) {
        let mut writers = writers.into_iter();
        for lane in &mut self.state().lanes {
            let own = writers.by_ref().take(lane.leaves).collect();
            lane.jobs.push_back(Job::Open(group, own));
        }
    }

    /// Queues a chunk's rows, as soon as there is room.
    pub(super) async fn push(&self, chunk: Chunk) -> Result<()> {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_| Error::internal("the lanes of a file are closed"))?;
        self.under_way.fetch_add(chunk.bytes(), Ordering::Relaxed);
        let flying = Arc::new(Flying { chunk, under_way: Arc::clone(&self.under_way), _room: room });
        let mut state = self.state();
        for (at, lane) in state.lanes.iter_mut().enumerate() {
            lane.waiting += flying.chunk.column_bytes(at);
            lane.jobs.push_back(Job::Rows(Arc::clone(&flying)));
        }
        state.failed()
    }

    /// Queues the end of row group `group`.
    pub(super) fn close(&self, group: usize) {
        for lane in &mut self.state().lanes {
            lane.jobs.push_back(Job::Close(group));
        }
    }

    /// Whether one more worker would find something to do. It is counted from now on.
    pub(super) fn wants_worker(&self, most: usize) -> bool {
        let mut state = self.state();
        let wanted = state.workers < most && state.lanes.iter().any(Lane::is_ready);
        state.workers += usize::from(wanted);
        wanted
    }

    pub(super) fn workers(&self) -> usize {
        self.state().workers
    }

    /// Works until nothing is left that no other worker has. The caller was counted by [`Lanes::wants_worker`].
    pub(super) fn work(&self) {
        while let Some((at, mut column, job)) = self.next() {
            // A panic would keep the column, and with it the room of every chunk that waits for it.
            let name = column.field.name().clone();
            let done = fence(&name, || self.run(at, &mut column, job));
            let done = done.map_err(|it| Error::internal(format!("encoding failed: {it}"))).flatten();
            self.put_back(at, column, done);
        }
    }

    fn next(&self) -> Option<(usize, Column, Job)> {
        let mut state = self.state();
        let idle = state.lanes.iter_mut().enumerate().filter(|(_, it)| it.is_ready());
        let Some((at, lane)) = idle.max_by_key(|(_, it)| it.waiting) else {
            state.workers -= 1;
            return None;
        };
        let job = lane.jobs.pop_front()?;
        if let Job::Rows(flying) = &job {
            lane.waiting -= flying.chunk.column_bytes(at);
        }
        Some((at, lane.column.take()?, job))
    }

    fn run(&self, at: usize, column: &mut Column, job: Job) -> Result<Option<usize>> {
        match job {
            Job::Open(group, writers) => {
                column.writers = writers;
                return Ok(Some(group));
            }
            Job::Rows(flying) => flying.chunk.column(at).try_for_each(|it| column.write(it)).map_err(failed)?,
            Job::Close(group) => {
                let leaves = (column.first_leaf..).zip(std::mem::take(&mut column.writers));
                let ended = leaves.map(|(leaf, writer)| Ok((leaf, writer.close()?)));
                let ended = ended.collect::<Result<Vec<_>, ParquetError>>().map_err(failed)?;
                let mut output = self.output();
                output.end(group, ended)?;
                self.held.store(output.writer.inner().held(), Ordering::Relaxed);
            }
        }
        Ok(None)
    }

    fn put_back(&self, at: usize, column: Column, done: Result<Option<usize>>) {
        let mut state = self.state();
        let lane = &mut state.lanes[at];
        lane.encoded = column.writers.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum();
        lane.memory = column.writers.iter().map(ArrowColumnWriter::memory_size).sum();
        lane.column = Some(column);
        match done {
            Ok(Some(group)) => lane.group = group,
            Ok(None) => (),
            Err(err) => {
                state.failure.get_or_insert(err);
                state.drop_jobs();
            }
        }
        if state.stopped {
            state.drop_jobs();
        }
    }

    /// Leaves what is queued undone: nobody wants the file.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.drop_jobs();
    }

    /// # Errors
    /// What went wrong in a worker, once.
    pub(super) fn check(&self) -> Result<()> {
        self.state().failed()
    }

    /// Encoded bytes of row group `group`, as far as workers have come.
    pub(super) fn encoded(&self, group: usize) -> usize {
        self.state().lanes.iter().filter(|it| it.group == group).map(|it| it.encoded).sum()
    }

    /// The file's size so far, as well as it is known.
    pub(super) fn size(&self) -> u64 {
        let open: usize = self.state().lanes.iter().map(|it| it.encoded).sum();
        (self.output().writer.bytes_written() + open) as u64
    }

    pub(super) fn memory(&self) -> usize {
        let encoded: usize = self.state().lanes.iter().map(|it| it.memory).sum();
        encoded + self.under_way.load(Ordering::Relaxed) + self.held.load(Ordering::Relaxed)
    }

    /// The bytes of the row groups that ended since the last call.
    pub(super) fn take(&self) -> Result<Vec<Bytes>> {
        let mut output = self.output();
        output.writer.flush().map_err(|it| Error::internal(it.to_string()))?;
        self.held.store(0, Ordering::Relaxed);
        Ok(output.writer.inner_mut().take())
    }

    /// Ends the file, after all of its row groups. Its footer, and for each leaf whether a NaN was written.
    pub(super) fn finish(&self) -> Result<(ParquetMetaData, Vec<bool>)> {
        let state = self.state();
        let columns = state.lanes.iter().map(|it| it.column.as_ref()).collect::<Option<Vec<_>>>();
        let columns = columns.ok_or_else(|| Error::internal("a file ended while a column was being encoded"))?;
        let nan = columns.iter().flat_map(|it| it.nan.iter().copied()).collect();
        let mut output = self.output();
        if !output.ended.is_empty() {
            return Err(Error::internal("a file ended before its last row group"));
        }
        Ok((output.writer.finish().map_err(failed)?, nan))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn failed(&mut self) -> Result<()> {
        match self.failure.take() {
            None if self.stopped => Err(Error::internal("a file that nobody wants")),
            None => Ok(()),
            Some(err) => {
                self.stopped = true;
                Err(err)
            }
        }
    }

    fn drop_jobs(&mut self) {
        for lane in &mut self.lanes {
            lane.jobs.clear();
            lane.waiting = 0;
        }
    }
}

impl Lane {
    fn is_ready(&self) -> bool {
        self.column.is_some() && !self.jobs.is_empty()
    }
}

impl Column {
    fn write(&mut self, array: &ArrayRef) -> Result<(), ParquetError> {
        for (nan, leaf) in self.nan.iter_mut().zip(encoding::leaves(array)) {
            *nan = *nan || stats::has_nan(&leaf);
        }
        let leaves = compute_leaves(&self.field, array)?;
        self.writers.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| writer.write(leaf))
    }
}

impl Output {
    /// Takes columns of row group `group`; writes the groups that are whole, in order.
    fn end(&mut self, group: usize, columns: Vec<(usize, ArrowColumnChunk)>) -> Result<()> {
        let at = group.checked_sub(self.done).ok_or_else(|| Error::internal("a row group that was written"))?;
        while self.ended.len() <= at {
            self.ended.push_back(Vec::with_capacity(self.leaves));
        }
        self.ended[at].extend(columns);
        while let Some(mut whole) = self.ended.pop_front_if(|it| it.len() == self.leaves) {
            whole.sort_by_key(|it| it.0);
            let mut group = self.writer.next_row_group().map_err(failed)?;
            for (_, column) in whole {
                column.append_to_row_group(&mut group).map_err(failed)?;
            }
            group.close().map_err(failed)?;
            self.done += 1;
        }
        Ok(())
    }
}

pub(super) fn failed(err: ParquetError) -> Error {
    match err {
        ParquetError::External(inner) => Error::new(ErrorKind::Internal, inner),
        other => Error::internal(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::{ArrowSchemaConverter, arrow_writer::ArrowRowGroupWriterFactory};

    use super::*;

    fn chunk(columns: [ArrayRef; 2]) -> Chunk {
        let mut chunk = Chunk::default();
        let rows = columns[0].len();
        chunk.push(columns.to_vec(), rows).unwrap();
        chunk
    }

    fn right() -> [ArrayRef; 2] {
        [Arc::new(Int64Array::from(vec![1, 2])), Arc::new(Int64Array::from(vec![3, 4]))]
    }

    fn lanes() -> (Lanes, ArrowRowGroupWriterFactory) {
        let field = |name| Field::new(name, DataType::Int64, true);
        let schema: SchemaRef = Arc::new(Schema::new(vec![field("a"), field("b")]));
        let root = ArrowSchemaConverter::new().convert(&schema).unwrap().root_schema_ptr();
        let writer = SerializedFileWriter::new(Pieces::default(), root, Arc::default()).unwrap();
        let factory = ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema));
        (Lanes::new(writer, &schema), factory)
    }

    #[tokio::test]
    async fn groups_are_written_in_order_whoever_ends_first() {
        let (lanes, factory) = lanes();
        for group in 0..3 {
            lanes.open(group, factory.create_column_writers(group).unwrap());
            lanes.push(chunk(right())).await.unwrap();
            lanes.close(group);
        }
        std::thread::scope(|scope| {
            while lanes.wants_worker(2) {
                scope.spawn(|| lanes.work());
            }
        });
        lanes.check().unwrap();
        let (metadata, nan) = lanes.finish().unwrap();
        assert_eq!((metadata.num_row_groups(), metadata.file_metadata().num_rows(), nan.len()), (3, 6, 2));
        assert_eq!(lanes.memory(), lanes.held.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn a_column_that_fails_stops_the_file_and_nobody_waits_for_it() {
        let (lanes, factory) = lanes();
        lanes.open(0, factory.create_column_writers(0).unwrap());
        let wrong: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        lanes.push(chunk([Arc::clone(&right()[0]), wrong])).await.unwrap();
        assert!(lanes.wants_worker(1));
        lanes.work();
        assert_eq!(lanes.under_way.load(Ordering::Relaxed), 0);
        // The rows' maker hears of it at the next chunk, of which no more than a few fit in.
        let mut heard = Vec::new();
        for _ in 0..=AHEAD {
            heard.push(lanes.push(chunk(right())).await);
            lanes.stop();
        }
        assert!(heard.iter().all(Result::is_err), "{heard:?}");
    }
}
