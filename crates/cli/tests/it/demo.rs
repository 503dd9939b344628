//! The demo is README's main job: it must run anywhere, and its story must be true.
use crate::run::World;

#[test]
fn the_story_ends_well_and_the_numbers_are_right() {
    let world = World::new();
    let ran = world.run(&["demo"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let commands: Vec<&str> = ran.stdout.lines().filter(|it| it.starts_with("$ ")).collect();
    assert_eq!(commands.len(), 9, "{commands:#?}");
    for part in ["$ lakebed log orders", "status = 'paid'", "Edsger", "files   shared 1", "truncate --size"] {
        assert!(ran.stdout.contains(part), "lacks {part}: {}", ran.stdout);
    }
    // After the damage: four orders, worth 266.00.
    assert!(ran.stdout.contains("266.00"), "{}", ran.stdout);
    assert!(std::fs::read_dir(world.root()).unwrap().next().is_none(), "the demo leaves nothing behind");
}

#[test]
fn the_table_can_be_kept_and_is_not_overwritten() {
    let world = World::new();
    let ran = world.run(&["demo", "--keep", "mine", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(world.path("mine/orders/_delta_log").is_dir());
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
