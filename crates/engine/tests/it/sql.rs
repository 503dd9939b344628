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
