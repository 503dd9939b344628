//! Items 4, 5 and 13: writers among others.
use lakebed_core::ErrorKind;

use super::{commit_name, commits};
use crate::{
    mission::{Counted, Disk, alone, kind, process, shown},
    slt::answer,
};

const WRITERS: usize = 16;
const APPENDS: usize = 25;

/// `scripts/stress` does the same with processes.
#[tokio::test]
async fn item_04_of_sixteen_writers_nobody_loses_a_row() {
    let disk = Disk::new();
    disk.run("CREATE TABLE {t} (writer INT, n INT)").await;
    std::thread::scope(|threads| {
        for writer in 0..WRITERS {
            let disk = &disk;
            threads.spawn(move || {
                let (_, session) = process(disk.folder.path());
                for n in 0..APPENDS {
                    let text = disk.sql(&format!("INSERT INTO {{t}} VALUES ({writer}, {n})"));
                    assert_eq!(alone(answer(&session, &text)).unwrap(), ["1"]);
                }
            });
        }
    });
    let last = u64::try_from(WRITERS * APPENDS).unwrap();
    assert_eq!(commits(&disk.path("t")), (0..=last).map(commit_name).collect::<Vec<_>>());
    let count = "SELECT count(*), count(DISTINCT writer * 100 + n), min(n), max(n), max(writer) FROM {t}";
    assert_eq!(disk.afresh(count).await.unwrap(), ["400  400  0  24  15"]);
}

/// A table of two files, ids 1 and 2 in one, 3 and 4 in the other; `theirs` is done while `ours` is about to commit.
async fn met(isolation: &str, ours: &str, theirs: &str) -> (Counted, lakebed_core::Result<Vec<String>>) {
    let world = Counted::new();
    let level = format!("'delta.isolationLevel' = '{isolation}', 'delta.checkpointInterval' = '1000'");
    world.run(&format!("CREATE TABLE {{t}} (id BIGINT, s STRING) TBLPROPERTIES ({level})")).await;
    world.run("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')").await;
    world.run("INSERT INTO {t} VALUES (3, 'b'), (4, 'b')").await;
    world.meddled(theirs, 1);
    let told = world.told(ours).await;
    (world, told)
}

const APPEND: &str = "INSERT INTO {t} VALUES (9, 'z')";
const READING: &str = "INSERT INTO {t} SELECT id + 100, s FROM {t} WHERE id < 3";
const LOW: &str = "DELETE FROM {t} WHERE id = 1";
const HIGH: &str = "DELETE FROM {t} WHERE id = 3";
const UPDATE: &str = "UPDATE {t} SET s = 'u' WHERE id = 2";
const MERGE: &str = "MERGE INTO {t} AS t USING (SELECT 2 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE";
const ALL: &str = "DELETE FROM {t} WHERE s LIKE '%'";
const OPTIMIZE: &str = "OPTIMIZE {t}";
const METADATA: &str = "ALTER TABLE {t} SET TBLPROPERTIES ('mine' = 'x')";
const PROTOCOL: &str = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.domainMetadata' = 'supported')";

/// The conflict matrix: what ours comes to where theirs won. A file that only moved is a conflict for who touches it.
#[tokio::test]
async fn item_05_the_conflict_matrix() {
    let weak = "WriteSerializable";
    let strong = "Serializable";
    let cases = [
        (weak, APPEND, APPEND, true),
        (weak, APPEND, READING, true),
        (weak, APPEND, LOW, true),
        (weak, APPEND, OPTIMIZE, true),
        (weak, APPEND, METADATA, false),
        (weak, APPEND, PROTOCOL, false),
        (weak, LOW, APPEND, true),
        (weak, LOW, READING, true),
        (weak, ALL, READING, false),
        (weak, LOW, HIGH, true),
        (weak, LOW, UPDATE, false),
        (weak, UPDATE, MERGE, false),
        (weak, MERGE, LOW, false),
        (weak, LOW, OPTIMIZE, false),
        (weak, LOW, METADATA, false),
        (weak, LOW, PROTOCOL, false),
        (strong, ALL, APPEND, false),
        (strong, LOW, APPEND, true),
        (strong, LOW, UPDATE, false),
        (strong, LOW, HIGH, true),
        (weak, OPTIMIZE, APPEND, true),
        (weak, OPTIMIZE, LOW, false),
        (weak, OPTIMIZE, OPTIMIZE, false),
        (weak, OPTIMIZE, METADATA, false),
        (weak, METADATA, METADATA, false),
    ];
    let mut wrong = Vec::new();
    for (isolation, ours, theirs, holds) in cases {
        let (world, told) = met(isolation, ours, theirs).await;
        let expected = if holds { None } else { Some(ErrorKind::Conflict) };
        if kind(&told) != expected {
            wrong.push(format!("{isolation}: {ours} after {theirs}: {}", shown(&told)));
        }
        let newest =
            world.restarted().run("SELECT count(*) FROM delta_log('/lake/t') WHERE action = 'commitInfo'").await;
        assert_eq!(newest, [if holds { "5" } else { "4" }], "{ours} after {theirs}: what lost left no version");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn item_05_the_loser_works_on_what_the_winners_left() {
    let (world, told) = met("WriteSerializable", LOW, HIGH).await;
    assert_eq!(told.unwrap(), ["1"]);
    assert_eq!(world.restarted().run("SELECT id FROM {t} ORDER BY id").await, ["2", "4"]);
}

#[tokio::test]
async fn item_05_the_error_names_both_operations_and_the_files_they_share() {
    for (ours, theirs, names) in
        [(LOW, UPDATE, "DELETE lost to UPDATE of version 3: "), (UPDATE, MERGE, "UPDATE lost to MERGE of version 3: ")]
    {
        let (world, told) = met("WriteSerializable", ours, theirs).await;
        let err = told.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Conflict);
        let message = err.to_string();
        assert!(message.starts_with(names), "{message}");
        let removed = "SELECT DISTINCT path FROM delta_log('/lake/t') WHERE action = 'remove' AND version = 3";
        let shared = world.restarted().run(removed).await;
        assert!(message.ends_with(&format!("; both touch {}", shared.join(", "))), "{message}\n{shared:?}");
        assert_eq!(err.hint(), Some("nothing was committed: read the table again and redo the change"));
    }
}

#[tokio::test]
async fn item_05_the_tries_have_an_end() {
    let world = Counted::new();
    world.run("CREATE TABLE {t} (id BIGINT, s STRING) TBLPROPERTIES ('delta.checkpointInterval' = '1000')").await;
    world.meddled(APPEND, usize::MAX);
    let err = world.told("INSERT INTO {t} VALUES (1, 'a')").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict);
    let last = world.restarted().run("SELECT max(version) FROM delta_log('/lake/t')").await;
    assert_eq!(
        err.to_string(),
        format!("WRITE lost {0} times to other writers, last to WRITE of version {0}", last[0])
    );
    assert_eq!(world.restarted().run("SELECT count(*) FROM {t} WHERE id = 1").await, ["0"]);
}

#[tokio::test]
async fn item_13_a_batch_that_is_tried_again_is_written_once() {
    let world = Counted::new();
    world.run("CREATE TABLE {t} (id BIGINT, s STRING)").await;
    let batch = |number: u32| {
        format!(
            "SET lakebed.txn.app_id = 'stream'; SET lakebed.txn.version = {number}; INSERT INTO {{t}} VALUES ({number}, 'x')"
        )
    };
    assert_eq!(world.run(&batch(1)).await, ["1"]);
    for again in [world.restarted(), world.restarted()] {
        assert_eq!(again.run(&batch(1)).await, ["0"], "a retry of another process");
    }
    assert_eq!(world.run(&batch(2)).await, ["1"]);
    assert_eq!(world.run(&batch(1)).await, ["0"], "an older one is done too");
    assert_eq!(world.restarted().run("SELECT id FROM {t} ORDER BY id").await, ["1", "2"]);
    assert_eq!(world.run("SELECT max(version) FROM delta_log('/lake/t')").await, ["2"], "no empty versions");
    // What the log is summed up to remembers it too.
    world.run("CALL system.checkpoint(table => '{t}')").await;
    assert_eq!(world.restarted().run(&batch(2)).await, ["0"]);
}

#[tokio::test]
async fn item_13_two_jobs_that_share_an_id_are_told_so() {
    let world = Counted::new();
    world.run("CREATE TABLE {t} (id BIGINT, s STRING)").await;
    let job = |number: u32| format!("SET lakebed.txn.app_id = 'etl'; SET lakebed.txn.version = {number}; {APPEND}");
    world.meddled(&job(5), 1);
    let err = world.told(&job(6)).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict);
    assert_eq!(
        err.to_string(),
        "WRITE lost to WRITE of version 1: version 1 was also written by application `etl`; give each job its own appId"
    );
    assert_eq!(world.restarted().run("SELECT count(*) FROM {t}").await, ["1"]);
    let other = APPEND.to_owned();
    world.meddled(&other, 1);
    assert_eq!(world.run(&job(6)).await, ["1"], "another job is no conflict");
}
