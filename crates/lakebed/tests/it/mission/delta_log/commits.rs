//! Items 1 to 3, 14 and 15: what lies in the log, and where data lie.
use std::{collections::BTreeSet, fs, path::Path};

use lakebed_core::ErrorKind;
use serde_json::{Value, json};

use super::{commit_name, commits, lines};
use crate::mission::{Disk, kind, names};

#[tokio::test]
async fn item_01_one_file_a_commit_without_gaps() {
    let disk = Disk::new();
    disk.run("CREATE TABLE {t} (id BIGINT)").await;
    for id in 1..=3 {
        disk.run(&format!("INSERT INTO {{t}} VALUES ({id})")).await;
    }
    assert_eq!(commits(&disk.path("t")), (0..=3).map(commit_name).collect::<Vec<_>>());
    assert!(commits(&disk.path("t")).iter().all(|it| it.len() == 25), "20 digits and .json");
}

#[tokio::test]
async fn item_01_a_gap_is_an_error_that_names_the_missing_version() {
    for (missing, newest_readable) in [(1, Some("version 0 is the newest that can still be read")), (0, None)] {
        let disk = Disk::new();
        disk.run("CREATE TABLE {t} (id BIGINT)").await;
        for id in 1..=3 {
            disk.run(&format!("INSERT INTO {{t}} VALUES ({id})")).await;
        }
        fs::remove_file(disk.path("t/_delta_log").join(commit_name(missing))).unwrap();
        for text in ["SELECT * FROM {t}", "INSERT INTO {t} VALUES (9)", "DELETE FROM {t}"] {
            let err = disk.afresh(text).await.expect_err(text);
            assert_eq!(err.kind(), ErrorKind::Corrupt, "{text}: {err}");
            let named = err.to_string();
            assert!(named.starts_with(&format!("log version {missing} is gone, ")), "{text}: {named}");
            if newest_readable.is_some() {
                assert_eq!(err.hint(), newest_readable, "{text}");
            }
        }
        if missing == 1 {
            assert_eq!(disk.afresh("SELECT count(*) FROM {t} VERSION AS OF 0").await.unwrap(), ["0"]);
        }
        let left: Vec<String> = (0..=3).filter(|it| *it != missing).map(commit_name).collect();
        assert_eq!(commits(&disk.path("t")), left, "nothing was written into the gap");
    }
}

/// All kinds of actions, by SQL alone: versions 0 to 4.
async fn every_kind() -> Disk {
    let disk = Disk::new();
    disk.run(
        "CREATE TABLE {t} (id BIGINT, day STRING) USING delta PARTITIONED BY (day) TBLPROPERTIES \
         ('delta.enableChangeDataFeed' = 'true', 'delta.feature.domainMetadata' = 'supported')",
    )
    .await;
    disk.run(
        "SET lakebed.txn.app_id = 'nightly'; SET lakebed.txn.version = 7; \
         INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'b'); RESET ALL",
    )
    .await;
    disk.run("UPDATE {t} SET id = 20 WHERE id = 2").await;
    disk.run("CALL system.create_tag(table => '{t}', tag => 'eod', version => 1)").await;
    disk.run("DELETE FROM {t} WHERE day = 'b'").await;
    disk
}

#[tokio::test]
async fn item_02_every_kind_of_action_one_a_line() {
    let disk = every_kind().await;
    let mut kinds = BTreeSet::new();
    for version in 0..=4 {
        for line in lines(&disk.path("t"), version) {
            let action = line.as_object().expect("a line is an object");
            assert_eq!(action.len(), 1, "one action a line: {line}");
            kinds.extend(action.keys().cloned());
        }
    }
    let all = ["add", "cdc", "commitInfo", "domainMetadata", "metaData", "protocol", "remove", "txn"];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), all);
    let first = lines(&disk.path("t"), 0);
    let metadata = first.iter().find_map(|it| it.get("metaData")).unwrap();
    for field in ["id", "format", "schemaString", "partitionColumns", "configuration"] {
        assert!(metadata.get(field).is_some(), "metaData lacks {field}: {metadata}");
    }
    assert_eq!(metadata["partitionColumns"], json!(["day"]));
    assert_eq!(disk.afresh("SELECT id, day FROM {t} ORDER BY id").await.unwrap(), ["1  a", "20  a"]);
}

#[tokio::test]
async fn item_02_unknown_actions_and_fields_are_ignored() {
    let disk = every_kind().await;
    let old = lines(&disk.path("t"), 1).into_iter().find(|it| it.get("add").is_some()).unwrap();
    let path = old["add"]["path"].as_str().unwrap().to_owned();
    let copy = path.replace("part-", "part-copy-");
    assert_ne!(path, copy);
    fs::copy(disk.path("t").join(&path), disk.path("t").join(&copy)).unwrap();
    let mut add = old;
    add["add"]["path"] = json!(copy);
    add["add"]["unheardOf"] = json!({"deep": [1, null]});
    let foreign = [
        json!({"commitInfo": {"timestamp": 1, "operation": "WRITE", "engineInfo": "Another-Engine/1", "unheardOf": {}}}),
        json!({"timeCrystal": {"path": path, "dataChange": true}}),
        add,
        json!({"anotherOne": null}),
    ];
    let body: String = foreign.iter().map(|it| format!("{it}\n")).collect();
    fs::write(disk.path("t/_delta_log").join(commit_name(5)), body).unwrap();
    let rows = disk.afresh("SELECT id FROM {t} ORDER BY id").await.unwrap();
    assert_eq!(rows, ["1", "1", "2", "20"], "the rows of the copy are there, and nothing else changed");
    disk.run("INSERT INTO {t} VALUES (6, 'c')").await;
    assert_eq!(disk.run("SELECT count(*) FROM {t}").await, ["5"], "and it goes on");
}

#[tokio::test]
async fn item_03_files_that_no_commit_names_do_not_exist() {
    let disk = every_kind().await;
    let asked = [
        "SELECT * FROM {t} ORDER BY id",
        "SELECT * FROM {t} VERSION AS OF 1 ORDER BY id",
        "SELECT path FROM delta_files('{path}') ORDER BY path",
        "SELECT id FROM {t} WHERE day = 'a' ORDER BY id",
    ];
    let mut before = Vec::new();
    for text in asked {
        before.push(disk.afresh(text).await.unwrap());
    }
    let data = data_files(&disk.path("t"));
    let source = disk.path("t").join(&data[0]);
    for stray in
        ["stray.parquet", "day=a/stray.parquet", "day=z/part-1.c000.snappy.parquet", "_delta_log/stray.parquet"]
    {
        let to = disk.path("t").join(stray);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&source, to).unwrap();
    }
    fs::write(disk.path("t/_delta_log/notes.json"), "not a commit").unwrap();
    fs::write(disk.path("t/_delta_log/00000000000000000005.json.tmp"), "not a commit").unwrap();
    for (text, before) in asked.iter().zip(&before) {
        assert_eq!(disk.afresh(text).await.unwrap(), *before, "{text}");
    }
    disk.run("OPTIMIZE {t}").await;
    assert_eq!(disk.afresh(asked[0]).await.unwrap(), before[0], "a compaction takes up no stray file");
}

/// Data files below a table, sorted.
fn data_files(table: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for name in names(&table.join(&folder)) {
            let below = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if table.join(&below).is_dir() {
                folders.extend((!name.starts_with('_')).then_some(below));
            } else if name.ends_with(".parquet") {
                found.push(below);
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn item_14_history_tells_who_did_what_and_how() {
    let disk = Disk::new();
    disk.run("CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')").await;
    disk.run("SET lakebed.commit.user_metadata = 'by hand'; INSERT INTO {t} VALUES (1), (2), (3); RESET ALL").await;
    disk.run("DELETE FROM {t} WHERE id = 2").await;
    disk.run("UPDATE {t} SET id = 30 WHERE id = 3").await;
    disk.run("INSERT INTO {t} VALUES (5)").await;
    disk.run("OPTIMIZE {t}").await;
    let columns = "id, operation, user_metadata, engine, read_version, isolation";
    let rows = disk.afresh(&format!("SELECT {columns} FROM {} ORDER BY id", history(&disk))).await.unwrap();
    let engine = concat!("Lakebed/", env!("CARGO_PKG_VERSION"));
    let expected = [
        format!("0  CREATE TABLE  NULL  {engine}  NULL  Serializable"),
        format!("1  WRITE  by hand  {engine}  0  Serializable"),
        format!("2  DELETE  NULL  {engine}  1  Serializable"),
        format!("3  UPDATE  NULL  {engine}  2  Serializable"),
        format!("4  WRITE  NULL  {engine}  3  Serializable"),
        format!("5  OPTIMIZE  NULL  {engine}  4  SnapshotIsolation"),
    ];
    assert_eq!(rows, expected);
    let told = disk.afresh(&format!("SELECT parameters, metrics FROM {} ORDER BY id", history(&disk))).await.unwrap();
    let told: Vec<(Value, Value)> = told.iter().map(|it| it.split_once("  ").unwrap()).map(both).collect();
    assert_eq!(told[1].0["mode"], "Append", "{:?}", told[1]);
    assert_eq!(told[1].1["numOutputRows"], "3", "{:?}", told[1]);
    assert!(told[2].0["predicate"].as_str().is_some_and(|it| it.contains("id")), "{:?}", told[2]);
    assert_eq!(told[2].1["numDeletedRows"], "1", "{:?}", told[2]);
    assert_eq!(told[3].1["numUpdatedRows"], "1", "{:?}", told[3]);
    assert!(told[5].1.get("numRemovedFiles").is_some(), "{:?}", told[5]);
    let described = disk.afresh("DESCRIBE HISTORY {t}").await.unwrap();
    assert!(described.len() == 6 && described[0].starts_with("5  "), "newest first: {described:#?}");
}

fn history(disk: &Disk) -> String {
    format!("delta.`{}$history`", disk.path("t").display())
}

fn both(texts: (&str, &str)) -> (Value, Value) {
    (serde_json::from_str(texts.0).unwrap(), serde_json::from_str(texts.1).unwrap())
}

#[tokio::test]
async fn item_15_data_lie_at_the_root_or_in_partition_folders() {
    let disk = Disk::new();
    disk.run("CREATE TABLE {t} (id BIGINT)").await;
    disk.run("INSERT INTO {t} VALUES (1), (2)").await;
    disk.run("UPDATE {t} SET id = 3 WHERE id = 1").await;
    let found = data_files(&disk.path("t"));
    assert!(found.len() >= 2 && found.iter().all(|it| !it.contains('/')), "{found:?}");
    let disk = every_kind().await;
    disk.run("INSERT INTO {t} VALUES (5, NULL), (6, 'x/y z')").await;
    let found = data_files(&disk.path("t"));
    let folders: BTreeSet<&str> = found.iter().map(|it| it.rsplit_once('/').map_or("", |it| it.0)).collect();
    let expected = ["day=__HIVE_DEFAULT_PARTITION__", "day=a", "day=b", "day=x%2Fy z"];
    assert_eq!(folders.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(kind(&disk.afresh("SELECT count(*) FROM {t} WHERE day = 'x/y z'").await), None);
    assert!(!names(&disk.path("t")).iter().any(|it| it == "data"));
}
