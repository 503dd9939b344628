//! One row of the sorted rows of a key.
//!
//! *One stage*: the last row, the first that is no deletion, or the newest values. A key whose last word is a deletion
//! has no row.
//!
//! *Two stages*: the updates meet in the order of their chain, the newer winning when its ordering values are not
//! lower; then the outcome meets the base row under the same rule. A deletion that wins the first may lose the second.
//! A commit-time deletion (its ordering values null or 0) wins over everything before it and loses to everything after.
use std::{cmp::Ordering, ops::Range, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array, cast::AsArray, types::Int64Type,
};
use arrow_cast::cast;
use arrow_ord::partition::partition;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef, SortOptions};
use arrow_select::{concat::concat_batches, take::take};
use lakebed_core::{Error, scan::MergeRule};

/// In how many steps the rows of a key become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stages {
    One,
    /// Rows of files before `base_files` are the base.
    Two {
        base_files: i64,
        unconditional_deletes: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Last,
    First,
    Partial,
}

/// Takes sorted batches and gives the rows of finished keys; the last key stays open until more comes.
#[derive(Debug)]
pub(crate) struct Folder {
    schema: SchemaRef,
    rule: Rule,
    stages: Stages,
    key: Vec<usize>,
    order: Vec<usize>,
    marker: Option<(usize, Vec<String>)>,
    /// The column with the position of a row's file.
    file: usize,
    converter: RowConverter,
    open: Option<RecordBatch>,
}

impl Folder {
    pub(crate) fn new(
        schema: &Schema,
        rule: &MergeRule,
        stages: Stages,
        key: Vec<usize>,
        order: Vec<usize>,
        marker: Option<(usize, Vec<String>)>,
        file: usize,
    ) -> Result<Self, Error> {
        let rule = match rule {
            MergeRule::LastRow => Rule::Last,
            MergeRule::FirstRow => Rule::First,
            MergeRule::PartialUpdate => Rule::Partial,
            MergeRule::Aggregate(_) => {
                return Err(Error::unsupported("merging by aggregation is not read by this build"));
            }
        };
        let options = SortOptions { descending: false, nulls_first: true };
        let fields = order.iter().map(|at| SortField::new_with_options(schema.field(*at).data_type().clone(), options));
        let converter = RowConverter::new(fields.collect()).map_err(|it| Error::unsupported(it.to_string()))?;
        Ok(Self { schema: Arc::new(schema.clone()), rule, stages, key, order, marker, file, converter, open: None })
    }

    /// The columns of the rows of all keys that end before the last of `batch`.
    pub(crate) fn push(&mut self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, ArrowError> {
        let batch = match self.open.take() {
            Some(open) => concat_batches(batch.schema_ref(), [&open, batch])?,
            None => batch.clone(),
        };
        let groups = self.groups(&batch)?;
        let Some((last, closed)) = groups.split_last() else { return self.fold(&batch, &[]) };
        // A copy, so that the open rows do not keep the whole batch alive.
        let rest: UInt32Array = (last.start..last.end).map(index).collect();
        let rest = batch.columns().iter().map(|it| take(it, &rest, None)).collect::<Result<_, _>>()?;
        self.open = Some(RecordBatch::try_new(batch.schema(), rest)?);
        self.fold(&batch, closed)
    }

    /// The row of the last key.
    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        let rest = self.open.take().unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(&self.schema)));
        let groups = self.groups(&rest)?;
        self.fold(&rest, &groups)
    }

    fn groups(&self, batch: &RecordBatch) -> Result<Vec<Range<usize>>, ArrowError> {
        let whole = 0..batch.num_rows();
        if whole.is_empty() {
            return Ok(Vec::new());
        }
        if self.key.is_empty() {
            return Ok(vec![whole]);
        }
        let keys: Vec<ArrayRef> = self.key.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        Ok(partition(&keys)?.ranges())
    }

    fn fold(&self, batch: &RecordBatch, groups: &[Range<usize>]) -> Result<Vec<ArrayRef>, ArrowError> {
        let facts = self.facts(batch)?;
        let columns = batch.columns();
        if self.rule != Rule::Partial {
            let picked: UInt32Array = groups
                .iter()
                .filter_map(|it| self.pick(&facts, columns, it.clone()))
                .map(|it| index(it.lead))
                .collect();
            return columns.iter().map(|it| take(it, &picked, None)).collect();
        }
        let rows: Vec<State> = groups.iter().filter_map(|it| self.pick(&facts, columns, it.clone())).collect();
        let column = |(at, array): (usize, &ArrayRef)| {
            let picked: UInt32Array = rows.iter().map(|it| index(it.source(at))).collect();
            take(array, &picked, None)
        };
        columns.iter().enumerate().map(column).collect()
    }

    fn pick(&self, facts: &Facts, columns: &[ArrayRef], group: Range<usize>) -> Option<State> {
        match self.stages {
            Stages::One => self.one_stage(facts, columns, group),
            Stages::Two { base_files, .. } => self.two_stages(facts, columns, group, base_files),
        }
    }

    fn one_stage(&self, facts: &Facts, columns: &[ArrayRef], group: Range<usize>) -> Option<State> {
        match self.rule {
            Rule::Last => group.last().filter(|it| !facts.deletes(*it)).map(State::whole),
            Rule::First => group.into_iter().find(|it| !facts.deletes(*it)).map(State::whole),
            Rule::Partial => group.fold(None, |known: Option<State>, row| match (facts.deletes(row), known) {
                (true, _) => None,
                (false, None) => Some(State::whole(row)),
                (false, Some(known)) => Some(known.overlaid(columns, State::whole(row))),
            }),
        }
    }

    fn two_stages(&self, facts: &Facts, columns: &[ArrayRef], group: Range<usize>, base_files: i64) -> Option<State> {
        let of_base = |row: &usize| facts.files.value(*row) < base_files;
        // Sorted by file: the base comes first. A base has one row a key; should it have more, the last counts.
        let updates = group.clone().find(|it| !of_base(it)).unwrap_or(group.end);
        let base = (updates > group.start).then(|| State::whole(updates - 1));
        let meet = |older: State, newer: State| facts.meet(self.rule, columns, older, newer);
        let outcome = (updates..group.end).map(State::whole).reduce(meet);
        let row = match (base, outcome) {
            (Some(base), Some(outcome)) => meet(base, outcome),
            (base, outcome) => outcome.or(base)?,
        };
        (!facts.deletes(row.lead)).then_some(row)
    }

    fn facts(&self, batch: &RecordBatch) -> Result<Facts, ArrowError> {
        let order: Vec<ArrayRef> = self.order.iter().map(|at| Arc::clone(batch.column(*at))).collect();
        let deleted = match &self.marker {
            Some((at, values)) => Some(is_one_of(batch.column(*at), values)?),
            None => None,
        };
        let two = matches!(self.stages, Stages::Two { .. });
        let at_commit = match (self.stages, &deleted) {
            (Stages::Two { unconditional_deletes: true, .. }, Some(deleted)) => Some(unordered(deleted, &order)?),
            _ => None,
        };
        let rows = match two && !order.is_empty() {
            true => Some(self.converter.convert_columns(&order)?),
            false => None,
        };
        let files = batch.column(self.file).as_primitive::<Int64Type>().clone();
        Ok(Facts { deleted, at_commit, order: rows, files })
    }
}

/// What a batch's rows say about themselves.
struct Facts {
    deleted: Option<BooleanArray>,
    /// Deletions that win by position.
    at_commit: Option<BooleanArray>,
    /// Ordering values, comparable.
    order: Option<Rows>,
    files: Int64Array,
}

impl Facts {
    fn deletes(&self, row: usize) -> bool {
        self.deleted.as_ref().is_some_and(|it| it.value(row))
    }

    fn unconditional(&self, row: usize) -> bool {
        self.at_commit.as_ref().is_some_and(|it| it.value(row))
    }

    fn meet(&self, rule: Rule, columns: &[ArrayRef], older: State, newer: State) -> State {
        if !self.wins(newer.lead, older.lead) {
            return older;
        }
        let whole = self.deletes(older.lead) || self.deletes(newer.lead);
        match rule == Rule::Partial && !whole {
            true => older.overlaid(columns, newer),
            false => newer,
        }
    }

    fn wins(&self, newer: usize, older: usize) -> bool {
        let compared = self.order.as_ref().map_or(Ordering::Equal, |it| it.row(newer).cmp(&it.row(older)));
        self.unconditional(newer) || self.unconditional(older) || compared.is_ge()
    }
}

/// A row as far as it is known: which row leads, and where each column comes from if not from it.
#[derive(Debug, Clone)]
struct State {
    lead: usize,
    sources: Option<Vec<usize>>,
}

impl State {
    fn whole(row: usize) -> Self {
        Self { lead: row, sources: None }
    }

    fn source(&self, column: usize) -> usize {
        self.sources.as_ref().map_or(self.lead, |it| it[column])
    }

    /// The newer row, with this one's values where it has none.
    fn overlaid(self, columns: &[ArrayRef], newer: Self) -> Self {
        let pick = |(at, array): (usize, &ArrayRef)| match array.is_null(newer.source(at)) {
            true => self.source(at),
            false => newer.source(at),
        };
        let sources = columns.iter().enumerate().map(pick).collect();
        Self { lead: newer.lead, sources: Some(sources) }
    }
}

fn index(row: usize) -> u32 {
    u32::try_from(row).expect("a batch has fewer than 2^32 rows")
}

/// Whether each value, as text, is one of `values`; a null is none.
fn is_one_of(array: &ArrayRef, values: &[String]) -> Result<BooleanArray, ArrowError> {
    let text = cast(array, &DataType::Utf8)?;
    Ok(text.as_string::<i32>().iter().map(|it| Some(it.is_some_and(|it| values.iter().any(|one| one == it)))).collect())
}

/// Deletions that no ordering value orders: all are null or the integer 0.
fn unordered(deleted: &BooleanArray, order: &[ArrayRef]) -> Result<BooleanArray, ArrowError> {
    let numbers = order
        .iter()
        .map(|it| match it.data_type().is_integer() {
            true => cast(it, &DataType::Int64).map(Some),
            false => Ok(None),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let silent = |row: usize| {
        order.iter().zip(&numbers).all(|(array, number)| {
            let zero = || number.as_ref().is_some_and(|it| it.as_primitive::<Int64Type>().value(row) == 0);
            array.is_null(row) || zero()
        })
    };
    Ok((0..deleted.len()).map(|row| Some(deleted.value(row) && silent(row))).collect())
}
