//! How a command ends, as an exit code and as lines on stderr.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success |
//! | 1 | a negative answer: the two sides differ (`--exit-code`), `doctor` found an error |
//! | 2 | usage: the request is wrong, SQL does not parse, something is already there |
//! | 3 | not found |
//! | 4 | conflict: nothing was committed, safe to retry |
//! | 5 | refused for safety |
//! | 6 | the table is corrupt |
//! | 7 | a feature is not supported; it is named |
//! | 8 | unauthenticated or forbidden |
//! | 9 | storage is unavailable: retrying may help |
//! | 10 | unknown whether the commit became visible |
//! | 11 | a limit on memory, time or size was reached |
//! | 70 | a bug in Lakebed |
//! | 130 | interrupted |
//! | 141 | the reader of the output went away |
use std::{error::Error as _, io};

use lakebed_core::{Error, ErrorKind};

use crate::terminal::{Style, Terminal, plain};

/// Why a command did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Core(#[from] Error),
    /// Stdout could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("interrupted")]
    Interrupted,
}

/// How a command ended well: a script can ask for the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    No,
}

impl Verdict {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
        }
    }
}

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Core(err) => err.kind().exit_code(),
            Self::Output(err) if err.kind() == io::ErrorKind::BrokenPipe => 141,
            Self::Output(_) => 9,
            Self::Interrupted => 130,
        }
    }

    /// Writes `error[E-…]: message` and what follows to stderr; nothing where the reader went away.
    pub(crate) fn report(&self, terminal: &Terminal) {
        let text = match self {
            Self::Core(err) => explained(err, terminal),
            Self::Output(err) if err.kind() == io::ErrorKind::BrokenPipe => return,
            Self::Output(err) => format!("error[E-OUTPUT]: cannot write the output: {err}\n"),
            Self::Interrupted => "interrupted\n".to_owned(),
        };
        eprint(&text);
    }
}

fn name_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "E-INVALID",
        ErrorKind::AlreadyExists => "E-EXISTS",
        ErrorKind::NotFound => "E-NOT-FOUND",
        ErrorKind::Conflict => "E-CONFLICT",
        ErrorKind::Refused => "E-REFUSED",
        ErrorKind::Corrupt => "E-CORRUPT",
        ErrorKind::Unsupported => "E-UNSUPPORTED",
        ErrorKind::Unauthorized => "E-UNAUTHORIZED",
        ErrorKind::Unavailable => "E-UNAVAILABLE",
        ErrorKind::Unknown => "E-UNKNOWN",
        ErrorKind::Limit => "E-LIMIT",
        _ => "E-INTERNAL",
    }
}

/// The message, its causes that say something new, and the next step. Nothing in it can steer the terminal.
pub(crate) fn explained(err: &Error, terminal: &Terminal) -> String {
    let paint = |style: Style, text: &str| {
        if terminal.color_stderr { style.around(text) } else { text.to_owned() }
    };
    let message = err.to_string();
    let mut out = format!("{}: {}\n", paint(Style::Bad, &format!("error[{}]", name_of(err.kind()))), lines(&message));
    let mut said = message;
    let mut cause = err.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !said.contains(&text) {
            out += &format!("  caused by: {}\n", lines(&text));
            said = text;
        }
        cause = inner.source();
    }
    if let Some(hint) = err.hint().or_else(|| hint_of(err.kind())) {
        out += &format!("{}: {}\n", paint(Style::Good, "hint"), lines(hint));
    }
    out
}

/// The next step where the error itself names none.
fn hint_of(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::Invalid => "`lakebed help` lists the commands; `lakebed help VERB` explains one",
        ErrorKind::NotFound => "check the name and the path; `lakebed log TABLE` lists a table's versions",
        ErrorKind::Corrupt => "`lakebed doctor TABLE` shows what is damaged and which versions can still be read",
        ErrorKind::Unsupported => "`lakebed info TABLE` and `lakebed log TABLE` work where rows cannot be read",
        ErrorKind::Unauthorized => "`lakebed config list --show-origin` shows which credentials are used",
        ErrorKind::Unavailable => "try again; `-v` shows the requests",
        ErrorKind::Limit => "the limit is fixed: ask for less at once",
        ErrorKind::Internal => "this is a bug in Lakebed: please report it with the command and this message",
        _ => return None,
    })
}

/// Line breaks of a message stay; everything else that controls a terminal is escaped.
fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n  ")
}

/// Writes to stderr; a closed stderr is nobody's problem.
pub(crate) fn eprint(text: &str) {
    use io::Write as _;
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Terminal = Terminal { stdout: false, stderr: false, color: false, color_stderr: false, width: None };

    #[test]
    fn every_end_has_its_code() {
        assert_eq!(Failure::from(Error::new(ErrorKind::Conflict, "x")).code(), 4);
        assert_eq!(Failure::Output(io::ErrorKind::BrokenPipe.into()).code(), 141);
        assert_eq!(Failure::Interrupted.code(), 130);
    }

    #[test]
    fn errors_say_cause_and_next_step_and_cannot_paint() {
        let err = Error::not_found("no table `a\x1b[31m`").with_hint("did you mean `b`?");
        assert_eq!(explained(&err, &PLAIN), "error[E-NOT-FOUND]: no table `a\\u{1b}[31m`\nhint: did you mean `b`?\n");
    }
}
