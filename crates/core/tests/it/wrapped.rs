//! A table in which somebody else acts in the middle of a call, and a publisher that follows a script.
use std::{
    fmt,
    sync::{
        Arc, Mutex,
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
    Error, ErrorKind, Result,
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
use lakebed_testkit::pond::Played;

/// What becomes of a publish, in turn; afterwards all goes well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It lands, and nobody says so.
    Unheard,
    /// It does not land, and nobody says so.
    Lost,
    /// It lands, and a second try of the client's says that the name is taken.
    TakenByItself,
    /// Another was first.
    Taken,
    /// It is under way, and lands before the next publish.
    Late,
    /// Refused before anything is sent.
    Refused,
    /// A catalog takes it.
    Accepted,
}

/// A publisher that follows a script, and lets somebody else act before each publish.
#[derive(Default)]
pub(crate) struct Scripted {
    answers: Mutex<Vec<Answer>>,
    late: Mutex<Option<Publish>>,
    seen: Mutex<Vec<Publish>>,
    before: Option<Meddling>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("answers", &self.answers).finish_non_exhaustive()
    }
}

impl Scripted {
    pub(crate) fn new(answers: &[Answer]) -> Self {
        Self { answers: Mutex::new(answers.iter().rev().copied().collect()), ..Self::default() }
    }

    pub(crate) fn before(self, act: Meddling) -> Self {
        Self { before: Some(act), ..self }
    }

    /// Every publish that was asked for.
    pub(crate) fn seen(&self) -> Vec<Publish> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl Publisher for Scripted {
    async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
        if let Some(act) = &self.before {
            act().await;
        }
        self.seen.lock().unwrap().push(publish.clone());
        let late = self.late.lock().unwrap().take();
        if let Some(late) = late {
            let _ = StoragePublisher.publish(storage, &late).await?;
        }
        let answer = self.answers.lock().unwrap().pop();
        match answer {
            None => StoragePublisher.publish(storage, publish).await,
            Some(Answer::Unheard) => StoragePublisher.publish(storage, publish).await.map(|_| Put::Unknown),
            Some(Answer::TakenByItself) => StoragePublisher.publish(storage, publish).await.map(|_| Put::Lost),
            Some(Answer::Lost) => Ok(Put::Unknown),
            Some(Answer::Taken) => Ok(Put::Lost),
            Some(Answer::Accepted) => Ok(Put::Won),
            Some(Answer::Refused) => Err(Error::new(ErrorKind::Unauthorized, "403")),
            Some(Answer::Late) => {
                *self.late.lock().unwrap() = Some(publish.clone());
                Ok(Put::Unknown)
            }
        }
    }
}

/// Where a [`Meddled`] table lets somebody else act, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Versions have been listed and not yet been handed out.
    AfterChanges,
    /// The commit has been staged and not yet been published.
    AfterStage,
    Never,
}

type Meddling = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What somebody else does to `table`.
pub(crate) fn meddling<F: Future<Output = ()> + Send + 'static>(
    table: &Played,
    act: impl Fn(Played) -> F + Send + Sync + 'static,
) -> Meddling {
    let other = table.clone();
    Box::new(move || Box::pin(act(other.clone())))
}

/// A table in which somebody else acts at a moment of a call.
pub(crate) struct Meddled {
    pub(crate) table: Arc<dyn Table>,
    moment: Moment,
    armed: AtomicU64,
    act: Meddling,
    abandoned: AtomicU64,
}

impl fmt::Debug for Meddled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddled").field("table", &self.table).field("moment", &self.moment).finish_non_exhaustive()
    }
}

impl Meddled {
    pub(crate) fn new(table: &Arc<dyn Table>, moment: Moment, act: Meddling) -> Self {
        Self { table: Arc::clone(table), moment, armed: 1.into(), act, abandoned: 0.into() }
    }

    /// How often a write was abandoned.
    pub(crate) fn abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
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
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        self.table.abandon(write).await
    }
    async fn plan(&self, action: &Maintenance) -> Result<MaintenancePlan> {
        self.table.plan(action).await
    }
}
