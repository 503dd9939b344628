//! A session: catalogs, formats, variables and views, and the statements that run in them.
mod alter;
mod call;
mod columns;
mod create;
mod destination;
mod drop;
mod explain;
mod insert;
mod kept;
mod pool;
mod run;
mod settings;
mod shared;
mod tags;
mod upkeep;
mod variables;
mod writes;

use std::{fmt, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    execution::{
        SendableRecordBatchStream, SessionState, SessionStateBuilder, SessionStateDefaults,
        memory_pool::TrackConsumersPool, runtime_env::RuntimeEnvBuilder,
    },
    prelude::{SessionConfig, SessionContext},
};
use lakebed_core::{
    Result,
    catalog::Catalog,
    commit::Publisher,
    env::Env,
    storage::{IoStats, Storage},
    table::Table,
};

pub(crate) use self::{
    destination::{Destination, Given, TARGET},
    run::known,
    settings::{PartitionOverwrite, WriteSettings},
    shared::{Place, Shared},
    writes::counted,
};

use self::{pool::Pool, run::Mutable};
use crate::{
    error::of_datafusion,
    registry::Formats,
    scan::options::ScanOptions,
    sql::{self, Statement, functions::Functions, resolve::opened_at},
    stack::roomy,
};

/// Finds the storage of a place that a statement names: a path or a URL.
#[async_trait]
pub trait Locator: fmt::Debug + Send + Sync {
    async fn locate(&self, location: &str) -> Result<Storage>;
    /// What was asked of storage so far, over all tables.
    fn io(&self) -> Arc<IoStats>;
}

/// What a session is made of.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    pub formats: Formats,
    pub locator: Arc<dyn Locator>,
    /// By name; names match without case.
    pub catalogs: Vec<(String, Arc<dyn Catalog>)>,
    pub default_catalog: String,
    pub default_schema: String,
    /// Makes commits of tables named by path visible.
    pub publisher: Arc<dyn Publisher>,
    pub env: Env,
    /// In which times without a zone are read: `UTC`, `Europe/Berlin`, `+08:00`.
    pub time_zone: String,
    /// Bytes that queries may hold before they spill; `None` is no limit.
    pub memory_limit: Option<usize>,
    /// `None` is one a core.
    pub target_partitions: Option<usize>,
    pub access: Access,
}

/// Whether statements may change anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    ReadWrite,
    ReadOnly,
}

/// Runs statements. One at a time or many at once: a statement sees the variables as they were when it started.
pub struct Session {
    shared: Shared,
    context: SessionContext,
    /// What the session was made of, for RESET.
    initial: SessionOptions,
    mutable: std::sync::RwLock<Mutable>,
}

/// The result of a statement.
pub struct Output {
    pub schema: SchemaRef,
    /// Errors are DataFusion's; [`of_datafusion`] gives them their kind back.
    pub rows: SendableRecordBatchStream,
    pub kind: OutputKind,
    /// The statement's own `FORMAT` clause.
    pub format: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// Rows to show.
    Rows,
    /// A plan to read: `EXPLAIN`.
    Plan,
    /// Nothing to show: `SET`, `USE`, `CREATE TEMPORARY VIEW`.
    Done,
}

impl Session {
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for a time zone nobody knows or a memory limit of nothing.
    pub fn new(options: SessionOptions) -> Result<Self> {
        let state = state(&options)?;
        let mutable = Mutable::new(&options);
        Ok(Self {
            shared: Shared::new(options.clone())?,
            initial: options,
            context: SessionContext::new_with_state(state),
            mutable: std::sync::RwLock::new(mutable),
        })
    }

    /// Parses a script into statements.
    pub fn parse(&self, sql: &str) -> Result<Vec<Statement>> {
        sql::parse(sql)
    }

    /// Starts a statement. The versions of its tables are fixed when this returns; rows come with the stream.
    pub async fn run(&self, statement: &Statement) -> Result<Output> {
        roomy(self.start(statement)).await
    }

    /// Reads `table` where a statement names its format and place, instead of opening it again.
    pub fn know(&mut self, table: Arc<dyn Table>) {
        let key = opened_at(table.storage().location(), Some(table.format().name()));
        self.shared.known.insert(key, table);
    }

    /// What was asked of storage so far; a statement's part is the difference.
    pub fn io(&self) -> Arc<IoStats> {
        self.shared.locator.io()
    }

    /// The state that one statement runs in, its clock stopped at the start.
    pub(crate) fn statement_state(&self) -> SessionState {
        let mut state = self.context.state();
        let now = chrono::DateTime::from_timestamp_millis(self.shared.env.clock.now().0);
        state.execution_props_mut().query_execution_start_time = now;
        state
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("formats", &self.shared.formats).finish_non_exhaustive()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("schema", &self.schema).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Memory by which a batch may have one more row; where there is enough, batches are of the usual size.
const BYTES_A_ROW: usize = 64 << 10;
const FEWEST_ROWS: usize = 256;

fn state(options: &SessionOptions) -> Result<SessionState> {
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = options.memory_limit {
        const NAMED_CONSUMERS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(3).expect("three is not zero");
        let pool = TrackConsumersPool::new(Pool::new(bytes), NAMED_CONSUMERS);
        runtime = runtime.with_memory_pool(Arc::new(pool));
    }
    let mut config = SessionConfig::new()
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false)
        .set_str("datafusion.execution.time_zone", "UTC");
    config.options_mut().sql_parser.enable_ident_normalization = false;
    config.options_mut().extensions.insert(ScanOptions::default());
    if let Some(partitions) = options.target_partitions {
        config = config.with_target_partitions(partitions.max(1));
    }
    if let Some(bytes) = options.memory_limit {
        // Each sort sets this much aside to merge what it spilled; under a small limit the default leaves nothing.
        let share = bytes / (16 * config.target_partitions().max(1));
        let reserved = &mut config.options_mut().execution.sort_spill_reservation_bytes;
        *reserved = (*reserved).min(share);
        // A sort that spills, and a join, hold whole batches of each of their inputs.
        let most = config.batch_size().max(FEWEST_ROWS);
        config = config.with_batch_size((bytes / BYTES_A_ROW).clamp(FEWEST_ROWS, most));
    }
    let runtime = runtime.build_arc().map_err(of_datafusion)?;
    let tables = SessionStateDefaults::default_table_functions();
    let config = config.with_extension(Arc::new(Functions::new(options.memory_limit)));
    Ok(SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_expr_planners(SessionStateDefaults::default_expr_planners())
        .with_table_functions(tables.into_iter().map(|it| (it.name().to_owned(), it)).collect())
        .build())
}
