//! What people read, as it is printed.
use insta::assert_snapshot;

use crate::run::World;

#[test]
fn alone_it_says_what_it_is_in_twelve_lines_with_five_examples() {
    let text = World::new().shown(&[]);
    assert_eq!(text.lines().count(), 12, "{text}");
    assert_eq!(text.lines().filter(|it| it.starts_with("  lakebed ")).count(), 5);
    assert!(text.lines().all(|it| it.len() <= 80), "{text}");
}

#[test]
fn help_fits_80_columns() {
    let world = World::new();
    let verbs = [
        "sql",
        "log",
        "show",
        "info",
        "schema",
        "files",
        "timeline",
        "refs",
        "at",
        "head",
        "diff",
        "doctor",
        "demo",
        "config",
        "completions",
        "man",
    ];
    for verb in verbs {
        let text = world.shown(&["help", verb]);
        assert!(text.lines().all(|it| it.chars().count() <= 80), "{verb}: {text}");
    }
    assert!(world.shown(&["--help"]).lines().all(|it| it.chars().count() <= 80));
}

#[test]
fn log_is_a_table_for_people() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["log", "orders", "-o", "table"]), @"");
    assert_snapshot!(world.shown(&["log", "orders@2..5", "--oneline"]), @"");
}

#[test]
fn a_version_is_shown_with_its_changes() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["show", "orders@1", "-o", "table"]), @"");
}

#[test]
fn at_tells_the_version_and_its_rule() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["at", "orders", "2026-11-04 00:00", "-q"]), @"");
    let ran = world.run(&["at", "orders", "2026-11-04 00:00", "--explain", "-o", "table"]);
    assert_eq!(ran.code, 0);
    assert_snapshot!(ran.stdout, @"");
    let rule: Vec<&str> =
        ran.stderr.lines().filter(|it| it.starts_with("rule: ") || it.starts_with("time: ")).collect();
    assert_snapshot!(rule.join("\n"), @"");
    // A zone moves the answer.
    assert_snapshot!(world.shown(&["at", "orders", "2026-11-03 19:30", "--tz", "+09:00", "--columns", "id", "-q"]), @"");
}

#[test]
fn head_and_schema() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["head", "orders@0", "-o", "table"]), @"");
    assert_snapshot!(world.shown(&["schema", "orders", "-o", "table", "--columns", "name,type,nullable"]), @"");
}

#[test]
fn diff_says_columns_and_files() {
    let world = World::with_orders();
    let text = world.shown(&["diff", "orders@0", "@1", "-o", "table", "--columns", "part,change,left,right"]);
    assert_snapshot!(text, @"");
    assert_snapshot!(world.shown(&["diff", "orders@5", "@5", "-o", "table"]), @"");
}

#[test]
fn info_is_one_property_a_line() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["info", "orders"]), @"");
}

#[test]
fn configuration_tells_its_origin() {
    let world = World::new();
    std::fs::write(world.path("lakebed.toml"), "tz = 'Asia/Tokyo'\n").unwrap();
    let text = world.shown(&["config", "list", "--show-origin", "--memory", "1GiB"]);
    let set: Vec<&str> = text.lines().filter(|it| !it.ends_with("default") && !it.ends_with('\t')).collect();
    assert_snapshot!(set.join("\n"), @"");
}

#[test]
fn completions_and_pages_exist_for_every_verb() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(world.shown(&["completions", shell]).contains("timeline"), "{shell}");
    }
    assert!(world.shown(&["man"]).contains("EXIT STATUS"));
    world.shown(&["man", "--dir", "pages"]);
    assert!(world.path("pages/lakebed-sql.1").is_file());
}
