//! Rows of the target that a statement has found, read again.
use datafusion::logical_expr::LogicalPlan;
use lakebed_core::Result;
use sqlparser::ast::{Expr, SelectItem};

use super::{assign::Side, ast as sql, desk::Desk};
use crate::{scan::Reading, write::Source};

/// The target's columns of some rows, as they are.
pub(super) async fn plain(desk: &mut Desk<'_>, readings: Vec<Reading>) -> Result<LogicalPlan> {
    let side = Side::new(desk.qualifier(None), desk.schema());
    let items = named(&side, side.all());
    let own = desk.target(Some(readings))?;
    desk.plan(sql::select(items, sql::alone(sql::target(None)), None)?, &own).await
}

/// One expression a column of the table, under the columns' names.
pub(super) fn named(side: &Side, exprs: Vec<Expr>) -> Vec<SelectItem> {
    side.columns.iter().zip(exprs).map(|(column, expr)| sql::item(expr, column.name())).collect()
}

/// The columns as they were, under names of ours.
pub(super) fn old(side: &Side) -> impl Iterator<Item = SelectItem> {
    (0..side.columns.len()).map(|at| sql::item(side.column(at), &format!("\0old {}", side.columns[at].name())))
}

/// Every column of the table from the input's at its place.
pub(super) fn in_place(side: &Side) -> Vec<Source> {
    (0..side.columns.len()).map(Source::Input).collect()
}
