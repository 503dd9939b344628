//! From a snapshot to scan tasks: one a file, made only for files that pruning left.
use std::{collections::BTreeSet, sync::Arc};

use arrow_array::Array;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Result,
    expr::{ColumnPath, Predicate},
    file::{DataFile, FileStats},
    path::FilePath,
    scan::{ColumnMapping, Merge, Scan, ScanTask},
    version::Millis,
};

use crate::{
    checkpoint::{files::FileStatistics, on_a_thread},
    error::{DeltaError, named_by},
    partition,
    prune::{self, Pruner, StatsLeaves},
    schema::{TableSchema, physical_name},
    snapshot::DeltaSnapshot,
    state::{
        ListBatch, State,
        columns::{FileColumns, PartitionValues},
    },
    stats::{StatsColumns, StatsPlan},
};

/// A batch of the list of files, pruned.
pub(crate) struct Pruned {
    pub(crate) batch: ListBatch,
    pub(crate) statistics: FileStatistics,
    /// Rows of the batch to read, ascending.
    pub(crate) rows: Vec<usize>,
}

/// Which statistics to read with the files, beyond what pruning needs.
#[derive(Debug, Clone)]
pub(crate) enum Statistics {
    None,
    Of(Arc<StatsLeaves>),
}

/// The batches of the list of files, pruned by `pruner`, in order.
pub(crate) fn pruned(
    state: Arc<State>,
    pruner: Arc<Pruner>,
    statistics: Statistics,
) -> BoxStream<'static, Result<Pruned>> {
    let list = async move { state.files().await };
    let batches =
        stream::once(list).map_ok(|list| stream::iter(list.batches.clone().into_iter().map(Ok))).try_flatten();
    let judged = batches.map_ok(move |batch: ListBatch| prune_batch(batch, Arc::clone(&pruner), statistics.clone()));
    judged.try_buffered(2).boxed()
}

async fn prune_batch(batch: ListBatch, pruner: Arc<Pruner>, statistics: Statistics) -> Result<Pruned> {
    let statistics = match &statistics {
        Statistics::None if !pruner.wants_statistics() => FileStatistics::None,
        Statistics::None => batch.statistics(|leaf| pruner.needs(leaf)).await?,
        // One reading serves both.
        Statistics::Of(leaves) => batch.statistics(|leaf| leaves.needs(leaf) || pruner.needs(leaf)).await?,
    };
    // Judging one file takes about as long as parsing this much.
    const BYTES_A_FILE: usize = 64;
    let bytes = if pruner.keeps_all() { 0 } else { batch.live.count.saturating_mul(BYTES_A_FILE) };
    on_a_thread(bytes, move || {
        let rows = pruner.survivors(&batch, &statistics);
        Ok(Pruned { batch, statistics, rows })
    })
    .await
}

/// The tasks of a scan.
pub(crate) fn tasks(snapshot: &DeltaSnapshot, scan: &Scan) -> BoxStream<'static, Result<ScanTask>> {
    let pruner = Arc::new(Pruner::new(&snapshot.schema, &scan.predicate));
    let wanted = wanted_columns(scan);
    let plan = StatsPlan::of(&snapshot.schema, wanted.as_ref());
    let leaves = Arc::new(StatsLeaves::of(&snapshot.schema, wanted.as_ref()));
    let statistics = if scan.statistics { Statistics::Of(leaves) } else { Statistics::None };
    let maker = Arc::new(TaskMaker {
        state: Arc::clone(&snapshot.state),
        schema: Arc::clone(&snapshot.schema),
        columns: Arc::clone(&snapshot.mapping),
        residual: scan.predicate.clone(),
        plan: scan.statistics.then_some(plan),
    });
    let made = pruned(Arc::clone(&snapshot.state), pruner, statistics)
        .map_ok(move |it| stream::iter(Arc::clone(&maker).tasks(it)))
        .try_flatten();
    match scan.limit.filter(|_| scan.predicate == Predicate::True) {
        Some(limit) => enough(made.boxed(), limit).boxed(),
        None => made.boxed(),
    }
}

/// The columns whose statistics the tasks carry; `None` is all.
fn wanted_columns(scan: &Scan) -> Option<BTreeSet<ColumnPath>> {
    let mut wanted: BTreeSet<ColumnPath> = scan.projection.as_ref()?.iter().cloned().collect();
    prune::columns(&scan.predicate, &mut wanted);
    Some(wanted)
}

/// Ends the tasks once they surely hold `limit` rows.
fn enough(tasks: BoxStream<'static, Result<ScanTask>>, limit: u64) -> impl stream::Stream<Item = Result<ScanTask>> {
    let mut rows = 0_u64;
    tasks.try_take_while(move |task| {
        let more = rows < limit;
        let deleted: u64 = task.deletes.iter().map(|it| it.rows.unwrap_or(u64::MAX)).fold(0, u64::saturating_add);
        let file: u64 = task.files.iter().map(|it| it.stats.rows.unwrap_or(0)).sum();
        rows = rows.saturating_add(file.saturating_sub(deleted));
        async move { Ok(more) }
    })
}

struct TaskMaker {
    state: Arc<State>,
    schema: Arc<TableSchema>,
    columns: Arc<ColumnMapping>,
    residual: Predicate,
    /// `None` when tasks carry no statistics.
    plan: Option<StatsPlan>,
}

impl TaskMaker {
    /// The tasks of one batch, made as they are asked for.
    fn tasks(self: Arc<Self>, pruned: Pruned) -> impl Iterator<Item = Result<ScanTask>> {
        let partition: Vec<PartitionValues> =
            self.schema.partition_fields().map(|it| pruned.batch.files().partition_values(physical_name(it))).collect();
        let parsed = match (&pruned.statistics, &self.plan) {
            (FileStatistics::Parsed(columns), Some(plan)) => Some(StatsColumns::of(plan, columns)),
            _ => None,
        };
        let rows = pruned.rows.clone();
        rows.into_iter().map(move |row| self.task(&pruned, &partition, parsed.as_ref(), row))
    }

    fn task(
        &self,
        pruned: &Pruned,
        partition: &[PartitionValues],
        parsed: Option<&StatsColumns>,
        row: usize,
    ) -> Result<ScanTask> {
        let policy = self.state.log.storage().policy();
        let files = pruned.batch.files();
        let refused = |err| named_by(err, &self.adder(files, row));
        let path = policy.resolve_uri(files.path.value(row)).map_err(refused)?;
        let vector = files.vector(row);
        let deletes = vector.map(|it| it.delete_file(&path, policy)).transpose().map_err(refused)?;
        let stats = self.plan.as_ref().and_then(|plan| match &pruned.statistics {
            FileStatistics::None => None,
            FileStatistics::Text(text) => text.get(row).map(|it| plan.read(&it)),
            FileStatistics::Parsed(_) => parsed.map(|it| it.read(plan, row)),
        });
        let stats = stats.unwrap_or_default();
        Ok(ScanTask {
            files: vec![self.data_file(pruned, partition, row, path, stats)?],
            deletes: deletes.into_iter().collect(),
            only: Vec::new(),
            merge: Merge::Concat,
            columns: Arc::clone(&self.columns),
            residual: self.residual.clone(),
        })
    }

    /// What says that the file is there: the commit, or where a checkpoint stands for it, the version read.
    fn adder(&self, files: &FileColumns, row: usize) -> String {
        match &files.added_in {
            Some(versions) => format!("the commit of version {}", versions.value(row)),
            None => format!("the checkpoint below version {}", self.state.version),
        }
    }

    fn data_file(
        &self,
        pruned: &Pruned,
        partition: &[PartitionValues],
        row: usize,
        path: FilePath,
        stats: FileStats,
    ) -> Result<DataFile> {
        let files = pruned.batch.files();
        let number = |field: &'static str, column: Option<&arrow_array::Int64Array>| {
            let value = column.filter(|it| it.is_valid(row)).map(|it| it.value(row));
            let bad = |value| DeltaError::BadNumber { file: path.as_str().to_owned(), field, value };
            value.map(|it| u64::try_from(it).map_err(|_| bad(it))).transpose()
        };
        let first_row_id = number("baseRowId", files.base_row_id.as_ref())?;
        let row_version = number("defaultRowCommitVersion", files.row_version.as_ref())?;
        let bytes = number("size", Some(&files.bytes))?.unwrap_or(0);
        let values =
            self.schema.partition_fields().zip(partition).map(|(field, column)| {
                Ok((field.name().clone(), partition::of_row(path.as_str(), field, column, row)?))
            });
        let partition = values.collect::<Result<Vec<_>, DeltaError>>()?;
        let modified_at = files.modified_at.as_ref().filter(|it| it.is_valid(row)).map(|it| Millis(it.value(row)));
        Ok(DataFile { stats, partition, first_row_id, row_version, modified_at, ..DataFile::parquet(path, bytes) })
    }
}
