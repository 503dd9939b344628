//! An object store that fails on command.
//!
//! [`FaultyStore`] stands before any other store. Each call is logged, then goes through three gates:
//!
//! 1. *Crashed?* After the n-th call of a [`FaultyStore::crash_after`], every call fails; the bytes written before stay.
//! 2. *Rules.* The first rule that matches the kind of call, a part of its key and its turn decides what goes wrong.
//! 3. The call itself, unless the fault says that it never arrives; afterwards the fault may spoil the answer.
//!
//! Choices come from a seed. Clones share everything: rules, log, crash. [`FaultyStore::restarted`] is the same bytes
//! seen by a new process: no rules, no crash, an empty log.
mod log;
mod rule;

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{env::Clock, storage::Storage, version::Millis};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};

use self::rule::Rule;
pub use self::{
    log::{Io, waves},
    rule::{Fault, Op, Times},
};
use crate::seed::{Dice, Seed};

/// See the [module](self).
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    /// `inner`, where it is in memory and can be copied.
    memory: Option<Arc<InMemory>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    dice: Dice,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    log: Vec<Io>,
    tick: u64,
    /// Keys that listings gave, as far as they were taken.
    listed: u64,
    crash_after: Option<u64>,
    conditions_ignored: bool,
    clock: Option<Arc<dyn Clock>>,
    /// Every call takes up to so many milliseconds, by the dice.
    jitter_ms: u64,
    /// When objects were written, by the store's own clock.
    written: BTreeMap<Path, Millis>,
    /// Keys with this part are kept for [`FaultyStore::kept`].
    keep: Option<String>,
    kept: Vec<(String, Bytes)>,
}

impl FaultyStore {
    /// An empty store in memory.
    pub fn new(seed: Seed) -> Self {
        Self::of(InMemory::new(), seed)
    }

    pub fn over(inner: Arc<dyn ObjectStore>, seed: Seed) -> Self {
        Self { inner, memory: None, shared: Arc::new(Shared { dice: Dice::new(seed), state: Mutex::default() }) }
    }

    fn of(memory: InMemory, seed: Seed) -> Self {
        let memory = Arc::new(memory);
        let inner: Arc<dyn ObjectStore> = Arc::clone(&memory) as _;
        Self { memory: Some(memory), ..Self::over(inner, seed) }
    }

    /// The same objects, seen by a process that knows nothing of the faults of the other.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { memory: self.memory.clone(), ..Self::over(Arc::clone(&self.inner), Seed(0)) }
    }

    /// A copy of the objects as they are now, without the faults; `None` where they do not lie in memory.
    #[must_use]
    pub fn forked(&self) -> Option<Self> {
        self.memory.as_ref().map(|it| Self::of(it.fork(), Seed(0)))
    }

    /// The table `name` in this store.
    pub fn storage(&self, name: &str) -> Storage {
        Storage::new(Arc::new(self.clone()), Path::from(name), format!("memory:///{name}"))
    }

    /// Adds a rule; earlier rules win. `path` is a part of the key, `""` every key; `op` `None` is every call.
    #[must_use]
    pub fn rule(self, op: impl Into<Option<Op>>, path: &str, fault: Fault, times: Times) -> Self {
        self.add_rule(op, path, fault, times);
        self
    }

    /// [`FaultyStore::rule`] for a store that is in use.
    pub fn add_rule(&self, op: impl Into<Option<Op>>, path: &str, fault: Fault, times: Times) {
        self.state().rules.push(Rule { op: op.into(), path: path.to_owned(), fault, times, seen: 0 });
    }

    /// Forgets all rules.
    pub fn heal(&self) {
        self.state().rules.clear();
    }

    /// From the call after the `n`-th on, counted from now, everything fails.
    pub fn crash_after(&self, n: u64) {
        let mut state = self.state();
        let done = state.log.len() as u64;
        state.crash_after = Some(done.saturating_add(n));
    }

    /// Whether the crash has come: a call was refused.
    pub fn crashed(&self) -> bool {
        let state = self.state();
        state.crash_after.is_some_and(|it| (state.log.len() as u64) > it)
    }

    /// Makes creates overwrite, as stores do that ignore `If-None-Match`.
    pub fn ignore_conditions(&self) {
        self.state().conditions_ignored = true;
    }

    /// Lets every call take up to `jitter` of `clock`'s time; delays pass on it, and objects are dated by it.
    #[must_use]
    pub fn timed(self, clock: Arc<dyn Clock>, jitter: Duration) -> Self {
        let mut state = self.state();
        state.clock = Some(clock);
        state.jitter_ms = u64::try_from(jitter.as_millis()).unwrap_or(u64::MAX);
        drop(state);
        self
    }

    /// Keeps the body of everything written from now on under a key with this part, whatever becomes of it later.
    #[must_use]
    pub fn keeping(self, path: &str) -> Self {
        self.state().keep = Some(path.to_owned());
        self
    }

    /// What [`FaultyStore::keeping`] kept: keys and bodies in the order they were written. Not of uploads in parts.
    pub fn kept(&self) -> Vec<(String, Bytes)> {
        self.state().kept.clone()
    }

    /// Every call so far, in the order they began.
    pub fn log(&self) -> Vec<Io> {
        self.state().log.clone()
    }

    pub fn clear_log(&self) {
        let mut state = self.state();
        assert!(state.crash_after.is_none(), "a crash counts the log's calls");
        state.log.clear();
        state.listed = 0;
    }

    pub fn requests(&self) -> usize {
        self.state().log.len()
    }

    /// Keys that listings gave so far: what a listing costs where the store gives a page of so many at a time.
    pub fn listed(&self) -> u64 {
        self.state().listed
    }

    /// Calls of one kind so far.
    pub fn count(&self, op: Op) -> usize {
        self.state().log.iter().filter(|it| it.op == op).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a call and says what shall go wrong with it.
    async fn enter(&self, op: Op, path: &str) -> Result<Call> {
        let call = self.register(op, path)?;
        let clock = self.state().clock.clone();
        match (clock, call.pause) {
            (Some(clock), Some(pause)) => clock.sleep(pause).await,
            (None, Some(_)) => tokio::task::yield_now().await,
            (_, None) => (),
        }
        match call.fault {
            Some(Fault::FailBefore) => Err(self.fail(&call, server_error())),
            Some(Fault::CrashBefore) => Err(self.fail(&call, crash())),
            Some(Fault::Full) => Err(self.fail(&call, full())),
            Some(Fault::LoseRequest) => Err(self.fail(&call, timeout())),
            Some(Fault::Forbid) => {
                let denied = Error::PermissionDenied { path: path.to_owned(), source: "not allowed".into() };
                Err(self.fail(&call, denied))
            }
            _ => Ok(call),
        }
    }

    fn register(&self, op: Op, path: &str) -> Result<Call> {
        let mut state = self.state();
        let state = &mut *state;
        let index = state.log.len();
        let crashed = state.crash_after.is_some_and(|it| index as u64 >= it);
        state.tick += 1;
        let io = Io { op, path: path.to_owned(), bytes: 0, started: state.tick, ended: None, failed: crashed };
        state.log.push(io);
        if crashed {
            return Err(crash());
        }
        let fault = fault_of(&mut state.rules, &self.shared.dice, op, path);
        if matches!(fault, Some(Fault::CrashBefore | Fault::CrashAfter)) {
            state.crash_after = Some(index as u64);
        }
        let jitter = match state.jitter_ms {
            0 => None,
            most => Some(Duration::from_millis(self.shared.dice.below(most.saturating_add(1)))),
        };
        let pause = match &fault {
            Some(Fault::Delay(pause)) => Some(*pause),
            _ => jitter,
        };
        Ok(Call { index, fault, pause })
    }

    /// Closes a call that did happen, spoiling its answer where the fault says so.
    fn leave<T>(&self, call: &Call, path: &str, outcome: Result<T>, bytes: u64) -> Result<T> {
        let outcome = outcome.and_then(|answer| match call.fault {
            Some(Fault::FailAfter) => Err(server_error()),
            Some(Fault::CrashAfter) => Err(crash()),
            Some(Fault::LoseAnswer) => Err(timeout()),
            Some(Fault::LoseAnswerAndRetry) => {
                Err(Error::AlreadyExists { path: path.to_owned(), source: "answer to a retry".into() })
            }
            _ => Ok(answer),
        });
        self.close(call, bytes, outcome.is_err());
        outcome
    }

    fn fail(&self, call: &Call, err: Error) -> Error {
        self.close(call, 0, true);
        err
    }

    fn close(&self, call: &Call, bytes: u64, failed: bool) {
        let mut state = self.state();
        state.tick += 1;
        let tick = state.tick;
        if let Some(io) = state.log.get_mut(call.index) {
            (io.bytes, io.ended, io.failed) = (bytes, Some(tick), failed);
        }
    }

    fn written(&self, location: &Path, body: Bytes) {
        let mut state = self.state();
        if let Some(clock) = state.clock.clone() {
            state.written.insert(location.clone(), clock.now());
        }
        if state.keep.as_ref().is_some_and(|part| location.as_ref().contains(part)) {
            state.kept.push((location.to_string(), body));
        }
    }

    /// Objects written through this store have its clock's time.
    fn date(&self, meta: &mut ObjectMeta) {
        let known = self.state().written.get(&meta.location).and_then(|it| DateTime::from_timestamp_millis(it.0));
        meta.last_modified = known.unwrap_or(meta.last_modified);
    }

    fn spoil(&self, fault: Option<&Fault>, body: Bytes) -> Bytes {
        match fault {
            Some(Fault::ShortBody(by)) => body.slice(..body.len().saturating_sub(*by)),
            Some(Fault::BitFlip) if !body.is_empty() => {
                let mut bytes = body.to_vec();
                let bit = self.shared.dice.below(bytes.len() as u64 * 8);
                let at = usize::try_from(bit / 8).expect("an index of a vector");
                bytes[at] ^= 1 << (bit % 8);
                bytes.into()
            }
            _ => body,
        }
    }

    fn counted(
        &self,
        listed: impl Future<Output = Result<Vec<ObjectMeta>>> + Send + 'static,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let this = self.clone();
        let found = stream::once(listed).map_ok(|it| stream::iter(it).map(Ok)).try_flatten();
        found.inspect_ok(move |_| this.state().listed += 1).boxed()
    }

    async fn list_all(self, prefix: Option<Path>, offset: Option<Path>) -> Result<Vec<ObjectMeta>> {
        let shown = prefix.as_ref().map(ToString::to_string).unwrap_or_default();
        let call = self.enter(Op::List, &shown).await?;
        let found = match &offset {
            Some(offset) => self.inner.list_with_offset(prefix.as_ref(), offset),
            None => self.inner.list(prefix.as_ref()),
        };
        let mut found = found.try_collect::<Vec<_>>().await;
        let _ = found.as_mut().map(|it| it.iter_mut().for_each(|meta| self.date(meta)));
        if let (Ok(found), Some(Fault::StaleList(newest))) = (&mut found, &call.fault) {
            drop_newest(found, *newest);
        }
        self.leave(&call, &shown, found, 0)
    }
}

/// A call under way.
struct Call {
    index: usize,
    fault: Option<Fault>,
    pause: Option<Duration>,
}

fn fault_of(rules: &mut [Rule], dice: &Dice, op: Op, path: &str) -> Option<Fault> {
    for rule in rules.iter_mut().filter(|it| it.matches(op, path)) {
        rule.seen += 1;
        let applies = match rule.times {
            Times::Always => true,
            Times::First(n) => rule.seen <= n,
            Times::Nth(n) => rule.seen == n,
            Times::Percent(percent) => dice.chance(percent),
        };
        if applies {
            return Some(rule.fault.clone());
        }
    }
    None
}

fn drop_newest(found: &mut Vec<ObjectMeta>, newest: usize) {
    let mut by_age: Vec<_> = found.iter().map(|it| (it.last_modified, it.location.clone())).collect();
    by_age.sort();
    let gone = by_age.split_off(by_age.len().saturating_sub(newest));
    found.retain(|it| !gone.iter().any(|(_, location)| *location == it.location));
}

fn server_error() -> Error {
    Error::Generic { store: "faulty", source: "503 Service Unavailable".into() }
}

fn crash() -> Error {
    Error::Generic { store: "faulty", source: "the process has crashed".into() }
}

fn full() -> Error {
    let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
    Error::Generic { store: "faulty", source: source.into() }
}

fn timeout() -> Error {
    Error::Generic { store: "faulty", source: "operation timed out".into() }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, mut opts: PutOptions) -> Result<PutResult> {
        let op = match opts.mode {
            PutMode::Create => Op::Create,
            PutMode::Overwrite => Op::Put,
            PutMode::Update(_) => Op::Update,
        };
        let call = self.enter(op, location.as_ref()).await?;
        if op == Op::Create && self.state().conditions_ignored {
            opts.mode = PutMode::Overwrite;
        }
        let bytes = payload.content_length() as u64;
        let body: Bytes = payload.clone().into();
        let put = self.inner.put_opts(location, payload, opts).await;
        if put.is_ok() {
            self.written(location, body);
        }
        self.leave(&call, location.as_ref(), put, bytes)
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let call = self.enter(Op::Put, location.as_ref()).await?;
        let upload = self.inner.put_multipart_opts(location, opts).await;
        self.leave(&call, location.as_ref(), upload, 0)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let op = if options.head { Op::Head } else { Op::Get };
        let call = self.enter(op, location.as_ref()).await?;
        let found = async {
            let found = self.inner.get_opts(location, options).await?;
            let (mut meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
            self.date(&mut meta);
            let body =
                if op == Op::Head { Bytes::new() } else { self.spoil(call.fault.as_ref(), found.bytes().await?) };
            Ok((body, meta, range, attributes))
        };
        let found = found.await;
        let bytes = found.as_ref().map_or(0, |(body, ..)| body.len() as u64);
        let (body, meta, range, attributes) = self.leave(&call, location.as_ref(), found, bytes)?;
        let payload = GetResultPayload::Stream(stream::once(async { Ok(body) }).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    /// One call each: what a caller joins is its own business, what the store is asked is counted.
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let call = self.enter(Op::Get, location.as_ref()).await?;
        let found = self.inner.get_ranges(location, ranges).await;
        let found =
            found.map(|it| it.into_iter().map(|body| self.spoil(call.fault.as_ref(), body)).collect::<Vec<_>>());
        let bytes = found.as_ref().map_or(0, |it| it.iter().map(|body| body.len() as u64).sum());
        self.leave(&call, location.as_ref(), found, bytes)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        locations
            .then(move |location| {
                let this = this.clone();
                async move {
                    let location = location?;
                    let call = this.enter(Op::Delete, location.as_ref()).await?;
                    let one = stream::once(futures::future::ready(Ok(location.clone()))).boxed();
                    let gone = this.inner.delete_stream(one).try_collect::<Vec<_>>().await;
                    this.leave(&call, location.as_ref(), gone.map(|_| location.clone()), 0)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = self.clone().list_all(prefix.cloned(), None);
        self.counted(listed)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = self.clone().list_all(prefix.cloned(), Some(offset.clone()));
        self.counted(listed)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let shown = prefix.map(ToString::to_string).unwrap_or_default();
        let call = self.enter(Op::List, &shown).await?;
        let mut found = self.inner.list_with_delimiter(prefix).await;
        let _ = found.as_mut().map(|it| it.objects.iter_mut().for_each(|meta| self.date(meta)));
        if let (Ok(found), Some(Fault::StaleList(newest))) = (&mut found, &call.fault) {
            drop_newest(&mut found.objects, *newest);
        }
        self.leave(&call, &shown, found, 0)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let call = self.enter(Op::Copy, to.as_ref()).await?;
        let copied = self.inner.copy_opts(from, to, options).await;
        self.leave(&call, to.as_ref(), copied, 0)
    }
}

#[cfg(test)]
mod tests;
