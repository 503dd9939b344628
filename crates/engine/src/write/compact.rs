//! The rows' part of upkeep: files of a plan's rewrite steps, written anew as fewer and larger ones.
//!
//! Each step is a commit of its own that changes no row: what it reads goes out again, vectors applied, into the same
//! partitions. Rows are counted on the way, and a step that would lose one is not committed. Other steps of the plan
//! come last.
use std::{collections::BTreeMap, sync::Arc};

use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, coalesce_partitions::CoalescePartitionsExec};
use lakebed_core::{
    Error, Result,
    change::{Change, RowDelta},
    commit::Intent,
    maintain::{self, MaintenancePlan, Step},
    scan::ScanTask,
    table::Snapshot,
    version::Version,
};

use super::{Driver, Kind, Prepared, Shaping, WriteContext, live::live_files, rows_of};
use crate::{
    error::of_datafusion,
    provider::{mapping_of, single_files},
    scan::{Label, Request, Shown, plan},
};

/// What a compaction did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compacted {
    /// The last version it made; `None` if there was nothing to do.
    pub(crate) version: Option<Version>,
    pub(crate) files_removed: u64,
    pub(crate) files_added: u64,
    pub(crate) bytes_removed: u64,
    pub(crate) bytes_added: u64,
    pub(crate) warnings: Vec<String>,
}

/// Carries out the plan of a [`Compact`](lakebed_core::maintain::Maintenance::Compact). `intent` is that of each commit;
/// files grow to `target_bytes`, or to what the table says.
///
/// # Errors
/// A conflict with a writer that took rows of the same files. Steps before the one that failed stand.
pub(crate) async fn compact(
    context: &WriteContext,
    intent: &Intent,
    plan: MaintenancePlan,
    target_bytes: Option<u64>,
) -> Result<Compacted> {
    let MaintenancePlan { steps, head, forgets, notes } = plan;
    let (rewrites, rest): (Vec<Step>, Vec<Step>) = steps.into_iter().partition(|it| matches!(it, Step::Rewrite(_)));
    let mut compacted = Compacted::default();
    for step in rewrites {
        if let Step::Rewrite(tasks) = step {
            rewrite(context, intent.clone(), tasks, target_bytes, &mut compacted).await?;
        }
    }
    if !rest.is_empty() {
        let plan = MaintenancePlan { steps: rest, head, forgets, notes };
        let WriteContext { table, publisher, env, .. } = context;
        let applied = maintain::run(table.as_ref(), publisher.as_ref(), env, plan).await?;
        compacted.warnings.extend(applied.stopped.map(|it| it.to_string()));
    }
    Ok(compacted)
}

async fn rewrite(
    context: &WriteContext,
    intent: Intent,
    tasks: Vec<ScanTask>,
    target_bytes: Option<u64>,
    compacted: &mut Compacted,
) -> Result<()> {
    let mut driver = Driver::begin(context, intent).await?;
    let sized = target_bytes.map_or(Ok(()), |it| driver.set_target_bytes(it));
    let prepared = match sized {
        Ok(()) => rewritten(&driver, tasks).await,
        Err(err) => Err(err),
    };
    let outcome = match prepared {
        Ok((prepared, did)) => driver.conclude(Ok(prepared)).await.map(|done| (done, did)),
        Err(err) => driver.conclude(Err(err)).await.map(|done| (done, Compacted::default())),
    };
    let (done, did) = outcome?;
    compacted.version = done.version.or(compacted.version.take());
    compacted.files_removed += did.files_removed;
    compacted.files_added += did.files_added;
    compacted.bytes_removed += did.bytes_removed;
    compacted.bytes_added += did.bytes_added;
    compacted.warnings.extend(done.warnings);
    Ok(())
}

async fn rewritten(driver: &Driver, tasks: Vec<ScanTask>) -> Result<(Prepared, Compacted)> {
    if driver.base().tracks_rows() {
        return Err(Error::unsupported("this build does not compact tables that track their rows"));
    }
    let removed = live_files(&tasks)?;
    let expected = rows_left(&tasks);
    let mut did = Compacted {
        files_removed: removed.len() as u64,
        bytes_removed: tasks.iter().flat_map(|it| &it.files).map(|it| it.bytes).sum(),
        ..Compacted::default()
    };
    let scan = scan_tasks(driver.context(), driver.base().as_ref(), tasks)?;
    let shaping = Shaping::by_position(driver.target().schema(), &scan.schema())?;
    let streams = scan.output_partitioning().partition_count() as u64;
    let enough = did.bytes_removed / streams.max(1) >= driver.rules().files.target_bytes;
    let scan: Arc<dyn ExecutionPlan> = match enough || streams == 1 {
        true => scan,
        false => Arc::new(CoalescePartitionsExec::new(scan)),
    };
    let written = driver.write_shaped(scan, shaping, Kind::Moved, None).await?;
    let count = rows_of(&written);
    if let Some(expected) = expected.filter(|it| *it != count) {
        return Err(Error::internal(format!("{expected} rows were to be compacted, and {count} were written")));
    }
    did.files_added = written.len() as u64;
    did.bytes_added = written.iter().map(|it| it.file.bytes).sum();
    let metrics = BTreeMap::from([
        ("numRemovedFiles".to_owned(), did.files_removed.to_string()),
        ("numRemovedBytes".to_owned(), did.bytes_removed.to_string()),
        ("numAddedFiles".to_owned(), did.files_added.to_string()),
        ("numAddedBytes".to_owned(), did.bytes_added.to_string()),
    ]);
    let added = written.into_iter().map(|it| it.file).collect();
    let rows = RowDelta { added, removed, ..RowDelta::default() };
    Ok((Prepared { changes: vec![Change::Rows(rows)], read: None, metrics, count }, did))
}

/// Rows that are neither deleted nor unknown; `None` where a file or a vector does not say.
fn rows_left(tasks: &[ScanTask]) -> Option<u64> {
    let all = tasks.iter().flat_map(|it| &it.files).map(|it| it.stats.rows).sum::<Option<u64>>()?;
    let gone = tasks.iter().flat_map(|it| &it.deletes).map(|it| it.rows).sum::<Option<u64>>()?;
    all.checked_sub(gone)
}

/// A plan that reads `tasks` of `base`: the table's columns, without the rows that are gone.
pub(super) fn scan_tasks(
    context: &WriteContext,
    base: &dyn Snapshot,
    tasks: Vec<ScanTask>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let shown = Shown::new(base.schema(), Vec::new());
    let mapping = mapping_of(&tasks, base.schema())?;
    let readings = single_files(tasks);
    let label = Label {
        table: context.table.storage().location().to_owned(),
        version: base.version().id.to_string(),
        files_kept: readings.len() as u64,
        files_total: None,
        pruned_by: None,
    };
    let request = Request {
        storage: context.table.storage(),
        format: Arc::clone(&context.format),
        wanted: (0..shown.schema.fields().len()).collect(),
        shown: &shown,
        mapping,
        readings,
        filters: &[],
        limit: None,
        label,
    };
    plan(context.state.as_ref(), request).map_err(of_datafusion)
}
