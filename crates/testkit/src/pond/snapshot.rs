//! One version of a pond table, and the tasks that read it.
use std::{any::Any, collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, Result,
    expr::{ColumnPath, Predicate, Scalar},
    file::{ColumnStats, DataFile},
    listing::ListingColumns,
    prune::{Facts, keep},
    scan::{ColumnMapping, DeleteMarker, KeyMerge, MatchBy, Merge, MergeRule, Scan, ScanTask, StagedMerge},
    table::{Layout, Pruning, RefRules, Snapshot, Totals},
    version::Version,
    write::WriteRules,
};

use super::{
    state::{Live, MERGE, ORDER, State},
    table::version_of,
};

/// Native fact of a data file in a table with key: `base` or `update`.
pub(super) const LEVEL: &str = "level";
/// Native fact of a data file in a table with key: its bucket.
pub(super) const BUCKET: &str = "bucket";
/// The column of an update file that marks deletions with `D`; the table does not have it.
pub(super) const OPERATION: &str = "_pond_operation";
/// Columns of a data file that override the row ids its place would give.
const ROW_ID: &str = "_pond_row_id";
const ROW_VERSION: &str = "_pond_row_version";

/// A version, loaded. Never changes.
#[derive(Debug)]
pub struct PondSnapshot {
    pub(super) state: State,
    version: Version,
    schema: SchemaRef,
    layout: Layout,
}

impl PondSnapshot {
    pub(super) fn new(state: State) -> Self {
        Self { version: version_of(&state), schema: state.schema(), layout: state.placement.layout(), state }
    }

    /// # Errors
    /// `Invalid` for a snapshot of another format.
    pub(super) fn of(snapshot: &dyn Snapshot) -> Result<&Self> {
        (snapshot as &dyn Any).downcast_ref().ok_or_else(|| Error::invalid("not a snapshot of a pond table"))
    }

    /// Live files that may hold rows of `predicate`.
    ///
    /// In a table with key only partition values count: a file without a matching row may hold the newer version of a
    /// row that matches elsewhere.
    fn kept(&self, predicate: &Predicate) -> Vec<Live> {
        let keyed = !self.layout.key.is_empty();
        let may_match = |live: &&Live| match keyed {
            true => keep(predicate, &PartitionOnly(&live.file)),
            false => keep(predicate, &live.file),
        };
        self.state.files.iter().filter(may_match).cloned().collect()
    }

    fn mapping(&self) -> Arc<ColumnMapping> {
        let tracked = self.layout.key.is_empty();
        Arc::new(ColumnMapping {
            by: MatchBy::Name,
            schema: Arc::clone(&self.schema),
            row_id_column: tracked.then(|| ROW_ID.to_owned()),
            row_version_column: tracked.then(|| ROW_VERSION.to_owned()),
        })
    }

    fn merge(&self, group: &[Live]) -> Merge {
        let bases = group.iter().filter(|it| is_base(it)).count();
        // A lone base file has one row a key and no deletions: nothing to merge.
        if self.layout.key.is_empty() || (bases == 1 && group.len() == 1) {
            return Merge::Concat;
        }
        let order = self.state.properties.get(ORDER).map(ColumnPath::top);
        let merge = KeyMerge {
            key: self.layout.key.clone(),
            order: order.into_iter().collect(),
            rule: MergeRule::LastRow,
            deletion: Some(DeleteMarker { column: ColumnPath::top(OPERATION), values: vec!["D".into()] }),
        };
        match self.state.properties.get(MERGE).map(String::as_str) {
            Some("two-stages") => {
                let staged = StagedMerge { base_files: bases, merge, unconditional_deletes: true };
                Merge::Staged(Arc::new(staged))
            }
            _ => Merge::ByKey(Arc::new(merge)),
        }
    }

    /// Files that are read together: each alone in a table without key, else by partition and bucket, base first.
    fn groups(&self, files: Vec<Live>) -> Vec<Vec<Live>> {
        if self.layout.key.is_empty() {
            return files.into_iter().map(|it| vec![it]).collect();
        }
        let mut groups: BTreeMap<String, Vec<Live>> = BTreeMap::new();
        for live in files {
            let bucket = live.file.native.get(BUCKET).cloned().unwrap_or_default();
            groups.entry(format!("{:?}/{bucket}", live.file.partition)).or_default().push(live);
        }
        groups
            .into_values()
            .map(|mut group| {
                group.sort_by_key(|it| !is_base(it));
                group
            })
            .collect()
    }
}

/// What every row of a file has in common.
struct PartitionOnly<'a>(&'a DataFile);

impl Facts for PartitionOnly<'_> {
    fn rows(&self) -> Option<u64> {
        None
    }

    fn column(&self, _: &ColumnPath) -> Option<ColumnStats> {
        None
    }

    fn constant(&self, column: &ColumnPath) -> Option<Option<Scalar>> {
        self.0.constant(column)
    }
}

pub(super) fn is_base(live: &Live) -> bool {
    live.file.native.get(LEVEL).is_some_and(|it| it == "base")
}

#[async_trait]
impl Snapshot for PondSnapshot {
    fn version(&self) -> &Version {
        &self.version
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn properties(&self) -> &BTreeMap<String, String> {
        &self.state.properties
    }

    fn write_rules(&self) -> Result<WriteRules> {
        super::rules::of(&self.state)
    }

    async fn application(&self, id: &str) -> Result<Option<i64>> {
        Ok(self.state.applications.get(id).copied())
    }

    fn ref_rules(&self) -> Result<RefRules> {
        Ok(RefRules::default())
    }

    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        vec![
            ("features".into(), self.state.features.clone().into()),
            ("tags".into(), self.state.tags.iter().map(|it| it.name.clone()).collect()),
            ("leased".into(), self.state.leased().into()),
        ]
    }

    fn tasks(&self, scan: &Scan) -> BoxStream<'static, Result<ScanTask>> {
        let columns = self.mapping();
        let mut known_rows = 0u64;
        let mut tasks = Vec::new();
        for group in self.groups(self.kept(&scan.predicate)) {
            if scan.predicate == Predicate::True && scan.limit.is_some_and(|it| known_rows >= it) {
                break;
            }
            let merge = self.merge(&group);
            if let (Merge::Concat, [live]) = (&merge, group.as_slice()) {
                known_rows = known_rows.saturating_add(live.rows().unwrap_or(0));
            }
            let deletes = group.iter().filter_map(|it| it.vector.clone()).collect();
            let mut files: Vec<_> = group.into_iter().map(|it| it.file).collect();
            if !scan.statistics {
                files.iter_mut().for_each(|it| it.stats.columns.clear());
            }
            let columns = Arc::clone(&columns);
            let residual = scan.predicate.clone();
            tasks.push(Ok(ScanTask { files, deletes, only: Vec::new(), merge, columns, residual }));
        }
        stream::iter(tasks).boxed()
    }

    fn files(&self, scan: &Scan, columns: ListingColumns) -> BoxStream<'static, Result<RecordBatch>> {
        let kept = self.kept(&scan.predicate);
        stream::once(async move { super::changes::listing(&kept, columns) }).boxed()
    }

    async fn totals(&self) -> Result<Totals> {
        let files = &self.state.files;
        let rows = files.iter().map(Live::rows).sum::<Option<u64>>();
        let deleted = files.iter().map(|it| it.vector.as_ref().map_or(Some(0), |it| it.rows)).sum();
        Ok(Totals {
            files: files.len() as u64,
            bytes: files.iter().map(|it| it.file.bytes).sum(),
            // Updates and deletions of keys are rows of files, not of the table.
            rows: if self.layout.key.is_empty() { rows } else { None },
            deleted_rows: deleted,
        })
    }

    async fn pruning(&self, scan: &Scan) -> Result<Pruning> {
        let kept = self.kept(&scan.predicate).len() as u64;
        Ok(Pruning { files_total: self.state.files.len() as u64, files_kept: kept })
    }
}
