//! Statements that write: which one it is, and the parts that several of them share.
//!
//! Each clause is read into a field of [`Write`], or is an error by its name. The statements that this build does not
//! have are known by their first words, so that they are refused before anything is touched.
use std::collections::BTreeMap;

use lakebed_core::{Error, Result};
use sqlparser::{
    ast::{Expr, ObjectName},
    keywords::Keyword,
    parser::Parser,
    tokenizer::Token,
};

use super::{alter, create, dml, end, expected, insert, syntax, types::string, upkeep, word_ahead};
use crate::sql::write::{Alteration, Target, Write};

const SCHEMA: [&str; 3] = ["SCHEMA", "DATABASE", "NAMESPACE"];

/// Parses a statement that writes; `None` for any other.
pub(super) fn statement(parser: &mut Parser<'_>) -> Result<Option<Write>> {
    let ahead = |words: &[&str]| words.iter().enumerate().all(|(at, it)| word_ahead(parser, at, it));
    let write = if ahead(&["INSERT"]) {
        insert::insert(parser)?
    } else if ahead(&["DELETE", "FROM"]) {
        dml::delete(parser)?
    } else if ahead(&["UPDATE"]) {
        dml::update(parser)?
    } else if ahead(&["MERGE"]) {
        dml::merge(parser)?
    } else if ahead(&["CREATE", "TABLE"])
        || ahead(&["CREATE", "OR", "REPLACE", "TABLE"])
        || ahead(&["REPLACE", "TABLE"])
    {
        create::table(parser)?
    } else if ahead(&["ALTER", "TABLE"]) {
        alter::table(parser)?
    } else if ahead(&["DROP", "TABLE"]) {
        drop(parser)?
    } else if ahead(&["TRUNCATE"]) {
        truncate(parser)?
    } else if ahead(&["OPTIMIZE"]) {
        upkeep::optimize(parser)?
    } else if ahead(&["VACUUM"]) {
        upkeep::vacuum(parser)?
    } else if ahead(&["RESTORE"]) {
        upkeep::restore(parser)?
    } else if ahead(&["CALL"]) {
        upkeep::call(parser)?
    } else if ahead(&["COMMENT", "ON"]) {
        comment(parser)?
    } else if SCHEMA.iter().any(|it| ahead(&["CREATE", it])) {
        skip(parser, 2);
        let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let name = path(parser)?;
        refuse(
            parser,
            &[("LOCATION", "a schema is a folder of its catalog"), ("MANAGED", ""), ("COMMENT", ""), ("WITH", "")],
        )?;
        Write::CreateSchema { name, if_not_exists }
    } else if SCHEMA.iter().any(|it| ahead(&["DROP", it])) {
        skip(parser, 2);
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = path(parser)?;
        refuse(parser, &[("CASCADE", "drop its tables first")])?;
        let _ = parser.parse_keyword(Keyword::RESTRICT);
        Write::DropSchema { name, if_exists }
    } else {
        return Ok(None);
    };
    end(parser)?;
    Ok(Some(write))
}

fn drop(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 2);
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let table = target(parser)?;
    refuse(parser, &[("PURGE", "leave it out: a dropped table's files are gone"), ("CASCADE", ""), ("RESTRICT", "")])?;
    Ok(Write::DropTable { table, if_exists })
}

fn truncate(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = target(parser)?;
    refuse(parser, &[("PARTITION", "use DELETE FROM … WHERE")])?;
    Ok(Write::Truncate { table })
}

/// `COMMENT ON TABLE t IS 'text' | NULL`.
fn comment(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 2);
    if !parser.parse_keyword(Keyword::TABLE) {
        let what = parser.peek_token_ref().to_string().to_uppercase();
        let error = Error::unsupported(format!("ON {what} is not supported"));
        return Err(error.with_hint("COMMENT ON TABLE …, or ALTER TABLE … ALTER COLUMN … COMMENT '…'"));
    }
    let table = target(parser)?;
    parser.expect_keyword_is(Keyword::IS).map_err(syntax)?;
    let text = if parser.parse_keyword(Keyword::NULL) { None } else { Some(string(parser, "a comment")?) };
    Ok(Write::Alter { table, change: Box::new(Alteration::Comment(text)) })
}

/// The table to write to: a plain name, without a version.
pub(super) fn target(parser: &mut Parser<'_>) -> Result<Target> {
    Ok(Target::named(&target_name(parser)?))
}

pub(super) fn target_name(parser: &mut Parser<'_>) -> Result<ObjectName> {
    let name = name(parser)?;
    let version = (word_ahead(parser, 0, "AT") && parser.peek_nth_token_ref(1).token == Token::LParen)
        || (word_ahead(parser, 0, "TIMESTAMP") && word_ahead(parser, 1, "AS"));
    match version {
        false => Ok(name),
        true => {
            Err(Error::invalid(format!("`{name}` names a version: a version never changes, a write makes a new one"))
                .with_hint("leave the version out"))
        }
    }
}

/// A table's name, perhaps with a version behind it.
pub(super) fn name(parser: &mut Parser<'_>) -> Result<ObjectName> {
    let name = parser.parse_object_name(false).map_err(syntax)?;
    if parser.peek_token_ref().token == Token::LParen
        && let Token::SingleQuotedString(path) = &parser.peek_nth_token_ref(1).token
    {
        let error = Error::invalid(format!("`{name}(…)` is a table function: nobody writes to it"));
        return Err(error.with_hint(format!("name the table: {name}.`{path}`")));
    }
    Ok(name)
}

/// A column's name, which is no string.
pub(super) fn column(parser: &mut Parser<'_>) -> Result<String> {
    match parser.peek_token_ref().token {
        Token::SingleQuotedString(_) => expected("a column's name", parser),
        _ => Ok(parser.parse_identifier().map_err(syntax)?.value),
    }
}

/// A column's name with fields behind it.
pub(super) fn path(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    let mut path = vec![column(parser)?];
    while parser.consume_token(&Token::Period) {
        path.push(column(parser)?);
    }
    Ok(path)
}

/// `(a, b)`; at least one.
pub(super) fn parenthesized<T>(
    parser: &mut Parser<'_>,
    mut each: impl FnMut(&mut Parser<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    parser.expect_token(&Token::LParen).map_err(syntax)?;
    let mut all = Vec::new();
    loop {
        all.push(each(parser)?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen).map_err(syntax)?;
    Ok(all)
}

/// `('k' = 'v', a.b = 3, 'c' 'd')`: keys are strings or dotted words, values literals. No key twice.
pub(super) fn properties(parser: &mut Parser<'_>) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (key, value) in parenthesized(parser, property)? {
        if all.insert(key.clone(), value).is_some() {
            return Err(Error::invalid(format!("property `{key}` is given twice")));
        }
    }
    Ok(all)
}

fn property(parser: &mut Parser<'_>) -> Result<(String, String)> {
    let key = property_key(parser)?;
    let _ = parser.consume_token(&Token::Eq);
    let negative = parser.consume_token(&Token::Minus);
    let value = match &parser.peek_token_ref().token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) if !negative => text.clone(),
        Token::Number(text, _) if negative => format!("-{text}"),
        Token::Number(text, _) => text.clone(),
        Token::Word(word) if !negative && ["true", "false"].contains(&word.value.to_lowercase().as_str()) => {
            word.value.to_lowercase()
        }
        _ => return expected(&format!("a value for property `{key}`, in single quotes"), parser),
    };
    skip(parser, 1);
    Ok((key, value))
}

pub(super) fn property_key(parser: &mut Parser<'_>) -> Result<String> {
    if let Token::SingleQuotedString(_) = parser.peek_token_ref().token {
        return string(parser, "a property");
    }
    let mut key = parser.parse_identifier().map_err(syntax)?.value;
    while parser.consume_token(&Token::Period) {
        key.push('.');
        key.push_str(&parser.parse_identifier().map_err(syntax)?.value);
    }
    Ok(key)
}

pub(super) fn expr(parser: &mut Parser<'_>) -> Result<Expr> {
    parser.parse_expr().map_err(syntax)
}

pub(super) fn skip(parser: &mut Parser<'_>, tokens: usize) {
    for _ in 0..tokens {
        let _ = parser.next_token();
    }
}

/// Refuses each of these words if it comes next; with what to do instead, if there is anything.
pub(super) fn refuse(parser: &Parser<'_>, words: &[(&str, &str)]) -> Result<()> {
    match words.iter().find(|it| word_ahead(parser, 0, it.0)) {
        None => Ok(()),
        Some((word, instead)) => Err(unsupported(word, instead)),
    }
}

pub(super) fn unsupported(clause: &str, instead: &str) -> Error {
    let error = Error::unsupported(format!("{clause} is not supported"));
    if instead.is_empty() { error } else { error.with_hint(instead) }
}

/// Reads a clause that may stand once.
pub(super) fn once<T>(slot: &mut Option<T>, clause: &str, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("{clause} is given twice"))),
    }
}
