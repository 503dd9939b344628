use std::sync::Arc;

use lakebed_core::{storage::Storage, timeline::Action as Kind};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use super::*;

const HEAD: &str = concat!(
    r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":4}}"#,
    "\n",
    r#"{"metaData":{"id":"t","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},{\"name\":\"p\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":["p"],"configuration":{}}}"#
);

async fn log(commits: &[(u64, &str)]) -> Log {
    let store = InMemory::new();
    for (version, body) in commits {
        store.put(&Path::from(format!("t/_delta_log/{version:020}.json")), (*body).to_owned().into()).await.unwrap();
    }
    Log::new(Storage::new(Arc::new(store), Path::from("t"), "memory:///t"))
}

async fn read(log: &Log, after: Option<u64>) -> Result<Vec<VersionDelta>> {
    of_log(log.clone(), Span { after: after.map(Into::into), until: AsOf::Latest }, None).try_collect().await
}

const ADD: &str = r#"{"add":{"path":"p=2024-01-02/a%20b","partitionValues":{"p":"2024-01-02"},"size":7,"modificationTime":5,"dataChange":true,"stats":"{\"numRecords\":3,\"minValues\":{\"id\":1}}","baseRowId":40}}"#;

#[tokio::test]
async fn a_commit_becomes_a_delta() {
    let second = [
        r#"{"commitInfo":{"operation":"MERGE","txnId":"w-1","isBlindAppend":false}}"#,
        ADD,
        r#"{"remove":{"path":"p=2024-01-02/a%20b","dataChange":true,"deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":1,"sizeInBytes":4,"cardinality":2}}}"#,
        r#"{"cdc":{"path":"_change_data/c","partitionValues":{"p":null},"size":9,"dataChange":false}}"#,
        r#"{"txn":{"appId":"job","version":4}}"#,
        r#"{"domainMetadata":{"domain":"d","configuration":"","removed":false}}"#,
    ];
    let log = log(&[(0, HEAD), (1, &second.join("\n"))]).await;
    let deltas = read(&log, Some(0)).await.unwrap();
    let [delta] = &deltas[..] else { panic!("{} deltas", deltas.len()) };
    assert_eq!((delta.action, delta.write_id.as_deref()), (Kind::RowDelta, Some("w-1")));
    assert_eq!(delta.applications, [Application { id: "job".into(), version: 4 }]);
    assert_eq!(delta.claims, [Claim::Named("domain d".into())]);
    let file = &delta.rows.added[0];
    assert_eq!((file.path.as_str(), file.bytes, file.first_row_id), ("p=2024-01-02/a b", 7, Some(40)));
    assert_eq!(file.partition, [("p".to_owned(), Some(lakebed_core::expr::Scalar::Date(19_724)))]);
    assert_eq!((file.stats.rows, file.stats.columns.len()), (Some(3), 1));
    assert_eq!(
        (delta.rows.removed[0].path.clone(), delta.rows.removed[0].vector.as_deref()),
        (file.path.clone(), Some("ux@1"))
    );
    assert_eq!(delta.rows.change_files[0].partition, [("p".to_owned(), None)]);
    assert!(delta.data_change && !delta.schema_changed && !delta.blind_append);
}

#[tokio::test]
async fn every_version_comes_once_and_in_order() {
    let log = log(&[(0, HEAD), (1, ADD), (2, r#"{"commitInfo":{}}"#)]).await;
    let versions = |it: Vec<VersionDelta>| it.iter().map(|it| it.version.id.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(versions(read(&log, None).await.unwrap()), "0 1 2");
    assert_eq!(versions(read(&log, Some(1)).await.unwrap()), "2");
    assert_eq!(versions(read(&log, Some(2)).await.unwrap()), "");
    let first = &read(&log, None).await.unwrap()[0];
    assert!(first.schema_changed && first.protocol_changed && first.version.parent.is_none());
}

#[tokio::test]
async fn a_commit_that_is_gone_is_named() {
    let log = log(&[(0, HEAD), (1, ADD), (3, ADD)]).await;
    let err = read(&log, None).await.unwrap_err().to_string();
    assert!(err.contains("00000000000000000002.json"), "{err}");
}

#[tokio::test]
async fn a_size_that_cannot_be_is_an_error() {
    let log = log(&[(0, HEAD), (1, &ADD.replace("\"size\":7", "\"size\":-7"))]).await;
    let err = read(&log, None).await.unwrap_err().to_string();
    assert_eq!(err, "p=2024-01-02/a%20b: size is -7, which cannot be");
}
