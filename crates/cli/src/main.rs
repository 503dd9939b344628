//! `lakebed`: the terminal's door to the lake.
//!
//! Data go to stdout; notes, warnings and progress to stderr. A pipe never sees an escape sequence. Every way to end
//! has its exit code, listed in [`failure`].
mod args;
mod busy;
mod command;
mod door;
mod failure;
mod render;
mod report;
mod stopwatch;
mod terminal;
mod trace;
mod watch;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::Arc,
};

use clap::Parser as _;
use lakebed_core::{Error, ErrorKind};
use tokio::sync::oneshot;

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
    let done = done.unwrap_or_else(|_| Err(watch::gave_up()));
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
    // At a prompt, Ctrl-C ends a statement, and the prompt sees to it.
    let interruptible = !matches!(&verb, Verb::Sql(args) if command::sql::prompts(args));
    let threads = |it| Error::new(ErrorKind::Unavailable, format!("no threads: {it}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(threads)?;
    let (stop, stopped) = oneshot::channel();
    let (answer, done) = oneshot::channel();
    let (handle, limit) = (runtime.handle().clone(), door.time_limit());
    let flights = Arc::clone(door.lake.flights());
    // The command has a thread of its own: planning and decoding may compute for long without coming up for air, and
    // whoever watches the clock must not wait for them.
    let work = move || {
        // The watcher may be gone; then nobody wants the answer.
        let _ = answer.send(handle.block_on(obedient(&door, verb, &cli.global, stopped)));
    };
    std::thread::Builder::new().name("command".to_owned()).stack_size(STACK).spawn(work).map_err(threads)?;
    let done = runtime.block_on(watch::guarded(done, stop, &flights, limit, interruptible));
    // A blocked read of a dead disk or server must not keep the process.
    runtime.shutdown_background();
    done
}

/// As much as a main thread has.
const STACK: usize = 8 << 20;

/// Runs the command until it ends or is told to stop.
async fn obedient(
    door: &Door,
    verb: Verb,
    global: &Global,
    stopped: oneshot::Receiver<()>,
) -> Result<Verdict, Failure> {
    let work = async {
        let done = command::run(door, verb, global).await;
        door.explain_storage();
        done
    };
    tokio::select! {
        done = work => done,
        Ok(()) = stopped => Err(Failure::Interrupted),
    }
}
