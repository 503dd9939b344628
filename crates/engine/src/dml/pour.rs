//! Rows on their way into files: rows of the table, and, where it records them, what became of them.
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::{execution::SendableRecordBatchStream, logical_expr::LogicalPlan};
use futures::TryStreamExt;
use lakebed_core::{Error, Result, change::ChangeFile};

use super::desk::Desk;
use crate::{
    error::of_datafusion,
    write::{Driver, FileWriter, Kind, Shaping, Source, Written},
};

/// What the rows of a stream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Image {
    /// They stay as they are, in another file.
    Moved,
    Inserted,
    /// First the new columns; then, where the table records changes, the old ones.
    Updated,
    /// They go: only changes are recorded.
    Deleted,
}

/// The writers of one statement.
pub(super) struct Pour<'d> {
    schema: SchemaRef,
    rows: Stream<'d>,
    changes: Option<Stream<'d>>,
}

/// A writer that is made for the first row.
struct Stream<'d> {
    driver: &'d Driver,
    kind: Kind,
    writer: Option<FileWriter>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Poured {
    pub(super) added: Vec<Written>,
    pub(super) change_files: Vec<ChangeFile>,
}

impl<'d> Pour<'d> {
    /// `kind` is that of the rows; changes are recorded if `changes` says so.
    pub(super) fn new(driver: &'d Driver, schema: &SchemaRef, kind: Kind, changes: bool) -> Self {
        let stream = |kind| Stream { driver, kind, writer: None };
        let changes = changes.then(|| stream(Kind::Changes));
        Self { schema: Arc::clone(schema), rows: stream(kind), changes }
    }

    pub(super) fn records_changes(&self) -> bool {
        self.changes.is_some()
    }

    /// Writes the rows of a plan; its first columns are those of `sources`. How many there were.
    pub(super) async fn pour(
        &mut self,
        desk: &Desk<'_>,
        plan: &LogicalPlan,
        sources: &[Source],
        image: Image,
    ) -> Result<u64> {
        let stream = desk.stream(plan).await?;
        self.drain(stream, sources, image).await
    }

    async fn drain(&mut self, mut stream: SendableRecordBatchStream, sources: &[Source], image: Image) -> Result<u64> {
        let input = stream.schema();
        let new = Shaping::new(&self.schema, sources, &input)?;
        let old = match image == Image::Updated && self.records_changes() {
            true => {
                let columns = self.schema.fields().len();
                let sources: Vec<Source> = (columns..2 * columns).map(Source::Input).collect();
                Some(Shaping::new(&self.schema, &sources, &input)?)
            }
            false => None,
        };
        let mut rows = 0u64;
        while let Some(batch) = stream.try_next().await.map_err(of_datafusion)? {
            rows += batch.num_rows() as u64;
            let shaped = new.apply(&batch)?;
            if let (Some(changes), Some(name)) = (&mut self.changes, image.after()) {
                if let Some(old) = &old {
                    changes.write(labelled(&old.apply(&batch)?, "update_preimage")?).await?;
                }
                changes.write(labelled(&shaped, name)?).await?;
            }
            if image != Image::Deleted {
                self.rows.write(shaped).await?;
            }
        }
        Ok(rows)
    }

    pub(super) async fn finish(self) -> Result<Poured> {
        let added = self.rows.finish().await?;
        let changes = match self.changes {
            Some(changes) => changes.finish().await?,
            None => Vec::new(),
        };
        Ok(Poured { added, change_files: changes.into_iter().map(Written::into_change).collect() })
    }
}

impl Image {
    /// What a change file calls the row; `None` for rows that do not change.
    fn after(self) -> Option<&'static str> {
        match self {
            Self::Moved => None,
            Self::Inserted => Some("insert"),
            Self::Updated => Some("update_postimage"),
            Self::Deleted => Some("delete"),
        }
    }
}

impl Stream<'_> {
    async fn write(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.driver.writer(self.kind)),
        };
        writer.write(batch).await
    }

    async fn finish(self) -> Result<Vec<Written>> {
        match self.writer {
            Some(writer) => writer.finish().await,
            None => Ok(Vec::new()),
        }
    }
}

/// The rows of a batch with what became of them, the same for all.
fn labelled(batch: &RecordBatch, change: &str) -> Result<RecordBatch> {
    let mut fields: Vec<_> = batch.schema().fields().to_vec();
    fields.push(Arc::new(Field::new("_change_type", DataType::Utf8, false)));
    let mut columns = batch.columns().to_vec();
    let label: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(change, batch.num_rows())));
    columns.push(label);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|it| Error::internal(it.to_string()))
}
