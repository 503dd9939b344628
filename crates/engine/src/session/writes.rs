//! Runs one statement that writes.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use datafusion::execution::SessionState;
use lakebed_core::{Error, ErrorKind, Result, commit::Intent, timeline::Action};
use sqlparser::ast::Query;

use super::{
    Access, Destination, Output, OutputKind, Session,
    run::{done, of_batches},
};
use crate::{
    error::of_datafusion,
    registry::Formats,
    sql::write::{Alteration, Target, Write},
    write::WriteContext,
};

impl Session {
    pub(super) async fn write(&self, write: &Write) -> Result<Output> {
        if !matches!(write, Write::Refused { .. }) && !reads_only(write) {
            self.check_writes(write.verb())?;
        }
        match write {
            Write::Insert(insert) => self.insert(insert).await,
            Write::Delete(delete) => self.delete(delete).await,
            Write::Update(update) => self.update(update).await,
            Write::Merge(merge) => self.merge(merge).await,
            Write::CreateTable(create) => self.create_table(create).await,
            Write::Alter { table, change } => match change.as_ref() {
                Alteration::RenameTo(to) => self.rename_table(table, to).await.map(|()| done()),
                change => self.alter_table(table, change).await.map(|()| done()),
            },
            Write::DropTable { table, if_exists } => self.drop_table(table, *if_exists).await.map(|()| done()),
            Write::Truncate { table } => self.truncate(table).await,
            Write::Optimize { table, filter, dry_run } => self.optimize(table, filter.as_deref(), *dry_run).await,
            Write::Vacuum(vacuum) => self.vacuum(vacuum).await,
            Write::Restore { table, to } => self.restore(table, to).await,
            Write::Call(call) => self.call(call).await,
            Write::CreateSchema { name, if_not_exists } => {
                self.create_schema(name, *if_not_exists).await.map(|()| done())
            }
            Write::DropSchema { name, if_exists } => self.drop_schema(name, *if_exists).await.map(|()| done()),
            Write::Refused { verb } => {
                Err(Error::unsupported(format!("{verb} is not supported")).with_hint("nothing was changed"))
            }
        }
    }

    /// # Errors
    /// [`ErrorKind::Refused`] in a session that only reads.
    pub(super) fn check_writes(&self, verb: &str) -> Result<()> {
        match self.shared.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => {
                Err(Error::new(ErrorKind::Refused, format!("{verb}: this session is read-only, nothing was changed"))
                    .with_hint("leave out --read-only, or unset LAKEBED_READ_ONLY and `read_only`"))
            }
        }
    }

    /// What a statement means to do to a table, with what the session's settings say.
    ///
    /// It is of no job: how far a job came is told by the rows it writes, and a statement that writes none must not be
    /// taken for them.
    pub(super) fn intent<const N: usize>(
        &self,
        action: Action,
        operation: &str,
        parameters: [(&str, String); N],
    ) -> Result<Intent> {
        let settings = self.write_settings()?;
        Ok(Intent {
            action,
            operation: operation.to_owned(),
            parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            metrics: BTreeMap::new(),
            branch: None,
            application: None,
            lineage: None,
            user_metadata: settings.user_metadata,
        })
    }

    /// A target, and what writing to it takes.
    pub(super) async fn writing(&self, target: &Target) -> Result<(Destination, WriteContext)> {
        let to = self.destination(target).await?;
        let context = self.write_context(&to, Arc::new(self.statement_state()))?;
        Ok((to, context))
    }

    /// What a statement in `state` needs to write to a table.
    pub(crate) fn write_context(&self, to: &Destination, state: Arc<SessionState>) -> Result<WriteContext> {
        let (table, publisher) = (Arc::clone(&to.table), Arc::clone(&to.publisher));
        WriteContext::new(table, &self.shared.formats, publisher, self.shared.env.clone(), state)
    }

    pub(crate) fn formats(&self) -> &Formats {
        &self.shared.formats
    }

    /// The session's views, by name in lower case.
    pub(crate) fn views(&self) -> BTreeMap<String, Query> {
        self.mutable_read().views.clone()
    }
}

/// Whether a statement of upkeep changes nothing, or finds that out by itself.
fn reads_only(write: &Write) -> bool {
    match write {
        Write::Vacuum(vacuum) => vacuum.dry_run,
        Write::Call(_) => true,
        _ => false,
    }
}

/// The answer of a statement that touches rows: how many.
pub(crate) fn counted(count: u64) -> Result<Output> {
    let count = i64::try_from(count).map_err(|_| Error::internal("more rows than can be counted"))?;
    let schema = Arc::new(Schema::new(vec![Field::new("count", DataType::Int64, false)]));
    let column: ArrayRef = Arc::new(Int64Array::from(vec![count]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).map_err(|it| of_datafusion(it.into()))?;
    of_batches(schema, vec![batch], OutputKind::Rows)
}

/// The answer of a statement with rows of its own.
pub(super) fn answer(batch: RecordBatch) -> Result<Output> {
    of_batches(batch.schema(), vec![batch], OutputKind::Rows)
}
