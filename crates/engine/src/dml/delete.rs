//! `DELETE FROM`: the rows that are found leave their files.
use std::sync::Arc;

use lakebed_core::{Result, timeline::Action};

use super::{
    assign::Side,
    desk::Desk,
    find::find,
    pour::{Image, Pour},
    removal,
    report::{self, Outcome},
    rows::{in_place, plain},
    start::{Started, start},
    statement::{Delete, alias_of},
};
use crate::{
    session::{Output, Session, counted},
    write::{Driver, Kind, Prepared},
};

impl Session {
    /// Runs a `DELETE FROM`; the count is that of the rows that went.
    ///
    /// # Errors
    /// Invalid for a condition that does not fit the table; refused where rows may only be added.
    pub(crate) async fn delete(&self, statement: &Delete) -> Result<Output> {
        let parameters = [("predicate", report::predicates(statement.predicate.as_ref()))];
        let Some(started) = start(self, &statement.target, Action::Delete, "DELETE", parameters).await? else {
            return counted(0);
        };
        let Started { to, state, driver } = &started;
        let mut desk = Desk::new(self, state, to, Arc::clone(driver.base()));
        let prepared = prepare(&mut desk, driver, statement).await;
        drop(desk);
        started.end(prepared).await
    }
}

async fn prepare(desk: &mut Desk<'_>, driver: &Driver, statement: &Delete) -> Result<Prepared> {
    driver.may_remove()?;
    let marks = find(desk, alias_of(&statement.target), statement.predicate.as_ref()).await?;
    if marks.is_empty() {
        return Ok(Prepared::default());
    }
    let removal = removal::plan(desk, driver, &marks).await?;
    // Who asks for changes sees what a vector took and what a file held that went; of files that are written anew
    // somebody has to tell.
    let records = driver.rules().change_folder.is_some() && !removal.left.is_empty();
    let side = Side::new(desk.qualifier(None), desk.schema());
    let mut pour = Pour::new(driver, desk.schema(), Kind::Moved, records);
    let mut outcome = Outcome { deleted: removal.rows, ..Outcome::default() };
    if !removal.left.is_empty() {
        let left = plain(desk, removal.left.clone()).await?;
        outcome.copied = pour.pour(desk, &left, &in_place(&side), Image::Moved).await?;
    }
    if records {
        let readings = desk.marked(marks.files())?;
        let gone = plain(desk, readings).await?;
        pour.pour(desk, &gone, &in_place(&side), Image::Deleted).await?;
    }
    let poured = pour.finish().await?;
    outcome.prepared(desk, driver, removal, poured, report::of_delete).await
}
