//! One version of a table: what it is, and what can be asked of it.
use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Result,
    change::Change,
    expr::{ColumnPath, Predicate},
    listing::ListingColumns,
    maintain::Retain,
    scan::{ColumnMapping, Scan, ScanTask},
    table::{Layout, PartitionField, Pruning, RefRules, Snapshot, Totals, Transform},
    version::{Version, VersionId},
    write::WriteRules,
};
use serde_json::{Value, json};

use crate::{
    checkpoint::files::FileStatistics,
    listing,
    properties::Properties,
    prune::Pruner,
    scan::{self, Statistics},
    schema::TableSchema,
    spec::{DomainMetadata, Txn},
    state::State,
    stats::{StatsColumns, StatsPlan, num_records},
    timeline::refs,
    write,
};

/// How long history stays where the table does not say.
const LOG_RETENTION: Duration = Duration::from_secs(30 * 86_400);

/// A version of a Delta table.
#[derive(Debug)]
pub struct DeltaSnapshot {
    pub(crate) state: Arc<State>,
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) mapping: Arc<ColumnMapping>,
    version: Version,
    layout: Layout,
    /// The table that this one is to replace.
    pub(crate) replaces: Option<Arc<DeltaSnapshot>>,
}

impl DeltaSnapshot {
    /// # Errors
    /// When the schema cannot be read; for a table whose rows this build cannot read either, that says so instead.
    pub(crate) fn new(state: Arc<State>) -> Result<Self> {
        let schema = match TableSchema::of(&state.protocol, &state.metadata) {
            Ok(schema) => Arc::new(schema),
            Err(err) => return Err(state.readable().err().unwrap_or(err).into()),
        };
        let partition = schema.partition_fields().map(|it| PartitionField {
            name: it.name().clone(),
            source: ColumnPath::top(it.name().as_str()),
            transform: Transform::Identity,
        });
        let layout = Layout { partition: partition.collect(), ..Layout::default() };
        let version = Version {
            id: VersionId::new(state.shown_version()),
            committed_at: state.committed_at,
            parent: state.version_number().and_then(|it| it.checked_sub(1)).map(VersionId::from),
            schema_id: None,
        };
        let mapping = Arc::new(schema.column_mapping(&state.metadata.configuration));
        Ok(Self { state, schema, mapping, version, layout, replaces: None })
    }

    /// A table without files, for a write that puts it in place of `beneath`. It counts as of that one's version.
    pub(crate) fn replacing(beneath: Arc<Self>, state: State) -> Result<Self> {
        let version = beneath.version.clone();
        Ok(Self { version, replaces: Some(beneath), ..Self::new(Arc::new(state))? })
    }

    /// What is there: of a table that is to replace another, that other.
    pub(crate) fn beneath(&self) -> &Self {
        self.replaces.as_deref().unwrap_or(self)
    }

    /// What was found wrong with hints, checksums and checkpoints on the way, and did no harm.
    pub fn warnings(&self) -> Vec<String> {
        self.state.warnings()
    }

    /// The newest version that an application says it wrote.
    pub fn transaction(&self, application: &str) -> Option<i64> {
        self.state.txns.as_ref()?.get(application).map(|it| it.version)
    }

    /// The configuration of a metadata domain.
    pub fn domain(&self, domain: &str) -> Option<&str> {
        self.state.domains.as_ref()?.get(domain).map(|it| it.configuration.as_str())
    }

    fn unreadable<T: Send + 'static>(&self) -> Option<BoxStream<'static, Result<T>>> {
        let err = self.state.readable().err()?;
        Some(stream::once(async { Err(err.into()) }).boxed())
    }
}

#[async_trait]
impl Snapshot for DeltaSnapshot {
    fn version(&self) -> &Version {
        &self.version
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema.arrow
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn properties(&self) -> &BTreeMap<String, String> {
        &self.state.metadata.configuration
    }

    fn tracks_rows(&self) -> bool {
        self.mapping.row_id_column.is_some()
    }

    fn write_rules(&self) -> Result<WriteRules> {
        write::rules::of(self)
    }

    async fn application(&self, id: &str) -> Result<Option<i64>> {
        Ok(self.state.txns().await?.get(id).map(|it| it.version))
    }

    fn retention(&self) -> Option<Retain> {
        let age = Properties(&self.state.metadata.configuration).interval("delta.logRetentionDuration");
        // An age that cannot be read keeps all.
        let age = age.map_or(Duration::MAX, |it| it.unwrap_or(LOG_RETENTION));
        Some(Retain { age: Some(age), at_least: 1, ..Retain::default() })
    }

    fn features_for(&self, changes: &[Change]) -> Vec<String> {
        write::upgrade::asked(&self.state.protocol, &self.state.metadata.configuration, changes)
    }

    fn ref_rules(&self) -> Result<RefRules> {
        Ok(refs::rules(&self.state.protocol))
    }

    fn facts(&self) -> Vec<(String, Value)> {
        let (protocol, metadata) = (&self.state.protocol, &self.state.metadata);
        let mut facts = vec![
            ("id", json!(metadata.id)),
            ("name", json!(metadata.name)),
            ("description", json!(metadata.description)),
            ("created_at", json!(metadata.created_time.map(|it| lakebed_core::version::Millis(it).to_string()))),
            ("provider", json!(metadata.format.provider)),
            ("min_reader_version", json!(protocol.min_reader_version)),
            ("min_writer_version", json!(protocol.min_writer_version)),
            ("features", json!(protocol.features())),
            ("enabled_features", json!(protocol.enabled(&metadata.configuration))),
            ("partition_columns", json!(metadata.partition_columns)),
        ];
        if let Some(txns) = self.state.txns.as_ref().filter(|it| !it.is_empty()) {
            facts.push(("transactions", transactions(txns)));
        }
        if let Some(domains) = self.state.domains.as_ref().filter(|it| !it.is_empty()) {
            facts.push(("domains", configurations(domains)));
        }
        let warnings = self.warnings();
        if !warnings.is_empty() {
            facts.push(("warnings", json!(warnings)));
        }
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn tasks(&self, scan: &Scan) -> BoxStream<'static, Result<ScanTask>> {
        self.unreadable().unwrap_or_else(|| scan::tasks(self, scan))
    }

    fn files(&self, scan: &Scan, columns: ListingColumns) -> BoxStream<'static, Result<RecordBatch>> {
        self.unreadable().unwrap_or_else(|| listing::batches(self, scan, columns))
    }

    async fn totals(&self) -> Result<Totals> {
        self.state.readable()?;
        let list = self.state.files().await?;
        let mut totals = Totals { rows: Some(0), deleted_rows: Some(0), ..Totals::default() };
        for batch in &list.batches {
            let files = batch.files();
            let statistics = batch.statistics(|leaf| leaf.len() == 1 && leaf[0] == "numRecords").await?;
            let rows = RowCounts::of(&self.schema, &statistics);
            totals.files += batch.live.count as u64;
            for row in batch.live_rows() {
                let deleted = files.vectors.as_ref().and_then(|it| u64::try_from(it.deleted(row)).ok()).unwrap_or(0);
                totals.bytes = totals.bytes.saturating_add(u64::try_from(files.bytes.value(row)).unwrap_or(0));
                totals.deleted_rows = totals.deleted_rows.map(|it| it.saturating_add(deleted));
                totals.rows = sum(totals.rows, rows.get(row).and_then(|it| it.checked_sub(deleted)));
            }
        }
        Ok(totals)
    }

    async fn pruning(&self, scan: &Scan) -> Result<Pruning> {
        self.state.readable()?;
        let files_total = self.state.files().await?.count();
        if scan.predicate == Predicate::True {
            return Ok(Pruning { files_total, files_kept: files_total });
        }
        let pruner = Arc::new(Pruner::new(&self.schema, &scan.predicate));
        let pruned = scan::pruned(Arc::clone(&self.state), pruner, Statistics::None);
        let files_kept = pruned.try_fold(0, |kept, it| async move { Ok(kept + it.rows.len() as u64) }).await?;
        Ok(Pruning { files_total, files_kept })
    }
}

fn sum(total: Option<u64>, more: Option<u64>) -> Option<u64> {
    total?.checked_add(more?)
}

fn transactions(txns: &BTreeMap<String, Txn>) -> Value {
    txns.iter()
        .map(|(application, txn)| (application.clone(), json!(txn.version)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn configurations(domains: &BTreeMap<String, DomainMetadata>) -> Value {
    let shown = domains.iter().map(|(name, domain)| (name.clone(), json!(domain.configuration)));
    shown.collect::<serde_json::Map<_, _>>().into()
}

/// `numRecords` of the files of a batch.
pub(crate) enum RowCounts<'a> {
    Unknown,
    Text(&'a crate::state::columns::StatsText),
    Columns(StatsColumns),
}

impl<'a> RowCounts<'a> {
    pub(crate) fn of(schema: &TableSchema, statistics: &'a FileStatistics) -> Self {
        match statistics {
            FileStatistics::None => Self::Unknown,
            FileStatistics::Text(text) => Self::Text(text),
            FileStatistics::Parsed(columns) => {
                let nothing = StatsPlan::of(schema, Some(&std::collections::BTreeSet::new()));
                Self::Columns(StatsColumns::of(&nothing, columns))
            }
        }
    }

    /// Rows of the file as it lies on disk.
    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Text(text) => text.raw(row).and_then(num_records),
            Self::Columns(columns) => columns.rows(row),
        }
    }
}
