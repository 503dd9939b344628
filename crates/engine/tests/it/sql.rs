//! Statements over Pond tables: each file of `cases` holds statements, the snapshot beside it what they answer.
use lakebed_core::ErrorKind;

use crate::world::World;

/// Runs every line of a file in one session, and shows each with its rows or its error.
async fn transcript(cases: &str) -> String {
    let world = World::new().await;
    let mut shown = Vec::new();
    for line in cases.lines().filter(|it| !it.trim().is_empty()) {
        if line.starts_with('#') {
            shown.push(format!("\n{line}"));
            continue;
        }
        let answer = match world.run(line).await {
            Ok(rows) => rows,
            Err(err) => match err.hint() {
                Some(hint) => format!("{:?}: {err}\nhint: {hint}", err.kind()),
                None => format!("{:?}: {err}", err.kind()),
            },
        };
        shown.push(format!("> {line}\n{answer}"));
    }
    shown.join("\n")
}

macro_rules! transcripts {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            let shown = transcript(include_str!(concat!("cases/", stringify!($name), ".sql"))).await;
            insta::assert_snapshot!(shown);
        })*
    };
}

transcripts!(versions, names, virtual_columns, system_tables, functions, statements, explain);

#[tokio::test]
async fn one_statement_reads_one_version_of_a_table() {
    let world = World::new().await;
    world.store.clear_log();
    world.run("SELECT count(*) FROM orders").await.expect("it can be read");
    let once = world.store.requests();
    world.store.clear_log();
    world.run("SELECT count(*) FROM orders WHERE Id IN (SELECT \"Id\" FROM orders)").await.expect("it can be read");
    // Data files are read twice, metadata once.
    assert!(world.store.requests() <= 2 * once, "{} requests against {once}", world.store.requests());
}

#[tokio::test]
async fn the_longest_chain_runs() {
    let world = World::new().await;
    let sql = format!("SELECT 1{} AS n", " + 1".repeat(500));
    assert_eq!(world.run(&sql).await.expect("it is long, not deep"), "n\n501");
    let sql = format!("SELECT Id FROM orders WHERE {}", vec!["id = 1"; 500].join(" OR "));
    assert_eq!(world.run(&sql).await.expect("it is long, not deep"), "Id\n1");
}

#[tokio::test]
async fn a_query_beyond_its_memory_spills_or_is_a_limit() {
    let world = World::new().await;
    let sorted = "SELECT count(*) AS n FROM (SELECT row_number() OVER (ORDER BY v) AS place, v \
         FROM (SELECT -value AS v FROM generate_series(1, 1500000))) WHERE place + v = 1";
    world.run(sorted).await.expect("a sort spills");
    let gathered =
        world.run("SELECT array_length(array_agg(repeat('x', 100) || value)) FROM generate_series(1, 400000)");
    assert_eq!(gathered.await.expect_err("one array does not fit").kind(), ErrorKind::Limit);
}

#[tokio::test]
async fn a_call_that_would_fill_the_memory_is_a_limit_before_it_starts() {
    let world = World::new().await;
    for call in [
        "repeat('a', 1500000000)",
        "repeat('ab', 1000000 + length(name)) || ''",
        "lpad('a', 1500000000)",
        "rpad(name, 1500000000, 'é')",
        "array_repeat(1, 1500000000)",
        "array_resize([1], 1500000000)",
        "range(1500000000)",
        "generate_series(-1500000000, 1500000000, 2)",
        "range(DATE '0001-01-01', DATE '9999-12-31', INTERVAL 1 DAY)",
    ] {
        let err = world.run(&format!("SELECT {call} FROM orders")).await.expect_err(call);
        assert_eq!(err.kind(), ErrorKind::Limit, "{call}: {err}");
        assert!(err.hint().is_some_and(|it| it.contains("--memory")), "{call}: {err}");
    }
    let small = "SELECT repeat('ab', 2) || lpad('a', 3, '.') || rpad('b', 2, '.') AS t, \
         array_length(range(1, 10, 2)) AS n, array_length(array_repeat('x', 4)) AS m, \
         array_length(generate_series(DATE '2026-01-01', DATE '2026-01-03', INTERVAL 1 DAY)) AS d";
    assert_eq!(world.run(small).await.expect("it is small"), "t|n|m|d\nabab..ab.|5|4|3");
}

#[tokio::test]
async fn a_text_that_stands_for_billions_of_relations_is_a_limit() {
    let world = World::new().await;
    let mut ctes = vec!["c0 AS (SELECT 1 AS x)".to_owned()];
    ctes.extend((1..40).map(|it| format!("c{it} AS (SELECT a.x FROM c{} a, c{} b)", it - 1, it - 1)));
    let err = world.run(&format!("WITH {} SELECT * FROM c39", ctes.join(", "))).await.expect_err("a bomb");
    assert_eq!(err.kind(), ErrorKind::Limit, "{err}");
    world.run("CREATE TEMPORARY VIEW v0 AS SELECT 1 AS x").await.expect("a view");
    let mut last = Ok(String::new());
    for it in 1..12 {
        let from: Vec<String> = (0..8).map(|at| format!("v{} AS r{at}", it - 1)).collect();
        last = world.run(&format!("CREATE TEMPORARY VIEW v{it} AS SELECT r0.x FROM {}", from.join(", "))).await;
        if last.is_err() {
            break;
        }
    }
    assert_eq!(last.expect_err("a bomb").kind(), ErrorKind::Limit);
    let wide = (1..25).map(|it| format!("w{it} AS (SELECT a.*, b.* FROM w{} a, w{} b)", it - 1, it - 1));
    let wide: Vec<String> = std::iter::once("w0 AS (SELECT 1 AS x)".to_owned()).chain(wide).collect();
    let err = world.run(&format!("WITH {} SELECT 1 FROM w24", wide.join(", "))).await.expect_err("a bomb");
    assert_eq!(err.kind(), ErrorKind::Limit, "{err}");
}

#[tokio::test]
async fn format_ends_a_statement_and_final_is_no_alias() {
    let world = World::new().await;
    for (sql, format) in [
        ("SELECT 1 FORMAT json", Some("json")),
        ("SELECT 1 AS a FORMAT csv", Some("csv")),
        ("SELECT count(*) FROM orders FORMAT json", Some("json")),
        ("SELECT Id format FROM orders", None),
        ("SELECT 1 format, 2 x", None),
        ("SELECT 1 AS format", None),
    ] {
        let statements = world.session.parse(sql).expect(sql);
        let output = world.session.run(&statements[0]).await.expect(sql);
        assert_eq!(output.format.as_deref(), format, "{sql}");
    }
    for sql in ["SELECT * FROM orders FINAL", "SELECT * FROM orders AS o FINAL WHERE id = 1"] {
        assert_eq!(world.session.parse(sql).expect_err(sql).kind(), ErrorKind::Unsupported, "{sql}");
    }
    assert!(world.session.parse("SELECT * FROM orders AS final").is_ok());
}

#[tokio::test]
async fn a_system_table_nobody_knows_is_answered_with_those_there_are() {
    let world = World::new().await;
    let hint = |err: lakebed_core::Error| err.hint().unwrap_or_default().to_owned();
    let near = world.run("SELECT * FROM orders$hsitory").await.expect_err("no such");
    assert_eq!((near.kind(), hint(near).as_str()), (ErrorKind::NotFound, "did you mean `$history`?"));
    let far = world.run("SELECT * FROM \"orders$whatever@1\"").await.expect_err("no such");
    assert!(hint(far).contains("$files, $refs"));
}
