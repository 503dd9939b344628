//! A table that does something else in the middle of a call, and a publisher that keeps silent.
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use futures::{
    StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use lakebed_core::{
    Result,
    change::{Change, ChangeSpan, VersionDelta},
    commit::{Intent, Lease, Publish, Publisher, Staged, StoragePublisher, Write},
    format::FormatKind,
    maintain::{Maintenance, MaintenancePlan, Retain},
    path::FilePath,
    storage::{Put, Storage},
    table::{ChangeFeed, Finding, Snapshot, Table},
    timeline::Timeline,
    version::{AsOf, Ref, Resolved, Span},
};

/// Says it does not know, `n` times, having published (`landed`) or not.
#[derive(Debug)]
pub(crate) struct Silent {
    pub(crate) landed: bool,
    pub(crate) n: AtomicU64,
}

impl Silent {
    pub(crate) fn new(landed: bool, n: u64) -> Self {
        Self { landed, n: n.into() }
    }
}

#[async_trait]
impl Publisher for Silent {
    async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
        if self.n.load(Ordering::Relaxed) == 0 {
            return StoragePublisher.publish(storage, publish).await;
        }
        self.n.fetch_sub(1, Ordering::Relaxed);
        if self.landed {
            let _ = StoragePublisher.publish(storage, publish).await?;
        }
        Ok(Put::Unknown)
    }
}

/// Where a [`Meddled`] table lets somebody else act, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Versions have been listed and not yet been handed out.
    AfterChanges,
    /// The commit has been staged and not yet been published.
    AfterStage,
}

type Meddling = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// A table in which somebody else acts at a moment of a call.
pub(crate) struct Meddled {
    pub(crate) table: Arc<dyn Table>,
    moment: Moment,
    armed: AtomicU64,
    act: Meddling,
}

impl fmt::Debug for Meddled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddled").field("table", &self.table).field("moment", &self.moment).finish_non_exhaustive()
    }
}

impl Meddled {
    pub(crate) fn new(table: &Arc<dyn Table>, moment: Moment, act: Meddling) -> Self {
        Self { table: Arc::clone(table), moment, armed: 1.into(), act }
    }

    async fn at(&self, moment: Moment) {
        if self.moment == moment && self.armed.swap(0, Ordering::Relaxed) == 1 {
            (self.act)().await;
        }
    }
}

#[async_trait]
impl Table for Meddled {
    fn format(&self) -> FormatKind {
        self.table.format()
    }
    fn storage(&self) -> &Storage {
        self.table.storage()
    }
    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        self.table.resolve(as_of).await
    }
    async fn timeline(&self, span: &Span) -> Result<Timeline> {
        self.table.timeline(span).await
    }
    async fn refs(&self) -> Result<Vec<Ref>> {
        self.table.refs().await
    }
    async fn snapshot(&self, as_of: &AsOf) -> Result<Arc<dyn Snapshot>> {
        self.table.snapshot(as_of).await
    }
    fn changes(&self, span: &Span) -> BoxStream<'_, Result<VersionDelta>> {
        let span = span.clone();
        let listed = async move {
            let listed: Vec<VersionDelta> = self.table.changes(&span).try_collect().await?;
            self.at(Moment::AfterChanges).await;
            Ok(stream::iter(listed.into_iter().map(Ok)))
        };
        stream::once(listed).try_flatten().boxed()
    }
    async fn change_feed(&self, span: &ChangeSpan) -> Result<ChangeFeed> {
        self.table.change_feed(span).await
    }
    fn reachable(&self, retain: &Retain) -> BoxStream<'_, Result<FilePath>> {
        self.table.reachable(retain)
    }
    async fn examine(&self) -> Result<Vec<Finding>> {
        self.table.examine().await
    }
    async fn begin(&self, intent: Intent) -> Result<Write> {
        self.table.begin(intent).await
    }
    async fn lease(&self, write: &Write) -> Result<Option<Box<dyn Lease>>> {
        self.table.lease(write).await
    }
    async fn stage(&self, write: &Write, onto: &dyn Snapshot, changes: &[Change]) -> Result<Staged> {
        let staged = self.table.stage(write, onto, changes).await?;
        self.at(Moment::AfterStage).await;
        Ok(staged)
    }
    async fn abandon(&self, write: &Write) -> Result<()> {
        self.table.abandon(write).await
    }
    async fn plan(&self, action: &Maintenance) -> Result<MaintenancePlan> {
        self.table.plan(action).await
    }
}
