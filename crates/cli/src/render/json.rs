//! JSON: an array or one object a line; a verb's rows inside its envelope.
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};

use super::{
    Envelope, Out, Sink,
    cell::{self, Numbers, quote},
};
use crate::failure::Failure;

pub(super) struct JsonSink {
    out: Out,
    /// `"name":` of each column.
    names: Vec<String>,
    /// `"name_ms":` of the columns that are instants, where the reader is a verb's.
    millis: Vec<Option<String>>,
    numbers: Numbers,
    between: &'static str,
    close: String,
    rows: u64,
    line: String,
}

impl JsonSink {
    pub(super) fn array(mut out: Out, schema: &SchemaRef, envelope: Option<&Envelope>) -> Result<Self, Failure> {
        let close = match envelope {
            Some(envelope) => {
                let mut table = String::new();
                quote(&envelope.table, &mut table);
                write!(out, "{{\"schema\":\"{}\",\"table\":{table},\"rows\":[", envelope.schema)?;
                match &envelope.totals {
                    Some(totals) => format!("],\"totals\":{totals}}}\n"),
                    None => "]}\n".to_owned(),
                }
            }
            None => {
                write!(out, "[")?;
                "]\n".to_owned()
            }
        };
        Ok(Self::new(out, schema, envelope, ",\n ", close))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the same shape as the other sinks")]
    pub(super) fn lines(out: Out, schema: &SchemaRef, envelope: Option<&Envelope>) -> Result<Self, Failure> {
        Ok(Self::new(out, schema, envelope, "\n", "\n".to_owned()))
    }

    fn new(out: Out, schema: &SchemaRef, envelope: Option<&Envelope>, between: &'static str, close: String) -> Self {
        let key = |name: &str| {
            let mut text = String::new();
            quote(name, &mut text);
            text + ":"
        };
        let names = schema.fields().iter().map(|it| key(it.name())).collect();
        let instant = |kind: &DataType| matches!(kind, DataType::Timestamp(_, Some(_)));
        let millis = schema
            .fields()
            .iter()
            .map(|it| (envelope.is_some() && instant(it.data_type())).then(|| key(&format!("{}_ms", it.name()))));
        let numbers = if envelope.is_some() { Numbers::Careful } else { Numbers::Bare };
        Self { out, names, millis: millis.collect(), numbers, between, close, rows: 0, line: String::new() }
    }
}

impl Sink for JsonSink {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = cell::columns(batch)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            if self.rows > 0 {
                self.line.push_str(self.between);
            }
            self.line.push('{');
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    self.line.push(',');
                }
                self.line.push_str(&self.names[at]);
                column.json(row, self.numbers, &mut self.line);
                if let Some(name) = &self.millis[at] {
                    let value = if column.is_null(row) { None } else { column.millis(row) };
                    self.line.push(',');
                    self.line.push_str(name);
                    self.line.push_str(&value.map_or("null".to_owned(), |it| it.to_string()));
                }
            }
            self.line.push('}');
            self.out.write_all(self.line.as_bytes())?;
            self.rows += 1;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        if self.rows > 0 || self.close != "\n" {
            self.out.write_all(self.close.as_bytes())?;
        }
        Ok(self.out.flush()?)
    }
}
