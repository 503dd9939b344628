use std::sync::Arc;

use lakebed_core::storage::Storage;
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use super::*;

const PROTOCOL: &str = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
const UNKNOWN: &str = r#"{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}"#;

fn metadata(configuration: &str) -> String {
    let schema =
        r#"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}"#;
    format!(
        r#"{{"metaData":{{"id":"t","format":{{"provider":"parquet","options":{{}}}},"schemaString":"{schema}","partitionColumns":[],"configuration":{configuration}}}}}"#
    )
}

fn add(path: &str, rows: u64) -> String {
    format!(
        r#"{{"add":{{"path":"{path}","partitionValues":{{}},"size":10,"modificationTime":0,"dataChange":true,"stats":"{{\"numRecords\":{rows}}}"}}}}"#
    )
}

fn stamp(at: i64) -> String {
    format!(
        r#"{{"commitInfo":{{"inCommitTimestamp":{at},"timestamp":{at},"operation":"WRITE","operationParameters":{{"mode":"Append"}}}}}}"#
    )
}

async fn log(commits: &[(u64, String)]) -> Log {
    let store = InMemory::new();
    for (version, body) in commits {
        store.put(&Path::from(format!("t/_delta_log/{version:020}.json")), body.clone().into()).await.unwrap();
    }
    Log::new(Storage::new(Arc::new(store), Path::from("t"), "memory:///t"))
}

async fn stamped(times: &[i64]) -> Log {
    let on = metadata(r#"{"delta.enableInCommitTimestamps":"true"}"#);
    let commits: Vec<_> = times
        .iter()
        .zip(0..)
        .map(|(at, version)| {
            (version, if version == 0 { format!("{}\n{PROTOCOL}\n{on}", stamp(*at)) } else { stamp(*at) })
        })
        .collect();
    log(&commits).await
}

async fn at(log: &Log, time: i64) -> String {
    match resolve::resolve(&Head::new(log.clone()), &AsOf::Time(Millis(time))).await {
        Ok(found) => format!("{} {}", found.version.id, found.version.committed_at.0),
        Err(err) => err.to_string(),
    }
}

#[tokio::test]
async fn a_moment_is_found_by_the_times_in_commits() {
    let log = stamped(&[1000, 1001, 5000, 5001, 9000]).await;
    for (time, expected) in [
        (1000, "0 1000"),
        (1001, "1 1001"),
        (4999, "1 1001"),
        (5000, "2 5000"),
        (8999, "3 5001"),
        (9000, "4 9000"),
        (99_000, "4 9000"),
    ] {
        assert_eq!(at(&log, time).await, expected, "{time}");
    }
    let early = at(&log, 999).await;
    assert_eq!(
        early,
        "no version is as old as 1970-01-01T00:00:00.999Z: the earliest that can be read is 0, of 1970-01-01T00:00:01.000Z"
    );
}

#[tokio::test]
async fn the_rule_is_said_in_a_sentence() {
    let log = stamped(&[1000, 2000]).await;
    let found = resolve::resolve(&Head::new(log.clone()), &AsOf::Time(Millis(1500))).await.unwrap();
    assert_eq!(
        found.rule,
        "the newest version committed at or before 1970-01-01T00:00:01.500Z, by in-commit timestamps; the next is 1 of 1970-01-01T00:00:02.000Z"
    );
    assert!(found.warnings.is_empty());
    let late = resolve::resolve(&Head::new(log.clone()), &AsOf::Time(Millis(2500))).await.unwrap();
    assert_eq!(
        late.warnings,
        ["1970-01-01T00:00:02.500Z is later than the newest version, 1 of 1970-01-01T00:00:02.000Z"]
    );
}

#[tokio::test]
async fn before_stamps_were_turned_on_the_files_tell_the_time() {
    let on = metadata(r#"{"delta.enableInCommitTimestamps":"true","delta.inCommitTimestampEnablementVersion":"2"}"#);
    let far = 99_000_000_000_000;
    let log = log(&[
        (0, format!("{PROTOCOL}\n{}", metadata("{}"))),
        (1, add("a", 1)),
        (2, format!("{}\n{on}", stamp(far))),
        (3, stamp(far + 1)),
    ])
    .await;
    assert_eq!(at(&log, far).await, format!("2 {far}"));
    assert!(at(&log, far - 1).await.starts_with("1 "), "the files of 0 and 1 are of today");
    let found = resolve::resolve(&Head::new(log.clone()), &AsOf::Time(Millis(far - 1))).await.unwrap();
    assert!(found.warnings[0].contains("change when a table is copied"), "{:?}", found.warnings);
}

#[tokio::test]
async fn versions_that_are_not_there_are_named() {
    let log = stamped(&[1000, 2000]).await;
    let ask = async |id: &str| {
        let found = resolve::resolve(&Head::new(log.clone()), &AsOf::Version(VersionId::new(id))).await;
        found.map_or_else(|err| err.to_string(), |it| it.version.id.to_string())
    };
    assert_eq!(ask("1").await, "1");
    assert!(ask("7").await.contains("newest is 1"), "{}", ask("7").await);
    assert!(ask("-1").await.contains("versions are numbers from 0"));
    assert!(ask("99999999999999999999").await.contains("versions are numbers from 0"));
    let missing = resolve::resolve(&Head::new(log.clone()), &AsOf::Ref("eod".into())).await.unwrap_err();
    assert_eq!(missing.to_string(), "the table has no tag `eod`");
}

#[tokio::test]
async fn a_tag_names_a_version() {
    let domain = r#"{"domainMetadata":{"domain":"lakebed.refs","configuration":"{\"tags\":{\"eod\":{\"version\":0}}}","removed":false}}"#;
    let log = log(&[(0, format!("{PROTOCOL}\n{}", metadata("{}"))), (1, domain.to_owned())]).await;
    let found = resolve::resolve(&Head::new(log.clone()), &AsOf::Ref("eod".into())).await.unwrap();
    assert_eq!((found.version.id.as_str(), found.rule.as_str()), ("0", "tag `eod` names version 0"));
}

async fn shown(log: &Log) -> Vec<String> {
    let timeline = history(&Head::new(log.clone()), &Span::all(), None).await.unwrap();
    let show = |it: &Instant| {
        let Stage::Completed { version: Some(version), .. } = &it.state else { panic!("not completed") };
        let number = |it: Option<u64>| it.map_or("?".to_owned(), |it| it.to_string());
        let it_is = &it.details;
        format!(
            "{} {:?} +{}/-{} files +{}/-{} rows",
            version.id,
            it.action,
            number(it_is.files_added),
            number(it_is.files_removed),
            number(it_is.rows_added),
            number(it_is.rows_removed)
        )
    };
    timeline.instants().iter().map(show).collect()
}

#[tokio::test]
async fn history_counts_what_commits_did() {
    let vector =
        r#""deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":1,"sizeInBytes":4,"cardinality":3}"#;
    let with_vector = add("b", 5).replace("\"dataChange\"", &format!("{vector},\"dataChange\""));
    let log = log(&[
        (0, format!("{UNKNOWN}\n{}", metadata("{}"))),
        (1, format!("{}\n{}", add("a", 7), add("b", 5))),
        (2, format!("{with_vector}\n{}", r#"{"remove":{"path":"b","dataChange":true}}"#)),
        (3, r#"{"remove":{"path":"a","dataChange":true,"stats":"{\"numRecords\":7}"}}"#.to_owned()),
        (
            4,
            format!(
                "{}\n{}\n{}",
                r#"{"commitInfo":{"operation":"UPDATE","operationMetrics":{"numUpdatedRows":"1"}}}"#,
                add("c", 5),
                r#"{"remove":{"path":"b","dataChange":true}}"#
            ),
        ),
        (5, add("d", 5).replace("true", "false")),
    ])
    .await;
    assert_eq!(
        shown(&log).await,
        [
            "0 Create +0/-0 files +0/-0 rows",
            "1 Append +2/-0 files +12/-0 rows",
            "2 Delete +0/-0 files +0/-3 rows",
            "3 Delete +0/-1 files +0/-7 rows",
            "4 RowDelta +1/-1 files +1/-1 rows",
            "5 Compaction +1/-0 files +0/-0 rows",
        ]
    );
}

#[tokio::test]
async fn a_damaged_commit_stays_in_history() {
    let log =
        log(&[(0, format!("{PROTOCOL}\n{}", metadata("{}"))), (1, "{\"add\":{\"pa".to_owned()), (2, add("a", 1))])
            .await;
    assert_eq!(shown(&log).await[1], "1 Other +?/-? files +?/-? rows");
    let timeline = history(&Head::new(log.clone()), &Span::all(), None).await.unwrap();
    assert!(timeline.instants()[1].details.native["error"].as_str().unwrap().contains("line 1"));
}

#[tokio::test]
async fn history_of_what_is_left_after_clean_up() {
    let log = log(&[(5, add("a", 1)), (6, add("b", 1))]).await;
    assert_eq!(shown(&log).await.len(), 2);
    let span = Span { after: Some(5.into()), until: AsOf::Latest };
    assert_eq!(history(&Head::new(log.clone()), &span, None).await.unwrap().instants().len(), 1);
}

#[test]
fn file_times_are_made_to_ascend() {
    let mut listing = crate::log::listing::tests::listing("0.json 1.json 2.json 3.json");
    for (file, at) in listing.files.iter_mut().zip([100, 50, 101, 300]) {
        file.modified_at = Millis(at);
    }
    let times = times::file_times(&listing);
    let shown: Vec<i64> = (0..4).map(|it| times.get(it).unwrap().0).collect();
    assert_eq!((shown, times.mended), (vec![100, 101, 102, 300], vec![1]));
}

#[test]
fn candidates_are_versions_that_can_be_rebuilt() {
    let check = |names: &str, expected: &[u64]| {
        let found = resolve::candidates(&crate::log::listing::tests::listing(names));
        assert_eq!(found.iter().map(|it| it.file.version).collect::<Vec<_>>(), expected, "{names}");
    };
    check("0.json 1.json 2.json", &[0, 1, 2]);
    check("3.json 4.json 5.checkpoint 5.json 6.json", &[5, 6]);
    check("0.json 2.json 3.checkpoint 5.json", &[0, 3]);
    check("7.checkpoint.1.2 7.json 8.json", &[]);
}
