use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use futures::future::join_all;

use super::*;
use crate::{
    ErrorKind,
    change::{Change, RowDelta},
    conflict::{ConflictPolicy, Isolation},
    expr::Predicate,
    table::Table,
    toy::{Entry, Leases, Toy, file, intent, key},
    version::AsOf,
};

/// What becomes of a publish, in turn; afterwards all goes well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It lands, and nobody says so.
    Unheard,
    /// It does not land, and nobody says so.
    Lost,
    /// It lands, and a second try of the client's says that the name is taken.
    TakenByItself,
    /// Refused before anything is sent.
    Refused,
    /// It is under way, and lands before the next publish.
    Late,
}

#[derive(Debug, Default)]
struct Scripted {
    answers: Mutex<Vec<Answer>>,
    late: Mutex<Option<Publish>>,
    seen: Mutex<Vec<Publish>>,
}

impl Scripted {
    fn new(answers: &[Answer]) -> Self {
        Self { answers: Mutex::new(answers.iter().rev().copied().collect()), ..Self::default() }
    }
}

#[async_trait]
impl Publisher for Scripted {
    async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
        self.seen.lock().unwrap().push(publish.clone());
        let late = self.late.lock().unwrap().take();
        if let Some(late) = late {
            let _ = StoragePublisher.publish(storage, &late).await?;
        }
        let answer = self.answers.lock().unwrap().pop();
        match answer {
            None => StoragePublisher.publish(storage, publish).await,
            Some(Answer::Unheard) => StoragePublisher.publish(storage, publish).await.map(|_| Put::Unknown),
            Some(Answer::TakenByItself) => StoragePublisher.publish(storage, publish).await.map(|_| Put::Lost),
            Some(Answer::Lost) => Ok(Put::Unknown),
            Some(Answer::Refused) => Err(Error::new(ErrorKind::Unauthorized, "403")),
            Some(Answer::Late) => {
                *self.late.lock().unwrap() = Some(publish.clone());
                Ok(Put::Unknown)
            }
        }
    }
}

fn policy(isolation: Isolation, read: Option<Predicate>) -> ConflictPolicy {
    ConflictPolicy { isolation, read, claims: Vec::new(), retries: 5 }
}

fn add(name: &str) -> Vec<Change> {
    vec![Change::Rows(RowDelta { added: vec![file(name)], ..RowDelta::default() })]
}

fn remove(name: &str) -> Vec<Change> {
    vec![Change::Rows(RowDelta { removed: vec![key(name)], ..RowDelta::default() })]
}

async fn append(toy: &Toy, publisher: &dyn Publisher, write: &Write, name: &str) -> Result<Committed> {
    commit(toy, publisher, &toy.env, write, &add(name), &policy(Isolation::Serializable, None)).await
}

async fn delete(toy: &Toy, write: &Write, name: &str) -> Result<Committed> {
    let policy = policy(Isolation::Snapshot, Some(Predicate::True));
    commit(toy, &StoragePublisher, &toy.env, write, &remove(name), &policy).await
}

#[tokio::test]
async fn blind_appends_from_one_base_all_land() {
    let toy = Toy::new().await;
    let (one, two) =
        (toy.begin(intent(Action::Append)).await.unwrap(), toy.begin(intent(Action::Append)).await.unwrap());
    assert_eq!(append(&toy, &StoragePublisher, &one, "c").await.unwrap().rebased, 0);
    let second = append(&toy, &StoragePublisher, &two, "d").await.unwrap();
    assert_eq!((second.version.id.as_str(), second.rebased), ("2", 1));
    assert_eq!(toy.files().await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn removing_a_file_twice_is_a_conflict_and_is_abandoned() {
    let toy = Toy::new().await;
    let (one, two) =
        (toy.begin(intent(Action::Delete)).await.unwrap(), toy.begin(intent(Action::Delete)).await.unwrap());
    delete(&toy, &one, "a").await.unwrap();
    let err = delete(&toy, &two, "a").await.unwrap_err();
    assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Conflict, "version 1 already removed a"));
    assert_eq!(toy.files().await, ["b"]);
    assert_eq!(toy.abandoned.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn six_writers_never_lose_a_file() {
    let toy = Toy::new().await;
    let begun = (0..6).map(|_| toy.begin(intent(Action::Append)));
    let writes: Vec<Write> = futures::future::try_join_all(begun).await.unwrap();
    let names: Vec<String> = (0..6).map(|it| format!("w{it}")).collect();
    let all =
        join_all(writes.iter().zip(&names).map(|(write, name)| append(&toy, &StoragePublisher, write, name))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(toy.files().await.len(), 8);
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
        let toy = Toy::new().await;
        let write = toy.begin(intent(Action::Append)).await.unwrap();
        let publisher = Scripted::new(&answers);
        let done = append(&toy, &publisher, &write, "c").await.unwrap();
        assert_eq!((done.version.id.as_str(), done.rebased), ("1", 0), "{answers:?}");
        assert_eq!(toy.files().await, ["a", "b", "c"], "{answers:?}");
        let seen = publisher.seen.lock().unwrap();
        assert!(seen.iter().all(|it| *it == seen[0]), "the same bytes at the same slot: {answers:?}");
        assert_eq!(toy.abandoned.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_commit_that_lands_late_is_not_made_twice() {
    let toy = Toy::new().await;
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    let publisher = Scripted::new(&[Answer::Late]);
    let done = append(&toy, &publisher, &write, "c").await.unwrap();
    assert_eq!(done.version.id.as_str(), "1");
    assert_eq!(toy.log().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_lost_request_whose_slot_another_took_is_staged_anew() {
    let toy = Toy::new().await;
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    let publisher = Scripted::new(&[Answer::Lost]);
    // Nothing is there when the loop looks first; the other commits right behind that look.
    *toy.after_changes.lock().unwrap() = Some(Entry { added: vec![file("x")], blind: true, ..Entry::default() });
    let done = append(&toy, &publisher, &write, "c").await.unwrap();
    assert_eq!((done.version.id.as_str(), done.rebased), ("2", 1));
    assert_eq!(toy.files().await, ["a", "b", "x", "c"]);
    let slots: Vec<Publish> = publisher.seen.lock().unwrap().clone();
    assert_eq!((slots.len(), &slots[0]), (3, &slots[1]));
    assert_ne!(slots[1], slots[2]);
}

#[tokio::test]
async fn a_commit_that_never_gets_an_answer_says_so_and_keeps_everything() {
    let toy = Toy::new().await;
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    let err = append(&toy, &Scripted::new(&[Answer::Lost; 100]), &write, "c").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unknown);
    assert!(err.hint().unwrap().contains(&write.id));
    assert_eq!(toy.abandoned.load(Ordering::SeqCst), 0);
    assert_eq!(toy.files().await, ["a", "b"]);
    // The caller may call again with the same write.
    append(&toy, &StoragePublisher, &write, "c").await.unwrap();
    let again = append(&toy, &StoragePublisher, &write, "c").await.unwrap();
    assert_eq!(again.version.id.as_str(), "1");
    assert_eq!(toy.files().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_listing_that_lags_hides_neither_a_win_nor_a_loss() {
    for (answers, kind) in [(vec![Answer::Unheard], None), (vec![], Some(ErrorKind::Conflict))] {
        let toy = Toy::new().await;
        let write = toy.begin(intent(Action::Append)).await.unwrap();
        if kind.is_some() {
            toy.push(Entry { added: vec![file("x")], blind: true, ..Entry::default() }).await;
        }
        *toy.stale_from.lock().unwrap() = Some(1);
        let done = append(&toy, &Scripted::new(&answers), &write, "c").await;
        assert_eq!(done.as_ref().err().map(Error::kind), kind, "{done:?}");
        assert_eq!(toy.files().await, ["a", "b", if kind.is_some() { "x" } else { "c" }]);
    }
}

#[tokio::test]
async fn an_error_while_the_outcome_is_open_is_unknown() {
    let toy = Toy::new().await;
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    toy.blind.store(1, Ordering::SeqCst);
    let err = append(&toy, &Scripted::new(&[Answer::Unheard]), &write, "c").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unknown, "{err}");
    assert_eq!(toy.abandoned.load(Ordering::SeqCst), 0);
    assert_eq!(toy.files().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_refusal_before_anything_was_sent_is_that_error() {
    let toy = Toy::new().await;
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    let err = append(&toy, &Scripted::new(&[Answer::Refused]), &write, "c").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unauthorized);
    assert_eq!(toy.abandoned.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_loss_whose_winner_cannot_be_read_is_unknown() {
    let toy = Toy::new().await;
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    toy.push(Entry { blind: true, ..Entry::default() }).await;
    toy.blind.store(1, Ordering::SeqCst);
    let err = append(&toy, &StoragePublisher, &write, "c").await.unwrap_err();
    assert_eq!((err.kind(), toy.abandoned.load(Ordering::SeqCst)), (ErrorKind::Unknown, 0));
    let done = append(&toy, &StoragePublisher, &write, "c").await.unwrap();
    assert_eq!(done.version.id.as_str(), "2");
}

#[tokio::test]
async fn an_intruder_between_check_and_reload_is_checked() {
    let toy = Toy::new().await;
    let ours = toy.begin(intent(Action::Delete)).await.unwrap();
    toy.push(Entry { added: vec![file("c")], blind: true, ..Entry::default() }).await;
    *toy.after_changes.lock().unwrap() = Some(Entry { removed: vec![key("a")], ..Entry::default() });
    let err = delete(&toy, &ours, "a").await.unwrap_err();
    assert_eq!(err.to_string(), "version 2 already removed a");
    assert_eq!(toy.files().await, ["b", "c"]);
}

#[tokio::test]
async fn reads_are_looked_up_in_the_base_the_writer_had() {
    // `b` was removed; a writer that read only what may hold 7 had not read it.
    let seven =
        Predicate::Compare(crate::expr::ColumnPath::top("id"), crate::expr::Cmp::Eq, crate::expr::Scalar::Int(7));
    for (low, conflicts) in [(0, true), (8, false)] {
        let toy = Toy::new().await;
        let mut other = file("other");
        let bounds = crate::file::ColumnStats {
            lower: Some(crate::expr::Scalar::Int(low)),
            upper: Some(crate::expr::Scalar::Int(low + 10)),
            nulls: Some(0),
            exact: true,
        };
        other.stats.columns = vec![(crate::expr::ColumnPath::top("id"), bounds)];
        toy.push(Entry { added: vec![other], ..Entry::default() }).await;
        let write = toy.begin(intent(Action::RowDelta)).await.unwrap();
        toy.push(Entry { removed: vec![key("other")], ..Entry::default() }).await;
        let policy = policy(Isolation::Serializable, Some(seven.clone()));
        let done = commit(&toy, &StoragePublisher, &toy.env, &write, &remove("a"), &policy).await;
        assert_eq!(done.is_err(), conflicts, "{low}: {done:?}");
        if let Err(err) = done {
            assert_eq!(err.to_string(), "version 2 removed other or rows of it, which this commit had read");
        }
    }
}

#[tokio::test]
async fn retries_end_and_pauses_grow() {
    let toy = Toy::new().await;
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    /// Another writer is always first.
    #[derive(Debug)]
    struct Beaten<'a>(&'a Toy, AtomicU32);
    #[async_trait]
    impl Publisher for Beaten<'_> {
        async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
            self.0.push(Entry { blind: true, ..Entry::default() }).await;
            self.1.fetch_add(1, Ordering::SeqCst);
            StoragePublisher.publish(storage, publish).await
        }
    }
    let beaten = Beaten(&toy, AtomicU32::new(0));
    let err = append(&toy, &beaten, &write, "c").await.unwrap_err();
    assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Conflict, "lost 6 times to other writers"));
    assert_eq!(beaten.1.load(Ordering::SeqCst), 6);
    assert_eq!(toy.abandoned.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_lease_is_taken_before_the_check_asked_before_the_publish_and_released() {
    let leases = Arc::new(Leases::default());
    let toy = Toy { lease: Some(Arc::clone(&leases)), ..Toy::new().await };
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    toy.push(Entry { added: vec![file("x")], blind: true, ..Entry::default() }).await;
    leases.lost.store(true, Ordering::SeqCst);
    let publisher = Scripted::new(&[Answer::Lost, Answer::Unheard]);
    let done = append(&toy, &publisher, &write, "c").await.unwrap();
    assert_eq!((done.version.id.as_str(), done.rebased), ("2", 1));
    assert_eq!(publisher.seen.lock().unwrap().len(), 2, "nothing is published without the lease");
    assert_eq!((leases.taken.load(Ordering::SeqCst), leases.released.load(Ordering::SeqCst)), (2, 2));

    let write = toy.begin(intent(Action::Delete)).await.unwrap();
    toy.push(Entry { removed: vec![key("a")], ..Entry::default() }).await;
    let err = delete(&toy, &write, "a").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict);
    assert_eq!((leases.taken.load(Ordering::SeqCst), leases.released.load(Ordering::SeqCst)), (3, 3));
}

#[tokio::test]
async fn a_lease_lost_after_an_open_publish_is_unknown() {
    let leases = Arc::new(Leases::default());
    let toy = Toy { lease: Some(Arc::clone(&leases)), ..Toy::new().await };
    let write = toy.begin(intent(Action::Append)).await.unwrap();
    #[derive(Debug)]
    struct Paused(Arc<Leases>);
    #[async_trait]
    impl Publisher for Paused {
        async fn publish(&self, _: &Storage, _: &Publish) -> Result<Put> {
            self.0.lost.store(true, Ordering::SeqCst);
            Ok(Put::Unknown)
        }
    }
    let err = append(&toy, &Paused(Arc::clone(&leases)), &write, "c").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unknown, "{err}");
    assert_eq!(toy.abandoned.load(Ordering::SeqCst), 0);
    assert_eq!(leases.released.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn storage_publishes_objects_only() {
    let toy = Toy::new().await;
    for publish in [Publish::Swap { from: None, to: "x".into() }, Publish::Request(serde_json::Value::Null)] {
        let err = StoragePublisher.publish(&toy.storage, &publish).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Unsupported);
    }
    assert_eq!(toy.resolve(&AsOf::Latest).await.unwrap().version.id.as_str(), "0");
}
