//! Files that come, go, and lose rows: the actions of a commit.
use lakebed_core::{
    ErrorKind,
    file::DeleteFile,
    write::{NewVector, RowDeletes},
};
use roaring::RoaringTreemap;

use super::*;

const VECTORS: &[(&str, &str)] = &[("delta.enableDeletionVectors", "true")];

async fn vectors(table: &dyn Table, write: &Write, rows: &[(&str, &[u64])]) -> Vec<DeleteFile> {
    let vectors = rows.iter().map(|(path, rows)| NewVector {
        target: FilePath::below(*path),
        rows: RoaringTreemap::from_iter(rows.iter().copied()),
    });
    table.write_vectors(write, vectors.collect()).await.unwrap()
}

fn taken(deletes: Vec<DeleteFile>) -> Change {
    Change::Rows(RowDelta { added_deletes: deletes, ..RowDelta::default() })
}

#[tokio::test]
async fn an_append_says_what_it_is() {
    let place = Place::new();
    let table = place.create(plain(&[])).await.unwrap();
    let metrics = BTreeMap::from([("numFiles".to_owned(), "1".to_owned())]);
    let parameters = BTreeMap::from([("mode".to_owned(), "Append".to_owned())]);
    let intent = Intent {
        parameters,
        metrics,
        lineage: Some("{}".to_owned()),
        user_metadata: Some("by hand".to_owned()),
        ..of_application("etl", 7)
    };
    place.commit(table.as_ref(), intent, &[added(vec![file("dir/a b%.parquet", 5)])]).await.unwrap();
    let body = place.storage().read(&FilePath::below("_delta_log/00000000000000000001.json")).await.unwrap().unwrap();
    insta::assert_snapshot!(String::from_utf8(body.to_vec()).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r###"
    {"commitInfo":{"timestamp":1767225600002,"operation":"WRITE","operationParameters":{"mode":"Append"},"operationMetrics":{"numFiles":"1"},"readVersion":0,"isolationLevel":"WriteSerializable","isBlindAppend":true,"userMetadata":"by hand","engineInfo":"Lakebed/VERSION","txnId":"4fc446b5-3f17-fb29-58bc-3cb37bc7b2b3","lakebed.lineage":"{}"}}
    {"txn":{"appId":"etl","version":7,"lastUpdated":1767225600002}}
    {"add":{"path":"dir/a%20b%25.parquet","partitionValues":{},"size":100,"modificationTime":1767225600002,"dataChange":true,"stats":"{\"numRecords\":10,\"minValues\":{\"id\":5},\"maxValues\":{\"id\":14},\"nullCount\":{\"id\":0}}"}}
    "###);
    assert_eq!(paths(table.as_ref()).await, ["dir/a b%.parquet"]);
    let snapshot = latest(table.as_ref()).await;
    assert_eq!(snapshot.application("etl").await.unwrap(), Some(7));
    assert_eq!(snapshot.application("other").await.unwrap(), None);
}

#[tokio::test]
async fn partition_values_are_texts_by_physical_name() {
    let place = Place::new();
    let schema = columns(&[("id", DataType::Int64), ("d", DataType::Float64), ("at", zoned()), ("s", DataType::Utf8)]);
    let mapped = [("delta.columnMapping.mode", "name")];
    for properties in [&[][..], &mapped[..]] {
        let place = Place::new();
        let table = place.create(described(Arc::clone(&schema), &["s", "d", "at"], properties)).await.unwrap();
        let partition = vec![
            ("d".to_owned(), Some(Scalar::Double(1e10))),
            ("at".to_owned(), Some(Scalar::Timestamp(1_718_366_334_000_000))),
            ("s".to_owned(), Some(Scalar::Utf8(String::new()))),
        ];
        place.append(table.as_ref(), vec![DataFile { partition: partition.clone(), ..file("a", 0) }]).await.unwrap();
        let values = place.action(1, "add").await["partitionValues"].clone();
        let mut texts: Vec<String> = values.as_object().unwrap().values().map(Value::to_string).collect();
        texts.sort();
        assert_eq!(texts, ["\"1.0E10\"", "\"2024-06-14T11:58:54.000000Z\"", "null"]);
        assert_eq!(values.get("s").is_some(), properties.is_empty(), "{values}");
        let err = place.append(table.as_ref(), vec![file("b", 0)]).await.unwrap_err();
        assert_eq!(shown(&err), "Invalid: b has no value of the partition column `s` (-)");
    }
    drop(place);
}

#[tokio::test]
async fn a_removal_repeats_what_the_add_said() {
    let place = Place::new();
    let table = place.create(plain(&[])).await.unwrap();
    place.append(table.as_ref(), vec![file("a", 0), file("b", 10)]).await.unwrap();
    place.commit(table.as_ref(), intent(Action::Delete), &[removed("a", None)]).await.unwrap();
    let (add, remove) = (place.action(1, "add").await, place.action(2, "remove").await);
    for field in ["path", "partitionValues", "size", "stats"] {
        assert_eq!(remove[field], add[field], "{field}");
    }
    assert_eq!((&remove["dataChange"], &remove["extendedFileMetadata"]), (&true.into(), &true.into()));
    assert!(remove["deletionTimestamp"].as_i64().unwrap() > 1_700_000_000_000);
    assert_eq!(place.action(2, "commitInfo").await["isBlindAppend"], false);
    assert_eq!(paths(table.as_ref()).await, ["b"]);
    let err = place.commit(table.as_ref(), intent(Action::Delete), &[removed("a", None)]).await.unwrap_err();
    assert_eq!(
        shown(&err),
        "Conflict: a, from which this commit takes rows, is not in version 2 (nothing was committed: read the table again and \
         redo the change)"
    );
}

#[tokio::test]
async fn a_vector_adds_its_file_anew() {
    let place = Place::new();
    let table = place.create(plain(VECTORS)).await.unwrap();
    assert_eq!(latest(table.as_ref()).await.write_rules().unwrap().deletes, RowDeletes::Vectors);
    place.append(table.as_ref(), vec![file("a", 0), file("b", 10)]).await.unwrap();
    let write = table.begin(intent(Action::Delete)).await.unwrap();
    let deletes = vectors(table.as_ref(), &write, &[("a", &[3]), ("b", &[0, 9])]).await;
    place.conclude(table.as_ref(), &write, &[taken(deletes)]).await.unwrap();
    let (add, remove) = (place.action(2, "add").await, place.action(2, "remove").await);
    assert_eq!((&add["path"], &remove["path"]), (&"a".into(), &"a".into()));
    assert_eq!(add["deletionVector"]["cardinality"], 1);
    assert_eq!(add["deletionVector"]["pathOrInlineDv"].as_str().unwrap().len(), 20);
    assert_eq!(add["modificationTime"], place.action(1, "add").await["modificationTime"]);
    assert_eq!(
        add["stats"],
        r#"{"numRecords":10,"minValues":{"id":0},"maxValues":{"id":9},"nullCount":{"id":0},"tightBounds":false}"#
    );
    assert!(remove.get("deletionVector").is_none());

    // Once more: the removal names the vector that is there.
    let first = add["deletionVector"].clone();
    let write = table.begin(intent(Action::Delete)).await.unwrap();
    let deletes = vectors(table.as_ref(), &write, &[("a", &[3, 4])]).await;
    place.conclude(table.as_ref(), &write, &[taken(deletes)]).await.unwrap();
    assert_eq!(place.action(3, "remove").await["deletionVector"], first);
    assert_eq!(paths(table.as_ref()).await, ["a", "b"]);
    let totals = latest(table.as_ref()).await.totals().await.unwrap();
    assert_eq!((totals.rows, totals.deleted_rows), (Some(16), Some(4)));

    // A file is known together with its vector.
    let err = place.commit(table.as_ref(), intent(Action::Delete), &[removed("a", None)]).await.unwrap_err();
    assert!(shown(&err).starts_with("Conflict: in version 3 other rows of a are deleted"), "{err}");
}

#[tokio::test]
async fn everything_another_writer_said_of_a_file_stays_with_it() {
    use serde_json::json;
    let world = crate::world::World::new();
    let schema = columns(&[("id", DataType::Int64)]);
    let body = lakebed_testkit::batch::parquet_bytes(
        &[lakebed_testkit::batch::to_batch(
            &{
                let mut rows = lakebed_testkit::rows::Rows::new(["id"]);
                rows.rows = (0..7).map(|id| vec![i64::into(id)]).collect();
                rows
            },
            &schema,
        )
        .unwrap()],
        &schema,
        1024,
    )
    .unwrap();
    let bytes = body.len();
    assert_eq!(world.storage().create("f", body).await.unwrap(), lakebed_core::storage::Put::Won);
    let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}});
    let metadata = crate::world::metadata(&[], json!({"delta.enableDeletionVectors": "true"}));
    // No statistics: how many rows there are is read from the file.
    let add = json!({"add": {"path": "f", "partitionValues": {}, "size": bytes, "modificationTime": 5, "dataChange": true,
        "tags": {"INSERTION_TIME": "5", "empty": null}, "baseRowId": 40, "defaultRowCommitVersion": 3,
        "clusteringProvider": "liquid"}});
    world.commit(0, &[protocol, metadata, add.clone()]).await;
    let place = Place { store: world.store.clone(), env: env::env(Seed(2)) };
    let table = place.opened().await;
    for checkpointed in [false, true] {
        if checkpointed {
            let plan = table.plan(&lakebed_core::maintain::Maintenance::Checkpoint).await.unwrap();
            lakebed_core::maintain::run(table.as_ref(), &StoragePublisher, &place.env, plan).await.unwrap();
        }
        let table = place.opened().await;
        let write = table.begin(intent(Action::Delete)).await.unwrap();
        let rows: &[u64] = if checkpointed { &[1, 2] } else { &[1] };
        let deletes = vectors(table.as_ref(), &write, &[("f", rows)]).await;
        let done = place.conclude(table.as_ref(), &write, &[taken(deletes)]).await.unwrap();
        let version = done.version.id.as_str().parse().unwrap();
        let (added, removed) = (place.action(version, "add").await, place.action(version, "remove").await);
        for field in [
            "path",
            "partitionValues",
            "size",
            "modificationTime",
            "tags",
            "baseRowId",
            "defaultRowCommitVersion",
            "clusteringProvider",
        ] {
            assert_eq!(added[field], add["add"][field], "{field}, checkpointed: {checkpointed}");
        }
        assert_eq!((&removed["tags"], &removed["baseRowId"]), (&add["add"]["tags"], &json!(40)));
        assert_eq!(added["stats"], r#"{"numRecords":7,"tightBounds":false}"#);
    }
}

#[tokio::test]
async fn vectors_need_a_table_that_has_them() {
    let place = Place::new();
    let table = place.create(plain(&[])).await.unwrap();
    let write = table.begin(intent(Action::Delete)).await.unwrap();
    let vector = NewVector { target: FilePath::below("a"), rows: RoaringTreemap::from_iter([1]) };
    let err = table.write_vectors(&write, vec![vector]).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn moving_rows_changes_none() {
    let place = Place::new();
    let table = place.create(plain(&[("delta.appendOnly", "true")])).await.unwrap();
    place.append(table.as_ref(), vec![file("a", 0)]).await.unwrap();
    let err = place.commit(table.as_ref(), intent(Action::Delete), &[removed("a", None)]).await.unwrap_err();
    assert_eq!(
        shown(&err),
        "Refused: the table only takes new rows (`delta.appendOnly`), and a would go (`ALTER TABLE … SET TBLPROPERTIES \
         ('delta.appendOnly' = 'false')` lifts it)"
    );
    let moved = [added(vec![file("b", 0)]), removed("a", None)];
    place.commit(table.as_ref(), intent(Action::Compaction), &moved).await.unwrap();
    for action in ["add", "remove"] {
        assert_eq!(place.action(2, action).await["dataChange"], false);
    }
    assert_eq!(place.action(2, "commitInfo").await["isolationLevel"], "SnapshotIsolation");
}

#[tokio::test]
async fn an_application_comes_as_far_only_once() {
    let place = Place::new();
    let table = place.create(plain(&[])).await.unwrap();
    place.commit(table.as_ref(), of_application("etl", 3), &[added(vec![file("a", 0)])]).await.unwrap();
    let again = place.commit(table.as_ref(), of_application("etl", 3), &[added(vec![file("b", 0)])]).await.unwrap_err();
    assert_eq!(shown(&again), "AlreadyExists: application `etl` wrote version 3 of its work before: 3 is done (-)");
    place.commit(table.as_ref(), of_application("etl", 4), &[added(vec![file("b", 0)])]).await.unwrap();
    assert_eq!(paths(table.as_ref()).await, ["a", "b"]);
}

#[tokio::test]
async fn a_table_that_stamps_its_commits_never_goes_back() {
    let place = Place::new();
    let table = place.create(plain(&[("delta.enableInCommitTimestamps", "true")])).await.unwrap();
    for at in 0..3 {
        place.append(table.as_ref(), vec![file(&format!("{at}"), at)]).await.unwrap();
    }
    let mut last = 0;
    for version in 0..=3 {
        let info = &place.lines(version).await[0]["commitInfo"];
        let stamp = info["inCommitTimestamp"].as_i64().unwrap();
        assert!(stamp > last, "{info}");
        last = stamp;
    }
    // A writer whose clock stands in the past.
    let past = Arc::new(env::ManualClock::at(lakebed_core::version::Millis(1_000)));
    let late = Place { env: Env { clock: past, ..place.env.clone() }, ..place.clone() };
    let table = late.opened().await;
    let done = late.append(table.as_ref(), vec![file("late", 0)]).await.unwrap();
    assert_eq!(done.version.committed_at.0, last + 1);
    assert_eq!(latest(table.as_ref()).await.version().committed_at.0, last + 1);
}
