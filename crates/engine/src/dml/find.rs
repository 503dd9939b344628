//! Finds the rows that a condition names.
//!
//! The condition is the filter of a query over the target that asks for places of rows alone, so that everything a query
//! can do it can do here: files are pruned, subqueries become joins, null is not true. Where nothing is left of the query
//! but conditions that hold for whole files, no file is opened.
use datafusion::{
    catalog::{ScanArgs, TableProvider},
    datasource::source_as_provider,
    logical_expr::{LogicalPlan, TableProviderFilterPushDown, TableScan},
};
use futures::TryStreamExt;
use lakebed_core::Result;
use sqlparser::ast::Expr;

use super::{ast as sql, desk::Desk, marks::Marks};
use crate::{
    error::of_datafusion,
    provider::{FILE_NUMBER, LakeTable, ROW_NUMBER},
};

/// Marks the rows of the target that meet `filter`; all if there is none.
pub(super) async fn find(desk: &mut Desk<'_>, alias: Option<&str>, filter: Option<&Expr>) -> Result<Marks> {
    let Some(filter) = filter else {
        desk.meet_all().await?;
        return Ok(Marks::whole(desk.pool(), desk.ground.numbers()));
    };
    let items = [FILE_NUMBER, ROW_NUMBER].map(|it| sql::item(sql::own(it), it)).to_vec();
    let query = sql::select(items, sql::alone(sql::target(alias)), Some(filter.clone()))?;
    let own = desk.target(None)?;
    let plan = desk.plan(query, &own).await?;
    let optimized = desk.optimized(&plan)?;
    if let Some(scan) = lone_scan(&optimized)
        && decided_by_file(desk, scan).await?
    {
        return Ok(Marks::whole(desk.pool(), desk.ground.numbers()));
    }
    match collect(desk, &plan).await {
        Err(err) if desk.may_be_frugal(&err) => {
            desk.be_frugal();
            collect(desk, &plan).await
        }
        found => found,
    }
}

async fn collect(desk: &Desk<'_>, plan: &LogicalPlan) -> Result<Marks> {
    let mut marks = Marks::new(desk.pool());
    let mut places = desk.stream(plan).await?;
    while let Some(batch) = places.try_next().await.map_err(of_datafusion)? {
        marks.add_batch(&batch)?;
    }
    Ok(marks)
}

/// The scan that a plan consists of.
fn lone_scan(plan: &LogicalPlan) -> Option<&TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) => scan.fetch.is_none().then_some(scan),
        LogicalPlan::Projection(it) => lone_scan(&it.input),
        LogicalPlan::SubqueryAlias(it) => lone_scan(&it.input),
        _ => None,
    }
}

/// Whether the scan's filters hold for whole files; then the files for which they do are on the ground, and no others.
async fn decided_by_file(desk: &Desk<'_>, scan: &TableScan) -> Result<bool> {
    let provider = source_as_provider(&scan.source).map_err(of_datafusion)?;
    let Some(table) = provider.downcast_ref::<LakeTable>() else { return Ok(false) };
    let answers = table.supports_filters_pushdown(&scan.filters.iter().collect::<Vec<_>>()).map_err(of_datafusion)?;
    if answers.iter().any(|it| *it != TableProviderFilterPushDown::Exact) {
        return Ok(false);
    }
    let args = ScanArgs::default().with_projection(Some(&[])).with_filters(Some(&scan.filters));
    let _ = table.scan_with_args(desk.state(), args).await.map_err(of_datafusion)?;
    Ok(desk.ground.is_decided())
}
