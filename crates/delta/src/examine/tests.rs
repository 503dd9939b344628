use std::sync::Arc;

use lakebed_core::{
    commit::{Publish, Publisher},
    env::Env,
    format::{OpenOptions, TableLocation},
    storage::{Put, Storage},
};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use super::*;

#[derive(Debug)]
struct NoPublisher;

#[async_trait::async_trait]
impl Publisher for NoPublisher {
    async fn publish(&self, _storage: &Storage, _publish: &Publish) -> Result<Put> {
        Ok(Put::Unknown)
    }
}

const HEAD: &str = concat!(
    r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
    "\n",
    r#"{"metaData":{"id":"t","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},{\"name\":\"p\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":["p"],"configuration":{}}}"#
);

fn add(path: &str, more: &str) -> String {
    format!(
        r#"{{"add":{{"path":"{path}","partitionValues":{{"p":"2024-01-02"}},"size":4,"modificationTime":0,"dataChange":true{more}}}}}"#
    )
}

/// One line a finding, without what to do about it.
async fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let store = InMemory::new();
    for (path, body) in files {
        let name = path.split_once('.').filter(|(version, _)| version.bytes().all(|it| it.is_ascii_digit()));
        let path = match name {
            Some((version, rest)) => format!("t/_delta_log/{:020}.{rest}", version.parse::<u64>().unwrap()),
            None => format!("t/{path}"),
        };
        store.put(&Path::parse(path).unwrap(), (*body).to_owned().into()).await.unwrap();
    }
    let storage = Storage::new(Arc::new(store), Path::from("t"), "memory:///t");
    let location = TableLocation {
        storage,
        publisher: Arc::new(NoPublisher),
        env: Env::system(),
        options: OpenOptions::default(),
    };
    let found = examine(&DeltaTable::new(location)).await.unwrap();
    found.iter().map(|it| format!("{} {:?} {}: {}", it.code, it.level, it.object, it.evidence)).collect()
}

#[tokio::test]
async fn a_healthy_table_has_no_findings() {
    let one = add("a%20b", "");
    assert_eq!(findings(&[("0.json", HEAD), ("1.json", &one), ("a b", "PAR1")]).await, [""; 0]);
}

#[tokio::test]
async fn missing_and_changed_files_are_named() {
    let vector = r#","stats":"{\"numRecords\":9}","deletionVector":{"storageType":"u","pathOrInlineDv":"^-aqEH.-t@S}K{vb[*k^","offset":1,"sizeInBytes":34,"cardinality":2}"#;
    let commit = [add("a", ""), add("b", ""), add("c", vector)].join("\n");
    let found = findings(&[("0.json", HEAD), ("1.json", &commit), ("b", "longer"), ("c", "PAR1")]).await;
    assert_eq!(
        found,
        [
            "D008 Error a: the data file is missing",
            "D009 Error deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin: the file with the deletion vector of c is missing",
            "D017 Error b: 6 bytes long, 4 by the log",
        ]
    );
}

#[tokio::test]
async fn a_gap_says_what_can_still_be_read() {
    let found = findings(&[("0.json", HEAD), ("1.json", &add("a", "")), ("3.json", "{}"), ("a", "PAR1")]).await;
    assert_eq!(found[0], "D004 Error _delta_log/00000000000000000002.json: log version 2 is gone, but 3 is there");
    assert!(found[1].starts_with("D019 Error version 3: "), "{found:?}");
}

#[tokio::test]
async fn damaged_commits_and_hints_are_named() {
    let found = findings(&[("0.json", HEAD), ("1.json", "{\"add\""), ("_delta_log/_last_checkpoint", "{")]).await;
    assert!(found[0].starts_with("D005 Error _delta_log/00000000000000000001.json: "), "{found:?}");
    assert!(found.iter().any(|it| it.starts_with("D019 Error version 1")), "{found:?}");
    assert!(found.iter().any(|it| it.starts_with("D001 Warn _delta_log/_last_checkpoint: ")), "{found:?}");
    let stale = findings(&[("0.json", HEAD), ("_delta_log/_last_checkpoint", r#"{"version":5}"#)]).await;
    assert!(stale[0].contains("names checkpoint 5, which is not there"), "{stale:?}");
}

#[tokio::test]
async fn what_a_table_says_that_cannot_be() {
    let twice = [add("a", ""), add("a", "")].join("\n");
    let values = add("a", "").replace("2024-01-02", "soon");
    let stats = add("a", r#","stats":"{""#);
    let removed = r#"{"remove":{"path":"z","dataChange":true}}"#;
    let sum = r#"{"tableSizeBytes":4,"numFiles":7,"metadata":{"id":"t","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":[],"configuration":{}},"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
    for (commit, expected) in [
        (twice.as_str(), "D011 Warn _delta_log/00000000000000000001.json: adds a twice"),
        (values.as_str(), "D020 Error a: a: partition value `soon` of column `p` is not a Date32"),
        (stats.as_str(), "D012 Warn version 1: a: stats is not JSON: ignored"),
        (removed, "D011 Info _delta_log/00000000000000000001.json: removes z, which was not there (with that vector)"),
    ] {
        let found = findings(&[("0.json", HEAD), ("1.json", commit), ("a", "PAR1")]).await;
        assert_eq!(found, [expected]);
    }
    let one = add("a", "");
    let found = findings(&[("0.json", HEAD), ("1.json", &one), ("1.crc", sum), ("a", "PAR1")]).await;
    assert!(
        found.iter().any(|it| it.starts_with("D016 ") && it.contains("its metaData is not the log's")),
        "{found:?}"
    );
    let (protocol, metadata) = HEAD.split_once('\n').unwrap();
    let inner = |line: &str| line[line.find(':').unwrap() + 1..line.len() - 1].to_owned();
    let (protocol, metadata) = (inner(protocol), inner(metadata));
    let sum = format!(r#"{{"tableSizeBytes":4,"numFiles":7,"metadata":{metadata},"protocol":{protocol}}}"#);
    let found = findings(&[("0.json", HEAD), ("1.json", &one), ("1.crc", &sum), ("a", "PAR1")]).await;
    assert!(found.iter().any(|it| it.contains("says 7 files of 4 bytes; the log has 1 of 4")), "{found:?}");
}

#[tokio::test]
async fn tables_this_build_cannot_read_are_examined_all_the_same() {
    let head = HEAD.replace("\"minReaderVersion\":1", "\"minReaderVersion\":5");
    let found = findings(&[("0.json", &head), ("1.json", &add("a", ""))]).await;
    assert_eq!(
        found,
        [
            "D006 Error version 1: table needs reader version 5; this build reads versions 1 to 3",
            "D008 Error a: the data file is missing",
        ]
    );
}

#[tokio::test]
async fn many_of_a_kind_are_counted() {
    let adds: Vec<String> = (0..50).map(|it| add(&format!("f{it}"), "")).collect();
    let found = findings(&[("0.json", HEAD), ("1.json", &adds.join("\n"))]).await;
    assert_eq!((found.len(), found[20].as_str()), (21, "D008 Error 30 more: the same of other objects"));
}

#[test]
fn numbers_are_shown_as_ranges() {
    assert_eq!(ranges([0, 1, 2, 4, 6, 7]), "0-2, 4, 6-7");
    assert_eq!(ranges([]), "none");
}
