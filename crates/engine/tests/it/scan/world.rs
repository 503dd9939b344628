//! A table of hand-made tasks: any file, any vector, any merge, without a format's log.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::{
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    physical_plan::ExecutionPlan,
    prelude::{SessionConfig, SessionContext},
};
use futures::{StreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, ErrorKind, Result,
    change::{ChangeSpan, ChangeTask, VersionDelta},
    expr::{Predicate, Scalar},
    file::{DataFile, DeleteFile},
    format::{FormatKind, TableFormat},
    listing::ListingColumns,
    maintain::Retain,
    path::FilePath,
    scan::{ColumnMapping, MatchBy, Merge, Scan, ScanTask},
    storage::Storage,
    table::{ChangeFeed, Finding, Layout, PartitionField, Pruning, Snapshot, Table, Totals, Transform},
    timeline::Timeline,
    version::{AsOf, Millis, Ref, Resolved, Span, Version, VersionId},
};
use lakebed_engine::{
    Formats,
    change_table::ChangeTable,
    error::of_datafusion,
    provider::LakeTable,
    scan::{options::ScanOptions, source::LakeFileSource},
};
use lakebed_testkit::{
    pond::{Pond, Vector},
    reference,
    rows::{Rows, assert_same},
};
use object_store::{memory::InMemory, path::Path};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};

/// Tasks in the making, over files in memory.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) storage: Storage,
    pub(crate) mapping: Arc<ColumnMapping>,
    pub(crate) partition: Vec<String>,
    pub(crate) tasks: Vec<ScanTask>,
}

impl World {
    pub(crate) fn new(by: MatchBy, schema: Schema) -> Self {
        let storage = Storage::new(Arc::new(InMemory::new()), Path::from("t"), "memory:///t");
        let mapping = ColumnMapping { by, schema: Arc::new(schema), row_id_column: None, row_version_column: None };
        Self { storage, mapping: Arc::new(mapping), partition: Vec::new(), tasks: Vec::new() }
    }

    /// Writes a data file; its rows and size are recorded.
    pub(crate) async fn file(&self, name: &str, batches: &[RecordBatch], properties: WriterProperties) -> DataFile {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batches[0].schema(), Some(properties)).unwrap();
        batches.iter().for_each(|it| writer.write(it).unwrap());
        writer.close().unwrap();
        let mut file = DataFile::parquet(FilePath::below(name), bytes.len() as u64);
        file.stats.rows = Some(batches.iter().map(|it| it.num_rows() as u64).sum());
        let _ = self.storage.create(name, bytes.into()).await.unwrap();
        file
    }

    pub(crate) async fn small(&self, name: &str, batch: RecordBatch) -> DataFile {
        self.file(name, &[batch], WriterProperties::builder().build()).await
    }

    pub(crate) fn add(&mut self, files: Vec<DataFile>, deletes: Vec<DeleteFile>, merge: Merge) {
        self.tasks.push(ScanTask {
            files,
            deletes,
            only: Vec::new(),
            merge,
            columns: Arc::clone(&self.mapping),
            residual: Predicate::True,
        });
    }

    pub(crate) fn add_file(&mut self, file: DataFile) {
        self.add(vec![file], Vec::new(), Merge::Concat);
    }

    /// A session with the table as `t`; `set` changes settings.
    pub(crate) fn session(&self, set: impl FnOnce(SessionConfig) -> SessionConfig) -> SessionContext {
        let context = session(set);
        context.register_table("t", Arc::new(self.provider())).unwrap();
        context
    }

    pub(crate) fn provider(&self) -> LakeTable {
        let snapshot: Arc<dyn Snapshot> = Arc::new(HandMade::new(self.clone()));
        let table: Arc<dyn Table> = Arc::new(HandMadeTable(self.clone()));
        LakeTable::new("t", table, snapshot, formats()).unwrap()
    }

    /// A session with the change feed of `tasks` as `c`.
    pub(crate) async fn changes(&self, tasks: Vec<ChangeTask>) -> SessionContext {
        let context = session(|it| it);
        let table: Arc<dyn Table> = Arc::new(HandMadeTable(self.clone()));
        let tasks = stream::iter(tasks.into_iter().map(Ok)).boxed();
        let feed = ChangeFeed { schema: Arc::clone(&self.mapping.schema), tasks };
        let changes = ChangeTable::new("c", table, feed, formats()).await.unwrap();
        context.register_table("c", Arc::new(changes)).unwrap();
        context
    }

    /// What the slow reader reads.
    pub(crate) async fn expected(&self) -> Rows {
        reference::read(&Pond, &self.storage, &self.tasks).await.unwrap()
    }

    /// Compares `SELECT <the table's columns>` with the slow reader.
    pub(crate) async fn check(&self) {
        let expected = self.expected().await;
        let columns: Vec<_> = expected.columns.iter().map(|it| format!("\"{it}\"")).collect();
        let found = query(&self.session(|it| it), &format!("select {} from t", columns.join(", "))).await;
        assert_same(&expected, &Rows::from_batches(&found).unwrap());
    }
}

pub(crate) fn formats() -> Formats {
    Formats::new(vec![Arc::new(Pond)])
}

pub(crate) fn session(set: impl FnOnce(SessionConfig) -> SessionConfig) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(2);
    config.options_mut().extensions.insert(ScanOptions::default());
    SessionContext::new_with_config(set(config))
}

/// Sets how filters reach the decoder.
pub(crate) fn pushing(mut config: SessionConfig, how: &str) -> SessionConfig {
    options(&mut config).filter_pushdown = how.to_owned();
    config
}

pub(crate) fn trusting(mut config: SessionConfig, trust: bool) -> SessionConfig {
    options(&mut config).trust_statistics = trust;
    config
}

fn options(config: &mut SessionConfig) -> &mut ScanOptions {
    config.options_mut().extensions.get_mut::<ScanOptions>().expect("every session has them")
}

pub(crate) fn vector(target: &DataFile, rows: impl IntoIterator<Item = u64>) -> DeleteFile {
    Vector::new(rows).inline("v", &target.path)
}

pub(crate) fn partitioned(file: DataFile, column: &str, value: Option<Scalar>) -> DataFile {
    DataFile { partition: vec![(column.to_owned(), value)], ..file }
}

/// Runs `sql`, and sees to it that every leaf of its plan is ours.
pub(crate) async fn query(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    try_query(context, sql).await.unwrap_or_else(|err| panic!("{sql}: {err}"))
}

pub(crate) async fn try_query(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    let frame = context.sql(sql).await.map_err(of_datafusion)?;
    let plan = frame.create_physical_plan().await.map_err(of_datafusion)?;
    assert_leaves(&plan);
    datafusion::physical_plan::collect(plan, context.task_ctx()).await.map_err(of_datafusion)
}

pub(crate) fn assert_leaves(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>()
        && let Some(config) = source.data_source().downcast_ref::<FileScanConfig>()
    {
        assert!(config.file_source.is::<LakeFileSource>(), "a leaf lost its vectors");
    }
    plan.children().into_iter().for_each(assert_leaves);
}

/// The only column of all rows, as numbers.
pub(crate) fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    column(batches, 0)
}

pub(crate) fn column(batches: &[RecordBatch], at: usize) -> Vec<i64> {
    use arrow_array::{cast::AsArray, types::Int64Type};
    let of = |it: &RecordBatch| {
        let array = arrow_cast::cast(it.column(at), &arrow_schema::DataType::Int64).unwrap();
        array.as_primitive::<Int64Type>().iter().map(|it| it.unwrap()).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

pub(crate) fn text(batches: &[RecordBatch]) -> String {
    arrow_cast::pretty::pretty_format_batches(batches).unwrap().to_string()
}

pub(crate) fn field(name: &str, kind: arrow_schema::DataType, metadata: &[(&str, &str)]) -> Field {
    let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Field::new(name, kind, true).with_metadata(metadata.collect())
}

#[derive(Debug)]
struct HandMade {
    world: World,
    version: Version,
    layout: Layout,
    properties: BTreeMap<String, String>,
}

impl HandMade {
    fn new(world: World) -> Self {
        let partition = world.partition.iter().map(|it| PartitionField {
            name: it.clone(),
            source: lakebed_core::expr::ColumnPath::top(it.as_str()),
            transform: Transform::Identity,
        });
        let layout = Layout { partition: partition.collect(), ..Layout::default() };
        let version = Version { id: VersionId::from(7), committed_at: Millis(0), parent: None, schema_id: None };
        Self { world, version, layout, properties: BTreeMap::new() }
    }
}

#[async_trait]
impl Snapshot for HandMade {
    fn version(&self) -> &Version {
        &self.version
    }
    fn schema(&self) -> &SchemaRef {
        &self.world.mapping.schema
    }
    fn layout(&self) -> &Layout {
        &self.layout
    }
    fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }
    fn tracks_rows(&self) -> bool {
        self.world.tasks.iter().flat_map(|it| &it.files).any(|it| it.first_row_id.is_some())
    }
    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }
    /// Prunes nothing: the engine must be right all the same.
    fn tasks(&self, _: &Scan) -> BoxStream<'static, Result<ScanTask>> {
        stream::iter(self.world.tasks.clone().into_iter().map(Ok)).boxed()
    }
    fn files(&self, _: &Scan, _: ListingColumns) -> BoxStream<'static, Result<RecordBatch>> {
        stream::empty().boxed()
    }
    async fn totals(&self) -> Result<Totals> {
        Ok(Totals { files: self.world.tasks.len() as u64, ..Totals::default() })
    }
    async fn pruning(&self, _: &Scan) -> Result<Pruning> {
        Ok(Pruning::default())
    }
}

#[derive(Debug)]
struct HandMadeTable(World);

fn absent<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, "a hand-made table has no such thing"))
}

#[async_trait]
impl Table for HandMadeTable {
    fn format(&self) -> FormatKind {
        Pond.kind()
    }
    fn storage(&self) -> &Storage {
        &self.0.storage
    }
    async fn resolve(&self, _: &AsOf) -> Result<Resolved> {
        absent()
    }
    async fn timeline(&self, _: &Span) -> Result<Timeline> {
        absent()
    }
    async fn refs(&self) -> Result<Vec<Ref>> {
        absent()
    }
    async fn snapshot(&self, _: &AsOf) -> Result<Arc<dyn Snapshot>> {
        absent()
    }
    fn changes(&self, _: &Span) -> BoxStream<'_, Result<VersionDelta>> {
        stream::empty().boxed()
    }
    async fn change_feed(&self, _: &ChangeSpan) -> Result<ChangeFeed> {
        absent()
    }
    fn reachable(&self, _: &Retain) -> BoxStream<'_, Result<FilePath>> {
        stream::empty().boxed()
    }
    async fn examine(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}
