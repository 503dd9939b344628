//! Several files become rows together: one row a key.
//!
//! A unit is a small plan of its own, run inside the scan with the session's memory pool, so that it spills instead of
//! growing:
//!
//! 1. Its files are read like any others, each row with the position of its file and its own in it.
//! 2. The rows are sorted by key; among those of one key by the ordering columns, then by file and row. In a
//!    merge of two stages the ordering columns stay out: its chain goes by position.
//! 3. [`Folder`] makes one row, or none, of the rows of each key.
//!
//! No predicate and no limit goes below the merge: an old version of a row may match where the newest does not.
use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SortOptions};
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder, FileSource},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::{DataFusionError, Result},
    execution::{SendableRecordBatchStream, TaskContext},
    physical_expr::{LexOrdering, PhysicalSortExpr, expressions::Column},
    physical_plan::{ExecutionPlan, sorts::sort::SortExec},
    scalar::ScalarValue,
};
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error,
    expr::ColumnPath,
    scan::{KeyMerge, MatchBy, Merge, MergeRule},
};
use parquet::arrow::RowNumber;

use super::{
    adapt::{Adapters, Wanted},
    error::{ScanError, external},
    finish::Finish,
    fold::{Folder, Stages},
    layout::shown_field,
    plan::{place_unit, store_url},
    shape::physical_name,
    source::LakeFileSource,
    unit::{Scene, Unit},
};

/// The unit's rows as the scan gives them out.
pub(crate) fn rows(
    scene: Arc<Scene>,
    unit: Arc<Unit>,
    finish: Arc<Finish>,
    fields: Arc<HashMap<String, Wanted>>,
    constants: Vec<ScalarValue>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let open = async move {
        let inputs = Inputs::new(&scene, &unit, finish.wanted(), &fields)?;
        let sorted = inputs.sorted(&scene, &unit)?;
        let mut folder = inputs.folder(&unit)?;
        let ends = stream::once(async { Ok(None) });
        let steps = sorted.map_ok(Some).chain(ends);
        Ok::<_, DataFusionError>(steps.map(move |it: Result<Option<RecordBatch>>| {
            let columns: Vec<ArrayRef> = match it? {
                Some(batch) => folder.push(&batch)?,
                None => folder.finish()?,
            };
            let rows = columns.first().map_or(0, |it| it.len());
            let columns = columns.into_iter().take(finish.wanted().fields().len()).collect();
            finish.batch(columns, &constants, None, rows)
        }))
    };
    stream::once(open).try_flatten().boxed()
}

/// The columns a merge reads: those the scan wants first, then what the merge needs to know besides.
struct Inputs {
    schema: TableSchema,
    fields: HashMap<String, Wanted>,
    key: Vec<usize>,
    order: Vec<usize>,
    marker: Option<usize>,
}

impl Inputs {
    fn new(scene: &Scene, unit: &Unit, wanted: &Schema, fields: &HashMap<String, Wanted>) -> Result<Self> {
        let rule = rule(&unit.task.merge).ok_or_else(|| external(Error::internal("a unit without a merge")))?;
        let mut columns: Vec<FieldRef> = wanted.fields().iter().cloned().collect();
        let mut fields = fields.clone();
        let mut place = |path: &ColumnPath| column(scene, unit, path, &mut columns, &mut fields);
        let key = rule.key.iter().filter_map(|it| place(it).transpose()).collect::<Result<_>>()?;
        let order = rule.order.iter().filter_map(|it| place(it).transpose()).collect::<Result<_>>()?;
        let marker = rule.deletion.as_ref().map(|it| place(&it.column)).transpose()?.flatten();
        let schema = TableSchema::builder(Arc::new(Schema::new(columns)))
            .with_table_partition_cols(vec![Arc::new(Field::new(FILE, DataType::Int64, false))])
            .with_virtual_columns(vec![Arc::new(
                Field::new(ROW, DataType::Int64, false).with_extension_type(RowNumber),
            )])
            .build();
        Ok(Self { schema, fields, key, order, marker })
    }

    /// All rows of the unit's files, in the order the fold needs.
    fn sorted(&self, scene: &Arc<Scene>, unit: &Arc<Unit>) -> Result<SendableRecordBatchStream> {
        let mut files = Vec::new();
        for part in Unit::parts(&unit.task) {
            let position = ScalarValue::Int64(Some(part.file as i64));
            files.push(place_unit(scene, part)?.with_partition_values(vec![position]));
        }
        let context =
            TaskContext::default().with_runtime(Arc::clone(&scene.runtime)).with_session_config(scene.session.clone());
        let order: &[usize] = match unit.task.merge {
            Merge::Staged(_) => &[],
            _ => &self.order,
        };
        self.plan(scene, files, order)?.execute(0, Arc::new(context))
    }

    fn plan(&self, scene: &Arc<Scene>, files: Vec<PartitionedFile>, order: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
        let fields = Arc::new(self.fields.clone());
        let adapters = Arc::new(Adapters { fields: Arc::clone(&fields) });
        let source = LakeFileSource::new(Arc::clone(scene), self.schema.clone(), fields, None);
        let config = FileScanConfigBuilder::new(store_url(&scene.runtime), Arc::new(source) as Arc<dyn FileSource>)
            .with_file_group(FileGroup::new(files))
            .with_preserve_order(true)
            .with_expr_adapter(Some(adapters))
            .build();
        let scan = DataSourceExec::from_data_source(config);
        let schema = self.schema.table_schema();
        let options = SortOptions { descending: false, nulls_first: true };
        let by = |at: usize| PhysicalSortExpr::new(Arc::new(Column::new(schema.field(at).name(), at)), options);
        let last = schema.fields().len() - 1;
        let order = self.key.iter().chain(order).copied().chain([last - 1, last]).map(by);
        let order = LexOrdering::new(order).ok_or_else(|| external(Error::internal("a sort by nothing")))?;
        Ok(Arc::new(SortExec::new(order, scan)))
    }

    fn folder(&self, unit: &Unit) -> Result<Folder> {
        let (rule, stages) = match &unit.task.merge {
            Merge::Staged(staged) => {
                let base_files = i64::try_from(staged.base_files).unwrap_or(i64::MAX);
                (&staged.merge, Stages::Two { base_files, unconditional_deletes: staged.unconditional_deletes })
            }
            Merge::ByKey(rule) => (rule.as_ref(), Stages::One),
            Merge::Concat => return Err(external(Error::internal("a unit without a merge"))),
        };
        let file = self.schema.file_schema().fields().len();
        let marker = match (self.marker, &rule.deletion) {
            (Some(at), Some(marker)) => Some((at, marker.values.clone())),
            _ => None,
        };
        Folder::new(self.schema.table_schema(), &rule.rule, stages, self.key.clone(), self.order.clone(), marker, file)
            .map_err(external)
    }
}

const FILE: &str = "merge:file";
const ROW: &str = "merge:row";

fn rule(merge: &Merge) -> Option<&KeyMerge> {
    match merge {
        Merge::Concat => None,
        Merge::ByKey(rule) => Some(rule),
        Merge::Staged(staged) => Some(&staged.merge),
    }
}

/// The place of a column among `columns`, added if need be; `None` if all files of the unit have one value for it.
fn column(
    scene: &Scene,
    unit: &Unit,
    path: &ColumnPath,
    columns: &mut Vec<FieldRef>,
    fields: &mut HashMap<String, Wanted>,
) -> Result<Option<usize>> {
    let [name] = path.0.as_slice() else {
        return Err(external(ScanError::Unsupported { what: format!("a merge by the nested column `{path}`") }));
    };
    let stated = |it: &lakebed_core::file::DataFile| it.partition.iter().any(|(it, _)| it == name);
    if unit.task.files.iter().all(stated) {
        return Ok(None);
    }
    let (wanted, shown) = match scene.mapping.schema.fields().iter().find(|it| it.name() == name) {
        Some(table) => {
            let shown = shown_field(table, true).with_name(physical_name(table));
            (Wanted { by: scene.mapping.by, table: Arc::clone(table), text: false }, shown)
        }
        None => {
            let shown = Field::new(name, DataType::Utf8, true);
            (Wanted { by: MatchBy::PhysicalName, table: Arc::new(shown.clone()), text: true }, shown)
        }
    };
    let known = |it: &FieldRef| fields.get(it.name()).is_some_and(|known| known.table == wanted.table);
    if let Some(at) = columns.iter().position(known) {
        return Ok(Some(at));
    }
    let mut shown = shown;
    while fields.contains_key(shown.name()) {
        shown = shown.clone().with_name(format!("{}'", shown.name()));
    }
    fields.insert(shown.name().clone(), wanted);
    columns.push(Arc::new(shown));
    Ok(Some(columns.len() - 1))
}

/// Whether the engine can merge by this rule.
pub(crate) fn mergeable(merge: &Merge) -> Result<(), Error> {
    let unsupported = |what: &str| Err(ScanError::Unsupported { what: what.to_owned() }.into());
    match merge {
        Merge::ByKey(rule) if matches!(rule.rule, MergeRule::Aggregate(_)) => unsupported("a merge by aggregation"),
        Merge::Staged(staged) if !matches!(staged.merge.rule, MergeRule::LastRow | MergeRule::PartialUpdate) => {
            unsupported("a merge in two stages by another rule than last row or partial update")
        }
        _ => Ok(()),
    }
}
