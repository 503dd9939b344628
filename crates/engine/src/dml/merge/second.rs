//! The new rows of one clause.
use datafusion::logical_expr::LogicalPlan;
use lakebed_core::{Error, Result};
use sqlparser::ast::{JoinOperator, TableFactor};

use super::{
    super::{
        ast as sql,
        desk::Desk,
        pour::Image,
        rows::{named, old},
        statement::When,
    },
    form::{Form, Make, Step, numbered},
    pairs::{Caught, HELD_FILE, HELD_ROW},
};
use crate::{
    error::of_datafusion,
    provider::{FILE_NUMBER, ROW_NUMBER},
};

/// What the kept rows of the source are called in queries of ours.
const HELD: &str = "\0held";

/// The plan of a clause's new rows, and what they are; with the rows as they were, if `records` says so.
pub(super) async fn plan(
    desk: &mut Desk<'_>,
    form: &Form<'_>,
    clause: &Step<'_>,
    caught: Caught,
    records: bool,
) -> Result<Option<(LogicalPlan, Image)>> {
    let (mut items, image) = match &clause.make {
        Make::Delete => return Ok(None),
        Make::Insert { values, .. } => (numbered(values), Image::Inserted),
        Make::Update { values, .. } => (named(&form.target, values.clone()), Image::Updated),
    };
    if image == Image::Updated && records {
        items.extend(old(&form.target));
    }
    let readings = desk.marked(caught.updated.files())?;
    let mut own = desk.target(Some(readings))?;
    let from = match clause.when {
        When::NotMatchedBySource => sql::alone(sql::target(form.alias)),
        When::Matched | When::NotMatched => {
            let held = caught.held.ok_or_else(|| Error::internal("no row of the source was kept"))?;
            if held.spilled() {
                desk.be_frugal();
            }
            let (name, loaded) = Desk::table(HELD, held.table().map_err(of_datafusion)?);
            own.insert(name, loaded);
            let held = source(form);
            match clause.when {
                When::Matched => {
                    let file = sql::equal(sql::own(HELD_FILE), sql::own(FILE_NUMBER));
                    let row = sql::equal(sql::own(HELD_ROW), sql::own(ROW_NUMBER));
                    sql::joined(held, sql::target(form.alias), JoinOperator::Inner, sql::and(file, row))
                }
                When::NotMatched | When::NotMatchedBySource => sql::alone(held),
            }
        }
    };
    let plan = desk.plan(sql::select(items, from, None)?, &own).await?;
    Ok(Some((plan, image)))
}

/// The kept rows by the name that the statement's expressions call the source.
fn source(form: &Form<'_>) -> TableFactor {
    sql::table(HELD, form.source.qualifier.first().map(String::as_str))
}
