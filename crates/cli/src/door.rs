//! What every command needs: the lake, the flags resolved, and the two streams.
use std::{collections::BTreeMap, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use crate::{
    args::{Format, Global, Progress, When},
    busy::{Busy, Shown},
    failure::{Failure, eprint},
    render::{self, Envelope, Printer},
    report::{Record, Report},
    terminal::Terminal,
};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use clap::ValueEnum as _;
use futures::{Stream, StreamExt};
use lakebed::{
    Lakebed, Opened, RequestLog,
    config::{Config, Origin, parse_duration},
};
use lakebed_core::{
    Error, ErrorKind, Result,
    env::Env,
    rev::{self, Rev, RevRange},
    table::{Snapshot, Table},
    time::{Tz, parse_time},
    version::{AsOf, Millis, Resolved, Span},
};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) lake: Lakebed,
    pub(crate) printer: Printer,
    pub(crate) terminal: Terminal,
    pub(crate) explain: bool,
    quiet: bool,
    progress: Shown,
    folder: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Door {
    /// Reads the configuration and resolves the flags; touches no table.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a folder that is not there and for settings that do not fit.
    pub(crate) fn open(global: &Global) -> Result<Self> {
        Self::open_in(global, Env::system())
    }

    /// [`Self::open`] in a world with another clock.
    pub(crate) fn open_in(global: &Global, env: Env) -> Result<Self> {
        let folder = working_folder(global)?;
        let environment: BTreeMap<String, String> = std::env::vars().collect();
        let mut config = Config::load_with(&environment, &folder, global.profile.as_deref())?;
        for (key, flag, value) in flags(global) {
            if let Some(value) = value {
                config.set(key, value, Origin::Flag(flag))?;
            }
        }
        Self::with(config, folder, environment, global, env)
    }

    fn with(
        config: Config,
        folder: PathBuf,
        environment: BTreeMap<String, String>,
        global: &Global,
        env: Env,
    ) -> Result<Self> {
        let when = |key: &str| config.get(key).and_then(|it| When::from_str(it, true).ok()).unwrap_or_default();
        let terminal = Terminal::detect(when("color"));
        let format = config.get("format").and_then(|it| Format::from_str(it, true).ok());
        let format = format.unwrap_or(if terminal.stdout { Format::Table } else { Format::Tsv });
        let progress = config.get("progress").and_then(|it| Progress::from_str(it, true).ok()).unwrap_or_default();
        let progress = match progress {
            Progress::Always => Shown::Bar,
            Progress::Never => Shown::Nothing,
            Progress::Auto if terminal.stderr && !global.quiet => Shown::Bar,
            Progress::Auto => Shown::Nothing,
            Progress::Json => Shown::Events,
        };
        let log = if global.explain { RequestLog::On } else { RequestLog::Off };
        let lake = Lakebed::builder().config(config).base(&folder).environment(environment.clone()).env(env);
        let lake = lake.log_requests(log);
        Ok(Self {
            lake: lake.build()?,
            printer: Printer { format, terminal, columns: global.columns.clone(), limit: global.limit },
            terminal,
            explain: global.explain,
            quiet: global.quiet,
            progress,
            folder,
            environment,
        })
    }

    pub(crate) fn env(&self) -> &Env {
        self.lake.env()
    }

    /// The absolute folder relative paths start at.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.lake.config().duration("timeout")
    }

    /// Opens `TABLE[@REV]`.
    pub(crate) async fn table(&self, text: &str) -> Result<Opened> {
        self.lake.open(text, None).await
    }

    /// Opens `TABLE` where a revision would mean nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for one with a revision.
    pub(crate) async fn bare_table(&self, text: &str) -> Result<Opened> {
        let opened = self.table(text).await?;
        match &opened.revision {
            None => Ok(opened),
            Some(revision) => Err(Error::invalid(format!("`@{revision}`: this works on the whole table"))
                .with_hint(format!("write `{}`", opened.name))),
        }
    }

    /// The version `opened` asks for; without a revision the newest.
    pub(crate) async fn version(&self, opened: &Opened) -> Result<Resolved> {
        let resolved = match &opened.revision {
            None => opened.table.resolve(&AsOf::Latest).await?,
            Some(text) => self.revision(&opened.table, text).await?,
        };
        for warning in &resolved.warnings {
            self.warn(warning);
        }
        if self.explain {
            self.note(&format!("version {}: {}", resolved.version.id, resolved.rule));
        }
        Ok(resolved)
    }

    /// The version that the text behind an `@` names.
    pub(crate) async fn revision(&self, table: &Arc<dyn Table>, text: &str) -> Result<Resolved> {
        if RevRange::parse(text)?.is_some() {
            return Err(Error::invalid(format!("`@{text}` is a range; one version is wanted here"))
                .with_hint("`log`, `timeline` and `diff` take ranges"));
        }
        let zone = self.zone()?;
        rev::resolve(&Rev::parse(text)?, table.as_ref(), self.env().clock.now(), &zone).await
    }

    /// The versions `opened` asks for: up to a revision, or a range `a..b`; without either all.
    pub(crate) async fn span(&self, opened: &Opened) -> Result<Span> {
        let Some(text) = &opened.revision else { return Ok(Span::all()) };
        let Some(range) = RevRange::parse(text)? else {
            return Ok(Span { after: None, until: AsOf::Version(self.version(opened).await?.version.id) });
        };
        let now = self.env().clock.now();
        let (after, until) = rev::resolve_range(&range, opened.table.as_ref(), now, &self.zone()?).await?;
        Ok(Span { after: after.map(|it| it.id), until: AsOf::Version(until.version.id) })
    }

    /// The zone of times written without one.
    pub(crate) fn zone(&self) -> Result<Tz> {
        Tz::parse(self.lake.config().get("tz").unwrap_or("UTC"))
    }

    /// A moment as the user wrote it.
    pub(crate) fn time(&self, text: &str) -> Result<Millis> {
        parse_time(text, &self.zone()?, self.env().clock.now())
    }

    /// The moment that an age (`7d`, `168h`) or a time names.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for one that is still to come.
    pub(crate) fn past(&self, flag: &str, text: &str) -> Result<Millis> {
        let now = self.env().clock.now();
        let at = match span_ms(text) {
            Some(age) => Millis(now.0.saturating_sub(age)),
            None => self.time(text).map_err(|it| it.with_subject(flag))?,
        };
        if at <= now { Ok(at) } else { Err(Error::invalid(format!("{flag} {text}: that is still to come"))) }
    }

    /// The moment that is so far from now (`30d`), or a time.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for one that is over.
    pub(crate) fn future(&self, flag: &str, text: &str) -> Result<Millis> {
        let now = self.env().clock.now();
        let at = match span_ms(text) {
            Some(span) => Millis(now.0.saturating_add(span)),
            None => self.time(text).map_err(|it| it.with_subject(flag))?,
        };
        if at > now { Ok(at) } else { Err(Error::invalid(format!("{flag} {text}: that is over already"))) }
    }

    /// The snapshot `opened` asks for.
    pub(crate) async fn snapshot(&self, opened: &Opened) -> Result<(Resolved, Arc<dyn Snapshot>)> {
        let resolved = self.version(opened).await?;
        let snapshot = opened.table.snapshot(&AsOf::Version(resolved.version.id.clone())).await?;
        Ok((resolved, snapshot))
    }

    /// Prints rows, with the title above a table.
    pub(crate) fn report(&self, mut report: Report) -> Result<(), Failure> {
        let mut printer = self.printer.clone();
        if let Some(names) = printer.columns.take() {
            report.pick(&names)?;
        }
        let batch = report.batch(printer.format)?;
        self.title(&report.title)?;
        let mut sink = printer.sink(render::stdout(), batch.schema_ref(), Some(&report.envelope))?;
        sink.batch(&batch)?;
        sink.finish()
    }

    /// Prints one thing with its properties.
    pub(crate) fn record(&self, record: Record) -> Result<(), Failure> {
        self.report(record.report(self.printer.format))
    }

    /// Prints rows as they come.
    pub(crate) async fn rows(
        &self,
        schema: &SchemaRef,
        mut rows: impl Stream<Item = Result<RecordBatch>> + Unpin,
        envelope: Option<&Envelope>,
    ) -> Result<u64, Failure> {
        let mut sink = self.printer.sink(render::stdout(), schema, envelope)?;
        let mut count = 0_u64;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            count = count.saturating_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX));
            sink.batch(&batch)?;
        }
        sink.finish()?;
        Ok(count)
    }

    fn title(&self, lines: &[String]) -> Result<(), Failure> {
        if self.printer.format == Format::Table { self.lines(lines) } else { Ok(()) }
    }

    /// Lines for people on stdout.
    pub(crate) fn lines(&self, lines: &[String]) -> Result<(), Failure> {
        let mut out = render::stdout();
        for line in lines {
            writeln!(out, "{}", crate::terminal::plain(line))?;
        }
        Ok(out.flush()?)
    }

    /// A line for people, on stderr; `-q` drops it.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            eprint(&format!("{}\n", crate::terminal::plain(text)));
        }
    }

    /// A warning; `-q` drops it. It goes the way of the floors' own warnings, so that none is shown twice.
    pub(crate) fn warn(&self, text: &str) {
        tracing::warn!("{text}");
    }

    /// Shows on stderr that something is done, until it is dropped; nothing where nobody looks.
    pub(crate) fn busy(&self, text: &'static str) -> Busy {
        Busy::begin(self.progress, text)
    }

    /// With `--explain`: what was asked of storage, request by request.
    pub(crate) fn explain_storage(&self) {
        use lakebed_engine::session::Locator as _;
        if !self.explain {
            return;
        }
        let io = self.lake.stores().io();
        for event in io.events() {
            self.note(&format!("  {:<6} {}", format!("{:?}", event.kind).to_uppercase(), event.path));
        }
        self.note(&format!(
            "storage: {} requests in {} waves, {} bytes read",
            io.requests(),
            io.waves(),
            io.bytes_read()
        ));
    }
}

/// A bare number is no span: it would be seconds, and nobody means those.
fn span_ms(text: &str) -> Option<i64> {
    let unit = text.trim().ends_with(|it: char| it.is_ascii_alphabetic());
    let span = parse_duration(text).filter(|_| unit)?;
    Some(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

fn working_folder(global: &Global) -> Result<PathBuf> {
    let here = std::env::current_dir();
    let here = here.map_err(|it| Error::invalid(format!("the working folder cannot be read: {it}")))?;
    let Some(folder) = &global.folder else { return Ok(here) };
    let folder = here.join(folder);
    if folder.is_dir() {
        return Ok(folder);
    }
    let message = format!("-C: there is no folder {}", folder.display());
    Err(Error::new(ErrorKind::NotFound, message)
        .with_hint("check the path; a relative one starts at the working folder"))
}

/// The configuration keys that have flags, and what the flags say.
fn flags(global: &Global) -> Vec<(&'static str, &'static str, Option<String>)> {
    vec![
        ("profile", "--profile", global.profile.clone()),
        ("format", "--format", global.format.and_then(spelled)),
        ("color", "--color", global.color.and_then(spelled)),
        ("progress", "--progress", global.progress.and_then(spelled)),
        ("read_only", "--read-only", global.read_only.then(|| "true".to_owned())),
        ("memory", "--memory", global.memory.clone()),
        ("timeout", "--timeout", global.timeout.clone()),
        ("tz", "--tz", global.tz.clone()),
        ("table_format", "--table-format", global.table_format.clone()),
        ("warehouse", "--warehouse", global.warehouse.clone()),
    ]
}

/// A choice as the command line spells it.
fn spelled(choice: impl clap::ValueEnum) -> Option<String> {
    choice.to_possible_value().map(|it| it.get_name().to_owned())
}
