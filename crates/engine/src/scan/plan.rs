//! From readings to one scan node.
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::{
    catalog::Session,
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder, FileSource},
        source::DataSourceExec,
    },
    error::Result,
    execution::{object_store::ObjectStoreUrl, runtime_env::RuntimeEnv},
    logical_expr::Expr,
    physical_plan::ExecutionPlan,
};
use lakebed_core::{Error, format::TableFormat, scan::ColumnMapping, storage::Storage};
use object_store::{ObjectMeta, memory::InMemory};

use super::{
    adapt::Adapters,
    constants::location,
    error::external,
    footers::{Place, Readers},
    layout::{Layout, Shown},
    masks,
    merge::mergeable,
    options::ScanOptions,
    pushdown,
    reading::Reading,
    source::{Label, LakeFileSource},
    statistics,
    unit::{Scene, Unit, Way},
};

/// What to read.
pub(crate) struct Request<'a> {
    pub storage: &'a Storage,
    pub format: Arc<dyn TableFormat>,
    pub shown: &'a Shown,
    /// Positions of columns of `shown`, in the order they are wanted.
    pub wanted: Vec<usize>,
    pub mapping: Arc<ColumnMapping>,
    pub readings: Vec<Reading>,
    /// For estimates only: a plan above checks them.
    pub filters: &'a [Expr],
    pub limit: Option<usize>,
    pub label: Label,
}

/// One `DataSourceExec` over all units of the request.
pub(crate) fn plan(state: &dyn Session, request: Request<'_>) -> Result<Arc<dyn ExecutionPlan>> {
    let Request { storage, format, shown, wanted, mapping, readings, filters, limit, label } = request;
    let options = ScanOptions::of(state.config_options());
    let masks = masks::worthwhile(&readings);
    let layout = Layout::new(shown, &wanted, &mapping, &readings, masks)?;
    let runtime = state.runtime_env();
    let scene = Arc::new(Scene {
        storage: storage.clone(),
        format,
        readers: Arc::new(Readers::new(runtime.cache_manager.get_file_metadata_cache())),
        mapping: Arc::clone(&mapping),
        runtime: Arc::clone(runtime),
        session: state.config().clone(),
    });
    let (files, known) = files(&scene, &layout, readings)?;
    let statistics = statistics::of_scan(&layout, &known, options.trust_statistics);
    let table = &mapping.schema;
    let bounds = |name: &str| {
        let (_, physical) = layout.read.iter().find(|(at, _)| table.field(*at).name() == name)?;
        statistics.column_statistics.get(layout.schema.file_schema().index_of(physical).ok()?)
    };
    let pushed = pushdown::worthwhile(&options, filters, layout.schema.file_schema().fields().len(), bounds);
    let adapters = Arc::new(Adapters { fields: Arc::clone(&layout.fields) });
    let source = LakeFileSource::new(scene, layout.schema.clone(), Arc::clone(&layout.fields), Some(label))
        .with_pushdown(pushed)
        .with_masks(masks);
    let source = projected(source, &layout)?;
    let config = FileScanConfigBuilder::new(store_url(runtime), source)
        .with_file_groups(groups(files, state.config().target_partitions()))
        .with_statistics(statistics)
        .with_limit(limit)
        .with_expr_adapter(Some(adapters))
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

fn projected(source: LakeFileSource, layout: &Layout) -> Result<Arc<dyn FileSource>> {
    let projected = source.try_pushdown_projection(&layout.projection)?;
    projected.ok_or_else(|| external(Error::internal("the Parquet source refused a projection")))
}

type Known = Vec<(Arc<Unit>, Arc<datafusion::common::Statistics>)>;

fn files(scene: &Arc<Scene>, layout: &Layout, readings: Vec<Reading>) -> Result<(Vec<PartitionedFile>, Known)> {
    let table = &scene.mapping.schema;
    let (mut files, mut known) = (Vec::new(), Vec::new());
    for reading in readings {
        mergeable(&reading.task.merge).map_err(external)?;
        let task = Arc::new(reading.task.clone());
        for unit in Unit::of(&task, &reading.part).map_err(external)? {
            let of_file = (unit.way != Way::Merged).then(|| unit.data_file());
            let value = |(constant, kind): &(super::Constant, DataType)| {
                constant.value(&scene.storage, table, &reading, of_file, kind)
            };
            let values = layout.constants.iter().map(value).collect::<Result<_>>()?;
            let statistics = Arc::new(statistics::of_unit(layout, table, &unit));
            let file = place_unit(scene, unit)?.with_partition_values(values).with_statistics(Arc::clone(&statistics));
            let unit = file.extension::<Arc<Unit>>().expect("place_unit attaches it");
            known.push((Arc::clone(unit), statistics));
            files.push(file);
        }
    }
    Ok((files, known))
}

/// The file DataFusion schedules for a unit, with the unit and where it lies attached.
pub(crate) fn place_unit(scene: &Scene, unit: Unit) -> Result<PartitionedFile> {
    let file = unit.data_file();
    let bytes = match unit.way {
        Way::Merged => unit.task.files.iter().map(|it| it.bytes).fold(0, u64::saturating_add),
        _ => file.bytes,
    };
    let (store, key) = scene.storage.object(&file.path).map_err(external)?;
    let modified = file.modified_at.and_then(|it| chrono::DateTime::from_timestamp_millis(it.0));
    let meta = ObjectMeta {
        location: key.clone(),
        last_modified: modified.unwrap_or_default(),
        size: bytes,
        e_tag: None,
        version: None,
    };
    let place = Place { store, key, location: location(&scene.storage, &file.path).into(), bytes: file.bytes };
    Ok(PartitionedFile::new_from_meta(meta)
        .with_extension(place)
        .with_extension(Arc::clone(&unit.task))
        .with_extension(Arc::new(unit)))
}

/// Files in up to `count` groups of about equal numbers, in order. Never none: a scan of nothing has one empty group.
fn groups(files: Vec<PartitionedFile>, count: usize) -> Vec<FileGroup> {
    if files.is_empty() {
        return vec![FileGroup::new(files)];
    }
    FileGroup::new(files).split_files(count.max(1))
}

/// A store nothing is read from: units bring their own. One address for all tables, so that none stays registered.
pub(crate) fn store_url(runtime: &RuntimeEnv) -> ObjectStoreUrl {
    let url = ObjectStoreUrl::parse("lakebed://tables").expect("a scheme and an authority");
    if runtime.object_store(&url).is_err() {
        runtime.register_object_store(url.as_ref(), Arc::new(InMemory::new()));
    }
    url
}
