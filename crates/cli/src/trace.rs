//! Warnings and, with `-v`, more: what the floors below say, as lines on stderr.
use std::{
    collections::HashSet,
    fmt,
    sync::{Mutex, PoisonError},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

use crate::{
    args::Global,
    terminal::{Style, Terminal, plain},
};

/// `-q` shows errors, the default warnings, `-v` what Lakebed does, `-vv` everything Lakebed does.
pub(crate) fn start(global: &Global, terminal: &Terminal) {
    let filter = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => "error,lakebed=warn,lakebed_core=warn,lakebed_codec=warn,lakebed_delta=warn,lakebed_engine=warn",
        (false, 1) => "warn,lakebed=info,lakebed_core=info,lakebed_codec=info,lakebed_delta=info,lakebed_engine=info",
        (false, _) => {
            "info,lakebed=trace,lakebed_core=trace,lakebed_codec=trace,lakebed_delta=trace,lakebed_engine=trace"
        }
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .event_format(Line { color: terminal.color_stderr, fields: global.verbose > 0, said: Mutex::default() })
        .finish();
    // A second subscriber would be a second `main`.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// `warning: message`; with `-v` also the fields. A line that was said is not said again.
struct Line {
    color: bool,
    fields: bool,
    said: Mutex<HashSet<String>>,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (label, style) = match *event.metadata().level() {
            Level::ERROR => ("error", Style::Bad),
            Level::WARN => ("warning", Style::Warning),
            Level::INFO => ("info", Style::Faint),
            Level::DEBUG => ("debug", Style::Faint),
            Level::TRACE => ("trace", Style::Faint),
        };
        let mut text = Text { out: String::new(), fields: self.fields };
        event.record(&mut text);
        let text = plain(&text.out);
        let new = self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone());
        if !new {
            return Ok(());
        }
        let label = if self.color { style.around(label) } else { label.to_owned() };
        writeln!(writer, "{label}: {text}")
    }
}

/// Collects the message, and the fields behind it.
struct Text {
    out: String,
    fields: bool,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.out.insert_str(0, &text),
            name if self.fields => self.out.push_str(&format!(" {name}={text}")),
            _ => (),
        }
    }
}
