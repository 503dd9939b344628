//! The relations that names can stand for, and how a name finds its column.
//!
//! Names keep their case and match without it. An exact match wins; without one, the only column that matches
//! without case; two of them are an error that lists both. A relation with unknown columns may hold any name, so
//! nothing is decided above it.
use std::sync::Arc;

use arrow_schema::{DataType, Fields};
use lakebed_core::{Error, Result};

/// A column of a relation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `None` where it is not known before planning.
    pub(crate) kind: Option<DataType>,
    /// Virtual: found by name, absent from `*`.
    pub(crate) hidden: bool,
}

impl Column {
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: None, hidden: false }
    }
}

/// One table, function, common table expression or subquery in a FROM clause.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    /// How columns are qualified; empty for a subquery without an alias.
    pub(crate) qualifier: Vec<String>,
    /// `None` if unknown.
    pub(crate) columns: Option<Arc<[Column]>>,
    /// The loaded table behind it, if it is one.
    pub(crate) slot: Option<usize>,
}

/// The relations of one FROM clause.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub(crate) relations: Vec<Relation>,
    /// Select-list names that ORDER BY, GROUP BY and HAVING may use.
    pub(crate) aliases: Vec<Column>,
    /// Whether aliases win over columns: in ORDER BY they do.
    pub(crate) aliases_first: bool,
    /// Whether a join merges columns (USING): `*` cannot be taken apart by relation.
    pub(crate) merged: bool,
}

/// Where a column was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) kind: Option<DataType>,
    /// The slots of the tables whose virtual column it is; more than one is for the planner to call ambiguous.
    pub(crate) hidden: Vec<usize>,
}

/// What became of a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Search {
    Found(Found),
    /// Not here; an outer scope may have it.
    Absent,
    /// A relation whose columns are not known may have it.
    Open,
}

pub(crate) fn same(left: &str, right: &str) -> bool {
    left == right || left.eq_ignore_ascii_case(right) || left.to_lowercase() == right.to_lowercase()
}

impl Scope {
    /// The column that a name without qualifier stands for.
    pub(crate) fn bare(&self, name: &str) -> Result<Search> {
        let columns: Vec<_> = self.relations.iter().flat_map(Relation::candidates).collect();
        let aliases: Vec<_> = self.aliases.iter().map(|it| Candidate { column: it, relation: None }).collect();
        let order = if self.aliases_first { [&aliases, &columns] } else { [&columns, &aliases] };
        for candidates in order {
            if let Some(found) = exact(candidates, name) {
                return Ok(Search::Found(found));
            }
        }
        // A relation whose columns are not known may have the name exactly, and an exact match wins.
        if self.relations.iter().any(|it| it.columns.is_none()) {
            return Ok(Search::Open);
        }
        for candidates in order {
            if let Some(found) = loose(candidates, name)? {
                return Ok(Search::Found(found));
            }
        }
        Ok(Search::Absent)
    }

    /// The relation that a qualifier stands for: its name or the last parts of it.
    pub(crate) fn relation(&self, qualifier: &[&str]) -> Result<Option<&Relation>> {
        let ends = |it: &&Relation, equal: fn(&str, &str) -> bool| {
            it.qualifier.len() >= qualifier.len()
                && it.qualifier[it.qualifier.len() - qualifier.len()..].iter().zip(qualifier).all(|(a, b)| equal(a, b))
        };
        if let Some(found) = self.relations.iter().find(|it| ends(it, |a, b| a == b)) {
            return Ok(Some(found));
        }
        let loose: Vec<_> = self.relations.iter().filter(|it| ends(it, same)).collect();
        match loose.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [one, two, ..] => Err(Error::invalid(format!(
                "`{}` may be `{}` or `{}`",
                qualifier.join("."),
                one.qualifier.join("."),
                two.qualifier.join(".")
            ))),
        }
    }

    /// Refuses two relations of one name, which no qualifier could tell apart.
    pub(crate) fn check_names(&self) -> Result<()> {
        for (index, relation) in self.relations.iter().enumerate() {
            let twice = self.relations[..index].iter().any(|it| it.qualifier == relation.qualifier);
            if twice && !relation.qualifier.is_empty() {
                let name = relation.qualifier.join(".");
                return Err(Error::invalid(format!("two relations of one FROM are called `{name}`"))
                    .with_hint(format!("give them aliases: {name} AS a JOIN {name} AS b")));
            }
        }
        Ok(())
    }
}

impl Relation {
    /// The column of this relation that `name` stands for.
    pub(crate) fn column(&self, name: &str) -> Result<Search> {
        if self.columns.is_none() {
            return Ok(Search::Open);
        }
        let candidates: Vec<_> = self.candidates().collect();
        if let Some(found) = exact(&candidates, name) {
            return Ok(Search::Found(found));
        }
        Ok(loose(&candidates, name)?.map_or(Search::Absent, Search::Found))
    }

    /// The columns that `*` shows.
    pub(crate) fn visible(&self) -> Option<impl Iterator<Item = &Column>> {
        self.columns.as_deref().map(|it| it.iter().filter(|column| !column.hidden))
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        self.columns.iter().flat_map(|it| it.iter()).map(|column| Candidate { column, relation: Some(self) })
    }
}

struct Candidate<'a> {
    column: &'a Column,
    relation: Option<&'a Relation>,
}

impl Candidate<'_> {
    fn hidden_in(&self) -> Option<usize> {
        self.relation.and_then(|it| it.slot).filter(|_| self.column.hidden)
    }

    fn shown(&self) -> String {
        match self.relation {
            Some(relation) if !relation.qualifier.is_empty() => {
                format!("`{}.{}`", relation.qualifier.join("."), self.column.name)
            }
            _ => format!("`{}`", self.column.name),
        }
    }
}

/// Columns of the table win over virtual ones of the same spelling.
fn exact(candidates: &[Candidate<'_>], name: &str) -> Option<Found> {
    let equal: Vec<_> = candidates.iter().filter(|it| it.column.name == name).collect();
    let real = equal.iter().position(|it| !it.column.hidden);
    found(real.map_or(equal.as_slice(), |it| &equal[it..=it]))
}

fn found(candidates: &[&Candidate<'_>]) -> Option<Found> {
    let first = candidates.first()?;
    let hidden = candidates.iter().filter_map(|it| it.hidden_in()).collect();
    Some(Found { name: first.column.name.clone(), kind: first.column.kind.clone(), hidden })
}

fn loose(candidates: &[Candidate<'_>], name: &str) -> Result<Option<Found>> {
    let mut alike: Vec<_> = candidates.iter().filter(|it| same(&it.column.name, name)).collect();
    if alike.iter().any(|it| !it.column.hidden) {
        alike.retain(|it| !it.column.hidden);
    }
    let Some(first) = alike.first() else { return Ok(None) };
    match alike.iter().find(|it| it.column.name != first.column.name) {
        None => Ok(found(&alike)),
        Some(other) => Err(Error::invalid(format!(
            "column `{name}` is ambiguous: {} and {} differ by case only",
            first.shown(),
            other.shown()
        ))
        .with_hint("write the name in the case of the column you mean")),
    }
}

/// The field of a struct that `name` stands for, with its type; lists and maps are entered by subscripts.
pub(crate) fn field(kind: &DataType, name: &str) -> Result<Option<(String, DataType)>> {
    let DataType::Struct(fields) = kind else { return Ok(None) };
    if let Some(found) = fields.iter().find(|it| it.name() == name) {
        return Ok(Some((found.name().clone(), found.data_type().clone())));
    }
    only(fields, name)
}

fn only(fields: &Fields, name: &str) -> Result<Option<(String, DataType)>> {
    let alike: Vec<_> = fields.iter().filter(|it| same(it.name(), name)).collect();
    match alike.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((one.name().clone(), one.data_type().clone()))),
        [one, two, ..] => Err(Error::invalid(format!(
            "field `{name}` is ambiguous: `{}` and `{}` differ by case only",
            one.name(),
            two.name()
        ))),
    }
}

/// The type of what a subscript finds.
pub(crate) fn element(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type().clone())
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.get(1).map(|it| it.data_type().clone()),
            _ => None,
        },
        _ => None,
    }
}
