//! Which version a reference asks for.
//!
//! Every way to say it ends here: `VERSION AS OF`, `TIMESTAMP AS OF`, `AT (…)`, a hint's options, a function's named
//! arguments, `t@rev`. At most one of them may stand at a table. A number is a version; a string is a revision, as on
//! the command line (a tag, `v3`, `{2 hours ago}`); a time is read in the session's zone unless it names its own.
use datafusion::common::ScalarValue;
use lakebed_core::{
    Error, Result,
    version::{AsOf, Millis, VersionId},
};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, TableVersion};

use super::{
    check::unknown_setting,
    tokens::{option_pairs, string_of},
};

/// A version as a statement names it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pin {
    AsOf(AsOf),
    /// A revision, resolved against the table: a tag may be called `3`.
    Rev(String),
}

/// What a constant in SQL stands for; answered by the planner.
pub(crate) trait Constants {
    fn constant(&self, expr: &Expr) -> Result<ScalarValue>;
    /// A time in words, in the session's zone: `2026-10-04`, `2 hours ago`.
    fn time(&self, text: &str) -> Result<Millis>;
}

/// The version clause behind a table's name.
pub(crate) fn of_clause(version: &TableVersion, constants: &dyn Constants) -> Result<Pin> {
    match version {
        TableVersion::TimestampAsOf(expr) | TableVersion::ForSystemTimeAsOf(expr) => {
            of_value("timestamp", constants.constant(expr)?, constants)
        }
        TableVersion::VersionAsOf(expr) => of_value("version", constants.constant(expr)?, constants),
        TableVersion::Function(expr) => of_call(expr, constants),
        TableVersion::Changes { .. } => {
            Err(Error::unsupported("CHANGES (…)").with_hint("use table_changes('table', first, last)"))
        }
    }
}

/// `AT (VERSION => 3)`.
fn of_call(expr: &Expr, constants: &dyn Constants) -> Result<Pin> {
    let wrong =
        || Error::invalid(format!("`{expr}` names no version")).with_hint("AT (VERSION => 3) or AT (TIMESTAMP => '…')");
    let Expr::Function(function) = expr else { return Err(wrong()) };
    let FunctionArguments::List(list) = &function.args else { return Err(wrong()) };
    let ("AT", [FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }]) =
        (function.name.to_string().to_uppercase().as_str(), list.args.as_slice())
    else {
        return Err(wrong());
    };
    match (name.value.to_lowercase().as_str(), value) {
        ("options", Expr::Value(value)) => of_options(string_of(&value.value).unwrap_or_default(), constants),
        (key @ ("version" | "timestamp" | "tag" | "ref"), value) => {
            of_value(if key == "tag" { "ref" } else { key }, constants.constant(value)?, constants)
        }
        _ => Err(wrong()),
    }
}

fn of_options(text: &str, constants: &dyn Constants) -> Result<Pin> {
    let mut pin = None;
    for (key, value) in option_pairs(text) {
        let key = match key.to_lowercase().as_str() {
            "version" | "versionasof" => "version",
            "timestamp" | "timestampasof" => "timestamp",
            "ref" | "tag" => "ref",
            _ => return Err(unknown_setting(key, "OPTIONS")),
        };
        set(&mut pin, of_value(key, ScalarValue::from(value), constants)?)?;
    }
    pin.ok_or_else(|| Error::invalid("OPTIONS() without an option"))
}

/// Takes a second version for an error: which one would be meant?
pub(crate) fn set(pin: &mut Option<Pin>, more: Pin) -> Result<()> {
    match pin.replace(more) {
        None => Ok(()),
        Some(_) => Err(Error::invalid("a table has one version: it is named twice here")),
    }
}

/// The pin that `key` (`version`, `timestamp` or `ref`) and a constant make.
pub(crate) fn of_value(key: &str, value: ScalarValue, constants: &dyn Constants) -> Result<Pin> {
    match key {
        "timestamp" => Ok(Pin::AsOf(AsOf::Time(millis(&value, constants)?))),
        "ref" => match text(&value) {
            Some(name) => Ok(Pin::AsOf(AsOf::Ref(name.to_owned()))),
            None => Err(Error::invalid(format!("ref => {value}: a ref's name is a string"))),
        },
        _ => match (integer(&value), text(&value)) {
            (Some(id), _) => Ok(Pin::AsOf(AsOf::Version(VersionId::new(id.to_string())))),
            (None, Some(rev)) => Ok(Pin::Rev(rev.to_owned())),
            (None, None) => Err(Error::invalid(format!("version {value}: a version is a whole number or a string"))),
        },
    }
}

/// A moment: text, a timestamp of any unit, or a date (its first instant in UTC).
pub(crate) fn millis(value: &ScalarValue, constants: &dyn Constants) -> Result<Millis> {
    if let Some(words) = text(value) {
        return constants.time(words);
    }
    let out_of_range = || Error::invalid(format!("the time {value} is out of range"));
    match value {
        ScalarValue::TimestampSecond(Some(it), _) => it.checked_mul(1000).map(Millis).ok_or_else(out_of_range),
        ScalarValue::TimestampMillisecond(Some(it), _) => Ok(Millis(*it)),
        ScalarValue::TimestampMicrosecond(Some(it), _) => Ok(Millis(it.div_euclid(1000))),
        ScalarValue::TimestampNanosecond(Some(it), _) => Ok(Millis(it.div_euclid(1_000_000))),
        ScalarValue::Date32(Some(it)) => Ok(Millis(i64::from(*it) * 86_400_000)),
        ScalarValue::Date64(Some(it)) => Ok(Millis(*it)),
        other => Err(Error::invalid(format!("`{other}` is no point in time"))
            .with_hint("write '2026-10-04 20:57:02+08:00', a timestamp, or '2 hours ago'")),
    }
}

pub(crate) fn text(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}

pub(crate) fn integer(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(it) => it.map(i128::from),
        ScalarValue::Int16(it) => it.map(i128::from),
        ScalarValue::Int32(it) => it.map(i128::from),
        ScalarValue::Int64(it) => it.map(i128::from),
        ScalarValue::UInt8(it) => it.map(i128::from),
        ScalarValue::UInt16(it) => it.map(i128::from),
        ScalarValue::UInt32(it) => it.map(i128::from),
        ScalarValue::UInt64(it) => it.map(i128::from),
        _ => None,
    }
}
