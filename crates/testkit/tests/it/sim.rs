//! The simulator on Pond, and the proof that it would notice.
//!
//! Pond itself refuses what does not fit its newest state, so that not checking for conflicts shows in other formats only.
use lakebed_testkit::{
    conformance::Subject,
    pond::PondSubject,
    sim::{self, Report, Safety, Schedule},
};

/// Schedules of the daily run; a seed that found something becomes a test with a name.
const SEEDS: u64 = 100;

/// Files of Pond's own encoding: a schedule is about order and faults, not about Parquet.
const PLAIN: PondSubject = PondSubject { leased: false, native: true };
const LEASED: PondSubject = PondSubject { leased: true, native: true };

fn all(subject: &dyn Subject, seeds: std::ops::Range<u64>, change: impl Fn(Schedule) -> Schedule) -> Report {
    let runs = seeds.map(|seed| match sim::run(subject, &change(Schedule::new(seed))) {
        Ok(report) => report,
        Err(violation) => panic!("{violation}"),
    });
    runs.fold(Report::default(), Report::plus)
}

#[test]
fn plain_tables_hold_under_faults() {
    let report = all(&PLAIN, 0..SEEDS, |it| it);
    assert!(report.acknowledged > 0 && report.refused > 0 && report.crashes > 0 && report.expired > 0, "{report:?}");
}

#[test]
fn leased_tables_hold_under_faults() {
    let report = all(&LEASED, 0..SEEDS, Schedule::leased);
    assert!(report.acknowledged > 0 && report.crashes > 0, "{report:?}");
}

#[test]
fn healthy_tables_lose_nothing_and_refuse_little() {
    let healthy = |it| Schedule { faults: false, slow_publish: false, ..it };
    let report = all(&PLAIN, 1000..1000 + SEEDS / 2, healthy);
    assert_eq!(report.unknown, 0, "{report:?}");
}

#[test]
fn a_seed_is_a_schedule() {
    let one = sim::run(&PLAIN, &Schedule::new(7));
    let two = sim::run(&PLAIN, &Schedule::new(7));
    assert_eq!(one, two);
}

/// How many of the first schedules notice that a safety is missing. What they say names the seed.
fn red(seeds: u64, change: impl Fn(Schedule) -> Schedule) -> Vec<String> {
    let runs = (0..seeds).filter_map(|seed| sim::run(&PLAIN, &change(Schedule::new(seed))).err());
    let red: Vec<String> = runs.map(|it| it.to_string()).collect();
    assert!(red.iter().all(|it| it.starts_with("Seed(")), "each says how to see it again: {red:?}");
    red
}

#[test]
fn the_checker_goes_red_without_put_if_absent() {
    assert!(red(60, |it| it.without(Safety::PutIfAbsent)).len() > 3);
}

#[test]
fn the_checker_goes_red_when_files_of_an_unknown_commit_are_deleted() {
    assert!(!red(SEEDS, |it| Schedule { steps: 8, ..it.without(Safety::UnknownKept) }).is_empty());
}

#[test]
fn the_checker_goes_red_when_a_commit_does_not_look_for_itself() {
    assert!(red(30, |it| it.without(Safety::OwnFound)).len() > 3);
}

#[test]
fn the_checker_goes_red_when_a_vacuum_forgets_tags() {
    assert!(!red(40, |it| Schedule { steps: 12, ..it.without(Safety::TagsKept) }).is_empty());
}

#[test]
fn the_checker_goes_red_when_a_vacuum_forgets_time() {
    assert!(red(30, |it| it.without(Safety::WindowKept)).len() > 3);
}
