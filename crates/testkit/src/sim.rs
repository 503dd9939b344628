//! Many actors on one table under faults, replayed by a seed, and judged by its history.
//!
//! A schedule runs on one thread in paused time: writers, upkeep and readers each see the same objects through a store of
//! their own, with faults of their own; every call takes a few virtual milliseconds, by the dice, so that a seed is an
//! interleaving. Writers die in the middle and come back as new processes.
//!
//! The [`History`] notes every attempt before it is made, every answer, and every version as it is first seen. Afterwards
//! it must hold that
//!
//! 1. each version is one attempt, made once, on top of the version before: the versions are a serial order;
//! 2. every acknowledged commit is a version, every refused one is none; an unknown one may be either, but whole;
//! 3. no attempt deleted what was not there, or added what was: no update was lost;
//! 4. every version, whenever it was read, has the rows that the serial order gives it;
//! 5. every version and ref that is still listed can be read: none points at a deleted file.
//!
//! A violation is a sentence with the seed in it.
mod actors;
mod history;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use lakebed_core::{Result, env::Env, table::Table, version::AsOf};
use object_store::ObjectStore;

pub use self::history::{History, Violation};
use crate::{
    conformance::{self, Subject},
    env::{RuntimeClock, SeededIds},
    seed::{Dice, Seed},
    store::FaultyStore,
};

/// What a schedule is made of. The same schedule is the same run.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    pub seed: Seed,
    pub writers: usize,
    pub readers: usize,
    /// Whether one more actor compacts, tags, expires and clears away orphans.
    pub upkeep: bool,
    /// Things each actor does.
    pub steps: usize,
    /// Whether stores fail and processes die.
    pub faults: bool,
    /// Whether a publish may be under way for seconds. Not with a lease, which cannot fence it.
    pub slow_publish: bool,
    /// Whether writers' listings may lack the newest object. Not with a lease: where publishing excludes nobody, who
    /// does not see the newest version cannot be checked against it.
    pub stale_lists: bool,
    /// Whether the store ignores that a create must not overwrite. The checker must notice.
    pub conditions_ignored: bool,
}

impl Schedule {
    pub fn new(seed: u64) -> Self {
        Self {
            seed: Seed(seed),
            writers: 3,
            readers: 1,
            upkeep: true,
            steps: 4,
            faults: true,
            slow_publish: true,
            stale_lists: true,
            conditions_ignored: false,
        }
    }

    /// Without the faults that a table with a lease cannot stand.
    #[must_use]
    pub fn leased(self) -> Self {
        Self { slow_publish: false, stale_lists: false, ..self }
    }
}

/// What happened, in numbers; to see that a schedule is worth its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    pub versions: usize,
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
    pub crashes: usize,
    pub reads: usize,
    pub expired: usize,
}

impl Report {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            versions: self.versions + other.versions,
            acknowledged: self.acknowledged + other.acknowledged,
            refused: self.refused + other.refused,
            unknown: self.unknown + other.unknown,
            crashes: self.crashes + other.crashes,
            reads: self.reads + other.reads,
            expired: self.expired + other.expired,
        }
    }
}

/// Runs one schedule.
///
/// # Errors
/// The first rule broken.
///
/// # Panics
/// If the machine cannot make a runtime, or the table not even be created.
pub fn run(subject: &dyn Subject, schedule: &Schedule) -> Result<Report, Violation> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let seed = schedule.seed;
    let report = runtime.expect("a runtime of one thread").block_on(play(subject, schedule));
    report.map_err(|it| it.of(seed))
}

async fn play(subject: &dyn Subject, schedule: &Schedule) -> Result<Report, Violation> {
    let clock = Arc::new(RuntimeClock::start());
    let dice = Dice::new(schedule.seed);
    let below = FaultyStore::new(Seed(dice.next())).timed(Arc::clone(&clock) as _, Duration::from_millis(7));
    let world = Sea { subject, schedule, clock, below, history: Mutex::default() };
    let first = world.process(&dice.split());
    subject.create(conformance::location(first.store.storage("t"), &first.env)).await.expect("a new table");
    if schedule.conditions_ignored {
        world.below.ignore_conditions();
    }
    let mut actors: Vec<BoxFuture<'_, Result<(), Violation>>> = Vec::new();
    for writer in 0..schedule.writers {
        let dice = dice.split();
        let first_id = i64::try_from(writer + 1).unwrap_or(1) * 10_000;
        actors.push(Box::pin(actors::writer(&world, dice, first_id)));
    }
    for _ in 0..schedule.readers {
        actors.push(Box::pin(actors::reader(&world, dice.split())));
    }
    if schedule.upkeep {
        actors.push(Box::pin(actors::upkeep(&world, dice.split())));
    }
    join_all(actors).await.into_iter().collect::<Result<Vec<()>, _>>()?;
    world.judge(&dice).await
}

/// Everything the actors of one schedule share.
struct Sea<'a> {
    subject: &'a dyn Subject,
    schedule: &'a Schedule,
    clock: Arc<RuntimeClock>,
    below: FaultyStore,
    history: Mutex<History>,
}

/// One process: its own faults, its own ids.
struct Process {
    store: FaultyStore,
    env: Env,
}

impl Sea<'_> {
    fn process(&self, dice: &Dice) -> Process {
        let below: Arc<dyn ObjectStore> = Arc::new(self.below.clone());
        let store = FaultyStore::over(below, Seed(dice.next()));
        let clock = Arc::clone(&self.clock) as _;
        Process { store, env: Env { clock, ids: Arc::new(SeededIds::new(Seed(dice.next()))) } }
    }

    async fn open(&self, process: &Process) -> Result<Arc<dyn Table>> {
        let at = conformance::location(process.store.storage("t"), &process.env);
        self.subject.format().open(at).await
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads everything that is still there with a store that does not fail.
    async fn judge(&self, dice: &Dice) -> Result<Report, Violation> {
        let failed = |what: &str, err: lakebed_core::Error| Violation::new(format!("{what}: {err}"));
        let process = self.process(dice);
        let table = self.open(&process).await.map_err(|it| failed("the table does not open", it))?;
        history::note_versions(&self.history, table.as_ref()).await?;
        let timeline = table.timeline(&lakebed_core::version::Span::all()).await;
        let timeline = timeline.map_err(|it| failed("the timeline is gone", it))?;
        for version in timeline.versions() {
            let as_of = AsOf::Version(version.id.clone());
            let ids = conformance::ids(self.subject, table.as_ref(), &as_of).await;
            let ids = ids.map_err(|it| failed(&format!("version {} is listed, but", version.id), it))?;
            self.history().note_rows(&version.id, ids)?;
        }
        for tag in table.refs().await.map_err(|it| failed("refs", it))? {
            let ids = conformance::ids(self.subject, table.as_ref(), &AsOf::Ref(tag.name.clone())).await;
            let ids = ids.map_err(|it| failed(&format!("tag {} is listed, but", tag.name), it))?;
            self.history().note_rows(&tag.version, ids)?;
        }
        self.history().judge()
    }
}
