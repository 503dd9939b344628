//! The handle to a Delta table.
use std::sync::{Arc, Mutex};

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

use crate::{KIND, changes, examine, feed, log::Log, snapshot::DeltaSnapshot, state::State, timeline};

/// A Delta table in its folder.
#[derive(Debug)]
pub struct DeltaTable {
    log: Log,
    /// The newest snapshot seen. Used only after one listing showed what came after it.
    last: Mutex<Option<Arc<DeltaSnapshot>>>,
}

impl DeltaTable {
    pub(crate) fn new(location: TableLocation) -> Self {
        Self { log: Log::new(location.storage), last: Mutex::new(None) }
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The newest snapshot: the one seen last with what was committed since, at the cost of one listing and that.
    pub async fn latest(&self) -> Result<Arc<DeltaSnapshot>> {
        let last = self.last.lock().ok().and_then(|it| it.clone());
        let newest = match last {
            Some(last) => self.refresh(&last).await?,
            None => Arc::new(DeltaSnapshot::new(Arc::new(State::open(&self.log, None).await?))?),
        };
        if let Ok(mut last) = self.last.lock() {
            *last = Some(Arc::clone(&newest));
        }
        Ok(newest)
    }

    /// The newest state that was read through this handle; others may have committed since.
    pub(crate) fn known(&self) -> Option<Arc<State>> {
        let last = self.last.lock().ok()?;
        last.as_ref().map(|it| Arc::clone(&it.state))
    }

    /// The newest snapshot, from `snapshot`: itself when nothing was committed since, which takes one listing to know.
    pub async fn refresh(&self, snapshot: &Arc<DeltaSnapshot>) -> Result<Arc<DeltaSnapshot>> {
        match snapshot.state.refresh().await? {
            Some(state) => Ok(Arc::new(DeltaSnapshot::new(Arc::new(state))?)),
            None => Ok(Arc::clone(snapshot)),
        }
    }

    /// The snapshot of version `version`.
    pub async fn at(&self, version: u64) -> Result<Arc<DeltaSnapshot>> {
        Ok(Arc::new(DeltaSnapshot::new(Arc::new(State::open(&self.log, Some(version)).await?))?))
    }

    /// The state of the newest version, whether or not this build can read its rows.
    pub(crate) async fn state(&self) -> Result<Arc<State>> {
        Ok(Arc::new(State::open(&self.log, None).await?))
    }
}

#[async_trait]
impl Table for DeltaTable {
    fn format(&self) -> FormatKind {
        KIND
    }

    fn storage(&self) -> &Storage {
        self.log.storage()
    }

    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        timeline::resolve::resolve(&self.log, as_of).await
    }

    async fn timeline(&self, span: &Span) -> Result<Timeline> {
        timeline::history(&self.log, span).await
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
        Ok(snapshot)
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
