//! Carrying out plans.
use std::sync::Arc;

use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind,
    commit::StoragePublisher,
    maintain::{self, Applied, Maintenance, MaintenancePlan, Retain, Step},
    scan::{Scan, ScanTask},
    table::Table,
    version::{AsOf, Millis},
};
use lakebed_testkit::{
    pond::{Played, PondSpec},
    rows::Rows,
    seed::Seed,
    store::{Fault, FaultyStore, Op, Times},
    value::Value,
};

const FOREVER: Millis = Millis(i64::MAX / 2);

fn rows(id: i64) -> Rows {
    Rows { rows: vec![vec![id.into(), Value::Null]], ..Rows::new(["id", "name"]) }
}

/// Three files, then one instead of them: versions 0 to 4.
async fn compacted(store: &FaultyStore) -> Played {
    let table = Played::memory(store, &PondSpec::default()).await.unwrap();
    for id in 1..=3 {
        table.append(&rows(id)).await.unwrap();
    }
    table.compact().await.unwrap().unwrap();
    table
}

fn keep(at_least: usize) -> Maintenance {
    Maintenance::Expire(Retain { at_least, ..Retain::default() })
}

async fn plan(table: &Played, action: &Maintenance) -> MaintenancePlan {
    table.table.plan(action).await.unwrap()
}

async fn run(table: &Played, plan: MaintenancePlan) -> Applied {
    maintain::run(table.table.as_ref(), &StoragePublisher, &table.env, plan).await.unwrap()
}

async fn count(table: &Played, as_of: AsOf) -> usize {
    table.rows(&as_of).await.unwrap().len()
}

#[tokio::test]
async fn a_plan_is_carried_out_in_its_order() {
    let store = FaultyStore::new(Seed(1));
    let table = compacted(&store).await;
    let plan = plan(&table, &keep(1)).await;
    let steps = plan.steps.len();
    let before = store.log().len();
    let applied = run(&table, plan).await;
    assert!(applied.stopped.is_none(), "{applied:?}");
    assert_eq!((applied.steps, applied.of), (steps, steps));
    let writes: Vec<_> = store.log().into_iter().skip(before).filter(|it| it.op.writes()).collect();
    let first_delete = writes.iter().position(|it| it.op == Op::Delete).unwrap();
    assert!(writes[..first_delete].iter().any(|it| it.path.ends_with(".checkpoint.json")), "summed up, then deleted");
    assert!(writes[first_delete..].iter().all(|it| it.op == Op::Delete));
    assert_eq!(applied.removed as usize, writes.len() - first_delete);
    assert_eq!(count(&table, AsOf::Latest).await, 3);
    assert_eq!(table.rows(&AsOf::Version(3.into())).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_version_tagged_meanwhile_stops_the_deletes() {
    let table = compacted(&FaultyStore::new(Seed(1))).await;
    let plan = plan(&table, &keep(1)).await;
    table.tag("mine", &2.into()).await.unwrap();
    let applied = run(&table, plan).await;
    let stopped = applied.stopped.expect("the tag needs what the plan would delete");
    assert_eq!(stopped.kind(), ErrorKind::Refused, "{stopped}");
    assert_eq!(applied.removed, 0);
    assert_eq!(count(&table, AsOf::Ref("mine".into())).await, 2);
}

#[tokio::test]
async fn a_version_restored_meanwhile_stops_the_deletes() {
    let table = compacted(&FaultyStore::new(Seed(1))).await;
    let plan = plan(&table, &keep(1)).await;
    table.restore(AsOf::Version(2.into())).await.unwrap();
    let applied = run(&table, plan).await;
    assert_eq!(count(&table, AsOf::Latest).await, 2, "{applied:?}");
}

#[tokio::test]
async fn an_append_meanwhile_does_not_matter() {
    let table = compacted(&FaultyStore::new(Seed(1))).await;
    let plan = plan(&table, &keep(1)).await;
    table.append(&rows(4)).await.unwrap();
    let applied = run(&table, plan).await;
    assert!(applied.stopped.is_none(), "{applied:?}");
    assert_eq!((count(&table, AsOf::Latest).await, count(&table, AsOf::Version(4.into())).await), (4, 3));
}

#[tokio::test]
async fn what_could_not_be_deleted_is_said_and_done_the_next_time() {
    let store = FaultyStore::new(Seed(1));
    let table = compacted(&store).await;
    let first = plan(&table, &keep(1)).await;
    store.add_rule(Op::Delete, "data/", Fault::Forbid, Times::First(1));
    let applied = run(&table, first).await;
    assert_eq!(applied.failed.len(), 1, "{applied:?}");
    assert_eq!(applied.stopped.as_ref().map(lakebed_core::Error::kind), Some(ErrorKind::Unauthorized));
    let orphans = Maintenance::RemoveOrphans { older_than: FOREVER };
    let again = plan(&table, &orphans).await;
    let applied = run(&table, again).await;
    assert_eq!((applied.removed, applied.stopped.is_none()), (1, true));
    assert!(plan(&table, &orphans).await.steps.is_empty(), "nothing is left to do");
    assert_eq!(count(&table, AsOf::Latest).await, 3);
}

#[tokio::test]
async fn a_lost_answer_does_not_stop_upkeep() {
    let store = FaultyStore::new(Seed(1));
    let table = compacted(&store).await;
    let plan = plan(&table, &keep(1)).await;
    store.add_rule(Op::Create, "checkpoint", Fault::LoseAnswer, Times::First(1));
    let applied = run(&table, plan).await;
    assert!(applied.stopped.is_none(), "{applied:?}");
    assert_eq!(count(&table, AsOf::Latest).await, 3);
}

#[tokio::test]
async fn rewriting_rows_is_not_for_core() {
    let store = FaultyStore::new(Seed(1));
    let table = compacted(&store).await;
    table.append(&rows(4)).await.unwrap();
    let compact = Maintenance::Compact { filter: lakebed_core::expr::Predicate::True, target_bytes: 1 << 20 };
    let plan = plan(&table, &compact).await;
    assert!(matches!(plan.steps.as_slice(), [Step::Rewrite(tasks)] if tasks.len() == 2), "{:?}", plan.steps);
    let ran = maintain::run(table.table.as_ref(), &StoragePublisher, &table.env, plan).await;
    assert_eq!(ran.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_snapshot_held_open_reads_until_its_files_go() {
    let table = compacted(&FaultyStore::new(Seed(1))).await;
    let held = table.table.snapshot(&AsOf::Version(3.into())).await.unwrap();
    let table_again: Arc<dyn Table> = Arc::clone(&table.table);
    let plan = plan(&table, &keep(2)).await;
    run(&table, plan).await;
    let tasks: Vec<ScanTask> = held.tasks(&Scan::all()).try_collect().await.unwrap();
    let format = lakebed_testkit::pond::Pond;
    let rows = lakebed_testkit::reference::read(&format, table_again.storage(), &tasks).await.unwrap();
    assert_eq!(rows.len(), 3, "version 3 was one of the two kept");
}
