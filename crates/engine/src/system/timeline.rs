//! `t$timeline`: everything done to the table, in the order in which it became visible; what is pending comes last.
use std::sync::Arc;

use arrow_array::RecordBatch;
use lakebed_core::{
    Result,
    table::Table,
    timeline::{Instant, State},
    version::{AsOf, Millis, Span},
};

use super::rows::Columns;

pub(super) async fn rows(table: &Arc<dyn Table>, until: AsOf) -> Result<RecordBatch> {
    let timeline = table.timeline(&Span { after: None, until }).await?;
    let all = || timeline.instants().iter();
    Columns::default()
        .time("requested_at", all().map(|it| Some(it.requested_at)))
        .time("completed_at", all().map(completed_at))
        .text("action", all().map(|it| format!("{:?}", it.action).to_lowercase()))
        .text("kind", all().map(|it| it.native_action.clone()))
        .text("state", all().map(state))
        .optional_text("origin", all().map(|it| it.details.engine.clone()))
        .optional_text("id", all().map(id))
        .batch()
}

fn completed_at(instant: &Instant) -> Option<Millis> {
    match &instant.state {
        State::Completed { at, .. } => Some(*at),
        State::Requested | State::Inflight => None,
    }
}

fn state(instant: &Instant) -> &'static str {
    match &instant.state {
        State::Requested => "requested",
        State::Inflight => "inflight",
        State::Completed { .. } => "completed",
    }
}

fn id(instant: &Instant) -> Option<String> {
    match &instant.state {
        State::Completed { version, .. } => version.as_ref().map(|it| it.id.to_string()),
        State::Requested | State::Inflight => None,
    }
}
