//! `lakebed sql`: scripts, formats, timing.
use std::{io::Write as _, process::Stdio};

use crate::run::{World, command, ran};

#[test]
fn json_is_one_bare_array_a_statement() {
    let world = World::with_orders();
    let sql = "SELECT order_id, amount, ordered_on FROM delta.`./orders` VERSION AS OF 0 ORDER BY order_id LIMIT 2; SELECT 1 AS one";
    let shown = world.shown(&["sql", "--format", "json", "-c", sql]);
    assert_eq!(
        shown,
        "[{\"order_id\":1,\"amount\":40.00,\"ordered_on\":\"2026-11-02\"},\n \
         {\"order_id\":2,\"amount\":12.50,\"ordered_on\":\"2026-11-02\"}]\n[{\"one\":1}]\n"
    );
}

#[test]
fn timing_is_one_json_line_a_statement_on_stderr() {
    let world = World::with_orders();
    let sql = "SELECT * FROM delta.`./orders`; SELECT 1";
    let ran = world.run(&["sql", "--timing", "-o", "csv", "-c", sql]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<serde_json::Value> = ran.stderr.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    for (at, line) in lines.iter().enumerate() {
        let mut keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let mut sorted = ["statement", "ms", "rows", "requests", "bytes_read"];
        sorted.sort_unstable();
        assert_eq!(keys, sorted);
        assert_eq!(line["statement"], at + 1);
    }
    assert!(lines[0]["requests"].as_u64().unwrap() > 1 && lines[0]["bytes_read"].as_u64().unwrap() > 1000);
    assert_eq!((&lines[1]["rows"], &lines[1]["requests"]), (&1.into(), &0.into()));
}

#[test]
fn two_results_are_no_arrow_output() {
    for format in ["arrow", "parquet"] {
        let output = command(World::new().root()).args(["sql", "-o", format, "-c", "SELECT 1; SELECT 2"]).output();
        // The first result is on stdout already, and it is bytes.
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("two results cannot be written as one arrow or parquet output"), "{stderr}");
    }
}

#[test]
fn scripts_come_from_flags_files_and_stdin_in_that_order() {
    let world = World::new();
    std::fs::write(world.path("a.sql"), "SELECT 2 AS n;\n-- the end\n").unwrap();
    assert_eq!(world.shown(&["sql", "-o", "csv", "-f", "a.sql", "-c", "SELECT 1 AS n"]), "n\n1\nn\n2\n");
    let mut child = command(world.root())
        .args(["sql", "-o", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"SELECT 3 AS n").unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "n\n3\n", ""));
}

#[test]
fn a_pipe_gets_tsv_and_never_an_escape() {
    let world = World::with_orders();
    let sql = "SELECT order_id, status FROM delta.`./orders` ORDER BY order_id LIMIT 1";
    assert_eq!(world.shown(&["sql", "-c", sql]), "order_id\tstatus\n4\topen\n");
    for args in [&["log", "orders", "-o", "table"][..], &["demo"], &["sql", "-o", "table", "-c", sql], &["help", "log"]]
    {
        let ran = world.run(args);
        assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{args:?}");
    }
}

/// RELIABILITY row 62.
#[test]
fn deep_sql_is_a_limit_and_not_a_crash() {
    let world = World::new();
    let deep = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    std::fs::write(world.path("deep.sql"), deep).unwrap();
    let ran = world.run(&["sql", "-f", "deep.sql"]);
    assert!(ran.code == 2 || ran.code == 11, "{}: {}", ran.code, ran.stderr);
}

#[test]
fn details_are_told_once_and_what_is_not_set_is_null() {
    let world = World::with_orders();
    let rows = world.json(&["sql", "-o", "json", "-c", "DESCRIBE DETAIL delta.`./orders`"]);
    let rows = rows.as_array().unwrap();
    let mut names: Vec<&str> = rows.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(rows.iter().all(|it| it["value"] != "null"), "{rows:?}");
    assert!(rows.iter().any(|it| it["name"] == "description" && it["value"].is_null()), "{rows:?}");
    names.sort_unstable();
    assert!(names.contains(&"partition_columns") && names.windows(2).all(|it| it[0] != it[1]), "{names:?}");
}
