//! System tables: what a table knows of itself, one file a table.
//!
//! `t$history`, `t$files`, `t$refs`, `t$partitions`, `t$properties`, `t$timeline` are for everybody; `t$detail` and
//! `t$ddl` are what `DESCRIBE DETAIL` and `SHOW CREATE TABLE` show. Formats add their own. All but the list of files
//! and the history are small and made when the statement is planned; each is of the version that the reference names.
mod ddl;
mod detail;
pub mod files;
mod history;
pub(crate) mod information;
mod partitions;
mod properties;
mod refs;
pub(crate) mod rows;
mod timeline;
pub(crate) mod types;

use std::sync::Arc;

use datafusion::{catalog::TableProvider, datasource::MemTable};
use lakebed_core::{Error, Result, expr::Predicate, extension::Arguments, table::Table};

use crate::{
    error::of_datafusion,
    sql::{pins::Pin, resolve::Loader},
};

/// The system tables of every format.
pub(crate) const NAMES: &[&str] =
    &["history", "files", "refs", "partitions", "properties", "timeline", "detail", "ddl"];

/// The system table `system` of a table, at the version of `pin`.
///
/// `name` is the table's, for messages and statements made from it.
pub(crate) async fn load(
    loader: &mut Loader<'_>,
    table: &Arc<dyn Table>,
    name: &str,
    system: &str,
    pin: Option<Pin>,
) -> Result<Arc<dyn TableProvider>> {
    match system {
        "history" => {
            let as_of = loader.as_of(table, pin).await?;
            Ok(Arc::new(history::HistoryTable::new(Arc::clone(table), as_of)?))
        }
        "timeline" => {
            let as_of = loader.as_of(table, pin).await?;
            in_memory(timeline::rows(table, as_of).await?)
        }
        "refs" => match pin {
            None => in_memory(refs::rows(&table.refs().await?)?),
            Some(_) => Err(Error::invalid(format!("`{name}`: refs are of the table, not of a version"))),
        },
        "files" => Ok(Arc::new(files::ListingTable::new(loader.snapshot(table, pin).await?, Predicate::True))),
        "partitions" => in_memory(partitions::rows(&loader.snapshot(table, pin).await?).await?),
        "properties" => in_memory(properties::rows(&loader.snapshot(table, pin).await?)?),
        "detail" => in_memory(detail::rows(table, &loader.snapshot(table, pin).await?).await?),
        "ddl" => in_memory(ddl::rows(name, table, &loader.snapshot(table, pin).await?)?),
        other => own(loader, table, other, pin).await,
    }
}

/// A system table that the table's format adds.
async fn own(
    loader: &mut Loader<'_>,
    table: &Arc<dyn Table>,
    system: &str,
    pin: Option<Pin>,
) -> Result<Arc<dyn TableProvider>> {
    let format = loader.shared.formats.of(&table.format())?;
    let Some(extension) = format.extensions().system_tables.into_iter().find(|it| it.name == system) else {
        return Err(Error::not_found(format!("{} tables have no system table `{system}`", table.format())));
    };
    let as_of = match pin {
        Some(pin) => Some(loader.as_of(table, Some(pin)).await?),
        None => None,
    };
    let arguments = Arguments { as_of, ..Arguments::default() };
    let rows = extension.rows.rows(table, &arguments).await?;
    let table = MemTable::try_new(extension.schema, vec![rows]).map_err(of_datafusion)?;
    Ok(Arc::new(table))
}

pub(crate) fn in_memory(rows: arrow_array::RecordBatch) -> Result<Arc<dyn TableProvider>> {
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]]).map_err(of_datafusion)?;
    Ok(Arc::new(table))
}
