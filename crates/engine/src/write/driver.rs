//! One write from its beginning to its end.
//!
//! 1. Begin: the table gives a base, a write id, and the rules of that base. A table or feature this build does not write
//!    is refused here, before a byte is written.
//! 2. Write files; whoever prepares the commit does that through the driver, which remembers each file.
//! 3. Conclude: commit, then the upkeep that became due. If the commit surely failed, or there was none, the files of
//!    this write are deleted. After an unknown outcome nothing is: the table may name them.
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_schema::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use lakebed_core::{
    Error, ErrorKind, Result,
    change::Change,
    commit::{self, Intent, Write},
    conflict::ConflictPolicy,
    file::DeleteFile,
    maintain,
    path::FilePath,
    table::Snapshot,
    timeline::Action,
    write::{NewVector, WriteRules},
};

use super::{
    Done, FileWriter, Kind, Prepared, Shaping, Target, WriteContext, Written,
    streams::{Feed, Streams, Test},
};

/// How often a commit is rebased over other writers.
const RETRIES: u32 = 100;

/// A write under way. [`Driver::conclude`] must end it.
#[derive(Debug)]
pub(crate) struct Driver {
    context: WriteContext,
    write: Write,
    rules: WriteRules,
    target: Arc<Target>,
    /// Files that the table's format made for this write.
    vectors: Mutex<Vec<FilePath>>,
    /// Whether the commit makes the table.
    creates: bool,
}

impl Driver {
    /// Begins a write on the newest version.
    ///
    /// # Errors
    /// Unsupported, by name, if this build does not write such a table.
    pub(crate) async fn begin(context: &WriteContext, intent: Intent) -> Result<Self> {
        let write = context.table.begin(intent).await?;
        Self::of(context, write, false).await
    }

    /// Goes on with the write of a [`Creation`](lakebed_core::format::Creation); `context` is over its table.
    pub(crate) async fn create(context: &WriteContext, write: Write) -> Result<Self> {
        Self::of(context, write, true).await
    }

    async fn of(context: &WriteContext, write: Write, creates: bool) -> Result<Self> {
        let base = &write.base;
        let ruled = base.write_rules().and_then(|rules| {
            let target = Target::new(context, base.schema(), base.layout(), &rules)?;
            Ok((rules, Arc::new(target)))
        });
        match ruled {
            Ok((rules, target)) => {
                let vectors = Mutex::new(Vec::new());
                Ok(Self { context: context.clone(), write, rules, target, vectors, creates })
            }
            Err(err) => {
                abandon(context, &write).await;
                Err(err)
            }
        }
    }

    pub(crate) fn context(&self) -> &WriteContext {
        &self.context
    }

    /// The version the write stands on: read the table here and nowhere else.
    pub(crate) fn base(&self) -> &Arc<dyn Snapshot> {
        &self.write.base
    }

    pub(crate) fn rules(&self) -> &WriteRules {
        &self.rules
    }

    pub(crate) fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// What history will say: to be completed once the base is known.
    pub(crate) fn intent_mut(&mut self) -> &mut Intent {
        &mut self.write.intent
    }

    /// Whether the job that writes came this far already: then there is nothing to do.
    pub(crate) async fn applied(&self) -> Result<bool> {
        let Some(job) = &self.write.intent.application else { return Ok(false) };
        let seen = self.base().application(&job.id).await?;
        Ok(seen.is_some_and(|it| it >= job.version))
    }

    /// # Errors
    /// Refused where the table takes new rows only.
    pub(crate) fn may_remove(&self) -> Result<()> {
        match self.rules.append_only {
            false => Ok(()),
            true => Err(Error::new(ErrorKind::Refused, "this table is append-only: its rows may not go or change")
                .with_hint("the table's properties say so")),
        }
    }

    /// Files of another size from here on.
    pub(crate) fn set_target_bytes(&mut self, bytes: u64) -> Result<()> {
        self.rules.files.target_bytes = bytes.max(1);
        let base = self.base();
        self.target = Arc::new(Target::new(&self.context, base.schema(), base.layout(), &self.rules)?);
        Ok(())
    }

    /// Gives the table other columns with this write: rows from here on have them. The change that the commit must have.
    ///
    /// # Errors
    /// Those of the table for a schema it cannot have.
    pub(crate) async fn evolve(&mut self, schema: &SchemaRef) -> Result<Change> {
        let evolved = self.context.table.evolve(&self.write, schema).await?;
        self.rules = evolved.write_rules()?;
        self.target = Arc::new(Target::new(&self.context, evolved.schema(), evolved.layout(), &self.rules)?);
        Ok(Change::Schema(Arc::clone(evolved.schema())))
    }

    /// A writer of its own for one stream of rows.
    pub(crate) fn writer(&self, kind: Kind) -> FileWriter {
        FileWriter::new(&self.context, &self.target, kind)
    }

    /// Runs a plan and writes its rows. Its columns are the table's, by position (in files of changes, then
    /// `_change_type`); their types are brought into the table's.
    pub(crate) async fn write(&self, plan: Arc<dyn ExecutionPlan>, kind: Kind) -> Result<Vec<Written>> {
        let schema = plan.schema();
        let columns: Vec<usize> = (0..self.target.schema().fields().len()).collect();
        let table = schema.project(&columns).map_err(|it| Error::internal(it.to_string()))?;
        let shaping = Shaping::by_position(self.target.schema(), &table)?;
        self.write_shaped(plan, shaping, kind, None).await
    }

    /// Runs a plan, shapes its rows, and writes them.
    pub(super) async fn write_shaped(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        shaping: Shaping,
        kind: Kind,
        test: Option<Test>,
    ) -> Result<Vec<Written>> {
        let feed = Feed { shaping, kind, test };
        Streams::new(&self.context, &self.target, feed).write(plan).await
    }

    /// Has the table's format write what takes rows away; see [`Table::write_vectors`](lakebed_core::table::Table).
    pub(crate) async fn vectors(&self, vectors: Vec<NewVector>) -> Result<Vec<DeleteFile>> {
        if vectors.is_empty() {
            return Ok(Vec::new());
        }
        let made = self.context.table.write_vectors(&self.write, vectors).await?;
        let paths = made.iter().filter_map(|it| it.place.path().cloned());
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
        Ok(made)
    }

    /// Commits what was prepared, or undoes what was written for it.
    ///
    /// # Errors
    /// That of `prepared`; those of [`commit::commit`]. The files of this write are gone then, unless the outcome is
    /// unknown.
    pub(crate) async fn conclude(self, prepared: Result<Prepared>) -> Result<Done> {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(err) => {
                self.undo(true).await;
                return Err(err);
            }
        };
        if prepared.changes.is_empty() && !self.creates && self.write.intent.application.is_none() {
            self.undo(true).await;
            return Ok(Done { count: prepared.count, ..Done::nothing() });
        }
        self.commit(prepared).await
    }

    /// Ends the write without a commit: there is nothing to do.
    pub(crate) async fn drop_it(self) -> Result<Done> {
        self.undo(true).await;
        Ok(Done::nothing())
    }

    async fn commit(mut self, prepared: Prepared) -> Result<Done> {
        let Prepared { changes, read, metrics, count } = prepared;
        self.write.intent.metrics.extend(metrics);
        // Rows added after a look at the table are no blind append: other writers have to see that.
        if read.is_some() && self.write.intent.action == Action::Append {
            self.write.intent.action = Action::RowDelta;
        }
        let policy = ConflictPolicy { isolation: self.rules.isolation, read, claims: Vec::new(), retries: RETRIES };
        let WriteContext { table, publisher, env, .. } = &self.context;
        let committed = commit::commit(table.as_ref(), publisher.as_ref(), env, &self.write, &changes, &policy).await;
        match committed {
            Ok(committed) => {
                let warnings = maintain::after(table.as_ref(), publisher.as_ref(), env, &committed).await;
                Ok(Done { count, version: Some(committed.version), warnings })
            }
            Err(err) if err.kind() == ErrorKind::Unknown => Err(err),
            Err(err) => {
                // The commit abandoned the write itself, unless storage did not answer.
                self.undo(err.kind() == ErrorKind::Unavailable).await;
                Err(err)
            }
        }
    }

    /// Deletes the files of this write, which no version names.
    async fn undo(&self, abandons: bool) {
        let mut files = self.target.made();
        files.extend(self.vectors.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        files.sort_unstable();
        files.dedup();
        if !files.is_empty() {
            match self.context.table.storage().delete(&files).await {
                Ok(removal) if removal.failed.is_empty() => (),
                Ok(removal) => tracing::warn!(files = removal.failed.len(), "files of a failed write stay as orphans"),
                Err(err) => tracing::warn!(%err, "files of a failed write stay as orphans"),
            }
        }
        if abandons {
            abandon(&self.context, &self.write).await;
        }
    }
}

async fn abandon(context: &WriteContext, write: &Write) {
    if let Err(err) = context.table.abandon(write).await {
        tracing::warn!(write = %write.id, %err, "an abandoned write leaves traces");
    }
}

/// An intent with nothing but what is done.
pub(crate) fn intent(action: Action, operation: &str) -> Intent {
    Intent {
        action,
        operation: operation.to_owned(),
        parameters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    }
}
