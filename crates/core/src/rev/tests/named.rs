//! A table that is its history and its names: all that revisions are looked up in.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use async_trait::async_trait;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use object_store::{memory::InMemory, path::Path};

use crate::{
    Error, ErrorKind, Result,
    change::{ChangeSpan, VersionDelta},
    commit::{Intent, Write},
    file::DataFile,
    format::FormatKind,
    listing::ListingColumns,
    maintain::Retain,
    path::FilePath,
    scan::{ColumnMapping, MatchBy, Merge, Scan, ScanTask},
    storage::Storage,
    table::{ChangeFeed, Finding, Layout, Pruning, Snapshot, Table, Totals},
    timeline::{Action, Details, Instant, State, Timeline},
    version::{AsOf, Millis, Ref, RefKind, Resolved, Span, Version, VersionId},
};

/// The n-th version has the files `f0` to `fn`.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) storage: Storage,
    pub(super) versions: Vec<Version>,
    refs: Vec<Ref>,
    /// What opening a version, or planning its files, ends in.
    pub(super) opening: BTreeMap<&'static str, ErrorKind>,
    pub(super) planning: BTreeMap<&'static str, ErrorKind>,
}

impl Named {
    /// Versions `0`, `1`, … of these times.
    pub(super) fn new(times: &[i64]) -> Self {
        let mut table = Self {
            storage: Storage::new(Arc::new(InMemory::new()), Path::from("t"), "memory:///t"),
            versions: Vec::new(),
            refs: Vec::new(),
            opening: BTreeMap::new(),
            planning: BTreeMap::new(),
        };
        for (number, at) in times.iter().enumerate() {
            let parent = number.checked_sub(1).map(|it| it.to_string());
            table.push(&number.to_string(), parent.as_deref(), *at);
        }
        table
    }

    pub(super) fn push(&mut self, id: &str, parent: Option<&str>, at: i64) {
        let (id, parent) = (VersionId::new(id), parent.map(VersionId::new));
        self.versions.push(Version { id, committed_at: Millis(at), parent, schema_id: None });
    }

    pub(super) fn name(&mut self, name: &str, kind: RefKind, version: &str) {
        let version = VersionId::new(version);
        self.refs.push(Ref { name: name.to_owned(), kind, version, created_at: None, expires_at: None });
    }

    fn place(&self, id: &VersionId) -> Result<usize> {
        let place = self.versions.iter().position(|it| it.id == *id);
        place.ok_or_else(|| Error::not_found(format!("no version {id}")))
    }
}

fn outcome(errors: &BTreeMap<&'static str, ErrorKind>, id: &VersionId) -> Result<()> {
    errors.get(id.as_str()).map_or(Ok(()), |kind| Err(Error::new(*kind, format!("version {id}"))))
}

fn nothing<T>() -> BoxStream<'static, Result<T>>
where
    T: Send + 'static,
{
    stream::empty().boxed()
}

#[async_trait]
impl Table for Named {
    fn format(&self) -> FormatKind {
        FormatKind::new("named")
    }
    fn storage(&self) -> &Storage {
        &self.storage
    }
    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        let timeline = self.timeline(&Span::all()).await?;
        let found = timeline.resolve(as_of).ok_or_else(|| Error::not_found(format!("nothing at {as_of:?}")))?;
        Ok(Resolved { version: found.clone(), rule: "named".to_owned(), warnings: Vec::new() })
    }
    /// Versions up to the one asked for, siblings included.
    async fn timeline(&self, span: &Span) -> Result<Timeline> {
        let end = match &span.until {
            AsOf::Version(until) => self.place(until)? + 1,
            _ => self.versions.len(),
        };
        let instants = self.versions[..end].iter().map(|it| Instant {
            requested_at: it.committed_at,
            action: Action::RowDelta,
            state: State::Completed { at: it.committed_at, version: Some(it.clone()) },
            native_action: "named".to_owned(),
            details: Details::default(),
        });
        Ok(Timeline::new(instants.collect()))
    }
    async fn refs(&self) -> Result<Vec<Ref>> {
        Ok(self.refs.clone())
    }
    async fn snapshot(&self, as_of: &AsOf) -> Result<Arc<dyn Snapshot>> {
        let version = self.resolve(as_of).await?.version;
        outcome(&self.opening, &version.id)?;
        let files = (0..=self.place(&version.id)?).map(|it| DataFile::parquet(FilePath::below(format!("f{it}")), 1));
        Ok(Arc::new(Opened {
            planning: outcome(&self.planning, &version.id).map_err(|it| it.kind()),
            files: files.collect(),
            version,
            schema: Arc::new(Schema::empty()),
            layout: Layout::default(),
            properties: BTreeMap::new(),
        }))
    }
    fn changes(&self, _: &Span) -> BoxStream<'_, Result<VersionDelta>> {
        nothing()
    }
    async fn change_feed(&self, _: &ChangeSpan) -> Result<ChangeFeed> {
        Err(Error::unsupported("no change feed"))
    }
    fn reachable(&self, _: &Retain) -> BoxStream<'_, Result<FilePath>> {
        nothing()
    }
    async fn examine(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
    async fn begin(&self, _: Intent) -> Result<Write> {
        Err(Error::unsupported("no writing"))
    }
}

#[derive(Debug)]
struct Opened {
    version: Version,
    files: Vec<DataFile>,
    planning: Result<(), ErrorKind>,
    schema: SchemaRef,
    layout: Layout,
    properties: BTreeMap<String, String>,
}

#[async_trait]
impl Snapshot for Opened {
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
    fn tasks(&self, _: &Scan) -> BoxStream<'static, Result<ScanTask>> {
        if let Err(kind) = self.planning {
            return stream::iter([Err(Error::new(kind, "a task"))]).boxed();
        }
        let schema = Arc::clone(&self.schema);
        let columns = ColumnMapping { by: MatchBy::Name, schema, row_id_column: None, row_version_column: None };
        let task = ScanTask {
            files: self.files.clone(),
            deletes: Vec::new(),
            only: Vec::new(),
            merge: Merge::Concat,
            columns: Arc::new(columns),
            residual: crate::expr::Predicate::True,
        };
        stream::iter([Ok(task)]).boxed()
    }
    fn files(&self, _: &Scan, _: ListingColumns) -> BoxStream<'static, Result<RecordBatch>> {
        nothing()
    }
    async fn totals(&self) -> Result<Totals> {
        Ok(Totals::default())
    }
    async fn pruning(&self, _: &Scan) -> Result<Pruning> {
        Ok(Pruning::default())
    }
}
