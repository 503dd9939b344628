//! Carrying out plans.
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Error, ErrorKind,
    commit::{Publish, Publisher, StoragePublisher},
    maintain::{self, Applied, Body, Doomed, Maintenance, MaintenancePlan, Retain, Step},
    path::FilePath,
    scan::{Scan, ScanTask},
    storage::Put,
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

use crate::wrapped::{Answer, Scripted, meddling};

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
    assert_eq!(applied.stopped.as_ref().map(Error::kind), Some(ErrorKind::Unauthorized));
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
    let compact = Maintenance::Compact { filter: lakebed_core::expr::Predicate::True, target_bytes: Some(1 << 20) };
    let mut plan = plan(&table, &compact).await;
    assert!(matches!(plan.steps.as_slice(), [Step::Rewrite(tasks)] if tasks.len() == 2), "{:?}", plan.steps);
    plan.steps.insert(0, delete(&[&old(&table).await]));
    let ran = maintain::run(table.table.as_ref(), &StoragePublisher, &table.env, plan).await;
    assert_eq!(ran.unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(there(&table, &old(&table).await).await, "nothing is done");
}

/// A file that no version has.
async fn old(table: &Played) -> FilePath {
    let _ = table.storage.create("data/old", "x".into()).await.unwrap();
    FilePath::below("data/old")
}

/// The first file of a version.
async fn file_of(table: &Played, version: u64) -> FilePath {
    let snapshot = table.table.snapshot(&AsOf::Version(version.into())).await.unwrap();
    let tasks: Vec<ScanTask> = snapshot.tasks(&Scan::all()).try_collect().await.unwrap();
    tasks[0].files[0].path.clone()
}

async fn there(table: &Played, file: &FilePath) -> bool {
    table.storage.head(file).await.unwrap().is_some()
}

fn delete(files: &[&FilePath]) -> Step {
    let doom = |it: &&FilePath| Doomed { path: (*it).clone(), bytes: Some(1), why: "test".to_owned() };
    Step::Delete(files.iter().map(doom).collect())
}

/// A plan made by hand, on version 4.
fn steps(steps: Vec<Step>) -> MaintenancePlan {
    MaintenancePlan { steps, head: Some(4.into()), ..MaintenancePlan::default() }
}

fn swap() -> Step {
    Step::Publish(Publish::Swap { from: None, to: "x".into() })
}

async fn run_by(table: &Played, publisher: &dyn Publisher, plan: MaintenancePlan) -> Applied {
    maintain::run(table.table.as_ref(), publisher, &table.env, plan).await.unwrap()
}

#[tokio::test]
async fn a_plan_made_by_hand_is_carried_out_as_it_is() {
    let table = compacted(&FaultyStore::new(Seed(1))).await;
    let (old, first, live) = (old(&table).await, file_of(&table, 1).await, file_of(&table, 4).await);
    let summed = Body::Stream(stream::iter([Ok("summed ".into()), Ok("up".into())]).boxed());
    let small = || Step::Write { path: "small".to_owned(), body: Body::Bytes("x".into()) };
    let plan = steps(vec![
        Step::Write { path: "sum".to_owned(), body: summed },
        small(),
        Step::Publish(Publish::Create { path: "pointer".to_owned(), body: "1".into() }),
        delete(&[&old]),
        delete(&[&first]),
    ]);
    let applied = run(&table, plan).await;
    assert!(applied.stopped.is_none(), "{applied:?}");
    assert_eq!((applied.steps, applied.of, applied.removed, applied.bytes), (5, 5, 2, 2));
    assert!(!there(&table, &old).await && !there(&table, &first).await && there(&table, &live).await);
    assert_eq!(table.storage.read(&FilePath::below("sum")).await.unwrap().unwrap(), "summed up");
    assert!(run(&table, steps(vec![small()])).await.stopped.is_none(), "what is written is written");
}

#[tokio::test]
async fn what_was_reachable_for_a_moment_stops_the_plan_and_what_is_done_is_complete() {
    for restored in [false, true] {
        let table = compacted(&FaultyStore::new(Seed(1))).await;
        let (old, first) = (old(&table).await, file_of(&table, 1).await);
        if restored {
            table.restore(AsOf::Version(1.into())).await.unwrap();
            table.restore(AsOf::Version(4.into())).await.unwrap();
        }
        let applied = run(&table, steps(vec![delete(&[&old]), delete(&[&first])])).await;
        assert_eq!(applied.stopped.as_ref().map(Error::kind), restored.then_some(ErrorKind::Refused), "{applied:?}");
        assert_eq!((there(&table, &old).await, there(&table, &first).await), (false, restored));
        if let Some(err) = applied.stopped {
            assert_eq!(err.to_string(), format!("{first} has become reachable"));
        }
    }
}

#[tokio::test]
async fn head_and_refs_are_read_before_every_batch() {
    let table = compacted(&FaultyStore::new(Seed(1))).await;
    let (old, first) = (old(&table).await, file_of(&table, 1).await);
    let restored = meddling(&table, async |table| drop(table.restore(AsOf::Version(1.into())).await.unwrap()));
    let publisher = Scripted::new(&[Answer::Accepted]).before(restored);
    let applied = run_by(&table, &publisher, steps(vec![delete(&[&old]), swap(), delete(&[&first])])).await;
    assert_eq!((applied.steps, applied.removed), (2, 1));
    assert_eq!(applied.stopped.unwrap().kind(), ErrorKind::Refused);
    assert!(there(&table, &first).await);
}

#[tokio::test]
async fn rolling_back_deletes_what_is_reachable_unless_somebody_commits() {
    for intruded in [false, true] {
        let table = compacted(&FaultyStore::new(Seed(1))).await;
        let live = file_of(&table, 4).await;
        let plan = MaintenancePlan { forgets: vec![4.into()], ..steps(vec![swap(), delete(&[&live])]) };
        let mut publisher = Scripted::new(&[Answer::Accepted]);
        if intruded {
            publisher = publisher.before(meddling(&table, async |table| drop(table.append(&rows(4)).await.unwrap())));
        }
        let applied = run_by(&table, &publisher, plan).await;
        assert_eq!(applied.stopped.as_ref().map(Error::kind), intruded.then_some(ErrorKind::Refused), "{applied:?}");
        assert_eq!(there(&table, &live).await, intruded);
    }
}

#[tokio::test]
async fn outcomes_of_publishing_are_read_back() {
    let create = || Step::Publish(Publish::Create { path: "p".to_owned(), body: "ours".into() });
    for (answers, taken, expected) in [
        (vec![Answer::Unheard], false, None),
        (vec![Answer::TakenByItself], false, None),
        (vec![Answer::Lost], false, None),
        (vec![Answer::Lost; 10], false, Some(ErrorKind::Unknown)),
        (vec![], true, Some(ErrorKind::Conflict)),
    ] {
        let table = compacted(&FaultyStore::new(Seed(1))).await;
        let old = old(&table).await;
        if taken {
            assert_eq!(table.storage.create("p", "theirs".into()).await.unwrap(), Put::Won);
        }
        let applied = run_by(&table, &Scripted::new(&answers), steps(vec![create(), delete(&[&old])])).await;
        assert_eq!(applied.stopped.as_ref().map(Error::kind), expected, "{answers:?}");
        assert_eq!(there(&table, &old).await, expected.is_some(), "nothing is deleted behind a step that failed");
    }
    let table = compacted(&FaultyStore::new(Seed(1))).await;
    for (answer, kind) in [(Answer::Taken, ErrorKind::Conflict), (Answer::Lost, ErrorKind::Unknown)] {
        let publisher = Scripted::new(&[answer]);
        let applied = run_by(&table, &publisher, steps(vec![swap()])).await;
        assert_eq!((applied.stopped.unwrap().kind(), publisher.seen().len()), (kind, 1));
    }
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
