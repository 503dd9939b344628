//! Column types, as the dialects of lake tables write them, in Arrow.
//!
//! | SQL | Arrow |
//! |---|---|
//! | `BOOLEAN`, `TINYINT`, `SMALLINT`, `INT`, `BIGINT`, `FLOAT`, `DOUBLE`, `DATE`, `STRING`, `BINARY` | the type of that width |
//! | `DECIMAL(p, s)`; `DECIMAL` is `DECIMAL(10, 0)` | Decimal128 |
//! | `TIMESTAMP`, `TIMESTAMP_LTZ` | microseconds in UTC |
//! | `TIMESTAMP_NTZ`, `TIMESTAMP WITHOUT TIME ZONE` | microseconds without zone |
//! | `ARRAY<t>`, `MAP<k, v>`, `STRUCT<a: t [NOT NULL] [COMMENT '…'], …>` | List, Map, Struct |
//!
//! A name that means different widths to different engines (`INT8`), or a length that nobody would check
//! (`VARCHAR(10)`), is an error.
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use lakebed_core::{Error, Result};
use sqlparser::{keywords::Keyword, parser::Parser, tokenizer::Token};

use super::{eat, expected, syntax, word_ahead};

/// Metadata key of a field's comment.
pub(crate) const COMMENT: &str = "comment";

/// Types nest at most this deep.
const MAX_DEPTH: usize = 64;

/// A type as columns and fields have it; null until it says otherwise.
pub(super) fn field(parser: &mut Parser<'_>, name: &str) -> Result<Field> {
    let mut types = Types { parser, closing: 0 };
    let kind = types.kind(0)?;
    match types.closing {
        0 => Ok(Field::new(name, kind, true)),
        _ => Err(Error::invalid(format!("column `{name}`: `>` without `<`"))),
    }
}

/// `NOT NULL` and `COMMENT '…'`, in any order.
pub(super) fn constraints(parser: &mut Parser<'_>, mut field: Field) -> Result<Field> {
    loop {
        if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
            field = field.with_nullable(false);
        } else if parser.parse_keyword(Keyword::COMMENT) {
            let text = string(parser, "a comment")?;
            field = field.with_metadata([(COMMENT.to_owned(), text)].into());
        } else if !parser.parse_keyword(Keyword::NULL) {
            return Ok(field);
        }
    }
}

/// A literal in single quotes.
pub(super) fn string(parser: &mut Parser<'_>, what: &str) -> Result<String> {
    match &parser.peek_token_ref().token {
        Token::SingleQuotedString(text) => {
            let text = text.clone();
            let _ = parser.next_token();
            Ok(text)
        }
        _ => expected(&format!("{what} in single quotes"), parser),
    }
}

struct Types<'p, 'a> {
    parser: &'p mut Parser<'a>,
    /// `>` read and not yet used: `>>` is one token.
    closing: usize,
}

impl Types<'_, '_> {
    fn kind(&mut self, depth: usize) -> Result<DataType> {
        if depth > MAX_DEPTH {
            return Err(Error::new(lakebed_core::ErrorKind::Limit, format!("types nest deeper than {MAX_DEPTH}")));
        }
        let Token::Word(word) = self.parser.peek_token_ref().token.clone() else {
            return expected("a type", self.parser);
        };
        let _ = self.parser.next_token();
        let name = word.value.to_uppercase();
        match name.as_str() {
            "ARRAY" => {
                self.open(&name)?;
                let item = self.kind(depth + 1)?;
                self.close()?;
                Ok(DataType::List(Arc::new(Field::new("element", item, true))))
            }
            "MAP" => {
                self.open(&name)?;
                let key = self.kind(depth + 1)?;
                self.parser.expect_token(&Token::Comma).map_err(syntax)?;
                let value = self.kind(depth + 1)?;
                self.close()?;
                let entries = vec![Field::new("key", key, false), Field::new("value", value, true)];
                Ok(DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries.into()), false)), false))
            }
            "STRUCT" => {
                self.open(&name)?;
                let fields = self.fields(depth + 1)?;
                Ok(DataType::Struct(fields))
            }
            "DECIMAL" | "NUMERIC" | "DEC" => self.decimal(),
            "TIMESTAMP" => Ok(DataType::Timestamp(TimeUnit::Microsecond, self.zone()?)),
            "DOUBLE" => {
                let _ = eat(self.parser, "PRECISION");
                Ok(DataType::Float64)
            }
            _ if self.parser.peek_token_ref().token == Token::LParen => {
                Err(Error::unsupported(format!("type {name}(…)"))
                    .with_hint("lengths are not checked: use STRING or BINARY"))
            }
            _ => plain(&name),
        }
    }

    fn open(&mut self, name: &str) -> Result<()> {
        match self.parser.consume_token(&Token::Lt) {
            true => Ok(()),
            false => expected(&format!("`<` after {name}"), self.parser),
        }
    }

    fn close(&mut self) -> Result<()> {
        if self.closing > 0 {
            self.closing -= 1;
            return Ok(());
        }
        match self.parser.peek_token_ref().token {
            Token::Gt => (),
            Token::ShiftRight => self.closing += 1,
            _ => return expected("`>`", self.parser),
        }
        let _ = self.parser.next_token();
        Ok(())
    }

    fn fields(&mut self, depth: usize) -> Result<Fields> {
        let mut fields: Vec<FieldRef> = Vec::new();
        loop {
            let name = self.parser.parse_identifier().map_err(syntax)?.value;
            let _ = self.parser.consume_token(&Token::Colon);
            let kind = self.kind(depth)?;
            let field = Field::new(name, kind, true);
            fields.push(Arc::new(if self.closing > 0 { field } else { constraints(self.parser, field)? }));
            if self.closing > 0 || !self.parser.consume_token(&Token::Comma) {
                self.close()?;
                return Ok(fields.into());
            }
        }
    }

    fn decimal(&mut self) -> Result<DataType> {
        let (mut precision, mut scale) = (10, 0);
        if self.parser.consume_token(&Token::LParen) {
            precision = self.parser.parse_literal_uint().map_err(syntax)?;
            if self.parser.consume_token(&Token::Comma) {
                scale = self.parser.parse_literal_uint().map_err(syntax)?;
            }
            self.parser.expect_token(&Token::RParen).map_err(syntax)?;
        }
        match (u8::try_from(precision), i8::try_from(scale)) {
            (Ok(p @ 1..=38), Ok(s)) if scale <= precision => Ok(DataType::Decimal128(p, s)),
            _ => Err(Error::invalid(format!("DECIMAL({precision}, {scale}): at most 38 digits, the scale among them"))),
        }
    }

    fn zone(&mut self) -> Result<Option<Arc<str>>> {
        let utc = || Some(Arc::from("UTC"));
        if self.parser.peek_token_ref().token == Token::LParen {
            return Err(
                Error::unsupported("TIMESTAMP(…)").with_hint("a timestamp has microseconds: leave the digits out")
            );
        }
        let without = word_ahead(self.parser, 0, "WITHOUT");
        let with = word_ahead(self.parser, 0, "WITH")
            && ["TIME", "LOCAL"].into_iter().any(|it| word_ahead(self.parser, 1, it));
        if !(without || with) {
            return Ok(utc());
        }
        let _ = self.parser.next_token();
        let _ = eat(self.parser, "LOCAL");
        self.parser.expect_keywords(&[Keyword::TIME, Keyword::ZONE]).map_err(syntax)?;
        Ok(if without { None } else { utc() })
    }
}

fn plain(name: &str) -> Result<DataType> {
    Ok(match name {
        "BOOLEAN" | "BOOL" => DataType::Boolean,
        "TINYINT" | "BYTE" => DataType::Int8,
        "SMALLINT" | "SHORT" => DataType::Int16,
        "INT" | "INTEGER" => DataType::Int32,
        "BIGINT" | "LONG" => DataType::Int64,
        "FLOAT" | "REAL" => DataType::Float32,
        "STRING" | "TEXT" | "VARCHAR" => DataType::Utf8,
        "BINARY" | "VARBINARY" | "BYTEA" => DataType::Binary,
        "DATE" => DataType::Date32,
        "TIMESTAMP_LTZ" | "TIMESTAMPTZ" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "TIMESTAMP_NTZ" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "INT2" | "INT4" | "INT8" | "INT16" | "INT32" | "INT64" | "FLOAT4" | "FLOAT8" | "FLOAT32" | "FLOAT64" => {
            return Err(Error::unsupported(format!("type {name}: engines disagree about its width"))
                .with_hint("TINYINT, SMALLINT, INT, BIGINT, FLOAT or DOUBLE"));
        }
        "CHAR" | "CHARACTER" | "NVARCHAR" => {
            return Err(Error::unsupported(format!("type {name}")).with_hint("use STRING"));
        }
        other => {
            return Err(Error::unsupported(format!("type {other}"))
                .with_hint("BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY<…>, MAP<…>, STRUCT<…>"));
        }
    })
}
