//! What one statement works with: its target at one version, and a planner that knows it.
//!
//! Every query of the statement runs in one state, with one clock, and reads every table at one version, however many
//! steps it takes. The target is a table in place of a name of ours; the same table under its own name, in a subquery,
//! reads the same version.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::{
    catalog::TableProvider,
    common::{TableReference, tree_node::TreeNodeRecursion},
    datasource::source_as_provider,
    error::DataFusionError,
    execution::{
        SendableRecordBatchStream, SessionState, TaskContext, memory_pool::MemoryPool, runtime_env::RuntimeEnv,
    },
    logical_expr::LogicalPlan,
    physical_plan::{ExecutionPlan, execute_stream},
};
use futures::TryStreamExt;
use lakebed_core::{Error, ErrorKind, Result, expr::Predicate, scan::Scan, table::Snapshot};
use sqlparser::ast::{self, Query};

use super::{ast as sql, marks::Marked};
use crate::{
    error::of_datafusion,
    provider::{FILE_NUMBER, Ground, LakeTable},
    scan::{Part, Reading},
    session::{Destination, Session, TARGET},
    sql::{
        check::check,
        names,
        plan::{Loaded, Planner},
        resolve::Loader,
    },
    write::{Shaping, Source},
};

/// One statement, its target and its tables.
pub(super) struct Desk<'a> {
    session: &'a Session,
    state: &'a SessionState,
    loader: Loader<'a>,
    to: &'a Destination,
    base: Arc<dyn Snapshot>,
    /// The files of the target that the statement met.
    pub(super) ground: Arc<Ground>,
    /// Joins sort instead of building tables in memory.
    frugal: bool,
    /// Another part of the statement reads the target, too.
    reads_all: bool,
}

/// What stands in place of a name of ours.
pub(super) type Own = BTreeMap<&'static str, Loaded>;

impl<'a> Desk<'a> {
    pub(super) fn new(
        session: &'a Session,
        state: &'a SessionState,
        to: &'a Destination,
        base: Arc<dyn Snapshot>,
    ) -> Self {
        let mut loader = session.loader(state);
        loader.fix(&to.table, &base);
        let ground = Arc::new(Ground::default());
        Self { session, state, loader, to, base, ground, frugal: false, reads_all: false }
    }

    /// The table's columns.
    pub(super) fn schema(&self) -> &SchemaRef {
        self.base.schema()
    }

    pub(super) fn state(&self) -> &SessionState {
        self.state
    }

    pub(super) fn runtime(&self) -> &Arc<RuntimeEnv> {
        self.state.runtime_env()
    }

    pub(super) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.state.runtime_env().memory_pool
    }

    /// How the target's columns are qualified.
    pub(super) fn qualifier(&self, alias: Option<&str>) -> Vec<String> {
        alias.map_or_else(|| self.to.reference.to_vec(), |it| vec![it.to_owned()])
    }

    /// The target with places of rows; with `readings`, only those rows.
    pub(super) fn target(&self, readings: Option<Vec<Reading>>) -> Result<Own> {
        let formats = self.session.formats().clone();
        let table = LakeTable::new(&self.to.name, Arc::clone(&self.to.table), Arc::clone(&self.base), formats)?;
        let table = table.numbered(Arc::clone(&self.ground));
        let table = match readings {
            Some(readings) => table.only(readings),
            None => table,
        };
        Ok(Own::from([(TARGET, Loaded { reference: self.to.reference.clone(), provider: Arc::new(table) })]))
    }

    /// A table of ours under its name.
    pub(super) fn table(name: &'static str, provider: Arc<dyn TableProvider>) -> (&'static str, Loaded) {
        (name, Loaded { reference: TableReference::bare(name), provider })
    }

    /// Plans a query; names of ours stand for what `own` says.
    pub(super) async fn plan(&mut self, mut query: Query, own: &Own) -> Result<LogicalPlan> {
        check(&query)?;
        let views = self.session.views();
        let foreign = self.state.table_functions().keys().cloned().collect();
        let wanted = names::collect(&mut query, &views, &foreign)?;
        let mut loaded = Vec::with_capacity(wanted.len());
        for wanted in &wanted {
            let ours = match wanted.name.as_slice() {
                [name] => own.get(name.as_str()).cloned(),
                _ => None,
            };
            loaded.push(match ours {
                Some(ours) => ours,
                None => self.loader.load(wanted).await?,
            });
        }
        let known = loaded.iter().map(crate::session::known).collect();
        let exposed = names::bind(&mut query, &foreign, known)?;
        let plan = Planner::new(self.state, loaded, exposed).plan(ast::Statement::Query(Box::new(query)));
        let plan = plan.map_err(of_datafusion)?;
        self.reads_all |= self.reads_target_elsewhere(&plan)?;
        Ok(plan)
    }

    /// Plans a query for its errors alone: names, types, and whether its first columns go into the table's.
    pub(super) async fn fits(&mut self, query: Query, own: &Own, sources: &[Source]) -> Result<()> {
        let plan = self.plan(query, own).await?;
        let plan = self.optimized(&plan)?;
        Shaping::new(self.schema(), sources, plan.schema().as_arrow()).map(|_| ())
    }

    /// Whether the plan scans the target beside the scan that looks for rows.
    fn reads_target_elsewhere(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && let Some(table) = provider.downcast_ref::<LakeTable>()
            {
                let same = table.table().storage().location() == self.to.table.storage().location();
                found |= same && !table.is_numbered();
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(of_datafusion)?;
        Ok(found)
    }

    pub(super) fn optimized(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        self.state.optimize(plan).map_err(of_datafusion)
    }

    pub(super) async fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.frugal {
            return self.state.create_physical_plan(plan).await.map_err(unplanned);
        }
        let mut state = self.state.clone();
        let options = state.config_mut().options_mut();
        options.optimizer.prefer_hash_join = false;
        // With one stream there is nothing but hash joins.
        options.execution.target_partitions = options.execution.target_partitions.max(2);
        state.create_physical_plan(plan).await.map_err(unplanned)
    }

    pub(super) fn task(&self) -> Arc<TaskContext> {
        Arc::new(TaskContext::from(self.state))
    }

    pub(super) async fn stream(&self, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
        let plan = self.physical(plan).await?;
        execute_stream(plan, self.task()).map_err(of_datafusion)
    }

    /// From now on joins spill instead of holding one side in memory.
    pub(super) fn be_frugal(&mut self) {
        self.frugal = true;
    }

    /// Whether it helps to try again with joins that spill.
    pub(super) fn may_be_frugal(&self, err: &Error) -> bool {
        !self.frugal && err.kind() == ErrorKind::Limit
    }

    /// Puts every live file on the ground, without looking into any.
    pub(super) async fn meet_all(&self) -> Result<()> {
        let scan = Scan { projection: Some(Vec::new()), statistics: false, ..Scan::all() };
        let mut tasks = self.base.tasks(&scan);
        while let Some(task) = tasks.try_next().await? {
            self.ground.enrol(&mut crate::provider::single_files(vec![task]), Some(Predicate::True), true)?;
        }
        Ok(())
    }

    /// The marked rows of some files, to be read again.
    pub(super) fn marked<'m>(&self, files: impl Iterator<Item = (i32, &'m Marked)>) -> Result<Vec<Reading>> {
        let part = |marked: &Marked| match marked {
            Marked::All => Part::Whole,
            Marked::Rows(rows) => Part::Only(Arc::clone(rows)),
        };
        files.map(|(file, marked)| self.ground.reading(file, part(marked))).collect()
    }

    /// The rows of some files that are not marked.
    pub(super) fn unmarked<'m>(&self, files: impl Iterator<Item = (i32, &'m Marked)>) -> Result<Vec<Reading>> {
        let part = |(file, marked): (i32, &Marked)| match marked {
            Marked::All => None,
            Marked::Rows(rows) => Some(self.ground.reading(file, Part::Without(Arc::clone(rows)))),
        };
        files.filter_map(part).collect()
    }

    /// How many rows there are to read, by file; files without a row are not in the answer.
    pub(super) async fn count(&mut self, readings: Vec<Reading>) -> Result<BTreeMap<i32, u64>> {
        let mut counts = BTreeMap::new();
        if readings.is_empty() {
            return Ok(counts);
        }
        let own = self.target(Some(readings))?;
        let items = vec![sql::item(sql::own(FILE_NUMBER), FILE_NUMBER)];
        let plan = self.plan(sql::select(items, sql::alone(sql::target(None)), None)?, &own).await?;
        let mut rows = self.stream(&plan).await?;
        while let Some(batch) = rows.try_next().await.map_err(of_datafusion)? {
            count_files(&batch, &mut counts)?;
        }
        Ok(counts)
    }

    /// What the statement read of its target, for other writers to be measured against.
    pub(super) fn read(&self) -> Predicate {
        if self.reads_all { Predicate::True } else { self.ground.read() }
    }
}

/// A subquery that is left in a plan is one that no join could be made of.
fn unplanned(err: DataFusionError) -> Error {
    let err = of_datafusion(err);
    match err.kind() == ErrorKind::Unsupported && err.to_string().contains("Subquery") {
        true => Error::unsupported("a subquery in this place, or one that compares with the row around it in this way")
            .with_hint("IN and EXISTS go into WHERE; a value may be a subquery of one row, joined by ="),
        false => err,
    }
}

fn count_files(batch: &RecordBatch, counts: &mut BTreeMap<i32, u64>) -> Result<()> {
    use arrow_array::{Array, cast::AsArray, types::Int32Type};
    let files = batch.column(0).as_primitive_opt::<Int32Type>();
    let files = files.filter(|it| it.null_count() == 0).ok_or_else(|| Error::internal("a file lost its number"))?;
    for file in files.values() {
        *counts.entry(*file).or_default() += 1;
    }
    Ok(())
}
