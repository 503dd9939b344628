//! What reading costs in requests and in rounds that wait for each other.
use std::time::Duration;

use lakebed_core::table::{Snapshot, Table};
use lakebed_testkit::store::{Fault, Op, Times, waves};
use md5::{Digest, Md5};
use serde_json::{Value, json};

use crate::world::{
    World, add, as_of, checkpoint_bytes, metadata, names, paths, protocol, sidecar_bytes, state_lines, text,
};

/// The same bytes seen by a process that has asked nothing yet. Every call gives way once, so that calls that can be
/// under way together are.
fn fresh(world: &World) -> World {
    World { store: world.store.restarted().rule(None, "", Fault::Delay(Duration::ZERO), Times::Always) }
}

/// Requests since `clear_log`, and rounds.
fn cost(world: &World) -> (usize, usize) {
    (world.store.requests(), waves(&world.store.log()))
}

#[tokio::test]
async fn a_checkpoint_and_three_commits_take_six_requests_in_three_rounds() {
    let world = World::with_versions(13).await;
    world.checkpoint(10).await;
    let world = fresh(&world);
    assert_eq!(world.files().await, Ok(names(0..=13)));
    assert_eq!(cost(&world), (6, 3));
}

#[tokio::test]
async fn a_checksum_file_answers_for_the_schema_in_three() {
    let world = World::with_versions(13).await;
    world.checkpoint(10).await;
    let checksum = json!({
        "tableSizeBytes": 1, "numFiles": 14, "numMetadata": 1, "numProtocol": 1,
        "metadata": metadata(&[], json!({}))["metaData"], "protocol": protocol()["protocol"],
    });
    world.put("00000000000000000013.crc", checksum.to_string()).await;
    let world = fresh(&world);
    let snapshot = world.latest().await.unwrap();
    assert_eq!(snapshot.schema().fields().len(), 2);
    assert_eq!(cost(&world), (3, 3));
    assert_eq!(paths(&snapshot).await.unwrap(), names(0..=13));
    assert_eq!(world.store.requests(), 7);
}

#[tokio::test]
async fn compacted_files_save_commits() {
    let world = World::with_versions(25).await;
    for (from, until) in [(0, 5), (6, 15), (4, 9)] {
        let mut lines: Vec<Value> = if from == 0 { vec![protocol(), metadata(&[], json!({}))] } else { vec![] };
        lines.extend((from..=until).map(add));
        world.put(&format!("{from:020}.{until:020}.compacted.json"), text(&lines)).await;
    }
    let world = fresh(&world);
    assert_eq!(world.files().await, Ok(names(0..=25)));
    assert_eq!(world.store.requests(), 14);
}

#[tokio::test]
async fn a_v2_checkpoint_with_two_sidecars_takes_five() {
    let world = v2(20).await;
    let world = fresh(&world);
    assert_eq!(world.files().await, Ok(names(0..=20)));
    assert_eq!(world.store.requests(), 5);
}

const V2: &str = "00000000000000000020.checkpoint.00000000-0000-0000-0000-0000000000aa.json";

/// The hint that repeats the checkpoint of `v2(20)`, without a checksum.
async fn repeated(world: &World) -> Value {
    json!({"version": 20, "size": 24, "v2Checkpoint": {
        "path": V2, "sizeInBytes": world.get(V2).await.len(), "modificationTime": 1,
        "nonFileActions": [protocol(), metadata(&[], json!({})), {"checkpointMetadata": {"version": 20}}],
        "sidecarFiles": world.sidecars().iter().map(|it| it["sidecar"].clone()).collect::<Vec<_>>(),
    }})
}

/// All but what a URL never escapes.
const RESERVED: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// MD5 of the canonical form of a hint without a checksum. The names in these hints need no escapes.
fn checksum(hint: &Value) -> String {
    fn leaves(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
        let below = |name: String| if path.is_empty() { name } else { format!("{path}+{name}") };
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, it)| leaves(it, &below(format!("\"{name}\"")), found))
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, it)| leaves(it, &below(at.to_string()), found))
            }
            Value::String(text) => {
                found.push((path.to_owned(), format!("\"{}\"", percent_encoding::utf8_percent_encode(text, RESERVED))));
            }
            scalar => found.push((path.to_owned(), scalar.to_string())),
        }
    }
    let mut found = Vec::new();
    leaves(hint, "", &mut found);
    found.sort();
    let form: Vec<String> = found.iter().map(|(path, value)| format!("{path}={value}")).collect();
    Md5::digest(form.join(",")).iter().map(|it| format!("{it:02x}")).collect()
}

#[tokio::test]
async fn the_hint_may_hold_the_v2_checkpoint_itself_if_its_checksum_verifies() {
    let world = v2(20).await;
    let mut hint = repeated(&world).await;
    world.put("_last_checkpoint", hint.to_string()).await;
    let unsure = fresh(&world);
    assert_eq!(unsure.files().await, Ok(names(0..=20)));
    assert_eq!(unsure.store.requests(), 5, "a hint without a checksum repeats nothing");
    hint["checksum"] = json!(checksum(&hint));
    world.put("_last_checkpoint", hint.to_string()).await;
    let world = fresh(&world);
    assert_eq!(world.files().await, Ok(names(0..=20)));
    assert_eq!(world.warnings().await, [""; 0]);
    let world = fresh(&world);
    assert_eq!(world.files().await, Ok(names(0..=20)));
    assert_eq!(cost(&world), (4, 3));
}

#[tokio::test]
async fn a_hint_that_was_changed_repeats_nothing() {
    let world = v2(20).await;
    let mut whole = repeated(&world).await;
    for (sum, warnings) in [(None, 0), (Some(checksum(&whole)), 1)] {
        whole["checksum"] = json!(sum);
        let mut dropped = whole.clone();
        dropped["v2Checkpoint"]["sidecarFiles"].as_array_mut().unwrap().pop();
        let mut twice = whole.clone();
        let sidecar = twice["v2Checkpoint"]["sidecarFiles"][0].clone();
        twice["v2Checkpoint"]["sidecarFiles"].as_array_mut().unwrap().push(sidecar);
        let mut schema = whole.clone();
        schema["v2Checkpoint"]["nonFileActions"][1]["metaData"]["schemaString"] =
            json!({"type": "struct", "fields": []}).to_string().into();
        for hint in [dropped, twice, schema] {
            world.put("_last_checkpoint", hint.to_string()).await;
            assert_eq!(world.files().await, Ok(names(0..=20)), "{hint}");
            assert_eq!(world.latest().await.unwrap().schema().fields().len(), 2, "{hint}");
            assert_eq!(world.warnings().await.len(), warnings, "{hint}");
        }
    }
}

/// A V2 checkpoint in JSON at `version` with two sidecars, the commits before it gone.
async fn v2(version: u64) -> World {
    let world = World::new();
    world.commit(version, &[add(version)]).await;
    let half = version / 2;
    for (name, adds) in [("a", 0..=half), ("b", half + 1..=version)] {
        let lines: Vec<Value> = adds.map(add).collect();
        world.put(&format!("_sidecars/{name}.parquet"), sidecar_bytes(&lines)).await;
    }
    let mut lines = vec![json!({"checkpointMetadata": {"version": version}}), protocol(), metadata(&[], json!({}))];
    lines.extend(world.sidecars());
    world.put(&format!("{version:020}.checkpoint.00000000-0000-0000-0000-0000000000aa.json"), text(&lines)).await;
    world.put("_last_checkpoint", json!({"version": version, "size": 24}).to_string()).await;
    world
}

impl World {
    fn sidecars(&self) -> Vec<Value> {
        let lines: Vec<Value> = (0..=10).map(add).collect();
        let later: Vec<Value> = (11..=20).map(add).collect();
        let sidecar = |name: &str, lines: &[Value]| json!({"sidecar": {"path": format!("{name}.parquet"), "sizeInBytes": sidecar_bytes(lines).len(), "modificationTime": 1}});
        vec![sidecar("a", &lines), sidecar("b", &later)]
    }
}

#[tokio::test]
async fn a_refresh_costs_one_listing_and_what_is_new() {
    let world = World::with_versions(13).await;
    world.checkpoint(10).await;
    let world = fresh(&world);
    let table = world.table().await;
    let first = table.latest().await.unwrap();
    assert_eq!(paths(&first).await.unwrap(), names(0..=13));
    world.store.clear_log();

    let same = table.refresh(&first).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &same));
    assert_eq!((world.store.requests(), world.store.count(Op::List)), (1, 1));

    for version in [14, 15] {
        world.commit(version, &[add(version)]).await;
    }
    world.store.clear_log();
    let next = table.latest().await.unwrap();
    assert_eq!(paths(&next).await.unwrap(), names(0..=15));
    assert_eq!(cost(&world), (3, 2));
    assert_eq!(paths(&first).await.unwrap(), names(0..=13), "a snapshot never changes");
}

#[tokio::test]
async fn a_table_made_anew_in_the_same_place_is_not_mistaken_for_the_old() {
    let world = World::with_versions(3).await;
    let table = world.table().await;
    assert_eq!(paths(&table.latest().await.unwrap()).await.unwrap(), names(0..=3));
    for version in 0..=3 {
        world.delete(&format!("{version:020}.json")).await;
    }
    world.commit(0, &[protocol(), metadata(&[], json!({})), add(90)]).await;
    assert_eq!(paths(&table.latest().await.unwrap()).await.unwrap(), names([90]));
    for version in 1..=3 {
        world.commit(version, &[add(90 + version)]).await;
    }
    assert_eq!(paths(&table.latest().await.unwrap()).await.unwrap(), names(90..=93));
}

#[tokio::test]
async fn an_old_version_costs_its_distance_from_a_checkpoint() {
    let world = World::with_versions(60).await;
    for version in [10, 20, 30, 40, 50, 60] {
        world.checkpoint(version).await;
    }
    for (version, requests) in [(60, 3), (33, 6), (10, 3), (9, 12)] {
        let world = fresh(&world);
        assert_eq!(paths(&world.at(version).await.unwrap()).await.unwrap(), names(0..=version));
        assert_eq!(world.store.requests(), requests, "version {version}");
    }
}

#[tokio::test]
async fn statistics_of_a_small_checkpoint_cost_nothing_more() {
    let world = World::with_versions(10).await;
    world.put("00000000000000000010.checkpoint.parquet", checkpoint_bytes(&state_lines(10))).await;
    world.put("_last_checkpoint", json!({"version": 10}).to_string()).await;
    let world = fresh(&world);
    let snapshot = world.table().await.snapshot(&as_of(10)).await.unwrap();
    assert_eq!(snapshot.totals().await.unwrap().rows, Some(110));
    assert_eq!(world.store.requests(), 3);
}
