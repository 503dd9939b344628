//! Checkpoints: the state of a version, so that older commits need not be read.
//!
//! 1. A checkpoint is one or more Parquet files, or a JSON file; a V2 checkpoint names sidecars that hold its files.
//! 2. Opening reads everything but the files: protocol, metadata, transactions, domains, sidecars ([`small`]).
//! 3. The list of files is read when first asked for, by the column, from all parts and sidecars at once ([`files`]);
//!    statistics only when a predicate or a listing names them.
//!
//! Whatever is wrong with a checkpoint is an error here and a warning one floor up, where an older base is taken.
//! Spec: Delta PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
pub(crate) mod files;
mod leaves;
mod small;

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_codec::parquet::ParquetObject;
use lakebed_core::{Error, Result, path::FilePath};
use tokio::sync::OnceCell;

use self::files::CheckpointBatch;
use crate::{
    layout::{self, CheckpointName, LogFileKind},
    log::{
        Log, LogError,
        actions::{self, ActionBatch, Piece, PieceKind, SmallActions},
        listing::{CheckpointFiles, Listed},
    },
    spec::{LastCheckpointV2, Sidecar},
    state::{columns::RemovedColumns, replay},
};

/// How many parts or sidecars are read at once.
const AT_ONCE: usize = 8;

/// An opened checkpoint.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub(crate) small: SmallActions,
    /// Of its first file, for errors.
    name: String,
    log: Log,
    /// Parquet files of the checkpoint itself.
    parts: Vec<Part>,
    /// The files a V2 checkpoint in JSON holds itself.
    json: Option<ActionBatch>,
    /// Sidecars by path and size; opened with the list of files.
    sidecars: Vec<(FilePath, u64)>,
    opened: OnceCell<Vec<Part>>,
    files: OnceCell<Arc<Vec<Arc<CheckpointBatch>>>>,
}

/// A Parquet file with file actions.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    name: String,
    object: ParquetObject,
}

impl Checkpoint {
    /// Opens the checkpoint that `files` make up.
    ///
    /// `hint` may name its small actions, and then a V2 checkpoint itself is not read.
    ///
    /// # Errors
    /// Corrupt when a part is damaged, or protocol or metadata are missing; not found when a part is gone.
    pub(crate) async fn open(log: &Log, files: &CheckpointFiles, hint: Option<&LastCheckpointV2>) -> Result<Self> {
        if let Some(known) = hint.filter(|it| names(it, files)).and_then(|it| small::from_hint(it, files.version)) {
            return Self::with(log, files.name(), known, Vec::new(), None);
        }
        if let [only] = &files.files[..]
            && matches!(only.file.kind, LogFileKind::Checkpoint(CheckpointName::Unique { json: true, .. }))
        {
            return Self::open_json(log, only).await;
        }
        let parts: Vec<_> = files.files.iter().map(|it| (FilePath::below(it.file.path()), it.bytes)).collect();
        let parts = open_all(log, parts).await?;
        let version = files.version;
        let read = stream::iter(parts.clone()).map(|it| small::read(it, version)).buffered(AT_ONCE);
        let mut small = SmallActions::default();
        for part in read.try_collect::<Vec<_>>().await? {
            small.extend(&part);
        }
        Self::with(log, files.name(), small, parts, None)
    }

    async fn open_json(log: &Log, file: &Listed) -> Result<Self> {
        let path = file.file.path();
        let body = log.read(&path).await?.ok_or_else(|| LogError::Vanished { file: path.clone() })?;
        let pieces = Piece::cut(file.file.version, &path, &body, PieceKind::Commit);
        let mut batch = on_a_thread(body.len(), move || actions::parse(&pieces)).await?;
        if batch.small.repeated {
            let rule = "a checkpoint has two actions of one kind".to_owned();
            return Err(LogError::BadFile { file: path, rule }.into());
        }
        batch.adds.added_in = None;
        let small = batch.small.clone();
        Self::with(log, file.file.to_string(), small, Vec::new(), Some(batch))
    }

    fn with(log: &Log, name: String, small: SmallActions, parts: Vec<Part>, json: Option<ActionBatch>) -> Result<Self> {
        let mut sidecars: Vec<(FilePath, u64)> = Vec::new();
        let mut seen = HashMap::new();
        for sidecar in &small.sidecars {
            let (path, bytes) = sidecar_file(sidecar)?;
            // Named twice it is still one file.
            match seen.insert(path.as_str().to_owned(), bytes) {
                None => sidecars.push((path, bytes)),
                Some(before) if before == bytes => (),
                Some(_) => {
                    let rule = "a sidecar is named twice, with two sizes".to_owned();
                    return Err(LogError::BadFile { file: path.as_str().to_owned(), rule }.into());
                }
            }
        }
        if sidecars.is_empty()
            && let Some(part) = parts.iter().find(|it| !it.has_files())
        {
            return Err(part.bad("the column `add.path` is missing"));
        }
        let this = Self {
            small,
            name,
            log: log.clone(),
            parts,
            json,
            sidecars,
            opened: OnceCell::new(),
            files: OnceCell::new(),
        };
        Ok(this)
    }

    /// What its sidecars weigh, which no listing of the log shows.
    pub(crate) fn sidecar_bytes(&self) -> u64 {
        self.sidecars.iter().map(|it| it.1).fold(0, u64::saturating_add)
    }

    /// Its sidecars.
    pub(crate) fn sidecars(&self) -> impl Iterator<Item = &FilePath> {
        self.sidecars.iter().map(|it| &it.0)
    }

    /// How many actions it has, where its own Parquet files hold them all.
    pub(crate) fn rows(&self) -> Option<u64> {
        let rows = self.parts.iter().map(|it| u64::try_from(it.object.metadata().file_metadata().num_rows()).ok());
        rows.sum::<Option<u64>>().filter(|_| self.sidecars.is_empty() && self.json.is_none())
    }

    /// The removed files that the checkpoint still names.
    pub(crate) async fn removed(&self) -> Result<Vec<RemovedColumns>> {
        // Opens the sidecars.
        self.file_parts().await?;
        let parts: Vec<Part> = self.parts.iter().chain(self.opened.get().into_iter().flatten()).cloned().collect();
        let mut removed = stream::iter(parts).map(files::read_removed).buffered(AT_ONCE).try_concat().await?;
        removed.extend(self.json.as_ref().map(|it| it.removes.clone()));
        Ok(removed)
    }

    /// The files of the checkpoint, columns without statistics. Read once.
    pub(crate) async fn files(&self, partitioned: bool) -> Result<Arc<Vec<Arc<CheckpointBatch>>>> {
        let files = self.files.get_or_try_init(|| self.read_files(partitioned)).await?;
        Ok(Arc::clone(files))
    }

    async fn read_files(&self, partitioned: bool) -> Result<Arc<Vec<Arc<CheckpointBatch>>>> {
        let parts = self.file_parts().await?;
        let read = stream::iter(parts.into_iter().map(|it| files::read(it, partitioned))).buffered(AT_ONCE);
        let mut batches: Vec<CheckpointBatch> = read.try_concat().await?;
        batches.extend(self.json.as_ref().map(|it| CheckpointBatch::of_json(it.adds.clone())));
        let batches: Arc<Vec<Arc<CheckpointBatch>>> = Arc::new(batches.into_iter().map(Arc::new).collect());
        self.check_distinct(Arc::clone(&batches)).await?;
        Ok(batches)
    }

    /// A checkpoint is reconciled: a file that stands in it twice would be read twice.
    async fn check_distinct(&self, batches: Arc<Vec<Arc<CheckpointBatch>>>) -> Result<()> {
        // Hashing one path takes about as long as parsing this much.
        const BYTES_A_FILE: usize = 32;
        let rows: usize = batches.iter().map(|it| it.files.rows()).sum();
        let policy = self.log.storage().policy().clone();
        let (name, bytes) = (self.name.clone(), rows.saturating_mul(BYTES_A_FILE));
        on_a_thread(bytes, move || match replay::named_twice(&policy, batches.iter().map(|it| &it.files)) {
            None => Ok(()),
            Some(path) => Err(LogError::BadFile { file: name, rule: format!("it has {path} twice") }.into()),
        })
        .await
    }

    /// Every Parquet file that may hold files, the sidecars opened.
    async fn file_parts(&self) -> Result<Vec<Part>> {
        let opened = self.opened.get_or_try_init(|| async {
            let opened = open_all(&self.log, self.sidecars.clone()).await?;
            match opened.iter().find(|it| !it.has_files()) {
                Some(part) => Err(part.bad("the column `add.path` is missing")),
                None => Ok(opened),
            }
        });
        let opened = opened.await?;
        Ok(self.parts.iter().filter(|it| it.has_files()).chain(opened).cloned().collect())
    }
}

impl Part {
    async fn open(log: &Log, file: FilePath, bytes: u64) -> Result<Self> {
        let name = file.as_str().to_owned();
        let object = ParquetObject::open(log.storage(), &file, bytes).await?;
        Ok(Self { name, object })
    }

    fn has_files(&self) -> bool {
        leaves::find(self.object.metadata(), &["add", "path"]).is_some()
    }

    fn bad(&self, rule: impl Into<String>) -> Error {
        LogError::BadFile { file: self.name.clone(), rule: rule.into() }.into()
    }
}

async fn open_all(log: &Log, files: Vec<(FilePath, u64)>) -> Result<Vec<Part>> {
    stream::iter(files).map(|(path, bytes)| Part::open(log, path, bytes)).buffered(AT_ONCE).try_collect().await
}

/// Where a sidecar lies: always in `_sidecars/`, by the last segment of its path, decoded once.
fn sidecar_file(sidecar: &Sidecar) -> Result<(FilePath, u64)> {
    let bad = |rule: &str| LogError::BadFile { file: sidecar.path.clone(), rule: rule.to_owned() };
    let name = sidecar.path.rsplit('/').next().unwrap_or_default();
    let name =
        percent_encoding::percent_decode_str(name).decode_utf8().map_err(|_| bad("a sidecar's name is no UTF-8"))?;
    if name.is_empty() || name.contains(['/', '\\', '\0']) || name == ".." || name == "." {
        return Err(bad("a sidecar's path does not end in a file name").into());
    }
    let bytes = u64::try_from(sidecar.size_in_bytes).map_err(|_| bad("the size of a sidecar is negative"))?;
    Ok((FilePath::below(format!("{}/{name}", layout::SIDECARS)), bytes))
}

/// Whether the hint speaks of this very checkpoint, as it lies there.
fn names(hint: &LastCheckpointV2, files: &CheckpointFiles) -> bool {
    let last = hint.path.rsplit('/').next();
    let same_size = |bytes| hint.size_in_bytes.is_none_or(|it| u64::try_from(it) == Ok(bytes));
    matches!(&files.files[..], [only] if last == Some(&only.file.to_string()) && same_size(only.bytes))
}

/// Runs work over `bytes` bytes: here when it is little, on a thread for such work when it is not.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    const LITTLE: usize = 64 << 10;
    if bytes <= LITTLE || tokio::runtime::Handle::try_current().is_err() {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|err| Err(Error::internal(format!("a decoding thread ended early: {err}"))))
}
