//! Which files of the log go, and which must stay.
use lakebed_core::{
    ErrorKind,
    maintain::{Maintenance, Retain, Step},
    table::{Snapshot, Table},
    version::{AsOf, Span},
};
use lakebed_testkit::store::{Fault, Op, Times};
use serde_json::{Value, json};

use super::{DAY, Yard, add, doomed};
use crate::world::metadata;

/// A version a day, each with a file, checkpoints at `checkpoints`, then perhaps tags.
async fn daily(versions: u64, checkpoints: &[u64], configuration: Value) -> Yard {
    let mut yard = Yard::new(configuration).await;
    for version in 1..=versions {
        yard.days(1);
        yard.commit(&[add(&format!("{version}"))]).await;
        if checkpoints.contains(&version) {
            yard.keep_up(&Maintenance::Checkpoint).await;
        }
    }
    yard
}

fn by_age(days: u32) -> Maintenance {
    Maintenance::Expire(Retain { age: Some(DAY * days), at_least: 1, ..Retain::default() })
}

fn newest(at_least: usize) -> Maintenance {
    Maintenance::Expire(Retain { at_least, ..Retain::default() })
}

/// Everything that is left can be read, and the newest version has all its files.
async fn all_readable(yard: &Yard, what: &str) {
    let table = yard.table().await;
    for version in table.timeline(&Span::all()).await.unwrap().versions() {
        let snapshot = table.snapshot(&AsOf::Version(version.id.clone())).await;
        let snapshot = snapshot.unwrap_or_else(|err| panic!("{what}, version {}: {err}", version.id));
        snapshot.totals().await.unwrap_or_else(|err| panic!("{what}, version {}: {err}", version.id));
    }
}

#[tokio::test]
async fn log_clean_up_goes_by_age_and_existing_checkpoints() {
    for (days, checkpoints, tag, expected) in [
        // Day 12 begins with version 12: when the day eight days before it began, version 3 was the newest.
        (8, &[3_u64, 6, 9][..], None, "3.checkpoint 3.json 4.json"),
        (8, &[4, 6], None, "0.json 1.json"),
        (7, &[4, 6], None, "4.checkpoint 4.json 5.json"),
        (8, &[5, 9], None, "0.json 1.json"),
        (8, &[], None, "0.json 1.json"),
        (20, &[3, 6], None, "0.json 1.json"),
        (0, &[3, 6, 12], None, "6.checkpoint 6.json"),
        (0, &[3, 6, 11], None, "11.checkpoint 11.json"),
        // A tag holds what it is read from.
        (0, &[3, 6, 11], Some(7), "6.checkpoint 6.json 7.json"),
        (0, &[3, 6, 11], Some(2), "0.json 1.json"),
        (0, &[3, 6, 11], Some(3), "3.checkpoint 3.json"),
    ] {
        let mut yard = daily(11, checkpoints, json!({})).await;
        yard.days(1);
        match tag {
            Some(version) => yard.tag("mine", version).await,
            None => yard.commit(&[add("12")]).await,
        }
        if checkpoints.contains(&12) {
            yard.keep_up(&Maintenance::Checkpoint).await;
        }
        yard.keep_up(&by_age(days)).await;
        let names = yard.log_names().await;
        assert!(names.starts_with(expected), "{days} days, {checkpoints:?}, {tag:?}: {names}");
        all_readable(&yard, &names).await;
        assert_eq!(yard.files().await.len(), 0, "rows are not its business");
        let after = yard.plan(&by_age(days)).await.unwrap();
        assert!(after.steps.is_empty(), "nothing is left to do: {after:?}");
    }
}

#[tokio::test]
async fn other_rules_write_the_checkpoint_they_need() {
    for (keep, checkpoints, expected) in [
        (2, &[][..], "4.checkpoint 4.json 5.json"),
        (1, &[], "5.checkpoint 5.json"),
        (2, &[4], "4.checkpoint 4.json 5.json"),
        (3, &[2], "3.checkpoint 3.json 4.json 5.json"),
        (9, &[2], "0.json 1.json 2.checkpoint 2.json 3.json 4.json 5.json"),
    ] {
        let yard = daily(5, checkpoints, json!({})).await;
        yard.keep_up(&newest(keep)).await;
        assert_eq!(yard.log_names().await, expected, "{keep} {checkpoints:?}");
        all_readable(&yard, expected).await;
        let gone = yard.table().await.snapshot(&AsOf::Version(0.into())).await;
        assert_eq!(gone.is_err(), keep < 6, "{keep}");
        assert!(gone.err().is_none_or(|err| err.kind() == ErrorKind::NotFound));
    }
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_read_stands_for_nothing() {
    let yard = daily(9, &[3, 6], json!({})).await;
    let path = "_delta_log/00000000000000000006.checkpoint.parquet";
    let body = yard.storage().read(&lakebed_core::path::FilePath::below(path)).await.unwrap().unwrap();
    yard.put(path, body.slice(..body.len() / 2)).await;
    let plan = yard.plan(&by_age(0)).await.unwrap();
    assert!(plan.notes[0].starts_with("checkpoint 6 cannot stand for older versions: "), "{:?}", plan.notes);
    yard.keep_up(&by_age(0)).await;
    let names = yard.log_names().await;
    assert!(names.starts_with("3.checkpoint 3.json 4.json"), "{names}");
    all_readable(&yard, &names).await;
    // An empty one keeps the place of a new one.
    let yard = daily(5, &[2], json!({})).await;
    yard.put("_delta_log/00000000000000000005.checkpoint.parquet", "").await;
    yard.keep_up(&newest(1)).await;
    let names = yard.log_names().await;
    assert!(names.starts_with("2.checkpoint 2.json 3.json"), "{names}");
    all_readable(&yard, &names).await;
}

#[tokio::test]
async fn files_go_from_the_newest_to_the_oldest() {
    let yard = daily(6, &[2, 5], json!({})).await;
    yard.log("00000000000000000003.crc", "{}").await;
    yard.log("00000000000000000000.00000000000000000001.compacted.json", "x").await;
    let plan = yard.plan(&by_age(0)).await.unwrap();
    let order: Vec<String> = doomed(&plan)
        .iter()
        .map(|it| it.path.as_str().trim_start_matches("_delta_log/0000000000000000").trim_start_matches('0').to_owned())
        .collect();
    assert_eq!(order[..5], ["4.json", "3.crc", "3.json", "2.json", "2.checkpoint.parquet"]);
    assert_eq!(order.len(), 8, "{order:?}");
    assert!(plan.notes[0].starts_with("5 commits before version 5 are forgotten"), "{:?}", plan.notes);
}

#[tokio::test]
async fn whatever_stops_it_every_listed_version_can_be_read() {
    for n in 0..60 {
        let yard = daily(6, &[2], json!({})).await;
        let calls = yard.store.requests();
        yard.store.add_rule(None, "", Fault::CrashAfter, Times::Nth(n + 1));
        let table = yard.table().await;
        if let Ok(plan) = table.plan(&newest(2)).await {
            let _ =
                lakebed_core::maintain::run(table.as_ref(), &lakebed_core::commit::StoragePublisher, &yard.env, plan)
                    .await;
        }
        let crashed = yard.store.crashed();
        let made = yard.store.requests() - calls;
        let again = Yard { store: yard.store.restarted(), ..yard };
        all_readable(&again, &format!("dead at call {n} of {made}")).await;
        again.keep_up(&newest(2)).await;
        assert_eq!(again.log_names().await, "5.checkpoint 5.json 6.json", "dead at call {n}");
        if !crashed {
            return;
        }
    }
    panic!("it makes more calls than that");
}

#[tokio::test]
async fn protected_checkpoints_go_all_or_not_at_all() {
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7,
        "writerFeatures": ["checkpointProtection", "domainMetadata"]}});
    for (boundary, expected) in [("8", "0.json 1.json"), ("3", "6.checkpoint 6.json"), ("0", "6.checkpoint 6.json")] {
        let properties = json!({"delta.requireCheckpointProtectionBeforeVersion": boundary});
        let mut yard = Yard::with(protocol.clone(), metadata(&[], properties)).await;
        for version in 1..=9 {
            yard.days(1);
            yard.commit(&[add(&format!("{version}"))]).await;
            if version == 6 {
                yard.keep_up(&Maintenance::Checkpoint).await;
            }
        }
        yard.keep_up(&by_age(0)).await;
        let names = yard.log_names().await;
        assert!(names.starts_with(expected), "{boundary}: {names}");
    }
}

#[tokio::test]
async fn the_hint_does_not_lead_to_what_is_gone() {
    let yard = daily(7, &[3, 6], json!({})).await;
    yard.log("_last_checkpoint", r#"{"version":3,"size":9}"#).await;
    let plan = yard.plan(&by_age(0)).await.unwrap();
    assert!(matches!(&plan.steps[0], Step::Write { path, .. } if path.ends_with("_last_checkpoint")), "{plan:?}");
    yard.keep_up(&by_age(0)).await;
    let snapshot = yard.table().await.latest().await.unwrap();
    assert_eq!((snapshot.totals().await.unwrap().files, snapshot.warnings()), (7, Vec::new()));
}

#[tokio::test]
async fn a_young_log_costs_one_listing() {
    let yard = daily(5, &[3], json!({})).await;
    let table = yard.table().await;
    table.latest().await.unwrap();
    yard.store.clear_log();
    assert!(table.plan(&by_age(30)).await.unwrap().steps.is_empty());
    let log: Vec<Op> = yard.store.log().iter().map(|it| it.op).collect();
    assert_eq!(log, [Op::List, Op::List]);
}

#[tokio::test]
async fn sidecars_that_no_checkpoint_names_go_when_they_are_old() {
    let v2 = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"]}});
    let mut yard = Yard::with(v2, metadata(&[], json!({"delta.checkpointPolicy": "v2"}))).await;
    let lines: Vec<Value> = (0..10_001).map(|it| add(&format!("{it}.parquet"))).collect();
    yard.commit(&lines).await;
    yard.keep_up(&Maintenance::Checkpoint).await;
    let first = yard.names("_delta_log/_sidecars").await;
    yard.days(2);
    yard.commit(&[add("more")]).await;
    yard.keep_up(&Maintenance::Checkpoint).await;
    yard.put("_delta_log/_sidecars/young.parquet", "x").await;
    yard.keep_up(&newest(1)).await;
    let left = yard.names("_delta_log/_sidecars").await;
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(!left.contains(&first[0]) && left.iter().any(|it| it.ends_with("/young.parquet")), "{left:?}");
    assert_eq!(yard.table().await.latest().await.unwrap().totals().await.unwrap().files, 10_002);
}

#[tokio::test]
async fn times_in_commits_decide_where_there_are_any() {
    let protocol = json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7,
        "writerFeatures": ["inCommitTimestamp"]}});
    let metadata = metadata(&[], json!({"delta.enableInCommitTimestamps": "true"}));
    // All files are written on one day, as when a table is copied; the commits say other days.
    let mut yard = Yard::with(protocol.clone(), metadata.clone()).await;
    let start = yard.env.clock.now().0;
    let stamp = |day: i64| json!({"commitInfo": {"inCommitTimestamp": start + day * 86_400_000 + 1}});
    yard.log("00000000000000000000.json", &crate::world::text(&[stamp(0), protocol, metadata])).await;
    for version in 1..=9 {
        yard.commit(&[stamp(version), add(&format!("{version}"))]).await;
        if version == 3 || version == 6 {
            yard.keep_up(&Maintenance::Checkpoint).await;
        }
    }
    yard.days(10);
    yard.keep_up(&by_age(6)).await;
    let names = yard.log_names().await;
    assert!(names.starts_with("3.checkpoint 3.json 4.json"), "{names}");
}
