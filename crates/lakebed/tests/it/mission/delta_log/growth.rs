//! Items 6 and 10: what opening costs as the log grows.
use std::{collections::BTreeSet, time::Duration};

use futures::TryStreamExt;
use lakebed_testkit::store::Op;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use serde_json::json;

use super::commit_name;
use crate::mission::Counted;

/// Objects of the log with this ending that were read, each once.
fn read(world: &Counted, ending: &str) -> BTreeSet<String> {
    let log = world.store.log().into_iter().filter(|it| it.op == Op::Get && it.path.contains("_delta_log/"));
    log.map(|it| it.path).filter(|it| it.ends_with(ending)).collect()
}

#[tokio::test]
async fn item_06_after_a_thousand_commits_one_parquet_and_at_most_nine_json() {
    let world = Counted::new();
    world.run("CREATE TABLE {t} (id BIGINT)").await;
    let mut newest = 0;
    for id in 1..=100 {
        // Ten commits: one brings a row, nine are about properties.
        world.run(&format!("INSERT INTO {{t}} VALUES ({id})")).await;
        for at in 0..9 {
            world.run(&format!("ALTER TABLE {{t}} SET TBLPROPERTIES ('mine' = '{id}.{at}')")).await;
        }
        newest += 10;
    }
    assert_eq!(newest, 1_000);
    for (beyond, json_files) in [(0, 0), (9, 9)] {
        for at in 0..beyond {
            world.run(&format!("INSERT INTO {{t}} VALUES ({})", 1_000 + at)).await;
        }
        let reader = world.restarted();
        assert_eq!(reader.run("SELECT count(*), min(id) FROM {t}").await, [format!("{}  1", 100 + beyond)]);
        let (parquet, json) = (read(&reader, ".parquet"), read(&reader, ".json"));
        assert_eq!(parquet.iter().collect::<Vec<_>>(), ["t/_delta_log/00000000000000001000.checkpoint.parquet"]);
        assert_eq!(json.len(), json_files, "{json:?}");
        assert_eq!(reader.store.count(Op::List), 1, "and one listing");
        assert!(read(&reader, "_last_checkpoint").len() == 1, "found by the hint");
    }
    let kept: Vec<_> = world.store.list(Some(&Path::from("t/_delta_log"))).try_collect().await.unwrap();
    let checkpoints = kept.iter().filter(|it| it.location.as_ref().ends_with(".checkpoint.parquet")).count();
    assert_eq!(checkpoints, 100, "every ten versions one");
}

const VERSIONS: u64 = 5_000;
/// The mission's source tells of thirty seconds; this is a debug build beside other tests.
const FAST: Duration = Duration::from_secs(20);

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
async fn item_10_five_thousand_versions_without_a_checkpoint_still_open() {
    let world = Counted::new();
    world.run("CREATE TABLE {t} (id BIGINT) TBLPROPERTIES ('delta.checkpointInterval' = '1000000')").await;
    world.run("INSERT INTO {t} VALUES (1), (2)").await;
    for version in 2..VERSIONS {
        let lines = [
            json!({"commitInfo": {"timestamp": version, "operation": "STREAMING UPDATE", "operationParameters": {}}}),
            json!({"txn": {"appId": format!("stream-{}", version % 10), "version": version}}),
        ];
        let body = lines.map(|it| it.to_string()).join("\n");
        let key = Path::from(format!("t/_delta_log/{}", commit_name(version)));
        world.store.put(&key, PutPayload::from(body)).await.unwrap();
    }
    let reader = world.restarted();
    let started = std::time::Instant::now();
    assert_eq!(reader.run("SELECT sum(id) FROM {t}").await, ["3"]);
    let took = started.elapsed();
    assert!(took < FAST, "{took:?}");
    assert_eq!(read(&reader, ".json").len() as u64, VERSIONS, "each commit once");
    let requests = reader.store.requests() as u64;
    assert!(requests <= VERSIONS + 10, "{requests} requests");
    world.restarted().run("CALL system.checkpoint(table => '{t}')").await;
    let reader = world.restarted();
    let started = std::time::Instant::now();
    assert_eq!(reader.run("SELECT sum(id) FROM {t}").await, ["3"]);
    assert!(started.elapsed() < took.min(Duration::from_secs(5)), "{:?} after {took:?}", started.elapsed());
    assert_eq!((read(&reader, ".json").len(), read(&reader, ".parquet").len()), (0, 1));
    assert!(reader.store.requests() <= 8, "{:#?}", reader.store.log());
}
