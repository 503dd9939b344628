//! What went wrong in other implementations, as far as it is a matter of opening tables and of the log, and does not here.
use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind,
    change::Change,
    env::{Clock, Env},
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    listing::ListingColumns,
    maintain::{Body, Maintenance, Step},
    scan::{Scan, ScanTask},
    table::{Snapshot, Table},
    timeline::Action,
    version::{AsOf, Millis, Span, VersionId},
};
use lakebed_testkit::{
    conformance::{Subject, World as Sea, commit, ids, location, rows},
    env::{ManualClock, START, SeededIds},
    pond::intent,
    seed::Seed,
    store::{Fault, FaultyStore, Op, Times},
};
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::{Value, json};

use crate::{
    foreigner::commit_path,
    world::{World, add, as_of, checkpoint_bytes, names, paths, protocol, text},
    written::Written,
};

/// delta-kernel-rs 2579 and 582: the hint names a checkpoint that was cleaned up, or one that lacks a part. The log is
/// listed from its start, and only what leads from a whole base to the version counts.
#[tokio::test]
async fn a_hint_that_leads_nowhere_does_not_make_the_table_unreadable() {
    let gone = World::with_versions(13).await;
    gone.put("_last_checkpoint", r#"{"version":10,"size":14}"#).await;
    let parts = World::with_versions(13).await;
    parts.put("00000000000000000010.checkpoint.0000000001.0000000002.parquet", checkpoint_bytes(&[protocol()])).await;
    parts.put("_last_checkpoint", r#"{"version":10,"size":14,"parts":2}"#).await;
    let older = World::with_versions(13).await;
    older.checkpoint(5).await;
    older.put("_last_checkpoint", r#"{"version":10,"size":14}"#).await;
    for version in 0..5 {
        older.delete(&format!("{version:020}.json")).await;
    }
    for world in [&gone, &parts, &older] {
        assert_eq!(world.files().await, Ok(names(0..=13)));
        let warnings = world.warnings().await;
        assert!(warnings.iter().any(|it| it.contains("checkpoint 10")), "{warnings:?}");
    }
    // Without a base there is nothing to guess from.
    for world in [&gone, &parts] {
        world.delete("00000000000000000000.json").await;
        let err = world.latest().await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Corrupt);
        assert!(err.to_string().contains("log version 0 is gone"), "{err}");
    }
}

/// delta 1410: the slot of the next version is taken, and neither a listing nor anything else but the store's own condition
/// shows it. What stands there stays.
#[tokio::test]
async fn a_commit_is_never_overwritten_even_if_nothing_shows_that_it_is_there() {
    let world = Sea::memory();
    let subject = Written::VECTORS;
    let table = subject.create(world.location()).await.unwrap();
    subject.append(table.as_ref(), &world.env, &rows([1])).await.unwrap();
    let write = table.begin(intent(Action::Delete)).await.unwrap();
    let changes = subject.deletion(table.as_ref(), &world.env, &write, &[1]).await.unwrap();
    let rival = world.reopened(&subject).await.unwrap();
    subject.append(rival.as_ref(), &world.env, &rows([2])).await.unwrap();
    let path = object_store::path::Path::from(format!("t/{}", commit_path(2)));
    let theirs = world.store.restarted().get(&path).await.unwrap().bytes().await.unwrap();
    // All that our writer could ask is stale.
    world.store.add_rule(Op::List, "", Fault::StaleList(1), Times::Always);
    let done = commit(table.as_ref(), &world.env, &write, &changes).await;
    assert!(done.is_err(), "{done:?}");
    assert_eq!(world.store.restarted().get(&path).await.unwrap().bytes().await.unwrap(), theirs);
    let again = world.reopened(&subject).await.unwrap();
    assert_eq!(ids(&subject, again.as_ref(), &AsOf::Latest).await.unwrap(), [1, 2]);
}

/// ClickHouse 107340 and 121641: columns change while a handle is held, and so does the version. Each snapshot has the
/// columns of its own version, and none has those of the handle's youth.
#[tokio::test]
async fn a_handle_has_no_columns_of_its_own() {
    let world = Sea::memory();
    let subject = Written::MODERN;
    let table = subject.create(world.location()).await.unwrap();
    subject.append(table.as_ref(), &world.env, &rows([1])).await.unwrap();
    let pinned = table.snapshot(&AsOf::Latest).await.unwrap();
    let other = world.reopened(&subject).await.unwrap();
    let mut fields: Vec<_> = pinned.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(arrow_schema::Field::new("extra", arrow_schema::DataType::Int64, true)));
    let wider = Arc::new(arrow_schema::Schema::new(fields));
    let write = other.begin(intent(Action::Schema)).await.unwrap();
    commit(other.as_ref(), &world.env, &write, &[Change::Schema(wider)]).await.unwrap();
    assert_eq!(table.snapshot(&AsOf::Latest).await.unwrap().schema().fields().len(), 3, "a new column shows at once");
    assert_eq!(pinned.schema().fields().len(), 2, "and not in a version from before");
    let write = other.begin(intent(Action::Restore)).await.unwrap();
    let to_first = [Change::Restore(AsOf::Version(VersionId::from(1)))];
    commit(other.as_ref(), &world.env, &write, &to_first).await.unwrap();
    let restored = table.snapshot(&AsOf::Latest).await.unwrap();
    let columns: Vec<&str> = restored.schema().fields().iter().map(|it| it.name().as_str()).collect();
    assert_eq!(columns, ["id", "name"], "a restore past a column takes it away");
    assert_eq!(ids(&subject, table.as_ref(), &AsOf::Latest).await.unwrap(), [1]);
    assert_eq!(table.snapshot(&as_of(2)).await.unwrap().schema().fields().len(), 3);
}

/// delta-kernel-rs 1002: another engine cut the bounds to milliseconds; the file has microseconds beyond the upper one.
#[tokio::test]
async fn a_bound_that_another_engine_cut_to_milliseconds_hides_nothing() {
    for kind in ["timestamp", "timestamp_ntz"] {
        let world = World::new();
        let schema = json!({"type": "struct", "fields": [
            {"name": "at", "type": kind, "nullable": true, "metadata": {}},
        ]});
        let metadata = json!({"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema.to_string(),
            "partitionColumns": [], "configuration": {},
        }});
        let features = json!({"protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"],
            "writerFeatures": ["timestampNtz"],
        }});
        let zone = if kind == "timestamp" { "Z" } else { "" };
        let at = format!("2026-01-01T00:00:00.123{zone}");
        let stats = json!({"numRecords": 1, "minValues": {"at": at}, "maxValues": {"at": at}, "nullCount": {"at": 0}});
        let mut file = add(0);
        file["add"]["stats"] = json!(stats.to_string());
        world.commit(0, &[features, metadata, file]).await;
        let snapshot = world.latest().await.unwrap();
        let kept = async |cmp, micros: i64| {
            let at = Scalar::Timestamp(1_767_225_600_000_000 + micros);
            let scan = Scan { predicate: Predicate::Compare(ColumnPath::top("at"), cmp, at), ..Scan::all() };
            let tasks: Vec<ScanTask> = snapshot.tasks(&scan).try_collect().await.unwrap();
            tasks.len()
        };
        for (cmp, micros, expected) in [
            (Cmp::Eq, 123_000, 1),
            (Cmp::Eq, 123_456, 1),
            (Cmp::Eq, 123_999, 1),
            (Cmp::GtEq, 123_999, 1),
            (Cmp::Gt, 123_456, 1),
            (Cmp::Eq, 124_000, 0),
            (Cmp::Eq, 122_999, 0),
        ] {
            assert_eq!(kept(cmp, micros).await, expected, "{kind} {cmp:?} {micros}");
        }
    }
}

/// delta-rs 2518 and 3410: a log that nobody cleaned for 20,000 versions, with a checkpoint near its end. Opening lists from
/// there on, and asks for nothing older.
#[tokio::test]
async fn a_long_log_is_listed_from_the_hint_on() {
    let world = World::new();
    for version in 0..20_000_u64 {
        // What they say does not matter: nobody may look.
        world.put(&format!("{version:020}.json"), "not even JSON").await;
    }
    for version in 20_000 - 2..=20_003 {
        world.commit(version, &[add(version)]).await;
    }
    world
        .put(
            "00000000000000020000.checkpoint.parquet",
            checkpoint_bytes(&[protocol(), crate::world::metadata(&[], json!({})), add(7)]),
        )
        .await;
    world.put("_last_checkpoint", r#"{"version":20000,"size":3}"#).await;
    let world = World { store: world.store.restarted() };
    let files = world.files().await.unwrap();
    assert_eq!(files, names([20_001, 20_002, 20_003, 7]));
    assert_eq!(world.store.requests(), 6);
    assert!(world.store.listed() < 10, "{} names were listed", world.store.listed());
}

/// Files of a large table, with statistics that do not compress.
fn many(files: u64) -> Vec<Value> {
    let mut lines = vec![protocol(), crate::world::metadata(&[], json!({}))];
    let mut state = 1_u64;
    lines.extend((0..files).map(|at| {
        let mut noise = String::new();
        for _ in 0..24 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            noise.push_str(&format!("{state:016x}"));
        }
        let mut line = add(at);
        line["add"]["stats"] = json!(format!("{{\"numRecords\":10,\"minValues\":{{\"name\":\"{noise}\"}}}}"));
        line
    }));
    lines
}

/// delta-rs 2628: memory went from 600 MB to 7 GB where a checkpoint was written. Ours is a stream that reads what it needs
/// when its turn comes, and a reader of a checkpoint fetches the columns it asks for.
#[tokio::test]
async fn a_large_checkpoint_is_read_by_the_column_and_written_as_a_stream() {
    const FILES: u64 = 12_000;
    let world = World::new();
    world.put("00000000000000000000.json", text(&[protocol(), crate::world::metadata(&[], json!({}))])).await;
    world.put("00000000000000000001.json", text(&[add(FILES)])).await;
    world.put("00000000000000000001.checkpoint.parquet", checkpoint_bytes(&many(FILES))).await;
    world.put("_last_checkpoint", r#"{"version":1}"#).await;
    world.commit(2, &[add(FILES + 1)]).await;
    let checkpoint = world.get("00000000000000000001.checkpoint.parquet").await.len() as u64;
    let world = World { store: world.store.restarted() };
    let bytes = |world: &World| world.store.log().iter().map(|it| it.bytes).sum::<u64>();
    let snapshot = world.latest().await.unwrap();
    let listed: Vec<_> = snapshot.files(&Scan::all(), ListingColumns::NONE).try_collect().await.unwrap();
    assert_eq!(listed.iter().map(arrow_array::RecordBatch::num_rows).sum::<usize>() as u64, FILES + 1);
    assert!(bytes(&world) * 3 < checkpoint, "{} of {checkpoint} bytes: statistics nobody asked for", bytes(&world));
    assert!(world.store.requests() <= 8, "{:#?}", world.store.log());

    world.store.clear_log();
    let table = world.table().await;
    let plan = table.plan(&Maintenance::Checkpoint).await.unwrap();
    assert!(bytes(&world) * 3 < checkpoint, "planning takes no more than a list of files: {}", bytes(&world));
    let planned = bytes(&world);
    let Some(Step::Write { path, body: Body::Stream(body) }) = plan.steps.into_iter().next() else {
        panic!("a checkpoint is a stream")
    };
    assert!(path.contains("00000000000000000002.checkpoint"), "{path}");
    let chunks: Vec<Bytes> = body.try_collect().await.unwrap();
    assert!(bytes(&world) > planned + checkpoint / 3, "statistics are read while it is written");
    let written: Bytes = chunks.concat().into();
    assert!(written.len() as u64 > checkpoint / 2, "{} bytes", written.len());
    assert!(chunks.len() > 1, "a row group is sent before the file ends");
    world.put("00000000000000000002.checkpoint.parquet", written).await;
    world.put("_last_checkpoint", r#"{"version":2}"#).await;
    let world = World { store: world.store.restarted() };
    assert_eq!(paths(&world.latest().await.unwrap()).await.unwrap().len() as u64, FILES + 1);
    assert!(world.warnings().await.is_empty(), "{:?}", world.warnings().await);
}

/// Copies the log of a table, file by file, as fast and in whatever order: every file gets a new time.
async fn copied(from: &FaultyStore, clock: &Arc<ManualClock>, names: impl Fn(u64) -> i64) -> FaultyStore {
    let to = FaultyStore::new(Seed(1)).timed(Arc::clone(clock) as Arc<dyn Clock>, Duration::ZERO);
    let listed: Vec<_> = from.restarted().list(None).try_collect().await.unwrap();
    for object in listed {
        let name = object.location.filename().unwrap().to_owned();
        let version = name.split('.').next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        clock.set(Millis(names(version)));
        let body = from.restarted().get(&object.location).await.unwrap().bytes().await.unwrap();
        to.put(&object.location, body.into()).await.unwrap();
    }
    to
}

/// delta 192 and 1666: a table is copied, and its files get new times. Where commits carry their own, nothing changes;
/// elsewhere times are made to rise, and whoever asks by time is told what decided.
#[tokio::test]
async fn time_travel_on_a_copied_table_says_whose_times_it_goes_by() {
    for (subject, stamped) in [(Written::MODERN, true), (Written::VECTORS, false)] {
        let clock = Arc::new(ManualClock::default());
        let env = Env { clock: Arc::clone(&clock) as Arc<dyn Clock>, ids: Arc::new(SeededIds::new(Seed(2))) };
        let store = FaultyStore::new(Seed(1)).timed(Arc::clone(&clock) as Arc<dyn Clock>, Duration::ZERO);
        let table = subject.create(location(store.storage("t"), &env)).await.unwrap();
        for id in 1..=4 {
            clock.advance(Duration::from_secs(3_600));
            subject.append(table.as_ref(), &env, &rows([id])).await.unwrap();
        }
        let asked = Millis(START.0 + 2 * 3_600_000 + 1);
        let before = table.resolve(&AsOf::Time(asked)).await.unwrap();
        assert_eq!(before.version.id.as_str(), "2");
        assert_eq!(before.warnings.is_empty(), stamped, "{:?}", before.warnings);
        // Backwards, a minute a version, days later.
        let day = START.0 + 86_400_000;
        let copy = copied(&store, &clock, |version| day - 60_000 * i64::try_from(version).unwrap()).await;
        let table = subject.open(location(copy.storage("t"), &env)).await.unwrap();
        let timeline = table.timeline(&Span::all()).await.unwrap();
        let versions: Vec<_> = timeline.versions().cloned().collect();
        assert!(versions.windows(2).all(|it| it[0].committed_at < it[1].committed_at), "{versions:?}");
        for version in &versions {
            let found = table.resolve(&AsOf::Time(version.committed_at)).await.unwrap();
            assert_eq!(found.version.id, version.id, "what is listed is what is found");
            let by = if stamped { "by in-commit timestamps" } else { "by times of log files" };
            assert!(found.rule.contains(by), "{}", found.rule);
            let said = |part: &str| found.warnings.iter().any(|it| it.contains(part));
            assert_eq!(said("change when a table is copied"), !stamped, "{:?}", found.warnings);
            assert_eq!(said("times were moved up"), !stamped, "{:?}", found.warnings);
        }
        let after = table.resolve(&AsOf::Time(asked)).await;
        match stamped {
            true => assert_eq!(after.unwrap().version.id, before.version.id),
            false => assert_eq!(after.unwrap_err().kind(), ErrorKind::NotFound, "no file is as old"),
        }
    }
}
