//! What is told of a table beside its rows, over every table of the corpus.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::cast::AsArray;
use futures::TryStreamExt;
use lakebed_core::{
    extension::Arguments,
    format::TableFormat,
    scan::Scan,
    table::{Level, Table},
    timeline::{Action, Timeline},
    version::{AsOf, Millis, Span},
};
use lakebed_delta::Delta;
use lakebed_testkit::corpus::{self, Case, Expect};

use crate::world::open;

async fn table(case: &Case) -> Arc<dyn Table> {
    open(case.storage().unwrap()).await
}

fn readable() -> impl Iterator<Item = Case> {
    corpus::cases("delta").into_iter().filter(|it| it.spec.expect == Expect::Rows)
}

#[tokio::test]
async fn every_table_has_a_history_whose_times_ascend() {
    for case in corpus::cases("delta") {
        let timeline: Timeline = table(&case).await.timeline(&Span::all()).await.unwrap();
        let versions: Vec<_> = timeline.versions().collect();
        assert!(!versions.is_empty(), "{}", case.name);
        assert!(versions.windows(2).all(|it| it[0].committed_at <= it[1].committed_at), "{}", case.name);
        let told = timeline.instants().iter().filter(|it| it.action != Action::Other).count();
        assert!(told > 0, "{}: {:?}", case.name, timeline.instants());
    }
}

#[tokio::test]
async fn doctor_finds_errors_where_reading_fails_and_only_there() {
    for case in corpus::cases("delta") {
        let findings = table(&case).await.examine().await.unwrap();
        let errors: Vec<_> = findings.iter().filter(|it| it.level == Level::Error).collect();
        assert_eq!(!errors.is_empty(), case.spec.expect == Expect::Error, "{}: {errors:#?}", case.name);
    }
}

#[tokio::test]
async fn changes_add_up_to_the_snapshot() {
    for case in readable() {
        let table = table(&case).await;
        let changes = table.changes(&Span::all()).try_collect::<Vec<_>>().await;
        // Where old commits are gone, so is what they changed.
        let Ok(changes) = changes.map(|it| it.into_iter().collect::<Vec<_>>()) else { continue };
        if changes.first().is_none_or(|it| it.version.id.as_str() != "0") {
            continue;
        }
        let mut live = BTreeMap::new();
        for delta in changes {
            for gone in &delta.rows.removed {
                live.remove(&gone.path);
            }
            for file in delta.rows.added {
                let vector = delta.rows.added_deletes.iter().find(|it| it.targets.contains(&file.path));
                live.insert(file.path.clone(), (file.bytes, vector.and_then(|it| it.id.clone()), file.partition));
            }
        }
        let snapshot = table.snapshot(&AsOf::Latest).await.unwrap();
        let tasks: Vec<_> = snapshot.tasks(&Scan::all()).try_collect().await.unwrap();
        let read = tasks.into_iter().map(|mut it| {
            let file = it.files.remove(0);
            (file.path, (file.bytes, it.deletes.first().and_then(|it| it.id.clone()), file.partition))
        });
        assert_eq!(live, read.collect(), "{}", case.name);
    }
}

#[tokio::test]
async fn every_version_is_found_by_its_own_moment() {
    for case in readable() {
        let table = table(&case).await;
        let timeline = table.timeline(&Span::all()).await.unwrap();
        for version in timeline.versions() {
            let Ok(by_number) = table.resolve(&AsOf::Version(version.id.clone())).await else { continue };
            let by_time = table.resolve(&AsOf::Time(version.committed_at)).await.unwrap();
            assert_eq!((&by_time.version, &by_number.version.id), (version, &version.id), "{}", case.name);
        }
        let early = table.resolve(&AsOf::Time(Millis(0))).await.unwrap_err();
        assert!(early.to_string().starts_with("no version is as old as"), "{early}");
    }
}

async fn rows(case: &Case, name: &str) -> Vec<String> {
    let extensions = Delta.extensions();
    let found = extensions.functions.iter().chain(&extensions.system_tables).find(|it| it.name == name).unwrap();
    let batches = found.rows.rows(&table(case).await, &Arguments::default()).await.unwrap();
    let mut lines = Vec::new();
    for batch in batches {
        assert_eq!(batch.schema(), found.schema);
        let formatted: Vec<_> = batch
            .columns()
            .iter()
            .map(|it| arrow_cast::display::ArrayFormatter::try_new(it.as_ref(), &Default::default()).unwrap())
            .collect();
        lines.extend(
            (0..batch.num_rows())
                .map(|row| formatted.iter().map(|it| it.value(row).to_string()).collect::<Vec<_>>().join(" | ")),
        );
    }
    lines
}

#[tokio::test]
async fn the_format_s_own_tables_have_rows() {
    let Some(case) = corpus::case("delta", "set-transaction") else { return };
    let names =
        |it: Vec<String>| it.iter().map(|it| it.split(" | ").take(2).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    assert_eq!(names(rows(&case, "transactions").await), ["my-app 3", "my-app2 2"]);
    let log = rows(&case, "delta_log").await;
    assert!(log.iter().any(|it| it.contains("| txn |") && it.contains("my-app2")), "{log:#?}");

    let case = corpus::case("delta", "liquid-clustering-row-tracking").unwrap();
    let domains = rows(&case, "domains").await;
    assert!(
        domains[0].starts_with("delta.liquid | {") && domains[1].starts_with("delta.rowTracking | {"),
        "{domains:?}"
    );

    let case = corpus::case("delta", "unknown-reader-feature").unwrap();
    let protocol = rows(&case, "protocol").await;
    assert!(protocol[0].contains("table needs reader version 5"), "{protocol:?}");
}

#[tokio::test]
async fn an_answer_in_arrow_has_the_schema_it_promised() {
    let Some(case) = corpus::case("delta", "dv-inline") else { return };
    let extension = Delta.extensions().functions.remove(0);
    let arguments = Arguments { as_of: Some(AsOf::Version(0.into())), ..Arguments::default() };
    let batches = extension.rows.rows(&table(&case).await, &arguments).await.unwrap();
    assert_eq!(batches.len(), 1, "one commit up to version 0");
    let names = batches[0].column_by_name("action").unwrap().as_string::<i32>();
    assert!(names.iter().flatten().any(|it| it == "protocol"));
}
