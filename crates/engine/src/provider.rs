//! A table at one version, as DataFusion reads it.
//!
//! 1. Filters are lowered ([`lower`](crate::lower)) and given to the snapshot, which drops files.
//! 2. Filters on partition columns alone are then evaluated on what is left, file by file, by DataFusion itself: the
//!    plan above need not check them again. All others are checked again.
//! 3. The tasks that remain become one scan node ([`scan::plan`](crate::scan)).
//!
//! Statements that change rows read the same way, through a table that numbers its files ([`ground`]).
mod ground;

use std::{collections::HashSet, sync::Arc};

use arrow_array::{Array, BooleanArray, cast::AsArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::{
    catalog::{ScanArgs, ScanResult, Session, TableProvider},
    common::{DFSchema, DFSchemaRef},
    error::Result,
    logical_expr::{Expr, MergeIntoClause, TableProviderFilterPushDown, TableType, dml::InsertOp, utils::conjunction},
    physical_expr::utils::reassign_expr_columns,
    physical_plan::{ExecutionPlan, filter::FilterExecBuilder},
    scalar::ScalarValue,
};
use futures::TryStreamExt;
use lakebed_core::{
    Error,
    expr::ColumnPath,
    format::TableFormat,
    scan::{ColumnMapping, MatchBy, Merge, Scan, ScanTask},
    table::{Snapshot, Table, Transform},
};

pub(crate) use self::ground::{FILE_NUMBER, Ground, ROW_NUMBER};
use crate::{
    lower::lower_all,
    registry::Formats,
    scan::{
        Constant, Label, Reading, Request, Shown, ShownKind, VIRTUAL, external, options::ScanOptions, plan, to_arrow,
    },
};

/// One table, pinned to one version.
#[derive(Debug)]
pub struct LakeTable {
    name: String,
    table: Arc<dyn Table>,
    snapshot: Arc<dyn Snapshot>,
    format: Arc<dyn TableFormat>,
    shown: Shown,
    /// Names of the columns that partition the table by their own value.
    partition: HashSet<String>,
    ground: Option<Arc<Ground>>,
    /// What to read instead of the version's live files.
    readings: Option<Arc<[Reading]>>,
}

impl LakeTable {
    /// `name` is what EXPLAIN calls it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](lakebed_core::ErrorKind) if the build lacks the table's format.
    pub fn new(
        name: impl Into<String>,
        table: Arc<dyn Table>,
        snapshot: Arc<dyn Snapshot>,
        formats: Formats,
    ) -> Result<Self, Error> {
        let format = formats.of(&table.format())?;
        let shown = Shown::new(snapshot.schema(), virtual_columns(snapshot.tracks_rows()));
        let identity =
            |it: &&lakebed_core::table::PartitionField| it.transform == Transform::Identity && it.source.0.len() == 1;
        let partition = snapshot.layout().partition.iter().filter(identity).map(|it| it.source.0[0].clone()).collect();
        Ok(Self { name: name.into(), table, snapshot, format, shown, partition, ground: None, readings: None })
    }

    pub fn table(&self) -> &Arc<dyn Table> {
        &self.table
    }

    pub fn snapshot(&self) -> &Arc<dyn Snapshot> {
        &self.snapshot
    }

    /// The same rows with [`FILE_NUMBER`] and [`ROW_NUMBER`]; `ground` learns of every file that is scanned.
    pub(crate) fn numbered(mut self, ground: Arc<Ground>) -> Self {
        self.shown = ground::with_numbers(&self.shown);
        self.ground = Some(ground);
        self
    }

    pub(crate) fn is_numbered(&self) -> bool {
        self.ground.is_some()
    }

    /// The rows of `readings` instead of all.
    pub(crate) fn only(mut self, readings: Vec<Reading>) -> Self {
        self.readings = Some(readings.into());
        self
    }

    /// Whether DataFusion can decide `filter` for whole files: all its columns partition the table.
    fn by_file(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        !filter.is_volatile() && !columns.is_empty() && columns.iter().all(|it| self.partition.contains(&it.name))
    }

    async fn readings(&self, scan: &Scan) -> Result<Vec<Reading>> {
        match &self.readings {
            Some(readings) => Ok(readings.to_vec()),
            None => self.snapshot.tasks(scan).try_collect().await.map(single_files).map_err(external),
        }
    }

    fn scan_of(&self, state: &dyn Session, args: &ScanArgs<'_>, wanted: &[usize]) -> Scan {
        let filters = args.filters().unwrap_or(&[]);
        let mut columns: Vec<ColumnPath> = Vec::new();
        let named = filters.iter().flat_map(Expr::column_refs).map(|it| it.name.clone());
        for name in wanted.iter().map(|at| self.shown.schema.field(*at).name().clone()).chain(named) {
            let path = ColumnPath(vec![name]);
            if self.snapshot.schema().field_with_name(&path.0[0]).is_ok() && !columns.contains(&path) {
                columns.push(path);
            }
        }
        let trusted = ScanOptions::of(state.config_options()).trust_statistics;
        Scan {
            statistics: !columns.is_empty(),
            projection: Some(columns),
            predicate: lower_all(filters, self.snapshot.schema()).predicate,
            // A file's recorded row count may be wrong: then too few files would be read.
            limit: args.limit().filter(|_| trusted && filters.is_empty()).map(|it| it as u64),
        }
    }

    async fn label(&self, filters: &[Expr], kept: usize) -> Label {
        let pruned = !filters.is_empty();
        let total = match pruned {
            true => self.snapshot.totals().await.ok().map(|it| it.files),
            false => None,
        };
        let texts: Vec<_> = filters.iter().map(Expr::to_string).collect();
        Label {
            table: self.name.clone(),
            version: self.snapshot.version().id.to_string(),
            files_kept: kept as u64,
            files_total: total,
            pruned_by: pruned.then(|| texts.join(" AND ")),
        }
    }
}

#[async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.shown.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let args = ScanArgs::default()
            .with_projection(projection.map(Vec::as_slice))
            .with_filters(Some(filters))
            .with_limit(limit);
        Ok(Arc::clone(self.scan_with_args(state, args).await?.plan()))
    }

    async fn scan_with_args<'a>(&self, state: &dyn Session, args: ScanArgs<'a>) -> Result<ScanResult> {
        let filters = args.filters().unwrap_or(&[]);
        let wanted: Vec<usize> = match args.projection() {
            Some(wanted) => wanted.to_vec(),
            None => (0..self.shown.schema.fields().len()).collect(),
        };
        let scan = self.scan_of(state, &args, &wanted);
        let mut readings = self.readings(&scan).await?;
        let mapping = mapping_of(readings.iter().map(|it| &it.task), self.snapshot.schema()).map_err(external)?;
        let by_file: Vec<Expr> = filters.iter().filter(|it| self.by_file(it)).cloned().collect();
        let decided = keep_by_file(state, &self.shown, &mapping, &by_file, &mut readings)?;
        if let Some(ground) = &self.ground {
            ground
                .enrol(&mut readings, self.readings.is_none().then_some(scan.predicate), decided)
                .map_err(external)?;
        }
        let label = self.label(filters, readings.len()).await;
        let mut request = Request {
            storage: self.table.storage(),
            format: Arc::clone(&self.format),
            shown: &self.shown,
            wanted,
            mapping,
            readings,
            filters,
            limit: args.limit(),
            label,
        };
        if decided {
            return Ok(plan(state, request)?.into());
        }
        // Some file does not state its partition: its rows are checked one by one.
        request.limit = None;
        Ok(checked(state, request, &by_file)?.into())
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match (self.by_file(filter), filter.is_volatile()) {
            (true, _) => TableProviderFilterPushDown::Exact,
            (false, true) => TableProviderFilterPushDown::Unsupported,
            (false, false) => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        refuse("INSERT")
    }

    async fn delete_from(&self, _: &dyn Session, _: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        refuse("DELETE")
    }

    async fn update(&self, _: &dyn Session, _: Vec<(String, Expr)>, _: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        refuse("UPDATE")
    }

    async fn truncate(&self, _: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        refuse("TRUNCATE")
    }

    async fn merge_into(
        &self,
        _: &dyn Session,
        _: Arc<dyn ExecutionPlan>,
        _: DFSchemaRef,
        _: Expr,
        _: Vec<MergeIntoClause>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        refuse("MERGE")
    }
}

/// DataFusion's hooks get filters from which subqueries are already gone: obeying them could touch every row.
fn refuse(statement: &str) -> Result<Arc<dyn ExecutionPlan>> {
    let err = Error::unsupported(format!("{statement} does not go through the table's scan"))
        .with_hint("run the statement with `lakebed sql`");
    Err(external(err))
}

/// The columns every table has beyond its own, in order.
fn virtual_columns(tracks_rows: bool) -> Vec<(Field, ShownKind)> {
    let column = |name, kind, what| {
        let field = Field::new(name, kind, true);
        (field.with_metadata([(VIRTUAL.to_owned(), "true".to_owned())].into()), what)
    };
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let mut columns = vec![
        column("_path", DataType::Utf8, ShownKind::Constant(Constant::Path)),
        column("_file", DataType::Utf8, ShownKind::Constant(Constant::Name)),
        column("_size", DataType::Int64, ShownKind::Constant(Constant::Bytes)),
        column("_time", time, ShownKind::Constant(Constant::ModifiedAt)),
        column("_row_index", DataType::Int64, ShownKind::RowIndex),
    ];
    if tracks_rows {
        columns.push(column("_row_id", DataType::Int64, ShownKind::RowId));
        columns.push(column("_row_commit_version", DataType::Int64, ShownKind::RowVersion));
    }
    columns
}

/// The mapping that the tasks share.
pub(crate) fn mapping_of<'a>(
    tasks: impl IntoIterator<Item = &'a ScanTask>,
    schema: &SchemaRef,
) -> Result<Arc<ColumnMapping>, Error> {
    let mut tasks = tasks.into_iter();
    let Some(first) = tasks.next() else {
        let (row_id_column, row_version_column) = (None, None);
        let schema = Arc::clone(schema);
        return Ok(Arc::new(ColumnMapping { by: MatchBy::Name, schema, row_id_column, row_version_column }));
    };
    let same = |it: &ScanTask| Arc::ptr_eq(&it.columns, &first.columns) || it.columns == first.columns;
    match tasks.all(same) {
        true => Ok(Arc::clone(&first.columns)),
        false => Err(Error::internal("the tasks of one scan map columns differently")),
    }
}

/// Tasks of several files whose rows do not meet, one a file.
pub(crate) fn single_files(tasks: Vec<ScanTask>) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(tasks.len());
    for task in tasks {
        if !matches!(task.merge, Merge::Concat) || task.files.len() == 1 {
            readings.push(task.into());
            continue;
        }
        for file in &task.files {
            readings.push(ScanTask { files: vec![file.clone()], ..task.clone() }.into());
        }
    }
    readings
}

/// Drops the readings that `filters`, which name partition columns alone, do not want. False, and nothing dropped, if
/// some file does not state a column.
fn keep_by_file(
    state: &dyn Session,
    shown: &Shown,
    mapping: &ColumnMapping,
    filters: &[Expr],
    readings: &mut Vec<Reading>,
) -> Result<bool> {
    let Some(filter) = conjunction(filters.iter().cloned()) else { return Ok(true) };
    if readings.is_empty() {
        return Ok(true);
    }
    let names: HashSet<&str> = filter.column_refs().into_iter().map(|it| it.name.as_str()).collect();
    let fields: Vec<_> =
        shown.schema.fields().iter().filter(|it| names.contains(it.name().as_str())).cloned().collect();
    let mut columns = Vec::new();
    for field in &fields {
        let stated: Option<Vec<_>> = readings.iter().map(|it| stated(it, field.name())).collect();
        let Some(stated) = stated else { return Ok(false) };
        let values = stated.into_iter().map(|it| match it {
            Some(value) => to_arrow(value, field.data_type()),
            None => ScalarValue::try_new_null(field.data_type()),
        });
        columns.push(ScalarValue::iter_to_array(values.collect::<Result<Vec<_>>>()?)?);
    }
    debug_assert!(fields.iter().all(|it| mapping.schema.field_with_name(it.name()).is_ok()), "partition columns");
    let schema = Arc::new(Schema::new(fields));
    let batch = arrow_array::RecordBatch::try_new(Arc::clone(&schema), columns)?;
    let plain = unqualified(filter)?;
    let filter = state.create_physical_expr(plain, &DFSchema::try_from(schema)?)?;
    let kept = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
    let kept: &BooleanArray = kept.as_boolean();
    let mut at = 0;
    readings.retain(|_| {
        at += 1;
        kept.is_valid(at - 1) && kept.value(at - 1)
    });
    Ok(true)
}

fn unqualified(expr: Expr) -> Result<Expr> {
    use datafusion::common::{
        Column,
        tree_node::{Transformed, TransformedResult, TreeNode},
    };
    expr.transform(|it| {
        Ok(match it {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
            other => Transformed::no(other),
        })
    })
    .data()
}

/// What all files of a reading state for a column: a value or null; `None` if one does not say.
fn stated<'a>(reading: &'a Reading, column: &str) -> Option<Option<&'a lakebed_core::expr::Scalar>> {
    let of = |file: &'a lakebed_core::file::DataFile| {
        file.partition.iter().find(|(name, _)| name == column).map(|(_, value)| value.as_ref())
    };
    reading.task.files.iter().map(of).collect::<Option<Vec<_>>>()?.into_iter().next()
}

/// The scan with `filters` applied above it.
fn checked(state: &dyn Session, mut request: Request<'_>, filters: &[Expr]) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(filter) = conjunction(filters.iter().cloned()) else { return plan(state, request) };
    let outputs = request.wanted.len();
    for column in filter.column_refs() {
        let at = request.shown.schema.index_of(&column.name)?;
        if !request.wanted.contains(&at) {
            request.wanted.push(at);
        }
    }
    let shown = Arc::clone(&request.shown.schema);
    let scan = plan(state, request)?;
    let filter = state.create_physical_expr(unqualified(filter)?, &DFSchema::try_from(shown)?)?;
    let filter = reassign_expr_columns(filter, &scan.schema())?;
    let checked = FilterExecBuilder::new(filter, scan).apply_projection(Some((0..outputs).collect::<Vec<_>>()))?;
    Ok(Arc::new(checked.build()?))
}
