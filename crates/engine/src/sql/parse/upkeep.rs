//! `OPTIMIZE`, `VACUUM`, `RESTORE` and `CALL`.
use lakebed_core::{Error, Result};
use sqlparser::{ast::FunctionArg, keywords::Keyword, parser::Parser, tokenizer::Token};

use super::{
    eat, expected, plain, syntax, word_ahead,
    write::{expr, name, once, refuse, skip, target},
};
use crate::sql::{
    wanted::argument,
    write::{Call, Point, Target, Vacuum, Write},
};

/// `OPTIMIZE [TABLE] t [WHERE …] [DRY RUN]`.
pub(super) fn optimize(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = target(parser)?;
    refuse(parser, &[("FULL", ""), ("FINAL", "leave it out"), ("PARTITION", "use WHERE")])?;
    let filter = parser.parse_keyword(Keyword::WHERE).then(|| expr(parser)).transpose()?.map(Box::new);
    refuse(parser, &[("ZORDER", "leave ZORDER BY out: rows keep their order"), ("DEDUPLICATE", "")])?;
    let dry_run = dry_run(parser);
    Ok(Write::Optimize { table, filter, dry_run })
}

/// Eats `DRY RUN` if it is there.
fn dry_run(parser: &mut Parser<'_>) -> bool {
    let there = word_ahead(parser, 0, "DRY") && word_ahead(parser, 1, "RUN");
    if there {
        skip(parser, 2);
    }
    there
}

/// `VACUUM [TABLE] t [LITE|FULL] [RETAIN n HOURS] [DRY RUN]`.
pub(super) fn vacuum(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = target(parser)?;
    let (mut lite, mut retain_hours, mut dry_run) = (None, None, None);
    loop {
        if eat(parser, "LITE") {
            once(&mut lite, "LITE or FULL", true)?;
        } else if eat(parser, "FULL") {
            once(&mut lite, "LITE or FULL", false)?;
        } else if eat(parser, "RETAIN") {
            once(&mut retain_hours, "RETAIN", expr(parser)?)?;
            if !eat(parser, "HOURS") {
                return expected("HOURS", parser);
            }
        } else if self::dry_run(parser) {
            once(&mut dry_run, "DRY RUN", ())?;
        } else {
            break;
        }
    }
    refuse(parser, &[("USING", "")])?;
    let (lite, dry_run) = (lite.unwrap_or(false), dry_run.is_some());
    Ok(Write::Vacuum(Vacuum { table, lite, retain_hours, dry_run }))
}

/// `RESTORE [TABLE] t [TO] VERSION|TIMESTAMP AS OF x`, whose version stands in canonical form already.
pub(super) fn restore(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    let _ = parser.parse_keyword(Keyword::TABLE);
    let table = Target::named(&name(parser)?);
    let _ = parser.parse_keyword(Keyword::TO);
    let to = if parser.parse_keywords(&[Keyword::TIMESTAMP, Keyword::AS, Keyword::OF]) {
        Point::Time(expr(parser)?)
    } else if eat(parser, "AT") {
        parser.expect_token(&Token::LParen).map_err(syntax)?;
        let time = eat(parser, "TIMESTAMP");
        if !time && !eat(parser, "VERSION") {
            return expected("VERSION or TIMESTAMP", parser);
        }
        parser.expect_token(&Token::RArrow).map_err(syntax)?;
        let value = expr(parser)?;
        parser.expect_token(&Token::RParen).map_err(syntax)?;
        if time { Point::Time(value) } else { Point::Version(value) }
    } else {
        return expected("TO VERSION AS OF or TO TIMESTAMP AS OF", parser);
    };
    Ok(Write::Restore { table, to })
}

/// `CALL [catalog.][system.]name(argument, name => argument)`.
pub(super) fn call(parser: &mut Parser<'_>) -> Result<Write> {
    skip(parser, 1);
    let name = parser.parse_object_name(false).map_err(syntax)?;
    let procedure = plain(&name).into_iter().map(|it| it.to_lowercase()).collect();
    parser.expect_token(&Token::LParen).map_err(syntax)?;
    let arguments: Vec<FunctionArg> = parser.parse_optional_args().map_err(syntax)?;
    let arguments: Vec<_> = arguments.iter().map(argument).collect::<Result<_>>()?;
    let named = arguments.iter().position(|it| it.name.is_some());
    if named.is_some_and(|at| arguments[at..].iter().any(|it| it.name.is_none())) {
        return Err(Error::invalid(format!("CALL {name}: arguments by position come before those by name")));
    }
    Ok(Write::Call(Call { procedure, arguments }))
}
