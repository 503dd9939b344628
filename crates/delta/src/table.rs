//! The handle to a Delta table.
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, Result,
    change::{ChangeSpan, VersionDelta},
    format::{FormatKind, TableLocation},
    maintain::Retain,
    path::FilePath,
    storage::Storage,
    table::{ChangeFeed, Finding, Snapshot, Table},
    timeline::Timeline,
    version::{AsOf, Ref, Resolved, Span},
};

use crate::{
    KIND, changes, examine, feed,
    log::Log,
    snapshot::DeltaSnapshot,
    state::{Head, State},
    timeline,
};

/// A Delta table in its folder.
#[derive(Debug)]
pub struct DeltaTable {
    head: Head,
}

impl DeltaTable {
    pub(crate) fn new(location: TableLocation) -> Self {
        Self { head: Head::new(Log::new(location.storage)) }
    }

    pub(crate) fn log(&self) -> &Log {
        self.head.log()
    }

    /// The newest snapshot: the one seen last with what was committed since, at the cost of one listing and that.
    pub async fn latest(&self) -> Result<Arc<DeltaSnapshot>> {
        snapshot_of(self.head.newest().await?).await
    }

    /// The newest state that was read through this handle; others may have committed since.
    pub(crate) fn known(&self) -> Option<Arc<State>> {
        self.head.known()
    }

    /// The newest snapshot, from `snapshot`: itself when nothing was committed since, which takes one listing to know.
    pub async fn refresh(&self, snapshot: &Arc<DeltaSnapshot>) -> Result<Arc<DeltaSnapshot>> {
        match snapshot.state.refresh().await? {
            Some(state) => snapshot_of(Arc::new(state)).await,
            None => Ok(Arc::clone(snapshot)),
        }
    }

    /// The snapshot of version `version`.
    pub async fn at(&self, version: u64) -> Result<Arc<DeltaSnapshot>> {
        snapshot_of(self.head.at(version).await?).await
    }

    /// The state of the newest version, whether or not this build can read its rows.
    pub(crate) async fn state(&self) -> Result<Arc<State>> {
        self.head.newest().await
    }
}

/// The snapshot of a state; where a checksum file gave a schema that cannot be read, of what the log says.
async fn snapshot_of(state: Arc<State>) -> Result<Arc<DeltaSnapshot>> {
    match DeltaSnapshot::new(Arc::clone(&state)) {
        Ok(snapshot) => Ok(Arc::new(snapshot)),
        Err(err) => match state.confirmed().await? {
            Some(state) => Ok(Arc::new(DeltaSnapshot::new(Arc::new(state))?)),
            None => Err(err),
        },
    }
}

/// The snapshot with protocol and schema of the log: a checksum file may be wrong, and rows must not depend on it.
///
/// What is read for it is what reading the rows takes anyway.
async fn confirmed(snapshot: Arc<DeltaSnapshot>) -> Result<Arc<DeltaSnapshot>> {
    match snapshot.state.confirmed().await? {
        Some(state) => Ok(Arc::new(DeltaSnapshot::new(Arc::new(state))?)),
        None => Ok(snapshot),
    }
}

#[async_trait]
impl Table for DeltaTable {
    fn format(&self) -> FormatKind {
        KIND
    }

    fn storage(&self) -> &Storage {
        self.head.log().storage()
    }

    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        timeline::resolve::resolve(&self.head, as_of).await
    }

    async fn timeline(&self, span: &Span) -> Result<Timeline> {
        timeline::history(&self.head, span, None).await
    }

    async fn timeline_newest(&self, span: &Span, limit: usize) -> Result<Timeline> {
        timeline::history(&self.head, span, Some(limit)).await
    }

    async fn refs(&self) -> Result<Vec<Ref>> {
        timeline::refs::refs(&*self.state().await?).await
    }

    async fn snapshot(&self, as_of: &AsOf) -> Result<Arc<dyn Snapshot>> {
        let snapshot = match as_of {
            AsOf::Latest => self.latest().await?,
            AsOf::Version(id) => self.at(timeline::number(id)?).await?,
            AsOf::Time(_) | AsOf::Ref(_) => {
                let resolved = self.resolve(as_of).await?;
                self.at(timeline::number(&resolved.version.id)?).await?
            }
        };
        Ok(confirmed(snapshot).await?)
    }

    fn changes(&self, span: &Span) -> BoxStream<'_, Result<VersionDelta>> {
        changes::read(self, span)
    }

    async fn change_feed(&self, span: &ChangeSpan) -> Result<ChangeFeed> {
        feed::read(self, span).await
    }

    fn reachable(&self, _retain: &Retain) -> BoxStream<'_, Result<FilePath>> {
        let err = Error::unsupported("this build does not tell which files of a delta table are reachable");
        stream::once(async { Err(err) }).boxed()
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        examine::examine(self).await
    }
}
