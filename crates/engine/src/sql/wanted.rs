//! What a table reference asks for.
use lakebed_core::{Error, Result};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, ObjectNamePart, TableAlias, TableFactor,
    TableFunctionArgs, TableVersion,
};

use super::parse::plain;

/// What a table reference asks for, before it is loaded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    /// The name's parts as written, `@` and `$` still inside.
    pub(crate) name: Vec<String>,
    /// Whether the name was written as a string: then it is a path.
    pub(crate) literal: bool,
    pub(crate) version: Option<TableVersion>,
    /// `Some` for a table function.
    pub(crate) arguments: Option<Vec<Argument>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Argument {
    pub(crate) name: Option<String>,
    pub(crate) value: Expr,
}

impl Wanted {
    pub(super) fn new(
        name: &ObjectName,
        args: Option<&TableFunctionArgs>,
        version: Option<TableVersion>,
    ) -> Result<Self> {
        let literal =
            matches!(name.0.as_slice(), [ObjectNamePart::Identifier(ident)] if ident.quote_style == Some('\''));
        let arguments = args.map(|it| it.args.iter().map(argument).collect::<Result<_>>()).transpose()?;
        Ok(Self { name: plain(name), literal, version, arguments })
    }
}

pub(super) fn argument(argument: &FunctionArg) -> Result<Argument> {
    let (name, value) = match argument {
        FunctionArg::Named { name, arg, .. } => (Some(name.value.to_lowercase()), arg),
        FunctionArg::Unnamed(arg) => (None, arg),
        FunctionArg::ExprNamed { .. } => {
            return Err(Error::invalid(format!("`{argument}`: an argument's name is a word")));
        }
    };
    match value {
        FunctionArgExpr::Expr(value) => Ok(Argument { name, value: value.clone() }),
        other => Err(Error::invalid(format!("`{other}` is no argument"))),
    }
}

/// `TABLE(f(…))` is `f(…)`.
pub(super) fn called(expr: &Expr, alias: Option<TableAlias>) -> Result<TableFactor> {
    let wrong = || Error::invalid(format!("TABLE({expr}): expected a table function"));
    let Expr::Function(function) = expr else { return Err(wrong()) };
    let FunctionArguments::List(list) = &function.args else { return Err(wrong()) };
    Ok(TableFactor::Table {
        name: function.name.clone(),
        alias,
        args: Some(TableFunctionArgs { args: list.args.clone(), settings: None }),
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    })
}
