//! From the partitions of a plan to files, side by side.
//!
//! 1. The rows of a partitioned table are brought together by partition, so that each partition has one writer.
//! 2. Else each of the plan's streams holds its first [`FEW_BYTES`] back. A stream with more gets a writer of its own;
//!    what streams with less have goes into one writer together. So many streams of few rows make one file.
//!
//! A dropped future takes its streams with it.
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{Field, Schema};
use arrow_select::filter::filter_record_batch;
use datafusion::{
    execution::SendableRecordBatchStream,
    physical_expr::{Partitioning, PhysicalExpr, expressions::Column},
    physical_plan::{ExecutionPlan, ExecutionPlanProperties, repartition::RepartitionExec},
};
use futures::StreamExt;
use lakebed_core::{Error, Result};
use tokio::task::JoinSet;

use super::{
    Compiled, FileWriter, Kind, Shaping, Target, WriteContext, Written, check::row_text, encode::bytes_of,
    target::CHANGE_TYPE,
};
use crate::error::of_datafusion;

/// What a stream holds back before it opens a file of its own.
const FEW_BYTES: usize = 8 << 20;

/// What becomes of a plan's batches before they are written.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    pub(super) shaping: Shaping,
    pub(super) kind: Kind,
    pub(super) test: Option<Test>,
}

/// A condition on shaped rows.
#[derive(Debug, Clone)]
pub(super) enum Test {
    /// A row that does not meet it is an error.
    Must(Compiled),
    /// Rows that meet it are left out.
    Unless(Compiled),
}

/// A plan's rows on their way to files.
#[derive(Debug)]
pub(super) struct Streams {
    context: WriteContext,
    target: Arc<Target>,
    feed: Arc<Feed>,
}

/// What one stream has become.
#[derive(Debug, Default)]
struct Part {
    written: Vec<Written>,
    /// Shaped rows that are too few for a file.
    held: Vec<RecordBatch>,
}

impl Streams {
    pub(super) fn new(context: &WriteContext, target: &Arc<Target>, feed: Feed) -> Self {
        Self { context: context.clone(), target: Arc::clone(target), feed: Arc::new(feed) }
    }

    pub(super) async fn write(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Vec<Written>> {
        let plan = self.together(plan)?;
        let task = self.context.task();
        let streams = (0..plan.output_partitioning().partition_count())
            .map(|at| plan.execute(at, Arc::clone(&task)))
            .collect::<Result<Vec<_>, _>>();
        let mut streams = streams.map_err(of_datafusion)?;
        if streams.len() == 1 {
            let part = self.stream(streams.remove(0), false).await?;
            return Ok(part.written);
        }
        let holds = self.target.partition_names().next().is_none();
        let mut running = JoinSet::new();
        for stream in streams {
            let this =
                Self { context: self.context.clone(), target: Arc::clone(&self.target), feed: Arc::clone(&self.feed) };
            running.spawn(async move { this.stream(stream, holds).await });
        }
        let (mut written, mut held) = (Vec::new(), Vec::new());
        while let Some(part) = running.join_next().await {
            match part.map_err(|it| Error::internal(format!("a stream of rows ended: {it}"))).flatten() {
                Ok(part) => {
                    written.extend(part.written);
                    held.extend(part.held);
                }
                Err(err) => {
                    // Nobody is to make files while those that were made are deleted.
                    running.shutdown().await;
                    return Err(err);
                }
            }
        }
        if !held.is_empty() {
            let mut writer = self.writer();
            for batch in held {
                writer.write(batch).await?;
            }
            written.extend(writer.finish().await?);
        }
        written.sort_by(|a, b| a.file.path.cmp(&b.file.path));
        Ok(written)
    }

    /// The plan with the rows of each of the table's partitions in one stream.
    fn together(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if plan.output_partitioning().partition_count() == 1 {
            return Ok(plan);
        }
        let schema = plan.schema();
        let column = |it: &super::target::PartitionColumn| {
            let at = self.feed.shaping.input_of(it.column)?;
            Some(Arc::new(Column::new(schema.field(at).name(), at)) as Arc<dyn PhysicalExpr>)
        };
        let by: Vec<_> = self.target.partition.iter().filter_map(column).collect();
        if by.is_empty() {
            return Ok(plan);
        }
        let streams = self.context.state.config().target_partitions().max(1);
        let plan = RepartitionExec::try_new(plan, Partitioning::Hash(by, streams)).map_err(of_datafusion)?;
        Ok(Arc::new(plan))
    }

    async fn stream(&self, mut rows: SendableRecordBatchStream, holds: bool) -> Result<Part> {
        let mut part = Part::default();
        let mut writer = (!holds).then(|| self.writer());
        let mut bytes = 0;
        while let Some(batch) = rows.next().await {
            let batch = self.feed.apply(&batch.map_err(of_datafusion)?)?;
            if batch.num_rows() == 0 {
                continue;
            }
            if let Some(writer) = &mut writer {
                writer.write(batch).await?;
                continue;
            }
            bytes += batch.columns().iter().map(|it| bytes_of(it.as_ref())).sum::<usize>();
            part.held.push(batch);
            if bytes > FEW_BYTES {
                let mut own = self.writer();
                for batch in part.held.drain(..) {
                    own.write(batch).await?;
                }
                writer = Some(own);
            }
        }
        if let Some(writer) = writer {
            part.written = writer.finish().await?;
        }
        Ok(part)
    }

    fn writer(&self) -> FileWriter {
        FileWriter::new(&self.context, &self.target, self.feed.kind)
    }
}

impl Feed {
    /// The batch as writers take it.
    fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let shaped = self.shaping.apply(batch)?;
        match &self.test {
            Some(Test::Must(condition)) => must(condition, &shaped)?,
            Some(Test::Unless(condition)) => {
                let kept: BooleanArray = condition.evaluate(&shaped)?.iter().map(|it| Some(it != Some(true))).collect();
                return filter_record_batch(&shaped, &kept).map_err(|it| Error::internal(it.to_string()));
            }
            None => (),
        }
        match self.kind {
            Kind::Data | Kind::Moved => Ok(shaped),
            Kind::Changes => with_change_type(&shaped, batch),
        }
    }
}

fn must(condition: &Compiled, batch: &RecordBatch) -> Result<()> {
    let holds = condition.evaluate(batch)?;
    match (0..batch.num_rows()).find(|row| holds.is_null(*row) || !holds.value(*row)) {
        None => Ok(()),
        Some(row) => {
            let row = row_text(&batch.schema(), batch, row);
            Err(Error::invalid(format!(
                "the row {row} does not meet {}, whose rows it is to replace",
                condition.logical
            )))
        }
    }
}

/// The shaped columns, and the last of the plan's.
fn with_change_type(shaped: &RecordBatch, batch: &RecordBatch) -> Result<RecordBatch> {
    let kind = batch.columns().last().ok_or_else(|| Error::internal("changes without their kind"))?;
    let mut fields: Vec<_> = shaped.schema().fields().to_vec();
    fields.push(Arc::new(Field::new(CHANGE_TYPE, kind.data_type().clone(), true)));
    let mut columns = shaped.columns().to_vec();
    columns.push(Arc::clone(kind));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|it| Error::internal(it.to_string()))
}
