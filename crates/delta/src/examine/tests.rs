use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
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

/// Stands for a Parquet file of [`ROWS`] rows.
const DATA: &str = "PAR1";
const ROWS: usize = 4;

fn data() -> Vec<u8> {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let ids: Int64Array = (0..ROWS).map(|it| i64::try_from(it).ok()).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids)]).unwrap();
    lakebed_testkit::batch::parquet_bytes(&[batch], &schema, 1024).unwrap().to_vec()
}

fn add(path: &str, more: &str) -> String {
    let size = data().len();
    format!(
        r#"{{"add":{{"path":"{path}","partitionValues":{{"p":"2024-01-02"}},"size":{size},"modificationTime":0,"dataChange":true{more}}}}}"#
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
        let body = if *body == DATA { data() } else { body.as_bytes().to_vec() };
        store.put(&Path::parse(path).unwrap(), body.into()).await.unwrap();
    }
    found_in(Storage::new(Arc::new(store), Path::from("t"), "memory:///t")).await
}

async fn found_in(storage: Storage) -> Vec<String> {
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
    assert_eq!(findings(&[("0.json", HEAD), ("1.json", &one), ("a b", DATA)]).await, [""; 0]);
}

/// Links are not followed, and no reason to say nothing of the rest.
#[tokio::test]
async fn a_link_in_the_place_of_a_file_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("_delta_log")).unwrap();
    for (version, body) in [(0, HEAD.to_owned()), (1, [add("a", ""), add("b", ""), add("c", "")].join("\n"))] {
        std::fs::write(folder.path().join(format!("_delta_log/{version:020}.json")), body).unwrap();
    }
    std::fs::write(folder.path().join("c"), data()).unwrap();
    std::os::unix::fs::symlink("c", folder.path().join("a")).unwrap();
    let disk = lakebed_core::storage::LocalDisk::new(folder.path());
    let found = found_in(Storage::new(Arc::new(disk), Path::default(), "file:///t")).await;
    assert_eq!(
        found,
        [
            "D008 Error a: a symbolic link stands in its place, and links below a table are not followed",
            "D008 Error b: the data file is missing",
        ]
    );
}

#[tokio::test]
async fn missing_and_changed_files_are_named() {
    let vector = r#","stats":"{\"numRecords\":4}","deletionVector":{"storageType":"u","pathOrInlineDv":"^-aqEH.-t@S}K{vb[*k^","offset":1,"sizeInBytes":34,"cardinality":2}"#;
    let commit = [add("a", ""), add("b", ""), add("c", vector)].join("\n");
    let found = findings(&[("0.json", HEAD), ("1.json", &commit), ("b", "longer"), ("c", DATA)]).await;
    let resized = format!("D017 Error b: 6 bytes long, {} by the log", data().len());
    assert_eq!(
        found,
        [
            "D008 Error a: the data file is missing",
            "D009 Error deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin: the file with the deletion vector of c is missing",
            resized.as_str(),
        ]
    );
}

#[tokio::test]
async fn a_gap_says_what_can_still_be_read() {
    let found = findings(&[("0.json", HEAD), ("1.json", &add("a", "")), ("3.json", "{}"), ("a", DATA)]).await;
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
        let found = findings(&[("0.json", HEAD), ("1.json", commit), ("a", DATA)]).await;
        assert_eq!(found, [expected]);
    }
    let one = add("a", "");
    let found = findings(&[("0.json", HEAD), ("1.json", &one), ("1.crc", sum), ("a", DATA)]).await;
    assert!(
        found.iter().any(|it| it.starts_with("D016 ") && it.contains("its metaData is not the log's")),
        "{found:?}"
    );
    let (protocol, metadata) = HEAD.split_once('\n').unwrap();
    let inner = |line: &str| line[line.find(':').unwrap() + 1..line.len() - 1].to_owned();
    let (protocol, metadata) = (inner(protocol), inner(metadata));
    let sum = format!(r#"{{"tableSizeBytes":4,"numFiles":7,"metadata":{metadata},"protocol":{protocol}}}"#);
    let found = findings(&[("0.json", HEAD), ("1.json", &one), ("1.crc", &sum), ("a", DATA)]).await;
    let miscounted = format!("says 7 files of 4 bytes; the log has 1 of {}", data().len());
    assert!(found.iter().any(|it| it.contains(&miscounted)), "{found:?}");
}

#[tokio::test]
async fn statistics_and_data_files_are_compared() {
    let stats = |text: &str| format!(r#","stats":{}"#, serde_json::Value::from(text));
    let crossed = r#"{"numRecords":4,"minValues":{"id":9},"maxValues":{"id":3},"nullCount":{"id":0}}"#;
    let nulls = r#"{"numRecords":4,"nullCount":{"id":5}}"#;
    for (more, body, expected) in [
        (stats(crossed), DATA, "D012 Warn a: the minimum of `id` is 9, its maximum 3"),
        (stats(nulls), DATA, "D012 Warn a: nullCount of `id` is 5 of 4 rows"),
        (stats(r#"{"numRecords":-4}"#), DATA, "D012 Warn a: numRecords is -4"),
        (stats(r#"{"numRecords":40}"#), DATA, "D012 Error a: numRecords is 40, and the file has 4 rows"),
        (String::new(), "no Parquet", "D024 Error a: "),
    ] {
        // Of the size the log says, so that only its bytes are wrong.
        let body =
            if body == DATA { body.to_owned() } else { body.repeat(data().len()).chars().take(data().len()).collect() };
        let found = findings(&[("0.json", HEAD), ("1.json", &add("a", &more)), ("a", &body)]).await;
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}, not {expected}");
    }
}

#[tokio::test]
async fn a_partition_value_that_is_left_out_is_not_null() {
    let (none, null) =
        (add("a", "").replace(r#""p":"2024-01-02""#, ""), add("a", "").replace(r#""2024-01-02""#, "null"));
    let found = findings(&[("0.json", HEAD), ("1.json", &none), ("a", DATA)]).await;
    assert_eq!(found, ["D020 Error a: a: its add action leaves out the value of partition column `p`"]);
    assert_eq!(findings(&[("0.json", HEAD), ("1.json", &null), ("a", DATA)]).await, [""; 0]);
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
