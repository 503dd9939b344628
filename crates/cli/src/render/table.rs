//! Aligned columns for people.
//!
//! Widths come from the first rows; what comes later keeps them, and an overlong cell pushes its line. On a terminal
//! the widest columns give way until a line fits; in a pipe nothing is cut. Cells never hold a line break.
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{Out, Sink, cell};
use crate::{
    failure::Failure,
    terminal::{Style, Terminal, plain, shortened, width},
};

/// Rows that decide the widths.
const SAMPLE: usize = 1000;
/// A column is not made narrower than this to fit the terminal.
const NARROWEST: usize = 6;
const GAP: &str = "  ";

pub(super) struct TableSink {
    out: Out,
    terminal: Terminal,
    headings: Vec<String>,
    right: Vec<bool>,
    /// Rows that wait for the widths to be known; `None` once they are.
    waiting: Option<Vec<Vec<Cell>>>,
    widths: Vec<usize>,
    /// What stands for null: in rows of a query it must be told from an empty text, in a report it is just unknown.
    null: &'static str,
}

struct Cell {
    text: String,
    style: Option<Style>,
}

impl TableSink {
    pub(super) fn new(out: Out, schema: &SchemaRef, terminal: Terminal, null: &'static str) -> Self {
        let headings: Vec<String> = schema.fields().iter().map(|it| plain(it.name())).collect();
        let widths = headings.iter().map(|it| width(it)).collect();
        Self { out, terminal, right: vec![false; headings.len()], headings, waiting: Some(Vec::new()), widths, null }
    }

    fn write_row(&mut self, cells: &[Cell]) -> Result<(), Failure> {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let text = match self.terminal.width {
                Some(_) => shortened(&cell.text, self.widths[at]),
                None => cell.text.clone(),
            };
            self.put(&mut line, at, &text, cell.style);
        }
        writeln!(self.out, "{}", line.trim_end())?;
        Ok(())
    }

    /// Appends one cell, padded; the last column only where it is flush right.
    fn put(&self, line: &mut String, at: usize, text: &str, style: Option<Style>) {
        if at > 0 {
            line.push_str(GAP);
        }
        let padding = " ".repeat(self.widths[at].saturating_sub(width(text)));
        let text = style.filter(|_| !text.is_empty()).map_or(text.to_owned(), |it| self.terminal.paint(it, text));
        match (self.right[at], at + 1 == self.widths.len()) {
            (true, _) => *line += &(padding + &text),
            (false, true) => *line += &text,
            (false, false) => *line += &(text + &padding),
        }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let Some(rows) = self.waiting.take() else { return Ok(()) };
        for (at, cell) in rows.iter().flat_map(|row| row.iter().enumerate()) {
            self.widths[at] = self.widths[at].max(width(&cell.text));
        }
        if let Some(columns) = self.terminal.width {
            fit(&mut self.widths, columns);
        }
        let mut line = String::new();
        for at in 0..self.headings.len() {
            let heading = self.headings[at].clone();
            self.put(&mut line, at, &heading, Some(Style::Heading));
        }
        writeln!(self.out, "{}", line.trim_end())?;
        rows.iter().try_for_each(|it| self.write_row(it))
    }
}

/// Takes from the widest column, one at a time, until all fit or none can give more.
fn fit(widths: &mut [usize], columns: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > columns {
        let Some(widest) = widths.iter_mut().max() else { return };
        if *widest <= NARROWEST {
            return;
        }
        *widest -= 1;
    }
}

impl Sink for TableSink {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns = cell::columns(batch)?;
        for (at, column) in columns.iter().enumerate() {
            self.right[at] = column.is_number();
        }
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| {
                if column.is_null(row) {
                    return Cell { text: self.null.to_owned(), style: Some(Style::Faint) };
                }
                let mut text = String::new();
                column.text(row, &mut text);
                Cell { text: plain(&text), style: None }
            });
            let cells: Vec<Cell> = cells.collect();
            match &mut self.waiting {
                Some(waiting) => {
                    waiting.push(cells);
                    if waiting.len() == SAMPLE {
                        self.begin()?;
                    }
                }
                None => self.write_row(&cells)?,
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        self.begin()?;
        Ok(self.out.flush()?)
    }
}
