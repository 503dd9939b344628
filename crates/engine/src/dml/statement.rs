//! What DELETE, UPDATE and MERGE ask for, as the parser makes it.
use sqlparser::ast::{Expr, Ident, TableFactor};

/// `DELETE FROM target [WHERE predicate]`; the target carries its alias.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delete {
    pub(crate) target: TableFactor,
    /// `None` is every row.
    pub(crate) predicate: Option<Expr>,
}

/// `UPDATE target SET … [WHERE predicate]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    pub(crate) target: TableFactor,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) predicate: Option<Expr>,
}

/// `column = value`; a column is a path through structs, perhaps with the target's name in front.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    pub(crate) column: Vec<Ident>,
    pub(crate) value: Expr,
}

/// `MERGE INTO target USING source ON on WHEN …`; target and source carry their aliases.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Merge {
    pub(crate) target: TableFactor,
    pub(crate) source: TableFactor,
    pub(crate) on: Expr,
    /// In the order of the statement: of those for one kind of row, the first that applies wins.
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clause {
    pub(crate) when: When,
    pub(crate) condition: Option<Expr>,
    pub(crate) then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Matched,
    /// `NOT MATCHED [BY TARGET]`: a row of the source.
    NotMatched,
    /// `NOT MATCHED BY SOURCE`: a row of the target.
    NotMatchedBySource,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Then {
    Update(Vec<Assignment>),
    /// `UPDATE SET *`: every column of the target from the source's column of its name.
    UpdateAll,
    Delete,
    /// Without columns: every column of the target in its order. One value a column.
    Insert {
        columns: Vec<Vec<Ident>>,
        values: Vec<Expr>,
    },
    /// `INSERT *`.
    InsertAll,
}

/// The alias of a target.
pub(super) fn alias_of(target: &TableFactor) -> Option<&str> {
    match target {
        TableFactor::Table { alias, .. } => alias.as_ref().map(|it| it.name.value.as_str()),
        _ => None,
    }
}
