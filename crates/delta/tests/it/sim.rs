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

    fn is_cache(&self, path: &str) -> bool {
        self.0.is_cache(path)
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

/// What the first schedules say that noticed something.
fn noticed(subject: &dyn Subject, seeds: u64, change: impl Fn(Schedule) -> Schedule) -> Vec<String> {
    let red = (0..seeds).filter_map(|seed| sim::run(subject, &change(Schedule::new(seed))).err());
    let red: Vec<String> = red.map(|it| it.to_string()).collect();
    assert!(red.iter().all(|it| it.starts_with("Seed(")), "each says how to see it again: {red:?}");
    red
}

#[track_caller]
fn at_least(red: &[String], wanted: usize) {
    assert!(red.len() >= wanted, "{} schedules noticed: {red:?}", red.len());
}

fn busy(report: Report) {
    let Report { acknowledged, refused, unknown, crashes, foreign, again, .. } = report;
    let all = [acknowledged, refused, unknown, crashes, foreign, again];
    assert!(all.iter().all(|it| *it > 0), "{report:?}");
    let upkeep = [report.checkpoints, report.expired, report.vacuumed, report.orphaned];
    assert!(upkeep.iter().all(|it| *it > 0), "{report:?}");
}

#[test]
fn rewritten_tables_hold_under_faults() {
    busy(hold(&Written::PLAIN, 0, |it| it));
}

#[test]
fn tables_with_vectors_hold_under_faults() {
    busy(hold(&Written::VECTORS, 10_000, |it| it));
}

#[test]
fn modern_tables_hold_under_faults() {
    busy(hold(&Written::MODERN, 20_000, |it| it));
}

#[test]
fn two_writers_and_two_foreigners_hold() {
    busy(hold(&Written::VECTORS, 30_000, |it| Schedule { writers: 2, foreigners: 2, ..it }));
}

#[test]
fn long_schedules_with_much_upkeep_hold() {
    let long = |it| Schedule { writers: 2, steps: 10, ..it };
    let runs =
        (40_000..40_000 + seeds() / 4).map(|seed| match sim::run(&Written::MODERN, &long(Schedule::new(seed))) {
            Ok(report) => report,
            Err(violation) => panic!("{violation}"),
        });
    busy(runs.fold(Report::default(), Report::plus));
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

#[test]
fn red_without_put_if_absent() {
    at_least(&noticed(&Written::VECTORS, 20, |it| it.without(Safety::PutIfAbsent)), 3);
}

#[test]
fn red_without_the_conflict_check() {
    let busy = |it: Schedule| Schedule { foreigners: 0, steps: 10, ..it.without(Safety::ConflictCheck) };
    at_least(&noticed(&Written::VECTORS, 40, busy), 1);
}

#[test]
fn red_when_a_commit_stands_on_what_nobody_checked() {
    let busy = |it: Schedule| Schedule { steps: 10, stale_lists: false, ..it.without(Safety::CheckedBase) };
    at_least(&noticed(&Written::VECTORS, 40, busy), 1);
}

#[test]
fn red_when_files_of_an_unknown_commit_are_deleted() {
    let busy = |it: Schedule| Schedule { steps: 8, ..it.without(Safety::UnknownKept) };
    at_least(&noticed(&Written::VECTORS, 40, busy), 1);
}

#[test]
fn red_when_a_commit_does_not_look_for_itself() {
    at_least(&noticed(&Written::VECTORS, 20, |it| it.without(Safety::OwnFound)), 3);
}

#[test]
fn red_when_a_vacuum_forgets_tags() {
    let busy = |it: Schedule| Schedule { steps: 12, ..it.without(Safety::TagsKept) };
    at_least(&noticed(&Written::VECTORS, 20, busy), 1);
}

#[test]
fn red_when_a_vacuum_forgets_time() {
    at_least(&noticed(&Written::VECTORS, 20, |it| it.without(Safety::WindowKept)), 3);
}

/// What a spoilt table comes to, in schedules with much upkeep and nothing else going wrong.
fn spoilt(tampering: Tampering) -> Vec<String> {
    let quiet = |it| Schedule { writers: 2, foreigners: 0, faults: false, stale_lists: false, steps: 10, ..it };
    noticed(&Spoilt(Written::VECTORS, tampering), 20, quiet)
}

#[test]
fn red_when_a_checkpoint_lacks_a_file() {
    at_least(&spoilt(Tampering::FileLeftOut), 3);
}

#[test]
fn red_when_a_checkpoint_lacks_tombstones() {
    at_least(&spoilt(Tampering::TombstonesLeftOut), 3);
}

#[test]
fn red_when_clean_up_takes_a_commit_too_many() {
    at_least(&spoilt(Tampering::OneCommitTooMany), 1);
}

#[test]
fn red_when_the_hint_goes_back() {
    at_least(&spoilt(Tampering::HintGoesBack), 1);
}
