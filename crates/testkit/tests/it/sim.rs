//! The simulator on Pond, and the proof that it would notice.
use lakebed_testkit::{
    conformance::Subject,
    pond::PondSubject,
    sim::{self, Report, Schedule},
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

#[test]
fn the_checker_goes_red_without_put_if_absent() {
    let broken = |seed| Schedule { conditions_ignored: true, ..Schedule::new(seed) };
    let red = (0..SEEDS).filter_map(|seed| sim::run(&PLAIN, &broken(seed)).err());
    let red: Vec<String> = red.map(|it| it.to_string()).collect();
    assert!(red.len() > 3, "{} of {SEEDS} schedules noticed", red.len());
    assert!(red.iter().all(|it| it.starts_with("Seed(")), "each says how to see it again");
}
