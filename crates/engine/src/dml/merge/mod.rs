//! `MERGE INTO`.
//!
//! 1. [`form`] gives the clauses their numbers and their columns, and checks that each names only rows it has.
//! 2. [`pairs`] joins source and target once, reading only columns that the conditions name of the target, and decides
//!    for every pair, and every row without a partner, which clause it falls to: the first whose condition is true. Rows
//!    of the target are marked by place; rows of the source that a clause needs are kept beside the place they go to.
//! 3. The marked rows leave their files ([`removal`](super::removal)).
//! 4. [`second`] makes the new rows, one query a clause: kept rows of the source, joined by place with those rows of the
//!    target that the clause updates. No condition is evaluated twice, and the source is read once: it may give other
//!    rows each time.
//!
//! A row of the target that two rows of the source would update or delete is an error: the outcome would depend on their
//! order. It is none if all that can happen to a matched row is to be deleted.
mod form;
mod pairs;
mod second;

use std::sync::Arc;

use lakebed_core::{Error, Result, timeline::Action};

use self::{
    form::{Form, Make},
    pairs::Found,
};
use super::{
    desk::Desk,
    pour::{Image, Pour},
    removal,
    report::{self, Outcome},
    rows::{in_place, plain},
    start::{Started, start},
    statement::{Merge, When},
};
use crate::{
    session::{Output, Session, counted},
    write::{Driver, Kind, Prepared},
};

impl Session {
    /// Runs a `MERGE INTO`; the count is that of the rows inserted, updated and deleted.
    ///
    /// # Errors
    /// Invalid for names, conditions and values that do not fit, for values that break the table's constraints, and for a
    /// row that would be changed twice; refused where rows may only be added.
    pub(crate) async fn merge(&self, statement: &Merge) -> Result<Output> {
        let parameters = report::parameters_of(statement);
        let Some(started) = start(self, &statement.target, Action::RowDelta, "MERGE", parameters).await? else {
            return counted(0);
        };
        let Started { to, state, driver } = &started;
        let mut desk = Desk::new(self, state, to, Arc::clone(driver.base()));
        let prepared = prepare(&mut desk, driver, statement).await;
        drop(desk);
        started.end(prepared).await
    }
}

async fn prepare(desk: &mut Desk<'_>, driver: &Driver, statement: &Merge) -> Result<Prepared> {
    if statement.clauses.iter().any(|it| it.when != When::NotMatched) {
        driver.may_remove()?;
    }
    let form = Form::new(desk, statement).await?;
    let records = driver.rules().change_folder.is_some();
    let Found { taken, deleted, clauses } = pairs::find(desk, &form, records).await?;
    let mut outcome = Outcome::default();
    for (clause, found) in form.clauses.iter().zip(&clauses) {
        outcome.count(clause.when, &clause.make, found.rows);
    }
    if outcome == Outcome::default() {
        return Ok(Prepared::default());
    }
    let removal = removal::plan(desk, driver, &taken).await?;
    // Rows that only came, or only went by vector or with their file, speak for themselves.
    let records = records && (outcome.updated > 0 || !removal.left.is_empty());
    let mut pour = Pour::new(driver, desk.schema(), Kind::Data, records);
    for (clause, found) in form.clauses.iter().zip(clauses) {
        if found.rows == 0 {
            continue;
        }
        let expected = found.rows;
        let Some((plan, image)) = second::plan(desk, &form, clause, found, records).await? else { continue };
        let rows = pour.pour(desk, &plan, clause.make.sources(), image).await?;
        if rows != expected {
            return Err(Error::internal(format!("a clause of {expected} rows made {rows}")));
        }
    }
    if !removal.left.is_empty() {
        let left = plain(desk, removal.left.clone()).await?;
        outcome.copied = pour.pour(desk, &left, &in_place(&form.target), Image::Moved).await?;
    }
    if records && !deleted.is_empty() {
        let readings = desk.marked(deleted.files())?;
        let gone = plain(desk, readings).await?;
        pour.pour(desk, &gone, &in_place(&form.target), Image::Deleted).await?;
    }
    let poured = pour.finish().await?;
    outcome.prepared(desk, driver, removal, poured, report::of_merge).await
}

impl Outcome {
    fn count(&mut self, when: When, make: &Make, rows: u64) {
        let by_source = if when == When::NotMatchedBySource { rows } else { 0 };
        match make {
            Make::Insert { .. } => self.inserted += rows,
            Make::Update { .. } => {
                self.updated += rows;
                self.updated_by_source += by_source;
            }
            Make::Delete => {
                self.deleted += rows;
                self.deleted_by_source += by_source;
            }
        }
    }
}
