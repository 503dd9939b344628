//! From a script to [`Statement`]s.
//!
//! The first words decide. Queries go to sqlparser as a whole. Statements that it lacks, or reads otherwise than the
//! dialects of lake tables do, have small parsers here over its parts: all that write among them ([`write`]). Those that
//! this build does not have are known by their first words and named, so that they are refused before anything is
//! touched.
use lakebed_core::{Error, ErrorKind, Result};
use sqlparser::{
    ast::{FormatClause, Ident, ObjectName, ObjectNamePart, Query, TableFactor},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::{Token, TokenWithSpan},
};

use crate::stack::with_room;

use super::{
    dialect::Lake,
    statement::{Ask, Kind, Rows, Statement},
    tokens::{Sentence, fragment, is_word, sentences},
    write::Write,
};

mod alter;
mod create;
mod dml;
mod insert;
pub(crate) mod types;
mod upkeep;
mod write;

/// How deep expressions and queries may nest.
pub const MAX_DEPTH: usize = 128;

/// Parses a script of statements separated by `;`.
///
/// # Errors
/// [`ErrorKind::Invalid`] with the place of the mistake; [`ErrorKind::Limit`] for text that is too long or nests too
/// deep.
pub fn parse(sql: &str) -> Result<Vec<Statement>> {
    with_room(|| sentences(sql)?.into_iter().map(statement).collect())
}

/// Parses a boolean or scalar expression that stands alone.
pub(crate) fn expression(sql: &str) -> Result<sqlparser::ast::Expr> {
    let mut parser = parser(fragment(sql)?);
    let expr = parser.parse_expr().map_err(syntax)?;
    end(&mut parser)?;
    Ok(expr)
}

/// Parses text of our own making.
pub(crate) fn own_query(sql: &str) -> Result<Box<Query>> {
    let mut parser = parser(fragment(sql)?);
    let query = parser.parse_query().map_err(syntax)?;
    end(&mut parser)?;
    Ok(query)
}

fn statement(sentence: Sentence) -> Result<Statement> {
    let kind = kind(sentence.tokens)?;
    Ok(Statement::new(kind, sentence.text))
}

pub(super) fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&Lake).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(tokens)
}

fn kind(tokens: Vec<TokenWithSpan>) -> Result<Kind> {
    let refused = writing(&tokens);
    let mut parser = parser(tokens);
    match (write::statement(&mut parser), &refused) {
        (Ok(Some(write)), _) => return Ok(Kind::Write(Box::new(write))),
        (Ok(None), _) => (),
        (Err(err), Some(verb)) if err.kind() == ErrorKind::Unsupported => return Err(err.with_subject(verb)),
        (Err(err), _) => return Err(err),
    }
    if let Some(verb) = refused {
        return Ok(Kind::Write(Box::new(Write::Refused { verb })));
    }
    let kind = head(&mut parser)?;
    // Of a statement that is refused, only the first words are read.
    if !matches!(kind, Kind::Write(_)) {
        end(&mut parser)?;
    }
    Ok(kind)
}

fn head(parser: &mut Parser<'_>) -> Result<Kind> {
    if parser.parse_keyword(Keyword::EXPLAIN) {
        return explain(parser);
    }
    if parser.parse_keyword(Keyword::SET) {
        return set(parser);
    }
    if parser.parse_keyword(Keyword::RESET) {
        let all = parser.parse_keyword(Keyword::ALL);
        return Ok(Kind::Reset(if all { None } else { Some(variable(parser)?) }));
    }
    if parser.parse_keyword(Keyword::USE) {
        let _ = parser.parse_one_of_keywords(&[Keyword::SCHEMA, Keyword::DATABASE, Keyword::CATALOG]);
        return Ok(Kind::Use(parser.parse_object_name(false).map_err(syntax)?));
    }
    if word_ahead(parser, 0, "CREATE") {
        return create_view(parser);
    }
    if parser.parse_keywords(&[Keyword::DROP, Keyword::VIEW]) {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        return Ok(Kind::DropView { if_exists, name: parser.parse_object_name(false).map_err(syntax)? });
    }
    rows(parser).map(Kind::Rows)
}

fn rows(parser: &mut Parser<'_>) -> Result<Rows> {
    let mut format = None;
    let ask = if parser.parse_keyword(Keyword::DESCRIBE) || parser.parse_keyword(Keyword::DESC) {
        describe(parser)?
    } else if parser.parse_keyword(Keyword::SHOW) {
        show(parser)?
    } else {
        let mut query = parser.parse_query().map_err(syntax)?;
        format = take_format(&mut query)?;
        Ask::Query(query)
    };
    if format.is_none() && parser.parse_keyword(Keyword::FORMAT) {
        format = Some(parser.parse_identifier().map_err(syntax)?.value);
    }
    Ok(Rows { ask, format })
}

fn take_format(query: &mut Query) -> Result<Option<String>> {
    match query.format_clause.take() {
        Some(FormatClause::Identifier(name)) => Ok(Some(name.value)),
        Some(FormatClause::Null) => Err(Error::unsupported("FORMAT NULL: this build prints every result")),
        None => Ok(None),
    }
}

fn explain(parser: &mut Parser<'_>) -> Result<Kind> {
    let analyze = parser.parse_keyword(Keyword::ANALYZE);
    let verbose = parser.parse_keyword(Keyword::VERBOSE);
    if word_ahead(parser, 0, "PLAN") && word_ahead(parser, 1, "FOR") {
        let _ = (parser.next_token(), parser.next_token());
    }
    if let Some(verb) = writing(&ahead(parser, 6)) {
        return Ok(Kind::Write(Box::new(Write::Refused { verb: format!("EXPLAIN {verb}") })));
    }
    if ["SET", "RESET", "USE", "CREATE", "DROP", "EXPLAIN"].into_iter().any(|it| word_ahead(parser, 0, it)) {
        return Err(Error::invalid("EXPLAIN takes a statement that answers with rows"));
    }
    Ok(Kind::Explain { analyze, verbose, rows: rows(parser)? })
}

fn describe(parser: &mut Parser<'_>) -> Result<Ask> {
    for (word, name) in [("HISTORY", "history"), ("DETAIL", "detail")] {
        // `DESCRIBE history` alone describes a table of that name.
        if word_ahead(parser, 0, word) && !matches!(parser.peek_nth_token_ref(1).token, Token::EOF | Token::Period) {
            let _ = parser.next_token();
            return Ok(Ask::System { table: target(parser)?, name });
        }
    }
    if ["SELECT", "WITH", "VALUES", "FROM"].into_iter().any(|it| word_ahead(parser, 0, it)) {
        return Ok(Ask::ColumnsOf(parser.parse_query().map_err(syntax)?));
    }
    let _ = parser.parse_one_of_keywords(&[Keyword::EXTENDED, Keyword::FORMATTED]);
    let _ = parser.parse_keyword(Keyword::TABLE);
    Ok(Ask::Columns(target(parser)?))
}

fn show(parser: &mut Parser<'_>) -> Result<Ask> {
    if parser.parse_keywords(&[Keyword::CREATE, Keyword::TABLE]) {
        return Ok(Ask::System { table: target(parser)?, name: "ddl" });
    }
    if parser.parse_keyword(Keyword::TABLES) {
        let (within, like) = within_like(parser)?;
        return Ok(Ask::ShowTables { within, like });
    }
    if parser.parse_one_of_keywords(&[Keyword::SCHEMAS, Keyword::DATABASES]).is_some() || eat(parser, "NAMESPACES") {
        let (within, like) = within_like(parser)?;
        return Ok(Ask::ShowSchemas { within, like });
    }
    if eat(parser, "CATALOGS") {
        return Ok(Ask::ShowCatalogs);
    }
    if parser.parse_keyword(Keyword::FUNCTIONS) {
        return Ok(Ask::ShowFunctions { like: like(parser)? });
    }
    if parser.parse_keyword(Keyword::COLUMNS) {
        let _ = parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]);
        return Ok(Ask::Columns(target(parser)?));
    }
    for (word, name) in
        [("PARTITIONS", "partitions"), ("TBLPROPERTIES", "properties"), ("REFS", "refs"), ("TAGS", "refs")]
    {
        if eat(parser, word) {
            let _ = parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]);
            return Ok(Ask::System { table: target(parser)?, name });
        }
    }
    if parser.parse_keyword(Keyword::ALL) {
        return Ok(Ask::ShowVariable(None));
    }
    Ok(Ask::ShowVariable(Some(variable(parser)?)))
}

fn within_like(parser: &mut Parser<'_>) -> Result<(Option<ObjectName>, Option<String>)> {
    let within = match parser.parse_one_of_keywords(&[Keyword::IN, Keyword::FROM]) {
        Some(_) => Some(parser.parse_object_name(false).map_err(syntax)?),
        None => None,
    };
    Ok((within, like(parser)?))
}

fn like(parser: &mut Parser<'_>) -> Result<Option<String>> {
    match parser.parse_keyword(Keyword::LIKE) {
        true => parser.parse_literal_string().map(Some).map_err(syntax),
        false => Ok(None),
    }
}

/// A table or table function, with its version, without an alias.
fn target(parser: &mut Parser<'_>) -> Result<Box<TableFactor>> {
    let factor = parser.parse_table_factor().map_err(syntax)?;
    match &factor {
        TableFactor::Table { alias: None, .. } => Ok(Box::new(factor)),
        other => Err(Error::invalid(format!("expected a table or a table function, found `{other}`"))),
    }
}

/// `SET name = value`, `SET name TO value`, `SET TIME ZONE 'value'`.
fn set(parser: &mut Parser<'_>) -> Result<Kind> {
    if parser.parse_keywords(&[Keyword::TIME, Keyword::ZONE]) {
        return Ok(Kind::Set { name: "lakebed.time_zone".to_owned(), value: setting_value(parser)? });
    }
    let name = variable(parser)?;
    if !parser.consume_token(&Token::Eq) && !parser.parse_keyword(Keyword::TO) {
        return expected("= or TO", parser);
    }
    Ok(Kind::Set { name, value: setting_value(parser)? })
}

fn setting_value(parser: &mut Parser<'_>) -> Result<String> {
    let mut value = String::new();
    loop {
        match parser.next_token().token {
            Token::EOF => break,
            Token::SingleQuotedString(text) => value.push_str(&text),
            Token::Word(word) => value.push_str(&word.value),
            other => value.push_str(&other.to_string()),
        }
    }
    match value.is_empty() {
        true => expected("a value", parser),
        false => Ok(value),
    }
}

/// A variable's dotted name, in lower case.
fn variable(parser: &mut Parser<'_>) -> Result<String> {
    let name = parser.parse_object_name(false).map_err(syntax)?;
    Ok(plain(&name).join(".").to_lowercase())
}

fn create_view(parser: &mut Parser<'_>) -> Result<Kind> {
    let _ = parser.next_token();
    let replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    if parser.parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY]).is_none() {
        return expected("TEMPORARY VIEW", parser);
    }
    parser.expect_keyword_is(Keyword::VIEW).map_err(syntax)?;
    let name = parser.parse_object_name(false).map_err(syntax)?;
    parser.expect_keyword_is(Keyword::AS).map_err(syntax)?;
    let query = parser.parse_query().map_err(syntax)?;
    Ok(Kind::CreateView { name, replace, query })
}

/// The parts of a name as written, without quotes.
pub(crate) fn plain(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .map(|it| match it {
            ObjectNamePart::Identifier(ident) => ident.value.clone(),
            ObjectNamePart::Function(function) => function.to_string(),
        })
        .collect()
}

/// A name that keeps its spelling whatever it holds.
pub(crate) fn quoted(text: &str) -> Ident {
    Ident::with_quote('"', text)
}

/// The name of a statement that writes, by its first words.
fn writing(tokens: &[TokenWithSpan]) -> Option<String> {
    let words: Vec<String> = tokens.iter().take(6).map(|it| bare(&it.token)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let verb = match words.as_slice() {
        ["CREATE", rest @ ..] => {
            let replace = rest.starts_with(&["OR", "REPLACE"]);
            let what = if replace { &rest[2..] } else { rest };
            match what {
                ["TEMP" | "TEMPORARY", "VIEW", ..] => return None,
                ["EXTERNAL" | "TEMP" | "TEMPORARY" | "UNIQUE" | "MATERIALIZED" | "GLOBAL", kind, ..] => {
                    format!("CREATE {} {kind}", what[0])
                }
                [kind, ..] => format!("CREATE {kind}"),
                [] => return None,
            }
        }
        ["DROP", "VIEW", ..] => return None,
        ["INSERT", how @ ("INTO" | "OVERWRITE"), ..] => format!("INSERT {how}"),
        ["DELETE", "FROM", ..] | ["REPLACE", "INTO", ..] | ["MERGE", "INTO", ..] | ["COPY", "INTO", ..] => {
            words[..2].join(" ")
        }
        [
            "DROP" | "ALTER" | "TRUNCATE" | "RESTORE" | "UNDROP" | "MSCK" | "REPAIR" | "CONVERT" | "ANALYZE",
            what,
            ..,
        ] => {
            format!("{} {what}", words[0])
        }
        ["REFRESH" | "CACHE" | "UNCACHE" | "CLEAR" | "COMMENT" | "LOCK" | "UNLOCK", ..] => words[0].to_owned(),
        // A table may be called `update`: only FROM-first queries and names start otherwise, and those are no statements.
        [
            verb @ ("INSERT" | "UPDATE" | "DELETE" | "MERGE" | "VACUUM" | "OPTIMIZE" | "CALL" | "EXEC" | "EXECUTE"
            | "GENERATE" | "COPY" | "EXPORT" | "IMPORT" | "GRANT" | "REVOKE" | "ATTACH" | "DETACH" | "INSTALL"
            | "LOAD" | "PREPARE" | "DEALLOCATE" | "DECLARE" | "BEGIN" | "START" | "COMMIT" | "ROLLBACK"
            | "SAVEPOINT" | "KILL" | "PURGE" | "REORG" | "RENAME" | "UNLOAD" | "REINDEX" | "CLUSTER"),
            ..,
        ] => (*verb).to_owned(),
        _ => return None,
    };
    Some(verb)
}

fn bare(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        other => other.to_string(),
    }
}

fn ahead(parser: &Parser<'_>, count: usize) -> Vec<TokenWithSpan> {
    (0..count).map(|it| parser.peek_nth_token_ref(it).clone()).collect()
}

fn word_ahead(parser: &Parser<'_>, n: usize, text: &str) -> bool {
    is_word(&parser.peek_nth_token_ref(n).token, text)
}

fn eat(parser: &mut Parser<'_>, text: &str) -> bool {
    let there = word_ahead(parser, 0, text);
    if there {
        let _ = parser.next_token();
    }
    there
}

pub(super) fn end(parser: &mut Parser<'_>) -> Result<()> {
    match parser.peek_token_ref().token {
        Token::EOF => Ok(()),
        _ if word_ahead(parser, 0, "FINAL") => {
            let error = Error::unsupported("FINAL after a table is not supported");
            Err(error.with_hint("leave it out: the rows of a version are final"))
        }
        _ => expected("end of statement", parser),
    }
}

fn expected<T>(what: &str, parser: &Parser<'_>) -> Result<T> {
    let found = parser.peek_token_ref();
    Err(Error::invalid(format!("expected {what}, found {}{}", found.token, found.span.start)))
}

/// sqlparser's errors say what was expected and where; a depth limit is a limit.
pub(crate) fn syntax(err: ParserError) -> Error {
    match err {
        ParserError::RecursionLimitExceeded => {
            Error::new(ErrorKind::Limit, format!("the statement nests deeper than {MAX_DEPTH} levels"))
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => Error::invalid(message),
    }
}
