//! Queries of our own making, around the expressions of a statement.
//!
//! Names of ours begin with NUL, which no text of a user's can hold: so none of ours is ever taken for one of theirs.
use lakebed_core::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query,
    SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, Value, WildcardAdditionalOptions,
    helpers::attached_token::AttachedToken,
};

use crate::{
    session::TARGET,
    sql::parse::{own_query, quoted},
};

/// `SELECT items FROM from WHERE filter`.
pub(super) fn select(items: Vec<SelectItem>, from: TableWithJoins, filter: Option<Expr>) -> Result<Query> {
    let mut query = *own_query("SELECT 1")?;
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(Error::internal("a query of ours has no SELECT"));
    };
    select.projection = items;
    select.from = vec![from];
    select.selection = filter;
    Ok(query)
}

/// The statement's target, by the name that its expressions call it.
pub(super) fn target(alias: Option<&str>) -> TableFactor {
    table(TARGET, alias)
}

/// A table of ours.
pub(super) fn table(name: &str, alias: Option<&str>) -> TableFactor {
    TableFactor::Table {
        name: ObjectName(vec![ObjectNamePart::Identifier(quoted(name))]),
        alias: alias.map(named),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// `(query) AS alias`.
pub(super) fn derived(query: Query, alias: &str) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(named(alias)), sample: None }
}

fn named(alias: &str) -> TableAlias {
    TableAlias { explicit: true, name: quoted(alias), columns: Vec::new(), at: None }
}

pub(super) fn alone(relation: TableFactor) -> TableWithJoins {
    TableWithJoins { relation, joins: Vec::new() }
}

pub(super) fn joined(
    left: TableFactor,
    right: TableFactor,
    kind: fn(JoinConstraint) -> JoinOperator,
    on: Expr,
) -> TableWithJoins {
    let join = Join { relation: right, global: false, join_operator: kind(JoinConstraint::On(on)) };
    TableWithJoins { relation: left, joins: vec![join] }
}

pub(super) fn item(expr: Expr, alias: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(alias) }
}

pub(super) fn everything() -> SelectItem {
    SelectItem::Wildcard(WildcardAdditionalOptions::default())
}

/// A column without a qualifier: one of ours.
pub(super) fn own(name: &str) -> Expr {
    Expr::Identifier(quoted(name))
}

pub(super) fn column(qualifier: &[String], name: &str) -> Expr {
    let parts: Vec<Ident> = qualifier.iter().map(String::as_str).chain([name]).map(quoted).collect();
    Expr::CompoundIdentifier(parts)
}

pub(super) fn number(value: usize) -> Expr {
    Expr::value(Value::Number(value.to_string(), false))
}

pub(super) fn boolean(value: bool) -> Expr {
    Expr::value(Value::Boolean(value))
}

pub(super) fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
}

pub(super) fn or(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Or, right: Box::new(right) }
}

/// What a condition demands all together.
pub(super) fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    let (mut parts, mut rest) = (Vec::new(), vec![condition]);
    while let Some(next) = rest.pop() {
        match next {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => rest.extend([right.as_ref(), left.as_ref()]),
            Expr::Nested(inner) => rest.push(inner),
            part => parts.push(part),
        }
    }
    parts
}

pub(super) fn equal(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Eq, right: Box::new(right) }
}

pub(super) fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// The first result whose condition is true, else null. No cases are null, too.
pub(super) fn case(cases: Vec<(Expr, Expr)>) -> Expr {
    if cases.is_empty() {
        return Expr::value(Value::Null);
    }
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: cases.into_iter().map(|(condition, result)| CaseWhen { condition, result }).collect(),
        else_result: None,
    }
}
