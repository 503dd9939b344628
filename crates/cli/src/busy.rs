//! What takes long, shown on stderr while it lasts: to people as a line that moves, to programs as a line an event.
//!
//! ```json
//! {"event":"begin","what":"planning"}
//! {"event":"end","what":"planning","ms":12.3}
//! ```
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::{failure::eprint, stopwatch::Stopwatch};

const TICK: Duration = Duration::from_millis(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    Bar,
    Events,
}

/// Ends what it shows when dropped, however that came about.
#[derive(Debug)]
pub(crate) enum Busy {
    Nothing,
    Bar(ProgressBar),
    Events { what: &'static str, since: Stopwatch },
}

impl Busy {
    pub(crate) fn begin(shown: Shown, what: &'static str) -> Self {
        match shown {
            Shown::Nothing => Self::Nothing,
            Shown::Bar => Self::Bar(bar(what)),
            Shown::Events => {
                eprint(&format!("{}\n", json!({"event": "begin", "what": what})));
                Self::Events { what, since: Stopwatch::start() }
            }
        }
    }
}

fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("the template is well formed"));
    bar.set_message(what);
    bar.enable_steady_tick(TICK);
    bar
}

impl Drop for Busy {
    fn drop(&mut self) {
        match self {
            Self::Nothing => (),
            Self::Bar(bar) => bar.finish_and_clear(),
            Self::Events { what, since } => {
                let ms = (since.elapsed().as_secs_f64() * 10_000.0).round() / 10.0;
                eprint(&format!("{}\n", json!({"event": "end", "what": what, "ms": ms})));
            }
        }
    }
}
