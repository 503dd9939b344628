//! What a verb answers: named columns of a few kinds, shown as rows or as one record.
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
    builder::{ListBuilder, StringBuilder},
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lakebed_core::{Error, version::Millis};

use crate::{
    args::Format,
    render::{Envelope, cell::JSON_TEXT, pick},
};

/// One value of a report. Numbers that are unknown are [`Value::Null`], never zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Text(String),
    Int(i64),
    Bool(bool),
    Time(Millis),
    Texts(Vec<String>),
    Json(serde_json::Value),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Millis> for Value {
    fn from(at: Millis) -> Self {
        Self::Time(at)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Bool(yes)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        i64::try_from(count).map_or(Self::Null, Self::Int)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Bool,
    Time,
    Texts,
    Json,
}

/// A column of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    /// The key in JSON and the header in pipes.
    pub(crate) name: &'static str,
    /// The header in tables.
    pub(crate) heading: &'static str,
    pub(crate) kind: Kind,
    /// Left out of tables, where it would push everything else off the screen.
    pub(crate) wide: bool,
}

impl Column {
    pub(crate) const fn new(name: &'static str, heading: &'static str, kind: Kind) -> Self {
        Self { name, heading, kind, wide: false }
    }

    /// See [`Column::wide`].
    pub(crate) const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

/// Rows of one shape.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) envelope: Envelope,
    /// Lines above a table.
    pub(crate) title: Vec<String>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Report {
    pub(crate) fn new(schema: &'static str, table: impl Into<String>, columns: &[Column]) -> Self {
        let envelope = Envelope::new(schema, table);
        Self { envelope, title: Vec::new(), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Keeps the columns of `names`, by their keys and in this order, wide ones too.
    pub(crate) fn pick(&mut self, names: &[String]) -> Result<(), Error> {
        let known: Vec<&str> = self.columns.iter().map(|it| it.name).collect();
        let kept = pick(names, &known)?;
        self.columns = kept.iter().map(|at| Column { wide: false, ..self.columns[*at] }).collect();
        for row in &mut self.rows {
            *row = kept.iter().map(|at| row[*at].clone()).collect();
        }
        Ok(())
    }

    /// The rows as a batch in the shape that suits `format`.
    pub(crate) fn batch(&self, format: Format) -> Result<RecordBatch, Error> {
        let shown = |it: &Column| !(it.wide && format == Format::Table);
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (at, column) in self.columns.iter().enumerate().filter(|(_, it)| shown(it)) {
            let values: Vec<&Value> = self.rows.iter().map(|row| &row[at]).collect();
            let array = array(column.kind, &values, format);
            fields.push(field(column, array.data_type(), format));
            arrays.push(array);
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        RecordBatch::try_new(schema, arrays).map_err(|it| Error::internal(it.to_string()))
    }
}

/// Whether `format` is read by people or line tools: lists are joined then.
pub(crate) fn is_text(format: Format) -> bool {
    matches!(format, Format::Table | Format::Csv | Format::Tsv | Format::Markdown | Format::Vertical)
}

fn field(column: &Column, kind: &DataType, format: Format) -> Field {
    let name = if format == Format::Table { column.heading } else { column.name };
    let field = Field::new(name, kind.clone(), true);
    match column.kind {
        Kind::Json => field.with_metadata([(JSON_TEXT.to_owned(), "true".to_owned())].into()),
        _ => field,
    }
}

fn array(kind: Kind, values: &[&Value], format: Format) -> ArrayRef {
    match kind {
        Kind::Texts if !is_text(format) => texts(values),
        Kind::Text | Kind::Texts | Kind::Json => Arc::new(values.iter().map(|it| text(it)).collect::<StringArray>()),
        Kind::Int => {
            let numbers = values.iter().map(|it| if let Value::Int(number) = it { Some(*number) } else { None });
            Arc::new(numbers.collect::<Int64Array>())
        }
        Kind::Bool => {
            let flags = values.iter().map(|it| if let Value::Bool(yes) = it { Some(*yes) } else { None });
            Arc::new(flags.collect::<BooleanArray>())
        }
        Kind::Time => {
            let times = values.iter().map(|it| if let Value::Time(at) = it { Some(at.0) } else { None });
            Arc::new(times.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
        }
    }
}

fn texts(values: &[&Value]) -> ArrayRef {
    let mut list = ListBuilder::new(StringBuilder::new());
    for value in values {
        if let Value::Texts(items) = value {
            items.iter().for_each(|it| list.values().append_value(it));
            list.append(true);
        } else {
            list.append(false);
        }
    }
    Arc::new(list.finish())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Text(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Time(at) => Some(at.to_string()),
        Value::Texts(items) => Some(items.join(", ")),
        Value::Json(json) => Some(json.to_string()),
    }
}

/// One thing with many properties. Text formats list them one a line; the others get one row.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) envelope: Envelope,
    pub(crate) values: Vec<(Column, Value)>,
}

impl Record {
    pub(crate) fn new(schema: &'static str, table: impl Into<String>) -> Self {
        Self { envelope: Envelope::new(schema, table), values: Vec::new() }
    }

    pub(crate) fn put(&mut self, name: &'static str, kind: Kind, value: impl Into<Value>) {
        self.values.push((Column::new(name, name, kind), value.into()));
    }

    pub(crate) fn report(self, format: Format) -> Report {
        let (columns, values): (Vec<Column>, Vec<Value>) = self.values.into_iter().unzip();
        if !is_text(format) || format == Format::Vertical {
            return Report { envelope: self.envelope, title: Vec::new(), columns, rows: vec![values] };
        }
        let pairs = [Column::new("property", "PROPERTY", Kind::Text), Column::new("value", "VALUE", Kind::Text)];
        let mut rows = Vec::new();
        for (column, value) in columns.into_iter().zip(values) {
            unfold(column.name, value, &mut rows);
        }
        Report { envelope: self.envelope, title: Vec::new(), columns: pairs.to_vec(), rows }
    }
}

/// An object becomes a line a member, a list of texts a line an item; what is unknown is left out.
fn unfold(name: &str, value: Value, rows: &mut Vec<Vec<Value>>) {
    match value {
        Value::Null | Value::Json(serde_json::Value::Null) => (),
        Value::Json(serde_json::Value::Object(members)) => {
            for (key, member) in members {
                let value = match member {
                    serde_json::Value::String(text) => Value::Text(text),
                    other => Value::Json(other),
                };
                unfold(&format!("{name}.{key}"), value, rows);
            }
        }
        Value::Texts(items) => {
            rows.extend(items.into_iter().map(|item| vec![Value::from(name), Value::Text(item)]));
        }
        other => rows.push(vec![Value::from(name), Value::from(text(&other))]),
    }
}
