//! What programs read: JSON envelopes, ids as strings, times twice.
use serde_json::{Value, json};

use crate::run::World;

/// Keys of a row, and of the envelope around it.
fn shape(value: &Value) -> (Vec<&str>, &str, Vec<&str>) {
    let mut envelope: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    envelope.sort_unstable();
    let first = &value["rows"][0];
    let mut row: Vec<&str> = first.as_object().map(|it| it.keys().map(String::as_str).collect()).unwrap_or_default();
    row.sort_unstable();
    (envelope, value["schema"].as_str().unwrap(), row)
}

#[test]
fn every_verb_has_an_envelope_with_the_columns_it_promises() {
    let world = World::with_orders();
    let log = [
        "committed_at",
        "committed_at_ms",
        "files_added",
        "files_removed",
        "id",
        "native",
        "operation",
        "readable",
        "refs",
        "rows_added",
        "rows_removed",
    ];
    let files = ["added_in", "bytes", "deletes", "format", "max", "min", "partition", "path", "rows"];
    let timeline = [
        "action",
        "completed_at",
        "completed_at_ms",
        "id",
        "kind",
        "origin",
        "requested_at",
        "requested_at_ms",
        "state",
    ];
    let cases: [(&[&str], &str, &[&str]); 6] = [
        (&["log", "orders"], "lakebed.log/1", &log),
        (&["files", "orders"], "lakebed.files/1", &files),
        (&["timeline", "orders"], "lakebed.timeline/1", &timeline),
        (&["schema", "orders"], "lakebed.schema/1", &["comment", "name", "nullable", "partition", "position", "type"]),
        (&["diff", "orders@5", "@6"], "lakebed.diff/1", &["change", "left", "name", "part", "right"]),
        (
            &["at", "orders", "2026-11-05"],
            "lakebed.at/1",
            &["committed_at", "committed_at_ms", "id", "readable", "rule"],
        ),
    ];
    for (args, schema, columns) in cases {
        let value = world.json(&[args, &["-o", "json", "-q"]].concat());
        assert_eq!(shape(&value), (vec!["rows", "schema", "table"], schema, columns.to_vec()), "{args:?}");
        assert_eq!(value["table"], "file:///orders", "{args:?}");
    }
    for (verb, schema) in [("refs", "lakebed.refs/1"), ("doctor", "lakebed.doctor/1")] {
        let ran = world.run(&[verb, "orders", "-o", "json", "-q"]);
        assert_eq!(ran.code, 0, "{verb}: {}", ran.stderr);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&value["schema"], &value["rows"]), (&json!(schema), &json!([])), "{verb}");
    }
}

#[test]
fn the_log_has_ids_as_strings_newest_first_and_what_can_be_read() {
    let world = World::with_orders();
    let log = world.json(&["log", "orders", "-o", "json"]);
    let column = |name: &str| log["rows"].as_array().unwrap().iter().map(|it| it[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("id"), ["7", "6", "5", "4", "3", "2", "1", "0"]);
    assert_eq!(column("readable"), vec![json!("yes"); 8]);
    assert_eq!(log["rows"][0]["refs"], json!(["HEAD"]));
    assert_eq!(log["rows"][7]["committed_at"], "2026-11-02T09:00:00.000Z");
    assert_eq!(log["rows"][7]["committed_at_ms"], 1_793_610_000_000_i64);
    assert_eq!(log["rows"][1]["operation"], "DELETE");
    assert!(log["rows"][1]["native"].is_object());
}

/// mission 9: which version can still be read, and what is missing.
#[test]
fn a_deleted_data_file_shows_in_log_and_doctor() {
    let world = World::with_orders();
    let files = world.json(&["files", "orders@0", "-o", "json"]);
    let gone = files["rows"][0]["path"].as_str().unwrap().to_owned();
    std::fs::remove_file(world.path("orders").join(&gone)).unwrap();
    let log = world.json(&["log", "orders", "-o", "json"]);
    let readable: Vec<&str> =
        log["rows"].as_array().unwrap().iter().map(|it| it["readable"].as_str().unwrap()).collect();
    assert_eq!(&readable[6..], ["files-missing 1", "files-missing 1"]);
    assert_eq!(readable[5], "yes", "the update of version 2 rewrote the file");
    let unchecked = world.json(&["log", "orders", "--no-check", "--limit", "1", "-o", "json"]);
    assert_eq!(unchecked["rows"][0]["readable"], "unchecked");
    let doctor = world.run(&["doctor", "orders", "-o", "json"]);
    assert_eq!(doctor.code, 0, "old versions are no error: {}", doctor.stdout);
    assert!(doctor.stdout.contains("L002"), "{}", doctor.stdout);
}

#[test]
fn the_doctor_exits_1_only_on_an_error() {
    let world = World::with_orders();
    let files = world.json(&["files", "orders", "-o", "json"]);
    std::fs::remove_file(world.path("orders").join(files["rows"][0]["path"].as_str().unwrap())).unwrap();
    let doctor = world.run(&["doctor", "orders", "-o", "json"]);
    assert_eq!(doctor.code, 1, "{}", doctor.stderr);
    let value: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert_eq!(value["rows"][0]["level"], "ERROR");
    assert!(value["rows"].as_array().unwrap().iter().filter(|it| it["level"] == "ERROR").count() == 1, "{value}");
}

#[test]
fn files_can_be_narrowed_and_their_bounds_are_objects() {
    let world = World::with_orders();
    let all = world.json(&["files", "orders", "-o", "json", "--limit", "1"]);
    assert_eq!(all["rows"].as_array().unwrap().len(), 1);
    assert!(all["rows"][0]["min"].is_object(), "{all}");
    assert!(all["rows"][0]["bytes"].is_number());
    let some = world.shown(&["files", "orders", "--columns", "rows,bytes", "-o", "csv"]);
    assert!(some.starts_with("rows,bytes\n"), "{some}");
}

#[test]
fn show_and_info_are_one_object() {
    let world = World::with_orders();
    let show = world.json(&["show", "orders@6", "-o", "json"]);
    let row = &show["rows"][0];
    assert_eq!((&row["id"], &row["operation"]), (&json!("6"), &json!("DELETE")));
    assert!(row["changes"]["files"].as_array().unwrap().iter().any(|it| it["change"] == "remove"), "{row}");
    assert!(row["parameters"]["predicate"].as_str().unwrap().contains("status"), "{row}");
    let info = world.json(&["info", "orders", "-o", "json"]);
    let row = &info["rows"][0];
    assert_eq!((&row["format"], &row["version"], &row["rows"]), (&json!("delta"), &json!("7"), &json!(4)));
    assert_eq!(row["columns"]["amount"], "decimal(10,2)");
}

#[test]
fn the_newest_of_history_cost_no_older_commit() {
    let world = World::with_orders();
    let commits = |args: &[&str]| {
        let ran = world.run(&[args, &["--explain"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let commit =
            |it: &&str| it.trim_start().starts_with("GET") && it.contains("_delta_log/0") && it.ends_with(".json");
        ran.stderr.lines().filter(commit).count()
    };
    let all = commits(&["log", "orders", "--no-check"]);
    assert_eq!(commits(&["log", "orders", "--no-check", "--limit", "2"]), all - 6);
    assert_eq!(commits(&["sql", "-c", "SELECT id, operation FROM delta.`./orders$history` LIMIT 2"]), 2);
    assert_eq!(commits(&["sql", "-c", "SELECT id, operation FROM delta.`./orders$history`"]), 8);
}

#[test]
fn progress_is_told_to_programs_a_line_an_event() {
    let world = World::with_orders();
    let ran = world.run(&["doctor", "orders", "-q", "--progress", "json"]);
    let events: Vec<Value> = ran.stderr.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let told: Vec<_> = events.iter().map(|it| (it["event"].as_str().unwrap(), it["what"].as_str().unwrap())).collect();
    assert_eq!(told, [("begin", "examining"), ("end", "examining")]);
    assert!(events[1]["ms"].is_number(), "{}", ran.stderr);
    assert_eq!(world.run(&["doctor", "orders", "--progress", "sometimes"]).code, 2);
}
