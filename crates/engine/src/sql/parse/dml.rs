//! `DELETE`, `UPDATE` and `MERGE`.
use lakebed_core::{Error, Result};
use sqlparser::{
    ast::{Expr, Ident, TableAlias, TableFactor},
    keywords::Keyword,
    parser::Parser,
    tokenizer::Token,
};

use super::{
    eat, expected, syntax, word_ahead,
    write::{expr, parenthesized, refuse, skip, target_name},
};
use crate::{
    dml::{Assignment, Clause, Delete, Merge, Then, Update, When},
    sql::write::Write,
};

/// Words behind a target that start the next clause and are no alias.
const NO_ALIAS: &[&str] =
    &["SET", "WHERE", "USING", "ORDER", "LIMIT", "RETURNING", "OUTPUT", "FROM", "PARTITION", "SETTINGS", "FINAL", "ON"];

pub(super) fn delete(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 2);
    let target = relation(parser)?;
    refuse(parser, &[("USING", "use WHERE … IN (SELECT …), or MERGE"), ("PARTITION", "use WHERE")])?;
    let predicate = filter(parser)?;
    refuse(parser, &[("ORDER", "a table has no order"), ("LIMIT", "name the rows with WHERE"), ("RETURNING", "")])?;
    Ok(Write::Delete(Box::new(Delete { target, predicate })))
}

pub(super) fn update(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    let target = relation(parser)?;
    parser.expect_keyword_is(Keyword::SET).map_err(syntax)?;
    let assignments = assignments(parser)?;
    refuse(parser, &[("FROM", "use MERGE, or a subquery as the value")])?;
    let predicate = filter(parser)?;
    refuse(parser, &[("ORDER", "a table has no order"), ("LIMIT", "name the rows with WHERE"), ("RETURNING", "")])?;
    Ok(Write::Update(Box::new(Update { target, assignments, predicate })))
}

/// `MERGE INTO t [AS a] USING source ON … WHEN …`.
pub(super) fn merge(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    if word_ahead(parser, 0, "WITH") && word_ahead(parser, 1, "SCHEMA") {
        let error = Error::unsupported("WITH SCHEMA EVOLUTION is not supported");
        return Err(error.with_hint("ALTER TABLE … ADD COLUMNS first"));
    }
    parser.expect_keyword_is(Keyword::INTO).map_err(syntax)?;
    let target = relation(parser)?;
    parser.expect_keyword_is(Keyword::USING).map_err(syntax)?;
    let source = parser.parse_table_factor().map_err(syntax)?;
    parser.expect_keyword_is(Keyword::ON).map_err(syntax)?;
    let on = expr(parser)?;
    let mut clauses = Vec::new();
    while parser.parse_keyword(Keyword::WHEN) {
        clauses.push(clause(parser)?);
    }
    refuse(parser, &[("OUTPUT", ""), ("RETURNING", "")])?;
    if clauses.is_empty() {
        return expected("WHEN [NOT] MATCHED …", parser);
    }
    check_order(&clauses)?;
    Ok(Write::Merge(Box::new(Merge { target, source, on, clauses })))
}

/// Of the clauses for one kind of row, only the last may do without a condition: behind it nothing is tried.
fn check_order(clauses: &[Clause]) -> Result<()> {
    for (at, clause) in clauses.iter().enumerate() {
        if clause.condition.is_none() && clauses[at + 1..].iter().any(|it| it.when == clause.when) {
            let kind = match clause.when {
                When::Matched => "MATCHED",
                When::NotMatched => "NOT MATCHED",
                When::NotMatchedBySource => "NOT MATCHED BY SOURCE",
            };
            return Err(Error::invalid(format!("of several WHEN {kind} only the last may lack a condition")));
        }
    }
    Ok(())
}

fn clause(parser: &mut Parser<'_>) -> Result<Clause> {
    let not = parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword_is(Keyword::MATCHED).map_err(syntax)?;
    let mut when = if not { When::NotMatched } else { When::Matched };
    if not && parser.parse_keyword(Keyword::BY) {
        match parser.parse_one_of_keywords(&[Keyword::SOURCE, Keyword::TARGET]) {
            Some(Keyword::SOURCE) => when = When::NotMatchedBySource,
            Some(_) => (),
            None => return expected("SOURCE or TARGET", parser),
        }
    }
    let condition = parser.parse_keyword(Keyword::AND).then(|| expr(parser)).transpose()?;
    parser.expect_keyword_is(Keyword::THEN).map_err(syntax)?;
    let then = then(parser, when)?;
    refuse(parser, &[("WHERE", "put it into WHEN … AND …")])?;
    Ok(Clause { when, condition, then })
}

fn then(parser: &mut Parser<'_>, when: When) -> Result<Then> {
    if when == When::NotMatched {
        return match parser.parse_keyword(Keyword::INSERT) {
            true => insert(parser),
            false => expected("INSERT under WHEN NOT MATCHED", parser),
        };
    }
    match parser.parse_one_of_keywords(&[Keyword::UPDATE, Keyword::DELETE]) {
        Some(Keyword::DELETE) => return Ok(Then::Delete),
        Some(_) => parser.expect_keyword_is(Keyword::SET).map_err(syntax)?,
        None => return expected("UPDATE or DELETE", parser),
    };
    if !parser.consume_token(&Token::Mul) {
        return Ok(Then::Update(assignments(parser)?));
    }
    match when {
        When::Matched => Ok(Then::UpdateAll),
        _ => Err(Error::invalid("UPDATE SET * takes the source's columns: WHEN NOT MATCHED BY SOURCE has none")),
    }
}

fn insert(parser: &mut Parser<'_>) -> Result<Then> {
    if parser.consume_token(&Token::Mul) {
        return Ok(Then::InsertAll);
    }
    refuse(parser, &[("ROW", "use INSERT *")])?;
    let columns = match parser.peek_token_ref().token == Token::LParen {
        true => parenthesized(parser, assigned)?,
        false => Vec::new(),
    };
    parser.expect_keyword_is(Keyword::VALUES).map_err(syntax)?;
    let values = parenthesized(parser, expr)?;
    if !columns.is_empty() && columns.len() != values.len() {
        let (columns, values) = (columns.len(), values.len());
        return Err(Error::invalid(format!("INSERT names {columns} columns and has {values} values")));
    }
    Ok(Then::Insert { columns, values })
}

fn filter(parser: &mut Parser<'_>) -> Result<Option<Expr>> {
    parser.parse_keyword(Keyword::WHERE).then(|| expr(parser)).transpose()
}

fn assignments(parser: &mut Parser<'_>) -> Result<Vec<Assignment>> {
    let mut all = Vec::new();
    loop {
        let column = assigned(parser)?;
        parser.expect_token(&Token::Eq).map_err(syntax)?;
        all.push(Assignment { column, value: expr(parser)? });
        if !parser.consume_token(&Token::Comma) {
            return Ok(all);
        }
    }
}

/// A column that gets a value, perhaps with its table in front and fields behind.
fn assigned(parser: &mut Parser<'_>) -> Result<Vec<Ident>> {
    let mut parts = Vec::new();
    loop {
        if let Token::SingleQuotedString(_) | Token::LParen = parser.peek_token_ref().token {
            return expected("a column's name", parser);
        }
        parts.push(parser.parse_identifier().map_err(syntax)?);
        if !parser.consume_token(&Token::Period) {
            return Ok(parts);
        }
    }
}

/// The target with its alias, as a relation.
fn relation(parser: &mut Parser<'_>) -> Result<TableFactor> {
    let name = target_name(parser)?;
    let explicit = eat(parser, "AS");
    let word = matches!(parser.peek_token_ref().token, Token::Word(_));
    let alias = match explicit || (word && !NO_ALIAS.iter().any(|it| word_ahead(parser, 0, it))) {
        true => {
            let name = parser.parse_identifier().map_err(syntax)?;
            Some(TableAlias { explicit, name, columns: Vec::new(), at: None })
        }
        false => None,
    };
    Ok(TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    })
}
