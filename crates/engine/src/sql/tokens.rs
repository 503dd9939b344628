//! From text to the tokens of each statement, with every way to name a version in one form.
//!
//! 1. Text longer than [`MAX_SCRIPT_BYTES`], or with a NUL, is refused before a token is made.
//! 2. The script is cut at `;`. A statement longer than [`MAX_STATEMENT_BYTES`], or with an operator chain longer than
//!    [`MAX_CHAIN`], is refused: both become trees that are walked, and freed, recursively.
//! 3. Forms that sqlparser does not know become forms it does:
//!
//! | written | becomes |
//! |---|---|
//! | `[FOR] VERSION AS OF v`, `FOR SYSTEM_VERSION AS OF v`, `t AS OF VERSION v` | `AT (VERSION => v)` |
//! | `[FOR] TIMESTAMP AS OF e`, `FOR SYSTEM_TIME AS OF e`, `t AS OF TIMESTAMP e` | `TIMESTAMP AS OF e` |
//! | `t /*+ OPTIONS('k'='v') */` | `AT (OPTIONS => 'k\u{1f}v…')` |
//!
//! `t@v3` stays: it is one name for the tokenizer, and whether `@` splits it is decided where names are resolved.
use lakebed_core::{Error, ErrorKind, Result};
use sqlparser::{
    ast::Value,
    keywords::Keyword,
    tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Whitespace},
};

use super::dialect::Lake;

/// Of a whole script.
pub const MAX_SCRIPT_BYTES: usize = 8 << 20;
/// Of one statement.
pub const MAX_STATEMENT_BYTES: usize = 1 << 20;
/// Operators in a row on one level of parentheses.
pub const MAX_CHAIN: usize = 512;

/// The tokens of one statement, without white space; hints are kept as comments.
#[derive(Debug)]
pub(crate) struct Sentence {
    pub(crate) tokens: Vec<TokenWithSpan>,
    pub(crate) text: String,
}

/// Cuts a script into statements and brings each into canonical form. Empty statements vanish.
pub(crate) fn sentences(sql: &str) -> Result<Vec<Sentence>> {
    let mut sentences = Vec::new();
    for tokens in split(tokenize(sql)?) {
        let text = text_of(&tokens);
        if text.len() > MAX_STATEMENT_BYTES {
            return Err(too_long("statement", text.len(), MAX_STATEMENT_BYTES));
        }
        check_chains(&tokens)?;
        sentences.push(Sentence { tokens: canonical(tokens)?, text });
    }
    Ok(sentences)
}

/// Canonical tokens of a piece of SQL that is not a statement: a filter given as text.
pub(crate) fn fragment(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens: Vec<_> = tokenize(sql)?.into_iter().filter(significant).collect();
    check_chains(&tokens)?;
    Ok(tokens)
}

fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>> {
    if sql.len() > MAX_SCRIPT_BYTES {
        return Err(too_long("script", sql.len(), MAX_SCRIPT_BYTES));
    }
    if let Some(at) = sql.bytes().position(|it| it == 0) {
        return Err(Error::invalid(format!("the SQL text has a NUL character at byte {at}")));
    }
    Tokenizer::new(&Lake, sql).tokenize_with_location().map_err(|it| Error::new(ErrorKind::Invalid, it))
}

fn too_long(what: &str, bytes: usize, most: usize) -> Error {
    let message = format!("the {what} is {bytes} bytes long; at most {most} are taken");
    Error::new(ErrorKind::Limit, message).with_hint("split it, or keep long lists in a table")
}

fn split(tokens: Vec<TokenWithSpan>) -> Vec<Vec<TokenWithSpan>> {
    let mut statements = vec![Vec::new()];
    for token in tokens.into_iter().filter(significant) {
        match token.token {
            Token::SemiColon => statements.push(Vec::new()),
            _ => statements.last_mut().expect("starts with one").push(token),
        }
    }
    statements.retain(|it| it.iter().any(|token| hint(&token.token).is_none()));
    statements
}

fn significant(token: &TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_)) || hint(&token.token).is_some()
}

/// The text of an optimizer hint: a comment that starts with `+`.
fn hint(token: &Token) -> Option<&str> {
    match token {
        Token::Whitespace(Whitespace::MultiLineComment(text)) => text.strip_prefix('+'),
        _ => None,
    }
}

fn text_of(tokens: &[TokenWithSpan]) -> String {
    let mut text = String::new();
    let mut end = None;
    for token in tokens {
        if end.is_some_and(|it| it != token.span.start) {
            text.push(' ');
        }
        text.push_str(&token.token.to_string());
        end = Some(token.span.end);
    }
    text
}

/// Operators in a row on one level of parentheses; each kind makes a tree of its own depth.
#[derive(Default)]
struct Chain {
    /// `UNION` and its kin, and joins. A comma does not end these.
    sets: usize,
    /// `AND`, `OR`.
    logical: usize,
    other: usize,
}

/// Refuses chains such as `1 + 1 + …` or `SELECT 1 UNION SELECT 1 …` whose trees are as deep as they are long.
fn check_chains(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut levels = vec![Chain::default()];
    for token in tokens {
        match &token.token {
            Token::LParen => levels.push(Chain::default()),
            Token::RParen if levels.len() > 1 => drop(levels.pop()),
            other => link(levels.last_mut().expect("never empty"), other),
        }
        let chain = levels.last().expect("never empty");
        if chain.sets.max(chain.logical).max(chain.other) > MAX_CHAIN {
            let message = format!("an expression of more than {MAX_CHAIN} operators in a row");
            return Err(Error::new(ErrorKind::Limit, message).with_hint("use IN (…), or join with a table of values"));
        }
    }
    Ok(())
}

fn link(chain: &mut Chain, token: &Token) {
    match token {
        Token::Comma => *chain = Chain { sets: chain.sets, ..Chain::default() },
        Token::Word(word) => match word.keyword {
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS | Keyword::JOIN => {
                *chain = Chain { sets: chain.sets + 1, ..Chain::default() };
            }
            Keyword::AND | Keyword::OR | Keyword::XOR => {
                *chain = Chain { sets: chain.sets, logical: chain.logical + 1, other: 0 };
            }
            Keyword::NOT
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::IN
            | Keyword::BETWEEN
            | Keyword::CASE
            | Keyword::COLLATE => chain.other += 1,
            _ => (),
        },
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::Period
        | Token::EOF
        | Token::RParen
        | Token::Whitespace(_) => (),
        _ => chain.other += 1,
    }
}

/// Rewrites the forms of the table above.
fn canonical(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some(first) = rest.first() {
        if let Some(text) = hint(&first.token) {
            take_hint(first, text, &mut out)?;
            rest = &rest[1..];
            continue;
        }
        match version_clause(rest, out.last()) {
            Some((Clause::Time, length)) => {
                out.extend(words(&["TIMESTAMP", "AS", "OF"], first.span));
                rest = &rest[length..];
            }
            Some((Clause::Version, length)) => {
                rest = &rest[length..];
                let operand = operand(rest);
                out.extend(words(&["AT"], first.span));
                out.push(at(Token::LParen, first.span));
                out.extend(words(&["VERSION"], first.span));
                out.push(at(Token::RArrow, first.span));
                out.extend_from_slice(&rest[..operand]);
                out.push(at(Token::RParen, first.span));
                rest = &rest[operand..];
            }
            None => {
                out.push(first.clone());
                rest = &rest[1..];
            }
        }
    }
    Ok(out)
}

enum Clause {
    Version,
    Time,
}

/// The version clause that starts here, and how many tokens its keywords are.
fn version_clause(tokens: &[TokenWithSpan], before: Option<&TokenWithSpan>) -> Option<(Clause, usize)> {
    let table = before.is_some_and(ends_a_table);
    let forms = [
        (["FOR", "VERSION", "AS", "OF"].as_slice(), Clause::Version),
        (&["FOR", "SYSTEM_VERSION", "AS", "OF"], Clause::Version),
        (&["FOR", "TIMESTAMP", "AS", "OF"], Clause::Time),
        (&["FOR", "SYSTEM_TIME", "AS", "OF"], Clause::Time),
        (&["VERSION", "AS", "OF"], Clause::Version),
        (&["SYSTEM_VERSION", "AS", "OF"], Clause::Version),
        (&["TIMESTAMP", "AS", "OF"], Clause::Time),
        (&["AS", "OF", "VERSION"], Clause::Version),
        (&["AS", "OF", "TIMESTAMP"], Clause::Time),
    ];
    let (keywords, clause) = forms.into_iter().find(|(words, _)| table && starts_with(tokens, words))?;
    let has_operand = tokens.get(keywords.len()).is_some();
    has_operand.then_some((clause, keywords.len()))
}

fn starts_with(tokens: &[TokenWithSpan], words: &[&str]) -> bool {
    tokens.len() >= words.len() && words.iter().zip(tokens).all(|(word, token)| is_word(&token.token, word))
}

pub(crate) fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

/// Whether a table reference may end with this token: `SELECT version AS of` is not a version clause.
fn ends_a_table(token: &TokenWithSpan) -> bool {
    match &token.token {
        Token::Word(word) => word.quote_style.is_some() || !NEVER_A_TABLE.contains(&word.keyword),
        Token::SingleQuotedString(_) | Token::RParen => true,
        _ => false,
    }
}

const NEVER_A_TABLE: &[Keyword] = &[
    Keyword::SELECT,
    Keyword::DISTINCT,
    Keyword::ALL,
    Keyword::WHERE,
    Keyword::AND,
    Keyword::OR,
    Keyword::NOT,
    Keyword::ON,
    Keyword::BY,
    Keyword::HAVING,
    Keyword::CASE,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::FROM,
    Keyword::JOIN,
    Keyword::AS,
];

/// How many tokens the version takes: a number or string with its sign, or a group in parentheses.
fn operand(tokens: &[TokenWithSpan]) -> usize {
    match tokens.first().map(|it| &it.token) {
        Some(Token::Minus | Token::Plus) => 1 + operand(&tokens[1..]).min(1),
        Some(Token::LParen) => {
            let mut depth = 0_usize;
            for (index, token) in tokens.iter().enumerate() {
                match token.token {
                    Token::LParen => depth += 1,
                    Token::RParen => depth -= 1,
                    _ => (),
                }
                if depth == 0 {
                    return index + 1;
                }
            }
            tokens.len()
        }
        Some(_) => 1,
        None => 0,
    }
}

/// A hint after SELECT stays for the parser, one after a table becomes `AT (OPTIONS => …)`; others have no meaning.
fn take_hint(token: &TokenWithSpan, text: &str, out: &mut Vec<TokenWithSpan>) -> Result<()> {
    let before = out.last();
    if before.is_some_and(|it| is_word(&it.token, "SELECT")) {
        out.push(token.clone());
        return Ok(());
    }
    if !before.is_some_and(ends_a_table) {
        return Err(Error::invalid(format!("the hint /*+{text}*/ belongs after a table's name")));
    }
    let options = options(text)?;
    out.extend(words(&["AT"], token.span));
    out.push(at(Token::LParen, token.span));
    out.extend(words(&["OPTIONS"], token.span));
    out.push(at(Token::RArrow, token.span));
    out.push(at(Token::SingleQuotedString(options), token.span));
    out.push(at(Token::RParen, token.span));
    Ok(())
}

/// `OPTIONS('k'='v', …)` as `k\u{1f}v\u{1e}…`: separators that survive as one string literal.
fn options(text: &str) -> Result<String> {
    let wrong = || Error::invalid(format!("the hint /*+{text}*/ is not OPTIONS('key'='value', …)"));
    let tokens: Vec<_> = tokenize(text)?.into_iter().filter(significant).map(|it| it.token).collect();
    let inner = match tokens.as_slice() {
        [name, Token::LParen, inner @ .., Token::RParen] if is_word(name, "OPTIONS") => inner,
        _ => return Err(wrong()),
    };
    let mut pairs = Vec::new();
    for pair in inner.split(|it| *it == Token::Comma) {
        match pair {
            [Token::SingleQuotedString(key), Token::Eq, Token::SingleQuotedString(value)] => {
                pairs.push(format!("{key}\u{1f}{value}"));
            }
            _ => return Err(wrong()),
        }
    }
    Ok(pairs.join("\u{1e}"))
}

/// Takes apart what [`options`] made.
pub(crate) fn option_pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('\u{1e}').filter_map(|it| it.split_once('\u{1f}'))
}

fn words<'a>(texts: &'a [&'a str], span: Span) -> impl Iterator<Item = TokenWithSpan> + 'a {
    texts.iter().map(move |it| at(Token::make_keyword(it), span))
}

fn at(token: Token, span: Span) -> TokenWithSpan {
    TokenWithSpan { token, span }
}

/// A string literal's text.
pub(crate) fn string_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
            Some(text)
        }
        Value::DollarQuotedString(text) => Some(&text.value),
        _ => None,
    }
}
