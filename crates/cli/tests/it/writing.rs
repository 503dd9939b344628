//! The verbs that change a table: what they do, what they only plan, and how they end.
use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::run::World;

fn log_files(world: &World) -> Vec<String> {
    files(&world.path("orders/_delta_log"))
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// stdout as JSON of a call that must succeed, whatever it notes.
fn done(world: &World, args: &[&str]) -> Value {
    let ran = world.run(&[args, &["-o", "json"]].concat());
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    serde_json::from_str(&world.tidy(&ran.stdout)).unwrap()
}

#[test]
fn a_tag_is_made_listed_used_and_deleted() {
    let world = World::with_orders();
    let refused = world.run(&["tag", "create", "eod", "orders@5"]);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(refused.stderr.contains("domainMetadata") && refused.stderr.contains("--upgrade"), "{}", refused.stderr);
    let made = world.run(&["tag", "create", "eod", "orders@5", "--upgrade", "--expires", "30d", "-o", "json"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let notes: Vec<&str> = made.stderr.lines().collect();
    assert_eq!(notes.len(), 2, "the upgrade, and who does not respect tags: {notes:#?}");
    let row = &serde_json::from_str::<Value>(&made.stdout).unwrap()["rows"][0];
    assert_eq!((&row["name"], &row["version"], &row["committed_in"]), (&json!("eod"), &json!("5"), &json!("8")));
    for args in [&["tag", "list", "orders"][..], &["refs", "orders"]] {
        let rows = done(&world, args);
        assert_eq!((&rows["rows"][0]["name"], &rows["rows"][0]["version"]), (&json!("eod"), &json!("5")), "{args:?}");
        assert!(rows["rows"][0]["expires_at_ms"].is_number(), "{rows}");
    }
    let log = done(&world, &["log", "orders"]);
    assert_eq!(log["rows"][3]["refs"], json!(["tag:eod"]));
    let rows = |at: &str| {
        let sql = format!("SELECT * FROM delta.`./orders` VERSION AS OF {at} ORDER BY order_id");
        world.shown(&["sql", "-o", "csv", "-c", &sql])
    };
    assert_eq!(rows("'eod'"), rows("5"));
    assert_eq!(done(&world, &["info", "orders@eod"])["rows"][0]["version"], "5");
    let again = world.run(&["tag", "create", "eod", "orders"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.starts_with("error[E-EXISTS]"), "{}", again.stderr);
    assert_eq!(done(&world, &["tag", "delete", "eod", "orders"])["rows"][0]["version"], json!("5"));
    assert_eq!(done(&world, &["refs", "orders"])["rows"], json!([]));
}

#[test]
fn a_restore_is_planned_or_done() {
    let world = World::with_orders();
    let before = log_files(&world);
    let plan = done(&world, &["restore", "orders@5", "--dry-run"]);
    assert_eq!((&plan["schema"], &plan["totals"]["restored"]), (&json!("lakebed.restore-plan/1"), &json!("5")));
    let actions: Vec<&str> = plan["rows"].as_array().unwrap().iter().map(|it| it["action"].as_str().unwrap()).collect();
    assert!(actions.contains(&"add") && actions.contains(&"remove"), "{plan}");
    assert_eq!(log_files(&world), before, "a dry run changes nothing");
    let restored = done(&world, &["restore", "orders@5"]);
    let row = &restored["rows"][0];
    assert_eq!((&row["version"], &row["restored"]), (&json!("8"), &json!("5")));
    assert_eq!(row["files_added"], plan["totals"]["add"]["files"]);
    let rows = |at: &str| {
        let sql = format!("SELECT * FROM delta.`./orders` VERSION AS OF {at} ORDER BY order_id");
        world.shown(&["sql", "-o", "csv", "-c", &sql])
    };
    assert_eq!(rows("8"), rows("5"));
    assert_eq!(done(&world, &["log", "orders", "--limit", "1"])["rows"][0]["operation"], "RESTORE");
    let nothing = world.run(&["restore", "orders@head"]);
    assert_eq!((nothing.code, nothing.stderr.contains("nothing was changed")), (0, true), "{}", nothing.stderr);
}

#[test]
fn a_vacuum_is_a_plan_until_it_is_applied() {
    let world = World::with_orders();
    let before = files(&world.path("orders"));
    let plan = done(&world, &["vacuum", "orders"]);
    let rows = plan["rows"].as_array().unwrap();
    assert_eq!(rows.len() as u64, plan["totals"]["delete"]["files"].as_u64().unwrap(), "{plan}");
    assert!(!rows.is_empty() && rows.iter().all(|it| it["action"] == "delete" && it["why"] != ""), "{plan}");
    let bytes: u64 = rows.iter().map(|it| it["bytes"].as_u64().unwrap()).sum();
    assert_eq!(plan["totals"]["delete"]["bytes"], bytes);
    assert_eq!(files(&world.path("orders")), before, "a plan deletes nothing");
    let told = world.run(&["vacuum", "orders", "-o", "table"]);
    let id = plan["totals"]["plan"].as_str().unwrap();
    assert!(told.stdout.starts_with(&format!("PLAN {id}  vacuum orders")), "{}", told.stdout);
    assert!(told.stderr.contains(&format!("lakebed vacuum orders --apply={id}")), "{}", told.stderr);

    let stale = world.run(&["vacuum", "orders", "--apply=000000000000"]);
    assert_eq!((stale.code, files(&world.path("orders"))), (5, before.clone()), "{}", stale.stderr);
    let applied = world.run(&["vacuum", "orders", &format!("--apply={id}")]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert!(applied.stderr.contains(&format!("deleted {} files, {bytes} bytes", rows.len())), "{}", applied.stderr);
    assert_eq!(files(&world.path("orders")).len(), before.len() - rows.len());
    let log = done(&world, &["log", "orders"]);
    assert_eq!(log["rows"][0]["readable"], "yes", "{log}");
    assert_ne!(log["rows"][5]["readable"], "yes", "{log}");
    assert_eq!(world.run(&["vacuum", "orders", "--apply"]).code, 0, "again there is nothing to do");
}

#[test]
fn a_vacuum_keeps_what_a_tag_names() {
    let world = World::with_orders();
    assert_eq!(world.run(&["tag", "create", "eod", "orders@2", "--upgrade"]).code, 0);
    let plan = world.run(&["vacuum", "orders", "--apply"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    assert_eq!(plan.stderr.lines().filter(|it| it.contains("other engines")).count(), 1, "{}", plan.stderr);
    let log = done(&world, &["log", "orders"]);
    let readable =
        |id: &str| log["rows"].as_array().unwrap().iter().find(|it| it["id"] == id).unwrap()["readable"].clone();
    assert_eq!((readable("2"), readable("8")), (json!("yes"), json!("yes")), "{log}");
    assert_ne!(readable("5"), "yes", "{log}");
}

#[test]
fn orphans_are_files_no_version_named() {
    let world = World::with_orders();
    let lost = world.path("orders/part-lost.parquet");
    fs::write(&lost, "a writer died").unwrap();
    assert_eq!(done(&world, &["orphans", "orders"])["rows"], json!([]), "it is young");
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    fs::File::options().write(true).open(&lost).unwrap().set_modified(long_ago).unwrap();
    let plan = done(&world, &["orphans", "orders"]);
    assert_eq!((plan["rows"].as_array().unwrap().len(), &plan["rows"][0]["path"]), (1, &json!("part-lost.parquet")));
    assert!(lost.exists());
    assert_eq!(world.run(&["orphans", "orders", "--apply"]).code, 0);
    assert!(!lost.exists());
}

#[test]
fn a_tag_of_either_door_makes_due_what_any_commit_does() {
    let doors: [&[&str]; 2] = [
        &["sql", "-c", "CALL system.create_tag(table => 'delta.`./t`', tag => 'x', upgrade => true)"],
        &["tag", "create", "x", "./t", "--upgrade"],
    ];
    for door in doors {
        let world = World::new();
        let make = "CREATE TABLE delta.`./t` (a INT) TBLPROPERTIES ('delta.checkpointInterval' = '2'); \
                    INSERT INTO delta.`./t` VALUES (1)";
        assert_eq!(world.run(&["sql", "-c", make]).code, 0);
        let ran = world.run(door);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let names = files(&world.path("t/_delta_log"));
        assert!(names.iter().any(|it| it.starts_with("00000000000000000002.checkpoint")), "{door:?}: {names:?}");
    }
}

#[test]
fn a_checkpoint_is_written_once_a_version() {
    let world = World::with_orders();
    let before = log_files(&world);
    assert_eq!(done(&world, &["checkpoint", "orders", "--dry-run"])["rows"][0]["action"], "write");
    assert_eq!(log_files(&world), before);
    assert_eq!(world.run(&["checkpoint", "orders"]).code, 0);
    assert!(log_files(&world).iter().any(|it| it.starts_with("00000000000000000007.checkpoint")));
    let again = world.run(&["checkpoint", "orders"]);
    assert!(again.code == 0 && again.stderr.contains("nothing to do"), "{}", again.stderr);
    assert_eq!(world.run(&["doctor", "orders"]).code, 0);
}

#[test]
fn a_compaction_keeps_the_rows() {
    let world = World::with_orders();
    let rows = || world.shown(&["sql", "-o", "csv", "-c", "SELECT * FROM delta.`./orders` ORDER BY order_id"]);
    let before = rows();
    let plan = done(&world, &["compact", "orders", "--dry-run"]);
    assert!(plan["rows"].as_array().unwrap().iter().all(|it| it["action"] == "rewrite"), "{plan}");
    assert_eq!(plan["rows"].as_array().unwrap().len(), 3, "{plan}");
    let ran = world.run(&["compact", "orders"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(rows(), before);
    assert_eq!(done(&world, &["files", "orders"])["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn old_versions_are_forgotten_when_asked() {
    let world = World::with_orders();
    let before = log_files(&world);
    let plan = done(&world, &["expire", "orders", "--keep", "3"]);
    assert!(plan["rows"].as_array().unwrap().iter().any(|it| it["action"] == "delete"), "{plan}");
    assert_eq!(log_files(&world), before);
    assert_eq!(world.run(&["expire", "orders", "--keep", "3", "--apply"]).code, 0);
    let log = done(&world, &["log", "orders"]);
    assert!(log["rows"].as_array().unwrap().len() < 8, "{log}");
    assert_eq!(log["rows"][0]["readable"], "yes", "{log}");
}

#[test]
fn every_failure_of_a_change_has_its_code_and_changes_nothing() {
    let world = World::with_orders();
    let before = (log_files(&world), files(&world.path("orders")));
    let cases: [(&[&str], i32, &str); 26] = [
        (&["restore", "orders"], 2, "names no version"),
        (&["restore", "orders@3..5"], 2, "range"),
        (&["restore", "orders@99"], 3, "99"),
        (&["restore", "./nowhere@1"], 3, "no such folder"),
        (&["tag", "create", "42", "orders", "--upgrade"], 2, "already names a version"),
        (&["tag", "create", "a/b", "orders", "--upgrade"], 2, "holds `/`"),
        (&["tag", "create", "x", "orders@99", "--upgrade"], 3, "99"),
        (&["tag", "create", "x", "orders", "--upgrade", "--expires", "2020-01-01"], 2, "over already"),
        (&["tag", "create", "x", "orders"], 5, "--upgrade"),
        (&["tag", "delete", "nobody", "orders"], 3, "nobody"),
        (&["tag", "list", "orders@3"], 2, "whole table"),
        (&["vacuum", "orders@3"], 2, "whole table"),
        (&["vacuum", "./nowhere"], 3, "no such folder"),
        (&["vacuum", "orders", "--older-than", "soon"], 2, "--older-than"),
        (&["vacuum", "orders", "--older-than", "2100-01-01"], 2, "still to come"),
        (&["vacuum", "orders", "--older-than", "1h"], 5, "hint: "),
        (&["vacuum", "orders", "--older-than", "1h", "--apply"], 5, "hint: "),
        (&["vacuum", "orders", "--apply=123"], 5, "out of date"),
        (&["orphans", "orders", "--older-than", "1h"], 5, "--force"),
        (&["orphans", "orders", "--older-than", "7"], 2, "--older-than"),
        (&["expire", "orders@3", "--keep", "2"], 2, "whole table"),
        (&["compact", "orders", "--target-size", "big"], 2, "--target-size"),
        (&["compact", "orders", "--where", "no_such_column = 1"], 2, "no_such_column"),
        (&["compact", "orders", "--where", "true; DROP TABLE x"], 2, "--where"),
        (&["checkpoint", "./nowhere"], 3, "no such folder"),
        (&["vacuum", "orders", "--timeout", "0ms"], 11, "--timeout"),
    ];
    for (args, code, part) in cases {
        let ran = world.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{args:?} lacks {part}: {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{args:?}: {}", ran.stderr);
    }
    assert_eq!((log_files(&world), files(&world.path("orders"))), before);
}

/// Every verb that writes, and SQL: nothing changes, not even a hint.
#[test]
fn read_only_refuses_every_write() {
    let world = World::with_orders();
    let before = (log_files(&world), files(&world.path("orders")));
    let cases: [&[&str]; 11] = [
        &["tag", "create", "x", "orders", "--upgrade"],
        &["tag", "delete", "x", "orders"],
        &["restore", "orders@5"],
        &["vacuum", "orders", "--apply"],
        &["orphans", "orders", "--apply"],
        &["expire", "orders", "--keep", "3", "--apply"],
        &["compact", "orders"],
        &["checkpoint", "orders"],
        &["sql", "-c", "INSERT INTO delta.`./orders` SELECT * FROM delta.`./orders`"],
        &["sql", "-c", "CREATE TABLE delta.`./new` (id BIGINT)"],
        &["demo"],
    ];
    for args in cases {
        let ran = world.run(&[args, &["--read-only"]].concat());
        assert_eq!(ran.code, 5, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("leave out --read-only"), "{args:?}: {}", ran.stderr);
    }
    assert_eq!((log_files(&world), files(&world.path("orders"))), before);
    // Plans are no writes.
    for args in
        [&["vacuum", "orders"][..], &["restore", "orders@5", "--dry-run"], &["checkpoint", "orders", "--dry-run"]]
    {
        assert_eq!(world.run(&[args, &["--read-only"]].concat()).code, 0, "{args:?}");
    }
    fs::write(world.path("lakebed.toml"), "read_only = true\n").unwrap();
    assert_eq!(world.run(&["checkpoint", "orders"]).code, 5);
}

#[test]
fn damaged_and_unknown_tables_are_not_changed() {
    let world = World::with_orders();
    let last = world.path("orders/_delta_log/00000000000000000007.json");
    let text = fs::read_to_string(&last).unwrap();
    let verbs: [&[&str]; 6] = [
        &["tag", "create", "x", "orders", "--upgrade"],
        &["restore", "orders@5"],
        &["vacuum", "orders", "--apply"],
        &["orphans", "orders", "--apply"],
        &["compact", "orders"],
        &["checkpoint", "orders"],
    ];
    fs::write(&last, format!("{text}{{\"add\":")).unwrap();
    let before = (log_files(&world), files(&world.path("orders")));
    for args in verbs {
        let ran = world.run(args);
        assert_eq!(ran.code, 6, "{args:?}: {}", ran.stderr);
    }
    let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["unheardOf"]}}"#;
    fs::write(&last, format!("{text}{protocol}\n")).unwrap();
    for args in verbs {
        let ran = world.run(args);
        assert_eq!(ran.code, 7, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("unheardOf"), "{args:?}: {}", ran.stderr);
    }
    assert_eq!((log_files(&world), files(&world.path("orders"))), before);
}

#[test]
fn a_version_whose_files_are_gone_does_not_come_back() {
    let world = World::with_orders();
    assert_eq!(world.run(&["vacuum", "orders", "--apply"]).code, 0);
    let ran = world.run(&["restore", "orders@1"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("gone"), "{}", ran.stderr);
}
