//! `timeline`: everything that was done to a table, finished or not, newest first.
use lakebed_core::timeline::{Action, Instant, State};

use crate::{
    args::Named,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

const COLUMNS: [Column; 7] = [
    Column::new("requested_at", "REQUESTED", Kind::Time),
    Column::new("completed_at", "COMPLETED", Kind::Time),
    Column::new("action", "ACTION", Kind::Text),
    Column::new("kind", "KIND", Kind::Text),
    Column::new("state", "STATE", Kind::Text),
    Column::new("origin", "ORIGIN", Kind::Text),
    Column::new("id", "ID", Kind::Text),
];

pub(crate) async fn run(door: &Door, args: &Named) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let timeline = opened.table.timeline(&door.span(&opened).await?).await?;
    let mut report = Report::new("lakebed.timeline/1", opened.table.storage().location(), &COLUMNS);
    report.rows = timeline.instants().iter().rev().map(row).collect();
    door.report(report)?;
    Ok(Verdict::Yes)
}

fn row(instant: &Instant) -> Vec<Value> {
    let (state, completed_at, id) = match &instant.state {
        State::Requested => ("requested", None, None),
        State::Inflight => ("inflight", None, None),
        State::Completed { at, version } => {
            ("completed", Some(*at), version.as_ref().map(|it| it.id.as_str().to_owned()))
        }
    };
    vec![
        Value::from(instant.requested_at),
        Value::from(completed_at),
        Value::from(name(instant.action)),
        Value::from(instant.native_action.as_str()),
        Value::from(state),
        Value::from(instant.details.engine.clone()),
        Value::from(id),
    ]
}

/// The same word for the same thing in every format.
fn name(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Append => "append",
        Action::Overwrite => "overwrite",
        Action::Delete => "delete",
        Action::RowDelta => "row-delta",
        Action::Compaction => "compaction",
        Action::Clustering => "clustering",
        Action::Schema => "schema",
        Action::Properties => "properties",
        Action::Ref => "ref",
        Action::Clean => "clean",
        Action::Rollback => "rollback",
        Action::Restore => "restore",
        Action::Index => "index",
        _ => "other",
    }
}
