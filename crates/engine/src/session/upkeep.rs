//! `OPTIMIZE`, `VACUUM`, `RESTORE`, and the plans behind them.
//!
//! A table plans its upkeep; the engine rewrites the rows that a plan asks it to, and core carries out the rest. A dry run
//! is the plan, as rows.
use arrow_array::RecordBatch;
use datafusion::common::DFSchema;
use lakebed_core::{
    Error, Result,
    change::Change,
    commit::Publish,
    expr::Predicate,
    maintain::{self, Applied, Body, Maintenance, MaintenancePlan, Retain, Step},
    table::Transform,
    timeline::Action,
    version::{AsOf, Millis},
};
use serde_json::json;
use sqlparser::ast::Expr;

use super::{Destination, Output, Session, writes::answer};
use crate::{
    error::of_datafusion,
    lower::lower,
    sql::{
        names::bind_expression,
        pins::{self, Constants},
        plan::Planner,
        write::{Point, Target, Vacuum},
    },
    system::rows::Columns,
    write::{self, Driver, Prepared, WriteContext},
};

const HOUR_MS: f64 = 3_600_000.0;

impl Session {
    pub(super) async fn optimize(&self, target: &Target, filter: Option<&Expr>, dry_run: bool) -> Result<Output> {
        if dry_run {
            let to = self.destination(target).await?;
            return answer(planned(&self.compaction(&to, filter).await?)?);
        }
        let (to, context) = self.writing(target).await?;
        self.compact(&to, &context, filter).await
    }

    /// Rewrites small files; one row of what came of it.
    pub(super) async fn compact(
        &self,
        to: &Destination,
        context: &WriteContext,
        filter: Option<&Expr>,
    ) -> Result<Output> {
        let texts: Vec<String> = filter.iter().map(ToString::to_string).collect();
        let intent = self.intent(Action::Compaction, "OPTIMIZE", [("predicate", json!(texts).to_string())])?;
        let plan = self.compaction(to, filter).await?;
        let target_bytes = self.write_settings()?.optimize_target_bytes;
        let done = write::compact(context, &intent, plan, target_bytes).await?;
        let count = |it: u64| std::iter::once(Some(it));
        answer(
            Columns::default()
                .text("path", std::iter::once(to.table.storage().location()))
                .count("files_added", count(done.files_added))
                .count("files_removed", count(done.files_removed))
                .count("bytes_added", count(done.bytes_added))
                .count("bytes_removed", count(done.bytes_removed))
                .batch()?,
        )
    }

    async fn compaction(&self, to: &Destination, filter: Option<&Expr>) -> Result<MaintenancePlan> {
        let filter = match filter {
            None => Predicate::True,
            Some(filter) => self.partition_filter(to, filter).await?,
        };
        let target_bytes = self.write_settings()?.optimize_target_bytes;
        to.table.plan(&Maintenance::Compact { filter, target_bytes }).await
    }

    /// A filter over whole files: columns that partition the table, and nothing that changes from row to row.
    async fn partition_filter(&self, to: &Destination, filter: &Expr) -> Result<Predicate> {
        let snapshot = to.table.snapshot(&AsOf::Latest).await?;
        let mut bound = filter.clone();
        bind_expression(&mut bound, snapshot.schema())?;
        let schema = DFSchema::try_from(snapshot.schema().as_ref().clone()).map_err(of_datafusion)?;
        let state = self.statement_state();
        let planner = Planner::new(&state, Vec::new(), Vec::new());
        let expr = planner.expression(bound, &schema).map_err(of_datafusion)?;
        let partition = |name: &str| {
            let fields = snapshot.layout().partition.iter();
            fields.into_iter().any(|it| it.transform == Transform::Identity && it.source.0 == [name])
        };
        if let Some(other) = expr.column_refs().into_iter().find(|it| !partition(&it.name)) {
            let message = format!("OPTIMIZE … WHERE takes partition columns, and `{}` is none", other.name);
            return Err(Error::invalid(message));
        }
        let lowered = lower(&expr, snapshot.schema());
        match lowered.exact {
            true => Ok(lowered.predicate),
            false => Err(Error::unsupported(format!("OPTIMIZE … WHERE {filter}: files cannot be chosen by it"))
                .with_hint("compare partition columns with constants")),
        }
    }

    pub(super) async fn vacuum(&self, vacuum: &Vacuum) -> Result<Output> {
        let to = self.destination(&vacuum.table).await?;
        let hours = match &vacuum.retain_hours {
            Some(expr) => Some(self.hours(expr)?),
            None => None,
        };
        self.vacuum_table(&to, hours, vacuum.lite, vacuum.dry_run).await
    }

    pub(super) async fn vacuum_table(
        &self,
        to: &Destination,
        hours: Option<f64>,
        lite: bool,
        dry_run: bool,
    ) -> Result<Output> {
        let forced = !self.write_settings()?.retention_check;
        let older_than = hours.map(|it| self.hours_ago(it)).transpose()?;
        let retain = Retain::default();
        self.upkeep(to, &Maintenance::Vacuum { retain, older_than, lite, forced }, dry_run).await
    }

    /// Plans upkeep that rewrites no rows, and carries it out unless this is a dry run.
    pub(super) async fn upkeep(&self, to: &Destination, action: &Maintenance, dry_run: bool) -> Result<Output> {
        let plan = to.table.plan(action).await?;
        if dry_run {
            return answer(planned(&plan)?);
        }
        self.check_writes("upkeep")?;
        plan.notes.iter().for_each(|it| tracing::warn!("{it}"));
        let applied = maintain::run(to.table.as_ref(), to.publisher.as_ref(), &self.shared.env, plan).await?;
        outcome(to, applied)
    }

    /// A number of hours, not below zero.
    fn hours(&self, expr: &Expr) -> Result<f64> {
        let state = self.statement_state();
        let value = self.loader(&state).constant(expr)?;
        let hours = value.cast_to(&arrow_schema::DataType::Float64).map_err(of_datafusion)?;
        match hours {
            datafusion::scalar::ScalarValue::Float64(Some(it)) if it >= 0.0 && it.is_finite() => Ok(it),
            _ => Err(Error::invalid(format!("RETAIN {value} HOURS: a number of hours is not below 0"))),
        }
    }

    pub(super) fn hours_ago(&self, hours: f64) -> Result<Millis> {
        let now = self.shared.env.clock.now().0;
        #[expect(clippy::cast_possible_truncation, reason = "whatever is too large is checked to be so")]
        let span = (hours * HOUR_MS) as i64;
        let too_long = || Error::invalid(format!("{hours} hours ago is before all calendars"));
        if hours * HOUR_MS > 9.0e15 {
            return Err(too_long());
        }
        now.checked_sub(span).map(Millis).ok_or_else(too_long)
    }

    pub(super) async fn restore(&self, target: &Target, to: &Point) -> Result<Output> {
        let (destination, context) = self.writing(target).await?;
        let state = self.statement_state();
        let loader = self.loader(&state);
        let pin = match to {
            Point::Version(expr) => pins::of_value("version", loader.constant(expr)?, &loader)?,
            Point::Time(expr) => pins::of_value("timestamp", loader.constant(expr)?, &loader)?,
        };
        let as_of = loader.as_of(&destination.table, Some(pin)).await?;
        self.restore_table(&destination, &context, &as_of).await
    }

    /// Makes the rows of `as_of` those of a new version.
    pub(super) async fn restore_table(&self, to: &Destination, context: &WriteContext, as_of: &AsOf) -> Result<Output> {
        let resolved = to.table.resolve(as_of).await?;
        resolved.warnings.iter().for_each(|it| tracing::warn!("{it}"));
        let id = resolved.version.id;
        let intent = self.intent(Action::Restore, "RESTORE", [("version", id.to_string())])?;
        let driver = Driver::begin(context, intent).await?;
        let changes = vec![Change::Restore(AsOf::Version(id.clone()))];
        let done =
            driver.conclude(Ok(Prepared { changes, read: Some(Predicate::True), ..Prepared::default() })).await?;
        let version = done.version.map(|it| it.id.to_string());
        answer(
            Columns::default()
                .text("restored_version", std::iter::once(id.to_string()))
                .optional_text("version", std::iter::once(version))
                .batch()?,
        )
    }
}

/// What a plan would do, one row an object.
fn planned(plan: &MaintenancePlan) -> Result<RecordBatch> {
    let (mut acts, mut paths, mut bytes, mut whys) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut line = |act: &'static str, path: Option<String>, size: Option<u64>, why: String| {
        acts.push(act);
        paths.push(path);
        bytes.push(size);
        whys.push(why);
    };
    for step in &plan.steps {
        match step {
            Step::Delete(batch) => {
                batch.iter().for_each(|it| line("delete", Some(it.path.to_string()), it.bytes, it.why.clone()));
            }
            Step::Write { path, body } => line("write", Some(path.clone()), size(body), String::new()),
            Step::Rewrite(tasks) => tasks
                .iter()
                .flat_map(|it| &it.files)
                .for_each(|it| line("rewrite", Some(it.path.to_string()), Some(it.bytes), String::new())),
            Step::Publish(publish) => line("publish", published(publish), None, String::new()),
        }
    }
    Columns::default()
        .optional_text("path", paths.into_iter())
        .count("bytes", bytes.into_iter())
        .text("action", acts.into_iter())
        .text("why", whys.into_iter())
        .batch()
}

fn size(body: &Body) -> Option<u64> {
    match body {
        Body::Bytes(bytes) => u64::try_from(bytes.len()).ok(),
        Body::Stream(_) => None,
    }
}

fn published(publish: &Publish) -> Option<String> {
    match publish {
        Publish::Create { path, .. } => Some(path.clone()),
        Publish::Swap { to, .. } => Some(to.clone()),
        Publish::Request(_) => None,
    }
}

/// What came of a plan; an error if it stopped before its end.
fn outcome(to: &Destination, applied: Applied) -> Result<Output> {
    if let Some(err) = applied.stopped {
        let done =
            format!("stopped after {} of {} steps, {} files removed", applied.steps, applied.of, applied.removed);
        return Err(err.with_subject(done));
    }
    let count = |it: u64| std::iter::once(Some(it));
    answer(
        Columns::default()
            .text("path", std::iter::once(to.table.storage().location()))
            .count("files_removed", count(applied.removed))
            .count("bytes_removed", count(applied.bytes))
            .batch()?,
    )
}
