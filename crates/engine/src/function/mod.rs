//! Table functions. Their names come from the formats: `<format>(…)`, `<format>_files(…)`, and what each registers.
mod arguments;
mod changes;
mod extension;
mod files;
pub(crate) mod parquet;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use lakebed_core::{Error, Result};

use self::arguments::Call;
pub(crate) use self::arguments::{Call as Arguments, VERSION_ARGUMENTS};
use crate::{
    sql::{resolve::Loader, wanted::Argument},
    system,
    text::did_you_mean,
};

/// The table that a call stands for.
///
/// # Errors
/// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) if no function has the name, with the nearest that is there.
pub(crate) async fn load(
    loader: &mut Loader<'_>,
    name: &[String],
    arguments: &[Argument],
) -> Result<Arc<dyn TableProvider>> {
    let lower: Vec<String> = name.iter().map(|it| it.to_lowercase()).collect();
    match lower.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["table_changes"] | ["lakebed", "changes"] => changes::load(loader, arguments).await,
        ["parquet" | "read_parquet" | "parquet_scan"] => parquet::load(loader, arguments).await,
        ["lakebed", "files"] => files::load(loader, "lakebed.files", None, arguments).await,
        ["lakebed", "log"] => of_table(loader, "lakebed.log", "history", arguments).await,
        ["lakebed", "refs"] => of_table(loader, "lakebed.refs", "refs", arguments).await,
        ["lakebed", "timeline"] => of_table(loader, "lakebed.timeline", "timeline", arguments).await,
        [function] => of_format(loader, function, arguments).await,
        _ => Err(unknown(loader, &name.join("."))),
    }
}

async fn of_format(loader: &mut Loader<'_>, name: &str, arguments: &[Argument]) -> Result<Arc<dyn TableProvider>> {
    let shared = loader.shared;
    if shared.formats.by_name(name).is_some() {
        let call = Call::new(name, arguments, &["path"], &VERSION_ARGUMENTS, loader)?;
        let table = loader.at_path(call.text("path")?, Some(name)).await?;
        let pin = call.pin(loader)?;
        return loader.rows(&table, name, pin).await;
    }
    if let Some(format) = name.strip_suffix("_files")
        && shared.formats.by_name(format).is_some()
    {
        return files::load(loader, name, Some(format), arguments).await;
    }
    match shared.function(name) {
        Some((format, function)) => extension::load(loader, format.kind().name(), function, arguments).await,
        None => Err(unknown(loader, name)),
    }
}

/// `lakebed.log('t')` is `t$history` for tables named by text.
async fn of_table(
    loader: &mut Loader<'_>,
    function: &str,
    system_table: &str,
    arguments: &[Argument],
) -> Result<Arc<dyn TableProvider>> {
    let call = Call::new(function, arguments, &["table"], &VERSION_ARGUMENTS, loader)?;
    let text = call.text("table")?;
    let (table, rev) = loader.table(text, None).await?;
    let pin = one_pin(rev, call.pin(loader)?)?;
    system::load(loader, &table, text, system_table, pin).await
}

fn one_pin(
    rev: Option<crate::sql::pins::Pin>,
    argument: Option<crate::sql::pins::Pin>,
) -> Result<Option<crate::sql::pins::Pin>> {
    let mut pin = rev;
    if let Some(more) = argument {
        crate::sql::pins::set(&mut pin, more)?;
    }
    Ok(pin)
}

fn unknown(loader: &Loader<'_>, name: &str) -> Error {
    let mut known: Vec<String> =
        ["table_changes", "parquet", "lakebed.log", "lakebed.files", "lakebed.refs"].map(str::to_owned).to_vec();
    for format in loader.shared.formats.iter() {
        known.push(format.kind().name().to_owned());
        known.push(format!("{}_files", format.kind()));
        known.extend(format.extensions().functions.iter().map(|it| it.name.to_owned()));
    }
    let error = Error::invalid(format!("no table function is called `{name}`"));
    match did_you_mean(name, known.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("did you mean `{near}`?")),
        None => error.with_hint(format!("there are {}", known.join(", "))),
    }
}
