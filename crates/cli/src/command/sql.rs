//! `sql`: statements from flags, files, stdin or a prompt.
//!
//! A script is parsed as a whole before its first statement runs, and stops at its first failure with that failure's
//! exit code. Each result is printed by itself; two results in a format that cannot hold two are an error.
use std::{
    io::{self, IsTerminal as _, Read},
    path::Path,
    sync::Arc,
};

use arrow_schema::SchemaRef;
use clap::ValueEnum as _;
use futures::StreamExt as _;
use lakebed_core::{Error, ErrorKind};
use lakebed_engine::{
    error::of_datafusion,
    session::{Output, OutputKind, Session},
    sql::{MAX_SCRIPT_BYTES, Statement},
};

use crate::{
    args::{Format, Sql},
    door::Door,
    failure::{Failure, Verdict, eprint},
    render::{self, Printer},
    stopwatch::Stopwatch,
};

mod end;
mod names;
mod prompt;

/// A run of statements over one session.
pub(crate) struct Runner<'a> {
    pub(crate) door: &'a Door,
    pub(crate) session: Session,
    pub(crate) timing: bool,
    pub(crate) printer: Printer,
    /// Statements so far.
    count: u64,
    /// Results so far.
    results: u64,
}

pub(crate) async fn run(door: &Door, args: &Sql) -> Result<Verdict, Failure> {
    let mut runner = Runner::new(door, args.timing)?;
    if prompts(args) {
        return prompt::run(&mut runner).await;
    }
    if args.commands.is_empty() && args.files.is_empty() {
        runner.script(&stdin().await?).await?;
        return Ok(Verdict::Yes);
    }
    for text in &args.commands {
        runner.script(text).await?;
    }
    for path in &args.files {
        runner.script(&script(door, path).await?).await?;
    }
    Ok(Verdict::Yes)
}

/// Whether statements are typed at a prompt.
pub(crate) fn prompts(args: &Sql) -> bool {
    args.commands.is_empty() && args.files.is_empty() && io::stdin().is_terminal()
}

/// The text of a script; `-` is stdin.
pub(crate) async fn script(door: &Door, path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        return stdin().await;
    }
    let (name, path) = (format!("script {}", path.display()), door.folder().join(path));
    text(name, move || std::fs::File::open(path)).await
}

async fn stdin() -> Result<String, Failure> {
    text("the script on stdin".to_owned(), || Ok(io::stdin())).await
}

/// Reads a script up to one byte more than a script may have, where a writer that never ends blocks nobody.
async fn text<R: Read>(name: String, open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Result<String, Failure> {
    let most = u64::try_from(MAX_SCRIPT_BYTES).unwrap_or(u64::MAX);
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        open()?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let bytes = read.await.unwrap_or_else(|it| Err(io::Error::other(it))).map_err(|err| match err.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("{name}: {err}"))
            .with_hint("check the path; a relative one starts at the working folder or at -C"),
        _ => Error::invalid(format!("{name}: {err}")),
    })?;
    if bytes.len() > MAX_SCRIPT_BYTES {
        let message = format!("{name} is longer than {MAX_SCRIPT_BYTES} bytes");
        return Err(Error::new(ErrorKind::Limit, message).with_hint("split it, or keep long lists in a table").into());
    }
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{name}: it is not UTF-8")).into())
}

impl<'a> Runner<'a> {
    pub(crate) fn new(door: &'a Door, timing: bool) -> Result<Self, Failure> {
        let printer = door.printer.clone();
        Ok(Self { door, session: door.lake.session()?, timing, printer, count: 0, results: 0 })
    }

    /// Runs every statement of `text`.
    pub(crate) async fn script(&mut self, text: &str) -> Result<(), Failure> {
        for statement in self.session.parse(text)? {
            self.statement(&statement).await?;
        }
        Ok(())
    }

    async fn statement(&mut self, statement: &Statement) -> Result<(), Failure> {
        self.count += 1;
        let io = self.session.io();
        let (requests, bytes) = (io.requests(), io.bytes_read());
        let watch = Stopwatch::start();
        let output = self.session.run(statement).await?;
        let rows = self.print(output).await?;
        self.door.lake.flights().settle();
        let ms = watch.elapsed().as_secs_f64() * 1000.0;
        if self.timing {
            let (requests, bytes) = (io.requests() - requests, io.bytes_read() - bytes);
            eprint(&format!(
                "{{\"statement\":{},\"ms\":{ms:.3},\"rows\":{rows},\"requests\":{requests},\"bytes_read\":{bytes}}}\n",
                self.count
            ));
        } else if self.door.terminal.stdout && self.printer.format == Format::Table {
            self.door.note(&format!("{rows} {} in {ms:.0} ms", if rows == 1 { "row" } else { "rows" }));
        }
        Ok(())
    }

    /// Prints a result and says how many rows it had.
    async fn print(&mut self, output: Output) -> Result<u64, Failure> {
        if output.kind == OutputKind::Done {
            return drained(output).await;
        }
        let mut printer = self.printer.clone();
        if let Some(name) = &output.format {
            printer.format = named_format(name)?;
        }
        self.results += 1;
        if self.results > 1 && printer.format.is_binary() {
            return Err(Error::invalid("two results cannot be written as one arrow or parquet output")
                .with_hint("run one statement a call, or choose json, ndjson or csv")
                .into());
        }
        if output.kind == OutputKind::Plan && matches!(printer.format, Format::Table | Format::Tsv) {
            printer.terminal.width = None;
        }
        stream(&printer, output).await
    }
}

/// Statements without a result still have to be run to their end.
async fn drained(mut output: Output) -> Result<u64, Failure> {
    while let Some(batch) = output.rows.next().await {
        batch.map_err(of_datafusion)?;
    }
    Ok(0)
}

async fn stream(printer: &Printer, mut output: Output) -> Result<u64, Failure> {
    let schema: SchemaRef = Arc::clone(&output.schema);
    // The first batch comes before the sink: a statement that fails at once prints no header.
    let mut batch = output.rows.next().await.transpose().map_err(of_datafusion)?;
    let mut sink = printer.sink(render::stdout(), &schema, None)?;
    let mut rows = 0_u64;
    while let Some(next) = batch {
        rows = rows.saturating_add(u64::try_from(next.num_rows()).unwrap_or(u64::MAX));
        sink.batch(&next)?;
        batch = output.rows.next().await.transpose().map_err(of_datafusion)?;
    }
    sink.finish()?;
    Ok(rows)
}

/// The format that a `FORMAT` clause or `\format` names.
pub(crate) fn named_format(name: &str) -> Result<Format, Failure> {
    Format::from_str(name, true).map_err(|_| {
        let known = lakebed::config::FORMATS.join(", ");
        Error::invalid(format!("`{}` is no output format", name.escape_debug())).with_hint(known).into()
    })
}
