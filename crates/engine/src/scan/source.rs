//! The scan's file source: DataFusion's Parquet source, with the table's own idea of which rows a file has.
//!
//! Every method that returns a new source wraps it again. One that returned the inner source would pass plain queries
//! and silently bring deleted rows back; a test looks at every leaf of many optimised plans.
//!
//! Not forwarded: `create_file_opener` (the Parquet source has none), and encoding to protobuf: a plan that travels
//! without its units would read other rows, so this source has no such encoding of its own.
use std::{collections::HashMap, fmt, sync::Arc};

use arrow_schema::DataType;
use datafusion::{
    common::{config::ConfigOptions, tree_node::TreeNodeRecursion},
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileGroupPartitioner, FileOpener, FileScanConfig, FileSource, ParquetSource},
        table_schema::TableSchema,
    },
    error::Result,
    physical_expr::{
        EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr,
        expressions::Column,
        projection::{ProjectionExpr, ProjectionExprs},
        utils::collect_columns,
    },
    physical_plan::{
        DisplayFormatType, SortOrderPushdownResult,
        filter_pushdown::{FilterPushdownPropagation, PushedDown},
        metrics::ExecutionPlanMetricsSet,
    },
};
use lakebed_core::Error;
use object_store::ObjectStore;

use super::{
    adapt::Wanted,
    early::Early,
    error::external,
    finish::Finish,
    morsels::{LakeMorselizer, Masks, Morselizer},
    unit::{Scene, Unit, Way},
};

/// The name of the row number where nobody asked for it.
const ROW_NUMBER: &str = "row number";

/// What EXPLAIN says of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    pub table: String,
    pub version: String,
    pub files_kept: u64,
    pub files_total: Option<u64>,
    /// The predicate that files were dropped by.
    pub pruned_by: Option<String>,
}

/// Reads the units of a table's scan.
#[derive(Clone)]
pub struct LakeFileSource {
    inner: Arc<dyn FileSource>,
    scene: Arc<Scene>,
    fields: Arc<HashMap<String, Wanted>>,
    label: Option<Arc<Label>>,
    /// Whether row filters run inside the Parquet decoder in this scan.
    pushdown: bool,
    /// Whether a plan above relies on the scan for its filters.
    exact: bool,
    /// The last column of `inner` is the row number, which nobody above sees.
    masks: bool,
    /// What is seen of `inner`'s projection, with masks.
    visible: Option<ProjectionExprs>,
}

impl fmt::Debug for LakeFileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LakeFileSource").field("label", &self.label).finish_non_exhaustive()
    }
}

impl LakeFileSource {
    pub(crate) fn new(
        scene: Arc<Scene>,
        schema: TableSchema,
        fields: Arc<HashMap<String, Wanted>>,
        label: Option<Label>,
    ) -> Self {
        let mut options = datafusion::config::TableParquetOptions::new();
        options.global = scene.session.options().execution.parquet.clone();
        // The table says when a timestamp has a zone; nanoseconds since 1970 would overflow in the year 2262.
        options.global.coerce_int96 = Some("us".to_owned());
        options.global.coerce_int96_tz = Some("UTC".to_owned());
        let parquet = ParquetSource::new(schema)
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(Arc::clone(&scene.readers) as _);
        Self {
            inner: Arc::new(parquet),
            scene,
            fields,
            label: label.map(Arc::new),
            pushdown: false,
            exact: false,
            masks: false,
            visible: None,
        }
    }

    /// Runs row filters inside the decoder: worth it where few rows survive and most bytes lie in other columns.
    pub(crate) fn with_pushdown(mut self, pushdown: bool) -> Self {
        self.pushdown = pushdown;
        if let Some(parquet) = self.inner.downcast_ref::<ParquetSource>() {
            self.inner = Arc::new(parquet.clone().with_pushdown_filters(pushdown));
        }
        self
    }

    /// Reads the row number too, the last column of the schema, and takes scattered deletions out by it.
    pub(crate) fn with_masks(mut self, masks: bool) -> Self {
        self.masks = masks;
        self
    }

    /// `projection` of what is seen, then the row number.
    fn numbered(&self, projection: &ProjectionExprs) -> ProjectionExprs {
        let at = match &self.visible {
            Some(visible) => visible.iter().count(),
            None => self.inner.table_schema().table_schema().fields().len() - 1,
        };
        let number: Arc<dyn PhysicalExpr> = Arc::new(Column::new(ROW_NUMBER, at));
        let number = ProjectionExpr::new(number, ROW_NUMBER.to_owned());
        ProjectionExprs::new(projection.iter().cloned().chain([number]))
    }

    fn wrap(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner, ..self.clone() })
    }

    /// Whether the Parquet decoder may be trusted with a filter: one on a nested column it may drop when the file's
    /// struct differs from the table's, after having promised to apply it.
    fn is_flat(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let schema = self.inner.table_schema().table_schema();
        collect_columns(filter).iter().all(|it| match schema.fields().get(it.index()) {
            Some(field) => !nested(field.data_type()),
            None => false,
        })
    }

    /// Whether Parquet's bounds may decide about a filter: writers leave NaN out of them, and NaN is greater than all.
    fn is_without_floats(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let schema = self.inner.table_schema().table_schema();
        let floats = |it: &Column| schema.fields().get(it.index()).is_none_or(|it| holds_float(it.data_type()));
        !collect_columns(filter).iter().any(floats)
    }
}

fn nested(kind: &DataType) -> bool {
    kind.is_nested()
}

fn holds_float(kind: &DataType) -> bool {
    match kind {
        DataType::Struct(fields) => fields.iter().any(|it| holds_float(it.data_type())),
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => holds_float(item.data_type()),
        kind => kind.is_floating(),
    }
}

impl FileSource for LakeFileSource {
    fn create_file_opener(&self, _: Arc<dyn ObjectStore>, _: &FileScanConfig, _: usize) -> Result<Arc<dyn FileOpener>> {
        Err(external(Error::internal("a scan makes morsels, not openers")))
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let plain = self.inner.create_morselizer(store, config, partition)?;
        Ok(Box::new(LakeMorselizer {
            plain: Arc::from(plain),
            scene: Arc::clone(&self.scene),
            fields: Arc::clone(&self.fields),
            finish: Arc::new(Finish::new(self, self.exact)?),
            early: Early::new(self.inner.as_ref()),
            masks: match (self.masks, config.limit) {
                (false, _) => Masks::None,
                (true, Some(_)) => Masks::Unused,
                (true, None) => Masks::Used,
            },
            metrics: self.inner.metrics().clone(),
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.wrap(self.inner.with_batch_size(batch_size))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.inner.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        match self.masks {
            true => self.visible.as_ref(),
            false => self.inner.projection(),
        }
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        "lakebed"
    }

    fn fmt_extra(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(label) = &self.label {
            label.write(format, f)?;
        }
        self.inner.fmt_extra(format, f)
    }

    /// Ranges of plain files; units of other kinds stay whole, for each range would read all of one.
    fn repartitioned(
        &self,
        target_partitions: usize,
        repartition_file_min_size: usize,
        output_ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        let files = config.file_groups.iter().flat_map(|it| it.iter().cloned());
        let (plain, whole): (Vec<_>, Vec<_>) = files.partition(is_divisible);
        let partitioner = FileGroupPartitioner::new()
            .with_target_partitions(target_partitions)
            .with_repartition_file_min_size(repartition_file_min_size)
            .with_preserve_order_within_groups(output_ordering.is_some());
        let groups = if whole.is_empty() {
            partitioner.repartition_file_groups(&config.file_groups)
        } else {
            let groups = vec![FileGroup::new(plain)];
            let divided = partitioner.repartition_file_groups(&groups).unwrap_or(groups);
            Some(with_whole(divided, whole, target_partitions))
        };
        Ok(groups.map(|file_groups| {
            let mut divided = config.clone();
            divided.file_groups = file_groups;
            divided
        }))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let decoding = self.pushdown || config.execution.parquet.pushdown_filters;
        let trusted: Vec<bool> =
            filters.iter().map(|it| self.is_without_floats(it) && (!decoding || self.is_flat(it))).collect();
        let passed = filters.into_iter().zip(&trusted).filter(|(_, trusted)| **trusted).map(|(it, _)| it);
        let answer = self.inner.try_pushdown_filters(passed.collect(), config)?;
        let mut answers = answer.filters.into_iter();
        let filters: Vec<PushedDown> = trusted
            .iter()
            .map(|it| if *it { answers.next().unwrap_or(PushedDown::No) } else { PushedDown::No })
            .collect();
        let relied_on = filters.iter().any(|it| matches!(it, PushedDown::Yes));
        let mut propagation = FilterPushdownPropagation::with_parent_pushdown_result(filters);
        if let Some(inner) = answer.updated_node {
            let exact = self.exact || relied_on;
            propagation = propagation.with_updated_node(Arc::new(Self { inner, exact, ..self.clone() }) as _);
        }
        Ok(propagation)
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        eq_properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(match self.inner.try_pushdown_sort(order, eq_properties)? {
            SortOrderPushdownResult::Exact { inner } => SortOrderPushdownResult::Exact { inner: self.wrap(inner) },
            SortOrderPushdownResult::Inexact { inner } => SortOrderPushdownResult::Inexact { inner: self.wrap(inner) },
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        if !self.masks {
            return Ok(self.inner.try_pushdown_projection(projection)?.map(|it| self.wrap(it)));
        }
        let Some(inner) = self.inner.try_pushdown_projection(&self.numbered(projection))? else { return Ok(None) };
        let visible = match &self.visible {
            Some(visible) => visible.try_merge(projection)?,
            None => projection.clone(),
        };
        Ok(Some(Arc::new(Self { inner, visible: Some(visible), ..self.clone() })))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }
}

impl Label {
    fn write(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let files = match self.files_total {
            Some(total) => format!("{} of {total}", self.files_kept),
            None => self.files_kept.to_string(),
        };
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, ", table={}, version={}, files={files}", self.table, self.version)?;
                self.pruned_by.iter().try_for_each(|it| write!(f, ", pruned_by=[{it}]"))
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "table={}", self.table)?;
                writeln!(f, "version={}", self.version)?;
                writeln!(f, "files={files}")
            }
        }
    }
}

fn is_divisible(file: &PartitionedFile) -> bool {
    file.extension::<Arc<Unit>>().is_some_and(|it| matches!(it.way, Way::Parquet | Way::Selected))
}

/// Adds each file to the group with the fewest bytes; there are up to `most` groups.
fn with_whole(mut groups: Vec<FileGroup>, whole: Vec<PartitionedFile>, most: usize) -> Vec<FileGroup> {
    groups.retain(|it| !it.is_empty());
    while groups.len() < most.max(1) {
        groups.push(FileGroup::new(Vec::new()));
    }
    for file in whole {
        let lightest = groups.iter_mut().min_by_key(|it| it.iter().map(PartitionedFile::effective_size).sum::<u64>());
        if let Some(group) = lightest {
            group.push(file);
        }
    }
    groups.retain(|it| !it.is_empty());
    groups
}
