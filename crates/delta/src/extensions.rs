//! What Delta adds to SQL by its own name: the log as rows, and what a version holds beside its files.
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, builder};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Error, Result,
    extension::{Arguments, Extension, Extensions, RowSource},
    table::Table,
    version::AsOf,
};

use crate::{
    log::{Commit, Log},
    spec::Action,
    state::{Head, State},
    timeline::{self, resolve},
};

/// Commits read at once.
const AT_ONCE: usize = 16;

/// `delta_log(table)`, `t$transactions`, `t$domains`, `t$protocol`.
pub(crate) fn extensions() -> Extensions {
    let extension = |name, schema, rows| Extension { name, parameters: &[], schema, rows };
    Extensions {
        functions: vec![extension("delta_log", log_schema(), Arc::new(LogRows))],
        system_tables: vec![
            extension("transactions", transactions_schema(), Arc::new(Transactions)),
            extension("domains", domains_schema(), Arc::new(Domains)),
            extension("protocol", protocol_schema(), Arc::new(ProtocolRow)),
        ],
        procedures: Vec::new(),
        settings: Vec::new(),
    }
}

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

fn batch(schema: SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema, columns).map_err(|it| Error::internal(it.to_string()))
}

/// The state that the call names, the newest without a name.
async fn state(table: &Arc<dyn Table>, arguments: &Arguments) -> Result<State> {
    let log = Log::new(table.storage().clone());
    match version(&log, arguments).await? {
        Some(version) => State::open(&log, Some(version)).await,
        None => State::open(&log, None).await,
    }
}

async fn version(log: &Log, arguments: &Arguments) -> Result<Option<u64>> {
    match &arguments.as_of {
        None | Some(AsOf::Latest) => Ok(None),
        Some(AsOf::Version(id)) => Ok(Some(timeline::number(id)?)),
        Some(as_of) => Ok(Some(timeline::number(&resolve::resolve(&Head::new(log.clone()), as_of).await?.version.id)?)),
    }
}

fn log_schema() -> SchemaRef {
    schema(vec![
        Field::new("version", DataType::Int64, false),
        Field::new("action", DataType::Utf8, false),
        Field::new("path", DataType::Utf8, true),
        Field::new("json", DataType::Utf8, false),
    ])
}

/// Every line of every commit that is left, up to the version the call names: the version, the action, the path it
/// speaks of as written, and the action's JSON.
#[derive(Debug)]
struct LogRows;

#[async_trait]
impl RowSource for LogRows {
    async fn rows(&self, table: &Arc<dyn Table>, arguments: &Arguments) -> Result<Vec<RecordBatch>> {
        let log = Log::new(table.storage().clone());
        let until = version(&log, arguments).await?;
        let listing = log.listing().await?;
        let wanted = listing.commits().filter(|it| until.is_none_or(|until| it.file.version <= until));
        let versions: Vec<u64> = wanted.map(|it| it.file.version).collect();
        let read = stream::iter(versions).map(|it| log.read_commit(it)).buffered(AT_ONCE);
        read.map(|commit| lines(&commit?)).try_collect().await
    }
}

/// One batch a commit.
fn lines(commit: &Commit) -> Result<RecordBatch> {
    let version = i64::try_from(commit.version).map_err(|it| Error::internal(it.to_string()))?;
    let entries = &commit.entries;
    let versions = Int64Array::from(vec![version; entries.len()]);
    let names = StringArray::from_iter_values(entries.iter().map(|it| it.action.name()));
    let paths = StringArray::from_iter(entries.iter().map(|it| path(&it.action)));
    let texts = StringArray::from_iter_values(entries.iter().map(|it| commit.json(it)));
    batch(log_schema(), vec![Arc::new(versions), Arc::new(names), Arc::new(paths), Arc::new(texts)])
}

fn path(action: &Action) -> Option<&str> {
    match action {
        Action::Add(it) => Some(&it.path),
        Action::Remove(it) => Some(&it.path),
        Action::Cdc(it) => Some(&it.path),
        Action::Sidecar(it) => Some(&it.path),
        Action::Protocol(_)
        | Action::Metadata(_)
        | Action::Txn(_)
        | Action::DomainMetadata(_)
        | Action::CommitInfo(_)
        | Action::CheckpointMetadata(_)
        | Action::Unknown(_) => None,
    }
}

fn transactions_schema() -> SchemaRef {
    schema(vec![
        Field::new("app_id", DataType::Utf8, false),
        Field::new("version", DataType::Int64, false),
        Field::new("last_updated", DataType::Int64, true),
    ])
}

/// How far each application came; `last_updated` in milliseconds since the epoch.
#[derive(Debug)]
struct Transactions;

#[async_trait]
impl RowSource for Transactions {
    async fn rows(&self, table: &Arc<dyn Table>, arguments: &Arguments) -> Result<Vec<RecordBatch>> {
        let txns = state(table, arguments).await?.txns().await?;
        let names = StringArray::from_iter_values(txns.values().map(|it| &it.app_id));
        let versions = Int64Array::from_iter_values(txns.values().map(|it| it.version));
        let updated = Int64Array::from_iter(txns.values().map(|it| it.last_updated));
        let columns: Vec<ArrayRef> = vec![Arc::new(names), Arc::new(versions), Arc::new(updated)];
        Ok(vec![batch(transactions_schema(), columns)?])
    }
}

fn domains_schema() -> SchemaRef {
    schema(vec![Field::new("domain", DataType::Utf8, false), Field::new("configuration", DataType::Utf8, false)])
}

/// The metadata domains that stand.
#[derive(Debug)]
struct Domains;

#[async_trait]
impl RowSource for Domains {
    async fn rows(&self, table: &Arc<dyn Table>, arguments: &Arguments) -> Result<Vec<RecordBatch>> {
        let domains = state(table, arguments).await?.domains().await?;
        let names = StringArray::from_iter_values(domains.values().map(|it| &it.domain));
        let texts = StringArray::from_iter_values(domains.values().map(|it| &it.configuration));
        Ok(vec![batch(domains_schema(), vec![Arc::new(names), Arc::new(texts)])?])
    }
}

fn protocol_schema() -> SchemaRef {
    let names = |name| Field::new_list(name, Field::new("item", DataType::Utf8, true), false);
    schema(vec![
        Field::new("min_reader_version", DataType::Int32, false),
        Field::new("min_writer_version", DataType::Int32, false),
        names("features"),
        names("enabled"),
        Field::new("readable", DataType::Utf8, false),
        Field::new("writable", DataType::Utf8, false),
    ])
}

/// One row: what the table asks of its readers and writers, and whether this build meets it (`yes`, or what is missing).
#[derive(Debug)]
struct ProtocolRow;

#[async_trait]
impl RowSource for ProtocolRow {
    async fn rows(&self, table: &Arc<dyn Table>, arguments: &Arguments) -> Result<Vec<RecordBatch>> {
        let state = state(table, arguments).await?;
        let protocol = &state.protocol;
        let answer =
            |it: Result<(), crate::error::DeltaError>| it.map_or_else(|err| err.to_string(), |()| "yes".to_owned());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![protocol.min_reader_version])),
            Arc::new(Int32Array::from(vec![protocol.min_writer_version])),
            names(&protocol.features()),
            names(&protocol.enabled(&state.metadata.configuration)),
            Arc::new(StringArray::from(vec![answer(state.readable())])),
            Arc::new(StringArray::from(vec![answer(protocol.writable())])),
        ];
        Ok(vec![batch(protocol_schema(), columns)?])
    }
}

fn names(names: &[String]) -> ArrayRef {
    let mut list = builder::ListBuilder::new(builder::StringBuilder::new());
    names.iter().for_each(|it| list.values().append_value(it));
    list.append(true);
    Arc::new(list.finish())
}
