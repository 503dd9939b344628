//! `show`: one version, what it says of itself and what it changed.
use futures::TryStreamExt as _;
use lakebed_core::{
    change::VersionDelta,
    table::Table,
    timeline::{Instant, State},
    version::{AsOf, Span, Version},
};
use serde_json::{Value as Json, json};

use crate::{
    args::{Format, Named},
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Record, Report, Value, is_text},
};

pub(crate) async fn run(door: &Door, args: &Named) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let resolved = door.version(&opened).await?;
    let (table, version) = (opened.table.as_ref(), resolved.version);
    let instant = instant(table, &version).await?;
    let delta = match delta(table, &version).await {
        Ok(delta) => delta,
        Err(err) => {
            door.warn(&format!("what version {} changed cannot be read: {err}", version.id));
            None
        }
    };
    let location = table.storage().location();
    let mut record = Record::new("lakebed.show/1", location);
    put_version(&mut record, &version, instant.as_ref());
    if !is_text(door.printer.format) || door.printer.format == Format::Vertical {
        record.put("changes", Kind::Json, delta.as_ref().map(|it| Value::Json(changes_json(it))));
        record.put("native", Kind::Json, instant.map(|it| Value::Json(it.details.native)));
        door.record(record)?;
        return Ok(Verdict::Yes);
    }
    door.record(record)?;
    if let Some(delta) = delta.filter(|_| door.printer.format == Format::Table && door.printer.columns.is_none()) {
        door.report(changes_report(location, &delta))?;
    }
    Ok(Verdict::Yes)
}

async fn instant(table: &dyn Table, version: &Version) -> Result<Option<Instant>, Failure> {
    let span = Span { after: version.parent.clone(), until: AsOf::Version(version.id.clone()) };
    let timeline = table.timeline(&span).await?;
    let made_it =
        |it: &&Instant| matches!(&it.state, State::Completed { version: Some(made), .. } if made.id == version.id);
    Ok(timeline.instants().iter().find(made_it).cloned())
}

async fn delta(table: &dyn Table, version: &Version) -> Result<Option<VersionDelta>, Failure> {
    let span = Span { after: version.parent.clone(), until: AsOf::Version(version.id.clone()) };
    let deltas: Vec<VersionDelta> = table.changes(&span).try_collect().await?;
    Ok(deltas.into_iter().find(|it| it.version.id == version.id))
}

fn put_version(record: &mut Record, version: &Version, instant: Option<&Instant>) {
    record.put("id", Kind::Text, version.id.as_str());
    record.put("committed_at", Kind::Time, version.committed_at);
    record.put("parent", Kind::Text, version.parent.as_ref().map(|it| it.as_str().to_owned()));
    let Some(instant) = instant else { return };
    let details = &instant.details;
    record.put("operation", Kind::Text, instant.native_action.as_str());
    record.put("files_added", Kind::Int, details.files_added);
    record.put("files_removed", Kind::Int, details.files_removed);
    record.put("rows_added", Kind::Int, details.rows_added);
    record.put("rows_removed", Kind::Int, details.rows_removed);
    record.put("bytes_added", Kind::Int, details.bytes_added);
    record.put("bytes_removed", Kind::Int, details.bytes_removed);
    record.put("user", Kind::Text, details.user.clone());
    record.put("engine", Kind::Text, details.engine.clone());
    record.put("read_version", Kind::Text, details.read_version.as_ref().map(|it| it.as_str().to_owned()));
    record.put("isolation", Kind::Text, details.isolation.clone());
    record.put("blind_append", Kind::Bool, details.blind_append);
    record.put("user_metadata", Kind::Text, details.user_metadata.clone());
    record.put("parameters", Kind::Json, Value::Json(json!(details.parameters)));
    record.put("metrics", Kind::Json, Value::Json(json!(details.metrics)));
}

/// The change, its file, size and rows; rows are unknown where the file does not say.
type Line = (&'static str, String, Option<u64>, Option<u64>);

fn lines(delta: &VersionDelta) -> Vec<Line> {
    let rows = &delta.rows;
    let added = rows.added.iter().map(|it| ("add", it.path.to_string(), Some(it.bytes), it.stats.rows));
    let removed = rows.removed.iter().map(|it| ("remove", it.path.to_string(), None, None));
    let deletes = rows
        .added_deletes
        .iter()
        .flat_map(|delete| delete.targets.iter().map(|it| ("delete-rows", it.to_string(), None, delete.rows)));
    let change_files = rows.change_files.iter().map(|it| ("change-data", it.path.to_string(), Some(it.bytes), None));
    added.chain(removed).chain(deletes).chain(change_files).collect()
}

fn changes_json(delta: &VersionDelta) -> Json {
    let files: Vec<Json> = lines(delta)
        .into_iter()
        .map(|(change, path, bytes, rows)| json!({"change": change, "path": path, "bytes": bytes, "rows": rows}))
        .collect();
    json!({
        "data_change": delta.data_change,
        "schema_changed": delta.schema_changed,
        "protocol_changed": delta.protocol_changed,
        "files": files,
    })
}

fn changes_report(location: &str, delta: &VersionDelta) -> Report {
    let columns = [
        Column::new("change", "CHANGE", Kind::Text),
        Column::new("bytes", "BYTES", Kind::Int),
        Column::new("rows", "ROWS", Kind::Int),
        Column::new("path", "PATH", Kind::Text),
    ];
    let mut report = Report::new("lakebed.show/1", location, &columns);
    let mut title = vec![String::new()];
    if delta.schema_changed {
        title.push("the schema changed".to_owned());
    }
    if delta.protocol_changed {
        title.push("the protocol changed".to_owned());
    }
    report.title = title;
    report.rows = lines(delta)
        .into_iter()
        .map(|(change, path, bytes, rows)| vec![change.into(), bytes.into(), rows.into(), path.into()])
        .collect();
    report
}
