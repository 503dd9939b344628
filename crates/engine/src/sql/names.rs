//! Walks a query twice: to learn which tables it names, and to bring names into the case of what they stand for.
//!
//! Both walks are the same code. In the first no schema is known, so every relation is open and no name changes; each
//! table reference that is not a common table expression gets a *slot*, marked by a number in its `with_hints` (which
//! [`check`](super::check) has found empty), and session views are put in place of their names. Between the walks the
//! slots are loaded. In the second walk schemas are known:
//!
//! - column names, qualifiers and struct fields get the spelling of the column they match (see [`scope`](super::scope));
//! - a virtual column that is named anywhere is *exposed* in its slot, and only then part of the relation;
//! - `*` and `t.*` exclude what is exposed, NATURAL becomes USING over visible columns.
//!
//! Scopes follow SQL: a subquery sees the relations around it, a common table expression those before it, a table in
//! FROM nothing (LATERAL: the relations left of it). Select-list names are seen by ORDER BY first, by GROUP BY, HAVING
//! and QUALIFY last.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lakebed_core::{Error, ErrorKind, Result};
use sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, JoinConstraint, LimitClause, ObjectName, ObjectNamePart, OrderBy, OrderByKind,
    Query, Select, SelectFlavor, SelectItem, SetExpr, TableAlias, TableFactor, TableVersion, TableWithJoins, Value,
    WildcardAdditionalOptions,
};

use super::{
    parse::{plain, quoted},
    scope::{Column, Relation, Scope, same},
    wanted::{Wanted, called},
    wildcard,
};

/// Views may name views, this deep.
const MAX_VIEW_DEPTH: usize = 16;

/// Relations in one FROM: joins make a plan as deep as they are many.
const MAX_RELATIONS: usize = 512;

/// Relations once every view and common table expression stands where it is named: each name of one is a copy of its
/// plan, so that a short text can ask for billions.
const MAX_EXPANDED: usize = 4096;

/// Columns of one select list; `*` over subqueries of `*` multiplies them.
const MAX_COLUMNS: usize = 100_000;

/// What the second walk knows of a slot.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) qualifier: Vec<String>,
    pub(crate) columns: Arc<[Column]>,
}

/// The columns of a relation; `None` if they are not known.
pub(super) type Columns = Option<Arc<[Column]>>;

/// The walk over one statement.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    views: &'a BTreeMap<String, Query>,
    /// Table functions that DataFusion plans itself.
    foreign: &'a BTreeSet<String>,
    /// Whether schemas are known: the second walk.
    bound: bool,
    wanted: Vec<Wanted>,
    known: Vec<Known>,
    pub(super) exposed: Vec<BTreeSet<String>>,
    pub(super) scopes: Vec<Scope>,
    ctes: Vec<Named>,
    view_depth: usize,
    /// Relations so far, those of common table expressions once for each name of them.
    expanded: usize,
}

/// A common table expression.
#[derive(Debug, Clone)]
struct Named {
    name: String,
    columns: Columns,
    /// How many relations it stands for.
    expanded: usize,
}

/// First walk: the tables `query` names, in the order of their slots.
pub(crate) fn collect(
    query: &mut Query,
    views: &BTreeMap<String, Query>,
    foreign: &BTreeSet<String>,
) -> Result<Vec<Wanted>> {
    let mut names = Names::new(views, foreign, Vec::new(), false);
    names.query(query)?;
    Ok(names.wanted)
}

/// Second walk: brings names into place and returns the virtual columns that each slot must expose.
pub(crate) fn bind(query: &mut Query, foreign: &BTreeSet<String>, known: Vec<Known>) -> Result<Vec<BTreeSet<String>>> {
    let no_views = BTreeMap::new();
    let mut names = Names::new(&no_views, foreign, known, true);
    names.query(query)?;
    Ok(names.exposed)
}

/// The slot that the first walk gave a table reference.
pub(crate) fn slot_of(with_hints: &[Expr]) -> Option<usize> {
    match with_hints {
        [Expr::Value(value)] => match &value.value {
            Value::Number(slot, _) => slot.to_string().parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Names<'a> {
    fn new(views: &'a BTreeMap<String, Query>, foreign: &'a BTreeSet<String>, known: Vec<Known>, bound: bool) -> Self {
        let exposed = vec![BTreeSet::new(); known.len()];
        Self {
            views,
            foreign,
            bound,
            wanted: Vec::new(),
            known,
            exposed,
            scopes: Vec::new(),
            ctes: Vec::new(),
            view_depth: 0,
            expanded: 0,
        }
    }

    pub(super) fn query(&mut self, query: &mut Query) -> Result<Columns> {
        let outside = self.ctes.len();
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                self.cte(cte, with.recursive)?;
            }
        }
        let columns = match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, query.order_by.as_mut())?,
            other => {
                let columns = self.body(other)?;
                self.order_result(query.order_by.as_mut(), &columns)?;
                columns
            }
        };
        self.limits(query.limit_clause.as_mut())?;
        self.ctes.truncate(outside);
        Ok(columns)
    }

    fn limits(&mut self, limit: Option<&mut LimitClause>) -> Result<()> {
        match limit {
            None => Ok(()),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                self.visit(limit)?;
                self.visit(offset)?;
                self.visit(limit_by)
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.visit(offset)?;
                self.visit(limit)
            }
        }
    }

    fn cte(&mut self, cte: &mut Cte, recursive: bool) -> Result<()> {
        let Cte { alias, query, .. } = cte;
        let (name, before) = (alias.name.value.clone(), self.expanded);
        if !recursive {
            let columns = renamed(self.query(query)?, Some(alias));
            self.ctes.push(Named { name, columns, expanded: self.expanded - before });
            return Ok(());
        }
        let index = self.ctes.len();
        self.ctes.push(Named { name, columns: None, expanded: 0 });
        let columns = match (&query.with, query.body.as_mut()) {
            (None, SetExpr::SetOperation { left, right, .. }) => {
                let columns = self.body(left)?;
                // The recursive part reads rows shaped like those of the first part.
                self.ctes[index].columns = renamed(columns.clone(), Some(alias));
                self.body(right)?;
                self.order_result(query.order_by.as_mut(), &columns)?;
                columns
            }
            _ => self.query(query)?,
        };
        self.ctes[index].columns = renamed(columns, Some(alias));
        self.ctes[index].expanded = self.expanded - before;
        Ok(())
    }

    /// Counts relations, before anything is made of them.
    fn expand(&mut self, relations: usize) -> Result<()> {
        self.expanded = self.expanded.saturating_add(relations);
        if self.expanded > MAX_EXPANDED {
            let message = format!("views and common table expressions stand for more than {MAX_EXPANDED} relations");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(())
    }

    fn body(&mut self, body: &mut SetExpr) -> Result<Columns> {
        match body {
            SetExpr::Select(select) => self.select(select, None),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                let columns = self.body(left)?;
                self.body(right)?;
                Ok(columns)
            }
            SetExpr::Values(values) => {
                self.visit(values)?;
                let width = values.rows.first().map_or(0, |it| it.content.len());
                Ok(Some((1..=width).map(|it| Column::named(format!("column{it}"))).collect()))
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) | SetExpr::Table(_) => {
                Err(Error::unsupported(format!("`{body}` as a query")))
            }
        }
    }

    /// ORDER BY above UNION and its kin sees the result's columns alone.
    fn order_result(&mut self, order: Option<&mut OrderBy>, columns: &Columns) -> Result<()> {
        let Some(OrderBy { kind: OrderByKind::Expressions(exprs), .. }) = order else { return Ok(()) };
        let relation = Relation { qualifier: Vec::new(), columns: columns.clone(), slot: None };
        self.scopes.push(Scope { relations: vec![relation], ..Scope::default() });
        self.visit(exprs)?;
        self.scopes.pop();
        Ok(())
    }

    fn select(&mut self, select: &mut Select, order: Option<&mut OrderBy>) -> Result<Columns> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            // `FROM t` means every column; the planner takes an empty list for no column.
            select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
            select.flavor = SelectFlavor::FromFirst;
        }
        let mut scope = Scope::default();
        if select.from.iter().map(|it| 1 + it.joins.len()).sum::<usize>() > MAX_RELATIONS {
            return Err(Error::new(ErrorKind::Limit, format!("more than {MAX_RELATIONS} relations in one FROM")));
        }
        for from in &mut select.from {
            self.from(from, &mut scope)?;
        }
        if self.bound {
            scope.check_names()?;
        }
        self.scopes.push(scope);
        for item in &mut select.projection {
            self.item(item)?;
        }
        self.visit(&mut select.selection)?;
        let columns = self.result_columns(select)?;
        let aliases = select.projection.iter().filter_map(alias_of).collect();
        self.scope().aliases = aliases;
        self.clauses(select)?;
        if let Some(OrderBy { kind: OrderByKind::Expressions(exprs), .. }) = order {
            self.scope().aliases_first = true;
            self.visit(exprs)?;
        }
        let scope = self.scopes.pop().expect("pushed above");
        wildcard::hide(select, &scope, &self.exposed)?;
        Ok(columns)
    }

    fn clauses(&mut self, select: &mut Select) -> Result<()> {
        if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
            self.visit(exprs)?;
        }
        self.visit(&mut select.having)?;
        self.visit(&mut select.qualify)?;
        self.visit(&mut select.named_window)?;
        match &mut select.distinct {
            Some(Distinct::On(exprs)) => self.visit(exprs),
            Some(Distinct::All | Distinct::Distinct) | None => Ok(()),
        }
    }

    fn item(&mut self, item: &mut SelectItem) -> Result<()> {
        match item {
            SelectItem::UnnamedExpr(expr)
            | SelectItem::ExprWithAlias { expr, .. }
            | SelectItem::ExprWithAliases { expr, .. } => self.visit(expr),
            SelectItem::QualifiedWildcard(kind, options) => wildcard::bind_qualified(self, kind, options),
            SelectItem::Wildcard(options) => wildcard::bind_options(self, None, options),
        }
    }

    /// What the select list makes, as far as it is known before planning.
    fn result_columns(&mut self, select: &Select) -> Result<Columns> {
        let mut columns = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => columns.push(self.column_of(expr)?),
                SelectItem::ExprWithAlias { expr, alias } => {
                    let kind = self.column_of(expr)?.kind;
                    columns.push(Column { kind, ..Column::named(alias.value.clone()) });
                }
                SelectItem::ExprWithAliases { .. } => return Ok(None),
                SelectItem::QualifiedWildcard(..) | SelectItem::Wildcard(_) => {
                    match wildcard::columns(item, self.scope())? {
                        Some(more) => columns.extend(more),
                        None => return Ok(None),
                    }
                    if columns.len() > MAX_COLUMNS {
                        let message = format!("more than {MAX_COLUMNS} columns in one select list");
                        return Err(Error::new(ErrorKind::Limit, message));
                    }
                }
            }
        }
        Ok(Some(columns.into()))
    }

    pub(super) fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("inside a SELECT")
    }

    fn from(&mut self, from: &mut TableWithJoins, scope: &mut Scope) -> Result<()> {
        let relations = self.factor(&mut from.relation, scope)?;
        scope.relations.extend(relations);
        for join in &mut from.joins {
            let left = scope.relations.len();
            let relations = self.factor(&mut join.relation, scope)?;
            scope.relations.extend(relations);
            if let Some(constraint) = wildcard::constraint(&mut join.join_operator) {
                if self.bound {
                    wildcard::bind_join(scope, left, constraint)?;
                }
                scope.merged |= matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural);
                if let JoinConstraint::On(condition) = constraint {
                    self.within(scope, |it| it.visit(condition))?;
                }
            }
            wildcard::keep_preserved(scope, left, &join.join_operator);
        }
        Ok(())
    }

    /// Runs `walk` with `scope` as the innermost one.
    fn within(&mut self, scope: &mut Scope, walk: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.scopes.push(std::mem::take(scope));
        let walked = walk(self);
        *scope = self.scopes.pop().expect("pushed above");
        walked
    }

    fn factor(&mut self, factor: &mut TableFactor, left: &mut Scope) -> Result<Vec<Relation>> {
        self.expand(1)?;
        match factor {
            TableFactor::Table { args: None, .. } => self.table(factor),
            TableFactor::Table { name, alias, args: Some(args), .. } if self.is_foreign(name) => {
                self.visit(args)?;
                let series =
                    matches!(plain(name).as_slice(), [name] if same(name, "generate_series") || same(name, "range"));
                let mut relation = open(alias.as_ref(), format!("{name}()"));
                if series && relation.columns.is_none() {
                    relation.columns = Some([Column::named("value")].into());
                }
                Ok(vec![relation])
            }
            TableFactor::Table { .. } => self.slot(factor),
            TableFactor::TableFunction { expr, alias } => {
                *factor = called(expr, alias.take())?;
                self.factor(factor, left)
            }
            TableFactor::Function { name, args, alias, .. } if self.is_foreign(name) => {
                self.within(left, |it| it.visit(args))?;
                Ok(vec![open(alias.as_ref(), name.to_string())])
            }
            TableFactor::Function { name, .. } => Err(Error::unsupported(format!("LATERAL {name}(…)"))
                .with_hint("a table function's arguments are constants: leave LATERAL out")),
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let mut columns = None;
                if *lateral {
                    self.within(left, |it| it.query(subquery).map(|found| columns = found))?;
                } else {
                    columns = self.query(subquery)?;
                }
                let qualifier = alias.iter().map(|it| it.name.value.clone()).collect();
                Ok(vec![Relation { qualifier, columns: renamed(columns, alias.as_ref()), slot: None }])
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut inner = Scope::default();
                self.from(table_with_joins, &mut inner)?;
                left.merged |= inner.merged;
                self.aliased_join(inner, alias.as_ref())
            }
            TableFactor::UNNEST { array_exprs, alias, .. } => {
                self.visit(array_exprs)?;
                Ok(vec![open(alias.as_ref(), "unnest".to_owned())])
            }
            other => Err(Error::unsupported(format!("`{other}` in FROM"))),
        }
    }

    /// The relations of a join in parentheses: under an alias they are one, without virtual columns.
    fn aliased_join(&self, inner: Scope, alias: Option<&TableAlias>) -> Result<Vec<Relation>> {
        let Some(alias) = alias else { return Ok(inner.relations) };
        let slots = inner.relations.iter().filter_map(|it| it.slot);
        if slots.into_iter().any(|it| self.exposed.get(it).is_some_and(|names| !names.is_empty())) {
            return Err(Error::unsupported(format!("virtual columns inside the join called `{}`", alias.name))
                .with_hint("write the join as a subquery that selects the columns you need"));
        }
        let columns: Option<Vec<Vec<Column>>> =
            inner.relations.iter().map(|it| it.visible().map(|it| it.cloned().collect())).collect();
        let columns = columns.map(|it| it.concat().into());
        Ok(vec![Relation {
            qualifier: vec![alias.name.value.clone()],
            columns: renamed(columns, Some(alias)),
            slot: None,
        }])
    }

    fn is_foreign(&self, name: &ObjectName) -> bool {
        matches!(plain(name).as_slice(), [name] if self.foreign.contains(&name.to_lowercase()))
    }

    /// A table name: a common table expression, a view, or a slot.
    fn table(&mut self, factor: &mut TableFactor) -> Result<Vec<Relation>> {
        let TableFactor::Table { name, alias, with_hints, version, .. } = factor else {
            unreachable!("called for tables only")
        };
        if let (None, [ObjectNamePart::Identifier(ident)]) = (slot_of(with_hints), name.0.as_slice()) {
            let text = ident.value.clone();
            if let Some(Named { name: cte, columns, expanded }) = self.find_cte(&text) {
                no_version(version.as_ref(), "a common table expression", &text)?;
                self.expand(expanded)?;
                *name = ObjectName(vec![ObjectNamePart::Identifier(quoted(&cte))]);
                let qualifier = vec![alias.as_ref().map_or(cte, |it| it.name.value.clone())];
                return Ok(vec![Relation { qualifier, columns: renamed(columns, alias.as_ref()), slot: None }]);
            }
            if let Some(view) = self.views.get(&text.to_lowercase()) {
                no_version(version.as_ref(), "a view", &text)?;
                let alias = alias.take().unwrap_or_else(|| alias_named(&text));
                *factor = TableFactor::Derived {
                    lateral: false,
                    subquery: Box::new(view.clone()),
                    alias: Some(alias),
                    sample: None,
                };
                return self.view(factor);
            }
        }
        self.slot(factor)
    }

    /// A view in place of its name sees nothing of the query around it.
    fn view(&mut self, factor: &mut TableFactor) -> Result<Vec<Relation>> {
        if self.view_depth == MAX_VIEW_DEPTH {
            let message = format!("views nest deeper than {MAX_VIEW_DEPTH} levels, or one names itself");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let ctes = std::mem::take(&mut self.ctes);
        let scopes = std::mem::take(&mut self.scopes);
        self.view_depth += 1;
        let relations = self.factor(factor, &mut Scope::default());
        self.view_depth -= 1;
        self.ctes = ctes;
        self.scopes = scopes;
        relations
    }

    fn find_cte(&self, name: &str) -> Option<Named> {
        let newest_first = || self.ctes.iter().rev();
        newest_first().find(|it| it.name == name).or_else(|| newest_first().find(|it| same(&it.name, name))).cloned()
    }

    /// First walk: gives a table or table function its slot. Second walk: finds what was loaded into it.
    fn slot(&mut self, factor: &mut TableFactor) -> Result<Vec<Relation>> {
        let TableFactor::Table { name, alias, args, with_hints, version, .. } = factor else {
            unreachable!("called for tables only")
        };
        let slot = match slot_of(with_hints) {
            Some(slot) => slot,
            None => {
                self.wanted.push(Wanted::new(name, args.as_ref(), version.take())?);
                let slot = self.wanted.len() - 1;
                *with_hints = vec![Expr::value(Value::Number(slot.to_string(), false))];
                slot
            }
        };
        let known = self.known.get(slot);
        let columns = known.map(|it| Arc::clone(&it.columns));
        let qualifier = match alias {
            Some(alias) => vec![alias.name.value.clone()],
            None => known.map_or_else(|| plain(name), |it| it.qualifier.clone()),
        };
        let listed = alias.as_ref().is_some_and(|it| !it.columns.is_empty());
        // A column list names the columns of `*`, one by one: there is no place for virtual ones.
        let slot = (!listed).then_some(slot);
        Ok(vec![Relation { qualifier, columns: renamed(columns, alias.as_ref()), slot }])
    }
}

fn no_version(version: Option<&TableVersion>, what: &str, name: &str) -> Result<()> {
    match version {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("`{name}` is {what}: it has no versions"))
            .with_hint("name the version at the tables inside it")),
    }
}

fn alias_named(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: quoted(name), columns: Vec::new(), at: None }
}

fn open(alias: Option<&TableAlias>, name: String) -> Relation {
    let qualifier = vec![alias.map_or(name, |it| it.name.value.clone())];
    let columns = alias.filter(|it| !it.columns.is_empty());
    let columns = columns.map(|it| it.columns.iter().map(|it| Column::named(it.name.value.clone())).collect());
    Relation { qualifier, columns, slot: None }
}

/// The columns under an alias's column list, which renames the visible ones from the front.
fn renamed(columns: Columns, alias: Option<&TableAlias>) -> Columns {
    let Some(alias) = alias.filter(|it| !it.columns.is_empty()) else { return columns };
    let mut names = alias.columns.iter().map(|it| it.name.value.clone());
    let Some(columns) = columns else { return Some(names.map(Column::named).collect()) };
    let visible = columns.iter().filter(|it| !it.hidden);
    Some(visible.map(|it| Column { name: names.next().unwrap_or_else(|| it.name.clone()), ..it.clone() }).collect())
}

fn alias_of(item: &SelectItem) -> Option<Column> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(Column::named(alias.value.clone())),
        _ => None,
    }
}

/// Brings the names of an expression over one table into the case of its columns.
pub(crate) fn bind_expression(expr: &mut Expr, schema: &arrow_schema::Schema) -> Result<()> {
    let columns = schema
        .fields()
        .iter()
        .map(|it| Column { kind: Some(it.data_type().clone()), ..Column::named(it.name().clone()) });
    let relation = Relation { qualifier: Vec::new(), columns: Some(columns.collect()), slot: None };
    let (no_views, foreign) = (BTreeMap::new(), BTreeSet::new());
    let mut names = Names::new(&no_views, &foreign, Vec::new(), true);
    names.scopes.push(Scope { relations: vec![relation], ..Scope::default() });
    names.visit(expr)
}
