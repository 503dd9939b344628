//! Ends a command that the user or the clock stops.
//!
//! A command may be dropped wherever it waits: a reader loses nothing, and a write that was not published leaves files
//! that nobody names. Only a commit that was sent and has no answer is waited for, [`PATIENCE`] long, or until the second
//! Ctrl-C. What ends without an answer is told as what it is: unknown.
use std::{future::Future, time::Duration};

use lakebed::flight::Flights;
use lakebed_core::{Error, ErrorKind};
use tokio::sync::oneshot;

use crate::failure::{Failure, Verdict, eprint};

/// How long a command that is stopped may take to clear the terminal behind it.
const GRACE: Duration = Duration::from_millis(200);
/// How long a commit may take to be answered once its command is stopped.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a command may take from the answer to its end.
const LAST_STEPS: Duration = Duration::from_secs(1);

/// Waits until the command ends, the time is up, or the user has had enough.
#[expect(clippy::disallowed_methods, reason = "the user's patience runs by the real clock, whatever the table's says")]
pub(crate) async fn guarded(
    mut done: oneshot::Receiver<Result<Verdict, Failure>>,
    stop: oneshot::Sender<()>,
    flights: &Flights,
    limit: Option<Duration>,
    interruptible: bool,
) -> Result<Verdict, Failure> {
    let late = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let why = tokio::select! {
        done = &mut done => return done.unwrap_or_else(|_| Err(gave_up())),
        () = late => {
            let message = format!("gave up after {:?} (--timeout)", limit.unwrap_or_default());
            Failure::from(Error::new(ErrorKind::Limit, message).with_hint("raise --timeout, or ask for less"))
        }
        Ok(()) = tokio::signal::ctrl_c(), if interruptible => Failure::Interrupted,
    };
    if let Some(done) = linger(flights, &mut done).await {
        return done.unwrap_or_else(|_| Err(gave_up()));
    }
    let _ = stop.send(());
    let _ = tokio::time::timeout(GRACE, done).await;
    Err(flights.unknown().map_or(why, Failure::from))
}

/// Waits for the answer to a commit that is on its way. What `work` came to, where it ended meanwhile.
#[expect(clippy::disallowed_methods, reason = "the user's patience runs by the real clock, whatever the table's says")]
pub(crate) async fn linger<T>(flights: &Flights, work: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    if flights.open().is_empty() {
        return None;
    }
    eprint("a commit is on its way: waiting for its answer; Ctrl-C again leaves without it\n");
    let landed = async {
        flights.landed().await;
        tokio::time::sleep(LAST_STEPS).await;
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = landed => None,
        Ok(()) = tokio::signal::ctrl_c() => None,
        () = tokio::time::sleep(PATIENCE) => None,
    }
}

pub(crate) fn gave_up() -> Failure {
    Error::internal("Lakebed gave up half-way; the lines above say where").into()
}
