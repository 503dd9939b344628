//! `table_changes('path or table', first[, last])`: the changed rows of a closed range of versions.
//!
//! Ends are versions (whole numbers), moments (timestamps, or text that reads as one) or revisions; without `last` the
//! range runs to the newest version.
use std::sync::Arc;

use datafusion::{catalog::TableProvider, common::ScalarValue};
use lakebed_core::{Error, Result, change::ChangeSpan, table::Table, version::AsOf};

use super::Call;
use crate::{
    change_table::ChangeTable,
    sql::{
        pins::{self, Constants, Pin},
        resolve::Loader,
        wanted::Argument,
    },
};

pub(super) async fn load(loader: &mut Loader<'_>, arguments: &[Argument]) -> Result<Arc<dyn TableProvider>> {
    let call = Call::new("table_changes", arguments, &["table", "start", "end"], &[], loader)?;
    let text = call.text("table")?;
    let (table, rev) = loader.table(text, None).await?;
    if rev.is_some() {
        return Err(Error::invalid(format!("`{text}`: the versions of a change feed are its start and end")));
    }
    let first = end(loader, &table, call.required("start")?).await?;
    let last = match call.optional("end") {
        Some(value) => end(loader, &table, value).await?,
        None => AsOf::Latest,
    };
    let feed = table.change_feed(&ChangeSpan { first, last }).await?;
    let changes = ChangeTable::new("table_changes", table, feed, loader.shared.formats.clone()).await?;
    Ok(Arc::new(changes))
}

async fn end(loader: &Loader<'_>, table: &Arc<dyn Table>, value: &ScalarValue) -> Result<AsOf> {
    let pin = match pins::text(value) {
        // Text that is a time is one; `3` and tag names are not.
        Some(text) => match loader.time(text) {
            Ok(time) if text.parse::<i64>().is_err() => Pin::AsOf(AsOf::Time(time)),
            Ok(_) | Err(_) => Pin::Rev(text.to_owned()),
        },
        None if pins::integer(value).is_some() => pins::of_value("version", value.clone(), loader)?,
        None => pins::of_value("timestamp", value.clone(), loader)?,
    };
    loader.as_of(table, Some(pin)).await
}
