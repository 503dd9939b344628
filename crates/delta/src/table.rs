//! The handle to a Delta table.
use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, Result,
    change::{Change, ChangeSpan, VersionDelta},
    commit::{Committed, Intent, Publish, Staged, Write},
    env::Env,
    file::DeleteFile,
    format::{FormatKind, TableLocation},
    maintain::{Maintenance, MaintenancePlan, Retain},
    path::FilePath,
    storage::Storage,
    table::{ChangeFeed, Finding, Snapshot, Table},
    timeline::Timeline,
    version::{AsOf, Ref, Resolved, Span},
    write::{NewVector, RowDeletes},
};

use crate::{
    KIND, changes, examine, feed,
    log::Log,
    snapshot::DeltaSnapshot,
    state::{BEFORE_FIRST_ID, Head, State},
    timeline,
    upkeep::Upkeep,
    write,
};

/// A Delta table in its folder.
#[derive(Debug)]
pub struct DeltaTable {
    head: Head,
    env: Env,
    /// The write that is to make the table, where it was not there yet.
    maker: Option<String>,
}

impl DeltaTable {
    pub(crate) fn new(location: TableLocation) -> Self {
        Self { head: Head::new(Log::new(location.storage)), env: location.env, maker: None }
    }

    /// The handle to a table that the write `maker` is to make.
    pub(crate) fn to_be(location: TableLocation, maker: String) -> Self {
        Self { maker: Some(maker), ..Self::new(location) }
    }

    pub(crate) fn log(&self) -> &Log {
        self.head.log()
    }

    /// The newest snapshot: the one seen last with what was committed since, at the cost of one listing and that.
    pub async fn latest(&self) -> Result<Arc<DeltaSnapshot>> {
        snapshot_of(self.head.newest().await?).await
    }

    /// The newest snapshot, with the protocol and schema of the log: what a write stands on.
    pub(crate) async fn newest(&self) -> Result<Arc<DeltaSnapshot>> {
        confirmed(self.latest().await?).await
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

    fn upkeep(&self) -> Upkeep<'_> {
        Upkeep { head: &self.head, env: &self.env }
    }

    /// Who made the table, as changes since nothing was there.
    ///
    /// # Errors
    /// Already exists if it was not the write of this handle.
    async fn made(&self, maker: &str) -> Result<Vec<VersionDelta>> {
        let log = self.log();
        if log.listing_from(0).await?.newest().is_none() {
            return Ok(Vec::new());
        }
        let first = Span { after: None, until: AsOf::Version(0.into()) };
        let made: Vec<VersionDelta> = changes::read(self, &first).try_collect().await?;
        match made.first().and_then(|it| it.write_id.as_deref()) {
            Some(id) if id == maker => Ok(made),
            _ => Err(write::create::exists(log.storage().location())),
        }
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
        match &self.maker {
            Some(maker) if span.after.as_ref().is_some_and(|it| it.as_str() == BEFORE_FIRST_ID) => {
                stream::once(self.made(maker)).map_ok(|it| stream::iter(it.into_iter().map(Ok))).try_flatten().boxed()
            }
            _ => changes::read(self, span),
        }
    }

    async fn change_feed(&self, span: &ChangeSpan) -> Result<ChangeFeed> {
        feed::read(self, span).await
    }

    fn reachable(&self, retain: &Retain) -> BoxStream<'_, Result<FilePath>> {
        self.upkeep().reachable(retain)
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        examine::examine(self).await
    }

    async fn begin(&self, intent: Intent) -> Result<Write> {
        if let Some(branch) = &intent.branch {
            return Err(write::no_branches(branch));
        }
        let base = self.newest().await?;
        write::rules::check(&base.state.protocol, &base.state.metadata, &base.schema)?;
        Ok(Write { base, intent, id: write::write_id(&self.env) })
    }

    async fn write_vectors(&self, write: &Write, vectors: Vec<NewVector>) -> Result<Vec<DeleteFile>> {
        let rules = write.base.write_rules()?;
        if rules.deletes != RowDeletes::Vectors && !vectors.is_empty() {
            return Err(Error::unsupported("deletion vectors are not turned on in this table")
                .with_hint("`delta.enableDeletionVectors` turns them on"));
        }
        write::vectors::write(self.storage(), &self.env, &vectors).await
    }

    async fn stage(&self, write: &Write, onto: &dyn Snapshot, changes: &[Change]) -> Result<Staged> {
        let onto = write::ours(onto)?.beneath();
        let staged = write::stage(&self.head, &self.env, write, onto, changes).await?;
        if let Publish::Create { body, .. } = &staged.publish {
            self.log().own.staged(&write.id, onto.state.next_version(), body);
        }
        Ok(staged)
    }

    async fn evolve(&self, write: &Write, schema: &SchemaRef) -> Result<Arc<dyn Snapshot>> {
        Ok(write::evolved(&self.env, write, schema).await?)
    }

    async fn confirm(&self, staged: &Staged) -> Result<()> {
        write::landing::confirm(self.log(), timeline::number(&staged.version.id)?).await
    }

    fn committed(&self, write: &Write, committed: &Committed) {
        self.log().own.ended(&write.id, timeline::number(&committed.version.id).ok());
    }

    async fn abandon(&self, write: &Write) -> Result<()> {
        self.log().own.ended(&write.id, None);
        Ok(())
    }

    async fn plan(&self, action: &Maintenance) -> Result<MaintenancePlan> {
        self.upkeep().plan(action).await
    }

    async fn due(&self, after: &Committed) -> Result<Vec<Maintenance>> {
        self.upkeep().due(after).await
    }
}
