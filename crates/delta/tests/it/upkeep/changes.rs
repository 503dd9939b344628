//! Changes that rest on older versions: restoring one, and naming one.
use std::{collections::BTreeMap, sync::Arc};

use lakebed_core::{
    Error, ErrorKind, Result,
    change::Change,
    commit::{self, Intent, StoragePublisher},
    conflict::{ConflictPolicy, Isolation},
    table::{Snapshot, Table},
    timeline::Action,
    version::{AsOf, Millis, Ref, RefKind},
};
use lakebed_delta::DeltaTable;
use lakebed_testkit::{env, seed::Seed};
use serde_json::{Value, json};

use super::{Yard, add};
use crate::world::{metadata, paths};

async fn commit(yard: &Yard, table: &DeltaTable, action: Action, changes: &[Change]) -> Result<u64> {
    let intent = Intent {
        action,
        operation: "TEST".to_owned(),
        parameters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    };
    let write = table.begin(intent).await?;
    let policy = ConflictPolicy { isolation: Isolation::Serializable, read: None, claims: Vec::new(), retries: 3 };
    let committed = commit::commit(table, &StoragePublisher, &yard.env, &write, changes, &policy).await?;
    Ok(committed.version.id.as_str().parse().unwrap())
}

async fn restore(yard: &Yard, version: u64) -> Result<u64> {
    let table = yard.table().await;
    commit(yard, &table, Action::Restore, &[Change::Restore(AsOf::Version(version.into()))]).await
}

async fn live(yard: &Yard) -> Vec<String> {
    let snapshot = yard.table().await.latest().await.unwrap();
    paths(&snapshot).await.unwrap().into_iter().map(|(path, vector)| path + &vector.unwrap_or_default()).collect()
}

/// The actions of a version, by name.
async fn actions(yard: &Yard, version: u64, name: &str) -> Vec<Value> {
    let path = lakebed_core::path::FilePath::below(format!("_delta_log/{version:020}.json"));
    let body = yard.storage().read(&path).await.unwrap().unwrap();
    let lines = serde_json::Deserializer::from_slice(&body).into_iter::<Value>().map(Result::unwrap);
    lines.filter_map(|it| it.get(name).cloned()).collect()
}

#[tokio::test]
async fn a_restore_says_again_what_was_said() {
    let mut yard = Yard::plain().await;
    yard.put("a b", "rows").await;
    let said = json!({"add": {
        "path": "a%20b", "partitionValues": {}, "size": 4, "modificationTime": 7, "dataChange": true,
        "stats": "{\"numRecords\":3}", "tags": {"k": "v"},
    }});
    yard.commit(std::slice::from_ref(&said)).await;
    yard.add("b").await;
    let gone = yard.removal("a%20b");
    yard.commit(&[gone]).await;
    yard.add("c").await;
    assert_eq!(live(&yard).await, ["b", "c"]);
    assert_eq!(restore(&yard, 2).await.unwrap(), 5);
    assert_eq!(live(&yard).await, ["a b", "b"]);
    let (added, removed) = (actions(&yard, 5, "add").await, actions(&yard, 5, "remove").await);
    assert_eq!(added, [said["add"].clone()]);
    assert_eq!((removed.len(), &removed[0]["path"], &removed[0]["size"]), (1, &json!("c"), &json!(4)));
    assert!(actions(&yard, 5, "protocol").await.is_empty() && actions(&yard, 5, "metaData").await.is_empty());
    // Restoring what is there already changes no file.
    yard.version = 5;
    assert_eq!(restore(&yard, 5).await.unwrap(), 6);
    assert!(actions(&yard, 6, "add").await.is_empty() && actions(&yard, 6, "remove").await.is_empty());
}

#[tokio::test]
async fn files_that_are_gone_cannot_come_back() {
    let mut yard = Yard::plain().await;
    for path in ["a", "b"] {
        yard.add(path).await;
    }
    yard.remove("a").await;
    yard.remove("b").await;
    let files: Vec<_> = ["a", "b"].map(lakebed_core::path::FilePath::below).to_vec();
    assert_eq!(yard.storage().delete(&files).await.unwrap().removed.len(), 2);
    let err = restore(&yard, 2).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused);
    assert!(err.to_string().contains("2 files of version 2 are gone: a, b"), "{err}");
    assert_eq!(restore(&yard, 9).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(yard.log_names().await, "0.json 1.json 2.json 3.json 4.json", "nothing was committed");
}

#[tokio::test]
async fn another_vector_on_a_file_is_undone() {
    let mut yard = Yard::with(
        json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors"]}}),
        metadata(&[], json!({})),
    )
    .await;
    let vector = json!({"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40, "cardinality": 6});
    yard.put("a", "rows").await;
    let plain = json!({"add": {"path": "a", "partitionValues": {}, "size": 4, "modificationTime": 7, "dataChange": true,
        "stats": "{\"numRecords\":9}"}});
    yard.commit(std::slice::from_ref(&plain)).await;
    let mut under = plain.clone();
    under["add"]["deletionVector"] = vector.clone();
    let gone = yard.removal("a");
    yard.commit(&[gone, under]).await;
    assert_eq!(restore(&yard, 1).await.unwrap(), 3);
    let removed = actions(&yard, 3, "remove").await;
    assert_eq!((removed.len(), &removed[0]["deletionVector"]), (1, &vector));
    assert_eq!(actions(&yard, 3, "add").await, [plain["add"].clone()]);
    assert_eq!(live(&yard).await, ["a"]);
}

#[tokio::test]
async fn schema_and_properties_go_back_and_what_must_not_stays() {
    let mut yard = Yard::with(
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        metadata(&[], json!({"delta.columnMapping.maxColumnId": "2", "a": "then"})),
    )
    .await;
    let mut now = metadata(
        &[],
        json!({"delta.columnMapping.maxColumnId": "5", "a": "now", "b": "now", "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "1",
            "delta.inCommitTimestampEnablementTimestamp": "1767225600000"}),
    );
    now["metaData"]["schemaString"] =
        json!(r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}"#);
    let features = ["appendOnly", "invariants", "inCommitTimestamp"];
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}});
    let info = json!({"commitInfo": {"inCommitTimestamp": yard.env.clock.now().0, "operation": "x"}});
    yard.commit(&[info, protocol, now]).await;
    assert_eq!(restore(&yard, 0).await.unwrap(), 2);
    let snapshot = yard.table().await.latest().await.unwrap();
    assert_eq!(snapshot.schema().fields().len(), 2, "the column is back");
    let properties = snapshot.properties();
    let kept: Vec<String> = properties.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let expected = [
        "a=then",
        "delta.columnMapping.maxColumnId=5",
        "delta.enableInCommitTimestamps=true",
        "delta.inCommitTimestampEnablementTimestamp=1767225600000",
        "delta.inCommitTimestampEnablementVersion=1",
    ];
    assert_eq!(kept, expected);
    assert!(actions(&yard, 2, "protocol").await.is_empty(), "a newer protocol stays");
    let facts: BTreeMap<String, Value> = snapshot.facts().into_iter().collect();
    assert_eq!(facts["min_writer_version"], json!(7));
}

#[tokio::test]
async fn a_table_that_only_grows_is_not_restored_to_less() {
    let mut yard = Yard::with(
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        metadata(&[], json!({"delta.appendOnly": "true"})),
    )
    .await;
    yard.add("a").await;
    let err = restore(&yard, 0).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused);
    assert!(err.to_string().contains("delta.appendOnly"), "{err}");
}

fn tag(name: &str, version: u64) -> Change {
    Change::PutRef(Ref {
        name: name.to_owned(),
        kind: RefKind::Tag,
        version: version.into(),
        created_at: Some(Millis(7)),
        expires_at: None,
    })
}

async fn refs(table: &DeltaTable) -> Vec<String> {
    table.refs().await.unwrap().iter().map(|it| format!("{}={}", it.name, it.version)).collect()
}

async fn refused(yard: &Yard, table: &DeltaTable, changes: &[Change]) -> Error {
    commit(yard, table, Action::Ref, changes).await.unwrap_err()
}

#[tokio::test]
async fn tags_come_and_go_and_other_text_of_the_domain_stays() {
    let mut yard = Yard::new(json!({})).await;
    yard.commit(&[
        json!({"domainMetadata": {"domain": "lakebed.refs", "configuration": "{\"later\":[1]}",
        "removed": false}}),
        json!({"domainMetadata": {"domain": "foreign", "configuration": "x", "removed": false}}),
    ])
    .await;
    let table = yard.table().await;
    commit(&yard, &table, Action::Ref, &[tag("a", 0), tag("b", 1)]).await.unwrap();
    assert_eq!(refs(&table).await, ["a=0", "b=1"]);
    let until = Change::PutRef(Ref {
        name: "c".to_owned(),
        kind: RefKind::Tag,
        version: 2.into(),
        created_at: None,
        expires_at: Some(Millis(9)),
    });
    commit(&yard, &table, Action::Ref, &[Change::DropRef("a".to_owned()), until]).await.unwrap();
    assert_eq!(refs(&table).await, ["b=1", "c=2"]);
    let c = table.refs().await.unwrap().into_iter().find(|it| it.name == "c").unwrap();
    assert_eq!(c.expires_at, Some(Millis(9)));
    assert!(c.created_at.is_some(), "who does not say gets the time of the commit");
    let snapshot = table.latest().await.unwrap();
    assert!(snapshot.domain("lakebed.refs").unwrap().contains(r#""later":[1]"#));
    assert_eq!(snapshot.domain("foreign"), Some("x"));
    assert_eq!(actions(&yard, 3, "domainMetadata").await.len(), 1, "other domains are not written again");
}

#[tokio::test]
async fn tags_that_cannot_be_are_refused() {
    let mut yard = Yard::new(json!({})).await;
    yard.commit(&[add("a")]).await;
    let table = yard.table().await;
    commit(&yard, &table, Action::Ref, &[tag("a", 0)]).await.unwrap();
    for (changes, kind) in [
        (vec![tag("a", 1)], ErrorKind::AlreadyExists),
        (vec![tag("b", 0), tag("b", 1)], ErrorKind::AlreadyExists),
        (vec![tag("b", 99)], ErrorKind::NotFound),
        (vec![Change::DropRef("nobody".to_owned())], ErrorKind::NotFound),
        (vec![tag("v3", 0)], ErrorKind::Invalid),
        (vec![tag("a@b", 0)], ErrorKind::Invalid),
        (vec![tag("42", 0)], ErrorKind::Invalid),
    ] {
        assert_eq!(refused(&yard, &table, &changes).await.kind(), kind, "{changes:?}");
    }
    let branch = Change::PutRef(Ref {
        name: "dev".to_owned(),
        kind: RefKind::Branch,
        version: 0.into(),
        created_at: None,
        expires_at: None,
    });
    assert_eq!(refused(&yard, &table, &[branch]).await.kind(), ErrorKind::Unsupported);
    assert_eq!(refs(&table).await, ["a=0"]);
}

#[tokio::test]
async fn the_first_tag_needs_a_feature_that_nobody_adds_unasked() {
    let yard = Yard::plain().await;
    let table = yard.table().await;
    let err = refused(&yard, &table, &[tag("a", 0)]).await;
    assert_eq!(err.kind(), ErrorKind::Unsupported);
    assert!(err.hint().unwrap().contains("`tag create --upgrade`"), "{err:?}");
    let upgrade = Change::Upgrade { features: vec!["domainMetadata".to_owned()] };
    commit(&yard, &table, Action::Ref, &[upgrade, tag("a", 0)]).await.unwrap();
    assert_eq!(refs(&table).await, ["a=0"]);
}

#[tokio::test]
async fn of_two_who_tag_at_once_both_do() {
    let yard = Yard::new(json!({})).await;
    let (one, two) = (yard.table().await, yard.table().await);
    let intent = |operation: &str| Intent {
        action: Action::Ref,
        operation: operation.to_owned(),
        parameters: BTreeMap::new(),
        metrics: BTreeMap::new(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    };
    let (first, second) = (one.begin(intent("a")).await.unwrap(), two.begin(intent("b")).await.unwrap());
    let policy = ConflictPolicy { isolation: Isolation::Serializable, read: None, claims: Vec::new(), retries: 3 };
    // Whoever loses a race sleeps: this clock passes by itself.
    let env = env::env(Seed(3));
    let done = async |table: &Arc<DeltaTable>, write, change: Change| {
        commit::commit(table.as_ref(), &StoragePublisher, &env, write, &[change], &policy).await
    };
    done(&one, &first, tag("a", 0)).await.unwrap();
    assert_eq!(done(&two, &second, tag("a", 0)).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let second = two.begin(intent("b")).await.unwrap();
    let third = one.begin(intent("c")).await.unwrap();
    done(&two, &second, tag("b", 0)).await.unwrap();
    done(&one, &third, tag("c", 1)).await.unwrap();
    assert_eq!(refs(&one).await, ["a=0", "b=0", "c=1"]);
}
