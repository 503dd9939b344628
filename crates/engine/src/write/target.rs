//! Where rows go: the table's columns, which of them stand in files, and which name the file's partition.
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
};

use arrow_array::{Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_ord::cmp::eq;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::nullif::nullif;
use lakebed_core::{
    Error, Result,
    env::Env,
    expr::{ColumnPath, Scalar},
    path::FilePath,
    storage::Storage,
    table::{Layout, Transform},
    write::{Compression, FileShape, WriteRules},
};

use super::{Kind, WriteContext, check::Checks, refit::same_text, refuse_type};
use crate::variant::is_variant;

/// The column of change files that tells what became of a row.
pub(crate) const CHANGE_TYPE: &str = "_change_type";

/// What every writer of one write shares. Made once a write; cheap to share.
#[derive(Debug)]
pub(crate) struct Target {
    pub(super) storage: Storage,
    pub(super) env: Env,
    pub(super) shape: FileShape,
    /// The table's columns, in its order.
    schema: SchemaRef,
    /// Of each file column, its position in `schema`.
    pub(super) stored: Vec<usize>,
    pub(super) partition: Vec<PartitionColumn>,
    pub(super) checks: Checks,
    /// Threads that may encode at once.
    pub(super) threads: usize,
    /// Threads that encode right now, over all writers.
    pub(super) encoding: AtomicUsize,
    change_folder: Option<String>,
    next: AtomicU32,
    made: Mutex<Vec<FilePath>>,
}

/// A column whose value is the same in all rows of a file, and not in the file.
#[derive(Debug, Clone)]
pub(super) struct PartitionColumn {
    /// The table's name of it.
    pub(super) name: String,
    /// Its position among the table's columns.
    pub(super) column: usize,
    /// Its name in folders; `None`: there are no folders.
    pub(super) folder: Option<String>,
}

impl Target {
    /// # Errors
    /// [`ErrorKind::Unsupported`](lakebed_core::ErrorKind), by name, for layouts and types this build does not write, and
    /// for constraints it cannot evaluate.
    pub(crate) fn new(context: &WriteContext, schema: &SchemaRef, layout: &Layout, rules: &WriteRules) -> Result<Self> {
        refuse_layout(layout)?;
        let shape = rules.files.clone();
        if shape.columns.is_empty() {
            return Err(Error::unsupported(
                "this build writes no files without a column: every column partitions the table",
            ));
        }
        for field in shape.schema.fields() {
            writable(field, field.name())?;
        }
        let position = |name: &String| {
            schema.index_of(name).map_err(|_| Error::internal(format!("files hold `{name}`, the table does not")))
        };
        Ok(Self {
            storage: context.table.storage().clone(),
            env: context.env.clone(),
            stored: shape.columns.iter().map(position).collect::<Result<_>>()?,
            partition: partition(schema, layout, &shape)?,
            checks: Checks::new(context, schema, &rules.constraints)?,
            threads: context.state.config().target_partitions().max(1),
            encoding: AtomicUsize::new(0),
            change_folder: rules.change_folder.clone(),
            schema: Arc::clone(schema),
            shape,
            next: AtomicU32::new(0),
            made: Mutex::new(Vec::new()),
        })
    }

    /// Threads that one file may encode on, if it has `own` already: what other files leave, and one at least.
    pub(super) fn free_threads(&self, own: usize) -> usize {
        let others = self.encoding.load(Ordering::Relaxed).saturating_sub(own);
        self.threads.saturating_sub(others).max(1)
    }

    /// The table's columns: what a writer's batches hold, by position.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The names of the table's partition columns.
    pub(crate) fn partition_names(&self) -> impl Iterator<Item = &str> {
        self.partition.iter().map(|it| it.name.as_str())
    }

    /// Every file that was begun, written or not.
    pub(crate) fn made(&self) -> Vec<FilePath> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The columns of files of this kind.
    pub(super) fn file_schema(&self, kind: Kind) -> SchemaRef {
        match kind {
            Kind::Data | Kind::Moved => Arc::clone(&self.shape.schema),
            Kind::Changes => {
                let mut fields: Vec<FieldRef> = self.shape.schema.fields().to_vec();
                fields.push(Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, false)));
                Arc::new(Schema::new(fields))
            }
        }
    }

    /// A path nobody else makes, below `folders`. It counts as made from here on.
    pub(super) fn new_path(&self, kind: Kind, folders: &str) -> Result<FilePath> {
        let uuid = uuid_text(self.env.ids.uuid());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let codec = match self.shape.compression {
            Compression::Zstd => ".zstd",
            Compression::Snappy => ".snappy",
            Compression::Gzip => ".gz",
            Compression::Lz4 => ".lz4raw",
            Compression::Uncompressed => "",
        };
        let (folder, name) = match kind {
            Kind::Data | Kind::Moved => (&self.shape.folder, format!("part-{number:05}-{uuid}-c000{codec}.parquet")),
            Kind::Changes => match &self.change_folder {
                Some(folder) => (folder, format!("cdc-{number:05}-{uuid}-c000{codec}.parquet")),
                None => return Err(Error::internal("this table records no changes")),
            },
        };
        let prefix = match self.shape.random_prefix {
            0 => folders.to_owned(),
            length => random_prefix(self.env.ids.uuid(), length),
        };
        let parts = [folder.as_str(), prefix.as_str(), name.as_str()];
        let path = FilePath::below(parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("/"));
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Ok(path)
    }

    /// A partition value as the table will have it; see [`FileShape::empty_partition_is_null`].
    pub(super) fn recorded(&self, (name, value): &(String, Option<Scalar>)) -> (String, Option<Scalar>) {
        let empty = |it: &Scalar| self.shape.empty_partition_is_null && *it == Scalar::Utf8(String::new());
        (name.clone(), value.clone().filter(|it| !empty(it)))
    }

    /// Rows as the table will have them: where it cannot record an empty text as a partition, that is null.
    pub(super) fn as_recorded(&self, batch: RecordBatch) -> Result<RecordBatch> {
        if !self.shape.empty_partition_is_null {
            return Ok(batch);
        }
        let internal = |it: arrow_schema::ArrowError| Error::internal(it.to_string());
        let mut columns = batch.columns().to_vec();
        let mut changed = false;
        for PartitionColumn { column, .. } in &self.partition {
            let array = batch.column(*column);
            if !same_text(array.data_type(), &DataType::Utf8) {
                continue;
            }
            let empty = eq(array, &StringArray::new_scalar("")).or_else(|_| {
                let text = cast(array, &DataType::Utf8)?;
                eq(&text, &StringArray::new_scalar(""))
            });
            let empty = empty.map_err(internal)?;
            if empty.true_count() > 0 {
                columns[*column] = nullif(array, &empty).map_err(internal)?;
                changed = true;
            }
        }
        if !changed {
            return Ok(batch);
        }
        let fields =
            batch.schema().fields().iter().map(|it| it.as_ref().clone().with_nullable(true)).collect::<Vec<_>>();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(internal)
    }

    /// The table's path of each leaf column of a data file that is in no list or map, by its path in the file.
    pub(super) fn leaf_names(&self) -> HashMap<Vec<String>, ColumnPath> {
        let mut names = HashMap::new();
        for (file, at) in self.shape.schema.fields().iter().zip(&self.stored) {
            name_leaves(file, self.schema.field(*at), (Vec::new(), Vec::new()), &mut names);
        }
        names
    }

    /// Whether bounds of a column are recorded.
    pub(super) fn indexed(&self, column: &ColumnPath) -> bool {
        let listed = |of: &ColumnPath| column.0.starts_with(&of.0);
        self.shape.indexed_columns.as_ref().is_none_or(|it| it.iter().any(listed))
    }
}

fn refuse_layout(layout: &Layout) -> Result<()> {
    if !layout.key.is_empty() || layout.bucket.is_some() {
        return Err(Error::unsupported("this build does not write tables with a key or buckets"));
    }
    match layout.partition.iter().find(|it| it.transform != Transform::Identity || it.source.0.len() != 1) {
        Some(field) => {
            let name = &field.name;
            Err(Error::unsupported(format!(
                "this build writes partitions by columns only, and `{name}` is made of one"
            )))
        }
        None => Ok(()),
    }
}

fn partition(schema: &SchemaRef, layout: &Layout, shape: &FileShape) -> Result<Vec<PartitionColumn>> {
    let column = |(at, field): (usize, &lakebed_core::table::PartitionField)| {
        let name = field.source.0[0].clone();
        let column = schema.index_of(&name).map_err(|it| Error::internal(it.to_string()))?;
        let folder = match &shape.partition_folders {
            Some(folders) if shape.random_prefix == 0 => folders.get(at).cloned(),
            _ => None,
        };
        Ok(PartitionColumn { name, column, folder })
    };
    layout.partition.iter().enumerate().map(column).collect()
}

/// Refuses, by name, types that no file of this build holds.
fn writable(field: &Field, path: &str) -> Result<()> {
    if is_variant(field) {
        return Err(refuse_type(path, "VARIANT"));
    }
    match field.data_type() {
        DataType::Struct(fields) if fields.is_empty() => Err(refuse_type(path, "STRUCT<>")),
        DataType::Struct(fields) => fields.iter().try_for_each(|it| writable(it, &format!("{path}.{}", it.name()))),
        DataType::List(item) => writable(item, &format!("{path}.element")),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                writable(&pair[0], &format!("{path}.key"))?;
                writable(&pair[1], &format!("{path}.value"))
            }
            _ => Err(refuse_type(path, "MAP without pairs")),
        },
        DataType::Null => Err(refuse_type(path, "VOID")),
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Decimal128(..)
        | DataType::Timestamp(..) => Ok(()),
        other => Err(refuse_type(path, &other.to_string())),
    }
}

/// Children stand at equal positions in the file's structs and in the table's.
fn name_leaves(
    file: &Field,
    table: &Field,
    (mut in_file, mut in_table): (Vec<String>, Vec<String>),
    names: &mut HashMap<Vec<String>, ColumnPath>,
) {
    in_file.push(file.name().clone());
    in_table.push(table.name().clone());
    match (file.data_type(), table.data_type()) {
        (DataType::Struct(file), DataType::Struct(table)) if file.len() == table.len() => {
            for (file, table) in file.iter().zip(table) {
                name_leaves(file, table, (in_file.clone(), in_table.clone()), names);
            }
        }
        (DataType::Struct(_) | DataType::List(_) | DataType::Map(..), _) => (),
        _ => {
            names.insert(in_file, ColumnPath(in_table));
        }
    }
}

/// `xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx`, as other writers spell it.
fn uuid_text(id: u128) -> String {
    let hex = format!("{id:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn random_prefix(id: u128, length: usize) -> String {
    const SIGNS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let sign = |at: usize| char::from(SIGNS[(id >> (5 * (at % 24)) & 31) as usize]);
    (0..length).map(sign).collect()
}
