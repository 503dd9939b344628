//! The files that a statement which changes rows has met.
//!
//! Such a statement asks for rows by place: the number of a file and the row's number in it. Numbers are given out as the
//! scan of the target finds files, so that only files that may hold wanted rows get one, and a row's place is two small
//! integers, whatever lies between the scan and the end of the plan.
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use arrow_schema::{DataType, Field, FieldRef, Schema};
use lakebed_core::{
    Error, Result,
    expr::Predicate,
    path::FilePath,
    scan::{Merge, ScanTask},
};

use crate::scan::{Constant, Part, Reading, Shown, ShownKind, VIRTUAL};

/// The column with a file's number. No text of a user's can hold its name, and no table has it.
pub(crate) const FILE_NUMBER: &str = "\0file";
/// The column with a row's number in its file, from 0 and with the rows that are gone.
pub(crate) const ROW_NUMBER: &str = "\0row";

/// Files by number, and what was asked of them.
#[derive(Debug, Default)]
pub(crate) struct Ground {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<FilePath, i32>,
    tasks: Vec<ScanTask>,
    /// A condition that every row the statement asked for meets; `None` before the first scan.
    read: Option<Predicate>,
    undecided: bool,
}

impl Ground {
    /// Gives each reading's file its number. `read` is what a scan asked for that looks for rows, and `decided` whether its
    /// filters on partition columns were checked for whole files.
    ///
    /// # Errors
    /// Unsupported for files that become rows together: none of their rows has a place of its own.
    pub(crate) fn enrol(&self, readings: &mut [Reading], read: Option<Predicate>, decided: bool) -> Result<()> {
        let mut known = self.known();
        for reading in readings.iter_mut() {
            reading.number = Some(known.number(&reading.task)?);
        }
        known.undecided |= !decided;
        if let Some(read) = read {
            known.read = Some(match known.read.take() {
                None => read,
                Some(before) if before == Predicate::True || before == read => before,
                Some(_) if read == Predicate::True => read,
                Some(before) => Predicate::Or(vec![before, read]),
            });
        }
        Ok(())
    }

    /// Whether every scan dropped the files that its filters on partition columns do not want.
    pub(crate) fn is_decided(&self) -> bool {
        !self.known().undecided
    }

    /// A condition that every row the statement asked for meets.
    pub(crate) fn read(&self) -> Predicate {
        self.known().read.clone().unwrap_or(Predicate::False)
    }

    pub(crate) fn task(&self, number: i32) -> Result<ScanTask> {
        let task = usize::try_from(number).ok().and_then(|it| self.known().tasks.get(it).cloned());
        task.ok_or_else(|| Error::internal(format!("no file has number {number}")))
    }

    /// The numbers given out so far.
    pub(crate) fn numbers(&self) -> Vec<i32> {
        let mut numbers: Vec<i32> = self.known().numbers.values().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The file as something to read again.
    pub(crate) fn reading(&self, number: i32, part: Part) -> Result<Reading> {
        Ok(Reading { number: Some(number), part, ..self.task(number)?.into() })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn number(&mut self, task: &ScanTask) -> Result<i32> {
        let (Merge::Concat, [file]) = (&task.merge, task.files.as_slice()) else {
            return Err(Error::unsupported("changing rows of a table whose files are merged by key"));
        };
        if let Some(number) = self.numbers.get(&file.path) {
            return Ok(*number);
        }
        let number = i32::try_from(self.tasks.len()).map_err(|_| Error::internal("more files than numbers"))?;
        self.numbers.insert(file.path.clone(), number);
        self.tasks.push(task.clone());
        Ok(number)
    }
}

/// What a table shows, and the two numbers.
pub(super) fn with_numbers(shown: &Shown) -> Shown {
    let column =
        |name, kind| Field::new(name, kind, true).with_metadata([(VIRTUAL.to_owned(), "true".to_owned())].into());
    let mut fields: Vec<FieldRef> = shown.schema.fields().iter().cloned().collect();
    let mut kinds = shown.kinds.clone();
    fields.push(column(FILE_NUMBER, DataType::Int32).into());
    kinds.push(ShownKind::Constant(Constant::FileNumber));
    fields.push(column(ROW_NUMBER, DataType::Int64).into());
    kinds.push(ShownKind::RowIndex);
    Shown { schema: Schema::new(fields).into(), kinds }
}
