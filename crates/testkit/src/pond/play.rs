//! Pond tables made and changed in a line: what tests call.
use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use lakebed_core::{
    Result,
    change::{Change, Claim, RowDelta},
    commit::{self, Committed, Intent, Publisher, Write},
    conflict::{ConflictPolicy, Isolation},
    env::Env,
    expr::{ColumnPath, Predicate, Scalar},
    file::{DataFile, DeleteFile, DeletePlace, Encoding, FileKey},
    format::{CreateTable, TableFormat, TableLocation},
    path::FilePath,
    scan::{Scan, ScanTask},
    storage::Storage,
    table::{Bucket, Layout, PartitionField, Table, Transform},
    timeline::Action,
    version::{AsOf, Ref, RefKind, VersionId},
};

use super::{
    Pond, Vector, changes, layout, native,
    snapshot::{BUCKET, LEVEL, OPERATION, PondSnapshot},
    state::{FILES, LEASED, MERGE, ORDER},
};
use crate::{
    batch::{parquet_bytes, to_batch},
    conformance, env,
    files::{put_fresh, scalar, statistics},
    reference,
    rows::Rows,
    seed::Seed,
    store::FaultyStore,
    value::Value,
};

/// A time no test reaches, in milliseconds.
pub(super) const FAR: i64 = 4_000_000_000_000;

/// Vectors with more rows are files.
const MOST_INLINE_ROWS: u64 = 1;

/// How the files of a table with key become rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merging {
    OneFold,
    TwoStages,
}

/// A table to be made.
#[derive(Debug, Clone)]
pub struct PondSpec {
    pub schema: SchemaRef,
    pub partition: Vec<String>,
    pub key: Option<Key>,
    /// Whether publishing excludes nobody, so that writers need the lease.
    pub leased: bool,
    pub properties: BTreeMap<String, String>,
}

/// The key of a table, and how its rows merge.
#[derive(Debug, Clone)]
pub struct Key {
    pub columns: Vec<String>,
    /// The ordering column.
    pub order: Option<String>,
    pub merging: Merging,
    pub buckets: u32,
}

impl Default for PondSpec {
    /// `id BIGINT, name VARCHAR`, nothing else.
    fn default() -> Self {
        Self::with_columns(&[("id", DataType::Int64), ("name", DataType::Utf8)])
    }
}

impl PondSpec {
    pub fn with_columns(columns: &[(&str, DataType)]) -> Self {
        let field = |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), true);
        Self {
            schema: Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>())),
            partition: Vec::new(),
            key: None,
            leased: false,
            properties: BTreeMap::new(),
        }
    }

    /// `id, ts, name` with key `id`, ordered by `ts`, in one bucket.
    pub fn keyed(merging: Merging) -> Self {
        let columns = [("id", DataType::Int64), ("ts", DataType::Int64), ("name", DataType::Utf8)];
        let key = Key { columns: vec!["id".into()], order: Some("ts".into()), merging, buckets: 1 };
        Self { key: Some(key), ..Self::with_columns(&columns) }
    }

    #[must_use]
    pub fn leased(self) -> Self {
        Self { leased: true, ..self }
    }

    /// With data files that only Pond decodes.
    #[must_use]
    pub fn native(mut self) -> Self {
        self.properties.insert(FILES.into(), "json".into());
        self
    }

    #[must_use]
    pub fn partitioned_by(self, columns: &[&str]) -> Self {
        Self { partition: columns.iter().map(|it| (*it).to_owned()).collect(), ..self }
    }

    pub(super) fn create(&self) -> CreateTable {
        let top = |names: &[String]| names.iter().map(ColumnPath::top).collect::<Vec<_>>();
        let partition = self.partition.iter().map(|name| PartitionField {
            name: name.clone(),
            source: ColumnPath::top(name),
            transform: Transform::Identity,
        });
        let mut properties = self.properties.clone();
        if self.leased {
            properties.insert(LEASED.into(), "true".into());
        }
        let mut table_layout = Layout { partition: partition.collect(), ..Layout::default() };
        if let Some(key) = &self.key {
            table_layout.key = top(&key.columns);
            table_layout.bucket = Some(Bucket { key: top(&key.columns), count: key.buckets });
            let merging = match key.merging {
                Merging::OneFold => "one-fold",
                Merging::TwoStages => "two-stages",
            };
            properties.insert(MERGE.into(), merging.into());
            properties.extend(key.order.clone().map(|it| (ORDER.to_owned(), it)));
        }
        CreateTable {
            schema: Arc::clone(&self.schema),
            layout: table_layout,
            properties: properties.into_iter().collect(),
            comment: None,
        }
    }
}

/// A pond table with all that is needed to change it.
#[derive(Debug, Clone)]
pub struct Played {
    pub table: Arc<dyn Table>,
    pub storage: Storage,
    pub publisher: Arc<dyn Publisher>,
    pub env: Env,
}

impl Played {
    /// A new table in a faulty store in memory (which you may keep a clone of).
    pub async fn memory(store: &FaultyStore, spec: &PondSpec) -> Result<Self> {
        Self::create(store.storage("t"), env::env(Seed(1)), spec).await
    }

    pub async fn create(storage: Storage, env: Env, spec: &PondSpec) -> Result<Self> {
        let at = conformance::location(storage, &env);
        Ok(Self::at(Pond.create(at.clone(), spec.create()).await?, at))
    }

    /// The same table, opened anew: another process, its storage and its world.
    pub async fn open(storage: Storage, env: Env) -> Result<Self> {
        let at = conformance::location(storage, &env);
        Ok(Self::at(Pond.open(at.clone()).await?, at))
    }

    /// The table with the world it was opened in.
    pub(super) fn at(table: Arc<dyn Table>, at: TableLocation) -> Self {
        Self { table, storage: at.storage, publisher: at.publisher, env: at.env }
    }

    /// The rows of a version, read by the reference.
    pub async fn rows(&self, as_of: &AsOf) -> Result<Rows> {
        reference::read_table(&Pond, self.table.as_ref(), as_of).await
    }

    pub async fn begin(&self, action: Action) -> Result<Write> {
        self.table.begin(intent(action)).await
    }

    /// Commits with the table's own publisher; five rebases, serializable.
    pub async fn commit(&self, write: &Write, changes: &[Change]) -> Result<Committed> {
        let policy = ConflictPolicy {
            isolation: Isolation::Serializable,
            read: (write.intent.action != Action::Append).then_some(Predicate::True),
            claims: claims(changes),
            retries: 5,
        };
        self.commit_with(write, changes, &policy).await
    }

    pub async fn commit_with(&self, write: &Write, changes: &[Change], policy: &ConflictPolicy) -> Result<Committed> {
        commit::commit(self.table.as_ref(), self.publisher.as_ref(), &self.env, write, changes, policy).await
    }

    /// Writes one data file of `rows`; the partition is that of the first row. Nothing is visible yet.
    pub async fn write_file(&self, write: &Write, rows: &Rows) -> Result<DataFile> {
        let snapshot = PondSnapshot::of(write.base.as_ref())?;
        let keyed = !snapshot.state.placement.key.is_empty();
        let fields = snapshot.state.schema();
        let partition = &snapshot.state.placement.partition;
        let stored = fields.fields().iter().filter(|it| !partition.contains(it.name())).cloned();
        let marker = rows.column(OPERATION).map(|_| Arc::new(Field::new(OPERATION, DataType::Utf8, true)));
        let schema: SchemaRef = Arc::new(Schema::new(stored.chain(marker).collect::<Vec<_>>()));
        let native = !keyed && snapshot.state.properties.get(FILES).is_some_and(|it| it == "json");
        let body = match native {
            true => native::bytes(rows)?,
            false => parquet_bytes(&[to_batch(rows, &schema)?], &schema, 1024)?,
        };
        let unique = usize::try_from(self.env.ids.uuid() & 0xffff_ffff).expect("32 bits");
        let path = layout::data(&write.id, unique, if native { "json" } else { "parquet" });
        let bytes = body.len() as u64;
        put_fresh(&self.storage, &path, body).await?;
        let mut file = DataFile::parquet(FilePath::below(path), bytes);
        if native {
            file.encoding = Encoding::Native;
        }
        file.stats.rows = Some(rows.len() as u64);
        file.stats.columns = statistics(rows, &schema);
        file.partition = partition.iter().map(|name| (name.clone(), partition_value(rows, name))).collect();
        if keyed {
            let level = if rows.column(OPERATION).is_some() { "update" } else { "base" };
            file.native = BTreeMap::from([(LEVEL.into(), level.into()), (BUCKET.into(), "0".into())]);
        }
        Ok(file)
    }

    /// Appends rows as one file: of data, or of a new base in a table with key.
    pub async fn append(&self, rows: &Rows) -> Result<Committed> {
        let write = self.begin(Action::Append).await?;
        let added = vec![self.write_file(&write, rows).await?];
        self.commit(&write, &[Change::Rows(RowDelta { added, ..RowDelta::default() })]).await
    }

    /// Adds an update file to a table with key: each row with its operation, `D` for a deletion.
    pub async fn update(&self, rows: &Rows, operations: &[Option<&str>]) -> Result<Committed> {
        let mut marked = rows.clone();
        marked.columns.push(OPERATION.into());
        for (row, operation) in marked.rows.iter_mut().zip(operations) {
            row.push(Value::from(*operation));
        }
        let write = self.begin(Action::RowDelta).await?;
        let added = vec![self.write_file(&write, &marked).await?];
        self.commit(&write, &[Change::Rows(RowDelta { added, ..RowDelta::default() })]).await
    }

    /// Deletes the rows that `gone` picks, by vectors; files that keep no row stay with all rows deleted.
    pub async fn delete(&self, gone: impl Fn(&[Value]) -> bool) -> Result<Committed> {
        let write = self.begin(Action::Delete).await?;
        let changes = self.deletion(&write, gone).await?;
        self.commit(&write, &changes).await
    }

    /// What [`Played::delete`] would commit on the write's base.
    pub async fn deletion(&self, write: &Write, gone: impl Fn(&[Value]) -> bool) -> Result<Vec<Change>> {
        let tasks: Vec<ScanTask> = write.base.tasks(&Scan::all()).try_collect().await?;
        let reading = reference::Reading { places: true, ..Default::default() };
        let mut delta = RowDelta::default();
        for task in tasks {
            let rows = reference::read_with(&Pond, &self.storage, std::slice::from_ref(&task), &reading).await?;
            let place = rows.column("_row_index").expect("asked for");
            let hit = rows.rows.iter().filter(|row| gone(row)).filter_map(|row| match &row[place] {
                Value::Int(position) => u64::try_from(*position).ok(),
                _ => None,
            });
            let mut positions: Vec<u64> = hit.collect();
            if positions.is_empty() {
                continue;
            }
            let file = task.files[0].clone();
            let old = task.deletes.first();
            if let Some(old) = old {
                positions.extend(Pond.decode_vector(&self.storage, old).await?.iter());
            }
            let id = format!("{:032x}", self.env.ids.uuid());
            delta.added_deletes.push(self.write_vector(&id, &Vector::new(positions), &file.path).await?);
            let key = FileKey { path: file.path.clone(), vector: old.and_then(|it| it.id.clone()) };
            delta.removed.push(key);
            delta.added.push(file);
        }
        Ok(vec![Change::Rows(delta)])
    }

    /// Small vectors lie inline, others get a file.
    async fn write_vector(&self, id: &str, vector: &Vector, target: &FilePath) -> Result<DeleteFile> {
        if vector.rows.len() <= MOST_INLINE_ROWS {
            return Ok(vector.inline(id, target));
        }
        let path = layout::vector(id);
        put_fresh(&self.storage, &path, vector.bytes()).await?;
        Ok(vector.placed(id, target, DeletePlace::File(FilePath::below(path))))
    }

    /// Merges all files into one; `None` when there is nothing to gain.
    pub async fn compact(&self) -> Result<Option<Committed>> {
        let write = self.begin(Action::Compaction).await?;
        let changes = self.compaction(&write).await?;
        if changes.is_empty() {
            self.table.abandon(&write).await?;
            return Ok(None);
        }
        let policy =
            ConflictPolicy { isolation: Isolation::Snapshot, read: None, claims: claims(&changes), retries: 5 };
        self.commit_with(&write, &changes, &policy).await.map(Some)
    }

    /// What [`Played::compact`] would commit on the write's base; empty when there is one file.
    pub async fn compaction(&self, write: &Write) -> Result<Vec<Change>> {
        let tasks: Vec<ScanTask> = write.base.tasks(&Scan::all()).try_collect().await?;
        if tasks.iter().map(|it| it.files.len()).sum::<usize>() < 2 {
            return Ok(Vec::new());
        }
        let rows = reference::read(&Pond, &self.storage, &tasks).await?;
        let mut delta = RowDelta { added: vec![self.write_file(write, &rows).await?], ..RowDelta::default() };
        for task in &tasks {
            let vector = |path: &FilePath| task.deletes.iter().find(|it| it.targets.contains(path));
            delta.removed.extend(
                task.files
                    .iter()
                    .map(|it| FileKey { path: it.path.clone(), vector: vector(&it.path).and_then(|it| it.id.clone()) }),
            );
        }
        Ok(vec![Change::Rows(delta)])
    }

    pub async fn tag(&self, name: &str, version: &VersionId) -> Result<Committed> {
        let tag =
            Ref { name: name.into(), kind: RefKind::Tag, version: version.clone(), created_at: None, expires_at: None };
        let write = self.begin(Action::Ref).await?;
        self.commit(&write, &[Change::PutRef(tag)]).await
    }

    pub async fn restore(&self, to: AsOf) -> Result<Committed> {
        let write = self.begin(Action::Restore).await?;
        self.commit(&write, &[Change::Restore(to)]).await
    }
}

/// An intent with nothing but its action.
pub fn intent(action: Action) -> Intent {
    Intent {
        action,
        operation: format!("{action:?}").to_uppercase(),
        parameters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    }
}

fn claims(changes: &[Change]) -> Vec<Claim> {
    let added = changes.iter().flat_map(|it| match it {
        Change::Rows(rows) => rows.added.as_slice(),
        _ => &[],
    });
    added.filter_map(changes::bucket_claim).collect()
}

fn partition_value(rows: &Rows, name: &str) -> Option<Scalar> {
    let at = rows.column(name)?;
    scalar(&rows.rows.first()?[at])
}
