//! `t$history`: the table's versions, newest first.
//!
//! `readable` is `unchecked` here: whether every file of a version is still there takes a listing, which `log` does.
use std::sync::Arc;

use arrow_array::RecordBatch;
use lakebed_core::{
    Result,
    table::Table,
    timeline::{Instant, State},
    version::{AsOf, Span, Version},
};

use super::rows::Columns;

pub(super) async fn rows(table: &Arc<dyn Table>, until: AsOf) -> Result<RecordBatch> {
    let timeline = table.timeline(&Span { after: None, until }).await?;
    let refs = table.refs().await?;
    let newest_first: Vec<(&Version, &Instant)> =
        timeline.instants().iter().rev().filter_map(|it| Some((version(it)?, it))).collect();
    let all = || newest_first.iter();
    let names = |version: &Version| {
        let names: Vec<&str> = refs.iter().filter(|it| it.version == version.id).map(|it| it.name.as_str()).collect();
        names.join(", ")
    };
    Columns::default()
        .text("id", all().map(|it| it.0.id.to_string()))
        .time("committed_at", all().map(|it| Some(it.0.committed_at)))
        .text("operation", all().map(|it| it.1.native_action.clone()))
        .count("files_added", all().map(|it| it.1.details.files_added))
        .count("files_removed", all().map(|it| it.1.details.files_removed))
        .count("rows_added", all().map(|it| it.1.details.rows_added))
        .count("rows_removed", all().map(|it| it.1.details.rows_removed))
        .text("refs", all().map(|it| names(it.0)))
        .text("readable", all().map(|_| "unchecked"))
        .text("native", all().map(|it| it.1.details.native.to_string()))
        .batch()
}

fn version(instant: &Instant) -> Option<&Version> {
    match &instant.state {
        State::Completed { version, .. } => version.as_ref(),
        State::Requested | State::Inflight => None,
    }
}
