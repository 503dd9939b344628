//! From a query's columns to the table's.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::scalar::ScalarValue;
use lakebed_core::{Error, Result};

use super::{Source, assign::Assign};
use crate::error::of_datafusion;

/// How each column of the table is made; see [`Source`].
#[derive(Debug, Clone)]
pub(crate) struct Shaping {
    table: SchemaRef,
    ways: Vec<Way>,
}

#[derive(Debug, Clone)]
enum Way {
    Input(usize, Assign),
    Constant(ScalarValue),
    Null(DataType),
}

impl Shaping {
    /// `sources` has one entry a column of `table`; `input` are the query's columns.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for types that never go into a column's, and for a column that
    /// has no value and may not be null.
    pub(crate) fn new(table: &SchemaRef, sources: &[Source], input: &Schema) -> Result<Self> {
        if sources.len() != table.fields().len() {
            return Err(Error::internal(format!("{} sources for {} columns", sources.len(), table.fields().len())));
        }
        let way = |(field, source): (&arrow_schema::FieldRef, &Source)| match source {
            Source::Input(at) => {
                let from = input.fields().get(*at).ok_or_else(|| Error::internal(format!("no input column {at}")))?;
                Ok(Way::Input(*at, Assign::find(from, field, field.name())?))
            }
            Source::Constant(value) if value.is_null() => null(field),
            Source::Constant(value) => Ok(Way::Constant(assigned(value, field)?)),
            Source::Missing => null(field),
        };
        let ways = table.fields().iter().zip(sources).map(way).collect::<Result<_>>()?;
        Ok(Self { table: Arc::clone(table), ways })
    }

    /// The input's columns are the table's, by position.
    pub(crate) fn by_position(table: &SchemaRef, input: &Schema) -> Result<Self> {
        let sources: Vec<Source> = (0..input.fields().len()).map(Source::Input).collect();
        Self::new(table, &sources, input)
    }

    /// The input columns that the table's column at `column` is made of.
    pub(super) fn input_of(&self, column: usize) -> Option<usize> {
        match self.ways.get(column)? {
            Way::Input(at, _) => Some(*at),
            Way::Constant(_) | Way::Null(_) => None,
        }
    }

    /// The table's columns, text laid out as it came.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for a value that does not fit its column: names both.
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut fields = Vec::with_capacity(self.ways.len());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.ways.len());
        for (field, way) in self.table.fields().iter().zip(&self.ways) {
            let column = match way {
                Way::Input(at, assign) => assign.apply(batch.column(*at))?,
                Way::Constant(value) => value.to_array_of_size(rows).map_err(of_datafusion)?,
                Way::Null(kind) => new_null_array(kind, rows),
            };
            fields.push(Field::new(field.name(), column.data_type().clone(), true));
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(|it| Error::internal(it.to_string()))
    }
}

fn null(field: &Field) -> Result<Way> {
    match field.is_nullable() {
        true => Ok(Way::Null(field.data_type().clone())),
        false => {
            Err(Error::invalid(format!("column `{}` may not be null, and the statement has no value", field.name())))
        }
    }
}

fn assigned(value: &ScalarValue, field: &Field) -> Result<ScalarValue> {
    let array = value.to_array().map_err(of_datafusion)?;
    let from = Field::new(field.name(), array.data_type().clone(), true);
    let made = Assign::find(&from, field, field.name())?.apply(&array)?;
    ScalarValue::try_from_array(&made, 0).map_err(of_datafusion)
}
