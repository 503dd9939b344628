//! Rewrites a scan's expressions for one file: finds columns by id, physical name or name, fills those the file lacks,
//! and widens types.
//!
//! Flat columns become casts, which the pruning code sees through; where a value may not fit, and for nested columns,
//! they become [`Reshape`]. A field taken out of a struct (`s.a.b`) is taken out of the file's own struct first, so that only its leaf is read.
use std::{
    collections::HashMap,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, extension::ExtensionType};
use datafusion::{
    common::tree_node::{Transformed, TransformedResult, TreeNode},
    error::{DataFusionError, Result},
    functions::core::getfield::GetFieldFunc,
    logical_expr::ColumnarValue,
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{CastExpr, Column, Literal},
    },
    physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory},
    scalar::ScalarValue,
};
use lakebed_core::scan::MatchBy;
use parquet::arrow::RowNumber;

use super::{
    defaults::initial_default,
    shape::{Child, Mismatch, Shape, find_field},
};

/// Knows the table's columns by the name the plan gives them; see [`super::layout`].
#[derive(Debug)]
pub(crate) struct Adapters {
    pub fields: Arc<HashMap<String, Wanted>>,
}

/// How to find a column of the plan in a file.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub by: MatchBy,
    /// The table's field, with ids and physical names as metadata.
    pub table: FieldRef,
    /// Whatever its type in the file, it is read as text: markers that are no column of the table.
    pub text: bool,
}

impl Wanted {
    /// Compares the file's field with what is wanted; `shown` is how the plan has it.
    pub(crate) fn shape(&self, file: &Field, shown: &Field) -> Result<Shape, Mismatch> {
        match self.text && file.data_type() != shown.data_type() {
            true => Ok(Shape::Cast(shown.data_type().clone())),
            false => Shape::find(self.by, file, &self.table, shown),
        }
    }
}

impl PhysicalExprAdapterFactory for Adapters {
    fn create(&self, logical: SchemaRef, physical: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let mut found = HashMap::new();
        for shown in logical.fields() {
            let source = self.source(shown, &physical).map_err(|it| DataFusionError::External(Box::new(it)))?;
            found.insert(shown.name().clone(), source);
        }
        Ok(Arc::new(Adapter { found, physical }))
    }
}

impl Adapters {
    fn source(&self, shown: &FieldRef, physical: &Schema) -> Result<Source, Mismatch> {
        if shown.extension_type_name() == Some(RowNumber::NAME) {
            return Ok(Source::Numbers);
        }
        let Some(wanted) = self.fields.get(shown.name()) else {
            return Ok(Source::Numbers);
        };
        match find_field(wanted.by, physical.fields(), &wanted.table)? {
            Some(at) => {
                let file = Arc::clone(&physical.fields()[at]);
                let shape = wanted.shape(&file, shown)?;
                Ok(Source::File { at, file, shown: Arc::clone(shown), shape })
            }
            None => Ok(Source::Constant(initial_default(&wanted.table, shown.data_type())?)),
        }
    }
}

/// Where one of the plan's columns comes from in this file.
#[derive(Debug)]
enum Source {
    File {
        at: usize,
        file: FieldRef,
        shown: FieldRef,
        shape: Shape,
    },
    Constant(ScalarValue),
    /// Made by the reader; it has the same name on both sides.
    Numbers,
}

#[derive(Debug)]
struct Adapter {
    found: HashMap<String, Source>,
    physical: SchemaRef,
}

impl PhysicalExprAdapter for Adapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        expr.transform_up(|it| {
            if let Some(column) = it.downcast_ref::<Column>() {
                return self.column(column).map(Transformed::yes);
            }
            match self.taken_field(&it)? {
                Some(taken) => Ok(Transformed::yes(taken)),
                None => Ok(Transformed::no(it)),
            }
        })
        .data()
    }
}

impl Adapter {
    fn column(&self, column: &Column) -> Result<Arc<dyn PhysicalExpr>> {
        match self.found.get(column.name()) {
            Some(Source::File { at, file, shown, shape }) => {
                let read = Arc::new(Column::new(file.name(), *at));
                Ok(reshaped(read, shape, shown))
            }
            Some(Source::Constant(value)) => Ok(Arc::new(Literal::new(value.clone()))),
            Some(Source::Numbers) | None => {
                Ok(Arc::new(Column::new_with_schema(column.name(), self.physical.as_ref())?))
            }
        }
    }

    /// `get_field(reshape(column), 'a', 'b')` as `reshape(get_field(column, 'file a', 'file b'))`.
    fn taken_field(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some(call) = ScalarFunctionExpr::try_downcast_func::<GetFieldFunc>(expr.as_ref()) else { return Ok(None) };
        let Some((source, keys)) = call.args().split_first() else { return Ok(None) };
        let Some(reshape) = source.downcast_ref::<Reshape>() else { return Ok(None) };
        let Some(keys) = keys.iter().map(literal_text).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let from = reshape.inner.data_type(&self.physical)?;
        let Some(leaf) = leaf(&reshape.shape, &from, &keys) else { return Ok(None) };
        let (names, shape, shown) = match leaf {
            Leaf::File { names, shape, shown } => (names, shape, shown),
            // A null parent has a null child, whatever the child's default: only a null may stand for all rows.
            Leaf::Constant(value) if value.is_null() => return Ok(Some(Arc::new(Literal::new(value)))),
            Leaf::Constant(_) => return Ok(None),
        };
        let mut args = vec![Arc::clone(&reshape.inner)];
        args.extend(names.into_iter().map(|it| Arc::new(Literal::new(ScalarValue::Utf8(Some(it)))) as _));
        let taken = ScalarFunctionExpr::try_new(
            Arc::new(call.fun().clone()),
            args,
            &self.physical,
            Arc::new(call.config_options().clone()),
        )?;
        Ok(Some(reshaped(Arc::new(taken), &shape, &shown)))
    }
}

fn reshaped(read: Arc<dyn PhysicalExpr>, shape: &Shape, shown: &FieldRef) -> Arc<dyn PhysicalExpr> {
    match shape {
        Shape::Same => read,
        Shape::Cast(_) => Arc::new(CastExpr::new_with_target_field(read, Arc::clone(shown), None)),
        Shape::Nulls(kind) => match ScalarValue::try_new_null(kind) {
            Ok(null) => Arc::new(Literal::new(null)),
            Err(_) => Arc::new(Reshape { inner: read, shape: Arc::new(shape.clone()), shown: Arc::clone(shown) }),
        },
        _ => Arc::new(Reshape { inner: read, shape: Arc::new(shape.clone()), shown: Arc::clone(shown) }),
    }
}

fn literal_text(expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
    expr.downcast_ref::<Literal>()?.value().try_as_str().flatten().map(str::to_owned)
}

enum Leaf {
    File { names: Vec<String>, shape: Shape, shown: FieldRef },
    Constant(ScalarValue),
}

/// Follows the table's names through a struct's shape to the file's names.
fn leaf(shape: &Shape, from: &DataType, keys: &[String]) -> Option<Leaf> {
    let (Shape::Struct(shown, children), DataType::Struct(file)) = (shape, from) else { return None };
    let (key, rest) = keys.split_first()?;
    let at = shown.iter().position(|it| it.name() == key)?;
    match (&children[at], rest.is_empty()) {
        (Child::Constant(value), true) => Some(Leaf::Constant(value.clone())),
        (Child::Constant(_), false) => None,
        (Child::File(from, shape), true) => Some(Leaf::File {
            names: vec![file[*from].name().clone()],
            shape: shape.clone(),
            shown: Arc::clone(&shown[at]),
        }),
        (Child::File(from, shape), false) => match leaf(shape, file[*from].data_type(), rest)? {
            Leaf::File { mut names, shape, shown } => {
                names.insert(0, file[*from].name().clone());
                Some(Leaf::File { names, shape, shown })
            }
            constant => Some(constant),
        },
    }
}

/// Applies a [`Shape`] to an expression's arrays.
#[derive(Debug, Clone)]
pub(crate) struct Reshape {
    inner: Arc<dyn PhysicalExpr>,
    shape: Arc<Shape>,
    shown: FieldRef,
}

impl fmt::Display for Reshape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reshape({})", self.inner)
    }
}

impl PartialEq for Reshape {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner) && self.shape == other.shape && self.shown == other.shown
    }
}

impl Eq for Reshape {}

impl Hash for Reshape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
        self.shown.name().hash(state);
    }
}

impl PhysicalExpr for Reshape {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.shown.name(), self.shown.data_type().clone(), true)))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.inner.evaluate(batch)?.into_array(batch.num_rows())?;
        let made = self.shape.apply(&array).map_err(DataFusionError::from)?;
        Ok(ColumnarValue::Array(made))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(inner) = children.pop() else {
            return Err(DataFusionError::Internal("a reshape has one child".to_owned()));
        };
        Ok(Arc::new(Self { inner, shape: Arc::clone(&self.shape), shown: Arc::clone(&self.shown) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
