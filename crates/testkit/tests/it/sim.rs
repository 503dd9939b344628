//! The simulator on Pond, and the proof that it would notice.
//!
//! Pond itself refuses what does not fit its newest state, so that not checking for conflicts shows in other formats only.
use lakebed_testkit::{
    conformance::Subject,
    pond::PondSubject,
    sim::{self, Report, Safety, Schedule},
};

/// Schedules of a test. `LAKEBED_SIM_SEEDS` asks for four times as many as it says: they are short; a seed that found
/// something becomes a test with a name.
fn seeds() -> u64 {
    std::env::var("LAKEBED_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).map_or(40, |it: u64| it.saturating_mul(4))
}

/// So many schedules show each thing that matters.
const ENOUGH: u64 = 20;

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
    let report = all(&PLAIN, 0..seeds(), |it| it);
    let busy = report.acknowledged > 0 && report.refused > 0 && report.crashes > 0 && report.expired > 0;
    assert!(busy || seeds() < ENOUGH, "{report:?}");
}

#[test]
fn leased_tables_hold_under_faults() {
    let report = all(&LEASED, 0..seeds(), Schedule::leased);
    assert!(report.acknowledged > 0 && report.crashes > 0 || seeds() < ENOUGH, "{report:?}");
}

#[test]
fn tables_with_two_keepers_hold_under_faults() {
    let report = all(&PLAIN, 2000..2000 + seeds() / 2, |it| Schedule { keepers: 2, steps: 6, ..it });
    assert!(report.expired > 0 && report.vacuumed > 0 || seeds() < ENOUGH, "{report:?}");
}

#[test]
fn healthy_tables_lose_nothing_and_refuse_little() {
    let healthy = |it| Schedule { faults: false, slow_publish: false, ..it };
    let report = all(&PLAIN, 1000..1000 + seeds() / 2, healthy);
    assert_eq!(report.unknown, 0, "{report:?}");
}

#[test]
fn a_seed_is_a_schedule() {
    let one = sim::run(&PLAIN, &Schedule::new(7));
    let two = sim::run(&PLAIN, &Schedule::new(7));
    assert_eq!(one, two);
}

/// Plays schedules until `wanted` of them have noticed that a safety is missing; at most `most`. What they say names the
/// seed.
#[track_caller]
fn red(wanted: usize, most: u64, change: impl Fn(Schedule) -> Schedule) {
    let runs = (0..most).filter_map(|seed| sim::run(&PLAIN, &change(Schedule::new(seed))).err());
    let red: Vec<String> = runs.map(|it| it.to_string()).take(wanted).collect();
    assert!(red.iter().all(|it| it.starts_with("Seed(")), "each says how to see it again: {red:?}");
    assert!(red.len() == wanted, "{} of {most} schedules noticed: {red:?}", red.len());
}

#[test]
fn the_checker_goes_red_without_put_if_absent() {
    red(4, 60, |it| it.without(Safety::PutIfAbsent));
}

#[test]
fn the_checker_goes_red_when_files_of_an_unknown_commit_are_deleted() {
    red(1, 200, |it| Schedule { steps: 8, ..it.without(Safety::UnknownKept) });
}

#[test]
fn the_checker_goes_red_when_a_commit_does_not_look_for_itself() {
    red(4, 60, |it| it.without(Safety::OwnFound));
}

#[test]
fn the_checker_goes_red_when_a_vacuum_forgets_tags() {
    red(1, 200, |it| Schedule { steps: 12, ..it.without(Safety::TagsKept) });
}

#[test]
fn the_checker_goes_red_when_a_vacuum_forgets_time() {
    red(4, 60, |it| it.without(Safety::WindowKept));
}
