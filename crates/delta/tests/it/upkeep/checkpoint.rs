//! A checkpoint holds the whole state: without the log before it the table is the same.
use std::sync::Arc;

use arrow_cast::pretty::pretty_format_batches;
use arrow_schema::SchemaRef;
use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind,
    commit::{Committed, StoragePublisher},
    listing::ListingColumns,
    maintain::{self, Maintenance},
    path::FilePath,
    scan::Scan,
    table::{Snapshot, Table},
};
use lakebed_delta::DeltaSnapshot;
use lakebed_testkit::{
    corpus::{self, Case, Expect},
    env,
    seed::Seed,
    store::Op,
};
use serde_json::{Value, json};

use super::{Yard, add};
use crate::world::{World, checkpoint_bytes, metadata, open, state_lines};

/// All that a state says, but for what a checkpoint does not know: when a file came.
async fn described(snapshot: &Arc<DeltaSnapshot>) -> (String, SchemaRef) {
    let columns = ListingColumns { added_in: false, ..ListingColumns::ALL };
    let batches: Vec<_> = snapshot.files(&Scan::all(), columns).try_collect().await.unwrap();
    let listed = pretty_format_batches(&batches).unwrap().to_string();
    let mut listed: Vec<&str> = listed.lines().filter(|it| !it.starts_with('+')).collect();
    listed.sort_unstable();
    let facts: Vec<_> = snapshot.facts().into_iter().filter(|it| it.0 != "warnings").collect();
    let totals = snapshot.totals().await.unwrap();
    let text = format!("{}\n{facts:?}\n{totals:?}\n{}", snapshot.version().id, listed.join("\n"));
    (text, Arc::clone(snapshot.schema()))
}

/// The log of a case in memory.
async fn copied(case: &Case) -> World {
    let world = World::new();
    let log = case.table().join("_delta_log");
    let mut folders = vec![log.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(&log).unwrap().to_str().unwrap().to_owned();
                    world.put(&name, std::fs::read(&path).unwrap()).await;
                }
            }
        }
    }
    world
}

async fn checkpoint(world: &World) -> lakebed_core::Result<usize> {
    let table = world.table().await;
    let plan = table.plan(&Maintenance::Checkpoint).await?;
    let steps = plan.steps.len();
    let applied = maintain::run(table.as_ref(), &StoragePublisher, &env::env(Seed(3)), plan).await?;
    assert!(applied.stopped.is_none(), "{applied:?}");
    Ok(steps)
}

/// Deletes all of the log that a checkpoint of `version` stands for, but for that version's own commit.
async fn forget(world: &World, version: u64) {
    let names: Vec<String> =
        world.storage().list_after("_delta_log", "").map_ok(|it| it.path).try_collect().await.unwrap();
    for path in names {
        let name = path.rsplit('/').next().unwrap();
        let of = name.get(..20).and_then(|it| it.parse::<u64>().ok());
        if of.is_some_and(|it| it < version) || name.contains("compacted") || name.ends_with(".crc") {
            world.delete(name).await;
        }
    }
}

#[tokio::test]
async fn tables_of_other_engines_are_the_same_from_a_checkpoint_of_ours() {
    let (mut written, mut cases) = (0, 0);
    for case in corpus::cases("delta").into_iter().filter(|it| it.spec.expect == Expect::Rows) {
        let world = copied(&case).await;
        let Ok(before) = world.latest().await else { continue };
        if before.totals().await.is_err() {
            continue;
        }
        cases += 1;
        let expected = described(&before).await;
        let version: u64 = before.version().id.as_str().parse().unwrap();
        match checkpoint(&world).await {
            Ok(0) => continue,
            Ok(_) => written += 1,
            Err(err) => {
                assert_eq!(err.kind(), ErrorKind::Unsupported, "{}: {err}", case.name);
                continue;
            }
        }
        for hinted in [true, false] {
            if !hinted {
                world.delete("_last_checkpoint").await;
            }
            assert_eq!(described(&world.latest().await.unwrap()).await, expected, "{}", case.name);
            forget(&world, version).await;
            let after = world.latest().await.unwrap();
            assert_eq!(described(&after).await, expected, "{} without its log", case.name);
            let warnings = after.warnings();
            assert!(!warnings.iter().any(|it| it.contains("_last_checkpoint")), "{}: {warnings:?}", case.name);
        }
    }
    assert!(written * 2 > cases || cases == 0, "{written} of {cases} cases");
}

#[tokio::test]
async fn statistics_in_columns_become_text() {
    let Some(case) = corpus::case("delta", "checkpoint-struct-stats-only") else { return };
    let world = copied(&case).await;
    // A version on top, so that a new checkpoint is due.
    world.commit(6, &[json!({"commitInfo": {"operation": "WRITE"}})]).await;
    let expected = described(&world.latest().await.unwrap()).await;
    assert!(expected.0.contains(r#"{"id":"#), "bounds were read: {}", expected.0);
    assert_eq!(checkpoint(&world).await.unwrap(), 2);
    forget(&world, 6).await;
    assert_eq!(described(&world.latest().await.unwrap()).await, expected);
}

#[tokio::test]
async fn everything_an_add_says_is_said_again() {
    let mut yard = Yard::with(
        json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors", "domainMetadata", "rowTracking"]}}),
        metadata(&["day"], json!({"a": "b"})),
    )
    .await;
    let full = json!({"add": {
        "path": "day=1/a%20b.parquet", "partitionValues": {"day": "2026-11-01"}, "size": 9, "modificationTime": 5,
        "dataChange": true, "stats": "{\"numRecords\":3,\"minValues\":{\"id\":1}}", "tags": {"k": "v", "n": null},
        "deletionVector": {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4,
            "sizeInBytes": 40, "cardinality": 1},
        "baseRowId": 17, "defaultRowCommitVersion": 1, "clusteringProvider": "liquid",
    }});
    let null = json!({"add": {"path": "n.parquet", "partitionValues": {"day": null}, "size": 1, "modificationTime": 6,
        "dataChange": true}});
    let txn = json!({"txn": {"appId": "job", "version": 7, "lastUpdated": 3}});
    let domain = json!({"domainMetadata": {"domain": "d", "configuration": "c", "removed": false}});
    yard.commit(&[full.clone(), null.clone(), txn.clone(), domain.clone(), yard.removal("gone.parquet")]).await;
    yard.keep_up(&Maintenance::Checkpoint).await;
    // Twice: the second time from the checkpoint, which is read column by column.
    for version in [1, 2] {
        let lines = rows_of(&yard, version).await;
        let mut expected = full.clone();
        expected["add"]["dataChange"] = json!(false);
        let found = lines.iter().find(|it| it["add"]["baseRowId"] == json!(17)).unwrap();
        let mut found = found.clone();
        // Null values are left out by the writer of this test's JSON.
        expected["add"]["tags"] = json!({"k": "v"});
        found["add"].as_object_mut().unwrap().retain(|_, it| !it.is_null());
        assert_eq!(found, expected, "version {version}");
        assert!(lines.contains(&txn) && lines.contains(&domain), "{lines:?}");
        let removed = lines.iter().find(|it| !it["remove"].is_null()).unwrap();
        assert_eq!((&removed["remove"]["path"], &removed["remove"]["size"]), (&json!("gone.parquet"), &json!(4)));
        assert!(lines.iter().all(|it| it.get("commitInfo").is_none()));
        let protocols: Vec<&Value> = lines.iter().filter(|it| !it["protocol"].is_null()).collect();
        assert_eq!(protocols.len(), 1);
        if version == 1 {
            yard.commit(&[json!({"commitInfo": {}})]).await;
            yard.keep_up(&Maintenance::Checkpoint).await;
        }
    }
}

/// The actions of a classic checkpoint.
async fn rows_of(yard: &Yard, version: u64) -> Vec<Value> {
    let path = FilePath::below(format!("_delta_log/{version:020}.checkpoint.parquet"));
    let body = yard.storage().read(&path).await.unwrap().unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(body).unwrap().build().unwrap();
    let mut text = Vec::new();
    let mut writer = arrow_json::LineDelimitedWriter::new(&mut text);
    for batch in reader {
        writer.write(&batch.unwrap()).unwrap();
    }
    writer.finish().unwrap();
    String::from_utf8(text).unwrap().lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[tokio::test]
async fn old_tombstones_and_transactions_are_forgotten() {
    let mut yard = Yard::new(json!({"delta.setTransactionRetentionDuration": "interval 5 days"})).await;
    let now = |yard: &Yard| yard.env.clock.now().0;
    let txn = |id: &str, at: i64| json!({"txn": {"appId": id, "version": 1, "lastUpdated": at}});
    yard.commit(&[txn("old", now(&yard)), json!({"txn": {"appId": "timeless", "version": 1}})]).await;
    yard.commit(&[yard.removal("old.parquet"), json!({"remove": {"path": "timeless.parquet", "dataChange": true}})])
        .await;
    yard.days(6);
    yard.commit(&[txn("new", now(&yard)), yard.removal("new.parquet")]).await;
    yard.days(2);
    yard.keep_up(&Maintenance::Checkpoint).await;
    let lines = rows_of(&yard, 3).await;
    let named = |kind: &str, field: &str| {
        let mut found: Vec<String> =
            lines.iter().filter_map(|it| it[kind][field].as_str().map(str::to_owned)).collect();
        found.sort();
        found
    };
    assert_eq!(named("remove", "path"), ["new.parquet"]);
    assert_eq!(named("txn", "appId"), ["new", "timeless"]);
}

#[tokio::test]
async fn a_v2_checkpoint_has_sidecars_when_it_is_large() {
    let v2 = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"]}});
    for (files, sidecars) in [(3_usize, 0), (10_001, 1), (100_001, 2)] {
        let mut yard = Yard::with(v2.clone(), metadata(&[], json!({"delta.checkpointPolicy": "v2"}))).await;
        let lines: Vec<Value> = (0..files).map(|it| add(&format!("{it}.parquet"))).collect();
        yard.commit(&lines).await;
        yard.keep_up(&Maintenance::Checkpoint).await;
        assert_eq!(yard.names("_delta_log/_sidecars").await.len(), sidecars, "{files}");
        let names = yard.log_names().await;
        assert!(names.contains("1.checkpoint.") && !names.contains("1.checkpoint "), "a V2 name: {names}");
        let first = FilePath::below("_delta_log/00000000000000000000.json");
        assert_eq!(yard.storage().delete(&[first]).await.unwrap().removed.len(), 1);
        yard.store.clear_log();
        let snapshot = yard.table().await.latest().await.unwrap();
        assert_eq!(snapshot.totals().await.unwrap().files, files as u64);
        assert_eq!(snapshot.warnings(), [""; 0]);
        // Hint and listing; then the checkpoint, or its sidecars alone, since the hint repeats the rest.
        let reads = yard.store.count(Op::Get);
        assert!(reads <= 2 + sidecars.max(1) * 2, "{reads} reads for {sidecars} sidecars");
    }
}

#[tokio::test]
async fn a_checkpoint_is_two_requests_and_the_hint_comes_last() {
    let world = World::with_versions(13).await;
    let table = world.table().await;
    let snapshot = table.latest().await.unwrap();
    snapshot.totals().await.unwrap();
    world.store.clear_log();
    let plan = table.plan(&Maintenance::Checkpoint).await.unwrap();
    let applied = maintain::run(table.as_ref(), &StoragePublisher, &env::env(Seed(3)), plan).await.unwrap();
    assert!(applied.stopped.is_none(), "{applied:?}");
    let log = world.store.log();
    let shown: Vec<String> = log.iter().map(|it| format!("{:?} {}", it.op, it.path)).collect();
    let expected = [
        "List t/_delta_log",
        "Create t/_delta_log/00000000000000000013.checkpoint.parquet",
        "Put t/_delta_log/_last_checkpoint",
    ];
    assert_eq!(shown, expected);
    let hint: Value = serde_json::from_slice(&world.get("_last_checkpoint").await).unwrap();
    assert_eq!((&hint["version"], &hint["size"], &hint["numOfAddFiles"]), (&json!(13), &json!(16), &json!(14)));
    let warnings = world.warnings().await;
    assert_eq!(warnings, [""; 0], "its checksum verifies");
}

#[tokio::test]
async fn a_hint_is_never_written_backwards_and_mended_when_it_lags() {
    let world = World::with_versions(5).await;
    world.put("00000000000000000005.checkpoint.parquet", checkpoint_bytes(&state_lines(5))).await;
    assert_eq!(checkpoint(&world).await.unwrap(), 1, "a checkpoint without a hint gets one");
    assert_eq!(checkpoint(&world).await.unwrap(), 0, "nothing is left to do");
    let hint: Value = serde_json::from_slice(&world.get("_last_checkpoint").await).unwrap();
    assert_eq!(hint["version"], json!(5));
    world.put("_last_checkpoint", json!({"version": 99, "size": 1}).to_string()).await;
    assert_eq!(checkpoint(&world).await.unwrap(), 0);
}

#[tokio::test]
async fn a_checkpoint_is_due_every_so_many_versions_and_log_clean_up_with_it() {
    for (configuration, version, expected) in [
        (json!({}), 9, vec![]),
        (json!({}), 10, vec!["Checkpoint", "Expire"]),
        (json!({"delta.checkpointInterval": "3"}), 9, vec!["Checkpoint", "Expire"]),
        (json!({"delta.checkpointInterval": "nonsense"}), 20, vec!["Checkpoint", "Expire"]),
        (json!({"delta.enableExpiredLogCleanup": "false"}), 10, vec!["Checkpoint"]),
        (json!({"delta.logRetentionDuration": "interval 1 month"}), 10, vec!["Checkpoint"]),
        (json!({}), 0, vec![]),
    ] {
        let yard = Yard::new(configuration.clone()).await;
        let table = yard.table().await;
        let mut version_of = table.latest().await.unwrap().version().clone();
        version_of.id = version.into();
        let due = table.due(&Committed { version: version_of, rebased: 0 }).await.unwrap();
        let due: Vec<String> =
            due.iter().map(|it| format!("{it:?}").split(['(', ' ']).next().unwrap().to_owned()).collect();
        assert_eq!(due, expected, "{configuration} {version}");
    }
}

#[tokio::test]
async fn a_table_of_unknown_writer_features_is_left_alone() {
    let yard = Yard::with(
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["timeCrystal"]}}),
        metadata(&[], json!({})),
    )
    .await;
    let err = yard.plan(&Maintenance::Checkpoint).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unsupported);
    assert!(err.to_string().contains("`timeCrystal`"), "{err}");
}

#[tokio::test]
async fn a_damaged_checkpoint_does_not_stop_the_next() {
    let world = World::with_versions(6).await;
    world.checkpoint(3).await;
    let mut body = world.get("00000000000000000003.checkpoint.parquet").await.to_vec();
    let middle = body.len() / 2;
    body.truncate(middle);
    world.put("00000000000000000003.checkpoint.parquet", body).await;
    let expected = described(&world.latest().await.unwrap()).await;
    checkpoint(&world).await.unwrap();
    forget(&world, 6).await;
    assert_eq!(described(&open(world.storage()).await.latest().await.unwrap()).await, expected);
}
