//! The commit loop.
use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Error, ErrorKind, Result,
    change::{Change, RowDelta},
    commit::{self, Committed, Publish, Publisher, StoragePublisher, Write},
    conflict::{ConflictPolicy, Isolation},
    env::Env,
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    file::FileKey,
    path::FilePath,
    scan::{Scan, ScanTask},
    storage::Object,
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};
use lakebed_testkit::{
    env::{SeededIds, SteppingClock},
    pond::{Played, PondSpec},
    rows::Rows,
    seed::Seed,
    store::{Fault, FaultyStore, Op, Times},
    value::Value,
};

use crate::wrapped::{Answer, Meddled, Moment, Scripted, meddling};

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
    let upper = Some(Scalar::Utf8(name.into()));
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

/// The same table, seen by somebody who counts what is abandoned.
fn watched(table: &Played) -> Meddled {
    Meddled::new(&table.table, Moment::Never, meddling(table, async |_| ()))
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
    let watched = watched(&table);
    let err = commit_by(&watched, &StoragePublisher, &table.env, &two).await.unwrap_err();
    assert_eq!((err.kind(), watched.abandoned()), (ErrorKind::Conflict, 1));
    let told = err.to_string();
    let (both, file) = told.split_once("; both touch ").unwrap();
    assert_eq!(both, format!("DELETE lost to DELETE of version 3: version 3 already removed {file}"));
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
async fn a_commit_whose_answer_was_lost_is_found_or_made_once() {
    use Answer::{Lost, Refused, TakenByItself, Unheard};
    for answers in [
        vec![Unheard],
        vec![Lost],
        vec![TakenByItself],
        vec![Lost, Lost, Unheard],
        vec![Unheard, Refused],
        vec![Lost, Refused],
        vec![Lost, Refused, TakenByItself],
    ] {
        let table = plain().await;
        let (watched, publisher) = (watched(&table), Scripted::new(&answers));
        let write = append(&table, "c").await;
        let done = commit_by(&watched, &publisher, &table.env, &write).await.unwrap();
        assert_eq!((done.version.id.as_str(), done.rebased), ("3", 0), "{answers:?}");
        assert_eq!(names(&table, AsOf::Latest).await, "abc", "{answers:?}");
        let seen = publisher.seen();
        assert!(seen.iter().all(|it| *it == seen[0]), "the same bytes at the same slot: {answers:?}");
        assert_eq!(watched.abandoned(), 0);
    }
}

#[tokio::test]
async fn a_commit_that_lands_late_is_not_made_twice() {
    let table = plain().await;
    let write = append(&table, "c").await;
    let late = Scripted::new(&[Answer::Late]);
    let done = commit_by(table.table.as_ref(), &late, &table.env, &write).await.unwrap();
    assert_eq!(done.version.id.as_str(), "3");
    assert_eq!(table.table.timeline(&Span::all()).await.unwrap().versions().count(), 4);
    assert_eq!(names(&table, AsOf::Latest).await, "abc");
}

#[tokio::test]
async fn a_lost_request_whose_slot_another_took_is_staged_anew() {
    let table = plain().await;
    // Nothing is there when the loop looks first; the other commits right behind that look.
    let other = meddling(&table, async |table| {
        let write = append(&table, "x").await;
        commit(&table, &write).await.unwrap();
    });
    let meddled = Meddled::new(&table.table, Moment::AfterChanges, other);
    let write = append(&table, "c").await;
    let publisher = Scripted::new(&[Answer::Lost]);
    let done = commit_by(&meddled, &publisher, &table.env, &write).await.unwrap();
    assert_eq!((done.version.id.as_str(), done.rebased), ("4", 1));
    assert_eq!(names(&table, AsOf::Latest).await, "abcx");
    let slots = publisher.seen();
    assert_eq!((slots.len(), &slots[0]), (3, &slots[1]));
    assert_ne!(slots[1], slots[2]);
}

#[tokio::test]
async fn a_listing_that_lags_hides_neither_a_win_nor_a_loss() {
    for (answers, kind) in [(vec![Answer::Unheard], None), (vec![], Some(ErrorKind::Conflict))] {
        let store = FaultyStore::new(Seed(1));
        let table = pond(&store, PondSpec::default()).await;
        let write = append(&table, "c").await;
        if kind.is_some() {
            let other = append(&table, "x").await;
            commit(&table, &other).await.unwrap();
        }
        store.add_rule(Op::List, "pond/log", Fault::StaleList(1), Times::Always);
        let done = commit_by(table.table.as_ref(), &Scripted::new(&answers), &table.env, &write).await;
        store.heal();
        assert_eq!(done.as_ref().err().map(Error::kind), kind, "{done:?}");
        assert_eq!(names(&table, AsOf::Latest).await, if kind.is_some() { "abx" } else { "abc" });
    }
}

#[tokio::test]
async fn a_loss_whose_winner_cannot_be_read_is_unknown() {
    let store = FaultyStore::new(Seed(1));
    let table = pond(&store, PondSpec::default()).await;
    let (write, other) = (append(&table, "c").await, append(&table, "x").await);
    commit(&table, &other).await.unwrap();
    store.add_rule(Op::List, "pond/log", Fault::FailBefore, Times::First(1));
    let watched = watched(&table);
    let err = commit_by(&watched, &StoragePublisher, &table.env, &write).await.unwrap_err();
    assert_eq!((err.kind(), watched.abandoned()), (ErrorKind::Unknown, 0), "{err}");
    let done = commit(&table, &write).await.unwrap();
    assert_eq!((done.version.id.as_str(), names(&table, AsOf::Latest).await.as_str()), ("4", "abcx"));
}

#[tokio::test]
async fn retries_end() {
    let table = plain().await;
    let write = append(&table, "c").await;
    let beaten = Scripted::default().before(meddling(&table, async |table| {
        let write = append(&table, "x").await;
        commit(&table, &write).await.unwrap();
    }));
    let watched = watched(&table);
    let err = commit_by(&watched, &beaten, &table.env, &write).await.unwrap_err();
    assert_eq!(
        (err.kind(), err.to_string().as_str()),
        (ErrorKind::Conflict, "APPEND lost 6 times to other writers, last to APPEND of version 8")
    );
    assert_eq!((beaten.seen().len(), watched.abandoned()), (6, 1));
    assert_eq!(names(&table, AsOf::Latest).await, "abxxxxxx");
}

#[tokio::test]
async fn reads_are_looked_up_in_the_base_the_writer_had() {
    // The other file went; a writer that read only what may hold 7 had read it or not.
    let seven = Predicate::Compare(ColumnPath::top("id"), Cmp::Eq, Scalar::Int(7));
    for (low, conflicts) in [(0, true), (8, false)] {
        let table = plain().await;
        let mut other = Rows::new(["id", "name"]);
        other.rows = [low, low + 10].map(|id| vec![Value::from(id), "o".into()]).to_vec();
        table.append(&other).await.unwrap();
        let (write, changes) = removal(&table, "a").await;
        let gone = removal(&table, "o").await;
        commit(&table, &gone).await.unwrap();
        let policy = policy(Isolation::Serializable, Some(seven.clone()));
        let done = table.commit_with(&write, &changes, &policy).await;
        assert_eq!(done.is_err(), conflicts, "{low}: {done:?}");
        if let Err(err) = done {
            assert!(err.to_string().contains("version 4 removed data/"), "{err}");
            assert!(err.to_string().contains("or rows of it, which this commit had read; both touch "), "{err}");
        }
    }
}

#[tokio::test]
async fn storage_publishes_objects_only() {
    let table = plain().await;
    for publish in [Publish::Swap { from: None, to: "x".into() }, Publish::Request(serde_json::Value::Null)] {
        let err = StoragePublisher.publish(&table.storage, &publish).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Unsupported);
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
        let silent = Scripted::new(&[if landed { Answer::Unheard } else { Answer::Lost }; 100]);
        let watched = watched(&table);
        let err = commit_by(&watched, &silent, &table.env, &write).await.unwrap_err();
        store.heal();
        assert_eq!(err.kind(), ErrorKind::Unknown, "{err}");
        assert!(err.hint().is_some_and(|it| it.contains(&write.0.id)), "the write can be looked for: {:?}", err.hint());
        assert_eq!((store.count(Op::Delete), watched.abandoned()), (0, 0));
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

#[tokio::test]
async fn an_intruder_between_check_and_reload_is_checked() {
    let table = plain().await;
    let intruder = meddling(&table, async |table| {
        let removal = removal(&table, "a").await;
        commit(&table, &removal).await.unwrap();
    });
    let intruded = Meddled::new(&table.table, Moment::AfterChanges, intruder);
    let ours = removal(&table, "a").await;
    let other = append(&table, "c").await;
    commit(&table, &other).await.unwrap();
    let err = commit_by(&intruded, &StoragePublisher, &table.env, &ours).await.unwrap_err();
    assert!(err.to_string().contains("version 4 already removed data/"), "{err}");
    assert_eq!(names(&table, AsOf::Latest).await, "bc");
}

/// A leased table whose clock can be moved.
async fn leased() -> (Played, Arc<SteppingClock>) {
    let clock = Arc::new(SteppingClock::default());
    let env = Env { clock: Arc::clone(&clock) as _, ids: Arc::new(SeededIds::new(Seed(5))) };
    let store = FaultyStore::new(Seed(1));
    let table = Played::create(store.storage("t"), env, &PondSpec::default().leased()).await.unwrap();
    table.append(&rows(&["a"])).await.unwrap();
    (table, clock)
}

/// Pauses past the lease, in which another writer takes it and commits.
fn paused(table: &Played, clock: &Arc<SteppingClock>, other_removes: bool) -> Meddled {
    let clock = Arc::clone(clock);
    let other = meddling(table, move |table| {
        let clock = Arc::clone(&clock);
        async move {
            clock.advance(Duration::from_secs(60));
            let write = if other_removes { removal(&table, "a").await } else { append(&table, "b").await };
            commit(&table, &write).await.unwrap();
        }
    });
    Meddled::new(&table.table, Moment::AfterStage, other)
}

/// Locks that were taken, and of them those that were released.
async fn locks(table: &Played) -> (usize, usize) {
    let listed: Vec<Object> = table.storage.list_after("pond/lock", "").try_collect().await.unwrap();
    let released = listed.iter().filter(|it| it.path.ends_with(".released")).count();
    (listed.len() - released, released)
}

#[tokio::test]
async fn a_lease_lost_while_paused_means_checking_again() {
    let (table, clock) = leased().await;
    let ours = append(&table, "c").await;
    let before = locks(&table).await;
    let publisher = Scripted::new(&[Answer::Lost, Answer::Unheard]);
    let done = commit_by(&paused(&table, &clock, false), &publisher, &table.env, &ours).await.unwrap();
    assert_eq!(done.rebased, 1, "over the one who took the lease");
    assert_eq!(publisher.seen().len(), 2, "nothing is published without the lease");
    assert_eq!(locks(&table).await, (before.0 + 3, before.1 + 3), "ours, theirs and ours again, all released");
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
    let (taken, released) = locks(&table).await;
    assert_eq!(taken, released);
}

#[tokio::test]
async fn a_lease_lost_after_an_open_publish_is_unknown() {
    let (table, clock) = leased().await;
    let write = append(&table, "c").await;
    let pause = meddling(&table, move |_| {
        clock.advance(Duration::from_secs(60));
        futures::future::ready(())
    });
    let (watched, publisher) = (watched(&table), Scripted::new(&[Answer::Lost]).before(pause));
    let err = commit_by(&watched, &publisher, &table.env, &write).await.unwrap_err();
    assert_eq!((err.kind(), watched.abandoned()), (ErrorKind::Unknown, 0), "{err}");
    let (taken, released) = locks(&table).await;
    assert_eq!(taken, released);
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
