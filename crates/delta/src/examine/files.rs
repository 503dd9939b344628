//! The newest state, and its files against one listing of the table.
use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    ErrorKind, Result,
    file::{DeleteFile, DeletePlace},
    path::FilePath,
    table::Level,
};

use super::{Report, ranges};
use crate::{
    deletes, layout,
    log::{Listing, Log},
    partition, properties,
    schema::{TableSchema, physical_name},
    spec::VersionChecksum,
    state::{ListBatch, State},
    timeline::{resolve::candidates, times},
};

/// Vectors that are read and checked.
const MAX_VECTORS: usize = 10_000;
const VECTORS_AT_ONCE: usize = 16;
const LOST: &str = "put the file back from a backup; `lakebed log` shows which versions can still be read";

pub(super) async fn examine(log: &Log, listing: &Listing, report: &mut Report) -> Result<()> {
    let state = match State::open(log, None).await {
        Ok(state) => state.confirmed().await?.unwrap_or(state),
        Err(err) if times::is_damage(&err) => {
            let readable = ranges(candidates(listing).iter().map(|it| it.file.version));
            let newest = listing.newest().unwrap_or(0);
            let fix = format!("versions that can still be read: {readable}");
            report.add("D019", Level::Error, format!("version {newest}"), err.to_string(), &fix);
            return Ok(());
        }
        Err(err) => return Err(err),
    };
    let object = format!("version {}", state.version);
    if let Err(err) = state.readable() {
        let fix = "read its rows with an engine that has these features";
        report.add("D006", Level::Error, object.clone(), err.to_string(), fix);
    }
    let schema = match TableSchema::of(&state.protocol, &state.metadata) {
        Ok(schema) => Some(schema),
        Err(err) => {
            report.add(
                "D007",
                Level::Error,
                object.clone(),
                err.to_string(),
                "read its rows with an engine that has these types",
            );
            None
        }
    };
    for (fault, about) in properties::faults(&state.metadata.configuration) {
        let fix = format!("set it with another writer of Delta to a value that fits: {about}");
        report.add("D022", Level::Warn, object.clone(), fault.to_string(), &fix);
    }
    let list = match state.files().await {
        Ok(list) => list,
        Err(err) if times::is_damage(&err) => {
            report.add(
                "D019",
                Level::Error,
                object,
                err.to_string(),
                "`lakebed log` shows which versions can still be read",
            );
            return Ok(());
        }
        Err(err) => return Err(err),
    };
    for warning in state.warnings() {
        report.add(
            "D003",
            Level::Warn,
            object.clone(),
            warning,
            "readers do without; the next checkpoint of whoever writes the table replaces it",
        );
    }
    let mut present = Present::list(log).await?;
    let mut total = Total::default();
    for batch in &list.batches {
        files(log, batch, schema.as_ref(), &mut present, &mut total, report).await?;
    }
    verify(log, std::mem::take(&mut total.vectors), report).await?;
    checksum(log, listing, &state, &total, report).await
}

/// Reads vectors, each once, as a reader of the table would.
async fn verify(log: &Log, vectors: Vec<DeleteFile>, report: &mut Report) -> Result<()> {
    let read = stream::iter(vectors).map(|it| async move { deletes::read(log.storage(), &it).await.err() });
    let mut read = read.buffered(VECTORS_AT_ONCE);
    while let Some(outcome) = read.next().await {
        match outcome {
            Some(err) if times::is_damage(&err) => {
                report.add("D023", Level::Error, "deletion vector", err.to_string(), LOST);
            }
            Some(err) => return Err(err),
            None => (),
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Total {
    files: i64,
    bytes: i64,
    /// Vectors whose bytes are there, up to [`MAX_VECTORS`].
    vectors: Vec<DeleteFile>,
}

async fn files(
    log: &Log,
    batch: &ListBatch,
    schema: Option<&TableSchema>,
    present: &mut Present<'_>,
    total: &mut Total,
    report: &mut Report,
) -> Result<()> {
    let files = batch.files();
    let policy = log.storage().policy();
    let partition: Vec<_> = schema.into_iter().flat_map(TableSchema::partition_fields).collect();
    let values: Vec<_> = partition.iter().map(|it| files.partition_values(physical_name(it))).collect();
    for row in batch.live_rows() {
        let (raw, bytes) = (files.path.value(row), files.bytes.value(row));
        total.files += 1;
        total.bytes = total.bytes.saturating_add(bytes);
        let path = match policy.resolve_uri(raw) {
            Ok(path) => path,
            Err(err) => {
                report.add(
                    "D010",
                    Level::Error,
                    raw.escape_debug().to_string(),
                    err.to_string(),
                    "allow the place if the table is a clone; else remove the file from the table",
                );
                continue;
            }
        };
        match present.bytes(&path).await? {
            Found::Missing => report.add("D008", Level::Error, path.as_str(), "the data file is missing", LOST),
            Found::Bytes(found) if u64::try_from(bytes) != Ok(found) => {
                let evidence = format!("{found} bytes long, {bytes} by the log");
                report.add("D017", Level::Error, path.as_str(), evidence, LOST);
            }
            Found::Bytes(_) | Found::Unasked => (),
        }
        for (field, values) in partition.iter().zip(&values) {
            let text = text_at(values, row);
            if text.is_some_and(|it| partition::lacks_zone(field.data_type(), it)) {
                let evidence = format!("column `{}` is `{}`: taken as UTC", field.name(), text.unwrap_or_default());
                let fix = "harmless if the table was written in UTC; other readers may take it in their own zone";
                report.add("D021", Level::Info, path.as_str(), evidence, fix);
            }
            if let Err(err) = partition::parse(path.as_str(), field, text) {
                report.add(
                    "D020",
                    Level::Error,
                    path.as_str(),
                    err.to_string(),
                    "mend the log from a backup, or delete the file's rows by their other columns with another writer of Delta",
                );
            }
        }
        if let Some(vector) = files.vector(row) {
            match vector.delete_file(&path, policy) {
                Ok(vector) => {
                    if vector_file(&vector, present, report).await? && total.vectors.len() < MAX_VECTORS {
                        total.vectors.push(vector);
                    }
                }
                Err(err) => report.add("D009", Level::Error, path.as_str(), err.to_string(), LOST),
            }
        }
    }
    Ok(())
}

fn text_at(values: &arrow_array::ArrayRef, row: usize) -> Option<&str> {
    use arrow_array::{Array, cast::AsArray};
    let values = values.as_string_view_opt()?;
    values.is_valid(row).then(|| values.value(row))
}

/// Whether the vector's bytes are there to be read.
async fn vector_file(vector: &DeleteFile, present: &mut Present<'_>, report: &mut Report) -> Result<bool> {
    let DeletePlace::Range { path, offset, length } = &vector.place else { return Ok(true) };
    let of = vector.targets.first().map_or("", FilePath::as_str);
    match present.bytes(path).await? {
        Found::Missing => {
            report.add(
                "D009",
                Level::Error,
                path.as_str(),
                format!("the file with the deletion vector of {of} is missing"),
                LOST,
            );
        }
        Found::Bytes(found) if offset.saturating_add(*length) > found => {
            let evidence =
                format!("{found} bytes long; the deletion vector of {of} ends at {}", offset.saturating_add(*length));
            report.add("D009", Level::Error, path.as_str(), evidence, LOST);
        }
        Found::Bytes(_) => return Ok(true),
        Found::Unasked => (),
    }
    Ok(false)
}

enum Found {
    Bytes(u64),
    Missing,
    /// Outside the table, where this process may not look.
    Unasked,
}

/// What is there: below the root by one listing, elsewhere asked one by one.
struct Present<'a> {
    log: &'a Log,
    below: HashMap<String, u64>,
}

impl<'a> Present<'a> {
    async fn list(log: &'a Log) -> Result<Self> {
        let objects = log.storage().list_all("").map_ok(|it| (it.path, it.bytes));
        Ok(Self { log, below: objects.try_collect().await? })
    }

    async fn bytes(&mut self, file: &FilePath) -> Result<Found> {
        match file {
            FilePath::Below(path) => Ok(self.below.get(path.as_ref()).map_or(Found::Missing, |it| Found::Bytes(*it))),
            FilePath::Outside(_) => match self.log.storage().head(file).await {
                Ok(found) => Ok(found.map_or(Found::Missing, |it| Found::Bytes(it.bytes))),
                Err(err) if err.kind() == ErrorKind::Refused => Ok(Found::Unasked),
                Err(err) => Err(err),
            },
        }
    }
}

/// The newest version's checksum file against what was counted.
async fn checksum(log: &Log, listing: &Listing, state: &State, total: &Total, report: &mut Report) -> Result<()> {
    let path = layout::checksum_path(state.version);
    if listing.checksum(state.version).is_none() {
        return Ok(());
    }
    let Some(body) = log.read(&path).await? else { return Ok(()) };
    let fix = "remove the checksum file: readers do without";
    match serde_json::from_slice::<VersionChecksum>(&body) {
        Err(err) => report.add("D016", Level::Warn, path, format!("damaged ({err}): ignored"), fix),
        Ok(sum) if !sum.protocol.says_the_same(&state.protocol) => {
            report.add("D016", Level::Warn, path, "its protocol is not the log's: the log's is used", fix);
        }
        Ok(sum) if !sum.metadata.says_the_same(&state.metadata) => {
            report.add("D016", Level::Warn, path, "its metaData is not the log's: the log's is used", fix);
        }
        Ok(sum) if (sum.num_files, sum.table_size_bytes) != (total.files, total.bytes) => {
            let evidence = format!(
                "says {} files of {} bytes; the log has {} of {}",
                sum.num_files, sum.table_size_bytes, total.files, total.bytes
            );
            report.add("D016", Level::Warn, path, evidence, fix);
        }
        Ok(_) => (),
    }
    Ok(())
}
