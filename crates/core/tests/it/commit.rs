//! The commit loop.
use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    ErrorKind, Result,
    change::{Change, RowDelta},
    commit::{self, Committed, Publisher, StoragePublisher, Write},
    conflict::{ConflictPolicy, Isolation},
    env::Env,
    expr::Predicate,
    file::FileKey,
    path::FilePath,
    scan::{Scan, ScanTask},
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};
use lakebed_testkit::{
    env::{ManualClock, SeededIds},
    pond::{Played, PondSpec},
    rows::Rows,
    seed::Seed,
    store::{Fault, FaultyStore, Op, Times},
    value::Value,
};

use crate::wrapped::{Meddled, Moment, Silent};

fn rows(names: &[&str]) -> Rows {
    let mut rows = Rows::new(["id", "name"]);
    rows.rows = names.iter().map(|name| vec![Value::Null, (*name).into()]).collect();
    rows
}

/// A table with one file of `a` and one of `b`: versions 0 to 2.
async fn pond(store: &FaultyStore, spec: PondSpec) -> Played {
    let table = Played::memory(store, &spec).await.unwrap();
    table.append(&rows(&["a"])).await.unwrap();
    table.append(&rows(&["b"])).await.unwrap();
    table
}

async fn plain() -> Played {
    pond(&FaultyStore::new(Seed(1)), PondSpec::default()).await
}

async fn names(table: &Played, as_of: AsOf) -> String {
    let rows = table.rows(&as_of).await.unwrap().project(&["name"]).unwrap();
    let mut names: Vec<String> = rows.rows.iter().map(|row| row[0].text()).collect();
    names.sort();
    names.concat()
}

async fn append(table: &Played, name: &str) -> (Write, Vec<Change>) {
    let write = table.begin(Action::Append).await.unwrap();
    let added = vec![table.write_file(&write, &rows(&[name])).await.unwrap()];
    (write, vec![Change::Rows(RowDelta { added, ..RowDelta::default() })])
}

/// Removes the file that holds `name`.
async fn removal(table: &Played, name: &str) -> (Write, Vec<Change>) {
    let write = table.begin(Action::Delete).await.unwrap();
    let tasks: Vec<ScanTask> = write.base.tasks(&Scan::all()).try_collect().await.unwrap();
    let upper = Some(lakebed_core::expr::Scalar::Utf8(name.into()));
    let holds = |it: &&ScanTask| it.files[0].stats.columns.iter().any(|(_, stats)| stats.upper == upper);
    let file = tasks.iter().find(holds).unwrap().files[0].path.clone();
    (write, vec![Change::Rows(RowDelta { removed: vec![FileKey { path: file, vector: None }], ..RowDelta::default() })])
}

fn policy(isolation: Isolation, read: Option<Predicate>) -> ConflictPolicy {
    ConflictPolicy { isolation, read, claims: Vec::new(), retries: 5 }
}

async fn commit_by(
    table: &dyn Table,
    publisher: &dyn Publisher,
    env: &Env,
    (write, changes): &(Write, Vec<Change>),
) -> Result<Committed> {
    let policy = match write.intent.action {
        Action::Append => policy(Isolation::Serializable, None),
        _ => policy(Isolation::Snapshot, Some(Predicate::True)),
    };
    commit::commit(table, publisher, env, write, changes, &policy).await
}

async fn commit(table: &Played, write: &(Write, Vec<Change>)) -> Result<Committed> {
    commit_by(table.table.as_ref(), &StoragePublisher, &table.env, write).await
}

#[tokio::test]
async fn blind_appends_from_one_base_all_land() {
    let table = plain().await;
    let (one, two) = (append(&table, "c").await, append(&table, "d").await);
    assert_eq!(commit(&table, &one).await.unwrap().rebased, 0);
    let second = commit(&table, &two).await.unwrap();
    assert_eq!((second.version.id.as_str(), second.rebased), ("4", 1));
    assert_eq!(names(&table, AsOf::Latest).await, "abcd");
    assert_eq!(names(&table, AsOf::Version(3.into())).await, "abc");
}

#[tokio::test]
async fn removing_a_file_twice_is_a_conflict() {
    let table = plain().await;
    let (one, two) = (removal(&table, "a").await, removal(&table, "a").await);
    commit(&table, &one).await.unwrap();
    let err = commit(&table, &two).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict);
    assert!(err.to_string().starts_with("version 3 already removed data/"), "{err}");
    assert_eq!(names(&table, AsOf::Latest).await, "b");
}

#[tokio::test]
async fn six_writers_never_lose_a_row() {
    let table = plain().await;
    let writes: Vec<_> = stream::iter(["1", "2", "3", "4", "5", "6"]).then(|it| append(&table, it)).collect().await;
    let done = futures::future::join_all(writes.iter().map(|it| commit(&table, it))).await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(names(&table, AsOf::Latest).await, "123456ab");
    assert_eq!(table.table.timeline(&Span::all()).await.unwrap().versions().count(), 9);
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_found_again() {
    for landed in [true, false] {
        let table = plain().await;
        let write = append(&table, "c").await;
        let silent = Silent::new(landed, 1);
        let done = commit_by(table.table.as_ref(), &silent, &table.env, &write).await.unwrap();
        assert_eq!((done.version.id.as_str(), done.rebased), ("3", 0), "landed: {landed}");
        assert_eq!(names(&table, AsOf::Latest).await, "abc", "landed: {landed}");
    }
}

#[tokio::test]
async fn a_retry_that_meets_its_first_try_has_won() {
    let store = FaultyStore::new(Seed(1));
    let table = pond(&store, PondSpec::default()).await;
    let write = append(&table, "c").await;
    store.add_rule(Op::Create, "pond/log", Fault::LoseAnswerAndRetry, Times::First(1));
    assert_eq!(commit(&table, &write).await.unwrap().version.id.as_str(), "3");
    assert_eq!(names(&table, AsOf::Latest).await, "abc");
}

#[tokio::test]
async fn while_the_slot_is_empty_the_same_bytes_go_there_again() {
    let store = FaultyStore::new(Seed(1));
    let table = pond(&store, PondSpec::default()).await;
    let write = append(&table, "c").await;
    store.add_rule(Op::Create, "pond/log", Fault::LoseRequest, Times::First(2));
    let before = store.log().len();
    commit(&table, &write).await.unwrap();
    let creates: Vec<String> =
        store.log().into_iter().skip(before).filter(|it| it.op == Op::Create).map(|it| it.path).collect();
    assert_eq!(creates, [creates[0].as_str(); 3], "one slot");
}

#[tokio::test]
async fn a_commit_that_never_gets_an_answer_says_so_and_deletes_nothing() {
    for landed in [false, true] {
        let store = FaultyStore::new(Seed(1));
        let table = pond(&store, PondSpec::default()).await;
        let write = append(&table, "c").await;
        // A commit that landed is found by looking; so nobody may look.
        let looking = if landed { Fault::FailBefore } else { Fault::Delay(Duration::ZERO) };
        store.add_rule(Op::List, "", looking, Times::Always);
        let silent = Silent::new(landed, 100);
        let err = commit_by(table.table.as_ref(), &silent, &table.env, &write).await.unwrap_err();
        store.heal();
        assert_eq!(err.kind(), ErrorKind::Unknown, "{err}");
        assert!(err.hint().is_some_and(|it| it.contains(&write.0.id)), "the write can be looked for: {:?}", err.hint());
        assert_eq!(store.count(Op::Delete), 0);
        assert_eq!(names(&table, AsOf::Latest).await, if landed { "abc" } else { "ab" });
        // The same write again makes it once, or finds it.
        commit(&table, &write).await.unwrap();
        assert_eq!(names(&table, AsOf::Latest).await, "abc");
    }
}

#[tokio::test]
async fn what_is_refused_before_it_is_sent_leaves_nothing() {
    let store = FaultyStore::new(Seed(1));
    let table = pond(&store, PondSpec::default().leased()).await;
    let write = append(&table, "c").await;
    assert_eq!(table.table.timeline(&Span::all()).await.unwrap().pending().count(), 1);
    store.add_rule(Op::Create, "pond/log", Fault::Forbid, Times::Always);
    let err = commit(&table, &write).await.unwrap_err();
    store.heal();
    assert_eq!(err.kind(), ErrorKind::Unauthorized, "{err}");
    assert_eq!(table.table.timeline(&Span::all()).await.unwrap().pending().count(), 0, "the write was abandoned");
    assert_eq!(names(&table, AsOf::Latest).await, "ab");
}

/// Lets `act` happen to `table` in the middle of somebody's call.
fn meddled<F: Future<Output = ()> + Send + 'static>(
    table: &Played,
    moment: Moment,
    act: impl Fn(Played) -> F + Send + Sync + 'static,
) -> Meddled {
    let other = table.clone();
    Meddled::new(&table.table, moment, Box::new(move || Box::pin(act(other.clone()))))
}

#[tokio::test]
async fn an_intruder_between_check_and_reload_is_checked() {
    let table = plain().await;
    let intruded = meddled(&table, Moment::AfterChanges, |table| async move {
        let removal = removal(&table, "a").await;
        commit(&table, &removal).await.unwrap();
    });
    let ours = removal(&table, "a").await;
    let other = append(&table, "c").await;
    commit(&table, &other).await.unwrap();
    let err = commit_by(&intruded, &StoragePublisher, &table.env, &ours).await.unwrap_err();
    assert!(err.to_string().starts_with("version 4 already removed data/"), "{err}");
    assert_eq!(names(&table, AsOf::Latest).await, "bc");
}

/// A leased table whose clock stands still until it is moved.
async fn leased() -> (Played, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let env = Env { clock: Arc::clone(&clock) as _, ids: Arc::new(SeededIds::new(Seed(5))) };
    let store = FaultyStore::new(Seed(1));
    let table = Played::create(store.storage("t"), env, &PondSpec::default().leased()).await.unwrap();
    table.append(&rows(&["a"])).await.unwrap();
    (table, clock)
}

/// Pauses past the lease, in which another writer takes it and commits.
fn paused(table: &Played, clock: &Arc<ManualClock>, other_removes: bool) -> Meddled {
    let clock = Arc::clone(clock);
    meddled(table, Moment::AfterStage, move |table| {
        let clock = Arc::clone(&clock);
        async move {
            clock.advance(Duration::from_secs(60));
            let write = if other_removes { removal(&table, "a").await } else { append(&table, "b").await };
            commit(&table, &write).await.unwrap();
        }
    })
}

#[tokio::test]
async fn a_lease_lost_while_paused_means_checking_again() {
    let (table, clock) = leased().await;
    let ours = append(&table, "c").await;
    let done = commit_by(&paused(&table, &clock, false), &StoragePublisher, &table.env, &ours).await.unwrap();
    assert_eq!(done.rebased, 1, "over the one who took the lease");
    assert_eq!(names(&table, AsOf::Latest).await, "abc");
    let newest = table.table.resolve(&AsOf::Latest).await.unwrap().version.id;
    assert_eq!(newest, done.version.id, "ours stands on theirs");
}

#[tokio::test]
async fn a_lease_lost_while_paused_finds_the_conflict() {
    let (table, clock) = leased().await;
    let ours = removal(&table, "a").await;
    let err = commit_by(&paused(&table, &clock, true), &StoragePublisher, &table.env, &ours).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict, "{err}");
    assert_eq!(table.table.timeline(&Span::all()).await.unwrap().versions().count(), 3);
}

#[tokio::test]
async fn a_file_that_is_not_live_cannot_be_removed() {
    let table = plain().await;
    let write = table.begin(Action::Delete).await.unwrap();
    let key = FileKey { path: FilePath::below("data/never"), vector: None };
    let delta = RowDelta { removed: vec![key], ..RowDelta::default() };
    let err = commit(&table, &(write, vec![Change::Rows(delta)])).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict, "{err}");
}
