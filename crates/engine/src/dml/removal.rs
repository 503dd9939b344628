//! Rows leave their files: by vector, or with the file.
//!
//! A file goes as a whole when no row of it would be left; whether one would be is asked of the file itself, for the
//! number of rows that a table records may be wrong.
use lakebed_core::{
    Error, Result,
    file::{DeleteFile, DeleteKind, FileKey},
    format::TableFormat,
    scan::ScanTask,
    storage::Storage,
    write::{NewVector, RowDeletes},
};
use roaring::RoaringTreemap;

use super::{
    desk::Desk,
    marks::{Marked, Marks},
};
use crate::{
    scan::Reading,
    write::{Driver, WriteContext},
};

/// What the removal of marked rows does to files.
#[derive(Debug, Default)]
pub(super) struct Removal {
    pub(super) removed: Vec<FileKey>,
    pub(super) removed_bytes: u64,
    /// Vectors that `removed` files had.
    pub(super) vectors_removed: u64,
    pub(super) vectors: Vec<NewVector>,
    /// Of `vectors`, those in the place of an older one.
    pub(super) vectors_replaced: u64,
    /// Rows of `removed` that are not marked: they have to be written anew.
    pub(super) left: Vec<Reading>,
    /// Rows that go.
    pub(super) rows: u64,
}

/// Finds out how the marked rows leave.
pub(super) async fn plan(desk: &mut Desk<'_>, driver: &Driver, marks: &Marks) -> Result<Removal> {
    let WriteContext { table, format, .. } = driver.context();
    let mut removal = Removal { rows: marks.rows() + whole(desk, marks).await?, ..Removal::default() };
    if driver.rules().deletes == RowDeletes::Rewrite {
        for (file, _) in marks.files() {
            removal.remove(&desk.ground.task(file)?);
        }
        removal.left = desk.unmarked(marks.files())?;
        return Ok(removal);
    }
    let mut vectors = Vec::new();
    let mut unsure = Vec::new();
    for (file, marked) in marks.files() {
        let task = desk.ground.task(file)?;
        match marked {
            Marked::All => removal.remove(&task),
            Marked::Rows(rows) => {
                let gone = gone(format.as_ref(), table.storage(), &task).await? | rows.as_ref();
                if task.files[0].stats.rows.is_none_or(|it| it <= gone.len()) {
                    unsure.push((file, marked));
                }
                vectors.push((file, task, gone));
            }
        }
    }
    let left = desk.unmarked(unsure.iter().copied())?;
    let left = desk.count(left).await?;
    let empty: Vec<i32> = unsure.into_iter().map(|it| it.0).filter(|it| !left.contains_key(it)).collect();
    for (file, task, rows) in vectors {
        if empty.contains(&file) {
            removal.remove(&task);
            continue;
        }
        removal.vectors_replaced += u64::from(vector_of(&task)?.is_some());
        removal.vectors.push(NewVector { target: task.files[0].path.clone(), rows });
    }
    Ok(removal)
}

impl Removal {
    fn remove(&mut self, task: &ScanTask) {
        let file = &task.files[0];
        let vector = task.deletes.iter().find(|it| it.kind == DeleteKind::Vector);
        self.removed.push(FileKey { path: file.path.clone(), vector: vector.and_then(|it| it.id.clone()) });
        self.removed_bytes = self.removed_bytes.saturating_add(file.bytes);
        self.vectors_removed += u64::from(vector.is_some());
    }
}

/// The rows of files that go as a whole: as the table records them, else as the files have them.
async fn whole(desk: &mut Desk<'_>, marks: &Marks) -> Result<u64> {
    let (mut known, mut unknown) = (0u64, Vec::new());
    for (file, marked) in marks.files().filter(|it| *it.1 == Marked::All) {
        let task = desk.ground.task(file)?;
        let gone = task.deletes.iter().try_fold(0u64, |sum, it| sum.checked_add(it.rows?));
        match task.files[0].stats.rows.zip(gone).and_then(|(rows, gone)| rows.checked_sub(gone)) {
            Some(rows) => known = known.saturating_add(rows),
            None => unknown.push((file, marked)),
        }
    }
    let unknown = desk.marked(unknown.into_iter())?;
    Ok(desk.count(unknown).await?.values().fold(known, |sum, it| sum.saturating_add(*it)))
}

/// The rows that a file's vectors have taken before.
async fn gone(format: &dyn TableFormat, storage: &Storage, task: &ScanTask) -> Result<RoaringTreemap> {
    match vector_of(task)? {
        Some(vector) => format.decode_vector(storage, vector).await,
        None => Ok(RoaringTreemap::new()),
    }
}

/// The vector on a task's file.
///
/// # Errors
/// Unsupported where rows are gone in another way, or by several vectors: then one new vector cannot take their place.
fn vector_of(task: &ScanTask) -> Result<Option<&DeleteFile>> {
    match task.deletes.as_slice() {
        [] => Ok(None),
        [vector] if vector.kind == DeleteKind::Vector => Ok(Some(vector)),
        _ => Err(Error::unsupported(format!("{}: rows of it are gone by more than one vector", task.files[0].path))),
    }
}
