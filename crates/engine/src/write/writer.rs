//! Rows of the table → files, one open file a partition.
//!
//! Where rows go to more partitions than there is memory for, those that still come are sorted by partition ([`crowd`]
//! (super::crowd)): so each partition gets one file of a writer, and not one whenever memory is short.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::execution::{
    TaskContext,
    memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation},
};
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{Error, Result};

use super::{
    Kind, WriteContext, Written,
    crowd::Crowd,
    file::OpenFile,
    refit::{exactly, refit},
    route::Router,
    target::Target,
};
use crate::error::of_datafusion;

/// Files that are encoded at once; others only hold their rows. Where rows go to more partitions, they are sorted.
const MOST_ENCODED: usize = 64;
/// Memory of one writer, where the session has no limit. Else all of them have a quarter of it: the query needs the rest.
const MOST_MEMORY: usize = 256 << 20;
/// Files ended at once.
const ENDING: usize = 8;
/// Memory without which no file can be written: it is not asked for.
const FLOOR: usize = 8 << 20;

/// Writes rows of one kind into files of one target. One a stream: several write side by side.
#[derive(Debug)]
pub(crate) struct FileWriter {
    target: Arc<Target>,
    kind: Kind,
    schema: SchemaRef,
    router: Router,
    /// By the router's number of the partition.
    open: BTreeMap<usize, OpenFile>,
    done: Vec<Written>,
    memory: MemoryReservation,
    /// Bytes to hold at most.
    most: usize,
    /// What a sort of its rows runs in.
    task: Arc<TaskContext>,
    /// Present once there were too many partitions.
    crowd: Option<Crowd>,
}

impl FileWriter {
    pub(crate) fn new(context: &WriteContext, target: &Arc<Target>, kind: Kind) -> Self {
        let pool = &context.state.runtime_env().memory_pool;
        let streams = context.state.config().target_partitions().max(1);
        let most = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => (bytes / (4 * streams)).min(MOST_MEMORY),
            _ => MOST_MEMORY,
        };
        Self {
            target: Arc::clone(target),
            kind,
            schema: target.file_schema(kind),
            router: Router::new(&target.partition),
            open: BTreeMap::new(),
            done: Vec::new(),
            memory: MemoryConsumer::new("data files being written").register(pool),
            most,
            task: context.task(),
            crowd: None,
        }
    }

    /// Takes rows: the table's columns by position, in its types but that text and bytes may be laid out otherwise; then,
    /// in files of changes, `_change_type`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for a row that breaks a rule of the table;
    /// [`ErrorKind::Limit`](lakebed_core::ErrorKind) if there is no memory left. The writer is of no use after an error.
    pub(crate) async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = self.target.as_recorded(batch)?;
        self.check(&batch)?;
        if let Some(crowd) = &self.crowd {
            if crowd.add(&batch).await? {
                return Ok(());
            }
            // The sort takes no more rows: it says why.
            return Err(self.write_sorted().await.err().unwrap_or_else(|| Error::internal("a sort ended early")));
        }
        let schema = batch.schema();
        self.place(batch).await?;
        if self.is_crowded() {
            let by = self.target.partition.iter().map(|it| it.column);
            self.crowd = Some(Crowd::new(&schema, by, Arc::clone(&self.task))?);
            // What is held stays as it is: to end it would make two files of a partition.
            self.most = (2 * self.most).max(2 * FLOOR);
        }
        self.keep_small().await
    }

    /// Gives rows to the files of their partitions: which, by the first row of each.
    async fn place(&mut self, batch: RecordBatch) -> Result<Vec<usize>> {
        let rows = batch.num_rows();
        let target = Arc::clone(&self.target);
        let mut stored = Vec::with_capacity(self.schema.fields().len());
        for (field, at) in target.shape.schema.fields().iter().zip(&target.stored) {
            stored.push(refit(batch.column(*at), field)?);
        }
        if self.kind == Kind::Changes {
            let last = self.schema.fields().len() - 1;
            stored.push(refit(batch.column(batch.num_columns() - 1), self.schema.field(last))?);
        }
        let key =
            |it: &super::target::PartitionColumn| exactly(batch.column(it.column), target.schema().field(it.column));
        let keys = target.partition.iter().map(key).collect::<Result<Vec<_>>>()?;
        let mut places = Vec::new();
        for (place, arrays) in self.router.route(&keys, stored, rows)? {
            let rows = arrays.first().map_or(rows, |it| it.len());
            self.push(place, arrays, rows).await?;
            places.push(place);
        }
        Ok(places)
    }

    /// Whether there are more partitions than files can be open for. With fewer, memory is had by ending row groups.
    fn is_crowded(&self) -> bool {
        let encoded = self.open.values().filter(|it| it.has_encoder()).count();
        let memory = || self.open.values().map(OpenFile::memory).sum::<usize>();
        self.open.len() > MOST_ENCODED && (encoded > MOST_ENCODED || memory() > self.most.max(FLOOR))
    }

    /// Writes what was sorted: a file ends when its partition has passed.
    async fn write_sorted(&mut self) -> Result<()> {
        let Some(crowd) = self.crowd.take() else { return Ok(()) };
        let mut sorted = crowd.sorted().await?;
        let mut last = None;
        while let Some(batch) = sorted.try_next().await.map_err(of_datafusion)? {
            let mut passed = self.place(batch).await?;
            let next = passed.pop();
            passed.extend(last.filter(|it| Some(*it) != next && !passed.contains(it)));
            last = next;
            let passed: Vec<OpenFile> = passed.iter().filter_map(|it| self.open.remove(it)).collect();
            self.done.extend(ended(passed).await?);
            self.keep_small().await?;
        }
        Ok(())
    }

    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let columns = self.target.schema().fields().len() + usize::from(self.kind == Kind::Changes);
        if batch.num_columns() != columns {
            return Err(Error::internal(format!("{} columns for a table of {columns}", batch.num_columns())));
        }
        match self.kind {
            Kind::Data => self.target.checks.check(batch),
            Kind::Moved | Kind::Changes => Ok(()),
        }
    }

    async fn push(&mut self, place: usize, arrays: Vec<arrow_array::ArrayRef>, rows: usize) -> Result<()> {
        let file = match self.open.get_mut(&place) {
            Some(file) => file,
            None => {
                let partition = self.router.partitions[place].clone();
                let file = OpenFile::new(&self.target, self.kind, &self.schema, partition)?;
                self.open.entry(place).or_insert(file)
            }
        };
        file.push(arrays, rows).await?;
        if file.size() >= self.target.shape.target_bytes {
            self.end(place).await?;
        }
        Ok(())
    }

    async fn end(&mut self, place: usize) -> Result<()> {
        if let Some(file) = self.open.remove(&place) {
            self.done.push(file.finish().await?);
        }
        Ok(())
    }

    /// Keeps files and memory below their bounds.
    async fn keep_small(&mut self) -> Result<()> {
        while self.open.values().filter(|it| it.has_encoder()).count() > MOST_ENCODED
            && let Some(place) = self.largest(OpenFile::has_encoder)
        {
            self.end(place).await?;
        }
        loop {
            let memory: usize = self.open.values().map(OpenFile::memory).sum();
            let granted = self.memory.try_resize(memory.min(self.most));
            if granted.is_ok() && memory <= self.most || memory <= FLOOR {
                return Ok(());
            }
            match (self.largest(|it| it.in_rows() > 0), self.largest(|it| it.memory() > 0)) {
                (Some(place), _) => {
                    if let Some(file) = self.open.get_mut(&place) {
                        file.flush().await?;
                    }
                }
                (None, Some(place)) => self.end(place).await?,
                (None, None) => return granted.map_err(of_datafusion),
            }
        }
    }

    fn largest(&self, of: impl Fn(&OpenFile) -> bool) -> Option<usize> {
        let files = self.open.iter().filter(|(_, file)| of(file));
        files.max_by_key(|(_, file)| file.memory()).map(|(place, _)| *place)
    }

    /// Ends all files. They are in the store when this returns, and nobody sees them yet.
    pub(crate) async fn finish(mut self) -> Result<Vec<Written>> {
        self.write_sorted().await?;
        let open: Vec<OpenFile> = std::mem::take(&mut self.open).into_values().collect();
        self.done.extend(ended(open).await?);
        self.done.sort_by(|a, b| a.file.path.cmp(&b.file.path));
        Ok(std::mem::take(&mut self.done))
    }
}

/// Ends files, several at once.
async fn ended(files: Vec<OpenFile>) -> Result<Vec<Written>> {
    stream::iter(files.into_iter().map(OpenFile::finish)).buffer_unordered(ENDING).try_collect().await
}
