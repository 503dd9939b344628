//! Text for programs and documents: CSV, TSV, Markdown, and one line a value.
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{Out, Sink, cell};
use crate::{
    failure::Failure,
    terminal::{Style, Terminal, plain},
};

/// CSV (RFC 4180, `\n`) and TSV, both with a header.
///
/// Null is an empty field; in CSV an empty text is `""`. TSV writes `\t`, `\n`, `\r` and `\\` for those characters.
pub(super) struct Delimited {
    out: Out,
    between: char,
    escape: fn(&str, &mut String),
    line: String,
}

impl Delimited {
    pub(super) fn csv(out: Out, schema: &SchemaRef) -> Result<Self, Failure> {
        Self::new(out, schema, ',', csv_field)
    }

    pub(super) fn tsv(out: Out, schema: &SchemaRef) -> Result<Self, Failure> {
        Self::new(out, schema, '\t', tsv_field)
    }

    fn new(mut out: Out, schema: &SchemaRef, between: char, escape: fn(&str, &mut String)) -> Result<Self, Failure> {
        let mut line = String::new();
        for (at, field) in schema.fields().iter().enumerate() {
            if at > 0 {
                line.push(between);
            }
            escape(field.name(), &mut line);
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        Ok(Self { out, between, escape, line })
    }
}

impl Sink for Delimited {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = cell::columns(batch)?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    self.line.push(self.between);
                }
                if !column.is_null(row) {
                    text.clear();
                    column.text(row, &mut text);
                    (self.escape)(&text, &mut self.line);
                }
            }
            self.line.push('\n');
            self.out.write_all(self.line.as_bytes())?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

fn csv_field(text: &str, out: &mut String) {
    if !text.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        out.push_str(text);
        return;
    }
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

fn tsv_field(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            other => out.push(other),
        }
    }
}

/// A pipe table, as GitHub reads it.
pub(super) struct Markdown {
    out: Out,
}

impl Markdown {
    pub(super) fn new(mut out: Out, schema: &SchemaRef) -> Result<Self, Failure> {
        for field in schema.fields() {
            write!(out, "| {} ", markdown_cell(field.name()))?;
        }
        writeln!(out, "|")?;
        for field in schema.fields() {
            let kind = field.data_type();
            write!(out, "|{}", if kind.is_numeric() { " ---: " } else { " --- " })?;
        }
        writeln!(out, "|")?;
        Ok(Self { out })
    }
}

fn markdown_cell(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('|', "\\|").replace('\r', "").replace('\n', "<br>");
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

impl Sink for Markdown {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = cell::columns(batch)?;
        for row in 0..batch.num_rows() {
            for column in &columns {
                let mut text = String::new();
                column.text(row, &mut text);
                write!(self.out, "| {} ", markdown_cell(&text))?;
            }
            writeln!(self.out, "|")?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// One value a line, as wide as it is: `Row 1:`, a rule, `name: value`.
pub(super) struct Vertical {
    out: Out,
    terminal: Terminal,
    rows: u64,
}

impl Vertical {
    pub(super) fn new(out: Out, terminal: Terminal) -> Self {
        Self { out, terminal, rows: 0 }
    }
}

impl Sink for Vertical {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = cell::columns(batch)?;
        let schema = batch.schema();
        let names: Vec<String> = schema.fields().iter().map(|it| plain(it.name())).collect();
        let widest = names.iter().map(|it| crate::terminal::width(it)).max().unwrap_or(0);
        for row in 0..batch.num_rows() {
            if self.rows > 0 {
                writeln!(self.out)?;
            }
            self.rows += 1;
            let title = format!("Row {}:", self.rows);
            writeln!(self.out, "{}\n{}", self.terminal.paint(Style::Heading, &title), "─".repeat(title.len()))?;
            for (name, column) in names.iter().zip(&columns) {
                let mut text = String::new();
                if column.is_null(row) {
                    text.push_str("ᴺᵁᴸᴸ")
                } else {
                    column.text(row, &mut text)
                }
                let text = if self.terminal.stdout { plain(&text) } else { text };
                let gap = " ".repeat(widest - crate::terminal::width(name));
                writeln!(self.out, "{name}: {gap}{text}")?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}
