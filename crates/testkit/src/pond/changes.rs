//! What versions changed: for conflict checks, for history, for change feeds; and the files of one version as rows.
use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use futures::{StreamExt, stream};
use lakebed_core::{
    Error, Result,
    change::{Application, ChangeFile, ChangeKind, ChangeSpan, ChangeTask, Claim, RowDelta, VersionDelta},
    expr::{Predicate, Scalar},
    file::{DataFile, DeleteFile},
    listing::{self, ListingColumns},
    scan::{ColumnMapping, MatchBy, Merge, ScanTask},
    table::ChangeFeed,
    timeline::{Details, Instant, State as Progress},
    version::{Millis, Span, Version, VersionId},
};
use serde_json::{Map, Value as Json};

use super::{
    entry::Entry,
    snapshot::BUCKET,
    stage::action_of,
    state::{Live, State},
    table::{History, version_of},
};

pub(super) fn instant(version: &Version, entry: &Entry) -> Instant {
    let rows = |files: &[DataFile]| files.iter().map(|it| it.stats.rows).sum::<Option<u64>>();
    let details = Details {
        files_added: Some(entry.added.len() as u64),
        files_removed: Some(entry.removed.len() as u64),
        rows_added: rows(&entry.added),
        bytes_added: Some(entry.added.iter().map(|it| it.bytes).sum()),
        read_version: entry.read_version.as_deref().map(VersionId::new),
        blind_append: Some(entry.blind),
        user_metadata: entry.user_metadata.clone(),
        metrics: entry.metrics.clone(),
        native: serde_json::to_value(entry).unwrap_or_default(),
        ..Details::default()
    };
    Instant {
        requested_at: Millis(entry.at),
        action: action_of(&entry.action),
        state: Progress::Completed { at: version.committed_at, version: Some(version.clone()) },
        native_action: entry.operation.clone(),
        details,
    }
}

/// What each version of `span` changed, oldest first.
pub(super) fn deltas(history: &History, span: &Span) -> Result<Vec<Result<VersionDelta>>> {
    let entries = history.span(span)?;
    Ok(entries.into_iter().map(|(before, version, entry)| delta(before, &version, entry)).collect())
}

fn delta(before: State, id: &str, entry: Entry) -> Result<VersionDelta> {
    let mut after = before.clone();
    after.apply(id, &entry)?;
    let claims = claims(&before, &entry);
    let rows = RowDelta {
        added: entry.added,
        added_deletes: entry.vectors,
        removed: entry.removed,
        removed_deletes: entry.removed_vectors,
        change_files: entry.change_files.into_iter().map(change_file).collect(),
    };
    Ok(VersionDelta {
        version: version_of(&after),
        write_id: Some(entry.write_id),
        applications: entry.application.into_iter().map(|(id, version)| Application { id, version }).collect(),
        action: action_of(&entry.action),
        native_action: entry.operation,
        rows,
        data_change: entry.data_change,
        blind_append: entry.blind,
        schema_changed: entry.schema.is_some() || !entry.properties.is_empty() || entry.layout.is_some(),
        protocol_changed: entry.features.iter().any(|it| !before.features.contains(it)),
        claims,
    })
}

fn change_file(it: super::entry::Changed) -> ChangeFile {
    ChangeFile { path: it.path, encoding: it.encoding, bytes: it.bytes, partition: it.partition }
}

/// The buckets that an entry wrote, in a table with key.
fn claims(before: &State, entry: &Entry) -> Vec<Claim> {
    let removed = before.files.iter().filter(|it| entry.removed.contains(&it.key())).map(|it| &it.file);
    let touched: BTreeSet<Claim> = entry.added.iter().chain(removed).filter_map(bucket_claim).collect();
    touched.into_iter().collect()
}

/// The claim of a write on the bucket that `file` lies in.
pub(super) fn bucket_claim(file: &DataFile) -> Option<Claim> {
    let bucket = file.native.get(BUCKET)?.parse().ok()?;
    Some(Claim::Bucket { partition: partition_json(file).to_string(), bucket })
}

/// The changed rows of a closed range of versions.
///
/// # Errors
/// `Unsupported` for tables with key: what a row was before an update is known only after merging.
pub(super) fn feed(history: &History, span: &ChangeSpan) -> Result<ChangeFeed> {
    let first = history.resolve(&span.first)?.version;
    let last = history.resolve(&span.last)?.version;
    let head = history.states(Some(last.id.as_str()))?.pop().expect("the version was resolved");
    if !head.placement.key.is_empty() {
        return Err(Error::unsupported("pond has no change feed of tables with key"));
    }
    let schema = head.schema();
    let columns = Arc::new(ColumnMapping {
        by: MatchBy::Name,
        schema: Arc::clone(&schema),
        row_id_column: None,
        row_version_column: None,
    });
    let entries = history.span(&Span { after: first.parent.clone(), until: span.last.clone() })?;
    let mut tasks = Vec::new();
    for (before, id, entry) in entries.into_iter().filter(|(_, _, entry)| entry.data_change) {
        let mut after = before.clone();
        after.apply(&id, &entry)?;
        let version = version_of(&after);
        for (task, kind) in changed(&before, &after, &entry, &columns) {
            tasks.push(Ok(ChangeTask { task, kind, version: version.clone() }));
        }
    }
    Ok(ChangeFeed { schema, tasks: stream::iter(tasks).boxed() })
}

fn changed(before: &State, after: &State, entry: &Entry, columns: &Arc<ColumnMapping>) -> Vec<(ScanTask, ChangeKind)> {
    let task = |file: DataFile, only: Option<DeleteFile>, deletes: Option<DeleteFile>| ScanTask {
        files: vec![file],
        deletes: deletes.into_iter().collect(),
        only: only.into_iter().collect(),
        merge: Merge::Concat,
        columns: Arc::clone(columns),
        residual: Predicate::True,
    };
    if !entry.change_files.is_empty() {
        let files = entry.change_files.iter().map(|it| DataFile {
            partition: it.partition.clone(),
            encoding: it.encoding,
            ..DataFile::parquet(it.path.clone(), it.bytes)
        });
        return files.map(|it| (task(it, None, None), ChangeKind::InColumn("_change_type".into()))).collect();
    }
    let mut found = Vec::new();
    for old in &before.files {
        match after.files.iter().find(|it| it.file.path == old.file.path) {
            None => found.push((task(old.file.clone(), None, old.vector.clone()), ChangeKind::Delete)),
            // A vector that grew takes rows away; one that shrank (a restore) gives them back.
            Some(new) if new.vector != old.vector => {
                let gone = (new.vector.clone(), old.vector.clone());
                if let (Some(newer), older) = gone.clone() {
                    found.push((task(old.file.clone(), Some(newer), older), ChangeKind::Delete));
                }
                if let (newer, Some(older)) = gone {
                    found.push((task(old.file.clone(), Some(older), newer), ChangeKind::Insert));
                }
            }
            Some(_) => (),
        }
    }
    let new = after.files.iter().filter(|it| !before.files.iter().any(|old| old.file.path == it.file.path));
    found.extend(new.map(|it| (task(it.file.clone(), None, it.vector.clone()), ChangeKind::Insert)));
    found
}

/// Live files as one batch with the listing's schema.
pub(super) fn listing(files: &[Live], columns: ListingColumns) -> Result<RecordBatch> {
    let int = |value: &dyn Fn(&Live) -> Option<u64>| -> ArrayRef {
        Arc::new(files.iter().map(|it| value(it).and_then(|it| i64::try_from(it).ok())).collect::<Int64Array>())
    };
    let text = |value: &dyn Fn(&Live) -> Option<String>| -> ArrayRef {
        Arc::new(files.iter().map(value).collect::<StringArray>())
    };
    let schema = listing::schema(columns);
    let column = |name: &str| match name {
        "path" => text(&|it| Some(it.file.path.as_str().to_owned())),
        "bytes" => int(&|it| Some(it.file.bytes)),
        "rows" => int(&Live::rows),
        "partition" => text(&|it| Some(partition_json(&it.file).to_string())),
        "format" => text(&|it| Some(format!("{:?}", it.file.encoding).to_lowercase())),
        "deletes" => int(&|it| it.vector.as_ref().map_or(Some(0), |it| it.rows)),
        "min" => text(&|it| bounds(&it.file, |stats| stats.lower.as_ref())),
        "max" => text(&|it| bounds(&it.file, |stats| stats.upper.as_ref())),
        _ => text(&|it| Some(it.added_in.clone())),
    };
    let arrays = schema.fields().iter().map(|it| column(it.name())).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(files.len()));
    RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
        .map_err(|it| Error::internal(it.to_string()))
}

fn partition_json(file: &DataFile) -> Json {
    let pair = |(name, value): &(String, Option<Scalar>)| (name.clone(), value.as_ref().map_or(Json::Null, json));
    Json::Object(file.partition.iter().map(pair).collect())
}

fn bounds(file: &DataFile, pick: impl Fn(&lakebed_core::file::ColumnStats) -> Option<&Scalar>) -> Option<String> {
    let known = file.stats.columns.iter().filter_map(|(name, stats)| Some((name.to_string(), json(pick(stats)?))));
    let known: Map<String, Json> = known.collect();
    (!known.is_empty()).then(|| Json::Object(known).to_string())
}

fn json(scalar: &Scalar) -> Json {
    match scalar {
        Scalar::Boolean(it) => (*it).into(),
        Scalar::Int(it) | Scalar::Timestamp(it) | Scalar::TimestampNanos(it) => (*it).into(),
        Scalar::Date(it) => (*it).into(),
        Scalar::Float(it) => (*it).into(),
        Scalar::Double(it) => (*it).into(),
        Scalar::Utf8(it) => it.clone().into(),
        Scalar::Binary(it) => it.clone().into(),
        Scalar::Decimal(unscaled, scale) => format!("{unscaled}e-{scale}").into(),
    }
}
