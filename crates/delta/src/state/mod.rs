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
mod list;
mod open;
mod times;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use lakebed_core::{Result, version::Millis};
use tokio::sync::OnceCell;

pub(crate) use self::list::{FileList, ListBatch};
use crate::{
    checkpoint::Checkpoint,
    log::{
        Listing, Log, LogError,
        actions::{ActionBatch, SmallActions},
        segment::Segment,
    },
    spec::{DomainMetadata, Metadata, Protocol, Txn},
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
    /// What the log's listing showed from the base on; a later refresh compares with it.
    listing: Listing,
    base: OnceCell<Arc<Base>>,
    files: OnceCell<Arc<FileList>>,
    warnings: Mutex<Vec<String>>,
}

/// What a version is rebuilt from, read.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) segment: Segment,
    pub(crate) checkpoint: Option<Arc<Checkpoint>>,
    /// Commits after the checkpoint, oldest first.
    pub(crate) commits: Vec<Arc<ActionBatch>>,
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

    /// The live files. Read once.
    ///
    /// A checkpoint that turns out to be damaged is left for an older base.
    pub(crate) async fn files(&self) -> Result<Arc<FileList>> {
        let files = self.files.get_or_try_init(|| self.read_files()).await?;
        Ok(Arc::clone(files))
    }

    /// The metadata domains that stand; read from the log where a checksum file did not tell.
    pub(crate) async fn domains(&self) -> Result<BTreeMap<String, DomainMetadata>> {
        if let Some(domains) = &self.domains {
            return Ok(domains.clone());
        }
        let base = self.base.get_or_try_init(|| self.read_base(BTreeSet::new())).await?;
        Ok(reconcile(&base.small()).1)
    }

    /// The newest version of each application, by its id; read from the log where a checksum file did not tell.
    pub(crate) async fn txns(&self) -> Result<BTreeMap<String, Txn>> {
        if let Some(txns) = &self.txns {
            return Ok(txns.clone());
        }
        let base = self.base.get_or_try_init(|| self.read_base(BTreeSet::new())).await?;
        Ok(reconcile(&base.small()).0)
    }

    async fn read_files(&self) -> Result<Arc<FileList>> {
        let mut avoid = BTreeSet::new();
        let mut base = Arc::clone(self.base.get_or_try_init(|| self.read_base(BTreeSet::new())).await?);
        loop {
            let read = FileList::read(&self.log, &base, !self.metadata.partition_columns.is_empty()).await;
            let err = match read {
                Ok(list) => return Ok(Arc::new(list)),
                Err(err) => err,
            };
            let Some(checkpoint) = base.segment.checkpoint.as_ref().filter(|_| base::is_damage(&err)) else {
                return Err(err);
            };
            self.warn(format!("checkpoint {} is not used: {err}", checkpoint.version));
            avoid.insert(checkpoint.name());
            base = self.read_base(avoid.clone()).await.map_err(|it| base::because(it, err))?;
        }
    }

    async fn read_base(&self, avoid: BTreeSet<String>) -> Result<Arc<Base>> {
        let mut warnings = Vec::new();
        let mut finder = base::Finder::new(&self.log, self.listing.clone(), self.version, None);
        finder.avoid = avoid;
        let base = finder.load(&mut warnings).await;
        warnings.into_iter().for_each(|it| self.warn(it));
        base.map(Arc::new)
    }
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
