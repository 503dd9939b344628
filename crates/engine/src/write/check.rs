//! What every row must meet: columns that are never null, and the table's constraints.
//!
//! An expression is compiled over the table's columns as SQL shows them, and evaluated on those of them that it names.
//! The first row that breaks a rule is the error; nothing of the statement is committed then.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray, cast::AsArray};
use arrow_buffer::NullBuffer;
use arrow_cast::{
    cast,
    display::{ArrayFormatter, FormatOptions},
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::{
    common::DFSchema,
    execution::SessionState,
    logical_expr::Expr,
    physical_expr::{
        PhysicalExpr,
        utils::{collect_columns, reassign_expr_columns},
    },
};
use lakebed_core::{Error, Result, write::Constraint};

use super::WriteContext;
use crate::{
    error::of_datafusion,
    scan::Shown,
    sql::{names::bind_expression, parse, plan::Planner},
};

/// A boolean expression over the table's columns, ready to be evaluated.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    /// Over the columns as SQL shows them, without qualifier.
    pub(crate) logical: Expr,
    expr: Arc<dyn PhysicalExpr>,
    /// Positions of the columns it names among the table's, and how they look.
    columns: Vec<usize>,
    schema: SchemaRef,
}

/// Compiles `text` over the columns of `table`.
///
/// # Errors
/// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) if it is no boolean expression over these columns.
pub(crate) fn compile(state: &SessionState, table: &SchemaRef, text: &str) -> Result<Compiled> {
    let shown = Shown::new(table, Vec::new()).schema;
    let mut ast = parse::expression(text)?;
    bind_expression(&mut ast, &shown)?;
    let all = DFSchema::try_from(Arc::clone(&shown)).map_err(of_datafusion)?;
    let logical = Planner::new(state, Vec::new(), Vec::new()).expression(ast, &all).map_err(of_datafusion)?;
    Compiled::new(state, &shown, logical)
}

impl Compiled {
    /// `logical` is over the columns `shown`, unqualified.
    pub(crate) fn new(state: &SessionState, shown: &SchemaRef, logical: Expr) -> Result<Self> {
        let all = DFSchema::try_from(Arc::clone(shown)).map_err(of_datafusion)?;
        let whole = state.create_physical_expr(logical.clone(), &all).map_err(of_datafusion)?;
        let kind = whole.data_type(shown).map_err(of_datafusion)?;
        if kind != DataType::Boolean && kind != DataType::Null {
            return Err(Error::invalid(format!("`{logical}` is {kind}, not true or false")));
        }
        let mut columns: Vec<usize> = collect_columns(&whole).iter().map(|it| it.index()).collect();
        columns.sort_unstable();
        let schema = Arc::new(shown.project(&columns).map_err(|it| Error::internal(it.to_string()))?);
        let expr = reassign_expr_columns(whole, &schema).map_err(of_datafusion)?;
        Ok(Self { logical, expr, columns, schema })
    }

    /// Positions of the table's columns that it names.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Its value for each row of `batch`, which has the table's columns by position.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let shown = |(at, field): (&usize, &arrow_schema::FieldRef)| {
            let array = batch.column(*at);
            match array.data_type() == field.data_type() {
                true => Ok(Arc::clone(array)),
                false => cast(array, field.data_type()),
            }
        };
        let columns = self.columns.iter().zip(self.schema.fields()).map(shown).collect::<Result<Vec<_>, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let named = columns.and_then(|it| RecordBatch::try_new_with_options(Arc::clone(&self.schema), it, &options));
        let named = named.map_err(|it| of_datafusion(it.into()))?;
        let value = self.expr.evaluate(&named).and_then(|it| it.into_array(batch.num_rows())).map_err(of_datafusion)?;
        match value.data_type() {
            DataType::Boolean => Ok(value.as_boolean().clone()),
            _ => Ok(BooleanArray::new_null(batch.num_rows())),
        }
    }
}

/// The rules of one table.
#[derive(Debug)]
pub(super) struct Checks {
    schema: SchemaRef,
    /// Columns that are not nullable, or hold something that is not.
    strict: Vec<usize>,
    constraints: Vec<(Constraint, Compiled)>,
}

impl Checks {
    pub(super) fn new(context: &WriteContext, schema: &SchemaRef, constraints: &[Constraint]) -> Result<Self> {
        let compiled = |it: &Constraint| match compile(&context.state, schema, &it.expression) {
            Ok(compiled) => Ok((it.clone(), compiled)),
            Err(err) => Err(Error::unsupported(format!(
                "constraint `{}` ({}) cannot be checked by this build: {err}",
                it.name, it.expression
            ))
            .with_hint("nothing was written: rows that nobody checked could break it")),
        };
        let strict = schema.fields().iter().enumerate().filter(|(_, it)| is_strict(it)).map(|(at, _)| at).collect();
        Ok(Self {
            schema: Arc::clone(schema),
            strict,
            constraints: constraints.iter().map(compiled).collect::<Result<_>>()?,
        })
    }

    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind), naming the rule and the first row that breaks it.
    pub(super) fn check(&self, batch: &RecordBatch) -> Result<()> {
        for at in &self.strict {
            let field = self.schema.field(*at);
            if let Some((column, row)) = first_null(batch.column(*at), field, None, field.name().clone()) {
                let text = self.row(batch, row);
                return Err(Error::invalid(format!("column `{column}` may not be null, and is in row {text}")));
            }
        }
        for (constraint, compiled) in &self.constraints {
            let holds = compiled.evaluate(batch)?;
            let broken = |row: &usize| match holds.is_null(*row) {
                true => !constraint.null_passes,
                false => !holds.value(*row),
            };
            if holds.null_count() == 0 && holds.false_count() == 0 {
                continue;
            }
            if let Some(row) = (0..batch.num_rows()).find(broken) {
                let (name, rule) = (&constraint.name, &constraint.expression);
                let text = self.row(batch, row);
                return Err(Error::invalid(format!("constraint `{name}` ({rule}) does not hold for row {text}")));
            }
        }
        Ok(())
    }

    /// A row for a message.
    fn row(&self, batch: &RecordBatch, row: usize) -> String {
        row_text(&self.schema, batch, row)
    }
}

/// `(id = 1, name = NULL, …)`: the first columns of a row.
pub(super) fn row_text(schema: &Schema, batch: &RecordBatch, row: usize) -> String {
    const MOST: usize = 6;
    let shown = schema.fields().iter().zip(batch.columns()).take(MOST);
    let mut parts: Vec<String> =
        shown.map(|(field, array)| format!("{} = {}", field.name(), value_text(array, row))).collect();
    if batch.num_columns() > MOST {
        parts.push("…".to_owned());
    }
    format!("({})", parts.join(", "))
}

/// A value for a message: escaped, and not endless.
pub(super) fn value_text(array: &dyn Array, row: usize) -> String {
    const MOST: usize = 60;
    let options = FormatOptions::new().with_null("NULL");
    let text = match ArrayFormatter::try_new(array, &options) {
        Ok(shown) => shown.value(row).try_to_string().unwrap_or_else(|_| "?".to_owned()),
        Err(_) => "?".to_owned(),
    };
    let mut short: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// Whether nulls are forbidden in the column or anywhere inside of it.
fn is_strict(field: &Field) -> bool {
    !field.is_nullable() || children(field).into_iter().any(is_strict)
}

fn children(field: &Field) -> Vec<&Field> {
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
        DataType::List(item) => vec![item],
        // Keys are never null, and the entry itself is nothing of the table's.
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => vec![&pair[1]],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The path of the first forbidden null and its row. A null below a null parent is none; `parent` says which are not.
fn first_null(array: &ArrayRef, field: &Field, parent: Option<&NullBuffer>, path: String) -> Option<(String, usize)> {
    if !is_strict(field) {
        return None;
    }
    let nulls = array.logical_nulls();
    if !field.is_nullable()
        && let Some(nulls) = nulls.as_ref().filter(|it| it.null_count() > 0)
    {
        let wrong = |row: &usize| nulls.is_null(*row) && parent.is_none_or(|it| it.is_valid(*row));
        if let Some(row) = (0..array.len()).find(wrong) {
            return Some((path, row));
        }
    }
    let valid = NullBuffer::union(parent, nulls.as_ref());
    match (array.data_type(), field.data_type()) {
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let parts: &StructArray = array.as_struct();
            let child = |(child, field): (&ArrayRef, &arrow_schema::FieldRef)| {
                first_null(child, field, valid.as_ref(), format!("{path}.{}", field.name()))
            };
            parts.columns().iter().zip(fields).find_map(child)
        }
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let (offsets, values) = (list.value_offsets(), list.values());
            in_values(offsets, values, item, valid.as_ref(), format!("{path}.element"))
        }
        (DataType::Map(..), DataType::Map(entries, _)) => {
            let DataType::Struct(pair) = entries.data_type() else { return None };
            let map = array.as_map();
            in_values(map.value_offsets(), map.values(), pair.get(1)?, valid.as_ref(), format!("{path}.value"))
        }
        _ => None,
    }
}

/// [`first_null`] among the values of lists; the row is the list's.
fn in_values(
    offsets: &[i32],
    values: &ArrayRef,
    field: &Field,
    valid: Option<&NullBuffer>,
    path: String,
) -> Option<(String, usize)> {
    let mut owner: Vec<Option<usize>> = vec![None; values.len()];
    for (row, pair) in offsets.windows(2).enumerate() {
        let (start, end) = (usize::try_from(pair[0]).ok()?, usize::try_from(pair[1]).ok()?);
        if valid.is_none_or(|it| it.is_valid(row)) {
            owner[start..end].fill(Some(row));
        }
    }
    let owned: NullBuffer = owner.iter().map(Option::is_some).collect::<Vec<_>>().into();
    let (name, value) = first_null(values, field, Some(&owned), path)?;
    Some((name, owner[value]?))
}
