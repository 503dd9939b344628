//! `CREATE TABLE`, `CREATE OR REPLACE TABLE`, `REPLACE TABLE`.
use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use arrow_schema::{Field, FieldRef};
use lakebed_core::{Error, Result};
use sqlparser::{
    ast::{Expr, Ident, ObjectName, ObjectNamePart, Query, VisitMut, VisitorMut},
    keywords::Keyword,
    parser::Parser,
    tokenizer::Token,
};

use super::{
    eat, expected, syntax,
    types::{self, string},
    word_ahead,
    write::{column, expr, once, parenthesized, properties, refuse, skip, target, unsupported},
};
use crate::sql::{
    check::check,
    write::{CreateTable, PartitionColumn, WhenThere, Write},
};

/// The clauses behind the columns, each at most once.
#[derive(Default)]
struct Clauses {
    format: Option<String>,
    partition: Option<Vec<PartitionColumn>>,
    properties: BTreeMap<String, String>,
    location: Option<String>,
    comment: Option<String>,
}

/// What stands in the parentheses behind the name.
#[derive(Default)]
struct Columns {
    fields: Vec<FieldRef>,
    key: Vec<String>,
    checks: Vec<(String, String)>,
}

pub(super) fn table(parser: &mut Parser<'_>) -> Result<Write> {
    let when_there = head(parser)?;
    let target = target(parser)?;
    refuse(parser, &[("LIKE", "name the columns"), ("SHALLOW", ""), ("DEEP", ""), ("CLONE", "")])?;
    let columns = (parser.peek_token_ref().token == Token::LParen).then(|| columns(parser)).transpose()?;
    let clauses = clauses(parser)?;
    let query = query(parser)?;
    if query.is_some() && columns.is_some() {
        let error = Error::invalid("CREATE TABLE … AS takes its columns from the query, not from a list");
        return Err(error.with_hint("leave the list out, and CAST in the query"));
    }
    if query.is_none() && columns.is_none() {
        let error = Error::invalid(format!("CREATE TABLE `{target}` names no columns"));
        return Err(error.with_hint("list them, or end with AS SELECT …"));
    }
    let (fields, key, checks) = match columns {
        Some(Columns { fields, key, checks }) => (Some(fields), key, checks),
        None => (None, Vec::new(), Vec::new()),
    };
    let Clauses { format, partition, properties, location, comment } = clauses;
    let partition = partition.unwrap_or_default();
    let columns = fields;
    let create = CreateTable {
        target,
        when_there,
        columns,
        key,
        checks,
        format,
        partition,
        properties,
        location,
        comment,
        query,
    };
    Ok(Write::CreateTable(Box::new(create)))
}

fn head(parser: &mut Parser<'_>) -> Result<WhenThere> {
    let create = eat(parser, "CREATE");
    let replace = if create { parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]) } else { eat(parser, "REPLACE") };
    parser.expect_keyword_is(Keyword::TABLE).map_err(syntax)?;
    let leave = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    match (create, replace, leave) {
        (_, true, true) => Err(Error::invalid("REPLACE and IF NOT EXISTS contradict each other")),
        (true, true, false) => Ok(WhenThere::Replace),
        (false, _, _) => Ok(WhenThere::MustReplace),
        (true, false, true) => Ok(WhenThere::Leave),
        (true, false, false) => Ok(WhenThere::Fail),
    }
}

fn columns(parser: &mut Parser<'_>) -> Result<Columns> {
    let mut columns = Columns::default();
    parenthesized(parser, |parser| element(parser, &mut columns))?;
    match columns.fields.is_empty() {
        true => expected("a column", parser),
        false => Ok(columns),
    }
}

/// A column or a table constraint.
fn element(parser: &mut Parser<'_>, columns: &mut Columns) -> Result<()> {
    refuse(parser, &[("UNIQUE", ""), ("FOREIGN", ""), ("INDEX", "")])?;
    if word_ahead(parser, 0, "PRIMARY") && word_ahead(parser, 1, "KEY") {
        return key(parser, &mut columns.key);
    }
    if word_ahead(parser, 0, "CHECK") && parser.peek_nth_token_ref(1).token == Token::LParen {
        return Err(Error::invalid("a constraint has a name").with_hint("CONSTRAINT name CHECK (…)"));
    }
    if eat(parser, "CONSTRAINT") {
        let name = column(parser)?;
        if word_ahead(parser, 0, "PRIMARY") {
            return key(parser, &mut columns.key);
        }
        columns.checks.push((name, constraint(parser)?));
        return Ok(());
    }
    let name = column(parser)?;
    let field = types::field(parser, &name)?;
    let field = types::constraints(parser, field)?;
    refuse_column_options(parser, &name)?;
    columns.fields.push(Arc::new(field));
    Ok(())
}

/// Names what a column may be in other dialects and is not here.
pub(super) fn refuse_column_options(parser: &Parser<'_>, column: &str) -> Result<()> {
    for (word, what) in [
        ("GENERATED", "GENERATED"),
        ("IDENTITY", "IDENTITY"),
        ("AS", "GENERATED"),
        ("DEFAULT", "DEFAULT"),
        ("MASK", "MASK"),
        ("COLLATE", "COLLATE"),
        ("REFERENCES", "REFERENCES"),
        ("UNIQUE", "UNIQUE"),
    ] {
        if word_ahead(parser, 0, word) {
            return Err(unsupported(&format!("column `{column}`: {what}"), ""));
        }
    }
    refuse(
        parser,
        &[
            ("PRIMARY", "write PRIMARY KEY (…) behind the columns"),
            ("CHECK", "write CONSTRAINT name CHECK (…) behind the columns"),
            ("CONSTRAINT", "write CONSTRAINT name CHECK (…) behind the columns"),
        ],
    )
}

/// `PRIMARY KEY (a, b) [NOT ENFORCED]`.
fn key(parser: &mut Parser<'_>, key: &mut Vec<String>) -> Result<()> {
    skip(parser, 1);
    parser.expect_keyword_is(Keyword::KEY).map_err(syntax)?;
    if !key.is_empty() {
        return Err(Error::invalid("PRIMARY KEY is given twice"));
    }
    *key = parenthesized(parser, column)?;
    let _ = parser.parse_keywords(&[Keyword::NOT, Keyword::ENFORCED]);
    Ok(())
}

/// `CHECK (…)`, as text that every engine reads.
pub(super) fn constraint(parser: &mut Parser<'_>) -> Result<String> {
    if !eat(parser, "CHECK") {
        return expected("CHECK (…)", parser);
    }
    parser.expect_token(&Token::LParen).map_err(syntax)?;
    let mut expression = expr(parser)?;
    parser.expect_token(&Token::RParen).map_err(syntax)?;
    refuse(parser, &[("NOT", "constraints are enforced"), ("ENFORCED", "leave it out: constraints are enforced")])?;
    check(&expression)?;
    // In double quotes other engines see text, in back-quotes everybody sees a name.
    match expression.visit(&mut BackQuotes) {
        ControlFlow::Continue(()) => Ok(expression.to_string()),
        ControlFlow::Break(()) => {
            Err(Error::invalid(format!("CHECK ({expression}): a constraint is about one row, and has no subquery")))
        }
    }
}

struct BackQuotes;

impl VisitorMut for BackQuotes {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => back_quoted(ident),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(back_quoted),
            Expr::Function(function) => name_back_quoted(&mut function.name),
            _ => (),
        }
        ControlFlow::Continue(())
    }
}

fn back_quoted(ident: &mut Ident) {
    if ident.quote_style == Some('"') {
        ident.quote_style = Some('`');
    }
}

fn name_back_quoted(name: &mut ObjectName) {
    for part in &mut name.0 {
        if let ObjectNamePart::Identifier(ident) = part {
            back_quoted(ident);
        }
    }
}

fn clauses(parser: &mut Parser<'_>) -> Result<Clauses> {
    let mut clauses = Clauses::default();
    loop {
        refuse(
            parser,
            &[
                ("CLUSTER", "use PARTITIONED BY"),
                ("CLUSTERED", "use PARTITIONED BY"),
                ("SORTED", ""),
                ("STORED", "use USING"),
                ("ROW", ""),
                ("ENGINE", "use USING and LOCATION"),
                ("SKEWED", ""),
                ("ORDER", ""),
                ("PARTITION", "use PARTITIONED BY"),
                ("CLONE", ""),
                ("SHALLOW", ""),
                ("DEEP", ""),
            ],
        )?;
        if eat(parser, "USING") {
            let format = parser.parse_identifier().map_err(syntax)?.value;
            once(&mut clauses.format, "USING", format)?;
        } else if eat(parser, "PARTITIONED") {
            parser.expect_keyword_is(Keyword::BY).map_err(syntax)?;
            once(&mut clauses.partition, "PARTITIONED BY", parenthesized(parser, partition)?)?;
        } else if eat(parser, "TBLPROPERTIES") || eat(parser, "OPTIONS") || with_properties(parser) {
            for (key, value) in properties(parser)? {
                if clauses.properties.insert(key.clone(), value).is_some() {
                    return Err(Error::invalid(format!("property `{key}` is given twice")));
                }
            }
        } else if eat(parser, "LOCATION") {
            once(&mut clauses.location, "LOCATION", string(parser, "a location")?)?;
        } else if eat(parser, "COMMENT") {
            once(&mut clauses.comment, "COMMENT", string(parser, "a comment")?)?;
        } else {
            return Ok(clauses);
        }
    }
}

/// `WITH (`: without the parenthesis a query begins.
fn with_properties(parser: &mut Parser<'_>) -> bool {
    let there = word_ahead(parser, 0, "WITH") && parser.peek_nth_token_ref(1).token == Token::LParen;
    if there {
        skip(parser, 1);
    }
    there
}

/// `a`, `a INT`, `bucket(4, a)`, `days(a)`.
fn partition(parser: &mut Parser<'_>) -> Result<PartitionColumn> {
    let name = column(parser)?;
    match parser.peek_token_ref().token {
        Token::Comma | Token::RParen => Ok(PartitionColumn::Named(name)),
        Token::LParen => transformed(parser, name),
        _ => {
            let field: Field = types::field(parser, &name)?;
            Ok(PartitionColumn::Typed(Arc::new(types::constraints(parser, field)?)))
        }
    }
}

/// `(4, a)`, `(a, 4)` or `(a)`.
fn transformed(parser: &mut Parser<'_>, function: String) -> Result<PartitionColumn> {
    let (mut number, mut source) = (None, None);
    parenthesized(parser, |parser| match parser.peek_token_ref().token {
        Token::Number(..) => {
            let count = parser.parse_literal_uint().map_err(syntax)?;
            let count =
                u32::try_from(count).map_err(|_| Error::invalid(format!("{function}({count}, …) is too many")))?;
            once(&mut number, "the number", count)
        }
        _ => once(&mut source, "the column", column(parser)?),
    })?;
    match source {
        Some(column) => Ok(PartitionColumn::Transformed { function, column, number }),
        None => expected("a column to partition by", parser),
    }
}

fn query(parser: &mut Parser<'_>) -> Result<Option<Box<Query>>> {
    let explicit = eat(parser, "AS");
    let starts = ["SELECT", "WITH", "VALUES", "FROM"].into_iter().any(|it| word_ahead(parser, 0, it));
    match explicit || starts || parser.peek_token_ref().token == Token::LParen {
        true => parser.parse_query().map(Some).map_err(syntax),
        false => Ok(None),
    }
}
