//! Many actors on one table under faults, replayed by a seed, and judged by its history.
//!
//! A schedule runs on one thread in paused time: writers, other engines' writers, upkeep and readers each see the same
//! objects through a store of their own, with faults of their own; every call takes a few virtual milliseconds, by the
//! dice, so that a seed is an interleaving. Writers die in the middle and come back as new processes; those that live
//! clean up after a commit that surely failed, and try again after one of which they know nothing.
//!
//! The [`History`] notes every attempt before it is made, every answer, and every version as it is first seen. Afterwards
//! it must hold that
//!
//! 1. each version is one attempt, made once, on top of the version before: the versions are a serial order, and where
//!    they have numbers, without gaps;
//! 2. every acknowledged commit is a version, every refused one is none; an unknown one may be either, but whole; trying
//!    a write again finds the version it made;
//! 3. no attempt deleted what was not there, or added what was: no update was lost;
//! 4. every version, whenever it was read, has the rows that the serial order gives it;
//! 5. every version and ref that is still listed can be read, but for versions that a vacuum may have emptied: those
//!    whose successor is older than its cutoff, and which no ref names;
//! 6. everything reachable is there, the newest version and as many others as upkeep was told to keep among it;
//! 7. without its caches the table is the same, and after a last sweep it is, too, and nothing unneeded is left;
//! 8. what the format itself has to say about the objects written ([`Subject::audit`]).
//!
//! A violation is a sentence with the seed in it. [`Safety`] switches off, one by one, what keeps a table whole: then
//! there must be violations.
//!
//! What every table owes its users, and what here holds it to that:
//!
//! | | promise | held by |
//! |---|---|---|
//! | I1 | acknowledged rows are in every later version, until something removes them | 2, 3 and 4 |
//! | I2 | what was not acknowledged is there wholly or not at all | 2 and 4; [`crashing`](crate::conformance::crashing) at every call |
//! | I3 | a reader of an old version reads the same again, or is told that it is gone | 4; an error that is not "not found" is a violation |
//! | I4 | a version stands for the same rows and the same write for life | 4; the order of versions, each time it is listed |
//! | I5 | every file that is reachable is there | 6, after every sweep and at the end |
//! | I6 | no file that is reachable is deleted | 5 and 6; [`interrupting`](crate::conformance::interrupting) at every call |
//! | I7 | every file that nothing reaches can be collected | 7; [`interrupting`](crate::conformance::interrupting), after every interruption |
//! | I8 | versions have no gaps | 1 |
//! | I9 | the history is serial | 1 and 3: rows are elements of a set, each added once, and every write is checked on its base |
//! | I10 | hints do not run ahead of the truth, and without caches nothing changes | 7 and 8 |
//! | I11 | a write tried again by the same id is one version | 2; [`racing`](crate::conformance::racing) |
mod actors;
mod foreign;
mod history;
mod judge;
mod upkeep;
mod without;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use lakebed_core::{Result, env::Env, table::Table};
use object_store::ObjectStore;

pub use self::{
    history::{History, Violation},
    without::Safety,
};
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
    /// Writers of other engines, where the subject has one.
    pub foreigners: usize,
    /// Actors that compact, tag, expire, vacuum, checkpoint and clear away orphans.
    pub keepers: usize,
    /// Things each actor does.
    pub steps: usize,
    /// Whether stores fail and processes die.
    pub faults: bool,
    /// Whether a publish may be under way for seconds. Not with a lease, which cannot fence it.
    pub slow_publish: bool,
    /// Whether writers' listings may lack the newest object. Not with a lease: where publishing excludes nobody, who
    /// does not see the newest version cannot be checked against it.
    pub stale_lists: bool,
    /// What does not hold this time. The checker must notice.
    pub off: Option<Safety>,
}

impl Schedule {
    pub fn new(seed: u64) -> Self {
        Self {
            seed: Seed(seed),
            writers: 3,
            readers: 1,
            foreigners: 1,
            keepers: 1,
            steps: 4,
            faults: true,
            slow_publish: true,
            stale_lists: true,
            off: None,
        }
    }

    /// Without the faults that a table with a lease cannot stand.
    #[must_use]
    pub fn leased(self) -> Self {
        Self { slow_publish: false, stale_lists: false, ..self }
    }

    #[must_use]
    pub fn without(self, safety: Safety) -> Self {
        Self { off: Some(safety), ..self }
    }

    fn lacks(&self, safety: Safety) -> bool {
        self.off == Some(safety)
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
    /// Versions of other engines' writers.
    pub foreign: usize,
    /// Plans carried out to their end.
    pub checkpoints: usize,
    pub expired: usize,
    pub vacuumed: usize,
    pub orphaned: usize,
    /// Writes tried again, by the same id, whose first answer was known or not.
    pub again: usize,
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
            foreign: self.foreign + other.foreign,
            checkpoints: self.checkpoints + other.checkpoints,
            expired: self.expired + other.expired,
            vacuumed: self.vacuumed + other.vacuumed,
            orphaned: self.orphaned + other.orphaned,
            again: self.again + other.again,
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
    let below = FaultyStore::new(Seed(dice.next()));
    let below = below.timed(Arc::clone(&clock) as _, Duration::from_millis(7)).keeping("");
    let sea = Sea { subject, schedule, clock, below, history: Mutex::default() };
    let first = sea.process(&dice.split());
    subject.create(conformance::location(first.store.storage("t"), &first.env)).await.expect("a new table");
    if schedule.lacks(Safety::PutIfAbsent) {
        sea.below.ignore_conditions();
    }
    let mut actors: Vec<BoxFuture<'_, Result<(), Violation>>> = Vec::new();
    for writer in 0..schedule.writers {
        let dice = dice.split();
        actors.push(Box::pin(actors::writer(&sea, dice, first_id(writer))));
    }
    for _ in 0..schedule.readers {
        actors.push(Box::pin(actors::reader(&sea, dice.split())));
    }
    if let Some(foreigner) = subject.foreigner() {
        for at in 0..schedule.foreigners {
            let first_id = first_id(schedule.writers + at);
            actors.push(Box::pin(foreign::writer(&sea, foreigner, dice.split(), first_id)));
        }
    }
    for _ in 0..schedule.keepers {
        actors.push(Box::pin(upkeep::keeper(&sea, dice.split())));
    }
    join_all(actors).await.into_iter().collect::<Result<Vec<()>, _>>()?;
    judge::judge(&sea, &dice).await
}

/// Each writer numbers its rows from another thousand on.
fn first_id(writer: usize) -> i64 {
    i64::try_from(writer + 1).unwrap_or(1) * 10_000
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

    /// The table as this process sees it, without what the schedule switches off.
    async fn open(&self, process: &Process) -> Result<Arc<dyn Table>> {
        let table = self.open_whole(process).await?;
        Ok(without::without(table, self.schedule.off, self.subject, &process.env))
    }

    /// The table as it is.
    async fn open_whole(&self, process: &Process) -> Result<Arc<dyn Table>> {
        self.subject.open(conformance::location(process.store.storage("t"), &process.env)).await
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
