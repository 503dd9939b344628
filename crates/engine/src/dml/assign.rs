//! What becomes of a row's columns: assignments, by name, as one expression a column.
use arrow_schema::{DataType, Field, Schema};
use lakebed_core::{Error, Result};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Value};

use super::{ast as sql, statement::Assignment};
use crate::{
    sql::{
        parse::{expression, quoted},
        scope::{field, same},
    },
    text::did_you_mean,
    write::Source,
};

/// The names of one side of a statement: how its columns are qualified, and what they are.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) qualifier: Vec<String>,
    pub(super) columns: Vec<Field>,
}

/// What becomes of one column, or of one field of a struct.
#[derive(Debug, Clone)]
enum Fate {
    Kept,
    Value(Box<Expr>),
    Fields(Vec<Fate>),
}

impl Side {
    pub(super) fn new(qualifier: Vec<String>, schema: &Schema) -> Self {
        let columns = schema.fields().iter().map(|it| it.as_ref().clone()).collect();
        Self { qualifier, columns }
    }

    pub(super) fn column(&self, at: usize) -> Expr {
        sql::column(&self.qualifier, self.columns[at].name())
    }

    /// Every column, as it is.
    pub(super) fn all(&self) -> Vec<Expr> {
        (0..self.columns.len()).map(|at| self.column(at)).collect()
    }

    /// The column of this name: exact, or the only one that matches without case.
    fn find(&self, name: &str) -> Result<Option<usize>> {
        if let Some(exact) = self.columns.iter().position(|it| it.name() == name) {
            return Ok(Some(exact));
        }
        let mut alike = self.columns.iter().enumerate().filter(|(_, it)| same(it.name(), name));
        let first = alike.next().map(|it| it.0);
        match alike.next() {
            Some(_) => Err(Error::invalid(format!("column `{name}` is ambiguous: columns differ by case only"))
                .with_hint("write the name in the case of the column you mean")),
            None => Ok(first),
        }
    }

    /// The column that a path begins with, perhaps behind the side's name, and the fields behind it.
    fn place<'p>(&self, path: &'p [String]) -> Result<(usize, &'p [String])> {
        for length in (0..path.len()).rev() {
            let ends = self.qualifier.len().checked_sub(length).map(|it| &self.qualifier[it..]);
            let named = ends.is_some_and(|it| it.iter().zip(path).all(|(a, b)| same(a, b)));
            if named && let Some(at) = self.find(&path[length])? {
                return Ok((at, &path[length + 1..]));
            }
        }
        Err(self.unknown(path))
    }

    fn unknown(&self, path: &[String]) -> Error {
        let name = path.last().map_or("", String::as_str);
        let error = Error::invalid(format!("no column of the table is called `{}`", path.join(".")));
        match did_you_mean(name, self.columns.iter().map(|it| it.name().as_str())) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    /// The new value of each column; those that no assignment names keep theirs.
    ///
    /// # Errors
    /// Invalid for a name that is no column, and for a column that is assigned twice.
    pub(super) fn updated(&self, assignments: &[Assignment]) -> Result<Vec<Expr>> {
        let mut fates = vec![Fate::Kept; self.columns.len()];
        for Assignment { column, value } in assignments {
            let path = texts(column);
            let (at, fields) = self.place(&path)?;
            let kind = self.columns[at].data_type();
            fates[at].assign(kind, fields, value).map_err(|it| it.describe(&path))?;
        }
        let of = |(at, fate): (usize, Fate)| {
            let (mut path, kind) = (self.qualifier.clone(), self.columns[at].data_type());
            path.push(self.columns[at].name().clone());
            fate.into_expr(&path, kind)
        };
        fates.into_iter().enumerate().map(of).collect()
    }

    /// `UPDATE SET *` and `INSERT *`: each column from `source`'s of its name.
    ///
    /// # Errors
    /// Invalid if the source lacks a column.
    pub(super) fn all_from(&self, source: &Self) -> Result<Vec<Expr>> {
        let of = |it: &Field| match source.find(it.name())? {
            Some(at) => Ok(source.column(at)),
            None => Err(Error::invalid(format!("the source of * has no column `{}`", it.name()))
                .with_hint("name the columns one by one, with a value for each")),
        };
        self.columns.iter().map(of).collect()
    }

    /// Where each column of a new row comes from, if `columns` have values; no columns are all.
    pub(super) fn sources(&self, columns: &[Vec<Ident>], values: usize) -> Result<Vec<Source>> {
        let mut sources = vec![Source::Missing; self.columns.len()];
        let listed: Vec<Vec<String>> = match columns.is_empty() {
            true => self.columns.iter().map(|it| vec![it.name().clone()]).collect(),
            false => columns.iter().map(|it| texts(it)).collect(),
        };
        if listed.len() != values {
            return Err(Error::invalid(format!("{values} values for {} columns", listed.len())));
        }
        for (value, path) in listed.iter().enumerate() {
            let (at, fields) = self.place(path)?;
            if !fields.is_empty() {
                return Err(Error::unsupported(format!("INSERT into the field `{}`", path.join(".")))
                    .with_hint("insert the whole struct: named_struct('a', 1, 'b', 2)"));
            }
            if sources[at] != Source::Missing {
                return Err(Trouble::Twice.describe(path));
            }
            sources[at] = Source::Input(value);
        }
        Ok(sources)
    }
}

enum Trouble {
    Twice,
    NoStruct,
    NoField(String),
    Other(Error),
}

impl Trouble {
    fn describe(self, path: &[String]) -> Error {
        let path = path.join(".");
        match self {
            Self::Twice => Error::invalid(format!("`{path}` is assigned twice")),
            Self::NoStruct => Error::unsupported(format!("assigning to `{path}`: it lies in no struct"))
                .with_hint("assign the whole column"),
            Self::NoField(field) => Error::invalid(format!("`{path}`: there is no field `{field}`")),
            Self::Other(err) => err,
        }
    }
}

impl Fate {
    fn assign(&mut self, kind: &DataType, fields: &[String], value: &Expr) -> std::result::Result<(), Trouble> {
        let Some((name, rest)) = fields.split_first() else {
            return match self {
                Self::Kept => {
                    *self = Self::Value(Box::new(value.clone()));
                    Ok(())
                }
                Self::Value(_) | Self::Fields(_) => Err(Trouble::Twice),
            };
        };
        let DataType::Struct(there) = kind else { return Err(Trouble::NoStruct) };
        let Some((name, kind)) = field(kind, name).map_err(Trouble::Other)? else {
            return Err(Trouble::NoField(name.clone()));
        };
        if matches!(self, Self::Kept) {
            *self = Self::Fields(vec![Self::Kept; there.len()]);
        }
        let at = there.iter().position(|it| *it.name() == name);
        match (self, at) {
            (Self::Fields(fates), Some(at)) => fates[at].assign(&kind, rest, value),
            _ => Err(Trouble::Twice),
        }
    }

    /// `path` is where the old value is.
    fn into_expr(self, path: &[String], kind: &DataType) -> Result<Expr> {
        match (self, kind) {
            (Self::Value(value), _) => Ok(sql::nested(*value)),
            (Self::Fields(fates), DataType::Struct(fields)) => {
                let mut arguments = Vec::with_capacity(2 * fates.len());
                for (fate, field) in fates.into_iter().zip(fields) {
                    let mut path = path.to_vec();
                    path.push(field.name().clone());
                    arguments.push(Expr::value(Value::SingleQuotedString(field.name().clone())));
                    arguments.push(fate.into_expr(&path, field.data_type())?);
                }
                call("named_struct()", arguments)
            }
            (Self::Kept | Self::Fields(_), _) => {
                Ok(Expr::CompoundIdentifier(path.iter().map(|it| quoted(it)).collect()))
            }
        }
    }
}

/// A call of ours with other arguments.
fn call(text: &str, arguments: Vec<Expr>) -> Result<Expr> {
    let mut call = expression(text)?;
    let Expr::Function(function) = &mut call else { return Err(Error::internal("a call of ours is none")) };
    let args = arguments.into_iter().map(|it| FunctionArg::Unnamed(FunctionArgExpr::Expr(it))).collect();
    let list = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    function.args = FunctionArguments::List(list);
    Ok(call)
}

fn texts(path: &[Ident]) -> Vec<String> {
    path.iter().map(|it| it.value.clone()).collect()
}
