//! What went wrong in other implementations, as far as it is a matter of writing and upkeep, and does not here.
use std::{sync::Arc, time::Duration};

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use futures::TryStreamExt;
use lakebed_core::{
    change::{Change, RowDelta},
    commit::StoragePublisher,
    env::Clock,
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    file::{ColumnStats, DataFile},
    format::{CreateTable, TableFormat},
    maintain::{self, Applied, Maintenance, Retain},
    path::FilePath,
    scan::{Scan, ScanTask},
    table::{Layout, Table},
    timeline::Action,
    version::{AsOf, Millis, Span},
};
use lakebed_delta::Delta;
use lakebed_testkit::{
    conformance::{self, Subject, World, commit, ids, location},
    env::{ManualClock, SeededIds},
    pond::intent,
    rows::Rows,
    seed::Seed,
    store::FaultyStore,
    value::Value,
};

use crate::written::{self, Written};

const LATER: Millis = Millis(i64::MAX / 4);
/// As a partition's value each of them is spelled otherwise in the folder, in the log, or in both.
const ODD: [&str; 7] = ["a b", "c%d", "100%25", "~x", "é", "2026-01-01 00:00:00", "q#1?&+=:"];

async fn odd_partitions(world: &World) -> Arc<dyn Table> {
    let table = written::create(world.location(), &["name"], Written::PLAIN.properties()).await.unwrap();
    for (at, name) in ODD.iter().enumerate() {
        let write = table.begin(intent(Action::Append)).await.unwrap();
        let mut rows = Rows::new(["id", "name"]);
        let id = i64::try_from(at).unwrap();
        rows.rows = [2 * id, 2 * id + 1].into_iter().map(|id| vec![id.into(), (*name).into()]).collect();
        let added = vec![written::data_file(table.storage(), &world.env, &write, &rows).await.unwrap()];
        let changes = [Change::Rows(RowDelta { added, ..RowDelta::default() })];
        commit(table.as_ref(), &world.env, &write, &changes).await.unwrap();
    }
    table
}

async fn run(table: &dyn Table, world: &World, action: &Maintenance) -> Applied {
    let plan = table.plan(action).await.unwrap();
    maintain::run(table, &StoragePublisher, &world.env, plan).await.unwrap()
}

async fn objects(world: &World) -> Vec<String> {
    let found = world.store.restarted().storage("t").list_all("").map_ok(|it| it.path).try_collect::<Vec<_>>().await;
    found.unwrap().into_iter().filter(|it| !it.starts_with("_delta_log/")).collect()
}

/// delta-rs 4352: a file's identity is its path decoded once, so that what is removed is what was read.
#[tokio::test]
async fn a_file_in_a_partition_of_any_name_is_removed_once_and_for_all() {
    let world = World::memory();
    let table = odd_partitions(&world).await;
    let last = 2 * i64::try_from(ODD.len()).unwrap();
    for gone in 0..last {
        let write = table.begin(intent(Action::Delete)).await.unwrap();
        let tasks: Vec<ScanTask> = write.base.tasks(&Scan::all()).try_collect().await.unwrap();
        let name = ODD[usize::try_from(gone / 2).unwrap()];
        let is_of = |it: &&ScanTask| it.files[0].partition.contains(&("name".into(), Some(Scalar::Utf8(name.into()))));
        let task = tasks.iter().find(is_of).unwrap_or_else(|| panic!("a file of {name}"));
        let mut stay = Rows::new(["id", "name"]);
        stay.rows.extend((gone % 2 == 0).then(|| vec![(gone + 1).into(), Value::from(name)]));
        let mut delta = RowDelta::default();
        delta.removed.push(lakebed_core::file::FileKey { path: task.files[0].path.clone(), vector: None });
        if !stay.is_empty() {
            delta.added.push(written::data_file(table.storage(), &world.env, &write, &stay).await.unwrap());
        }
        commit(table.as_ref(), &world.env, &write, &[Change::Rows(delta)]).await.unwrap();
        let left: Vec<i64> = (gone + 1..last).collect();
        assert_eq!(ids(&Written::PLAIN, table.as_ref(), &AsOf::Latest).await.unwrap(), left, "{name}");
    }
}

/// delta-rs 4646: what a vacuum counts as deleted is deleted, whatever the folder is called.
#[tokio::test]
async fn a_vacuum_deletes_what_it_counts() {
    for lite in [false, true] {
        let world = World::memory();
        let table = odd_partitions(&world).await;
        assert_eq!(objects(&world).await.len(), ODD.len());
        let write = table.begin(intent(Action::Delete)).await.unwrap();
        let tasks: Vec<ScanTask> = write.base.tasks(&Scan::all()).try_collect().await.unwrap();
        let key = |it: &ScanTask| lakebed_core::file::FileKey { path: it.files[0].path.clone(), vector: None };
        let removed = tasks.iter().skip(1).map(key).collect();
        let delta = RowDelta { removed, ..RowDelta::default() };
        commit(table.as_ref(), &world.env, &write, &[Change::Rows(delta)]).await.unwrap();
        let action = Maintenance::Vacuum { retain: Retain::default(), older_than: Some(LATER), lite, forced: true };
        let applied = run(table.as_ref(), &world, &action).await;
        assert!(applied.stopped.is_none() && applied.failed.is_empty(), "{applied:?}");
        assert_eq!(applied.removed, ODD.len() as u64 - 1, "{applied:?}");
        assert_eq!(objects(&world).await.len(), 1, "lite: {lite}");
        assert_eq!(ids(&Written::PLAIN, table.as_ref(), &AsOf::Latest).await.unwrap().len(), 2);
    }
}

/// delta-rs 2174, delta 4784: the checkpoint that old versions start from stays, with all that follows it.
#[tokio::test]
async fn clean_up_leaves_what_every_listed_version_needs() {
    let subject = Written::VECTORS;
    for (checkpoints, keep_days) in
        [(vec![], 1), (vec![4], 1), (vec![2, 6], 3), (vec![0], 1), (vec![9], 1), (vec![3, 9], 5)]
    {
        let clock = Arc::new(ManualClock::default());
        let store = FaultyStore::new(Seed(1)).timed(Arc::clone(&clock) as Arc<dyn Clock>, Duration::ZERO);
        let env = lakebed_core::env::Env {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids: Arc::new(SeededIds::new(Seed(2))),
        };
        let table = subject.create(location(store.storage("t"), &env)).await.unwrap();
        for version in 0..10 {
            if version > 0 {
                subject.append(table.as_ref(), &env, &conformance::rows([version])).await.unwrap();
            }
            if checkpoints.contains(&version) {
                let plan = table.plan(&Maintenance::Checkpoint).await.unwrap();
                maintain::run(table.as_ref(), &StoragePublisher, &env, plan).await.unwrap();
            }
            clock.advance(Duration::from_secs(86_400));
        }
        let retain = Retain { age: Some(Duration::from_secs(keep_days * 86_400)), at_least: 1, ..Retain::default() };
        let plan = table.plan(&Maintenance::Expire(retain)).await.unwrap();
        let applied = maintain::run(table.as_ref(), &StoragePublisher, &env, plan).await.unwrap();
        let what = format!("checkpoints {checkpoints:?}, {keep_days} days: {applied:?}");
        assert!(applied.stopped.is_none(), "{what}");
        let again = subject.open(location(store.restarted().storage("t"), &env)).await.unwrap();
        let listed: Vec<_> = again.timeline(&Span::all()).await.unwrap().versions().cloned().collect();
        assert!(listed.len() >= usize::try_from(keep_days).unwrap(), "{what}");
        for version in &listed {
            let found = ids(&subject, again.as_ref(), &AsOf::Version(version.id.clone())).await;
            let last: i64 = version.id.as_str().parse().unwrap();
            let expected: Vec<i64> = (1..=last).collect();
            assert_eq!(found.unwrap_or_else(|err| panic!("{what}, version {last}: {err}")), expected, "{what}");
        }
        subject.append(again.as_ref(), &env, &conformance::rows([99])).await.unwrap();
        assert_eq!(ids(&subject, again.as_ref(), &AsOf::Latest).await.unwrap().len(), 10, "{what}");
    }
}

/// delta-kernel-rs 1002: a bound that is stored in milliseconds must not cut off a value's microseconds.
#[tokio::test]
async fn a_bound_with_microseconds_never_hides_its_own_value() {
    for zone in [Some("UTC"), None] {
        let world = World::memory();
        let at_type = DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let schema = Arc::new(Schema::new(vec![Field::new("at", at_type, true)]));
        let table = CreateTable { schema, layout: Layout::default(), properties: Vec::new(), comment: None };
        let begun = Delta.begin_create(world.location(), table, intent(Action::Create)).await.unwrap();
        commit(begun.table.as_ref(), &world.env, &begun.write, &[]).await.unwrap();
        let table = begun.table;
        let micros = [-1_999_999_i64, -1, 0, 1, 1_767_225_600_123_456, 1_767_225_600_999_999];
        for value in micros {
            let write = table.begin(intent(Action::Append)).await.unwrap();
            let mut file = DataFile::parquet(FilePath::below(format!("{value}.parquet")), 10);
            file.stats.rows = Some(1);
            let (lower, upper) = (Some(Scalar::Timestamp(value)), Some(Scalar::Timestamp(value)));
            let stats = ColumnStats { lower, upper, nulls: Some(0), exact: true };
            file.stats.columns = vec![(ColumnPath::top("at"), stats)];
            let changes = [Change::Rows(RowDelta { added: vec![file], ..RowDelta::default() })];
            commit(table.as_ref(), &world.env, &write, &changes).await.unwrap();
            let newest = table.snapshot(&AsOf::Latest).await.unwrap();
            let predicate = Predicate::Compare(ColumnPath::top("at"), Cmp::Eq, Scalar::Timestamp(value));
            let scan = Scan { predicate, ..Scan::all() };
            let tasks: Vec<ScanTask> = newest.tasks(&scan).try_collect().await.unwrap();
            let name = format!("{value}.parquet");
            assert!(tasks.iter().any(|it| it.files[0].path.as_str() == name), "{zone:?} {value} is pruned away");
        }
    }
}
