//! Rows of files, by place.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Int32Type, Int64Type},
};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use lakebed_core::{Error, Result};
use roaring::RoaringTreemap;

use crate::error::of_datafusion;

/// Memory that a position takes at most, but for a constant: bitmaps hold runs of 2^16 rows in 8 KiB or less.
const BYTES_A_ROW: usize = 2;

/// Rows of files by the files' numbers.
#[derive(Debug)]
pub(super) struct Marks {
    files: BTreeMap<i32, Marked>,
    held: MemoryReservation,
}

/// Rows of one file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Marked {
    /// All that its vectors leave.
    All,
    Rows(Arc<RoaringTreemap>),
}

/// Whether a row is marked for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    New,
    Again,
}

impl Marks {
    pub(super) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        Self { files: BTreeMap::new(), held: MemoryConsumer::new("positions of rows").register(pool) }
    }

    pub(super) fn whole(pool: &Arc<dyn MemoryPool>, files: impl IntoIterator<Item = i32>) -> Self {
        Self { files: files.into_iter().map(|it| (it, Marked::All)).collect(), ..Self::new(pool) }
    }

    /// Marks the rows that the batch's first two columns, file and row number, name.
    pub(super) fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let places: Vec<(i32, u64)> = places(batch)?.flatten().collect();
        let mut new = 0;
        // Rows of one file come together.
        for run in places.chunk_by(|a, b| a.0 == b.0) {
            let marked = self.files.entry(run[0].0).or_insert_with(|| Marked::Rows(Arc::default()));
            if let Marked::Rows(rows) = marked {
                let rows = Arc::make_mut(rows);
                new += run.iter().filter(|it| rows.insert(it.1)).count();
            }
        }
        self.held.try_grow(BYTES_A_ROW * new).map_err(of_datafusion)
    }

    pub(super) fn add(&mut self, file: i32, row: u64) -> Result<Mark> {
        let marked = self.files.entry(file).or_insert_with(|| Marked::Rows(Arc::default()));
        let Marked::Rows(rows) = marked else { return Ok(Mark::Again) };
        if !Arc::make_mut(rows).insert(row) {
            return Ok(Mark::Again);
        }
        self.held.try_grow(BYTES_A_ROW).map_err(of_datafusion)?;
        Ok(Mark::New)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// In the order of the files' numbers; files without a marked row are not among them.
    pub(super) fn files(&self) -> impl Iterator<Item = (i32, &Marked)> {
        self.files.iter().map(|(file, marked)| (*file, marked))
    }

    /// Checks that `rows` were read where these are marked.
    ///
    /// # Errors
    /// Corrupt if not: a file that gives other rows each time it is read must not be changed.
    pub(super) fn check(&self, rows: u64) -> Result<()> {
        let whole = self.files.values().any(|it| *it == Marked::All);
        match whole || rows == self.rows() {
            true => Ok(()),
            false => Err(Error::corrupt(format!("{} rows were found, and {rows} of them were there", self.rows()))
                .with_hint("nothing was changed")),
        }
    }

    /// How many rows are marked one by one; those of whole files are not counted.
    pub(super) fn rows(&self) -> u64 {
        let rows = |it: &Marked| match it {
            Marked::All => 0,
            Marked::Rows(rows) => rows.len(),
        };
        self.files.values().map(rows).sum()
    }
}

/// The places that a batch's first two columns name; none where they are null.
pub(super) fn places(batch: &RecordBatch) -> Result<impl Iterator<Item = Option<(i32, u64)>>> {
    let wrong = || Error::internal("a plan lost the places of its rows");
    let files = batch.columns().first().and_then(|it| it.as_primitive_opt::<Int32Type>()).ok_or_else(wrong)?.clone();
    let rows = batch.columns().get(1).and_then(|it| it.as_primitive_opt::<Int64Type>()).ok_or_else(wrong)?.clone();
    Ok((0..batch.num_rows()).map(move |at| {
        let row = rows.is_valid(at).then(|| u64::try_from(rows.value(at)).ok())??;
        files.is_valid(at).then(|| (files.value(at), row))
    }))
}
