//! `ALTER TABLE`.
use std::sync::Arc;

use lakebed_core::{Error, Result};
use sqlparser::{keywords::Keyword, parser::Parser, tokenizer::Token};

use super::{
    create::{constraint, refuse_column_options},
    eat, expected, syntax,
    types::{self, string},
    word_ahead,
    write::{column, parenthesized, path, properties, property_key, refuse, skip, target, unsupported},
};
use crate::sql::write::{Alteration, ColumnChange, ColumnPlace, NewColumn, Write};

pub(super) fn table(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 2);
    let table = target(parser)?;
    let change = Box::new(change(parser)?);
    if parser.peek_token_ref().token == Token::Comma {
        return Err(unsupported("several changes in one statement", "write one statement each"));
    }
    Ok(Write::Alter { table, change })
}

fn change(parser: &mut Parser<'_>) -> Result<Alteration> {
    if eat(parser, "ADD") {
        return add(parser);
    }
    if eat(parser, "DROP") {
        return drop(parser);
    }
    if eat(parser, "RENAME") {
        return rename(parser);
    }
    if eat(parser, "SET") {
        return set(parser);
    }
    if eat(parser, "UNSET") {
        if !eat(parser, "TBLPROPERTIES") {
            return expected("TBLPROPERTIES", parser);
        }
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        return Ok(Alteration::UnsetProperties { keys: parenthesized(parser, property_key)?, if_exists });
    }
    if eat(parser, "ALTER")
        || (word_ahead(parser, 0, "CHANGE") && word_ahead(parser, 1, "COLUMN") && eat(parser, "CHANGE"))
    {
        let _ = eat(parser, "COLUMN");
        let column = path(parser)?;
        return Ok(Alteration::AlterColumn { change: column_change(parser, &column)?, column });
    }
    let words = (0..2).map(|at| super::bare(&parser.peek_nth_token_ref(at).token));
    let words: Vec<String> = words.filter(|it| it.starts_with(char::is_alphabetic)).collect();
    match words.is_empty() {
        true => expected("ADD, DROP, RENAME, ALTER, SET or UNSET", parser),
        false => Err(unsupported(&words.join(" "), "")),
    }
}

fn add(parser: &mut Parser<'_>) -> Result<Alteration> {
    refuse(
        parser,
        &[("PARTITION", "partitions come with their rows"), ("PRIMARY", ""), ("UNIQUE", ""), ("FOREIGN", "")],
    )?;
    if eat(parser, "CONSTRAINT") {
        let name = column(parser)?;
        return Ok(Alteration::AddConstraint { name, expression: constraint(parser)? });
    }
    if eat(parser, "FEATURE") {
        let name = match parser.peek_token_ref().token {
            Token::SingleQuotedString(_) => string(parser, "a feature")?,
            _ => column(parser)?,
        };
        return Ok(Alteration::AddFeature(name));
    }
    if !eat(parser, "COLUMN") && !eat(parser, "COLUMNS") {
        return expected("COLUMN, COLUMNS, CONSTRAINT or FEATURE", parser);
    }
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let columns = match parser.peek_token_ref().token {
        Token::LParen => parenthesized(parser, new_column)?,
        _ => comma_separated(parser, new_column)?,
    };
    Ok(Alteration::AddColumns { columns, if_not_exists })
}

fn comma_separated<T>(parser: &mut Parser<'_>, each: fn(&mut Parser<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut all = vec![each(parser)?];
    while parser.consume_token(&Token::Comma) {
        all.push(each(parser)?);
    }
    Ok(all)
}

fn new_column(parser: &mut Parser<'_>) -> Result<NewColumn> {
    let path = path(parser)?;
    let name = path.last().map(String::as_str).unwrap_or_default();
    let field = types::field(parser, name)?;
    let field = types::constraints(parser, field)?;
    refuse_column_options(parser, name)?;
    let place = place(parser)?;
    Ok(NewColumn { field: Arc::new(field), path, place })
}

fn place(parser: &mut Parser<'_>) -> Result<Option<ColumnPlace>> {
    if eat(parser, "FIRST") {
        return Ok(Some(ColumnPlace::First));
    }
    match eat(parser, "AFTER") {
        true => Ok(Some(ColumnPlace::After(column(parser)?))),
        false => Ok(None),
    }
}

fn drop(parser: &mut Parser<'_>) -> Result<Alteration> {
    refuse(parser, &[("PARTITION", "use DELETE FROM … WHERE"), ("FEATURE", ""), ("PRIMARY", "")])?;
    if eat(parser, "CONSTRAINT") {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        return Ok(Alteration::DropConstraint { name: column(parser)?, if_exists });
    }
    if !eat(parser, "COLUMN") && !eat(parser, "COLUMNS") {
        return expected("COLUMN, COLUMNS or CONSTRAINT", parser);
    }
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let columns = match parser.peek_token_ref().token {
        Token::LParen => parenthesized(parser, path)?,
        _ => comma_separated(parser, path)?,
    };
    Ok(Alteration::DropColumns { columns, if_exists })
}

fn rename(parser: &mut Parser<'_>) -> Result<Alteration> {
    if eat(parser, "TO") {
        return Ok(Alteration::RenameTo(target(parser)?));
    }
    parser.expect_keyword_is(Keyword::COLUMN).map_err(syntax)?;
    let from = path(parser)?;
    parser.expect_keyword_is(Keyword::TO).map_err(syntax)?;
    Ok(Alteration::RenameColumn { from, to: column(parser)? })
}

fn set(parser: &mut Parser<'_>) -> Result<Alteration> {
    refuse(parser, &[("LOCATION", "a table is where its files are"), ("SERDE", ""), ("SERDEPROPERTIES", "")])?;
    if !eat(parser, "TBLPROPERTIES") && parser.peek_token_ref().token != Token::LParen {
        return expected("TBLPROPERTIES", parser);
    }
    Ok(Alteration::SetProperties(properties(parser)?))
}

fn column_change(parser: &mut Parser<'_>, of: &[String]) -> Result<ColumnChange> {
    let name = of.last().map(String::as_str).unwrap_or_default();
    if eat(parser, "COMMENT") {
        return Ok(ColumnChange::Comment(string(parser, "a comment")?));
    }
    if eat(parser, "TYPE") {
        return Ok(ColumnChange::Type(Arc::new(types::field(parser, name)?)));
    }
    if parser.parse_keywords(&[Keyword::SET, Keyword::NOT, Keyword::NULL]) {
        return Ok(ColumnChange::SetNotNull);
    }
    if parser.parse_keywords(&[Keyword::DROP, Keyword::NOT, Keyword::NULL]) {
        return Ok(ColumnChange::DropNotNull);
    }
    if parser.parse_keywords(&[Keyword::SET, Keyword::DATA, Keyword::TYPE]) {
        return Ok(ColumnChange::Type(Arc::new(types::field(parser, name)?)));
    }
    if let Some(place) = place(parser)? {
        return Ok(ColumnChange::Place(place));
    }
    for (first, second) in [("SET", "DEFAULT"), ("DROP", "DEFAULT"), ("SET", "MASK"), ("SYNC", "IDENTITY")] {
        if word_ahead(parser, 0, first) && word_ahead(parser, 1, second) {
            return Err(unsupported(&format!("ALTER COLUMN … {first} {second}"), ""));
        }
    }
    match parser.peek_token_ref().token {
        Token::Word(_) => Err(Error::invalid(format!("ALTER COLUMN {}: what becomes of it?", of.join(".")))
            .with_hint("COMMENT '…', TYPE …, SET NOT NULL, DROP NOT NULL, FIRST or AFTER …")),
        _ => expected("COMMENT, TYPE, SET NOT NULL, DROP NOT NULL, FIRST or AFTER", parser),
    }
}
