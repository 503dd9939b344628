//! `log`: the versions of a table, newest first, and which of them can still be read.
use std::collections::HashMap;

use lakebed::readable::{self, Readable};
use lakebed_core::{
    table::Table,
    timeline::{Instant, State},
    version::{Ref, RefKind, Span, Version, VersionId},
};

use crate::{
    args::Log,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

const COLUMNS: [Column; 10] = [
    Column::new("id", "ID", Kind::Text),
    Column::new("committed_at", "TIME (UTC)", Kind::Time),
    Column::new("operation", "OPERATION", Kind::Text),
    Column::new("files_added", "+FILES", Kind::Int),
    Column::new("files_removed", "-FILES", Kind::Int),
    Column::new("rows_added", "+ROWS", Kind::Int),
    Column::new("rows_removed", "-ROWS", Kind::Int),
    Column::new("refs", "REFS", Kind::Texts),
    Column::new("readable", "READABLE", Kind::Text),
    Column::new("native", "NATIVE", Kind::Json).wide(),
];

const LONG: [Column; 8] = [
    Column::new("user", "USER", Kind::Text),
    Column::new("engine", "ENGINE", Kind::Text),
    Column::new("read_version", "READ", Kind::Text),
    Column::new("isolation", "ISOLATION", Kind::Text),
    Column::new("blind_append", "BLIND", Kind::Bool),
    Column::new("user_metadata", "USER METADATA", Kind::Text),
    Column::new("parameters", "PARAMETERS", Kind::Json),
    Column::new("metrics", "METRICS", Kind::Json),
];

/// A completed instant that made a version.
struct Entry {
    version: Version,
    instant: Instant,
}

pub(crate) async fn run(door: &Door, args: &Log) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let table = opened.table.as_ref();
    let span = door.span(&opened).await?;
    let busy = door.busy("reading the log");
    let (mut entries, earlier) = entries(table, &span, door.printer.limit).await?;
    let head = entries.last().map(|it| it.version.id.clone());
    let total = entries.len() + earlier;
    if let Some(limit) = door.printer.limit {
        entries.drain(..entries.len().saturating_sub(limit));
    }
    let refs = refs(door, table).await;
    let readable = readable(table, &entries, args.no_check).await?;
    drop(busy);

    let columns: Vec<Column> = match (args.oneline, args.long) {
        (true, _) => [0, 2, 7, 8].iter().map(|at| COLUMNS[*at]).collect(),
        (false, false) => COLUMNS.to_vec(),
        (false, true) => COLUMNS.iter().chain(&LONG).copied().collect(),
    };
    let mut report = Report::new("lakebed.log/1", table.storage().location(), &columns);
    report.title = vec![title(table, &opened.name, head.as_ref(), total, &refs)];
    for (entry, readable) in entries.iter().zip(&readable).rev() {
        let names = names(&entry.version.id, head.as_ref().filter(|_| opened.revision.is_none()), &refs);
        let row = row(entry, names, readable, args.long);
        report.rows.push(if args.oneline { [0, 2, 7, 8].map(|at| row[at].clone()).to_vec() } else { row });
    }
    door.report(report)?;
    Ok(Verdict::Yes)
}

/// The newest versions of `span`, at least one where there is one, and how many came before them.
async fn entries(table: &dyn Table, span: &Span, limit: Option<usize>) -> Result<(Vec<Entry>, usize), Failure> {
    let timeline = match limit {
        Some(limit) => table.timeline_newest(span, limit.max(1)).await?,
        None => table.timeline(span).await?,
    };
    let made = timeline.instants().iter().filter_map(|instant| match &instant.state {
        State::Completed { version: Some(version), .. } => {
            Some(Entry { version: version.clone(), instant: instant.clone() })
        }
        _ => None,
    });
    Ok((made.collect(), timeline.earlier()))
}

/// Refs decorate the log: a table whose refs cannot be read still has one.
async fn refs(door: &Door, table: &dyn Table) -> Vec<Ref> {
    match table.refs().await {
        Ok(refs) => refs,
        Err(err) => {
            door.warn(&format!("refs cannot be read: {err}"));
            Vec::new()
        }
    }
}

async fn readable(table: &dyn Table, entries: &[Entry], no_check: bool) -> Result<Vec<Readable>, Failure> {
    if no_check {
        return Ok(vec![Readable::Unchecked; entries.len()]);
    }
    let versions: Vec<Version> = entries.iter().map(|it| it.version.clone()).collect();
    Ok(readable::check(table, &versions).await?)
}

/// `delta  ./orders  head version 4  1 tag  0 branches`.
fn title(table: &dyn Table, name: &str, head: Option<&VersionId>, versions: usize, refs: &[Ref]) -> String {
    let count = |kind: RefKind| refs.iter().filter(|it| it.kind == kind).count();
    let several = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let head = head.map_or("no version".to_owned(), |it| format!("head version {it}"));
    let (tags, branches) = (count(RefKind::Tag), count(RefKind::Branch));
    [
        table.format().name().to_owned(),
        name.to_owned(),
        head,
        several(versions, "version", "versions"),
        several(tags, "tag", "tags"),
        several(branches, "branch", "branches"),
    ]
    .join("  ")
}

fn names(id: &VersionId, head: Option<&VersionId>, refs: &[Ref]) -> Vec<String> {
    let mut by_version: HashMap<&VersionId, Vec<String>> = HashMap::new();
    for it in refs {
        let kind = match it.kind {
            RefKind::Branch => "branch",
            RefKind::Tag => "tag",
        };
        by_version.entry(&it.version).or_default().push(format!("{kind}:{}", it.name));
    }
    let mut names = by_version.remove(id).unwrap_or_default();
    names.sort();
    if head == Some(id) {
        names.insert(0, "HEAD".to_owned());
    }
    names
}

fn row(entry: &Entry, names: Vec<String>, readable: &Readable, long: bool) -> Vec<Value> {
    let details = &entry.instant.details;
    let mut row = vec![
        Value::from(entry.version.id.as_str()),
        Value::from(entry.version.committed_at),
        Value::from(entry.instant.native_action.as_str()),
        Value::from(details.files_added),
        Value::from(details.files_removed),
        Value::from(details.rows_added),
        Value::from(details.rows_removed),
        Value::Texts(names),
        Value::from(readable.to_string()),
        Value::Json(details.native.clone()),
    ];
    if long {
        row.extend([
            Value::from(details.user.clone()),
            Value::from(details.engine.clone()),
            Value::from(details.read_version.as_ref().map(|it| it.as_str().to_owned())),
            Value::from(details.isolation.clone()),
            Value::from(details.blind_append),
            Value::from(details.user_metadata.clone()),
            Value::Json(serde_json::json!(details.parameters)),
            Value::Json(serde_json::json!(details.metrics)),
        ]);
    }
    row
}
