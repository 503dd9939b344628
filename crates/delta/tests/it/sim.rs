//! Many actors on Delta tables under faults; and the proof that the checker would notice what a table must not suffer.
use std::sync::Arc;

use async_trait::async_trait;
use lakebed_core::{
    Result,
    change::Change,
    commit::Write,
    env::Env,
    file::DataFile,
    format::{TableFormat, TableLocation},
    storage::Storage,
    table::Table,
};
use lakebed_testkit::{
    conformance::{Foreigner, Subject},
    rows::Rows,
    sim::{self, Report, Safety, Schedule},
};

use crate::{
    tamper::{Tampering, tampered},
    written::Written,
};

/// Schedules of a test. `LAKEBED_SIM_SEEDS` asks for more; a seed that found something becomes a test with a name.
fn seeds() -> u64 {
    std::env::var("LAKEBED_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(12)
}

/// A table that upkeep spoils.
#[derive(Debug, Clone, Copy)]
struct Spoilt(Written, Tampering);

#[async_trait]
impl Subject for Spoilt {
    fn format(&self) -> Arc<dyn TableFormat> {
        self.0.format()
    }

    async fn create(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        self.0.create(at).await
    }

    async fn open(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        let storage = tampered(&at.storage, self.1);
        self.format().open(TableLocation { storage, ..at }).await
    }

    async fn demand_unknown_feature(&self, storage: &Storage) -> Result<String> {
        self.0.demand_unknown_feature(storage).await
    }

    fn writes(&self) -> bool {
        true
    }

    async fn data_file(&self, table: &dyn Table, env: &Env, write: &Write, rows: &Rows) -> Result<DataFile> {
        self.0.data_file(table, env, write, rows).await
    }

    async fn deletion(&self, table: &dyn Table, env: &Env, write: &Write, ids: &[i64]) -> Result<Vec<Change>> {
        self.0.deletion(table, env, write, ids).await
    }

    async fn compaction(&self, table: &dyn Table, env: &Env, write: &Write) -> Result<Vec<Change>> {
        self.0.compaction(table, env, write).await
    }

    fn holds_rows(&self) -> fn(&str) -> bool {
        self.0.holds_rows()
    }

    fn caches(&self, all: &[String]) -> Vec<String> {
        self.0.caches(all)
    }

    fn foreigner(&self) -> Option<&dyn Foreigner> {
        None
    }

    fn audit(&self, written: &[(String, bytes::Bytes)]) -> Result<(), String> {
        self.0.audit(written)
    }
}

/// All schedules from `first` on; the first violation fails.
fn hold(subject: &dyn Subject, first: u64, change: impl Fn(Schedule) -> Schedule) -> Report {
    let runs = (first..first + seeds()).map(|seed| match sim::run(subject, &change(Schedule::new(seed))) {
        Ok(report) => report,
        Err(violation) => panic!("{violation}"),
    });
    runs.fold(Report::default(), Report::plus)
}

/// Plays schedules until `wanted` of them have noticed something; at most `most`.
#[track_caller]
fn red(subject: &dyn Subject, wanted: usize, most: u64, change: impl Fn(Schedule) -> Schedule) {
    let runs = (0..most).filter_map(|seed| sim::run(subject, &change(Schedule::new(seed))).err());
    let red: Vec<String> = runs.map(|it| it.to_string()).take(wanted).collect();
    assert!(red.iter().all(|it| it.starts_with("Seed(")), "each says how to see it again: {red:?}");
    assert!(red.len() == wanted, "{} of {most} schedules noticed: {red:?}", red.len());
}

/// So many schedules show each thing that writers do, and so many everything that upkeep does.
const WRITERS_SHOW: u64 = 10;
const KEEPERS_SHOW: u64 = 25;

/// That the schedules were worth their time, as far as so many can be.
#[track_caller]
fn busy(report: Report, schedules: u64) {
    let Report { acknowledged, refused, unknown, crashes, foreign, again, .. } = report;
    let all = [acknowledged, refused, unknown, crashes, foreign, again];
    assert!(schedules < WRITERS_SHOW || all.iter().all(|it| *it > 0), "{report:?}");
    let upkeep = [report.checkpoints, report.expired, report.vacuumed, report.orphaned];
    assert!(schedules < KEEPERS_SHOW || upkeep.iter().all(|it| *it > 0), "{report:?}");
}

#[test]
fn rewritten_tables_hold_under_faults() {
    busy(hold(&Written::PLAIN, 0, |it| it), seeds());
}

#[test]
fn tables_with_vectors_hold_under_faults() {
    busy(hold(&Written::VECTORS, 10_000, |it| it), seeds());
}

#[test]
fn modern_tables_hold_under_faults() {
    busy(hold(&Written::MODERN, 20_000, |it| it), seeds());
}

#[test]
fn two_writers_and_two_foreigners_hold() {
    busy(hold(&Written::VECTORS, 30_000, |it| Schedule { writers: 2, foreigners: 2, ..it }), seeds());
}

/// Schedules so long that a quarter of them is worth the whole of others.
fn hold_long(subject: &dyn Subject, first: u64, change: impl Fn(Schedule) -> Schedule) {
    let runs = (first..first + seeds().div_ceil(4)).map(|seed| match sim::run(subject, &change(Schedule::new(seed))) {
        Ok(report) => report,
        Err(violation) => panic!("{violation}"),
    });
    busy(runs.fold(Report::default(), Report::plus), seeds());
}

#[test]
fn long_schedules_with_much_upkeep_hold() {
    hold_long(&Written::MODERN, 40_000, |it| Schedule { writers: 2, steps: 10, ..it });
}

#[test]
fn two_keepers_at_once_hold() {
    hold_long(&Written::VECTORS, 60_000, |it| Schedule { writers: 2, keepers: 2, steps: 8, ..it });
}

#[test]
fn three_keepers_of_modern_tables_hold() {
    hold_long(&Written::MODERN, 70_000, |it| Schedule { writers: 1, keepers: 3, steps: 8, ..it });
}

#[test]
fn healthy_tables_lose_nothing() {
    let healthy = |it| Schedule { faults: false, slow_publish: false, stale_lists: false, ..it };
    let report = hold(&Written::VECTORS, 50_000, healthy);
    assert_eq!((report.unknown, report.crashes), (0, 0), "{report:?}");
}

#[test]
fn a_seed_is_a_schedule() {
    let one = sim::run(&Written::MODERN, &Schedule::new(7));
    assert_eq!(one, sim::run(&Written::MODERN, &Schedule::new(7)));
}

/// delta 1410, from the other side: what a store without conditions does to a table is noticed.
#[test]
fn red_without_put_if_absent() {
    red(&Written::VECTORS, 3, 60, |it| it.without(Safety::PutIfAbsent));
}

#[test]
fn red_without_the_conflict_check() {
    let busy = |it: Schedule| Schedule { foreigners: 0, steps: 10, ..it.without(Safety::ConflictCheck) };
    red(&Written::VECTORS, 1, 100, busy);
}

#[test]
fn red_when_a_commit_stands_on_what_nobody_checked() {
    let busy = |it: Schedule| Schedule { steps: 10, stale_lists: false, ..it.without(Safety::CheckedBase) };
    red(&Written::VECTORS, 1, 100, busy);
}

#[test]
fn red_when_files_of_an_unknown_commit_are_deleted() {
    red(&Written::VECTORS, 1, 100, |it| Schedule { steps: 8, ..it.without(Safety::UnknownKept) });
}

#[test]
fn red_when_a_commit_does_not_look_for_itself() {
    red(&Written::VECTORS, 3, 60, |it| it.without(Safety::OwnFound));
}

#[test]
fn red_when_a_vacuum_forgets_tags() {
    red(&Written::VECTORS, 1, 100, |it| Schedule { steps: 12, ..it.without(Safety::TagsKept) });
}

#[test]
fn red_when_a_vacuum_forgets_time() {
    red(&Written::VECTORS, 3, 60, |it| it.without(Safety::WindowKept));
}

/// A spoilt table is noticed in schedules with much upkeep and nothing else going wrong.
#[track_caller]
fn spoilt(tampering: Tampering, wanted: usize) {
    let quiet = |it| Schedule { writers: 2, foreigners: 0, faults: false, stale_lists: false, steps: 10, ..it };
    red(&Spoilt(Written::VECTORS, tampering), wanted, 60, quiet);
}

#[test]
fn red_when_a_checkpoint_lacks_a_file() {
    spoilt(Tampering::FileLeftOut, 3);
}

#[test]
fn red_when_a_checkpoint_lacks_tombstones() {
    spoilt(Tampering::TombstonesLeftOut, 3);
}

#[test]
fn red_when_clean_up_takes_a_commit_too_many() {
    spoilt(Tampering::OneCommitTooMany, 1);
}

#[test]
fn red_when_the_hint_goes_back() {
    spoilt(Tampering::HintGoesBack, 1);
}
