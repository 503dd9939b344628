//! What was asked of storage: counts, bytes, and on demand the order of events.
//!
//! With a log, every request is an event with a tick for its start and one for its end. A request *depends* on those
//! that ended before it began, as far as anyone can see from outside; [`IoStats::waves`] is the longest such chain:
//! how often a caller waited for one answer before it asked for the next.
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoKind {
    Get,
    Head,
    /// A page of up to 1,000 objects.
    List,
    Put,
    /// A part of a large upload, its begin or its end.
    Part,
    Delete,
    Copy,
}

const KINDS: usize = 7;

/// One request, as [`IoStats::events`] tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoEvent {
    pub kind: IoKind,
    pub path: String,
    /// Ticks order starts and ends; they are no time.
    pub started: u64,
    /// `None` while the answer is not read to its end.
    pub ended: Option<u64>,
}

/// Counters of one or more stores; clones of the `Arc` share them.
#[derive(Debug, Default)]
pub struct IoStats {
    counts: [AtomicU64; KINDS],
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    log: Option<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    tick: u64,
    events: Vec<IoEvent>,
}

/// The length of the longest chain of requests of which each began after the one before had ended.
///
/// A request is its start and its end, if it has one, in ticks of one clock; starts ascend.
pub fn waves(requests: impl IntoIterator<Item = (u64, Option<u64>)>) -> usize {
    let mut running = BinaryHeap::new();
    let (mut ended, mut longest) = (0, 0);
    for (start, end) in requests {
        while let Some(Reverse((_, wave))) = running.peek().copied().filter(|Reverse((end, _))| *end < start) {
            ended = ended.max(wave);
            running.pop();
        }
        longest = longest.max(ended + 1);
        running.extend(end.map(|end| Reverse((end, ended + 1))));
    }
    longest
}

impl IoStats {
    /// Counters that also keep every event. For tests and `--explain`: it grows with each request.
    pub fn with_log() -> Self {
        Self { log: Some(Mutex::default()), ..Self::default() }
    }

    /// All requests so far.
    pub fn requests(&self) -> u64 {
        self.counts.iter().map(|it| it.load(Ordering::Relaxed)).sum()
    }

    pub fn count(&self, kind: IoKind) -> u64 {
        self.counts[kind as usize].load(Ordering::Relaxed)
    }

    /// Bytes that reached the caller.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    pub fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    /// Every request in the order they began; empty without a log.
    pub fn events(&self) -> Vec<IoEvent> {
        self.with(|log| log.events.clone()).unwrap_or_default()
    }

    /// Forgets the events, not the counts.
    pub fn clear_events(&self) {
        self.with(|log| log.events.clear());
    }

    /// The length of the longest chain of requests of which each began after the one before had ended.
    pub fn waves(&self) -> u64 {
        self.with(|log| waves(log.events.iter().map(|it| (it.started, it.ended)))).unwrap_or(0) as u64
    }

    pub(super) fn add_read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_written(&self, bytes: u64) {
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn add(&self, kind: IoKind, requests: u64) {
        self.counts[kind as usize].fetch_add(requests, Ordering::Relaxed);
    }

    /// Counts a request; it ends when the answer is dropped.
    pub(super) fn start(self: &Arc<Self>, kind: IoKind, path: &str) -> Running {
        self.add(kind, 1);
        let index = self.with(|log| {
            log.tick += 1;
            log.events.push(IoEvent { kind, path: path.to_owned(), started: log.tick, ended: None });
            log.events.len() - 1
        });
        Running { stats: Arc::clone(self), index }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Log) -> T) -> Option<T> {
        let log = self.log.as_ref()?;
        Some(act(&mut log.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A request whose answer is not read to its end yet.
#[derive(Debug)]
pub(super) struct Running {
    stats: Arc<IoStats>,
    index: Option<usize>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(index) = self.index else { return };
        self.stats.with(|log| {
            log.tick += 1;
            let tick = log.tick;
            // Events may have been cleared meanwhile.
            if let Some(event) = log.events.get_mut(index) {
                event.ended.get_or_insert(tick);
            }
        });
    }
}
