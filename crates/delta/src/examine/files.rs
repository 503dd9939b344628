//! The newest state, and its files against one listing of the table.
use futures::{StreamExt, stream};
use lakebed_codec::parquet::ParquetObject;
use lakebed_core::{
    ErrorKind, Result,
    file::{DeleteFile, DeletePlace},
    path::FilePath,
    storage::{Found, Inventory},
    table::Level,
};

use super::{Report, ranges};
use crate::{
    checkpoint::files::FileStatistics,
    deletes, layout,
    log::{Listing, Log, can_do_without, is_damage},
    partition, properties,
    schema::{TableSchema, physical_name},
    spec::VersionChecksum,
    state::{ListBatch, State},
    stats::{StatsColumns, StatsPlan, num_records},
    timeline::resolve::candidates,
};

/// Vectors that are read and checked.
const MAX_VECTORS: usize = 10_000;
const VECTORS_AT_ONCE: usize = 16;
/// Data files whose footers are read.
const MAX_FOOTERS: usize = 100;
const FOOTERS_AT_ONCE: usize = 8;
pub(super) const ANEW: &str =
    "another writer of Delta can write the file's rows anew (`OPTIMIZE`), with true statistics";
const LINK: &str = "a symbolic link stands in its place, and links below a table are not followed";
const UNLINK: &str = "copy the file to where the link stands";
const LOST: &str = "put the file back from a backup; `lakebed log` shows which versions can still be read";

pub(super) async fn examine(log: &Log, listing: &Listing, report: &mut Report) -> Result<()> {
    let state = match State::open(log, None).await {
        Ok(state) => state.confirmed().await?.unwrap_or(state),
        Err(err) if is_damage(&err) => {
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
        Err(err) if is_damage(&err) => {
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
    footers(log, std::mem::take(&mut total.footers), report).await?;
    checksum(log, listing, &state, &total, report).await
}

/// Reads vectors, each once, as a reader of the table would.
async fn verify(log: &Log, vectors: Vec<DeleteFile>, report: &mut Report) -> Result<()> {
    let read = stream::iter(vectors).map(|it| async move { deletes::read(log.storage(), &it).await.err() });
    let mut read = read.buffered(VECTORS_AT_ONCE);
    while let Some(outcome) = read.next().await {
        match outcome {
            Some(err) if is_damage(&err) => {
                report.add("D023", Level::Error, "deletion vector", err.to_string(), LOST);
            }
            Some(err) => return Err(err),
            None => (),
        }
    }
    Ok(())
}

/// Opens data files as a reader of the table would, and compares the rows their footers count with the log's.
async fn footers(log: &Log, files: Vec<Footer>, report: &mut Report) -> Result<()> {
    let opened = stream::iter(files).map(|it| async move {
        let opened = ParquetObject::open(log.storage(), &it.path, it.bytes).await;
        (it, opened.map(|it| it.metadata().file_metadata().num_rows()))
    });
    let mut opened = opened.buffered(FOOTERS_AT_ONCE);
    while let Some((file, rows)) = opened.next().await {
        match (rows, file.rows) {
            (Ok(found), Some(told)) if u64::try_from(found) != Ok(told) => {
                let evidence = format!("numRecords is {told}, and the file has {found} rows");
                report.add("D012", Level::Error, file.path.as_str(), evidence, ANEW);
            }
            (Ok(_), _) => (),
            (Err(err), _) if can_do_without(&err) => {
                report.add("D024", Level::Error, file.path.as_str(), err.to_string(), LOST);
            }
            (Err(err), _) => return Err(err),
        }
    }
    Ok(())
}

/// A data file to open, and the rows the log counts in it.
#[derive(Debug)]
struct Footer {
    path: FilePath,
    bytes: u64,
    rows: Option<u64>,
}

/// The statistics of a batch, read whole.
struct Told<'a> {
    statistics: &'a FileStatistics,
    plan: StatsPlan,
    parsed: Option<StatsColumns>,
}

impl<'a> Told<'a> {
    fn of(schema: &TableSchema, statistics: &'a FileStatistics) -> Self {
        let plan = StatsPlan::of(schema, None);
        let parsed = match statistics {
            FileStatistics::Parsed(columns) => Some(StatsColumns::of(&plan, columns)),
            FileStatistics::Text(_) | FileStatistics::None => None,
        };
        Self { statistics, plan, parsed }
    }

    fn rows(&self, row: usize) -> Option<u64> {
        match self.statistics {
            FileStatistics::Text(text) => text.raw(row).and_then(num_records),
            _ => self.parsed.as_ref()?.rows(row),
        }
    }

    fn faults(&self, row: usize) -> Vec<String> {
        match (self.statistics, &self.parsed) {
            (FileStatistics::Text(text), _) => text.get(row).map(|it| self.plan.faults(&it)).unwrap_or_default(),
            (_, Some(parsed)) => parsed.faults(&self.plan, row),
            _ => Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
struct Total {
    files: i64,
    bytes: i64,
    /// Files that are there, up to [`MAX_FOOTERS`].
    footers: Vec<Footer>,
    /// Vectors whose bytes are there, up to [`MAX_VECTORS`].
    vectors: Vec<DeleteFile>,
}

async fn files(
    log: &Log,
    batch: &ListBatch,
    schema: Option<&TableSchema>,
    present: &mut Present,
    total: &mut Total,
    report: &mut Report,
) -> Result<()> {
    let files = batch.files();
    let policy = log.storage().policy();
    let partition: Vec<_> = schema.into_iter().flat_map(TableSchema::partition_fields).collect();
    let values: Vec<_> = partition.iter().map(|it| files.partition_values(physical_name(it))).collect();
    let statistics = batch.statistics(|_| true).await?;
    let told = schema.map(|it| Told::of(it, &statistics));
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
        match present.find(&path).await? {
            Some(Found::Nothing) => report.add("D008", Level::Error, path.as_str(), "the data file is missing", LOST),
            Some(Found::Link) => report.add("D008", Level::Error, path.as_str(), LINK, UNLINK),
            Some(Found::Object(found)) if u64::try_from(bytes) != Ok(found) => {
                let evidence = format!("{found} bytes long, {bytes} by the log");
                report.add("D017", Level::Error, path.as_str(), evidence, LOST);
            }
            Some(Found::Object(bytes)) if total.footers.len() < MAX_FOOTERS => {
                let rows = told.as_ref().and_then(|it| it.rows(row));
                total.footers.push(Footer { path: path.clone(), bytes, rows });
            }
            Some(Found::Object(_)) | None => (),
        }
        for evidence in told.iter().flat_map(|it| it.faults(row)) {
            report.add("D012", Level::Warn, path.as_str(), evidence, ANEW);
        }
        for (field, values) in partition.iter().zip(&values) {
            let text = values.get(row);
            if text.is_some_and(|it| partition::lacks_zone(field.data_type(), it)) {
                let evidence = format!("column `{}` is `{}`: taken as UTC", field.name(), text.unwrap_or_default());
                let fix = "harmless if the table was written in UTC; other readers may take it in their own zone";
                report.add("D021", Level::Info, path.as_str(), evidence, fix);
            }
            if let Err(err) = partition::of_row(path.as_str(), field, values, row) {
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

/// Whether the vector's bytes are there to be read.
async fn vector_file(vector: &DeleteFile, present: &mut Present, report: &mut Report) -> Result<bool> {
    let DeletePlace::Range { path, offset, length } = &vector.place else { return Ok(true) };
    let of = vector.targets.first().map_or("", FilePath::as_str);
    match present.find(path).await? {
        Some(Found::Nothing) => {
            report.add(
                "D009",
                Level::Error,
                path.as_str(),
                format!("the file with the deletion vector of {of} is missing"),
                LOST,
            );
        }
        Some(Found::Link) => report.add("D009", Level::Error, path.as_str(), LINK, UNLINK),
        Some(Found::Object(found)) if offset.saturating_add(*length) > found => {
            let evidence =
                format!("{found} bytes long; the deletion vector of {of} ends at {}", offset.saturating_add(*length));
            report.add("D009", Level::Error, path.as_str(), evidence, LOST);
        }
        Some(Found::Object(_)) => return Ok(true),
        None => (),
    }
    Ok(false)
}

/// What is there: below the root by one listing, elsewhere asked one by one.
struct Present(Inventory);

impl Present {
    async fn list(log: &Log) -> Result<Self> {
        Inventory::list(log.storage()).await.map(Self)
    }

    /// `None` outside the table, where this process may not look.
    async fn find(&mut self, file: &FilePath) -> Result<Option<Found>> {
        match self.0.find(file).await {
            Err(err) if err.kind() == ErrorKind::Refused => Ok(None),
            found => found.map(Some),
        }
    }
}

/// The newest version's checksum file against what was counted.
async fn checksum(log: &Log, listing: &Listing, state: &State, total: &Total, report: &mut Report) -> Result<()> {
    let path = layout::checksum_path(state.version);
    if listing.checksum(state.version).is_none() {
        return Ok(());
    }
    let fix = "remove the checksum file: readers do without";
    let mut warnings = Vec::new();
    let body = log.read_cache(&path, &mut warnings).await?;
    for evidence in warnings {
        report.add("D016", Level::Warn, path.clone(), evidence, fix);
    }
    let Some(body) = body else { return Ok(()) };
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
