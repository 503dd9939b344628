//! The change data feed: which rows came and went in a closed range of versions.
//!
//! 1. The range is fixed; the feed must be on in its first version and stay on.
//! 2. A version with change files is read from them alone: each row says what became of it. Otherwise files added
//!    are rows inserted, files removed are rows deleted, where the action changes data at all.
//! 3. A file that only got another vector changed by the difference of the two: rows in the new one alone are deleted,
//!    rows in the old one alone are inserted again.
//! 4. Rows are read with the table's newest schema, as Spark does; with that of the range's last version under column
//!    mapping, as Spark does too, and where the table's schema was replaced since. A version whose schema cannot be read
//!    so, ends the feed with an error that names it.
//!
//! Spec: Delta PROTOCOL.md, "Change Data Files", "Reader Requirements for AddCDCFile".
use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Result,
    change::{ChangeKind, ChangeSpan, ChangeTask},
    expr::Predicate,
    file::{DataFile, DeleteFile},
    path::FilePath,
    scan::{ColumnMapping, Merge, ScanTask},
    storage::Storage,
    table::ChangeFeed,
    version::{AsOf, Version},
};

use crate::{
    changes::{
        dense,
        files::{self, Files},
    },
    error::{DeltaError, named_by},
    log::{Commit, Log, LogError},
    properties::Properties,
    schema::{Mapping, TableSchema, incompatible},
    spec::Metadata,
    state::{Head, State},
    table::DeltaTable,
    timeline::{
        number, resolve,
        times::{self, Clock, FileTimes},
        version_of,
    },
};

/// The column of a change file that says what became of a row.
const CHANGE_TYPE: &str = "_change_type";
/// Commits read ahead.
const AT_ONCE: usize = 8;

/// The changed rows of `span`, oldest version first.
///
/// # Errors
/// Invalid if the feed is off in a version of the range, or its schemas do not fit; not found if a version or its commit
/// is gone.
pub(crate) async fn read(table: &DeltaTable, span: &ChangeSpan) -> Result<ChangeFeed> {
    of_log(table.log(), span).await
}

async fn of_log(log: &Log, span: &ChangeSpan) -> Result<ChangeFeed> {
    let listing = log.listing().await?;
    let newest = listing.newest().unwrap_or(0);
    let (first, last) = (first_version(log, &span.first, newest).await?, last_version(log, &span.last, newest).await?);
    if first > last {
        return Err(DeltaError::ChangeFeedRange { first, last }.into());
    }
    let commits = dense(listing.commits().cloned(), first.checked_sub(1), last)?;
    let (start, end) = futures::try_join!(opened(log, first), opened(log, last))?;
    start.readable()?;
    end.readable()?;
    let (shown, schema) = shown(log, end, newest).await?;
    let rules = Rules {
        last: shown.version,
        schema: schema.clone(),
        files: Files::new(log.storage().policy().clone(), &start.protocol, &start.metadata),
    };
    rules.check(first, &start.protocol, &start.metadata)?;
    let reader = Reader {
        storage: log.storage().clone(),
        columns: Arc::new(schema.column_mapping(&shown.metadata.configuration)),
        clock: Clock::of(&shown.metadata),
        file_times: times::file_times(&listing),
    };
    let read_log = log.clone();
    let read = stream::iter(commits).map(move |it| {
        let log = read_log.clone();
        async move { log.read_commit(it.file.version).await }
    });
    let state = (read.buffered(AT_ONCE).boxed(), rules, reader);
    let tasks = stream::try_unfold(state, |(mut commits, mut rules, reader)| async move {
        let Some(commit) = commits.try_next().await? else { return Ok(None) };
        rules.follow(&commit)?;
        let tasks = reader.tasks(&commit, &rules.files).await?;
        Ok::<_, lakebed_core::Error>(Some((stream::iter(tasks.into_iter().map(Ok)), (commits, rules, reader))))
    });
    Ok(ChangeFeed { schema: schema.arrow, tasks: tasks.try_flatten().boxed() })
}

/// A state whose protocol and schema are those of the log.
async fn opened(log: &Log, version: u64) -> Result<State> {
    let state = State::open(log, Some(version)).await?;
    Ok(state.confirmed().await?.unwrap_or(state))
}

/// The state whose schema the rows are shown in, see point 4.
async fn shown(log: &Log, end: State, newest: u64) -> Result<(State, TableSchema)> {
    let of_end = TableSchema::of(&end.protocol, &end.metadata)?;
    if end.version == newest || of_end.mapping != Mapping::None {
        return Ok((end, of_end));
    }
    let head = opened(log, newest).await?;
    head.readable()?;
    let of_head = TableSchema::of(&head.protocol, &head.metadata)?;
    let same_names = of_head.mapping == Mapping::None;
    if same_names && incompatible(of_end.arrow.fields(), of_head.arrow.fields()).is_none() {
        return Ok((head, of_head));
    }
    Ok((end, of_end))
}

/// The first version of the range: for a moment, the first that was committed then or later.
async fn first_version(log: &Log, as_of: &AsOf, newest: u64) -> Result<u64> {
    let AsOf::Time(at) = as_of else { return last_version(log, as_of, newest).await };
    match resolve::resolve(&Head::new(log.clone()), as_of).await {
        Ok(found) => {
            let version = number(&found.version.id)?;
            Ok(if found.version.committed_at == *at { version } else { version + 1 })
        }
        Err(err) => match err.cause::<DeltaError>() {
            Some(DeltaError::TimeBeforeFirst { earliest, .. }) => Ok(*earliest),
            _ => Err(err),
        },
    }
}

async fn last_version(log: &Log, as_of: &AsOf, newest: u64) -> Result<u64> {
    match as_of {
        AsOf::Latest => Ok(newest),
        AsOf::Version(id) => match number(id)? {
            wanted if wanted > newest => Err(LogError::TooNew { wanted, newest }.into()),
            wanted => Ok(wanted),
        },
        AsOf::Time(_) | AsOf::Ref(_) => {
            Ok(number(&resolve::resolve(&Head::new(log.clone()), as_of).await?.version.id)?)
        }
    }
}

/// What must hold in every version of the range, and the schema its files are described with.
struct Rules {
    last: u64,
    schema: TableSchema,
    files: Files,
}

impl Rules {
    fn follow(&mut self, commit: &Commit) -> Result<()> {
        if let Some(protocol) = commit.protocol() {
            protocol.readable()?;
        }
        self.files.follow(commit);
        if let Some(metadata) = commit.metadata() {
            let protocol = self.files.protocol().clone();
            self.check(commit.version, &protocol, metadata)?;
        }
        Ok(())
    }

    fn check(&self, version: u64, protocol: &crate::spec::Protocol, metadata: &Metadata) -> Result<(), DeltaError> {
        if !Properties(&metadata.configuration).flag("delta.enableChangeDataFeed")? {
            return Err(DeltaError::ChangeFeedOff { version });
        }
        let schema = TableSchema::of(protocol, metadata)?;
        match incompatible(schema.arrow.fields(), self.schema.arrow.fields()) {
            Some(reason) => Err(DeltaError::ChangeFeedSchema { version, last: self.last, reason }),
            None => Ok(()),
        }
    }
}

struct Reader {
    storage: Storage,
    columns: Arc<ColumnMapping>,
    clock: Clock,
    file_times: FileTimes,
}

/// What became of one data file in a commit.
#[derive(Default)]
struct Fate {
    added: Option<FileAndVector>,
    removed: Option<FileAndVector>,
}

type FileAndVector = (DataFile, Option<DeleteFile>);

impl Reader {
    async fn tasks(&self, commit: &Commit, files: &Files) -> Result<Vec<ChangeTask>> {
        let version = self.version(commit)?;
        let mut tasks = Vec::new();
        for cdc in commit.cdc() {
            let path = files.policy().resolve_uri(&cdc.path)?;
            let mut file = DataFile::parquet(path, files::bytes(&cdc.path, cdc.size)?);
            files.check_named(&cdc.path, &cdc.partition_values)?;
            file.partition = files.partition(&cdc.path, &cdc.partition_values)?;
            let kind = ChangeKind::InColumn(CHANGE_TYPE.to_owned());
            tasks.push(self.task(&version, kind, file, None, None));
        }
        if !tasks.is_empty() {
            return Ok(tasks);
        }
        let fates =
            fates(commit, files).map_err(|it| named_by(it, &format!("the commit of version {}", commit.version)))?;
        for (_, fate) in fates {
            match (fate.added, fate.removed) {
                (Some((file, vector)), None) => tasks.push(self.task(&version, ChangeKind::Insert, file, None, vector)),
                (None, Some((file, vector))) => {
                    let file = self.measured(file).await?;
                    tasks.push(self.task(&version, ChangeKind::Delete, file, None, vector));
                }
                (Some((file, new)), Some((_, old))) => {
                    if new.as_ref().map(|it| &it.id) == old.as_ref().map(|it| &it.id) {
                        continue;
                    }
                    if new.is_some() {
                        tasks.push(self.task(&version, ChangeKind::Delete, file.clone(), new.clone(), old.clone()));
                    }
                    if old.is_some() {
                        tasks.push(self.task(&version, ChangeKind::Insert, file, old, new));
                    }
                }
                (None, None) => (),
            }
        }
        Ok(tasks)
    }

    fn version(&self, commit: &Commit) -> Result<Version, DeltaError> {
        let number = commit.version;
        let file_time = self.file_times.get(number);
        let stamp = commit.in_commit_timestamp().map(lakebed_core::version::Millis);
        let at = match self.clock {
            Clock::Stamps { since } if number >= since => {
                stamp.ok_or_else(|| DeltaError::NoCommitTime { file: crate::layout::commit_path(number), since })?
            }
            Clock::Stamps { .. } | Clock::Files => file_time.unwrap_or(lakebed_core::version::Millis(0)),
        };
        Ok(version_of(number, at))
    }

    /// Rows of `file` that `only` names (all without it) and `deletes` does not.
    fn task(
        &self,
        version: &Version,
        kind: ChangeKind,
        file: DataFile,
        only: Option<DeleteFile>,
        deletes: Option<DeleteFile>,
    ) -> ChangeTask {
        let task = ScanTask {
            files: vec![file],
            deletes: deletes.into_iter().collect(),
            only: only.into_iter().collect(),
            merge: Merge::Concat,
            columns: Arc::clone(&self.columns),
            residual: Predicate::True,
        };
        ChangeTask { task, kind, version: version.clone() }
    }

    /// The file with its size, asked of the store where the log left it out.
    async fn measured(&self, mut file: DataFile) -> Result<DataFile> {
        if let Some(path) = files::of_unknown_size(&file) {
            let found = self.storage.head(path).await?;
            let gone =
                || lakebed_core::Error::not_found(format!("{path} is gone: its deleted rows can no longer be read"));
            file.bytes = found.ok_or_else(gone)?.bytes;
        }
        Ok(file)
    }
}

/// Files that a commit adds and removes with their rows, each once.
fn fates(commit: &Commit, files: &Files) -> Result<BTreeMap<FilePath, Fate>> {
    let mut fates: BTreeMap<FilePath, Fate> = BTreeMap::new();
    for add in commit.adds().filter(|it| it.data_change) {
        files.check_named(&add.path, &add.partition_values)?;
        let added = files.added(add)?;
        let path = added.0.path.clone();
        fates.entry(path).or_default().added = Some(added);
    }
    for remove in commit.removes().filter(|it| it.data_change) {
        let path = files.policy().resolve_uri(&remove.path)?;
        let fate = fates.entry(path).or_default();
        // A remove beside an add only names the old vector; the add describes the file.
        fate.removed = Some(match &fate.added {
            Some((file, _)) => (file.clone(), files.vector_of(remove)?),
            None => {
                remove.partition_values.iter().try_for_each(|it| files.check_named(&remove.path, it))?;
                files.removed(remove)?
            }
        });
    }
    Ok(fates)
}

#[cfg(test)]
mod tests;
