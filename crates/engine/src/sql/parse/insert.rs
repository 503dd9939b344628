//! `INSERT`.
use lakebed_core::{Error, Result};
use sqlparser::{ast::Expr, keywords::Keyword, parser::Parser, tokenizer::Token};

use super::{
    expected, syntax, word_ahead,
    write::{column, expr, parenthesized, refuse, skip, target},
};
use crate::sql::write::{Insert, InsertMode, Write};

/// `INSERT INTO|OVERWRITE [TABLE] t [PARTITION (…)] [(a, b)] [BY NAME] [REPLACE WHERE …] query`.
pub(super) fn insert(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    let mut mode = match parser.parse_one_of_keywords(&[Keyword::INTO, Keyword::OVERWRITE]) {
        Some(Keyword::INTO) => InsertMode::Append,
        Some(_) => InsertMode::Overwrite,
        None => return expected("INTO or OVERWRITE", parser),
    };
    let _ = parser.parse_keyword(Keyword::TABLE);
    refuse(parser, &[("DIRECTORY", "use COPY … TO"), ("FUNCTION", "")])?;
    let target = target(parser)?;
    let partition = match parser.parse_keyword(Keyword::PARTITION) {
        true => parenthesized(parser, partition)?,
        false => Vec::new(),
    };
    refuse(parser, &[("SETTINGS", "use SET"), ("IF", ""), ("AS", "a target of INSERT has no alias"), ("DEFAULT", "")])?;
    let columns = match parser.peek_token_ref().token == Token::LParen && !query_in_parens(parser) {
        true => parenthesized(parser, column)?,
        false => Vec::new(),
    };
    let by_name = parser.parse_keywords(&[Keyword::BY, Keyword::NAME]);
    if by_name && !columns.is_empty() {
        return Err(Error::invalid("INSERT takes a list of columns or BY NAME, not both"));
    }
    if word_ahead(parser, 0, "REPLACE") && word_ahead(parser, 1, "WHERE") {
        skip(parser, 2);
        if mode != InsertMode::Append || !partition.is_empty() {
            return Err(Error::invalid("REPLACE WHERE belongs to INSERT INTO without PARTITION"));
        }
        mode = InsertMode::ReplaceWhere(Box::new(expr(parser)?));
    }
    let query = parser.parse_query().map_err(syntax)?;
    Ok(Write::Insert(Box::new(Insert { target, columns, by_name, partition, mode, query })))
}

/// Whether the parenthesis that comes next opens a query.
fn query_in_parens(parser: &Parser<'_>) -> bool {
    let mut at = 0;
    while parser.peek_nth_token_ref(at).token == Token::LParen {
        at += 1;
    }
    ["SELECT", "WITH", "VALUES", "FROM"].into_iter().any(|it| word_ahead(parser, at, it))
}

/// `p = 'x'` or `p`.
fn partition(parser: &mut Parser<'_>) -> Result<(String, Option<Expr>)> {
    let column = column(parser)?;
    let value = parser.consume_token(&Token::Eq).then(|| expr(parser)).transpose()?;
    Ok((column, value))
}
