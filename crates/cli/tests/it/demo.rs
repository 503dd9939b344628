//! The demo is README's main job: it must run anywhere, and its story must be true.
use crate::run::World;

#[test]
fn the_story_ends_well_and_the_numbers_are_right() {
    let world = World::new();
    let ran = world.run(&["demo"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let commands: Vec<&str> = ran.stdout.lines().filter(|it| it.starts_with("$ ")).collect();
    assert_eq!(commands.len(), 22, "{commands:#?}");
    for part in [
        "CONSTRAINT no_debts CHECK (amount >= 0)",
        "error[E-INVALID]: constraint `no_debts` (amount >= 0) does not hold for row (order_id = 6",
        "$ lakebed tag create books orders --upgrade",
        "$ lakebed restore orders@books",
        "PLAN ",
        "truncate --size",
    ] {
        assert!(ran.stdout.contains(part), "lacks {part}: {}", ran.stdout);
    }
    for note in ["deleted 2 files", "do not respect tags", "is not used"] {
        assert!(ran.stderr.contains(note), "lacks {note}: {}", ran.stderr);
    }
    // Before the damage and after: four orders, worth 302.40.
    assert_eq!(ran.stdout.matches("302.40").count(), 2, "{}", ran.stdout);
    let readable = |row: &str| ran.stdout.lines().any(|it| it.starts_with(row) && it.ends_with("yes"));
    assert!(readable("3   UPDATE        tag:books"), "{}", ran.stdout);
    assert!(std::fs::read_dir(world.root()).unwrap().next().is_none(), "the demo leaves nothing behind");
}

#[test]
fn it_reads_the_same_each_time() {
    let told = || {
        let ran = World::new().run(&["demo"]);
        let line = |it: &&str| !it.contains("lakebed-demo-");
        ran.stdout.lines().filter(line).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(), told());
}

#[test]
fn the_table_can_be_kept_and_is_not_overwritten() {
    let world = World::new();
    let ran = world.run(&["demo", "--keep", "mine", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(world.path("mine/lakehouse/default/orders/_delta_log").is_dir());
    let again = world.run(&["demo", "--keep", "mine"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("E-EXISTS"), "{}", again.stderr);
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let readme = include_str!("../../../../README.md");
    let tour = readme.split("## A tour").nth(1).and_then(|it| it.split("## ").next()).expect("README has a tour");
    let ran = World::new().run(&["demo"]);
    let block = tour.split("```").nth(1).expect("the tour is a block");
    let shown: Vec<&str> = block.lines().filter(|it| !it.is_empty()).collect();
    assert!(shown.len() >= 8, "{shown:#?}");
    for line in shown {
        assert!(ran.stdout.lines().any(|it| it.trim_end() == line.trim_end()), "the demo does not print `{line}`");
    }
}
