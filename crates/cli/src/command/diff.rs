//! `diff`: what lies between two versions, of one table or two: columns and files.
//!
//! Files are compared by path within one table. Between two tables no file is shared, so only sizes tell.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array as _, RecordBatch, cast::AsArray as _, types::Int64Type};
use futures::TryStreamExt as _;
use lakebed::Opened;
use lakebed_core::{
    Error,
    listing::ListingColumns,
    rev::RevRange,
    scan::Scan,
    table::Snapshot,
    version::{AsOf, VersionId},
};

use super::schema::type_name;
use crate::{
    args::Diff,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

const COLUMNS: [Column; 5] = [
    Column::new("part", "PART", Kind::Text),
    Column::new("change", "CHANGE", Kind::Text),
    Column::new("name", "NAME", Kind::Text),
    Column::new("left", "LEFT", Kind::Text),
    Column::new("right", "RIGHT", Kind::Text),
];

pub(crate) async fn run(door: &Door, args: &Diff) -> Result<Verdict, Failure> {
    let (left, right) = sides(door, args).await?;
    let (old, new) = (&left.snapshot, &right.snapshot);
    let both = !args.schema && !args.files;
    let mut report = Report::new("lakebed.diff/1", &left.location, &COLUMNS);
    let mut title = vec![format!("{}@{} -> {}@{}", left.name, left.id, right.name, right.id)];
    if args.schema || both {
        let rows = schema_rows(old.as_ref(), new.as_ref());
        title.push(format!("schema  {}", summary(&rows)));
        report.rows.extend(rows);
    }
    if args.files || both {
        let (shared, rows) = file_rows(old.as_ref(), new.as_ref()).await?;
        title.push(format!("files   shared {shared}, {}", summary(&rows)));
        report.rows.extend(rows);
    }
    report.title = title;
    let differs = !report.rows.is_empty();
    if differs || door.printer.format != crate::args::Format::Table {
        door.report(report)?;
    } else {
        report.columns.clear();
        door.lines(&report.title)?;
    }
    Ok(if args.exit_code && differs { Verdict::No } else { Verdict::Yes })
}

/// One of the two versions.
struct Side {
    name: String,
    location: String,
    id: VersionId,
    snapshot: Arc<dyn Snapshot>,
}

impl Side {
    async fn of(door: &Door, opened: &Opened) -> Result<Self, Failure> {
        let (resolved, snapshot) = door.snapshot(opened).await?;
        Ok(Self::with(opened, resolved.version.id, snapshot))
    }

    async fn at(opened: &Opened, as_of: &AsOf) -> Result<Self, Failure> {
        let snapshot = opened.table.snapshot(as_of).await?;
        Ok(Self::with(opened, snapshot.version().id.clone(), snapshot))
    }

    fn with(opened: &Opened, id: VersionId, snapshot: Arc<dyn Snapshot>) -> Self {
        let location = opened.table.storage().location().to_owned();
        Self { name: opened.name.clone(), location, id, snapshot }
    }
}

/// The older side and the newer.
///
/// A range `TABLE@a..b` is both. Without a right side, it is the newest version; `@REV` alone is a version of the left
/// table.
async fn sides(door: &Door, args: &Diff) -> Result<(Side, Side), Failure> {
    let left = door.table(&args.left).await?;
    if is_range(&left)? {
        return range(door, &left, args.right.is_some()).await;
    }
    let right = match args.right.as_deref() {
        None => Opened { revision: None, ..left.clone() },
        Some(text) => match text.strip_prefix('@') {
            Some(revision) => Opened { revision: Some(revision.to_owned()), ..left.clone() },
            None => door.table(text).await?,
        },
    };
    if is_range(&right)? {
        return Err(too_many().into());
    }
    // `diff t @3` reads as "since 3": the version given is the older side.
    let (old, new) = match left.revision.is_none() && args.right.as_deref().is_some_and(|it| it.starts_with('@')) {
        true => (right, left),
        false => (left, right),
    };
    Ok((Side::of(door, &old).await?, Side::of(door, &new).await?))
}

fn is_range(opened: &Opened) -> Result<bool, Failure> {
    Ok(opened.revision.as_deref().map(RevRange::parse).transpose()?.flatten().is_some())
}

async fn range(door: &Door, opened: &Opened, more: bool) -> Result<(Side, Side), Failure> {
    if more {
        return Err(too_many().into());
    }
    let span = door.span(opened).await?;
    let Some(after) = span.after else {
        let err = Error::invalid("the range has no older side: `diff` compares two versions");
        return Err(err.with_hint("write it as `a..b`; `earliest..b` starts with the oldest version").into());
    };
    Ok((Side::at(opened, &AsOf::Version(after)).await?, Side::at(opened, &span.until).await?))
}

fn too_many() -> Error {
    Error::invalid("a range names two versions: with another table or version there would be three")
        .with_hint("`diff t@3..5` compares 3 and 5, as `diff t@3 @5` does")
}

fn summary(rows: &[Vec<Value>]) -> String {
    let count = |sign: &str| rows.iter().filter(|it| it[1] == Value::from(sign)).count();
    format!("+{} -{} ~{}", count("+"), count("-"), count("~"))
}

fn line(part: &str, name: &str, left: Option<String>, right: Option<String>) -> Vec<Value> {
    let change = match (&left, &right) {
        (None, _) => "+",
        (_, None) => "-",
        _ => "~",
    };
    vec![part.into(), change.into(), name.into(), left.into(), right.into()]
}

fn schema_rows(old: &dyn Snapshot, new: &dyn Snapshot) -> Vec<Vec<Value>> {
    let described = |snapshot: &dyn Snapshot| -> Vec<(String, String)> {
        let fields = snapshot.schema().fields().iter();
        let text = |it: &arrow_schema::Field| {
            format!("{}{}", type_name(it.data_type()), if it.is_nullable() { "" } else { " not null" })
        };
        fields.map(|it| (it.name().clone(), text(it))).collect()
    };
    let (old, new) = (described(old), described(new));
    let find = |columns: &[(String, String)], name: &str| columns.iter().find(|it| it.0 == name).map(|it| it.1.clone());
    let mut rows = Vec::new();
    for (name, left) in &old {
        let right = find(&new, name);
        if right.as_ref() != Some(left) {
            rows.push(line("column", name, Some(left.clone()), right));
        }
    }
    for (name, right) in new.iter().filter(|it| find(&old, &it.0).is_none()) {
        rows.push(line("column", name, None, Some(right.clone())));
    }
    rows
}

/// Bytes and deleted rows of each live file.
type Files = BTreeMap<String, (i64, Option<i64>)>;

async fn files_of(snapshot: &dyn Snapshot) -> Result<Files, Failure> {
    let columns = ListingColumns { path: true, bytes: true, deletes: true, ..ListingColumns::NONE };
    let batches: Vec<RecordBatch> = snapshot.files(&Scan::all(), columns).try_collect().await?;
    let mut files = Files::new();
    for batch in &batches {
        let column =
            |name: &str| batch.column_by_name(name).map(Arc::clone).expect("the listing has what it was asked for");
        let (path, bytes, deletes) = (column("path"), column("bytes"), column("deletes"));
        let (path, bytes, deletes) =
            (path.as_string::<i32>(), bytes.as_primitive::<Int64Type>(), deletes.as_primitive::<Int64Type>());
        for row in 0..batch.num_rows() {
            let gone = deletes.is_valid(row).then(|| deletes.value(row));
            files.insert(path.value(row).to_owned(), (bytes.value(row), gone));
        }
    }
    Ok(files)
}

async fn file_rows(old: &dyn Snapshot, new: &dyn Snapshot) -> Result<(usize, Vec<Vec<Value>>), Failure> {
    let (old, new) = (files_of(old).await?, files_of(new).await?);
    let shown = |(bytes, gone): &(i64, Option<i64>)| match gone {
        Some(gone) if *gone > 0 => format!("{bytes} bytes, {gone} rows deleted"),
        _ => format!("{bytes} bytes"),
    };
    let mut rows = Vec::new();
    let mut shared = 0;
    for (path, left) in &old {
        match new.get(path) {
            Some(right) if right == left => shared += 1,
            right => rows.push(line("file", path, Some(shown(left)), right.map(shown))),
        }
    }
    for (path, right) in new.iter().filter(|it| !old.contains_key(it.0)) {
        rows.push(line("file", path, None, Some(shown(right))));
    }
    Ok((shared, rows))
}
