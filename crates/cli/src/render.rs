//! Rows as text or bytes on stdout, batch by batch: nothing is held but what a format needs to begin.
use std::{io, io::Write, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use lakebed::similar::closest;
use lakebed_core::Error;

use crate::{args::Format, failure::Failure, terminal::Terminal};

pub(crate) mod cell;
mod columnar;
mod json;
mod table;
mod text;

/// Takes the rows of one result.
pub(crate) trait Sink {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure>;
    /// Writes what closes the result, and flushes.
    fn finish(self: Box<Self>) -> Result<(), Failure>;
}

/// Where a sink writes.
pub(crate) type Out = Box<dyn Write + Send>;

/// How results are shown: the output flags, resolved.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    pub(crate) format: Format,
    pub(crate) terminal: Terminal,
    /// Only these columns, in this order.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) limit: Option<usize>,
}

/// What stands around the rows of a verb in JSON.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    /// `lakebed.log/1`.
    pub(crate) schema: &'static str,
    pub(crate) table: String,
    /// What the rows come to, behind them; JSON alone has room for it.
    pub(crate) totals: Option<serde_json::Value>,
}

impl Envelope {
    pub(crate) fn new(schema: &'static str, table: impl Into<String>) -> Self {
        Self { schema, table: table.into(), totals: None }
    }
}

impl Printer {
    /// A sink for rows of `schema`. With an envelope, JSON gets it and ids and times are written for careful readers.
    pub(crate) fn sink(
        &self,
        out: Out,
        schema: &SchemaRef,
        envelope: Option<&Envelope>,
    ) -> Result<Box<dyn Sink>, Failure> {
        let picked = self.picked(schema)?;
        let shown = match &picked {
            Some(indices) => Arc::new(schema.project(indices).map_err(|it| Error::internal(it.to_string()))?),
            None => Arc::clone(schema),
        };
        let inner: Box<dyn Sink> = match self.format {
            Format::Table => {
                let null = if envelope.is_some() { "" } else { "NULL" };
                Box::new(table::TableSink::new(out, &shown, self.terminal, null))
            }
            Format::Csv => Box::new(text::Delimited::csv(out, &shown)?),
            Format::Tsv => Box::new(text::Delimited::tsv(out, &shown)?),
            Format::Markdown => Box::new(text::Markdown::new(out, &shown)?),
            Format::Vertical => Box::new(text::Vertical::new(out, self.terminal)),
            Format::Json => Box::new(json::JsonSink::array(out, &shown, envelope)?),
            Format::Ndjson => Box::new(json::JsonSink::lines(out, &shown, envelope)?),
            Format::Arrow => Box::new(columnar::ArrowSink::new(out, &shown)?),
            Format::Parquet => Box::new(columnar::ParquetSink::new(out, &shown)?),
        };
        Ok(Box::new(Narrow { inner, picked, left: self.limit }))
    }

    fn picked(&self, schema: &Schema) -> Result<Option<Vec<usize>>, Failure> {
        let Some(names) = &self.columns else { return Ok(None) };
        let known: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
        Ok(Some(pick(names, &known)?))
    }
}

/// The positions of the columns that `--columns` names among `known`; the exact spelling wins.
pub(crate) fn pick(names: &[String], known: &[&str]) -> Result<Vec<usize>, Error> {
    let find = |name: &String| {
        let exact = known.iter().position(|it| it == name);
        exact.or_else(|| known.iter().position(|it| it.eq_ignore_ascii_case(name)))
    };
    names.iter().map(|name| find(name).ok_or_else(|| unknown_column(name, known))).collect()
}

fn unknown_column(name: &str, known: &[&str]) -> Error {
    let err = Error::invalid(format!("--columns: there is no column `{}`", name.escape_debug()));
    match closest(name, known.iter().copied()) {
        Some(near) => err.with_hint(format!("did you mean `{near}`?")),
        None => err.with_hint(format!("columns: {}", known.join(", "))),
    }
}

/// Passes on the wanted columns of the first rows.
struct Narrow {
    inner: Box<dyn Sink>,
    picked: Option<Vec<usize>>,
    left: Option<usize>,
}

impl Sink for Narrow {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let mut batch = match &self.picked {
            Some(indices) => batch.project(indices).map_err(|it| Error::internal(it.to_string()))?,
            None => batch.clone(),
        };
        if let Some(left) = &mut self.left {
            batch = batch.slice(0, batch.num_rows().min(*left));
            *left -= batch.num_rows();
        }
        if batch.num_rows() == 0 { Ok(()) } else { self.inner.batch(&batch) }
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        self.inner.finish()
    }
}

/// Buffered stdout.
pub(crate) fn stdout() -> Out {
    Box::new(io::BufWriter::with_capacity(64 << 10, io::stdout()))
}

#[cfg(test)]
mod tests;
