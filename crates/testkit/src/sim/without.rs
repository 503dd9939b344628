//! Tables without one of the things that keep them whole: proof that the checker would notice.
//!
//! What stands here wraps a [`Table`] from outside. No format and no commit loop knows of it.
use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Result,
    change::{Change, ChangeSpan, RowDelta, VersionDelta},
    commit::{Committed, Intent, Lease, Staged, Write},
    env::Env,
    file::DeleteFile,
    format::FormatKind,
    maintain::{Doomed, Maintenance, MaintenancePlan, Retain, Step},
    path::FilePath,
    scan::{Scan, ScanTask},
    storage::Storage,
    table::{ChangeFeed, Finding, Snapshot, Table},
    timeline::Timeline,
    version::{AsOf, Millis, Ref, Resolved, Span},
    write::NewVector,
};

use crate::conformance::Subject;

/// Something that keeps a table whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safety {
    /// A create never overwrites.
    PutIfAbsent,
    /// What others committed since the base is checked before a commit moves on top of it.
    ConflictCheck,
    /// A commit stands on the last version that was checked, not on the newest.
    CheckedBase,
    /// Nothing of a commit whose outcome is unknown is deleted.
    UnknownKept,
    /// A commit that got no answer is looked for in the log before anything new is tried.
    OwnFound,
    /// A vacuum keeps what tags name.
    TagsKept,
    /// A vacuum keeps what is younger than its cutoff.
    WindowKept,
}

/// `table` without `off`, where that is a matter of tables.
pub(super) fn without(table: Arc<dyn Table>, off: Option<Safety>, subject: &dyn Subject, env: &Env) -> Arc<dyn Table> {
    let off = match off {
        None | Some(Safety::PutIfAbsent | Safety::UnknownKept) => return table,
        Some(off) => off,
    };
    Arc::new(Without { inner: table, off, now: env.clock.now(), holds_rows: subject.holds_rows() })
}

#[derive(Debug)]
struct Without {
    inner: Arc<dyn Table>,
    off: Safety,
    now: Millis,
    holds_rows: fn(&str) -> bool,
}

impl Without {
    fn sweeps(&self) -> bool {
        matches!(self.off, Safety::TagsKept | Safety::WindowKept)
    }

    /// A vacuum as somebody would write it who has forgotten about tags, or about time.
    async fn sweep(&self, older_than: Millis) -> Result<MaintenancePlan> {
        let cutoff = if self.off == Safety::WindowKept { Millis(self.now.0 + 1) } else { older_than };
        let needed = self.needed(cutoff).await?;
        let objects: Vec<_> = self.storage().list_all("").try_collect().await?;
        let old = objects.into_iter().filter(|it| (self.holds_rows)(&it.path) && it.modified_at < cutoff);
        let doomed = old.map(|it| Doomed { path: FilePath::below(it.path), bytes: Some(it.bytes), why: "old".into() });
        let doomed: Vec<Doomed> = doomed.filter(|it| !needed.contains(&it.path)).collect();
        let head = Some(self.resolve(&AsOf::Latest).await?.version.id);
        let steps = if doomed.is_empty() { Vec::new() } else { vec![Step::Delete(doomed)] };
        Ok(MaintenancePlan { steps, head, ..MaintenancePlan::default() })
    }

    /// Files of the newest version, and of those that were the newest after `cutoff`.
    async fn needed(&self, cutoff: Millis) -> Result<BTreeSet<FilePath>> {
        let timeline = self.timeline(&Span::all()).await?;
        let versions: Vec<_> = timeline.versions().collect();
        let mut needed = BTreeSet::new();
        for (at, version) in versions.iter().enumerate() {
            if versions.get(at + 1).is_some_and(|next| next.committed_at < cutoff) {
                continue;
            }
            let snapshot = self.snapshot(&AsOf::Version(version.id.clone())).await?;
            let tasks: Vec<ScanTask> = snapshot.tasks(&Scan::all()).try_collect().await?;
            for task in tasks {
                needed.extend(task.files.into_iter().map(|it| it.path));
                needed.extend(task.deletes.iter().filter_map(|it| it.place.path().cloned()));
            }
        }
        Ok(needed)
    }
}

/// What a version did, with everything left out that a later commit could trip over.
fn harmless(delta: VersionDelta) -> VersionDelta {
    VersionDelta {
        rows: RowDelta::default(),
        applications: Vec::new(),
        claims: Vec::new(),
        schema_changed: false,
        protocol_changed: false,
        ..delta
    }
}

#[async_trait]
impl Table for Without {
    fn format(&self) -> FormatKind {
        self.inner.format()
    }

    fn storage(&self) -> &Storage {
        self.inner.storage()
    }

    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        self.inner.resolve(as_of).await
    }

    async fn timeline(&self, span: &Span) -> Result<Timeline> {
        self.inner.timeline(span).await
    }

    async fn refs(&self) -> Result<Vec<Ref>> {
        self.inner.refs().await
    }

    async fn snapshot(&self, as_of: &AsOf) -> Result<Arc<dyn Snapshot>> {
        self.inner.snapshot(as_of).await
    }

    fn changes(&self, span: &Span) -> BoxStream<'_, Result<VersionDelta>> {
        let changes = self.inner.changes(span);
        match self.off {
            Safety::ConflictCheck => changes.map_ok(harmless).boxed(),
            Safety::OwnFound => changes.map_ok(|it| VersionDelta { write_id: None, ..it }).boxed(),
            _ => changes,
        }
    }

    async fn change_feed(&self, span: &ChangeSpan) -> Result<ChangeFeed> {
        self.inner.change_feed(span).await
    }

    fn reachable(&self, retain: &Retain) -> BoxStream<'_, Result<FilePath>> {
        if !self.sweeps() {
            return self.inner.reachable(retain);
        }
        let newest = async move { Ok(stream::iter(self.needed(Millis(i64::MAX)).await?.into_iter().map(Ok))) };
        stream::once(newest).try_flatten().boxed()
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        self.inner.examine().await
    }

    async fn begin(&self, intent: Intent) -> Result<Write> {
        self.inner.begin(intent).await
    }

    async fn lease(&self, write: &Write) -> Result<Option<Box<dyn Lease>>> {
        self.inner.lease(write).await
    }

    async fn write_vectors(&self, write: &Write, vectors: Vec<NewVector>) -> Result<Vec<DeleteFile>> {
        self.inner.write_vectors(write, vectors).await
    }

    async fn stage(&self, write: &Write, onto: &dyn Snapshot, changes: &[Change]) -> Result<Staged> {
        if self.off != Safety::CheckedBase {
            return self.inner.stage(write, onto, changes).await;
        }
        let newest = self.snapshot(&AsOf::Latest).await?;
        self.inner.stage(write, newest.as_ref(), changes).await
    }

    async fn evolve(&self, write: &Write, schema: &SchemaRef) -> Result<Arc<dyn Snapshot>> {
        self.inner.evolve(write, schema).await
    }

    fn committed(&self, write: &Write, committed: &Committed) {
        self.inner.committed(write, committed);
    }

    async fn abandon(&self, write: &Write) -> Result<()> {
        self.inner.abandon(write).await
    }

    async fn plan(&self, action: &Maintenance) -> Result<MaintenancePlan> {
        match action {
            Maintenance::Vacuum { older_than: Some(older_than), .. } if self.sweeps() => self.sweep(*older_than).await,
            action => self.inner.plan(action).await,
        }
    }

    async fn due(&self, after: &Committed) -> Result<Vec<Maintenance>> {
        self.inner.due(after).await
    }
}
