//! Rows of the table → files, one open file a partition.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{Error, Result};

use super::{
    Kind, WriteContext, Written,
    file::OpenFile,
    refit::{exactly, refit},
    route::Router,
    target::Target,
};
use crate::error::of_datafusion;

/// Files that are encoded at once; where rows go to more partitions, the largest is ended. Others only hold their rows.
const MOST_ENCODED: usize = 64;
/// Memory of one writer, where the session has no limit.
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
}

impl FileWriter {
    pub(crate) fn new(context: &WriteContext, target: &Arc<Target>, kind: Kind) -> Self {
        let pool = &context.state.runtime_env().memory_pool;
        Self {
            target: Arc::clone(target),
            kind,
            schema: target.file_schema(kind),
            router: Router::new(&target.partition),
            open: BTreeMap::new(),
            done: Vec::new(),
            memory: MemoryConsumer::new("data files being written").register(pool),
        }
    }

    /// Takes rows: the table's columns by position, in its types but that text and bytes may be laid out otherwise; then,
    /// in files of changes, `_change_type`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for a row that breaks a rule of the table;
    /// [`ErrorKind::Limit`](lakebed_core::ErrorKind) if there is no memory left. The writer is of no use after an error.
    pub(crate) async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let target = Arc::clone(&self.target);
        let batch = target.as_recorded(batch)?;
        self.check(&batch)?;
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
        for (place, arrays) in self.router.route(&keys, stored, rows)? {
            let rows = arrays.first().map_or(rows, |it| it.len());
            self.push(place, arrays, rows).await?;
        }
        self.keep_small().await
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
            let granted = self.memory.try_resize(memory);
            if granted.is_ok() && memory <= MOST_MEMORY || memory <= FLOOR {
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
        let open = std::mem::take(&mut self.open).into_values().map(OpenFile::finish);
        let ended: Vec<Written> = stream::iter(open).buffer_unordered(ENDING).try_collect().await?;
        self.done.extend(ended);
        self.done.sort_by(|a, b| a.file.path.cmp(&b.file.path));
        Ok(std::mem::take(&mut self.done))
    }
}
