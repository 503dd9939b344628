//! Exit codes and messages: each names what is wrong and the next step.
use std::{
    io::Read as _,
    process::{Command, Stdio},
};

use crate::run::{World, command, lakebed_in, ran};

#[test]
fn every_failure_has_its_code_its_name_and_a_next_step() {
    let world = World::with_orders();
    std::fs::create_dir_all(world.path("void")).unwrap();
    let cases: [(&[&str], i32, &str, &str); 20] = [
        (&["log", "./nowhere"], 3, "E-NOT-FOUND", "there is no such folder"),
        (&["log", "./order"], 3, "E-NOT-FOUND", "did you mean"),
        (&["log", "./void"], 3, "E-NOT-FOUND", "looked for delta"),
        (&["log", "orders@99"], 3, "E-NOT-FOUND", "99"),
        (&["log", "ftp://host/t"], 2, "E-INVALID", "no store is known"),
        (&["head", "orders@{tomorrow-ish}"], 2, "E-INVALID", "tomorrow-ish"),
        (&["head", "orders@99999999999999999999"], 2, "E-INVALID", "99999999999999999999"),
        (&["head", "orders@~-1"], 2, "E-INVALID", "~-1"),
        (&["head", "orders@nobody"], 3, "E-NOT-FOUND", "nobody"),
        (&["at", "orders", "2020-01-01"], 3, "E-NOT-FOUND", "2026-11-02"),
        (&["sql", "-c", "SELEC 1"], 2, "E-INVALID", "hint"),
        (&["sql", "-c", "SELECT * FROM nothing"], 3, "E-NOT-FOUND", "nothing"),
        (&["sql", "-f", "nothing.sql"], 3, "E-NOT-FOUND", "hint: check the path"),
        (&["sql", "-f", "/dev/zero"], 11, "E-LIMIT", "8388608 bytes"),
        (&["sql", "-c", "FROM parquet('./nothing.parquet')"], 3, "E-NOT-FOUND", "hint: check the path"),
        (&["show", "orders@0..1"], 2, "E-INVALID", "range"),
        (&["head", "orders@0..1"], 2, "E-INVALID", "range"),
        (&["info", "orders", "--tz", "Nowhere/Land", "--timeout", "soon"], 2, "E-INVALID", "--timeout"),
        (&["-C", "nowhere", "info", "orders"], 3, "E-NOT-FOUND", "-C"),
        (&["log", "orders", "--columns", "opration"], 2, "E-INVALID", "did you mean `operation`?"),
    ];
    for (args, code, name, part) in cases {
        let ran = world.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with(&format!("error[{name}]: ")), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{args:?} lacks {part}: {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
}

#[test]
fn usage_mistakes_are_code_2_and_say_what_was_meant() {
    let world = World::new();
    let ran = world.run(&["timelin", "t"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("'timeline'"), "{}", ran.stderr);
    assert_eq!(world.run(&["log"]).code, 2);
    assert_eq!(world.run(&["log", "t", "-o", "xml"]).code, 2);
    assert_eq!(world.run(&["--version"]).code, 0);
}

#[test]
fn a_script_stops_at_its_first_failure_with_that_code() {
    let world = World::with_orders();
    let ran = world.run(&["sql", "-o", "json", "-c", "SELECT 1 AS a", "-c", "SELECT * FROM gone", "-c", "SELECT 3"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "[{\"a\":1}]\n"));
}

#[test]
fn nothing_of_a_script_runs_when_it_does_not_parse() {
    let ran = World::new().run(&["sql", "-o", "json", "-c", "SELECT 1; SELEC 2"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
}

#[test]
fn configuration_mistakes_name_file_and_line() {
    let world = World::with_orders();
    std::fs::write(world.path("lakebed.toml"), "[store.s3]\nregoin = 'x'\n").unwrap();
    let ran = world.run(&["info", "orders"]);
    assert_eq!(ran.code, 2);
    assert!(world.tidy(&ran.stderr).contains("/lakebed.toml:2: unknown key `store.s3.regoin`"), "{}", ran.stderr);
    // What does not depend on the configuration still works.
    assert_eq!(world.run(&["completions", "bash"]).code, 0);
    assert_eq!(world.run(&["man"]).code, 0);
}

#[test]
fn a_diff_answers_by_its_code_only_when_asked() {
    let world = World::with_orders();
    assert_eq!(world.run(&["diff", "orders@5", "@6"]).code, 0);
    assert_eq!(world.run(&["diff", "orders@5", "@6", "--exit-code"]).code, 1);
    assert_eq!(world.run(&["diff", "orders@5", "@5", "--exit-code"]).code, 0);
    assert_eq!(world.run(&["diff", "orders@5", "@6", "--schema", "--exit-code"]).code, 0);
}

#[test]
fn a_diff_takes_a_range() {
    let world = World::with_orders();
    let pair = world.shown(&["diff", "orders@5", "@6"]);
    assert_eq!(world.shown(&["diff", "orders@5..6"]), pair);
    assert_eq!(world.shown(&["diff", "orders@5..~1"]), world.shown(&["diff", "orders@5", "@~1"]));
    let cases: [&[&str]; 3] = [&["diff", "orders@5..6", "@7"], &["diff", "orders@5", "@6..7"], &["diff", "orders@..6"]];
    for args in cases {
        let ran = world.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("range") && ran.stderr.contains("hint: "), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_warning_is_shown_once() {
    let world = World::with_orders();
    std::fs::write(world.path("orders/_delta_log/_last_checkpoint"), "").unwrap();
    let cases: [&[&str]; 5] = [
        &["diff", "orders@^", "@~2"],
        &["head", "orders@~1"],
        &["log", "orders@^"],
        &["schema", "orders"],
        &["info", "orders@{2026-11-05}"],
    ];
    for args in cases {
        let ran = world.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        let mut lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(lines.iter().any(|it| it.starts_with("warning: _delta_log/_last_checkpoint is damaged")), "{lines:?}");
        lines.sort_unstable();
        assert!(lines.windows(2).all(|it| it[0] != it[1]), "{args:?}: {lines:#?}");
        assert_eq!(world.run(&[args, &["-q"]].concat()).stderr, "", "{args:?}");
    }
}

#[test]
fn a_reader_that_leaves_ends_the_command_silently() {
    let world = World::with_orders();
    let tables = ["a", "b", "c", "d", "e", "f"].map(|it| format!("delta.`./orders` VERSION AS OF 5 AS {it}"));
    let sql = format!("SELECT a.order_id FROM {}", tables.join(" CROSS JOIN "));
    for format in ["csv", "json", "table", "arrow"] {
        let mut child = command(world.root())
            .args(["sql", "-o", format, "-c", &sql])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0; 1];
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (141, ""), "{format}");
    }
}

#[test]
fn an_interrupt_ends_with_130() {
    let world = World::new();
    let sql = "SELECT count(*) FROM generate_series(1, 100000000000) a WHERE a.value % 7 = 3";
    let child =
        command(world.root()).args(["sql", "-c", sql]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_it_runs(child.id());
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (130, "interrupted\n"));
}

/// A process that has used so much time is past its start and listens to signals.
fn wait_until_it_runs(id: u32) {
    for _ in 0..10_000 {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(11);
        if ticks.and_then(|it| it.parse::<u64>().ok()).is_some_and(|it| it > 50) {
            return;
        }
        Command::new("sleep").arg("0.02").status().unwrap();
    }
    panic!("the process does not run");
}

#[test]
fn a_time_limit_is_a_limit() {
    let sql = "SELECT count(*) FROM generate_series(1, 100000000000) a WHERE a.value % 7 = 3";
    let ran = World::new().run(&["sql", "--timeout", "300ms", "-c", sql]);
    assert_eq!(ran.code, 11, "{}", ran.stderr);
    assert!(ran.stderr.contains("E-LIMIT") && ran.stderr.contains("--timeout"), "{}", ran.stderr);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a command takes is what is tested")]
fn a_time_limit_ends_planning_too() {
    // Nothing of it awaits anything: constants are folded while the statement is planned.
    let sorted: Vec<String> =
        (0..100).map(|it| format!("array_length(array_sort(range({}, 0, -1))) AS c{it}", 3_000_000 + it)).collect();
    let sql = format!("SELECT {}", sorted.join(", "));
    let start = std::time::Instant::now();
    let ran = World::new().run(&["sql", "--timeout", "300ms", "-c", &sql]);
    assert_eq!(ran.code, 11, "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: raise --timeout"), "{}", ran.stderr);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[test]
fn head_opens_its_table_once() {
    let world = World::with_orders();
    let ran = world.run(&["head", "orders", "--explain"]);
    let hints = ran.stderr.lines().filter(|it| it.contains("_last_checkpoint")).count();
    let info = world.run(&["info", "orders", "--explain"]);
    let once = info.stderr.lines().filter(|it| it.contains("_last_checkpoint")).count();
    assert_eq!((ran.code, hints), (0, once), "{}", ran.stderr);
}

#[test]
fn a_script_from_stdin_is_read_no_further_than_it_may_be_long() {
    let world = World::new();
    let zero = std::fs::File::open("/dev/zero").unwrap();
    let ran = ran(command(world.root()).arg("sql").stdin(zero).output().unwrap());
    assert_eq!(ran.code, 11, "{}", ran.stderr);
    assert!(!ran.stderr.contains("--memory"), "{}", ran.stderr);
}

#[test]
fn no_secret_reaches_any_stream() {
    let world = World::new();
    let mut command = command(world.root());
    command
        .env("LAKEBED_STORE_S3_CREDENTIALS", "env:CANARY_VAR")
        .env("CANARY_VAR", "access_key_id = 'CANARY-ID'\nbroken");
    let config = command.args(["config", "list", "--show-origin", "-o", "json"]).output().unwrap();
    let config = ran(config);
    assert!(config.stdout.contains("env:CANARY_VAR") && !config.stdout.contains("CANARY-ID"), "{}", config.stdout);
    let mut command = crate::run::command(world.root());
    command
        .env("LAKEBED_STORE_S3_CREDENTIALS", "env:CANARY_VAR")
        .env("CANARY_VAR", "access_key_id = 'CANARY-ID'\nbroken");
    let open = ran(command.args(["-vv", "log", "s3://bucket/t"]).output().unwrap());
    assert_eq!(open.code, 8, "{}", open.stderr);
    assert!(!open.stderr.contains("CANARY-ID"), "{}", open.stderr);
    let raw = lakebed_in(world.root(), &["log", "s3://AKIDCANARY:SECRETCANARY@bucket/t"]);
    assert_eq!(raw.code, 2);
    assert!(!raw.stderr.contains("CANARY"), "{}", raw.stderr);
}
