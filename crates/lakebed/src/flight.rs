//! What was sent to be published and has no answer yet.
//!
//! A commit hangs on one conditional write. Whoever stops a command in between cannot know whether it landed: so a door
//! asks here first, waits a little for what is on its way, and says that the outcome is unknown where it does not wait.
//!
//! An answer that decides nothing (lost, unknown) keeps the flight open: the commit loop looks for its own write then.
//! The flight ends with the next publish to that table, since a commit decides one step before it takes another, with an
//! answer that decides, or when the caller knows how its command ended ([`Flights::settle`]).
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use lakebed_core::{
    Error, ErrorKind, Result,
    commit::Publish,
    storage::{Put, Storage},
};
use tokio::sync::Notify;

/// The publishes of one process that are under way.
#[derive(Debug, Default)]
pub struct Flights {
    open: Mutex<BTreeMap<u64, Flight>>,
    landed: Notify,
}

#[derive(Debug)]
struct Flight {
    table: String,
    what: String,
}

impl Flights {
    /// Notes that `publish` is about to be sent. What is never landed stays open.
    pub(crate) fn depart(&self, storage: &Storage, publish: &Publish) -> u64 {
        let what = match publish {
            Publish::Create { path, .. } => format!("{}/{path}", storage.location()),
            Publish::Swap { to, .. } => to.clone(),
            Publish::Request(_) => format!("a commit to {}", storage.location()),
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let table = storage.location().to_owned();
        open.retain(|_, it| it.table != table);
        let flight = open.last_key_value().map_or(0, |(last, _)| last + 1);
        open.insert(flight, Flight { table, what });
        flight
    }

    pub(crate) fn answered(&self, flight: u64, answer: &Result<Put>) {
        // An error is a refusal from before anything was sent.
        if !matches!(answer, Ok(Put::Lost | Put::Unknown)) {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&flight);
            self.landed.notify_waiters();
        }
    }

    /// The caller knows how everything so far ended.
    pub fn settle(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.landed.notify_waiters();
    }

    /// What is on its way, oldest first.
    pub fn open(&self) -> Vec<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).values().map(|it| it.what.clone()).collect()
    }

    /// Waits until nothing is on its way.
    pub async fn landed(&self) {
        loop {
            let landed = self.landed.notified();
            if self.open().is_empty() {
                return;
            }
            landed.await;
        }
    }

    /// The error of a command that is stopped now: `None` when nothing is on its way.
    pub fn unknown(&self) -> Option<Error> {
        let what = self.open().pop()?;
        let message = format!("stopped while {what} was on its way: it may or may not have been committed");
        Some(Error::new(ErrorKind::Unknown, message).with_hint(
            "look at the table's newest versions (`lakebed log TABLE --limit 3`) before writing again; delete none of its files",
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt as _;
    use lakebed_core::storage::Storage;

    use super::*;

    fn storage() -> Storage {
        Storage::new(
            Arc::new(object_store::memory::InMemory::new()),
            object_store::path::Path::default(),
            "memory:///t",
        )
    }

    fn create(path: &str) -> Publish {
        Publish::Create { path: path.to_owned(), body: "x".into() }
    }

    #[test]
    fn only_an_answer_that_decides_ends_a_flight() {
        let flights = Flights::default();
        let cases = [
            (Ok(Put::Won), 0),
            (Ok(Put::Lost), 1),
            (Ok(Put::Unknown), 1),
            (Err(Error::invalid("refused before it was sent")), 0),
        ];
        for (answer, open) in cases {
            let flight = flights.depart(&storage(), &create("log/7.json"));
            assert_eq!(flights.open(), ["memory:///t/log/7.json"]);
            flights.answered(flight, &answer);
            assert_eq!(flights.open().len(), open, "{answer:?}");
        }
    }

    #[test]
    fn a_second_try_answers_for_the_first_and_a_caller_may_know_better() {
        let flights = Flights::default();
        let first = flights.depart(&storage(), &create("log/7.json"));
        flights.answered(first, &Ok(Put::Unknown));
        assert!(flights.landed().now_or_never().is_none());
        let second = flights.depart(&storage(), &create("log/7.json"));
        flights.answered(second, &Ok(Put::Won));
        assert!(flights.landed().now_or_never().is_some() && flights.unknown().is_none());
        flights.depart(&storage(), &create("log/8.json"));
        let err = flights.unknown().unwrap();
        assert_eq!(err.kind(), ErrorKind::Unknown);
        assert!(err.to_string().contains("memory:///t/log/8.json"), "{err}");
        flights.settle();
        assert!(flights.unknown().is_none());
    }
}
