//! Item 11: any version by number and time, and what came between two.
use std::{sync::Arc, time::Duration};

use lakebed_core::{ErrorKind, env::Env};
use lakebed_testkit::{
    env::{ManualClock, SeededIds},
    seed::Seed,
    store::FaultyStore,
};

use crate::mission::{Counted, kind};

/// Versions 0 to 4, an hour apart from 2026-01-01T00:00 on, and the ids of each.
const STORY: [(&str, &str); 5] = [
    ("CREATE TABLE {t} (id BIGINT, s STRING) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true'PROPERTIES)", ""),
    ("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')", "1 2"),
    ("INSERT INTO {t} VALUES (3, 'b')", "1 2 3"),
    ("UPDATE {t} SET id = 20 WHERE id = 2", "1 3 20"),
    ("DELETE FROM {t} WHERE id = 1", "3 20"),
];

async fn told(properties: &str) -> Counted {
    let clock = Arc::new(ManualClock::default());
    let env = Env { clock: Arc::clone(&clock) as _, ids: Arc::new(SeededIds::new(Seed(3))) };
    let store = FaultyStore::new(Seed(4)).timed(Arc::clone(&clock) as _, Duration::ZERO);
    let world = Counted::over(store, env);
    for (text, _) in STORY {
        world.run(&text.replace("PROPERTIES)", &format!("{properties})"))).await;
        clock.advance(Duration::from_secs(3600));
    }
    world
}

async fn ids(world: &Counted, clause: &str) -> String {
    world.run(&format!("SELECT id FROM {{t}} {clause} ORDER BY id")).await.join(" ")
}

#[tokio::test]
async fn item_11_every_version_by_number_and_by_time() {
    for properties in ["", ", 'delta.enableInCommitTimestamps' = 'true'", ", 'delta.checkpointInterval' = '2'"] {
        let world = told(properties).await;
        for (version, (_, expected)) in STORY.iter().enumerate() {
            assert_eq!(ids(&world, &format!("VERSION AS OF {version}")).await, *expected, "{properties} {version}");
            // The store's own clock dates the files; commits date themselves a moment earlier or at the same time.
            let between = format!("TIMESTAMP AS OF '2026-01-01 0{version}:30:00'");
            assert_eq!(ids(&world, &between).await, *expected, "{properties} {between}");
            let at = format!("TIMESTAMP AS OF '2026-01-01T0{version}:00:00Z'");
            assert_eq!(ids(&world, &at).await, *expected, "{properties} {at}");
            if version > 0 {
                let before = format!("TIMESTAMP AS OF '2026-01-01 0{}:59:59.999'", version - 1);
                assert_eq!(ids(&world, &before).await, STORY[version - 1].1, "{properties} {before}");
            }
        }
        let late = world.told("SELECT count(*) FROM {t} VERSION AS OF 5").await;
        assert_eq!(late.unwrap_err().to_string(), "version 5 does not exist: the newest is 4");
        let early = world.told("SELECT count(*) FROM {t} TIMESTAMP AS OF '2025-12-31'").await;
        assert_eq!(kind(&early), Some(ErrorKind::NotFound));
        assert!(early.unwrap_err().to_string().contains("2026-01-01"), "it names the first");
    }
}

#[tokio::test]
async fn item_11_what_was_added_between_two_versions() {
    let world = Counted::new();
    world.run("CREATE TABLE {t} (id BIGINT, s STRING)").await;
    for id in 1..=3 {
        world.run(&format!("INSERT INTO {{t}} VALUES ({id}, 'x')")).await;
    }
    world.run("CALL system.checkpoint(table => '{t}')").await;
    let added = "SELECT version, path FROM delta_log('/lake/t') WHERE action = 'add' AND version > 1 AND version <= 3";
    let added = world.restarted().run(added).await;
    let files =
        async |version: u64| world.run(&format!("SELECT path FROM delta_files('/lake/t', version => {version})")).await;
    let (first, third) = (files(1).await, files(3).await);
    let mut new: Vec<&str> = added.iter().map(|it| it.split_once("  ").unwrap().1).collect();
    let mut expected: Vec<&str> = third.iter().filter(|it| !first.contains(it)).map(String::as_str).collect();
    new.sort_unstable();
    expected.sort_unstable();
    assert_eq!((new.len(), &new), (2, &expected));
    let feed = world.told("SELECT * FROM table_changes('/lake/t', 0, 2)").await;
    assert!(kind(&feed).is_some(), "a table that records no changes says so");
    assert!(feed.unwrap_err().to_string().contains("delta.enableChangeDataFeed"));
}

#[tokio::test]
async fn item_11_what_changed_between_two_versions() {
    let world = told("").await;
    let changes = async |first: u32, last: u32| {
        let columns = "_commit_version, _change_type, id";
        let sql = format!("SELECT {columns} FROM table_changes('/lake/t', {first}, {last}) ORDER BY {columns}");
        world.run(&sql).await
    };
    let all = [
        "1  insert  1",
        "1  insert  2",
        "2  insert  3",
        "3  update_postimage  20",
        "3  update_preimage  2",
        "4  delete  1",
    ];
    assert_eq!(changes(0, 4).await, all);
    assert_eq!(changes(2, 3).await, all[2..5]);
    assert_eq!(changes(4, 4).await, all[5..]);
}
