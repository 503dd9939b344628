//! The clauses of a merge, their names resolved.
use lakebed_core::{Error, Result};
use sqlparser::ast::{Expr, JoinOperator, Query, SelectItem, TableFactor, TableWithJoins};

use super::super::{
    assign::Side,
    ast as sql,
    desk::{Desk, Own},
    rows::{in_place, named},
    statement::{Clause, Merge, Then, When, alias_of},
};
use crate::{
    provider::{FILE_NUMBER, ROW_NUMBER},
    sql::parse::plain,
    write::Source,
};

/// A column that is true in every row of the source, and so null where a row of the target has none.
pub(super) const PRESENT: &str = "\0present";
/// The column with the number of the clause that a pair falls to; null if it falls to none.
pub(super) const CLAUSE: &str = "\0clause";
/// What an unnamed source is called.
const SOURCE: &str = "\0source";

/// A merge, taken apart.
pub(super) struct Form<'s> {
    statement: &'s Merge,
    /// How the statement's expressions call the target.
    pub(super) alias: Option<&'s str>,
    pub(super) target: Side,
    pub(super) source: Side,
    /// The source as a relation of one name, with [`PRESENT`].
    relation: TableFactor,
    pub(super) clauses: Vec<Step<'s>>,
    /// What a row of the target meets if anything can become of it; `None` if that is not known.
    concerned: Option<Expr>,
}

/// One clause.
pub(super) struct Step<'s> {
    pub(super) when: When,
    filter: Option<&'s Expr>,
    pub(super) make: Make,
}

/// What a clause makes of a row.
pub(super) enum Make {
    /// One value a column of the table.
    Update {
        values: Vec<Expr>,
        sources: Vec<Source>,
    },
    Insert {
        values: Vec<Expr>,
        sources: Vec<Source>,
    },
    Delete,
}

impl<'s> Form<'s> {
    /// # Errors
    /// Invalid for names that neither side has, for values that do not go into their columns, and for a clause that names
    /// the side it has no row of.
    pub(super) async fn new(desk: &mut Desk<'_>, statement: &'s Merge) -> Result<Self> {
        let alias = alias_of(&statement.target);
        let target = Side::new(desk.qualifier(alias), desk.schema());
        let name = name_of(&statement.source);
        let relation = present(&statement.source, &name)?;
        let everything = sql::select(vec![sql::everything()], sql::alone(relation.clone()), None)?;
        let plan = desk.plan(everything, &Own::new()).await?;
        let mut source = Side::new(vec![name], plan.schema().as_arrow());
        source.columns.retain(|it| it.name() != PRESENT);
        let clauses = statement.clauses.iter().map(|it| step(it, &target, &source)).collect::<Result<_>>()?;
        let mut form = Self { statement, alias, target, source, relation, clauses, concerned: None };
        form.check(desk).await?;
        form.concerned = form.concerns(desk).await?;
        Ok(form)
    }

    /// A row of the target that no part of ON rules out by itself, or that a clause for rows without a partner names.
    ///
    /// Only that lets a scan drop files where those rows are looked for: they are what is left of the whole table. Not
    /// where rows of the source without a partner are looked for, too: the condition would have to let those through.
    async fn concerns(&self, desk: &mut Desk<'_>) -> Result<Option<Expr>> {
        if !self.has(When::NotMatchedBySource) || self.has(When::NotMatched) {
            return Ok(None);
        }
        let own = desk.target(Some(Vec::new()))?;
        let mut concerned: Option<Expr> = None;
        for part in sql::conjuncts(&self.statement.on) {
            let alone = sql::select(vec![sql::item(part.clone(), CLAUSE)], sql::alone(sql::target(self.alias)), None)?;
            if desk.plan(alone, &own).await.is_ok() {
                let part = sql::nested(part.clone());
                concerned = Some(concerned.map_or(part.clone(), |it| sql::and(it, part)));
            }
        }
        for clause in self.clauses.iter().filter(|it| it.when == When::NotMatchedBySource) {
            let both = concerned.zip(clause.filter);
            concerned = both.map(|(concerned, filter)| sql::or(concerned, sql::nested(filter.clone())));
        }
        Ok(concerned)
    }

    /// Plans what each clause says over the rows it has, for errors alone: before anything is read.
    async fn check(&self, desk: &mut Desk<'_>) -> Result<()> {
        let own = desk.target(Some(Vec::new()))?;
        for clause in &self.clauses {
            let from = match clause.when {
                When::Matched => self.join(JoinOperator::Inner),
                When::NotMatched => sql::alone(self.relation.clone()),
                When::NotMatchedBySource => sql::alone(sql::target(self.alias)),
            };
            let (mut items, sources) = match &clause.make {
                Make::Update { values, sources } => (named(&self.target, values.clone()), sources.clone()),
                Make::Insert { values, sources } => (numbered(values), sources.clone()),
                Make::Delete => (vec![sql::item(sql::boolean(true), PRESENT)], Vec::new()),
            };
            items.extend(clause.filter.map(|it| sql::item(it.clone(), CLAUSE)));
            let query = sql::select(items, from, None)?;
            match sources.is_empty() {
                true => desk.plan(query, &own).await.map(|_| ())?,
                false => desk.fits(query, &own, &sources).await?,
            }
        }
        Ok(())
    }

    fn join(&self, kind: fn(sqlparser::ast::JoinConstraint) -> JoinOperator) -> TableWithJoins {
        let on = sql::nested(self.statement.on.clone());
        sql::joined(self.relation.clone(), sql::target(self.alias), kind, on)
    }

    fn has(&self, when: When) -> bool {
        self.clauses.iter().any(|it| it.when == when)
    }

    /// Whether all that can happen to a matched row is to be deleted: then it does not matter how many rows match it.
    pub(super) fn only_deletes(&self) -> bool {
        let mut matched = self.clauses.iter().filter(|it| it.when == When::Matched);
        matches!((matched.next(), matched.next()), (Some(Step { make: Make::Delete, filter: None, .. }), None))
    }

    /// Pairs, and rows without a partner that some clause is for: place, number of the clause, columns of the source.
    ///
    /// The source stands on the left, where a join is built in memory from: it is the small side.
    pub(super) fn pairs(&self) -> Result<Query> {
        let kind = match (self.has(When::NotMatched), self.has(When::NotMatchedBySource)) {
            (false, false) => JoinOperator::Inner,
            (true, false) => JoinOperator::LeftOuter,
            (false, true) => JoinOperator::RightOuter,
            (true, true) => JoinOperator::FullOuter,
        };
        let mut items: Vec<SelectItem> = [FILE_NUMBER, ROW_NUMBER].map(|it| sql::item(sql::own(it), it)).to_vec();
        items.push(sql::item(self.number()?, CLAUSE));
        items.extend(named(&self.source, self.source.all()));
        sql::select(items, self.join(kind), self.concerned.clone())
    }

    /// The number of the clause that a pair falls to.
    fn number(&self) -> Result<Expr> {
        let there = |name: &str| Expr::IsNotNull(Box::new(sql::own(name)));
        let of = |when| {
            let numbered = self.clauses.iter().enumerate().filter(|it| it.1.when == when);
            sql::case(
                numbered
                    .map(|(at, it)| {
                        let filter = it.filter.map_or_else(|| sql::boolean(true), |it| sql::nested(it.clone()));
                        (filter, sql::number(at))
                    })
                    .collect(),
            )
        };
        let mut cases = Vec::new();
        if self.has(When::NotMatched) {
            cases.push((Expr::IsNull(Box::new(sql::own(FILE_NUMBER))), of(When::NotMatched)));
        }
        if self.has(When::NotMatchedBySource) {
            cases.push((Expr::IsNull(Box::new(sql::own(PRESENT))), of(When::NotMatchedBySource)));
        }
        if self.has(When::Matched) {
            cases.push((there(FILE_NUMBER), of(When::Matched)));
        }
        Ok(sql::case(cases))
    }
}

impl Make {
    pub(super) fn sources(&self) -> &[Source] {
        match self {
            Self::Update { sources, .. } | Self::Insert { sources, .. } => sources,
            Self::Delete => &[],
        }
    }
}

fn step<'s>(clause: &'s Clause, target: &Side, source: &Side) -> Result<Step<'s>> {
    let update = |values| Make::Update { values, sources: in_place(target) };
    let insert = |values: Vec<Expr>, sources| Make::Insert { values, sources };
    let make = match &clause.then {
        Then::Update(assignments) => update(target.updated(assignments)?),
        Then::UpdateAll => update(target.all_from(source)?),
        Then::Insert { columns, values } => insert(values.clone(), target.sources(columns, values.len())?),
        Then::InsertAll => insert(target.all_from(source)?, in_place(target)),
        Then::Delete => Make::Delete,
    };
    let fits = match (clause.when, &make) {
        (When::NotMatched, Make::Insert { .. }) => true,
        (When::NotMatched, _) | (_, Make::Insert { .. }) => false,
        (When::Matched | When::NotMatchedBySource, _) => true,
    };
    if !fits {
        return Err(Error::invalid("INSERT is what WHEN NOT MATCHED does, and nothing else"));
    }
    if clause.when == When::NotMatchedBySource && clause.then == Then::UpdateAll {
        return Err(Error::invalid("WHEN NOT MATCHED BY SOURCE has no row of the source for UPDATE SET *"));
    }
    Ok(Step { when: clause.when, filter: clause.condition.as_ref(), make })
}

/// Values under names of ours.
pub(super) fn numbered(values: &[Expr]) -> Vec<SelectItem> {
    values.iter().enumerate().map(|(at, it)| sql::item(it.clone(), &format!("\0value {at}"))).collect()
}

/// How the source is called.
fn name_of(source: &TableFactor) -> String {
    let (alias, name) = match source {
        TableFactor::Table { alias, name, .. } => (alias, plain(name).pop()),
        TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => (alias, None),
        _ => (&None, None),
    };
    alias.as_ref().map(|it| it.name.value.clone()).or(name).unwrap_or_else(|| SOURCE.to_owned())
}

/// `(SELECT *, true FROM source) AS name`.
fn present(source: &TableFactor, name: &str) -> Result<TableFactor> {
    let items = vec![sql::everything(), sql::item(sql::boolean(true), PRESENT)];
    Ok(sql::derived(sql::select(items, sql::alone(source.clone()), None)?, name))
}
