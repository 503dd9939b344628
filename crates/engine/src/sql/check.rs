//! Fails on every clause that nothing below reads.
//!
//! DataFusion's planner takes apart what it plans and leaves the rest where it lies: `TABLESAMPLE`, hints, `SETTINGS`
//! would be dropped, and the answer would be to another question. The structs are taken apart without `..`, so that a
//! field that a new parser brings stops the build here.
use std::ops::ControlFlow;

use lakebed_core::{Error, ErrorKind, Result};
use sqlparser::ast::{
    Cte, CteAsMaterialized, GroupByExpr, Join, LimitClause, OrderBy, OrderByKind, Query, Select, SetExpr, Setting,
    TableAlias, TableFactor, Visit, Visitor, With,
};

/// Checks a query and everything in it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] that names the clause; [`ErrorKind::Invalid`] for settings nobody knows.
pub(crate) fn check<T: Visit>(node: &T) -> Result<()> {
    match node.visit(&mut Checker) {
        ControlFlow::Break(err) => Err(err),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Checker;

impl Visitor for Checker {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        flow(of_query(query))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        flow(of_select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        flow(of_factor(factor))
    }
}

fn flow(checked: Result<()>) -> ControlFlow<Error> {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(err) => ControlFlow::Break(err),
    }
}

fn of_query(query: &Query) -> Result<()> {
    let Query { with, body, order_by, limit_clause, fetch, locks, for_clause, settings, format_clause, pipe_operators } =
        query;
    if let Some(With { with_token: _, recursive: _, cte_tables }) = with {
        cte_tables.iter().try_for_each(of_cte)?;
    }
    of_body(body)?;
    order_by.as_ref().map_or(Ok(()), of_order)?;
    let by = matches!(limit_clause, Some(LimitClause::LimitOffset { limit_by, .. }) if !limit_by.is_empty());
    absent(!by, "LIMIT … BY", "use QUALIFY row_number() OVER (PARTITION BY …) <= …")?;
    absent(fetch.is_none(), "FETCH", "use LIMIT")?;
    absent(locks.is_empty(), "FOR UPDATE / FOR SHARE", "a version never changes: leave the clause out")?;
    absent(for_clause.is_none(), "FOR XML / FOR JSON", "choose the output with --format")?;
    of_settings(settings.as_deref().unwrap_or_default())?;
    absent(format_clause.is_none(), "FORMAT in a subquery", "put it at the end of the statement")?;
    absent(pipe_operators.is_empty(), "|>", "use a common table expression")
}

fn of_body(body: &SetExpr) -> Result<()> {
    match body {
        SetExpr::Insert(_) => refuse("INSERT"),
        SetExpr::Update(_) => refuse("UPDATE"),
        SetExpr::Delete(_) => refuse("DELETE"),
        SetExpr::Merge(_) => refuse("MERGE"),
        SetExpr::SetOperation { left, right, .. } => {
            // Left-deep chains are long: the right side is short, the left one is walked here.
            let mut left = left.as_ref();
            of_body(right)?;
            while let SetExpr::SetOperation { left: next, right, .. } = left {
                of_body(right)?;
                left = next;
            }
            of_body(left)
        }
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
    }
}

fn refuse(verb: &str) -> Result<()> {
    Err(Error::unsupported(format!("{verb} inside a query is not supported")).with_hint("nothing was changed"))
}

fn of_cte(cte: &Cte) -> Result<()> {
    let Cte { alias, query: _, from, materialized, closing_paren_token: _ } = cte;
    of_alias(Some(alias))?;
    absent(from.is_none(), "FROM after a common table expression", "put it inside")?;
    let kept = !matches!(materialized, Some(CteAsMaterialized::Materialized));
    absent(kept, "AS MATERIALIZED", "leave it out")
}

fn of_order(order: &OrderBy) -> Result<()> {
    let OrderBy { kind, interpolate } = order;
    absent(interpolate.is_none(), "INTERPOLATE", "")?;
    match kind {
        OrderByKind::Expressions(exprs) => absent(exprs.iter().all(|it| it.with_fill.is_none()), "WITH FILL", ""),
        OrderByKind::All(_) => Ok(()),
    }
}

fn of_settings(settings: &[Setting]) -> Result<()> {
    match settings.first() {
        None => Ok(()),
        Some(Setting { key, value: _ }) => Err(unknown_setting(&key.value, "SETTINGS")),
    }
}

/// An unknown key is an error: an ignored one costs its user days.
pub(crate) fn unknown_setting(key: &str, clause: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{clause}: no setting is called `{key}`"))
        .with_hint("SHOW ALL lists the settings of the session; a version is named with VERSION AS OF")
}

fn of_select(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        optimizer_hints,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection: _,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    if let Some(hint) = optimizer_hints.first() {
        return Err(Error::unsupported(format!("the hint `{}` after SELECT", hint.text.trim()))
            .with_hint("OPTIONS(…) belongs after a table's name"));
    }
    absent(select_modifiers.is_none(), "modifiers of SELECT", "")?;
    absent(top.is_none(), "TOP", "use LIMIT")?;
    absent(exclude.is_none(), "EXCLUDE after the select list", "put it right after *")?;
    if into.is_some() {
        return absent(false, "SELECT … INTO", "use CREATE TABLE … AS SELECT");
    }
    absent(lateral_views.is_empty(), "LATERAL VIEW", "use UNNEST")?;
    absent(prewhere.is_none(), "PREWHERE", "use WHERE")?;
    absent(connect_by.is_empty(), "CONNECT BY", "use WITH RECURSIVE")?;
    absent(
        cluster_by.is_empty() && distribute_by.is_empty() && sort_by.is_empty(),
        "CLUSTER/DISTRIBUTE/SORT BY",
        "use ORDER BY",
    )?;
    absent(value_table_mode.is_none(), "SELECT AS", "")?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    absent(modifiers.is_empty(), "GROUP BY … WITH", "use GROUP BY ROLLUP (…), CUBE (…) or GROUPING SETS (…)")?;
    from.iter().flat_map(|it| &it.joins).try_for_each(of_join)
}

fn of_join(join: &Join) -> Result<()> {
    let Join { relation: _, global, join_operator: _ } = join;
    absent(!global, "GLOBAL JOIN", "leave GLOBAL out")
}

fn of_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            of_alias(alias.as_ref())?;
            if let Some(args) = args {
                of_settings(args.settings.as_deref().unwrap_or_default())?;
                absent(version.is_none(), "a version before a function's arguments", "pass version => …")?;
            }
            absent(with_hints.is_empty(), "WITH (…) after a table", "")?;
            absent(!with_ordinality, "WITH ORDINALITY", "use row_number() OVER ()")?;
            absent(partitions.is_empty(), "PARTITION (…) after a table", "use WHERE")?;
            absent(json_path.is_none(), "a JSON path after a table", "")?;
            absent(sample.is_none(), "TABLESAMPLE", "use WHERE random() < …")?;
            absent(index_hints.is_empty(), "index hints", "leave them out")
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            of_alias(alias.as_ref())?;
            absent(sample.is_none(), "TABLESAMPLE", "use WHERE random() < …")
        }
        TableFactor::Function { lateral: _, name: _, args: _, with_ordinality, alias } => {
            of_alias(alias.as_ref())?;
            absent(!with_ordinality, "WITH ORDINALITY", "use row_number() OVER ()")
        }
        TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => of_alias(alias.as_ref()),
        TableFactor::JsonTable { .. }
        | TableFactor::OpenJsonTable { .. }
        | TableFactor::Pivot { .. }
        | TableFactor::Unpivot { .. }
        | TableFactor::MatchRecognize { .. }
        | TableFactor::XmlTable { .. }
        | TableFactor::SemanticView { .. } => Err(Error::unsupported(format!("`{factor}` in FROM"))),
    }
}

fn of_alias(alias: Option<&TableAlias>) -> Result<()> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return Ok(()) };
    absent(at.is_none(), "AT after an alias", "")?;
    absent(columns.iter().all(|it| it.data_type.is_none()), "types in an alias's column list", "use CAST")
}

fn absent(absent: bool, clause: &str, instead: &str) -> Result<()> {
    match (absent, instead) {
        (true, _) => Ok(()),
        (false, "") => Err(Error::unsupported(format!("{clause} is not supported"))),
        (false, instead) => Err(Error::unsupported(format!("{clause} is not supported")).with_hint(instead)),
    }
}
