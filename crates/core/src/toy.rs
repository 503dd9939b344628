//! A table for the tests of this crate: one JSON entry a version, created if absent.
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use object_store::{ObjectStore, memory::InMemory, path::Path};
use serde::{Deserialize, Serialize};

use crate::{
    Error, ErrorKind, Result,
    change::{Change, ChangeSpan, VersionDelta},
    commit::{Intent, Lease, Publish, Staged, Write},
    env::{Clock, Env, Ids},
    file::{DataFile, DeleteFile, FileKey},
    format::FormatKind,
    listing::ListingColumns,
    maintain::Retain,
    path::FilePath,
    prune,
    scan::{ColumnMapping, MatchBy, Merge, Scan, ScanTask},
    storage::Storage,
    table::{ChangeFeed, Finding, Layout, Pruning, Snapshot, Table, Totals},
    timeline::{Action, Details, Instant, State, Timeline},
    version::{AsOf, Millis, Ref, Resolved, Span, Version, VersionId},
};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) at: i64,
    pub(crate) write_id: String,
    pub(crate) added: Vec<DataFile>,
    pub(crate) added_deletes: Vec<DeleteFile>,
    pub(crate) removed: Vec<FileKey>,
    pub(crate) blind: bool,
}

#[derive(Debug)]
pub(crate) struct Toy {
    pub(crate) storage: Storage,
    pub(crate) env: Env,
    pub(crate) refs: Mutex<Vec<Ref>>,
    pub(crate) abandoned: AtomicU32,
    pub(crate) lease: Option<Arc<Leases>>,
    /// Runs once, after the next reading of changes.
    pub(crate) after_changes: Mutex<Option<Entry>>,
    /// Entries from this number on are not seen by readings of changes, as in a listing that lags.
    pub(crate) stale_from: Mutex<Option<usize>>,
    /// The next readings of changes fail.
    pub(crate) blind: AtomicU32,
}

/// Counts what was done with leases, and says whether they hold.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    pub(crate) taken: AtomicU32,
    pub(crate) released: AtomicU32,
    pub(crate) lost: AtomicBool,
}

#[derive(Debug)]
struct ToyLease(Arc<Leases>);

#[async_trait]
impl Lease for ToyLease {
    async fn still_held(&self) -> Result<bool> {
        Ok(!self.0.lost.swap(false, Ordering::SeqCst))
    }
    async fn release(self: Box<Self>) -> Result<()> {
        self.0.released.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A clock that ticks with each look and ids that count.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    now: AtomicU64,
    pub(crate) slept_ms: AtomicU64,
}

#[async_trait]
impl Clock for Steps {
    fn now(&self) -> Millis {
        Millis(i64::try_from(self.now.fetch_add(1, Ordering::SeqCst)).unwrap())
    }
    async fn sleep(&self, pause: Duration) {
        self.slept_ms.fetch_add(u64::try_from(pause.as_millis()).unwrap(), Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
}

impl Ids for Steps {
    fn uuid(&self) -> u128 {
        self.now.fetch_add(1, Ordering::SeqCst).into()
    }
}

pub(crate) fn file(path: &str) -> DataFile {
    DataFile::parquet(FilePath::below(path), 1)
}

pub(crate) fn key(path: &str) -> FileKey {
    FileKey { path: FilePath::below(path), vector: None }
}

pub(crate) fn intent(action: Action) -> Intent {
    Intent {
        action,
        operation: "TEST".to_owned(),
        parameters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    }
}

fn slot(number: usize) -> String {
    format!("log/{number:020}.json")
}

impl Toy {
    /// A table whose version 0 has the files `a` and `b`.
    pub(crate) async fn new() -> Self {
        Self::over(Arc::new(InMemory::new())).await
    }

    pub(crate) async fn over(store: Arc<dyn ObjectStore>) -> Self {
        let storage = Storage::new(store, Path::from("t"), "memory:///t");
        let steps = Arc::new(Steps::default());
        let env = Env { clock: Arc::clone(&steps) as Arc<dyn Clock>, ids: steps };
        let toy = Self {
            storage,
            env,
            refs: Mutex::default(),
            abandoned: AtomicU32::new(0),
            lease: None,
            after_changes: Mutex::default(),
            stale_from: Mutex::default(),
            blind: AtomicU32::new(0),
        };
        toy.push(Entry { added: vec![file("a"), file("b")], ..Entry::default() }).await;
        toy
    }

    /// Commits `entry` past everybody; an empty id is its number, an empty parent the entry before.
    pub(crate) async fn push(&self, mut entry: Entry) -> VersionId {
        let log = self.log().await.unwrap();
        if entry.id.is_empty() {
            entry.id = log.len().to_string();
        }
        if entry.parent.is_none() {
            entry.parent = log.last().map(|it| it.id.clone());
        }
        let body = serde_json::to_vec(&entry).unwrap().into();
        assert_eq!(self.storage.create(&slot(log.len()), body).await.unwrap(), crate::storage::Put::Won);
        VersionId::new(entry.id)
    }

    pub(crate) async fn log(&self) -> Result<Vec<Entry>> {
        let mut log = Vec::new();
        while let Some(body) = self.storage.read(&FilePath::below(slot(log.len()))).await? {
            log.push(serde_json::from_slice(&body).map_err(|it| Error::new(ErrorKind::Corrupt, it))?);
        }
        Ok(log)
    }

    pub(crate) async fn files(&self) -> Vec<String> {
        let snapshot = self.snapshot(&AsOf::Latest).await.unwrap();
        let tasks: Vec<ScanTask> = snapshot.tasks(&Scan::all()).try_collect().await.unwrap();
        tasks.into_iter().flat_map(|it| it.files).map(|it| it.path.to_string()).collect()
    }

    pub(crate) fn tag(&self, name: &str, kind: crate::version::RefKind, version: &str) {
        let version = VersionId::new(version);
        self.refs.lock().unwrap().push(Ref {
            name: name.to_owned(),
            kind,
            version,
            created_at: None,
            expires_at: None,
        });
    }
}

fn version(entry: &Entry) -> Version {
    Version {
        id: VersionId::new(entry.id.as_str()),
        committed_at: Millis(entry.at),
        parent: entry.parent.as_deref().map(VersionId::new),
        schema_id: None,
    }
}

fn delta(entry: Entry) -> VersionDelta {
    VersionDelta {
        version: version(&entry),
        write_id: Some(entry.write_id),
        applications: Vec::new(),
        action: Action::RowDelta,
        native_action: "toy".to_owned(),
        rows: crate::change::RowDelta {
            added: entry.added,
            added_deletes: entry.added_deletes,
            removed: entry.removed,
            ..Default::default()
        },
        data_change: true,
        blind_append: entry.blind,
        schema_changed: false,
        protocol_changed: false,
        claims: Vec::new(),
    }
}

#[async_trait]
impl Table for Toy {
    fn format(&self) -> FormatKind {
        FormatKind::new("toy")
    }
    fn storage(&self) -> &Storage {
        &self.storage
    }
    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        let timeline = self.timeline(&Span::all()).await?;
        let found = timeline.resolve(as_of).ok_or_else(|| Error::not_found(format!("nothing at {as_of:?}")))?;
        Ok(Resolved { version: found.clone(), rule: "toy".to_owned(), warnings: Vec::new() })
    }
    /// Entries up to the one asked for.
    async fn timeline(&self, span: &Span) -> Result<Timeline> {
        let mut log = self.log().await?;
        if let AsOf::Version(until) = &span.until {
            let last = log.iter().position(|it| it.id == until.as_str());
            log.truncate(last.ok_or_else(|| Error::not_found(format!("no version {until}")))? + 1);
        }
        if let Some(after) = &span.after {
            let first = log.iter().position(|it| it.id == after.as_str());
            log.drain(..=first.ok_or_else(|| Error::not_found(format!("no version {after}")))?);
        }
        let instants = log.iter().map(|it| Instant {
            requested_at: Millis(it.at),
            action: Action::RowDelta,
            state: State::Completed { at: Millis(it.at), version: Some(version(it)) },
            native_action: "toy".to_owned(),
            details: Details::default(),
        });
        Ok(Timeline::new(instants.collect()))
    }
    async fn refs(&self) -> Result<Vec<Ref>> {
        Ok(self.refs.lock().unwrap().clone())
    }
    async fn snapshot(&self, as_of: &AsOf) -> Result<Arc<dyn Snapshot>> {
        let version = self.resolve(as_of).await?.version;
        let mut files: Vec<DataFile> = Vec::new();
        for entry in self.log().await? {
            files.retain(|it| !entry.removed.iter().any(|key| key.path == it.path));
            files.extend(entry.added);
            if entry.id == version.id.as_str() {
                break;
            }
        }
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
        Ok(Arc::new(ToySnapshot { version, files, schema, layout: Layout::default(), properties: BTreeMap::new() }))
    }
    fn changes(&self, span: &Span) -> BoxStream<'_, Result<VersionDelta>> {
        let after = span.after.clone();
        let read = async move {
            if self.blind.load(Ordering::SeqCst) > 0 {
                self.blind.fetch_sub(1, Ordering::SeqCst);
                return Err(Error::new(ErrorKind::Unavailable, "the log cannot be read"));
            }
            let mut log = self.log().await?;
            if let Some(seen) = *self.stale_from.lock().unwrap() {
                log.truncate(seen);
            }
            let skip = log.iter().position(|it| Some(it.id.as_str()) == after.as_ref().map(VersionId::as_str));
            let intruder = self.after_changes.lock().unwrap().take();
            if let Some(entry) = intruder {
                self.push(entry).await;
            }
            Ok(stream::iter(log.into_iter().skip(skip.map_or(0, |it| it + 1)).map(|it| Ok(delta(it)))))
        };
        stream::once(read).try_flatten().boxed()
    }
    async fn change_feed(&self, _: &ChangeSpan) -> Result<ChangeFeed> {
        Err(Error::unsupported("no change feed"))
    }
    /// The live files of the versions asked for and of refs, and the whole log.
    fn reachable(&self, retain: &Retain) -> BoxStream<'_, Result<FilePath>> {
        let mut ids = retain.ids.clone();
        ids.extend(self.refs.lock().unwrap().iter().map(|it| it.version.clone()));
        let found = async move {
            let mut found: Vec<FilePath> = (0..self.log().await?.len()).map(|it| FilePath::below(slot(it))).collect();
            for id in ids {
                let tasks = self.snapshot(&AsOf::Version(id)).await?.tasks(&Scan::all());
                found
                    .extend(tasks.try_collect::<Vec<_>>().await?.into_iter().flat_map(|it| it.files).map(|it| it.path));
            }
            Ok(stream::iter(found.into_iter().map(Ok)))
        };
        stream::once(found).try_flatten().boxed()
    }
    async fn examine(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
    async fn begin(&self, intent: Intent) -> Result<Write> {
        let base = self.snapshot(&AsOf::Latest).await?;
        Ok(Write { base, intent, id: format!("{:032x}", self.env.ids.uuid()) })
    }
    async fn lease(&self, _: &Write) -> Result<Option<Box<dyn Lease>>> {
        let Some(leases) = &self.lease else { return Ok(None) };
        leases.taken.fetch_add(1, Ordering::SeqCst);
        Ok(Some(Box::new(ToyLease(Arc::clone(leases)))))
    }
    async fn stage(&self, write: &Write, onto: &dyn Snapshot, changes: &[Change]) -> Result<Staged> {
        let log = self.log().await?;
        let base = onto.version().id.as_str();
        let number = log.iter().position(|it| it.id == base).unwrap() + 1;
        let mut entry = Entry {
            id: number.to_string(),
            parent: Some(base.to_owned()),
            at: self.env.clock.now().0,
            write_id: write.id.clone(),
            blind: write.intent.action == Action::Append,
            ..Entry::default()
        };
        for change in changes {
            let Change::Rows(rows) = change else { return Err(Error::unsupported("rows only")) };
            entry.added.extend(rows.added.iter().cloned());
            entry.added_deletes.extend(rows.added_deletes.iter().cloned());
            entry.removed.extend(rows.removed.iter().cloned());
        }
        let body = serde_json::to_vec(&entry).unwrap().into();
        Ok(Staged { version: version(&entry), publish: Publish::Create { path: slot(number), body } })
    }
    async fn abandon(&self, _: &Write) -> Result<()> {
        self.abandoned.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[derive(Debug)]
struct ToySnapshot {
    version: Version,
    files: Vec<DataFile>,
    schema: SchemaRef,
    layout: Layout,
    properties: BTreeMap<String, String>,
}

#[async_trait]
impl Snapshot for ToySnapshot {
    fn version(&self) -> &Version {
        &self.version
    }
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
    fn layout(&self) -> &Layout {
        &self.layout
    }
    fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }
    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }
    fn tasks(&self, scan: &Scan) -> BoxStream<'static, Result<ScanTask>> {
        let columns = Arc::new(ColumnMapping {
            by: MatchBy::Name,
            schema: Arc::clone(&self.schema),
            row_id_column: None,
            row_version_column: None,
        });
        let kept: Vec<DataFile> = self.files.iter().filter(|it| prune::keep(&scan.predicate, *it)).cloned().collect();
        let residual = scan.predicate.clone();
        stream::iter(kept.into_iter().map(move |it| {
            Ok(ScanTask {
                files: vec![it],
                deletes: Vec::new(),
                only: Vec::new(),
                merge: Merge::Concat,
                columns: Arc::clone(&columns),
                residual: residual.clone(),
            })
        }))
        .boxed()
    }
    fn files(&self, _: &Scan, _: ListingColumns) -> BoxStream<'static, Result<RecordBatch>> {
        stream::empty().boxed()
    }
    async fn totals(&self) -> Result<Totals> {
        Ok(Totals::default())
    }
    async fn pruning(&self, _: &Scan) -> Result<Pruning> {
        Ok(Pruning::default())
    }
}
