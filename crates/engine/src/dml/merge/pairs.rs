//! The one join of source and target, and what each pair falls to.
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use datafusion::logical_expr::LogicalPlan;
use futures::TryStreamExt;
use lakebed_core::{Error, Result};

use super::{
    super::{
        desk::Desk,
        held::Holding,
        marks::{Mark, Marks, places},
        statement::When,
    },
    form::{Form, Make},
};
use crate::error::of_datafusion;

/// Columns of the place that a kept row of the source goes to.
pub(super) const HELD_FILE: &str = "\0held file";
pub(super) const HELD_ROW: &str = "\0held row";

/// What becomes of the rows of both sides.
pub(super) struct Found {
    /// Rows of the target that a clause updates or deletes.
    pub(super) taken: Marks,
    /// Those that a clause deletes; only if asked for.
    pub(super) deleted: Marks,
    /// In the order of the form's.
    pub(super) clauses: Vec<Caught>,
}

/// The rows that fell to one clause.
pub(super) struct Caught {
    pub(super) rows: u64,
    /// Those of the target that it updates.
    pub(super) updated: Marks,
    /// Those of the source that it needs, with their places.
    pub(super) held: Option<Holding>,
}

/// Joins source and target. `deletes` says whether deleted rows are marked apart.
///
/// # Errors
/// Invalid for a row of the target that would be changed twice.
pub(super) async fn find(desk: &mut Desk<'_>, form: &Form<'_>, deletes: bool) -> Result<Found> {
    let own = desk.target(None)?;
    let plan = desk.plan(form.pairs()?, &own).await?;
    match collect(desk, form, &plan, deletes).await {
        Err(err) if desk.may_be_frugal(&err) => {
            desk.be_frugal();
            collect(desk, form, &plan, deletes).await
        }
        found => found,
    }
}

async fn collect(desk: &Desk<'_>, form: &Form<'_>, plan: &LogicalPlan, deletes: bool) -> Result<Found> {
    let mut rows = desk.stream(plan).await?;
    let mut sorting = Sorting::new(desk, form, &rows.schema(), deletes);
    while let Some(batch) = rows.try_next().await.map_err(of_datafusion)? {
        sorting.batch(&batch)?;
    }
    Ok(sorting.found)
}

struct Sorting<'f, 's> {
    form: &'f Form<'s>,
    /// Columns of kept rows.
    held: SchemaRef,
    deletes: bool,
    found: Found,
}

impl<'f, 's> Sorting<'f, 's> {
    fn new(desk: &Desk<'_>, form: &'f Form<'s>, input: &Schema, deletes: bool) -> Self {
        let held = held_schema(input);
        let marks = || Marks::new(desk.pool());
        let caught = form.clauses.iter().map(|it| {
            let holds = match (&it.make, it.when) {
                (Make::Insert { .. }, _) | (Make::Update { .. }, When::Matched) => true,
                (Make::Update { .. } | Make::Delete, _) => false,
            };
            let held = holds.then(|| Holding::new(desk.runtime(), Arc::clone(&held)));
            Caught { rows: 0, updated: marks(), held }
        });
        let found = Found { taken: marks(), deleted: marks(), clauses: caught.collect() };
        Self { form, held, deletes, found }
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let numbers = batch.column(2).as_primitive_opt::<Int64Type>();
        let numbers = numbers.ok_or_else(|| Error::internal("a plan lost the numbers of its clauses"))?;
        for at in 0..self.form.clauses.len() {
            let number = i64::try_from(at).map_err(|it| Error::internal(it.to_string()))?;
            let falls: BooleanArray = numbers.iter().map(|it| Some(it == Some(number))).collect();
            if falls.true_count() > 0 {
                let caught = filter_record_batch(batch, &falls).map_err(|it| Error::internal(it.to_string()))?;
                self.caught(at, &caught)?;
            }
        }
        Ok(())
    }

    fn caught(&mut self, at: usize, batch: &RecordBatch) -> Result<()> {
        let Found { taken, deleted, clauses } = &mut self.found;
        let clause = &mut clauses[at];
        let mut rows = batch.num_rows() as u64;
        match self.form.clauses[at].make {
            Make::Insert { .. } => (),
            Make::Update { .. } => {
                for (file, row) in places(batch)?.flatten() {
                    if taken.add(file, row)? == Mark::Again {
                        return Err(twice());
                    }
                    let _ = clause.updated.add(file, row)?;
                }
            }
            Make::Delete => {
                for (file, row) in places(batch)?.flatten() {
                    if taken.add(file, row)? == Mark::Again {
                        if !self.form.only_deletes() {
                            return Err(twice());
                        }
                        rows -= 1;
                    } else if self.deletes {
                        let _ = deleted.add(file, row)?;
                    }
                }
            }
        }
        clause.rows += rows;
        match &mut clause.held {
            Some(held) => held.add(with_place(batch, &self.held)?).map_err(of_datafusion),
            None => Ok(()),
        }
    }
}

fn twice() -> Error {
    Error::invalid("several rows of the source match one row of the target, which would be updated or deleted by each")
        .with_hint("make the source unique by the columns of ON: QUALIFY row_number() OVER (PARTITION BY …) = 1")
}

/// The columns of the source, and the place.
fn held_schema(input: &Schema) -> SchemaRef {
    let mut fields: Vec<_> = input.fields().iter().skip(3).map(|it| it.as_ref().clone().with_nullable(true)).collect();
    fields.push(Field::new(HELD_FILE, DataType::Int32, true));
    fields.push(Field::new(HELD_ROW, DataType::Int64, true));
    Arc::new(Schema::new(fields))
}

fn with_place(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let mut columns = batch.columns()[3..].to_vec();
    columns.extend(batch.columns()[..2].iter().cloned());
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|it| Error::internal(it.to_string()))
}
