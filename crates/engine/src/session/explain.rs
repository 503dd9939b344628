//! EXPLAIN: first which version of each table is read and how many of its files, then DataFusion's plan.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use datafusion::{
    common::tree_node::TreeNodeRecursion,
    datasource::source_as_provider,
    execution::TaskContext,
    logical_expr::{LogicalPlan, LogicalPlanBuilder, TableScan},
    physical_plan::collect,
};
use lakebed_core::{Result, scan::Scan};

use super::{
    Output, OutputKind, Session,
    run::{Planned, of_batches},
};
use crate::{error::of_datafusion, lower::lower_all, provider::LakeTable, sql::statement::Rows};

impl Session {
    pub(super) async fn explain(&self, rows: &Rows, analyze: bool, verbose: bool) -> Result<Output> {
        let query = self.query_of(&rows.ask)?;
        let Planned { state, plan } = self.planned(query).await?;
        let optimized = state.optimize(&plan).map_err(of_datafusion)?;
        let tables = pinned(&optimized).await?;
        let explained = LogicalPlanBuilder::from(plan).explain(verbose, analyze).and_then(LogicalPlanBuilder::build);
        let plan = explained.map_err(of_datafusion)?;
        let physical = state.create_physical_plan(&plan).await.map_err(of_datafusion)?;
        let schema = physical.schema();
        let mut batches = collect(physical, Arc::new(TaskContext::from(&state))).await.map_err(of_datafusion)?;
        if !tables.is_empty() {
            let columns: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from_iter_values(["tables"])),
                Arc::new(StringArray::from_iter_values([tables.join("\n")])),
            ];
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns);
            batches.insert(0, batch.map_err(|it| of_datafusion(it.into()))?);
        }
        Ok(Output { format: rows.format.clone(), ..of_batches(schema, batches, OutputKind::Plan)? })
    }
}

/// One line a scan of a table: `t: pond version 3 of 2026-…, 2 of 5 files`.
async fn pinned(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut scans: Vec<TableScan> = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scans.push(scan.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(of_datafusion)?;
    let mut lines = Vec::new();
    for scan in scans {
        let provider = source_as_provider(&scan.source).map_err(of_datafusion)?;
        let Some(table) = provider.downcast_ref::<LakeTable>() else { continue };
        let snapshot = table.snapshot();
        let predicate = lower_all(&scan.filters, snapshot.schema()).predicate;
        let pruning = snapshot.pruning(&Scan { predicate, ..Scan::all() }).await?;
        let version = snapshot.version();
        lines.push(format!(
            "{}: {} version {} of {}, {} of {} files",
            scan.table_name,
            table.table().format(),
            version.id,
            version.committed_at,
            pruning.files_kept,
            pruning.files_total
        ));
    }
    Ok(lines)
}
