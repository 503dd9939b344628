//! `x IN (SELECT y …)` where the difference between false and null counts.
//!
//! DataFusion makes a join of a subquery in a condition. `column NOT IN (…)` that is a condition by itself becomes a join
//! that knows null, as long as nothing inside of it looks outside. One inside of `OR`, `NOT`, `CASE` or `IS NULL` becomes a column that is true or false
//! and never null: `a OR x NOT IN (…)` would hold for rows for which it is null. Below `AND` and `OR` alone that is
//! right, for a filter drops null and false alike. Anywhere else a membership is put in the words of its definition:
//!
//! ```text
//! CASE WHEN EXISTS (… WHERE y = x)        THEN true
//!      WHEN EXISTS (… WHERE y IS NULL)    THEN null
//!      WHEN x IS NULL AND EXISTS (…)      THEN null
//!      ELSE false END
//! ```
use std::sync::Arc;

use datafusion::{
    common::{
        Column, DFSchema, ExprSchema, Result, ScalarValue,
        tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{
        BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, exists,
        expr::InSubquery,
        lit,
        utils::{conjunction, split_conjunction_owned},
        when,
    },
};

/// The plan with every membership meaning what it says.
pub(super) fn three_valued(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Filter(Filter { predicate, input, .. }) if holds_membership(&predicate)? => {
            let parts = split_conjunction_owned(predicate);
            let parts = parts.into_iter().map(|it| part(it, input.schema())).collect::<Result<Vec<_>>>()?;
            let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn holds_membership(predicate: &Expr) -> Result<bool> {
    predicate.exists(|it| Ok(matches!(it, Expr::InSubquery(_))))
}

/// One of the conditions that must all hold.
fn part(condition: Expr, outer: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(it) if !it.negated && joins_with_null(&it) => {
                Ok(Expr::Not(Box::new(Expr::InSubquery(it))))
            }
            other => inside(Expr::Not(Box::new(other)), outer),
        },
        Expr::InSubquery(it) if joins_with_null(&it) => Ok(Expr::InSubquery(it)),
        other => inside(other, outer),
    }
}

/// Whether the join that a negated membership becomes knows null: it does for one key that is a column on this side.
fn joins_with_null(membership: &InSubquery) -> bool {
    matches!(membership.expr.as_ref(), Expr::Column(_)) && membership.subquery.outer_ref_columns.is_empty()
}

fn inside(condition: Expr, outer: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (inside(*left, outer)?, inside(*right, outer)?);
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::InSubquery(it) if !it.negated => Ok(Expr::InSubquery(it)),
        other => other
            .transform_down(|it| match it {
                Expr::InSubquery(it) => Ok(Transformed::new(defined(it, outer)?, true, TreeNodeRecursion::Jump)),
                other => Ok(Transformed::no(other)),
            })
            .data(),
    }
}

fn defined(membership: InSubquery, outer: &DFSchema) -> Result<Expr> {
    let InSubquery { expr, subquery, negated } = membership;
    let rows = subquery.subquery;
    let member = Expr::Column(Column::from(rows.schema().qualified_field(0)));
    let among = |condition: Expr| {
        let rows = LogicalPlanBuilder::from(rows.as_ref().clone()).filter(condition)?.build()?;
        Ok::<_, datafusion::error::DataFusionError>(exists(Arc::new(rows)))
    };
    let null = || lit(ScalarValue::Boolean(None));
    let found = among(member.clone().eq(from_outside(expr.as_ref().clone(), outer)?))?;
    let answer = when(found, lit(true))
        .when(among(member.is_null())?, null())
        .when(expr.is_null().and(exists(Arc::clone(&rows))), null())
        .otherwise(lit(false))?;
    Ok(if negated { Expr::Not(Box::new(answer)) } else { answer })
}

/// An expression of the condition as the subquery sees it.
fn from_outside(expr: Expr, outer: &DFSchema) -> Result<Expr> {
    expr.transform_down(|it| match it {
        Expr::Column(column) => {
            let field = Arc::clone(outer.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}
