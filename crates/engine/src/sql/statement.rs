//! What a statement is, once parsed.
use std::fmt;

use sqlparser::ast::{ObjectName, Query, TableFactor};

use super::write::Write;

/// One statement of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub(crate) kind: Kind,
    /// The statement as written, for messages and history.
    text: String,
}

impl Statement {
    pub(crate) fn new(kind: Kind, text: String) -> Self {
        Self { kind, text }
    }

    /// The statement as written, without comments.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Rows(Rows),
    Explain {
        analyze: bool,
        verbose: bool,
        rows: Rows,
    },
    Set {
        name: String,
        value: String,
    },
    /// `None` resets every variable.
    Reset(Option<String>),
    Use(ObjectName),
    CreateView {
        name: ObjectName,
        replace: bool,
        query: Box<Query>,
    },
    DropView {
        name: ObjectName,
        if_exists: bool,
    },
    Write(Box<Write>),
}

/// A statement that answers with rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows {
    pub(crate) ask: Ask,
    /// The `FORMAT` clause: how the door is to print the rows.
    pub(crate) format: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ask {
    Query(Box<Query>),
    /// `DESCRIBE` of a table or table function: one row a column.
    Columns(Box<TableFactor>),
    /// `DESCRIBE SELECT …`: the columns a query would have.
    ColumnsOf(Box<Query>),
    /// A system table by its suffix: `DESCRIBE HISTORY t` is `SELECT * FROM t$history`.
    System {
        table: Box<TableFactor>,
        name: &'static str,
    },
    ShowTables {
        within: Option<ObjectName>,
        like: Option<String>,
    },
    ShowSchemas {
        within: Option<ObjectName>,
        like: Option<String>,
    },
    ShowCatalogs,
    ShowFunctions {
        like: Option<String>,
    },
    /// `None` is `SHOW ALL`.
    ShowVariable(Option<String>),
}
