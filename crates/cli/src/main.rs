//! `lakebed`: the terminal's door to the lake.
//!
//! Data go to stdout; notes, warnings and progress to stderr. A pipe never sees an escape sequence. Every way to end
//! has its exit code, listed in [`failure`].
mod args;
mod command;
mod door;
mod failure;
mod render;
mod report;
mod stopwatch;
mod terminal;
mod trace;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

use clap::Parser as _;
use lakebed_core::{Error, ErrorKind};

use crate::{
    args::{Cli, Global, Verb, When},
    door::Door,
    failure::{Failure, Verdict},
    terminal::Terminal,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(err) => return usage(&err),
    };
    let terminal = Terminal::detect(cli.global.color.unwrap_or(When::Auto));
    trace::start(&cli.global, &terminal);
    lakebed::hush_fenced_panics();
    // A panic is a bug of ours and ends as one, with the code that scripts know it by.
    let done = catch_unwind(AssertUnwindSafe(|| run(cli)));
    let done =
        done.unwrap_or_else(|_| Err(Error::internal("Lakebed gave up half-way; the lines above say where").into()));
    let code = match done {
        Ok(verdict) => verdict.code(),
        Err(failure) => {
            failure.report(&terminal);
            failure.code()
        }
    };
    ExitCode::from(code)
}

/// Help and version are answers and go to stdout; the rest is a mistake.
fn usage(err: &clap::Error) -> ExitCode {
    let code = u8::try_from(err.exit_code()).unwrap_or(2);
    match err.print() {
        Err(io) if io.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::from(141),
        _ => ExitCode::from(code),
    }
}

fn run(cli: Cli) -> Result<Verdict, Failure> {
    let Some(verb) = cli.verb else { return command::overview::run() };
    // These three say the same whatever is configured, and must work where the configuration is broken.
    match &verb {
        Verb::Completions(args) => return command::completions::run(args),
        Verb::Man(args) => return command::man::run(args),
        _ => (),
    }
    let door = Door::open(&cli.global)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|it| Error::new(ErrorKind::Unavailable, format!("no threads: {it}")))?;
    let done = runtime.block_on(guarded(&door, verb, &cli.global));
    // A blocked read of a dead disk or server must not keep the process.
    runtime.shutdown_background();
    done
}

/// Runs the command until it ends, the time is up, or the user has had enough.
async fn guarded(door: &Door, verb: Verb, global: &Global) -> Result<Verdict, Failure> {
    let work = async {
        let done = command::run(door, verb, global).await;
        door.explain_storage();
        done
    };
    let limited = async {
        let Some(limit) = door.time_limit() else { return work.await };
        let late = |_| Error::new(ErrorKind::Limit, format!("gave up after {limit:?} (--timeout)"));
        tokio::time::timeout(limit, work).await.map_err(late)?
    };
    tokio::select! {
        done = limited => done,
        Ok(()) = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}
