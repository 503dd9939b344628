//! Which columns a scan reads, where each comes from, and how they become what the plan above asked for.
//!
//! DataFusion's scan knows three sorts of column, in this order: those in files, constants of a file, and the row
//! number. A [`Layout`] sorts the wanted columns into these:
//!
//! - A table's column is a file column under its *physical* name, so that the reader's own optimisations, which go by
//!   name, see the file's columns. It is a constant when every file states its value (a partition column); the file is
//!   then never asked.
//! - `_path` and its kin are constants. `_row_index` is the row number.
//! - `_row_id` is the column that moved rows carry, else the file's first id plus the row number.
//!
//! Columns that nobody wants are not in the layout at all: planning costs what is read, not the table's width.
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::{
    datasource::table_schema::TableSchema,
    error::Result,
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr,
        expressions::{BinaryExpr, CastExpr, Column, IsNotNullExpr, case},
        projection::{ProjectionExpr, ProjectionExprs},
    },
};
use lakebed_core::scan::{ColumnMapping, FIELD_ID, INITIAL_DEFAULT, MatchBy, PHYSICAL_NAME};
use parquet::arrow::RowNumber;

use super::{
    adapt::Wanted,
    constants::Constant,
    reading::Reading,
    scalar::shown_type,
    shape::{physical_name, same_without_case},
};

/// Metadata key of columns that are not the table's: `SELECT *` leaves them out.
pub const VIRTUAL: &str = "lakebed.virtual";

/// The columns a provider shows, and what each is.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub schema: SchemaRef,
    pub kinds: Vec<ShownKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownKind {
    /// A column of the table, by its position there.
    Table(usize),
    /// Read off the file or the task.
    Constant(Constant),
    RowIndex,
    RowId,
    RowVersion,
    ChangeType,
}

impl Shown {
    /// The table's columns, then those of `more` whose names the table leaves free.
    pub(crate) fn new(table: &Schema, more: Vec<(Field, ShownKind)>) -> Self {
        let mut fields: Vec<FieldRef> = table.fields().iter().map(|it| Arc::new(shown_field(it, true))).collect();
        let mut kinds: Vec<_> = (0..fields.len()).map(ShownKind::Table).collect();
        for (field, kind) in more {
            if !table.fields().iter().any(|it| same_without_case(it.name(), field.name())) {
                fields.push(Arc::new(field));
                kinds.push(kind);
            }
        }
        Self { schema: Arc::new(Schema::new(fields)), kinds }
    }
}

/// Columns, constants and row number of one scan.
#[derive(Debug)]
pub(crate) struct Layout {
    pub schema: TableSchema,
    /// From `schema` to what was asked for, in that order.
    pub projection: ProjectionExprs,
    /// What each constant column of `schema` holds.
    pub constants: Vec<(Constant, DataType)>,
    /// By the names that file columns have in `schema`.
    pub fields: Arc<HashMap<String, Wanted>>,
    /// The name in `schema` of each of the table's columns that is read.
    pub read: Vec<(usize, String)>,
}

impl Layout {
    /// Sorts the columns `wanted` of `shown`. `readings` decide which columns every file states. With `numbers`, the row
    /// number is in the schema, last, even if nobody wants it.
    pub(crate) fn new(
        shown: &Shown,
        wanted: &[usize],
        mapping: &ColumnMapping,
        readings: &[Reading],
        numbers: bool,
    ) -> Result<Self> {
        let mut builder = Builder { mapping, stated: stated_everywhere(readings), numbers, ..Builder::empty(mapping) };
        let outputs: Vec<Output> =
            wanted.iter().map(|at| builder.place(&shown.schema.fields()[*at], shown.kinds[*at], readings)).collect();
        builder.finish(outputs, wanted.iter().map(|at| &shown.schema.fields()[*at]))
    }
}

/// The columns whose value every file of `readings` states.
fn stated_everywhere(readings: &[Reading]) -> HashSet<String> {
    let mut files = readings.iter().flat_map(|it| &it.task.files);
    let Some(first) = files.next() else { return HashSet::new() };
    let mut stated: HashSet<String> = first.partition.iter().map(|(name, _)| name.clone()).collect();
    for file in files {
        if stated.is_empty() {
            break;
        }
        // The usual file has the same columns in the same order: no set is built for it.
        let same = file.partition.len() == first.partition.len()
            && file.partition.iter().zip(&first.partition).all(|(a, b)| a.0 == b.0);
        if !same {
            stated.retain(|name| file.partition.iter().any(|(it, _)| it == name));
        }
    }
    stated
}

/// Where an output column comes from, as positions that are not final yet.
enum Output {
    File(usize),
    Constant(usize),
    RowIndex,
    /// The file's column where it has a value, else the constant.
    Either(usize, usize),
    /// The file's column where it has a value, else constant plus row number.
    Numbered(Option<usize>, usize),
}

struct Builder<'a> {
    mapping: &'a ColumnMapping,
    stated: HashSet<String>,
    taken: HashSet<String>,
    file: Vec<FieldRef>,
    fields: HashMap<String, Wanted>,
    constants: Vec<(FieldRef, Constant)>,
    read: Vec<(usize, String)>,
    numbers: bool,
}

impl<'a> Builder<'a> {
    fn empty(mapping: &'a ColumnMapping) -> Self {
        Self {
            mapping,
            stated: HashSet::new(),
            taken: HashSet::new(),
            file: Vec::new(),
            fields: HashMap::new(),
            constants: Vec::new(),
            read: Vec::new(),
            numbers: false,
        }
    }

    fn place(&mut self, shown: &FieldRef, kind: ShownKind, readings: &[Reading]) -> Output {
        match kind {
            ShownKind::Table(at) => self.table_column(at, shown),
            ShownKind::Constant(constant) => Output::Constant(self.constant(constant, shown)),
            ShownKind::RowIndex => {
                self.numbers = true;
                Output::RowIndex
            }
            ShownKind::RowId => {
                self.numbers = true;
                let moved = self.mapping.row_id_column.clone().map(|it| self.named_column(&it, shown));
                Output::Numbered(moved, self.constant(Constant::FirstRowId, shown))
            }
            ShownKind::RowVersion => {
                let first = self.constant(Constant::RowVersion, shown);
                match self.mapping.row_version_column.clone() {
                    Some(moved) => Output::Either(self.named_column(&moved, shown), first),
                    None => Output::Constant(first),
                }
            }
            ShownKind::ChangeType => {
                let first = self.constant(Constant::ChangeKind, shown);
                match readings.iter().find_map(Reading::change_column) {
                    Some(column) => Output::Either(self.named_column(column, shown), first),
                    None => Output::Constant(first),
                }
            }
        }
    }

    fn table_column(&mut self, at: usize, shown: &FieldRef) -> Output {
        let table = Arc::clone(&self.mapping.schema.fields()[at]);
        if self.stated.contains(table.name()) {
            return Output::Constant(self.constant(Constant::Partition(at), shown));
        }
        let name = self.free_name(physical_name(&table));
        self.read.push((at, name.clone()));
        Output::File(self.file_column(name, self.mapping.by, table, shown))
    }

    /// A column that files have beyond the table's schema; by name in every mode.
    fn named_column(&mut self, name: &str, shown: &FieldRef) -> usize {
        let field = Arc::new(Field::new(name, shown.data_type().clone(), true));
        let free = self.free_name(name);
        self.file_column(free, MatchBy::PhysicalName, field, shown)
    }

    fn file_column(&mut self, name: String, by: MatchBy, table: FieldRef, shown: &FieldRef) -> usize {
        self.file.push(Arc::new(shown.as_ref().clone().with_name(&name).with_nullable(true)));
        self.fields.insert(name, Wanted { by, table, text: false });
        self.file.len() - 1
    }

    fn constant(&mut self, constant: Constant, shown: &FieldRef) -> usize {
        let name = self.free_name(constant.label(shown.name()));
        self.constants.push((Arc::new(shown.as_ref().clone().with_name(name).with_nullable(true)), constant));
        self.constants.len() - 1
    }

    fn free_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while !self.taken.insert(name.clone()) {
            name.push('\'');
        }
        name
    }

    fn finish<'f>(mut self, outputs: Vec<Output>, shown: impl Iterator<Item = &'f FieldRef>) -> Result<Layout> {
        let mut virtuals = Vec::new();
        if self.numbers {
            let name = self.free_name("_row_index");
            virtuals.push(Arc::new(Field::new(name, DataType::Int64, true).with_extension_type(RowNumber)));
        }
        let constants: Fields = self.constants.iter().map(|(field, _)| Arc::clone(field)).collect();
        let schema = TableSchema::builder(Arc::new(Schema::new(self.file)))
            .with_table_partition_cols(constants)
            .with_virtual_columns(virtuals)
            .build();
        let columns = Columns { schema: schema.table_schema(), constants: schema.file_schema().fields().len() };
        let exprs = outputs
            .iter()
            .zip(shown)
            .map(|(it, field)| Ok(ProjectionExpr::new(columns.expr(it, field)?, field.name().clone())));
        let projection = ProjectionExprs::new(exprs.collect::<Result<Vec<_>>>()?);
        let constants = self.constants.into_iter().map(|(field, it)| (it, field.data_type().clone())).collect();
        Ok(Layout { projection, constants, fields: Arc::new(self.fields), read: self.read, schema })
    }
}

struct Columns<'a> {
    schema: &'a SchemaRef,
    /// Where constants begin.
    constants: usize,
}

impl Columns<'_> {
    fn expr(&self, output: &Output, shown: &FieldRef) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(match output {
            Output::File(at) => self.column(*at),
            Output::Constant(at) => self.column(self.constants + at),
            Output::RowIndex => as_promised(self.row_number(), shown),
            Output::Either(file, constant) => {
                as_promised(either(self.column(*file), self.column(self.constants + constant))?, shown)
            }
            Output::Numbered(moved, first) => {
                let first = self.column(self.constants + first);
                let own: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(first, Operator::Plus, self.row_number()));
                let number = match moved {
                    Some(moved) => either(self.column(*moved), own)?,
                    None => own,
                };
                as_promised(number, shown)
            }
        })
    }

    fn row_number(&self) -> Arc<dyn PhysicalExpr> {
        self.column(self.schema.fields().len() - 1)
    }

    fn column(&self, at: usize) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(self.schema.field(at).name(), at))
    }
}

/// A made column with the field that the table's schema has for it: a plan whose input differs from what its logical
/// side promised, in metadata too, is refused by DataFusion.
fn as_promised(made: Arc<dyn PhysicalExpr>, shown: &FieldRef) -> Arc<dyn PhysicalExpr> {
    Arc::new(CastExpr::new_with_target_field(made, Arc::clone(shown), None))
}

fn either(first: Arc<dyn PhysicalExpr>, second: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let there = Arc::new(IsNotNullExpr::new(Arc::clone(&first)));
    case(None, vec![(there, first)], Some(second))
}

/// The table's field as SQL sees it: views for strings and bytes, no metadata of ours, and nullable throughout, for
/// the files decide what they hold.
pub(crate) fn shown_field(field: &Field, top: bool) -> Field {
    let kind = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|it| Arc::new(shown_field(it, false))).collect())
        }
        DataType::List(item) => DataType::List(Arc::new(shown_field(item, false))),
        DataType::Map(entries, sorted) => DataType::Map(shown_entries(entries), *sorted),
        other if top => shown_type(other),
        other => other.clone(),
    };
    let ours = |key: &String| [PHYSICAL_NAME, FIELD_ID, INITIAL_DEFAULT].contains(&key.as_str());
    let metadata = field.metadata().iter().filter(|(key, _)| !ours(key)).map(|(k, v)| (k.clone(), v.clone()));
    Field::new(field.name(), kind, true).with_metadata(metadata.collect())
}

fn shown_entries(entries: &FieldRef) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return Arc::clone(entries) };
    let fields = fields.iter().enumerate().map(|(at, it)| Arc::new(shown_field(it, false).with_nullable(at != 0)));
    Arc::new(Field::new(entries.name(), DataType::Struct(fields.collect()), false))
}
