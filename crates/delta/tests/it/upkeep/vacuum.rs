//! Which files a sweep deletes, and which it must not.
use std::time::Duration;

use lakebed_core::{
    ErrorKind,
    commit::StoragePublisher,
    maintain::{self, Maintenance, Retain},
    path::FilePath,
    table::Table,
    version::{AsOf, Millis},
};
use lakebed_testkit::store::Op;
use serde_json::{Value, json};

use super::{DAY, Yard, add, doomed, paths};
use crate::world::metadata;

fn vacuum(older_than: Option<Millis>, lite: bool, forced: bool) -> Maintenance {
    Maintenance::Vacuum { retain: Retain::default(), older_than, lite, forced }
}

const FULL: fn() -> Maintenance = || vacuum(None, false, false);
const LITE: fn() -> Maintenance = || vacuum(None, true, false);

async fn would_go(yard: &Yard, action: &Maintenance) -> Vec<String> {
    paths(&yard.plan(action).await.unwrap())
}

#[tokio::test]
async fn a_removed_file_stays_until_its_tombstone_is_old() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    yard.add("b").await;
    yard.days(20);
    yard.remove("a").await;
    yard.days(6);
    // Its file is 26 days old, its removal 6.
    assert_eq!(would_go(&yard, &FULL()).await, [""; 0]);
    assert_eq!(would_go(&yard, &LITE()).await, [""; 0]);
    yard.days(2);
    assert_eq!(would_go(&yard, &FULL()).await, ["a"]);
    assert_eq!(would_go(&yard, &LITE()).await, ["a"]);
    let plan = yard.plan(&FULL()).await.unwrap();
    let one = doomed(&plan)[0];
    assert_eq!((one.bytes, one.why.as_str()), (Some(4), "removed 2026-01-21T00:00:00.000Z, 8 days ago"));
    yard.keep_up(&FULL()).await;
    assert_eq!(yard.files().await, ["b"]);
    assert_eq!(would_go(&yard, &FULL()).await, [""; 0], "nothing is left to do");
}

#[tokio::test]
async fn the_table_says_how_long_removed_files_stay() {
    let mut yard = Yard::new(json!({"delta.deletedFileRetentionDuration": "interval 2 days"})).await;
    yard.add("a").await;
    yard.remove("a").await;
    yard.days(1);
    assert_eq!(would_go(&yard, &FULL()).await, [""; 0]);
    yard.days(2);
    assert_eq!(would_go(&yard, &FULL()).await, ["a"]);
}

#[tokio::test]
async fn an_unknown_file_goes_by_its_own_age_and_hidden_ones_never() {
    let mut yard = Yard::plain().await;
    yard.add("live").await;
    for path in ["unknown", "_hidden", "a/.crc", "_tmp/x", "d=1/unknown", "_change_data/cdc", "_delta_index/i"] {
        yard.put(path, "x").await;
    }
    yard.days(6);
    yard.put("young", "x").await;
    yard.days(2);
    let plan = yard.plan(&FULL()).await.unwrap();
    assert_eq!(paths(&plan), ["_change_data/cdc", "_delta_index/i", "d=1/unknown", "unknown"]);
    assert!(plan.notes.iter().any(|it| it.ends_with("too lately to tell: 1")), "{:?}", plan.notes);
    assert_eq!(doomed(&plan)[0].why, "no version names it, last written 2026-01-01T00:00:00.000Z");
    assert_eq!(would_go(&yard, &LITE()).await, [""; 0], "the log knows nothing of them");
}

#[tokio::test]
async fn a_partition_folder_may_start_with_an_underscore() {
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}});
    let mut metadata = metadata(&["_day"], json!({}));
    metadata["metaData"]["schemaString"] =
        json!(r#"{"type":"struct","fields":[{"name":"_day","type":"string","nullable":true,"metadata":{}}]}"#);
    let yard = Yard::with(protocol, metadata).await;
    yard.put("_day=1/x", "x").await;
    yard.put("_other=1/x", "x").await;
    yard.days(8);
    assert_eq!(would_go(&yard, &FULL()).await, ["_day=1/x"]);
}

fn with_vector(mut action: Value, kind: &str, offset: i64) -> Value {
    // The UUID 00000000-0000-0000-0000-000000000000 and 01010101-…, in Z85.
    let place = if kind == "one" { "00000000000000000000" } else { "0rAi40rAi40rAi40rAi4" };
    action["deletionVector"] = json!({"storageType": "u", "pathOrInlineDv": place, "offset": offset,
        "sizeInBytes": 36, "cardinality": 1});
    action
}

#[tokio::test]
async fn a_file_of_vectors_stays_while_one_of_them_is_needed() {
    let mut yard = Yard::with(
        json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors"]}}),
        metadata(&[], json!({})),
    )
    .await;
    let added = |path: &str, kind: &str, offset| json!({"add": with_vector(add(path)["add"].clone(), kind, offset)});
    let one = "deletion_vector_00000000-0000-0000-0000-000000000000.bin";
    let two = "deletion_vector_01010101-0101-0101-0101-010101010101.bin";
    for path in ["a", "b", one, two] {
        yard.put(path, "x").await;
    }
    yard.commit(&[added("a", "one", 1), added("b", "one", 50)]).await;
    // `a` gets another vector: the old one is still in a file that `b` needs.
    let gone = json!({"remove": with_vector(yard.removal("a")["remove"].clone(), "one", 1)});
    yard.commit(&[gone, added("a", "two", 1)]).await;
    yard.days(8);
    assert_eq!(would_go(&yard, &FULL()).await, [""; 0]);
    let gone = json!({"remove": with_vector(yard.removal("b")["remove"].clone(), "one", 50)});
    yard.commit(&[gone]).await;
    yard.days(6);
    assert_eq!(would_go(&yard, &FULL()).await, [""; 0], "a kept tombstone needs it");
    yard.days(2);
    for action in [FULL(), LITE()] {
        assert_eq!(would_go(&yard, &action).await, ["b", one], "{action:?}");
    }
}

#[tokio::test]
async fn tags_keep_the_files_of_their_versions() {
    let mut yard = Yard::new(json!({})).await;
    yard.add("a").await;
    yard.add("b").await;
    yard.remove("a").await;
    yard.add("c").await;
    yard.remove("c").await;
    yard.tag("mine", 2).await;
    yard.days(8);
    for action in [FULL(), LITE()] {
        let plan = yard.plan(&action).await.unwrap();
        assert_eq!(paths(&plan), ["c"], "{action:?}");
        let note = plan.notes.iter().find(|it| it.contains("`mine` (2)")).unwrap();
        assert!(note.ends_with("VACUUM and log clean-up of other engines do not respect tags"), "{note}");
    }
    yard.keep_up(&FULL()).await;
    assert_eq!(yard.files().await, ["a", "b"]);
}

#[tokio::test]
async fn a_tag_or_a_restore_after_the_plan_stops_it() {
    for tags in [true, false] {
        let mut yard = Yard::new(json!({})).await;
        yard.add("a").await;
        yard.remove("a").await;
        yard.days(8);
        let table = yard.table().await;
        let plan = table.plan(&FULL()).await.unwrap();
        assert_eq!(paths(&plan), ["a"]);
        match tags {
            true => yard.tag("mine", 1).await,
            false => yard.commit(&[add("a")]).await,
        }
        let applied = maintain::run(table.as_ref(), &StoragePublisher, &yard.env, plan).await.unwrap();
        assert_eq!(applied.stopped.unwrap().kind(), ErrorKind::Refused);
        assert_eq!(yard.files().await, ["a"]);
    }
}

#[tokio::test]
async fn a_shorter_time_than_the_table_allows_has_to_be_forced() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    yard.remove("a").await;
    yard.days(2);
    let since = |hours: u64| {
        let now = yard.env.clock.now().0;
        Some(Millis(now - i64::try_from(Duration::from_secs(hours * 3_600).as_millis()).unwrap()))
    };
    for hours in [0, 1, 167] {
        let err = yard.plan(&vacuum(since(hours), false, false)).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Refused);
        let message = format!(
            "files removed {hours} hours ago may still be read: the table keeps removed files for 168 hours \
             (`delta.deletedFileRetentionDuration`)"
        );
        assert_eq!(err.to_string(), message);
        assert!(err.hint().unwrap().contains("SET lakebed.vacuum.retention_check = false"));
    }
    assert!(yard.plan(&vacuum(since(168), false, false)).await.is_ok());
    assert_eq!(would_go(&yard, &vacuum(since(1), false, true)).await, ["a"]);
}

#[tokio::test]
async fn who_wants_more_kept_than_tombstones_tell_gets_it() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    yard.days(30);
    yard.remove("a").await;
    yard.days(10);
    // The checkpoint forgets the tombstone; the file is 40 days old.
    yard.commit(&[json!({"commitInfo": {}})]).await;
    yard.keep_up(&Maintenance::Checkpoint).await;
    let days = |days: u32| Some(Millis(yard.env.clock.now().0 - i64::try_from((DAY * days).as_millis()).unwrap()));
    assert_eq!(would_go(&yard, &FULL()).await, ["a"]);
    assert_eq!(would_go(&yard, &vacuum(days(20), false, false)).await, [""; 0], "it was there 20 days ago");
    assert_eq!(would_go(&yard, &vacuum(days(9), false, false)).await, ["a"], "it was not there 9 days ago");
}

#[tokio::test]
async fn versions_a_caller_names_keep_their_files() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    yard.remove("a").await;
    yard.add("b").await;
    yard.remove("b").await;
    yard.days(8);
    let retain = Retain { ids: vec![1.into()], ..Retain::default() };
    let action = Maintenance::Vacuum { retain, older_than: None, lite: false, forced: false };
    assert_eq!(would_go(&yard, &action).await, ["b"]);
    let retain = Retain { at_least: 2, ..Retain::default() };
    let action = Maintenance::Vacuum { retain, older_than: None, lite: false, forced: false };
    assert_eq!(would_go(&yard, &action).await, ["a"]);
}

#[tokio::test]
async fn another_table_in_the_folder_ends_the_sweep() {
    let yard = Yard::plain().await;
    yard.put("inner/_delta_log/00000000000000000000.json", "x").await;
    yard.put("inner/part-0.parquet", "x").await;
    yard.days(8);
    for action in [FULL(), Maintenance::RemoveOrphans { older_than: yard.env.clock.now() }] {
        let err = yard.plan(&action).await.unwrap_err();
        assert_eq!(
            (err.kind(), err.to_string().as_str()),
            (ErrorKind::Refused, "`inner` below the table is a table of its own")
        );
    }
}

#[tokio::test]
async fn a_log_that_dooms_itself_is_not_believed() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    let evil = [
        "_delta_log/00000000000000000000.json",
        "a/../_delta_log/00000000000000000001.json",
        "../x",
        "file:///etc/passwd",
    ];
    for path in evil {
        yard.commit(&[yard.removal(path)]).await;
    }
    yard.days(8);
    for action in [FULL(), LITE()] {
        assert_eq!(would_go(&yard, &action).await, [""; 0]);
    }
}

#[tokio::test]
async fn writers_of_unknown_features_may_need_what_we_do_not_see() {
    let yard = Yard::with(
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["timeCrystal"]}}),
        metadata(&[], json!({})),
    )
    .await;
    for action in [FULL(), LITE(), Maintenance::RemoveOrphans { older_than: Millis(0) }] {
        assert_eq!(yard.plan(&action).await.unwrap_err().kind(), ErrorKind::Unsupported, "{action:?}");
    }
}

#[tokio::test]
async fn lite_reads_nothing_beyond_the_snapshot() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    yard.remove("a").await;
    yard.days(8);
    let table = yard.table().await;
    table.latest().await.unwrap().warnings();
    yard.store.clear_log();
    let plan = table.plan(&LITE()).await.unwrap();
    assert_eq!(paths(&plan), ["a"]);
    let log: Vec<Op> = yard.store.log().iter().map(|it| it.op).collect();
    assert_eq!(log, [Op::List], "whether anything was committed since");
}

#[tokio::test]
async fn orphans_are_what_no_version_ever_named() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    yard.remove("a").await;
    yard.add("b").await;
    yard.put("_change_data/named", "x").await;
    yard.commit(&[
        json!({"cdc": {"path": "_change_data/named", "partitionValues": {}, "size": 1, "dataChange": false}}),
    ])
    .await;
    yard.put("orphan", "x").await;
    yard.put("_change_data/orphan", "x").await;
    yard.days(4);
    yard.put("young", "x").await;
    let older_than = Millis(yard.env.clock.now().0 - 1);
    let action = Maintenance::RemoveOrphans { older_than };
    assert_eq!(would_go(&yard, &action).await, ["_change_data/orphan", "orphan"]);
    // The log's start goes, and a checkpoint stands for it: what it still remembers was named.
    yard.keep_up(&Maintenance::Expire(Retain { at_least: 1, ..Retain::default() })).await;
    assert_eq!(yard.log_names().await, "4.checkpoint 4.json");
    assert_eq!(would_go(&yard, &action).await, ["_change_data/orphan", "orphan"]);
    yard.keep_up(&action).await;
    assert_eq!(yard.files().await, ["_change_data/named", "a", "b", "young"]);
}

#[tokio::test]
async fn what_is_reachable_is_there_and_grows_with_what_stays() {
    use futures::TryStreamExt;
    let mut yard = Yard::new(json!({})).await;
    yard.add("a").await;
    yard.remove("a").await;
    yard.add("b").await;
    yard.tag("mine", 1).await;
    let table = yard.table().await;
    let reach = async |retain: Retain| {
        let mut found: Vec<FilePath> = table.reachable(&retain).try_collect().await.unwrap();
        found.retain(|it| !it.as_str().starts_with("_delta_log/"));
        found.sort();
        found.dedup();
        found.iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(reach(Retain::default()).await, ["a", "b"], "the tag's version and the head");
    assert_eq!(reach(Retain { age: Some(Duration::MAX), ..Retain::default() }).await, ["a", "b"]);
    assert_eq!(table.snapshot(&AsOf::Ref("mine".into())).await.unwrap().totals().await.unwrap().files, 1);
}

#[tokio::test]
async fn a_version_that_only_a_checkpoint_tells_of_keeps_its_files() {
    let mut yard = Yard::plain().await;
    yard.add("a").await;
    yard.add("b").await;
    yard.keep_up(&Maintenance::Checkpoint).await;
    yard.remove("a").await;
    // Another engine removed the commits below the checkpoint, its own included; version 2 reads from it.
    for version in 0..=2 {
        let path = FilePath::below(format!("_delta_log/{version:020}.json"));
        assert_eq!(yard.storage().delete(&[path]).await.unwrap().removed.len(), 1);
    }
    yard.days(8);
    let retain = Retain { ids: vec![2.into()], ..Retain::default() };
    let action = Maintenance::Vacuum { retain, older_than: None, lite: false, forced: false };
    assert_eq!(would_go(&yard, &action).await, [""; 0]);
    assert_eq!(would_go(&yard, &FULL()).await, ["a"]);
}
