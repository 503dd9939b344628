//! Statements that change something, taken apart.
//!
//! Their targets never reach a relation planner, and their predicates never reach the hooks of `TableProvider`:
//! DataFusion drops a predicate that its optimizer made into a join, and no predicate means all rows. So the parser
//! makes these instead of sqlparser's statements: each clause is a field here, or an error there. The session resolves
//! targets by name ([`Target`]) and plans the rest; queries and expressions inside are bound and planned like any other.
use std::{collections::BTreeMap, fmt};

use arrow_schema::FieldRef;
use lakebed_core::{Error, Result};
use sqlparser::ast::{Expr, ObjectName, ObjectNamePart, Query, TableFactor};

use super::{parse::plain, resolve::looks_like_path, wanted::Argument};
use crate::dml::{Delete, Merge, Update};

/// A statement that changes something.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    Insert(Box<Insert>),
    Delete(Box<Delete>),
    Update(Box<Update>),
    Merge(Box<Merge>),
    CreateTable(Box<CreateTable>),
    Alter {
        table: Target,
        change: Box<Alteration>,
    },
    DropTable {
        table: Target,
        if_exists: bool,
    },
    Truncate {
        table: Target,
    },
    Optimize {
        table: Target,
        filter: Option<Box<Expr>>,
        dry_run: bool,
    },
    Vacuum(Vacuum),
    Restore {
        table: Target,
        to: Point,
    },
    Call(Call),
    CreateSchema {
        name: Vec<String>,
        if_not_exists: bool,
    },
    DropSchema {
        name: Vec<String>,
        if_exists: bool,
    },
    /// Known by its first words alone, and refused: `GRANT`.
    Refused {
        verb: String,
    },
}

/// The table a statement writes to, as written: without a version, never a view, a function or a system table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The name's parts, `@` and `$` still inside.
    pub(crate) name: Vec<String>,
    /// Whether the name was written as a string: then it is a path.
    pub(crate) literal: bool,
}

impl Target {
    /// The target of a statement that keeps it as a relation, with an alias.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for what is no plain name.
    pub(crate) fn of(factor: &TableFactor) -> Result<Self> {
        match factor {
            TableFactor::Table { name, args: None, version: None, .. } => Ok(Self::named(name)),
            other => Err(Error::invalid(format!("`{other}`: a statement that writes names a table"))),
        }
    }

    pub(crate) fn named(name: &ObjectName) -> Self {
        let literal =
            matches!(name.0.as_slice(), [ObjectNamePart::Identifier(ident)] if ident.quote_style == Some('\''));
        Self { name: plain(name), literal }
    }

    /// The table that text names, as the argument of a procedure does: a path, or a name as statements write it.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if looks_like_path(text) && !text.contains(['`', '"']) {
            return Ok(Self { name: vec![text.to_owned()], literal: true });
        }
        let mut parser = super::parse::parser(super::tokens::fragment(text)?);
        let name = parser.parse_object_name(false).map_err(super::parse::syntax)?;
        super::parse::end(&mut parser)?;
        Ok(Self::named(&name))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name.join("."))
    }
}

/// A version that a statement goes back to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Point {
    Version(Expr),
    Time(Expr),
}

/// `INSERT` of a query's rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Insert {
    pub(crate) target: Target,
    /// The columns the query's columns go to, in order, as written; empty: the table's, without those of `partition`
    /// that have a value.
    pub(crate) columns: Vec<String>,
    /// Columns go by name, not by place.
    pub(crate) by_name: bool,
    /// `PARTITION (p = 'x', q)`: columns with the value that every row has, or `None` for those the query brings last.
    pub(crate) partition: Vec<(String, Option<Expr>)>,
    pub(crate) mode: InsertMode,
    pub(crate) query: Box<Query>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InsertMode {
    Append,
    /// The rows of the whole table go, or those of `partition`'s values, or those of the partitions that the new rows
    /// are in (`lakebed.write.partition_overwrite = dynamic`).
    Overwrite,
    /// The rows that meet it go; every new one must meet it.
    ReplaceWhere(Box<Expr>),
}

/// `CREATE TABLE`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CreateTable {
    pub(crate) target: Target,
    pub(crate) when_there: WhenThere,
    /// Without partition columns that `PARTITIONED BY` gives a type; `None`: those of the query.
    pub(crate) columns: Option<Vec<FieldRef>>,
    /// Of the primary key.
    pub(crate) key: Vec<String>,
    /// Name and expression.
    pub(crate) checks: Vec<(String, String)>,
    /// The format's name; `None`: the one the target names (``delta.`path` ``), else the default.
    pub(crate) format: Option<String>,
    pub(crate) partition: Vec<PartitionColumn>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) location: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) query: Option<Box<Query>>,
}

/// What to do where a table is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenThere {
    Fail,
    /// `IF NOT EXISTS`: nothing.
    Leave,
    /// `CREATE OR REPLACE`.
    Replace,
    /// `REPLACE TABLE`: it must be there.
    MustReplace,
}

impl WhenThere {
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Fail | Self::Leave => "CREATE TABLE",
            Self::Replace => "CREATE OR REPLACE TABLE",
            Self::MustReplace => "REPLACE TABLE",
        }
    }

    pub(crate) fn replaces(self) -> bool {
        matches!(self, Self::Replace | Self::MustReplace)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartitionColumn {
    /// A column, by name.
    Named(String),
    /// A column with its type, in the manner of Hive.
    Typed(FieldRef),
    /// `bucket(4, a)`: the function, its column, its number.
    Transformed { function: String, column: String, number: Option<u32> },
}

/// What `ALTER TABLE` changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Alteration {
    AddColumns {
        columns: Vec<NewColumn>,
        if_not_exists: bool,
    },
    DropColumns {
        columns: Vec<Vec<String>>,
        if_exists: bool,
    },
    RenameColumn {
        from: Vec<String>,
        to: String,
    },
    AlterColumn {
        column: Vec<String>,
        change: ColumnChange,
    },
    SetProperties(BTreeMap<String, String>),
    UnsetProperties {
        keys: Vec<String>,
        if_exists: bool,
    },
    AddConstraint {
        name: String,
        expression: String,
    },
    DropConstraint {
        name: String,
        if_exists: bool,
    },
    RenameTo(Target),
    /// `ADD FEATURE`, `SET TBLPROPERTIES ('<format>.feature.x' = 'supported')`.
    AddFeature(String),
    /// `COMMENT ON TABLE`.
    Comment(Option<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewColumn {
    /// Through structs; the last part is the new name.
    pub(crate) path: Vec<String>,
    pub(crate) field: FieldRef,
    pub(crate) place: Option<ColumnPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnPlace {
    First,
    After(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnChange {
    Comment(String),
    SetNotNull,
    DropNotNull,
    Type(FieldRef),
    Place(ColumnPlace),
}

/// `VACUUM`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vacuum {
    pub(crate) table: Target,
    pub(crate) lite: bool,
    /// A constant number of hours, perhaps with a fraction.
    pub(crate) retain_hours: Option<Expr>,
    pub(crate) dry_run: bool,
}

/// `CALL [catalog.]system.name(…)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// In lower case, without its catalog.
    pub(crate) procedure: Vec<String>,
    pub(crate) arguments: Vec<Argument>,
}

impl Write {
    /// The statement as messages name it: `INSERT INTO`.
    pub(crate) fn verb(&self) -> &str {
        match self {
            Self::Insert(insert) => match insert.mode {
                InsertMode::Overwrite => "INSERT OVERWRITE",
                InsertMode::Append | InsertMode::ReplaceWhere(_) => "INSERT INTO",
            },
            Self::Delete(_) => "DELETE FROM",
            Self::Update(_) => "UPDATE",
            Self::Merge(_) => "MERGE INTO",
            Self::CreateTable(create) => create.when_there.verb(),
            Self::Alter { .. } => "ALTER TABLE",
            Self::DropTable { .. } => "DROP TABLE",
            Self::Truncate { .. } => "TRUNCATE TABLE",
            Self::Optimize { .. } => "OPTIMIZE",
            Self::Vacuum(_) => "VACUUM",
            Self::Restore { .. } => "RESTORE",
            Self::Call(_) => "CALL",
            Self::CreateSchema { .. } => "CREATE SCHEMA",
            Self::DropSchema { .. } => "DROP SCHEMA",
            Self::Refused { verb } => verb,
        }
    }
}
