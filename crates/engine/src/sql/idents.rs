//! Gives every identifier in an expression the spelling of what it stands for.
use std::ops::ControlFlow;

use arrow_schema::DataType;
use lakebed_core::{Error, Result};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments,
    Ident, LambdaFunction, Query, Subscript, Value, VisitMut, VisitorMut,
};

use super::{
    names::Names,
    parse::quoted,
    scope::{Column, Found, Search, element, field},
};

impl Names<'_> {
    /// Walks the expressions below `node`; queries among them with their own scopes.
    pub(super) fn visit<T: VisitMut>(&mut self, node: &mut T) -> Result<()> {
        let mut visitor = Exprs { names: self, queries: 0, parameters: Vec::new() };
        match node.visit(&mut visitor) {
            ControlFlow::Break(err) => Err(err),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// The result column that an expression makes, its name bound before.
    pub(super) fn column_of(&mut self, expr: &Expr) -> Result<Column> {
        let (name, kind) = match expr {
            Expr::Identifier(ident) => (ident.value.clone(), self.bare(&mut ident.clone())?),
            Expr::CompoundIdentifier(parts) => {
                let name = parts.last().map(|it| it.value.clone()).unwrap_or_default();
                (name, self.compound(&mut parts.clone())?)
            }
            // The planner makes this name; it can be used exactly as it makes it, or not at all.
            _ => (String::new(), None),
        };
        Ok(Column { kind, ..Column::named(name) })
    }

    fn bare(&mut self, ident: &mut Ident) -> Result<Option<DataType>> {
        for index in (0..self.scopes.len()).rev() {
            match self.scopes[index].bare(&ident.value)? {
                Search::Found(found) => {
                    rename(ident, &found.name);
                    self.expose(&found);
                    return Ok(found.kind);
                }
                Search::Open => return Ok(None),
                Search::Absent => (),
            }
        }
        Ok(None)
    }

    /// `[qualifier.]column[.field…]`: the longest qualifier wins.
    fn compound(&mut self, parts: &mut [Ident]) -> Result<Option<DataType>> {
        for index in (0..self.scopes.len()).rev() {
            for length in (1..parts.len().min(5)).rev() {
                let qualifier: Vec<_> = parts[..length].iter().map(|it| it.value.as_str()).collect();
                let Some(relation) = self.scopes[index].relation(&qualifier)?.cloned() else { continue };
                let found = match relation.column(&parts[length].value)? {
                    Search::Found(found) => Some(found),
                    Search::Open => None,
                    Search::Absent => continue,
                };
                let spelled = &relation.qualifier[relation.qualifier.len() - length..];
                parts.iter_mut().zip(spelled).for_each(|(part, name)| rename(part, name));
                let Some(found) = found else { return Ok(None) };
                self.expose(&found);
                return column_and_fields(&mut parts[length..], found);
            }
            match self.scopes[index].bare(&parts[0].value)? {
                Search::Found(found) => {
                    self.expose(&found);
                    return column_and_fields(parts, found);
                }
                Search::Open => return Ok(None),
                Search::Absent => (),
            }
        }
        Ok(None)
    }

    fn expose(&mut self, found: &Found) {
        for slot in &found.hidden {
            if let Some(exposed) = self.exposed.get_mut(*slot) {
                exposed.insert(found.name.clone());
            }
        }
    }

    /// `a.b[1].c`: the leading names are one column, names after a subscript are fields of what it finds.
    fn access(&mut self, root: &mut Expr, chain: &mut Vec<AccessExpr>) -> Result<()> {
        let mut parts = match root {
            Expr::Identifier(ident) => vec![ident.clone()],
            Expr::CompoundIdentifier(parts) => parts.clone(),
            _ => Vec::new(),
        };
        let mut kind = None;
        if !parts.is_empty() {
            let names = chain.iter().take_while(|it| matches!(it, AccessExpr::Dot(Expr::Identifier(_)))).count();
            for dot in chain.drain(..names) {
                if let AccessExpr::Dot(Expr::Identifier(ident)) = dot {
                    parts.push(ident);
                }
            }
            kind = match parts.as_mut_slice() {
                [one] => self.bare(one)?,
                more => self.compound(more)?,
            };
            *root = match parts.len() {
                1 => Expr::Identifier(parts.remove(0)),
                _ => Expr::CompoundIdentifier(parts),
            };
        }
        for step in chain {
            kind = enter(step, kind.as_ref())?;
        }
        Ok(())
    }
}

/// Spells one step behind a subscript, and returns the type of what it finds.
fn enter(step: &mut AccessExpr, kind: Option<&DataType>) -> Result<Option<DataType>> {
    let text = match step {
        AccessExpr::Dot(Expr::Identifier(ident)) => Some(ident.value.clone()),
        AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) }) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        AccessExpr::Dot(_) | AccessExpr::Subscript(_) => None,
    };
    let Some(text) = text else { return Ok(kind.and_then(element)) };
    let found = match kind {
        Some(kind) => field(kind, &text)?,
        None => None,
    };
    let (name, inner) = match found {
        Some((name, inner)) => (name, Some(inner)),
        None => (text, kind.and_then(element)),
    };
    // As a string literal the planner takes it for a field, and no walk takes it for a column.
    let literal = Expr::value(Value::SingleQuotedString(name));
    match step {
        AccessExpr::Dot(expr) => *expr = literal,
        AccessExpr::Subscript(Subscript::Index { index }) => *index = literal,
        AccessExpr::Subscript(Subscript::Slice { .. }) => (),
    }
    Ok(inner)
}

fn column_and_fields(parts: &mut [Ident], found: Found) -> Result<Option<DataType>> {
    let Some((column, fields)) = parts.split_first_mut() else { return Ok(None) };
    rename(column, &found.name);
    let mut kind = found.kind;
    for part in fields {
        let Some((name, inner)) = kind.as_ref().map(|it| field(it, &part.value)).transpose()?.flatten() else {
            return Ok(None);
        };
        rename(part, &name);
        kind = Some(inner);
    }
    Ok(kind)
}

fn rename(ident: &mut Ident, name: &str) {
    if ident.value != name {
        *ident = Ident { span: ident.span, ..quoted(name) };
    }
}

struct Exprs<'n, 'a> {
    names: &'n mut Names<'a>,
    /// How many queries deep the walk is: those were walked as queries already.
    queries: usize,
    /// Names of the lambda parameters in sight.
    parameters: Vec<String>,
}

impl Exprs<'_, '_> {
    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Identifier(ident) if self.parameters.contains(&ident.value) => Ok(()),
            Expr::Identifier(ident) => self.names.bare(ident).map(|_| ()),
            Expr::CompoundIdentifier(parts) if self.parameters.contains(&parts[0].value) => Ok(()),
            Expr::CompoundIdentifier(parts) => self.names.compound(parts).map(|_| ()),
            Expr::CompoundFieldAccess { root, access_chain } => self.names.access(root, access_chain),
            Expr::Function(function) => {
                compare_named(function);
                Ok(())
            }
            Expr::Lambda(lambda) => {
                self.parameters.extend(parameters(lambda));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn parameters(lambda: &LambdaFunction) -> impl Iterator<Item = String> + '_ {
    lambda.params.iter().map(|it| it.name.value.clone())
}

/// `f(a = 1)` names an argument only in table functions; elsewhere it compares.
fn compare_named(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for argument in &mut list.args {
        if let FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), operator: FunctionArgOperator::Equals } =
            argument
        {
            let comparison = Expr::BinaryOp {
                left: Box::new(Expr::Identifier(name.clone())),
                op: BinaryOperator::Eq,
                right: Box::new(value.clone()),
            };
            *argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(comparison));
        }
    }
}

impl VisitorMut for Exprs<'_, '_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if self.queries == 0
            && let Err(err) = self.names.query(query)
        {
            return ControlFlow::Break(err);
        }
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        match self.expr(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(err) => ControlFlow::Break(err),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let (0, Expr::Lambda(lambda)) = (self.queries, expr) {
            let count = parameters(lambda).count();
            self.parameters.truncate(self.parameters.len() - count);
        }
        ControlFlow::Continue(())
    }
}
