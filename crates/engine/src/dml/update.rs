//! `UPDATE … SET`: the rows that are found leave their files, and come back changed.
use std::sync::Arc;

use lakebed_core::{Result, timeline::Action};

use super::{
    assign::Side,
    ast as sql,
    desk::Desk,
    find::find,
    pour::{Image, Pour},
    removal,
    report::{self, Outcome},
    rows::{in_place, named, old, plain},
    start::{Started, start},
    statement::{Update, alias_of},
};
use crate::{
    session::{Output, Session, counted},
    write::{Driver, Kind, Prepared},
};

impl Session {
    /// Runs an `UPDATE`; the count is that of the rows that changed.
    ///
    /// # Errors
    /// Invalid for names, conditions and values that do not fit the table, and for values that break its constraints;
    /// refused where rows may only be added.
    pub(crate) async fn update(&self, statement: &Update) -> Result<Output> {
        let parameters = [("predicate", report::predicates(statement.predicate.as_ref()))];
        let Some(started) = start(self, &statement.target, Action::RowDelta, "UPDATE", parameters).await? else {
            return counted(0);
        };
        let Started { to, state, driver } = &started;
        let mut desk = Desk::new(self, state, to, Arc::clone(driver.base()));
        let prepared = prepare(&mut desk, driver, statement).await;
        drop(desk);
        started.end(prepared).await
    }
}

async fn prepare(desk: &mut Desk<'_>, driver: &Driver, statement: &Update) -> Result<Prepared> {
    driver.may_remove()?;
    let alias = alias_of(&statement.target);
    let side = Side::new(desk.qualifier(alias), desk.schema());
    let records = driver.rules().change_folder.is_some();
    let mut items = named(&side, side.updated(&statement.assignments)?);
    if records {
        items.extend(old(&side));
    }
    let query = sql::select(items, sql::alone(sql::target(alias)), None)?;
    // Planned once for nothing but its errors, before any row is read.
    let own = desk.target(Some(Vec::new()))?;
    desk.fits(query.clone(), &own, &in_place(&side)).await?;

    let marks = find(desk, alias, statement.predicate.as_ref()).await?;
    if marks.is_empty() {
        return Ok(Prepared::default());
    }
    let removal = removal::plan(desk, driver, &marks).await?;
    let mut pour = Pour::new(driver, desk.schema(), Kind::Data, records);
    let own = desk.target(Some(desk.marked(marks.files())?))?;
    let changed = desk.plan(query, &own).await?;
    let updated = pour.pour(desk, &changed, &in_place(&side), Image::Updated).await?;
    marks.check(updated)?;
    let mut outcome = Outcome { updated, ..Outcome::default() };
    if !removal.left.is_empty() {
        let left = plain(desk, removal.left.clone()).await?;
        outcome.copied = pour.pour(desk, &left, &in_place(&side), Image::Moved).await?;
    }
    let poured = pour.finish().await?;
    outcome.prepared(desk, driver, removal, poured, report::of_update).await
}
