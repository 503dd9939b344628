//! Items 7 to 9: checkpoints hold everything, and none of them is needed while the log is there.
use std::fs;

use lakebed_core::ErrorKind;
use lakebed_testkit::corpus;

use super::{commit_name, commits};
use crate::mission::{Disk, names};

/// A table of `versions` appends with tombstones, a job, a tag and a property; a checkpoint every `interval` versions.
async fn table(versions: u64, interval: u64) -> Disk {
    let disk = Disk::new();
    disk.run(&format!(
        "CREATE TABLE {{t}} (id BIGINT, s STRING) TBLPROPERTIES ('delta.checkpointInterval' = '{interval}', \
         'mine' = 'kept', 'delta.feature.domainMetadata' = 'supported')"
    ))
    .await;
    disk.run("INSERT INTO {t} VALUES (0, 'gone')").await;
    disk.run("DELETE FROM {t} WHERE id = 0").await;
    disk.run("SET lakebed.txn.app_id = 'job'; SET lakebed.txn.version = 3; INSERT INTO {t} VALUES (3, 'x'); RESET ALL")
        .await;
    disk.run("CALL system.create_tag(table => '{t}', tag => 'eod', version => 1)").await;
    for version in 5..=versions {
        disk.run(&format!("INSERT INTO {{t}} VALUES ({version}, 'x')")).await;
    }
    disk
}

fn log(disk: &Disk) -> std::path::PathBuf {
    disk.path("t/_delta_log")
}

/// Rows, and everything else that a state has.
const STATE: [&str; 5] = [
    "SELECT * FROM {t} ORDER BY id",
    "SELECT * FROM delta.`{path}$transactions` ORDER BY 1",
    "SELECT * FROM delta.`{path}$domains` ORDER BY 1",
    "SELECT * FROM delta.`{path}$protocol`",
    "SELECT * FROM delta.`{path}$properties` ORDER BY 1",
];

async fn state(disk: &Disk) -> Vec<Vec<String>> {
    let mut state = Vec::new();
    for text in STATE {
        state.push(disk.afresh(text).await.unwrap_or_else(|err| panic!("{text}: {err}")));
    }
    state
}

#[tokio::test]
async fn item_07_a_checkpoint_on_demand_holds_the_whole_state() {
    let disk = table(6, 1_000).await;
    let before = state(&disk).await;
    disk.run("CALL system.checkpoint(table => '{t}')").await;
    for version in 0..=6 {
        fs::remove_file(log(&disk).join(commit_name(version))).unwrap();
    }
    assert_eq!(state(&disk).await, before, "the JSON before the checkpoint is gone");
    let checkpoint = log(&disk).join("00000000000000000006.checkpoint.parquet");
    let kinds =
        "count(protocol), count(\"metaData\"), count(add), count(remove), count(txn), count(\"domainMetadata\")";
    let counted = disk.run(&format!("SELECT {kinds} FROM parquet('{}')", checkpoint.display())).await;
    assert_eq!(counted, ["1  1  3  1  1  1"], "live files, and the tombstone that is not old yet");
    let again = "SET lakebed.txn.app_id = 'job'; SET lakebed.txn.version = 3; INSERT INTO {t} VALUES (3, 'x')";
    assert_eq!(disk.afresh(again).await.unwrap(), ["0"], "the job is remembered");
    let refused = disk.afresh("CALL system.create_tag(table => '{t}', tag => 'eod', version => 6)").await;
    assert!(refused.is_err(), "and so is the tag");
    disk.run("INSERT INTO {t} VALUES (7, 'x')").await;
    assert_eq!(disk.afresh("SELECT count(*) FROM {t}").await.unwrap(), ["4"]);
}

#[tokio::test]
async fn item_07_expired_tombstones_are_left_out() {
    let disk = table(6, 1_000).await;
    disk.run("ALTER TABLE {t} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')").await;
    tokio::task::yield_now().await;
    disk.run("CALL system.checkpoint(table => '{t}')").await;
    let checkpoint = log(&disk).join("00000000000000000007.checkpoint.parquet");
    let removes = disk.run(&format!("SELECT count(remove) FROM parquet('{}')", checkpoint.display())).await;
    assert_eq!(removes, ["0"]);
}

/// Offsets to cut a file of this length at: its ends, its footer's ends, and some between.
fn offsets(length: usize) -> Vec<usize> {
    let mut offsets: Vec<usize> = (0..16).map(|it| length * it / 16).collect();
    offsets.extend([1, 3, 4, 5, length - 1, length - 4, length - 7, length - 8, length - 9, length - 40]);
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

#[tokio::test]
async fn item_08_a_checkpoint_cut_anywhere_is_a_warning() {
    let disk = table(22, 10).await;
    let before = state(&disk).await;
    assert_eq!(disk.warnings().await, [""; 0]);
    let newest = log(&disk).join("00000000000000000020.checkpoint.parquet");
    let whole = fs::read(&newest).unwrap();
    for at in offsets(whole.len()) {
        fs::write(&newest, &whole[..at]).unwrap();
        assert_eq!(state(&disk).await, before, "cut at {at}");
        let warnings = disk.warnings().await;
        assert!(warnings.iter().any(|it| it.contains("20.checkpoint.parquet")), "cut at {at}: {warnings:?}");
    }
    let mut noise = whole.clone();
    noise[..64].fill(0xA5);
    let end = noise.len() - 32;
    noise[end..].fill(0x5A);
    fs::write(&newest, noise).unwrap();
    assert_eq!(state(&disk).await, before, "other bytes");
}

#[tokio::test]
async fn item_08_an_older_checkpoint_stands_in_then_the_log() {
    let disk = table(22, 10).await;
    let before = state(&disk).await;
    let checkpoint = |version: u64| log(&disk).join(format!("{version:020}.checkpoint.parquet"));
    fs::write(checkpoint(20), "PAR1").unwrap();
    // Without the log's beginning only the older checkpoint can carry the table.
    let begun: Vec<_> =
        (0..10).map(|it| (commit_name(it), fs::read(log(&disk).join(commit_name(it))).unwrap())).collect();
    for (name, _) in &begun {
        fs::remove_file(log(&disk).join(name)).unwrap();
    }
    assert_eq!(state(&disk).await, before, "from version 10");
    for (name, body) in &begun {
        fs::write(log(&disk).join(name), body).unwrap();
    }
    fs::remove_file(checkpoint(10)).unwrap();
    assert_eq!(state(&disk).await, before, "from the beginning");
    fs::remove_file(checkpoint(20)).unwrap();
    assert_eq!(state(&disk).await, before, "no checkpoint, and a hint to one");
    assert!(!disk.warnings().await.is_empty());
}

#[tokio::test]
async fn item_08_a_hint_that_is_gone_or_lies_is_a_warning() {
    let disk = table(22, 10).await;
    let before = state(&disk).await;
    let hint = log(&disk).join("_last_checkpoint");
    fs::remove_file(&hint).unwrap();
    assert_eq!(state(&disk).await, before, "no hint");
    for lie in [
        r#"{"version":99,"size":5}"#,
        r#"{"version":15,"size":5}"#,
        r#"{"version":20,"size":5,"parts":3}"#,
        r#"{"version":-1}"#,
        "{",
        "",
    ] {
        fs::write(&hint, lie).unwrap();
        assert_eq!(state(&disk).await, before, "{lie}");
        disk.run("SELECT count(*) FROM {t}").await;
    }
    disk.run("INSERT INTO {t} VALUES (23, 'x')").await;
    assert_eq!(disk.afresh("SELECT max(id) FROM {t}").await.unwrap(), ["23"], "and it goes on");
}

/// Lakebed writes no classic checkpoint in parts; Spark did.
#[tokio::test]
async fn item_08_a_part_that_is_gone_is_a_warning() {
    let Some(case) = corpus::case("delta", "multipart-checkpoint") else { return };
    let disk = Disk::new();
    copy(&case.table(), &disk.path("t"));
    let rows = "SELECT * FROM {t} ORDER BY 1";
    let before = disk.afresh(rows).await.unwrap();
    let part = log(&disk).join("00000000000000000001.checkpoint.0000000002.0000000002.parquet");
    let whole = fs::read(&part).unwrap();
    for cut in [whole.len() / 2, 0] {
        fs::write(&part, &whole[..cut]).unwrap();
        assert_eq!(disk.afresh(rows).await.unwrap(), before, "cut at {cut}");
    }
    fs::remove_file(&part).unwrap();
    assert_eq!(disk.afresh(rows).await.unwrap(), before);
    assert!(!disk.warnings().await.is_empty());
}

#[tokio::test]
async fn item_08_a_sidecar_that_is_gone_is_a_warning() {
    let disk = table(6, 1_000).await;
    disk.run("ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')").await;
    let before = state(&disk).await;
    disk.run("CALL system.checkpoint(table => '{t}')").await;
    assert_eq!(state(&disk).await, before);
    let found = names(&log(&disk)).into_iter().find(|it| it.contains(".checkpoint.")).unwrap();
    fs::write(log(&disk).join(&found), "{").unwrap();
    assert_eq!(state(&disk).await, before, "{found}");
    assert!(!disk.warnings().await.is_empty());
    let Some(case) = corpus::case("delta", "v2-checkpoint-json-sidecars") else { return };
    let disk = Disk::new();
    copy(&case.table(), &disk.path("t"));
    let rows = "SELECT count(*) FROM {t}";
    let before = disk.afresh(rows).await.unwrap();
    let sidecars = log(&disk).join("_sidecars");
    let one = names(&sidecars).remove(0);
    fs::remove_file(sidecars.join(one)).unwrap();
    let after = disk.afresh(rows).await;
    match commits(&disk.path("t")).first() {
        Some(first) if *first == commit_name(0) => assert_eq!(after.unwrap(), before),
        // Nothing is left to rebuild it from: an error, and never fewer rows.
        _ => assert_eq!(after.unwrap_err().kind(), ErrorKind::Corrupt),
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for name in names(from) {
        match from.join(&name).is_dir() {
            true => copy(&from.join(&name), &to.join(&name)),
            false => drop(fs::copy(from.join(&name), to.join(&name)).unwrap()),
        }
    }
}

/// `lakebed doctor` is asked in the tests of the command line.
#[tokio::test]
async fn item_09_a_plain_read_names_what_is_gone_and_what_can_be_read() {
    let disk = table(12, 10).await;
    let checkpointed = disk.run("SELECT count(*) FROM {t} VERSION AS OF 10").await;
    fs::remove_file(log(&disk).join(commit_name(11))).unwrap();
    let err = disk.afresh("SELECT * FROM {t}").await.unwrap_err();
    assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Corrupt, "log version 11 is gone, but 12 is there"));
    assert_eq!(err.hint(), Some("version 10 is the newest that can still be read"));
    assert_eq!(disk.afresh("SELECT count(*) FROM {t} VERSION AS OF 10").await.unwrap(), checkpointed);

    let disk = table(8, 1_000).await;
    fs::remove_file(log(&disk).join(commit_name(5))).unwrap();
    let err = disk.afresh("SELECT * FROM {t} VERSION AS OF 7").await.unwrap_err();
    assert!(err.to_string().contains("log version 5 is gone"), "{err}");
    assert_eq!(disk.afresh("SELECT count(*) FROM {t} VERSION AS OF 4").await.unwrap(), ["1"]);

    let disk = table(8, 1_000).await;
    let path = disk.run("SELECT path FROM delta_files('{path}') ORDER BY path LIMIT 1").await.remove(0);
    fs::remove_file(disk.path("t").join(&path)).unwrap();
    let err = disk.afresh("SELECT sum(id) FROM {t}").await.unwrap_err();
    assert!(err.to_string().contains(&path), "{err}");
}
