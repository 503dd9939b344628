//! Which files are live, by the column.
//!
//! 1. Commits give batches of added and removed files ([`crate::log::actions`]), a checkpoint batches of live ones
//!    ([`crate::checkpoint`]).
//! 2. Newest commit first, the first mention of a key (canonical path, vector id) decides ([`replay`]). Only keys of
//!    commits are remembered: a checkpoint's own rows are looked up, not stored.
//!
//! Spec: Delta PROTOCOL.md, "Action Reconciliation".
pub(crate) mod columns;
pub(crate) mod key;
pub(crate) mod replay;

mod base;
mod commits;
mod first;
mod head;
mod list;
mod open;
mod times;
mod tombstones;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use lakebed_core::{Error, Result, version::Millis};
use tokio::sync::OnceCell;

pub(crate) use self::{
    first::BEFORE_FIRST_ID,
    head::Head,
    list::{FileList, ListBatch},
    tombstones::Tombstones,
};
use crate::{
    checkpoint::Checkpoint,
    error::DeltaError,
    layout::{self, LogFileKind},
    log::{
        Listing, Log, LogError,
        actions::{ActionBatch, SmallActions},
        can_do_without, is_damage,
        listing::CheckpointFiles,
        segment::{Compacted, Segment},
    },
    spec::{DomainMetadata, LastCheckpoint, Metadata, Protocol, Txn},
};

/// The state of a table at one version: loaded as far as it was asked for, never changed.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) version: u64,
    /// When the version became visible.
    pub(crate) committed_at: Millis,
    pub(crate) protocol: Protocol,
    pub(crate) metadata: Metadata,
    /// The newest version of each application; `None` where only a checksum file was read and does not say.
    pub(crate) txns: Option<BTreeMap<String, Txn>>,
    /// Domains that were not removed; `None` as above.
    pub(crate) domains: Option<BTreeMap<String, DomainMetadata>>,
    /// The files a checksum file counts, where protocol and metadata are its, too, and not yet compared with the log's.
    counted: Option<i64>,
    hint: Option<LastCheckpoint>,
    /// What the log's listing showed from the base on; a later refresh compares with it.
    listing: Listing,
    base: OnceCell<Arc<Base>>,
    /// And the base they were read from: not the first if that was damaged.
    files: OnceCell<(Arc<FileList>, Arc<Base>)>,
    warnings: Mutex<Vec<String>>,
}

/// What a version is rebuilt from, read.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) segment: Segment,
    pub(crate) checkpoint: Option<Arc<Checkpoint>>,
    /// Commits after the checkpoint, oldest first.
    pub(crate) commits: Vec<Arc<ActionBatch>>,
    /// How many files the checkpoint must have, where something says so.
    pub(crate) expected: Option<Expected>,
}

/// How many files a checkpoint has according to `source`.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) files: u64,
    pub(crate) source: String,
}

impl Base {
    /// Everything but files, newest last.
    fn small(&self) -> SmallActions {
        let mut small = self.checkpoint.as_ref().map(|it| it.small.clone()).unwrap_or_default();
        for batch in &self.commits {
            small.extend(&batch.small);
        }
        small
    }
}

impl State {
    /// What was found wrong on the way and did no harm.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().map_or_else(|it| it.into_inner().clone(), |it| it.clone())
    }

    fn warn(&self, warning: String) {
        tracing::warn!(table = self.log.storage().location(), "{warning}");
        if let Ok(mut warnings) = self.warnings.lock() {
            warnings.push(warning);
        }
    }

    /// What is read for the files at most, in bytes of log: checkpoints with their sidecars, and commits after them.
    fn log_bytes(&self) -> u64 {
        let of_base = self.base.get().and_then(|it| it.checkpoint.as_ref()).map_or(0, |it| it.sidecar_bytes());
        self.listing.files.iter().map(|it| it.bytes).fold(of_base, u64::saturating_add)
    }

    /// The live files. Read once.
    ///
    /// A checkpoint that turns out to be damaged is left for an older base.
    pub(crate) async fn files(&self) -> Result<Arc<FileList>> {
        let (files, _) = self.files.get_or_try_init(|| self.read_files()).await?;
        Ok(Arc::clone(files))
    }

    /// The live files as the log makes them without `checkpoint`; damage where it no longer goes back that far.
    pub(crate) async fn files_without(&self, checkpoint: &CheckpointFiles) -> Result<FileList> {
        let base = self.read_base(BTreeSet::from([checkpoint.name()]), Compacted::Use).await?;
        FileList::read(&self.log, &base, !self.metadata.partition_columns.is_empty()).await
    }

    /// The removals that stand: of files that no live one has come after. Read anew each time.
    pub(crate) async fn tombstones(&self) -> Result<Tombstones> {
        let (_, base) = self.files.get_or_try_init(|| self.read_files()).await?;
        Tombstones::read(&self.log, base).await
    }

    /// What the log's listing showed from the base on.
    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// The checkpoint that the files were read from, and its own files in the log.
    pub(crate) async fn checkpoint(&self) -> Result<Option<(Arc<Checkpoint>, CheckpointFiles)>> {
        let (_, base) = self.files.get_or_try_init(|| self.read_files()).await?;
        Ok(base.checkpoint.clone().zip(base.segment.checkpoint.clone()))
    }

    /// The metadata domains that stand; read from the log where a checksum file did not tell.
    pub(crate) async fn domains(&self) -> Result<BTreeMap<String, DomainMetadata>> {
        if let Some(domains) = &self.domains {
            return Ok(domains.clone());
        }
        let base = self.base.get_or_try_init(|| self.read_first()).await?;
        Ok(reconcile(&base.small()).1)
    }

    /// The newest version of each application, by its id; read from the log where a checksum file did not tell.
    pub(crate) async fn txns(&self) -> Result<BTreeMap<String, Txn>> {
        if let Some(txns) = &self.txns {
            return Ok(txns.clone());
        }
        let base = self.base.get_or_try_init(|| self.read_first()).await?;
        Ok(reconcile(&base.small()).0)
    }

    /// Whether the rows can be read.
    pub(crate) fn readable(&self) -> Result<(), DeltaError> {
        self.protocol.readable_with(&self.metadata.configuration)
    }

    /// This state as the log has it, if a checksum file gave other protocol or metadata; `None` where all is well.
    ///
    /// A log that cannot be read leaves them as they are: they are good for looking, and [`Self::files`] fails.
    pub(crate) async fn confirmed(&self) -> Result<Option<Self>> {
        if self.counted.is_none() {
            return Ok(None);
        }
        match self.base.get_or_try_init(|| self.read_first()).await {
            Ok(base) => match self.differs(base) {
                Some(what) => self.of_log(Arc::clone(base), what).await.map(Some),
                None => Ok(None),
            },
            Err(err) if is_damage(&err) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Which action of a checksum file is not the log's.
    fn differs(&self, base: &Base) -> Option<&'static str> {
        self.counted?;
        let small = base.small();
        let (protocol, metadata) = (small.protocol?, small.metadata?);
        if !protocol.says_the_same(&self.protocol) {
            Some("protocol")
        } else if !metadata.says_the_same(&self.metadata) {
            Some("metaData")
        } else {
            None
        }
    }

    async fn read_files(&self) -> Result<(Arc<FileList>, Arc<Base>)> {
        let (mut avoid, mut compacted) = (BTreeSet::new(), Compacted::Use);
        let mut base = Arc::clone(self.base.get_or_try_init(|| self.read_first()).await?);
        if let Some(what) = self.differs(&base) {
            let rule = format!("its {what} is not the log's");
            return Err(LogError::BadFile { file: layout::checksum_path(self.version), rule }.into());
        }
        loop {
            let read = FileList::read(&self.log, &base, !self.metadata.partition_columns.is_empty()).await;
            let err = match read {
                Ok(list) => match self.miscounted(&list) {
                    None => return Ok((Arc::new(list), base)),
                    Some(miscounted) if compacted == Compacted::Use && has_compacted(&base) => {
                        self.warn(format!("compacted files are not used: {miscounted}"));
                        compacted = Compacted::Avoid;
                        base = self
                            .read_base(avoid.clone(), compacted)
                            .await
                            .map_err(|it| base::because(it, miscounted))?;
                        continue;
                    }
                    // A checkpoint that another count vouches for is right, and so are the commits.
                    Some(miscounted) if base.segment.checkpoint.is_none() || base.expected.is_some() => {
                        self.warn(format!("{miscounted}: ignored"));
                        return Ok((Arc::new(list), base));
                    }
                    Some(miscounted) => miscounted,
                },
                Err(err) => err,
            };
            let Some(checkpoint) = base.segment.checkpoint.as_ref().filter(|_| can_do_without(&err)) else {
                return Err(err);
            };
            self.warn(format!("checkpoint {} is not used: {err}", checkpoint.version));
            avoid.insert(checkpoint.name());
            base = self.read_base(avoid.clone(), compacted).await.map_err(|it| base::because(it, err))?;
        }
    }

    /// What is wrong when the checksum file of this very version counts other files.
    fn miscounted(&self, list: &FileList) -> Option<Error> {
        let counted = self.counted.filter(|it| u64::try_from(*it) != Ok(list.count()))?;
        let rule = format!("it counts {counted} files, and {} were found", list.count());
        Some(LogError::BadFile { file: layout::checksum_path(self.version), rule }.into())
    }

    async fn read_first(&self) -> Result<Arc<Base>> {
        self.read_base(BTreeSet::new(), Compacted::Use).await
    }

    async fn read_base(&self, avoid: BTreeSet<String>, compacted: Compacted) -> Result<Arc<Base>> {
        let mut warnings = Vec::new();
        let mut finder = base::Finder::new(&self.log, self.listing.clone(), self.version, self.hint.as_ref());
        finder.avoid = avoid;
        finder.compacted = compacted;
        let base = finder.load(&mut warnings).await;
        warnings.into_iter().for_each(|it| self.warn(it));
        base.map(Arc::new)
    }
}

fn has_compacted(base: &Base) -> bool {
    base.segment.commits.iter().any(|it| matches!(it.file.kind, LogFileKind::Compacted { .. }))
}

/// The newest of each application, and the domains that stand.
fn reconcile(small: &SmallActions) -> (BTreeMap<String, Txn>, BTreeMap<String, DomainMetadata>) {
    let txns = small.txns.iter().map(|it| (it.app_id.clone(), it.clone())).collect();
    let mut domains: BTreeMap<String, DomainMetadata> =
        small.domains.iter().map(|it| (it.domain.clone(), it.clone())).collect();
    domains.retain(|_, it| !it.removed);
    (txns, domains)
}

fn required<T>(action: Option<T>, version: u64, name: &'static str) -> Result<T> {
    action.ok_or_else(|| LogError::NoAction { version, action: name }.into())
}
