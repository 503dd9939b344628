//! Columns of small tables.
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use lakebed_core::{Result, version::Millis};

use crate::error::of_datafusion;

/// Columns by name, in order.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub(crate) fn text<T: Into<String>>(self, name: &str, values: impl Iterator<Item = T>) -> Self {
        let array = StringArray::from_iter_values(values.map(Into::into));
        self.with(Field::new(name, DataType::Utf8, false), Arc::new(array))
    }

    pub(crate) fn optional_text(self, name: &str, values: impl Iterator<Item = Option<String>>) -> Self {
        let array = StringArray::from_iter(values);
        self.with(Field::new(name, DataType::Utf8, true), Arc::new(array))
    }

    /// Counts beyond the range of a signed integer, which no table has, are null.
    pub(crate) fn count(self, name: &str, values: impl Iterator<Item = Option<u64>>) -> Self {
        let array = Int64Array::from_iter(values.map(|it| it.and_then(|it| i64::try_from(it).ok())));
        self.with(Field::new(name, DataType::Int64, true), Arc::new(array))
    }

    pub(crate) fn time(self, name: &str, values: impl Iterator<Item = Option<Millis>>) -> Self {
        let array = TimestampMillisecondArray::from_iter(values.map(|it| it.map(|it| it.0))).with_timezone("UTC");
        let kind = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        self.with(Field::new(name, kind, true), Arc::new(array))
    }

    fn with(mut self, field: Field, array: ArrayRef) -> Self {
        self.fields.push(field);
        self.arrays.push(array);
        self
    }

    pub(crate) fn batch(self) -> Result<RecordBatch> {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).map_err(|it| of_datafusion(it.into()))
    }
}
