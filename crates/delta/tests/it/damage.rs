//! Damage to hints, checkpoints, compacted files and commits: a warning where the log can stand in, else an error that
//! names the file; never a panic, never other rows.
use std::sync::Arc;

use lakebed_core::storage::{LocalDisk, Storage};
use lakebed_core::{ErrorKind, table::Table, version::AsOf};
use lakebed_testkit::store::{Fault, Op, Times};
use object_store::path::Path;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{
    World, add, checkpoint_bytes, checkpoint_fields, metadata, names, parquet_bytes, paths, protocol, sidecar_bytes,
    state_lines, text,
};

const CHECKPOINT: &str = "00000000000000000010.checkpoint.parquet";

async fn table() -> World {
    let world = World::with_versions(13).await;
    world.checkpoint(10).await;
    world
}

#[tokio::test]
async fn a_bad_hint_is_a_warning() {
    for hint in [
        "",
        "{",
        "null",
        "[]",
        r#"{"version":"ten"}"#,
        r#"{"version":-1}"#,
        r#"{"version":7}"#,
        r#"{"version":12}"#,
        r#"{"version":9999}"#,
        r#"{"version":18446744073709551615}"#,
        r#"{"version":10,"parts":3}"#,
        r#"{"version":10,"v2Checkpoint":{"path":"x.json","sidecarFiles":[],"nonFileActions":[]}}"#,
        "\0\0\0",
    ] {
        let world = table().await;
        world.put("_last_checkpoint", hint).await;
        assert_eq!(world.files().await, Ok(names(0..=13)), "{hint}");
        let quiet = [r#"{"version":10"#, r#"{"version":7}"#].iter().any(|it| hint.starts_with(it))
            || hint.contains("18446744073709551615");
        assert_eq!(world.warnings().await.is_empty(), quiet, "{hint}: {:?}", world.warnings().await);
    }
}

/// delta 5458: a damaged checkpoint is a cache that is not there, while the log can do without it.
#[tokio::test]
async fn a_checkpoint_cut_anywhere_is_a_warning() {
    let world = table().await;
    let whole = world.get(CHECKPOINT).await;
    // Every byte of the footer's end, then steps through the rest.
    let cuts = (0..whole.len()).filter(|it| *it % 97 == 0 || whole.len() - it < 64);
    for cut in cuts {
        world.put(CHECKPOINT, whole.slice(..cut)).await;
        assert_eq!(world.files().await, Ok(names(0..=13)), "cut at {cut}");
        assert!(!world.warnings().await.is_empty(), "cut at {cut}");
    }
}

#[tokio::test]
async fn without_the_old_commits_a_cut_checkpoint_is_an_error_that_says_so() {
    let world = table().await;
    for version in 0..=9 {
        world.delete(&format!("{version:020}.json")).await;
    }
    let whole = world.get(CHECKPOINT).await;
    assert_eq!(world.files().await, Ok(names(0..=13)));
    world.put(CHECKPOINT, whole.slice(..whole.len() - 1)).await;
    let err = world.latest().await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Corrupt);
    let said = err.to_string();
    assert!(said.contains("log version 0 is gone") && said.contains(CHECKPOINT), "{said}");
}

#[tokio::test]
async fn an_older_checkpoint_stands_in_for_a_damaged_one() {
    let world = World::with_versions(13).await;
    world.checkpoint(5).await;
    world.checkpoint(10).await;
    for version in 0..=5 {
        world.delete(&format!("{version:020}.json")).await;
    }
    world.put(CHECKPOINT, "PAR1 this is not PAR1").await;
    assert_eq!(world.files().await, Ok(names(0..=13)));
    let warnings = world.warnings().await;
    assert!(warnings[0].starts_with("checkpoint 10 is not used: _delta_log/"), "{warnings:?}");
}

#[tokio::test]
async fn checkpoints_with_a_strange_schema_are_not_used() {
    let lines = state_lines(10);
    let without = |top: &str| checkpoint_fields().into_iter().filter(|it| it.name() != top).collect::<Vec<_>>();
    let strange = [
        parquet_bytes(&lines, without("add")),
        parquet_bytes(&lines, without("metaData")),
        parquet_bytes(&lines, without("protocol")),
        parquet_bytes(&[json!({"x": 1})], vec![arrow_schema::Field::new("x", arrow_schema::DataType::Int64, true)]),
        checkpoint_bytes(&[protocol(), metadata(&[], json!({})), json!({"add": {"path": "x"}})]),
        checkpoint_bytes(&[protocol(), metadata(&[], json!({})), json!({"add": {"path": "x", "size": -1}})]),
        checkpoint_bytes(&[protocol(), metadata(&[], json!({})), json!({"add": {"size": 1}})]),
    ];
    for (at, body) in strange.into_iter().enumerate() {
        let world = table().await;
        world.put(CHECKPOINT, body).await;
        assert_eq!(world.files().await, Ok(names(0..=13)), "{at}");
        assert_eq!(world.warnings().await.len(), 1, "{at}: {:?}", world.warnings().await);
    }
}

#[tokio::test]
async fn columns_that_may_be_missing_may_be_missing() {
    for top in ["txn", "remove", "domainMetadata", "sidecar", "checkpointMetadata"] {
        let world = table().await;
        let fields = checkpoint_fields().into_iter().filter(|it| it.name() != top).collect();
        world.put(CHECKPOINT, parquet_bytes(&state_lines(10), fields)).await;
        for version in 0..=9 {
            world.delete(&format!("{version:020}.json")).await;
        }
        assert_eq!(world.files().await, Ok(names(0..=13)), "{top}");
        assert_eq!(world.latest().await.unwrap().transaction("app"), (top != "txn").then_some(7));
    }
}

#[tokio::test]
async fn a_v2_checkpoint_without_a_sidecar_falls_back() {
    let world = table().await;
    let lines = [
        json!({"checkpointMetadata": {"version": 12}}),
        protocol(),
        metadata(&[], json!({})),
        json!({"sidecar": {"path": "gone.parquet", "sizeInBytes": 100, "modificationTime": 1}}),
    ];
    let name = "00000000000000000012.checkpoint.00000000-0000-0000-0000-0000000000aa.json";
    world.put(name, text(&lines)).await;
    assert_eq!(world.files().await, Ok(names(0..=13)));
    let warnings = world.warnings().await;
    assert!(warnings.iter().any(|it| it.contains("checkpoint 12") && it.contains("gone.parquet")), "{warnings:?}");
}

#[tokio::test]
async fn a_damaged_compacted_file_is_a_warning() {
    let world = World::with_versions(6).await;
    world.put("00000000000000000002.00000000000000000005.compacted.json", "{\"add\":").await;
    assert_eq!(world.files().await, Ok(names(0..=6)));
    assert!(world.warnings().await[0].starts_with("compacted files are not used"));
}

#[tokio::test]
async fn a_damaged_checksum_is_a_warning() {
    for body in ["", "{}", "{\"tableSizeBytes\":1", "\u{feff}{}"] {
        let world = table().await;
        world.put("00000000000000000013.crc", body).await;
        assert_eq!(world.files().await, Ok(names(0..=13)), "{body}");
        assert_eq!(world.warnings().await.is_empty(), body.is_empty(), "{body}");
    }
}

#[tokio::test]
async fn a_commit_cut_anywhere_is_an_error_that_names_it() {
    let whole = text(&[add(13), add(14)]);
    let ends = [whole.len(), whole.len() - 1, text(&[add(13)]).len(), text(&[add(13)]).len() - 1];
    for cut in 0..whole.len() {
        let world = table().await;
        world.put("00000000000000000013.json", whole[..cut].to_owned()).await;
        let files = world.files().await;
        match ends.contains(&cut) {
            true => assert!(files.is_ok(), "cut at {cut}"),
            false => {
                let said = files.unwrap_err();
                assert!(said.starts_with("_delta_log/00000000000000000013.json"), "cut at {cut}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn a_cache_that_may_not_be_opened_is_a_warning() {
    let sidecar = sidecar_bytes(&(0..=12).map(add).collect::<Vec<_>>());
    let named = json!({"sidecar": {"path": "a.parquet", "sizeInBytes": sidecar.len(), "modificationTime": 1}});
    let v2 = [json!({"checkpointMetadata": {"version": 12}}), protocol(), metadata(&[], json!({})), named];
    let compacted = "00000000000000000011.00000000000000000012.compacted.json";
    let sum = checksum(14, protocol(), metadata(&[], json!({}))).to_string();
    for refused in ["_last_checkpoint", CHECKPOINT, "13.crc", "compacted", JSON_CHECKPOINT, "_sidecars/a.parquet"] {
        let world = table().await;
        world.put(compacted, text(&[add(11), add(12)])).await;
        world.put("00000000000000000013.crc", sum.clone()).await;
        if refused == JSON_CHECKPOINT || refused.contains("sidecars") {
            world.put("_sidecars/a.parquet", sidecar.clone()).await;
            world.put(JSON_CHECKPOINT, text(&v2)).await;
        }
        let store = world.store.restarted().rule(Op::Get, refused, Fault::Forbid, Times::Always);
        let world = World { store };
        assert_eq!(world.files().await, Ok(names(0..=13)), "{refused}");
        assert!(
            world.warnings().await.iter().any(|it| it.contains(refused)),
            "{refused}: {:?}",
            world.warnings().await
        );
    }
}

#[tokio::test]
async fn a_checkpoint_that_may_not_be_opened_and_is_needed_is_no_damage() {
    let world = table().await;
    world.delete("00000000000000000000.json").await;
    let store = world.store.restarted().rule(Op::Get, CHECKPOINT, Fault::Forbid, Times::Always);
    let err = World { store }.latest().await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unauthorized, "{err}");
    assert!(err.to_string().contains(CHECKPOINT), "{err}");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("t/_delta_log");
    std::fs::create_dir_all(&log).unwrap();
    std::fs::write(log.join("00000000000000000000.json"), text(&[protocol(), metadata(&[], json!({})), add(0)]))
        .unwrap();
    let open = async || {
        let location = format!("file://{}/t", folder.path().display());
        let store = Arc::new(LocalDisk::new(folder.path()));
        crate::world::open(Storage::new(store, Path::from("t"), location)).await.latest().await
    };
    // Sparse: nothing but a length.
    let huge = |name: &str| std::fs::File::create(log.join(name)).unwrap().set_len(3 << 30).unwrap();
    for cache in ["_last_checkpoint", "00000000000000000000.crc"] {
        huge(cache);
        let warnings = open().await.unwrap().warnings();
        assert!(warnings.len() == 1 && warnings[0].contains(cache), "{warnings:?}");
        std::fs::remove_file(log.join(cache)).unwrap();
    }
    huge("00000000000000000001.json");
    let err = open().await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Limit, "{err}");
    assert!(err.to_string().contains("00000000000000000001.json"), "{err}");
}

#[tokio::test]
async fn a_checkpoint_that_has_a_file_twice_is_not_used() {
    let world = table().await;
    let lines = [state_lines(10), vec![add(3)]].concat();
    world.put(CHECKPOINT, checkpoint_bytes(&lines)).await;
    assert_eq!(world.files().await, Ok(names(0..=13)));
    let warnings = world.warnings().await;
    assert!(warnings.iter().any(|it| it.contains("3.parquet twice")), "{warnings:?}");
    for version in 0..=9 {
        world.delete(&format!("{version:020}.json")).await;
    }
    world.put(CHECKPOINT, checkpoint_bytes(&lines)).await;
    assert!(world.files().await.unwrap_err().contains("3.parquet twice"));
}

#[tokio::test]
async fn a_gap_is_named_unless_a_checkpoint_covers_it() {
    let world = table().await;
    world.delete("00000000000000000004.json").await;
    assert_eq!(world.files().await, Ok(names(0..=13)), "below the checkpoint");
    world.delete("00000000000000000012.json").await;
    let err = world.latest().await.unwrap_err();
    assert_eq!(err.to_string(), "log version 12 is gone, but 13 is there");
    assert_eq!(err.hint(), Some("version 11 is the newest that can still be read"));
    assert_eq!(paths(&world.at(11).await.unwrap()).await.unwrap(), names(0..=11));
}

#[tokio::test]
async fn nothing_is_no_table() {
    let world = World::new();
    let err = world.latest().await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::NotFound);
    assert!(err.to_string().contains("not a Delta table"), "{err}");
    world.put("_last_checkpoint", r#"{"version":3}"#).await;
    assert_eq!(world.latest().await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_version_that_is_not_there_is_said_to_be_too_new_or_gone() {
    let world = table().await;
    assert_eq!(world.at(20).await.unwrap_err().to_string(), "version 20 does not exist: the newest is 13");
    for version in 0..=9 {
        world.delete(&format!("{version:020}.json")).await;
    }
    let err = world.at(4).await.unwrap_err();
    assert_eq!((err.kind(), err.hint()), (ErrorKind::NotFound, Some("the oldest version kept is 10")));
}

#[tokio::test]
async fn staged_commits_are_not_commits() {
    let world = table().await;
    world.put("00000000000000000014.4cb9708e-b478-44de-b203-53f9ba9b2876.json", text(&[add(14)])).await;
    world.put("_staged_commits/00000000000000000014.4cb9708e-b478-44de-b203-53f9ba9b2876.json", text(&[add(14)])).await;
    assert_eq!(world.files().await, Ok(names(0..=13)));
    assert_eq!(world.warnings().await.len(), 1);
}

/// A checkpoint in JSON of `with_versions(12)`.
fn json_checkpoint() -> Vec<Value> {
    [vec![json!({"checkpointMetadata": {"version": 12}})], state_lines(12)].concat()
}

const JSON_CHECKPOINT: &str = "00000000000000000012.checkpoint.00000000-0000-0000-0000-0000000000aa.json";

#[tokio::test]
async fn a_json_checkpoint_cut_after_any_line_is_not_used_where_its_files_are_counted() {
    let lines = json_checkpoint();
    let sum = checksum(13, protocol(), metadata(&[], json!({})));
    for (name, body) in [
        ("_last_checkpoint", json!({"version": 12, "numOfAddFiles": 13}).to_string()),
        ("00000000000000000012.crc", sum.to_string()),
    ] {
        for kept in 1..=lines.len() {
            let world = World::with_versions(13).await;
            world.put(name, body.clone()).await;
            world.put(JSON_CHECKPOINT, text(&lines[..kept])).await;
            assert_eq!(world.files().await, Ok(names(0..=13)), "{name}: cut after line {kept}");
            assert_eq!(world.warnings().await.is_empty(), kept == lines.len(), "{name}: cut after line {kept}");
        }
    }
    let world = World::with_versions(13).await;
    world.put(JSON_CHECKPOINT, text(&[lines.clone(), vec![add(3)]].concat())).await;
    assert_eq!(world.files().await, Ok(names(0..=13)), "a line twice");
}

#[tokio::test]
async fn a_compacted_file_cut_after_any_line_is_not_used_where_its_files_are_counted() {
    let lines: Vec<Value> = (1..=6).map(add).collect();
    for kept in 1..=lines.len() {
        let world = World::with_versions(6).await;
        world.put("00000000000000000006.crc", checksum(7, protocol(), metadata(&[], json!({}))).to_string()).await;
        world.put("00000000000000000001.00000000000000000006.compacted.json", text(&lines[..kept])).await;
        assert_eq!(world.files().await, Ok(names(0..=6)), "cut after line {kept}");
        assert_eq!(world.warnings().await.is_empty(), kept == lines.len(), "cut after line {kept}");
    }
}

fn checksum(files: u64, protocol: Value, metadata: Value) -> Value {
    json!({"tableSizeBytes": 1, "numFiles": files, "numMetadata": 1, "numProtocol": 1,
        "metadata": metadata["metaData"], "protocol": protocol["protocol"]})
}

#[tokio::test]
async fn a_sidecar_named_twice_counts_once() {
    let world = World::with_versions(13).await;
    let body = sidecar_bytes(&(0..=12).map(add).collect::<Vec<_>>());
    let sidecar = json!({"sidecar": {"path": "a.parquet", "sizeInBytes": body.len(), "modificationTime": 1}});
    world.put("_sidecars/a.parquet", body).await;
    let small = [json!({"checkpointMetadata": {"version": 12}}), protocol(), metadata(&[], json!({}))];
    world.put(JSON_CHECKPOINT, text(&[&small[..], &[sidecar.clone(), sidecar]].concat())).await;
    assert_eq!(world.files().await, Ok(names(0..=13)));
    assert_eq!(world.warnings().await, [""; 0]);
}

#[tokio::test]
async fn a_checksum_of_another_table_neither_changes_columns_nor_opens_what_is_refused() {
    let mut other = metadata(&[], json!({}));
    other["metaData"]["schemaString"] = json!({"type": "struct", "fields": []}).to_string().into();
    for sum in [
        checksum(14, protocol(), other),
        checksum(14, json!({"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}}), metadata(&[], json!({}))),
        checksum(15, protocol(), metadata(&[], json!({}))),
    ] {
        let world = table().await;
        world.put("00000000000000000013.crc", sum.to_string()).await;
        let snapshot = world.table().await.snapshot(&AsOf::Latest).await.unwrap();
        assert_eq!(snapshot.schema().fields().len(), 2);
        assert_eq!(world.files().await, Ok(names(0..=13)));
        assert!(world.warnings().await.iter().any(|it| it.contains("13.crc")));
    }
    let world = World::new();
    let refused = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timeCrystal"], "writerFeatures": ["timeCrystal"]}});
    world.commit(0, &[refused, metadata(&[], json!({})), add(0)]).await;
    world.put("00000000000000000000.crc", checksum(1, protocol(), metadata(&[], json!({}))).to_string()).await;
    assert!(world.files().await.unwrap_err().contains("timeCrystal"));
    assert!(paths(&world.latest().await.unwrap()).await.is_err());
}

fn any_line() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!({})),
        Just(json!([1, {"a": null}])),
    ];
    let field = prop_oneof![
        Just("path"),
        Just("size"),
        Just("partitionValues"),
        Just("stats"),
        Just("deletionVector"),
        Just("version"),
        Just("appId"),
        Just("minReaderVersion"),
        Just("other"),
    ];
    let action = prop_oneof![
        Just("add"),
        Just("remove"),
        Just("txn"),
        Just("protocol"),
        Just("metaData"),
        Just("commitInfo"),
        Just("new"),
    ];
    let body = proptest::collection::btree_map(field, value, 0..4);
    (action, body).prop_map(|(action, body)| json!({action: body}).to_string())
}

proptest! {
    #[test]
    fn fuzz_any_commit_is_read_or_refused(lines in proptest::collection::vec(any_line(), 1..6), noise in proptest::collection::vec(any::<u8>(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = table().await;
            world.put("00000000000000000013.json", lines.join("\n")).await;
            let _ = world.files().await;
            world.put("00000000000000000013.json", noise).await;
            assert!(world.files().await.is_err());
        });
    }

    #[test]
    fn fuzz_a_checkpoint_with_flipped_bytes_is_read_or_left(flips in proptest::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = table().await;
            let mut body = world.get(CHECKPOINT).await.to_vec();
            for (at, flip) in flips {
                let at = at.index(body.len());
                body[at] ^= flip;
            }
            world.put(CHECKPOINT, body).await;
            // A flip inside a page can change a path: pages carry no checksum here. It must not do more than that.
            if let Ok(snapshot) = world.latest().await {
                let _ = paths(&snapshot).await;
            }
        });
    }
}
