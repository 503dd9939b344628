//! `<format>_files(path[, filter])`: the live files of a version, those that a filter cannot rule out.
//!
//! The filter is the text of a boolean expression over the table's columns: `'day >= DATE ''2026-01-01'''`. It becomes
//! the predicate that a scan with this WHERE would prune by, so the list shows what such a scan would open.
use std::sync::Arc;

use datafusion::{catalog::TableProvider, common::DFSchema};
use lakebed_core::{Result, expr::Predicate, table::Snapshot};

use super::{Call, VERSION_ARGUMENTS, one_pin};
use crate::{
    lower::lower,
    sql::{
        names,
        parse::expression,
        plan::{Planner, planned},
        resolve::Loader,
        wanted::Argument,
    },
    system::files::ListingTable,
};

pub(super) async fn load(
    loader: &mut Loader<'_>,
    function: &str,
    format: Option<&str>,
    arguments: &[Argument],
) -> Result<Arc<dyn TableProvider>> {
    let call = Call::new(function, arguments, &["path", "filter"], &VERSION_ARGUMENTS, loader)?;
    let (table, rev) = loader.table(call.text("path")?, format).await?;
    let pin = one_pin(rev, call.pin(loader)?)?;
    let snapshot = loader.snapshot(&table, pin).await?;
    let predicate = match call.optional_text("filter")? {
        Some(text) => predicate(loader, &snapshot, text)?,
        None => Predicate::True,
    };
    Ok(Arc::new(ListingTable::new(snapshot, predicate)))
}

fn predicate(loader: &Loader<'_>, snapshot: &Arc<dyn Snapshot>, text: &str) -> Result<Predicate> {
    let schema = snapshot.schema();
    let mut expr = expression(text)?;
    names::bind_expression(&mut expr, schema)?;
    let columns = planned(DFSchema::try_from(schema.as_ref().clone()))?;
    let filter = planned(Planner::new(loader.state, Vec::new(), Vec::new()).expression(expr, &columns))?;
    Ok(lower(&filter, schema).predicate)
}
