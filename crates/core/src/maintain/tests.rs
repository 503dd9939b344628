use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use futures::{StreamExt, stream};

use super::*;
use crate::{
    Error, ErrorKind, Result,
    commit::{Publisher, StoragePublisher},
    storage::{Put, Storage},
    toy::{Entry, Toy, file, key},
    version::RefKind,
};

fn doomed(names: &[&str]) -> Step {
    let doom = |it: &&str| Doomed { path: FilePath::below(*it), bytes: Some(1), why: "test".to_owned() };
    Step::Delete(names.iter().map(doom).collect())
}

fn plan(head: &str, steps: Vec<Step>) -> MaintenancePlan {
    MaintenancePlan { steps, head: Some(VersionId::new(head)), ..MaintenancePlan::default() }
}

/// Version 0 has `a` and `b`, version 1 has `b` and `c`; `old` no version has.
async fn table() -> Toy {
    let toy = Toy::new().await;
    toy.push(Entry { added: vec![file("c")], removed: vec![key("a")], ..Entry::default() }).await;
    for name in ["a", "b", "c", "old"] {
        assert_eq!(toy.storage.create(name, "x".into()).await.unwrap(), Put::Won);
    }
    toy
}

async fn there(toy: &Toy, name: &str) -> bool {
    toy.storage.head(&FilePath::below(name)).await.unwrap().is_some()
}

async fn apply(toy: &Toy, plan: MaintenancePlan) -> Applied {
    run(toy, &StoragePublisher, &toy.env, plan).await.unwrap()
}

#[tokio::test]
async fn a_plan_is_carried_out_as_it_is() {
    let toy = table().await;
    let body = Body::Stream(stream::iter([Ok("summed ".into()), Ok("up".into())]).boxed());
    let steps = vec![
        Step::Write { path: "checkpoint".to_owned(), body },
        Step::Write { path: "small".to_owned(), body: Body::Bytes("x".into()) },
        Step::Publish(Publish::Create { path: "pointer".to_owned(), body: "1".into() }),
        doomed(&["old"]),
        doomed(&["a"]),
    ];
    let applied = apply(&toy, plan("1", steps)).await;
    assert!(applied.stopped.is_none(), "{applied:?}");
    assert_eq!((applied.steps, applied.of, applied.removed, applied.bytes), (5, 5, 2, 2));
    assert!(!there(&toy, "old").await && !there(&toy, "a").await && there(&toy, "b").await);
    assert_eq!(toy.storage.read(&FilePath::below("checkpoint")).await.unwrap().unwrap(), "summed up");
    // Once more: what is written is written.
    let steps = vec![Step::Write { path: "small".to_owned(), body: Body::Bytes("x".into()) }];
    assert!(apply(&toy, plan("1", steps)).await.stopped.is_none());
}

#[tokio::test]
async fn what_became_reachable_stops_the_plan() {
    // Nothing, a new tag, a restore, a restore that is gone again.
    for (case, stopped) in [("nothing", false), ("tag", true), ("restore", true), ("between", true), ("append", false)]
    {
        let toy = table().await;
        match case {
            "tag" => toy.tag("keep", RefKind::Tag, "0"),
            "restore" => drop(toy.push(Entry { added: vec![file("a")], ..Entry::default() }).await),
            "between" => {
                toy.push(Entry { added: vec![file("a")], ..Entry::default() }).await;
                toy.push(Entry { removed: vec![key("a")], ..Entry::default() }).await;
            }
            "append" => drop(toy.push(Entry { added: vec![file("d")], ..Entry::default() }).await),
            _ => (),
        }
        let applied = apply(&toy, plan("1", vec![doomed(&["old"]), doomed(&["a"])])).await;
        assert_eq!(applied.stopped.is_some(), stopped, "{case}: {applied:?}");
        assert_eq!(there(&toy, "a").await, stopped, "{case}");
        assert!(!there(&toy, "old").await, "{case}: complete so far");
        if let Some(err) = applied.stopped {
            assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Refused, "a has become reachable"));
        }
    }
}

#[tokio::test]
async fn head_and_refs_are_read_before_every_batch() {
    /// Restores version 0 while the plan is under way.
    #[derive(Debug)]
    struct Meanwhile<'a>(&'a Toy);
    #[async_trait]
    impl Publisher for Meanwhile<'_> {
        async fn publish(&self, _: &Storage, _: &Publish) -> Result<Put> {
            self.0.push(Entry { added: vec![file("a")], ..Entry::default() }).await;
            Ok(Put::Won)
        }
    }
    let toy = table().await;
    let publish = Step::Publish(Publish::Swap { from: None, to: "x".into() });
    let steps = vec![doomed(&["old"]), publish, doomed(&["a"])];
    let applied = run(&toy, &Meanwhile(&toy), &toy.env, plan("1", steps)).await.unwrap();
    assert_eq!((applied.steps, applied.removed), (2, 1));
    assert_eq!(applied.stopped.unwrap().kind(), ErrorKind::Refused);
    assert!(there(&toy, "a").await);
}

#[tokio::test]
async fn rolling_back_deletes_what_is_reachable_unless_somebody_commits() {
    for intruded in [false, true] {
        let toy = table().await;
        let mut plan = plan("1", vec![doomed(&["c"])]);
        plan.forgets = vec![VersionId::new("1")];
        let steps = std::mem::take(&mut plan.steps);
        plan.steps.push(Step::Publish(Publish::Swap { from: None, to: "x".into() }));
        plan.steps.extend(steps);
        #[derive(Debug)]
        struct Intruder<'a>(Option<&'a Toy>);
        #[async_trait]
        impl Publisher for Intruder<'_> {
            async fn publish(&self, _: &Storage, _: &Publish) -> Result<Put> {
                if let Some(toy) = self.0 {
                    toy.push(Entry::default()).await;
                }
                Ok(Put::Won)
            }
        }
        let applied = run(&toy, &Intruder(intruded.then_some(&toy)), &toy.env, plan).await.unwrap();
        assert_eq!(applied.stopped.is_some(), intruded);
        assert_eq!(there(&toy, "c").await, intruded);
    }
}

#[tokio::test]
async fn outcomes_of_publishing_are_read_back() {
    #[derive(Debug)]
    struct Answers(Mutex<Vec<(bool, Put)>>, AtomicU32);
    #[async_trait]
    impl Publisher for Answers {
        async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
            self.1.fetch_add(1, Ordering::SeqCst);
            let next = self.0.lock().unwrap().pop();
            let Some((lands, answer)) = next else { return StoragePublisher.publish(storage, publish).await };
            if lands {
                let _ = StoragePublisher.publish(storage, publish).await?;
            }
            Ok(answer)
        }
    }
    let create = || Step::Publish(Publish::Create { path: "p".to_owned(), body: "ours".into() });
    for (answers, taken, expected) in [
        (vec![(true, Put::Unknown)], false, None),
        (vec![(true, Put::Lost)], false, None),
        (vec![(false, Put::Unknown)], false, None),
        (vec![(false, Put::Unknown); 10], false, Some(ErrorKind::Unknown)),
        (vec![], true, Some(ErrorKind::Conflict)),
    ] {
        let toy = table().await;
        if taken {
            assert_eq!(toy.storage.create("p", "theirs".into()).await.unwrap(), Put::Won);
        }
        let publisher = Answers(Mutex::new(answers.clone()), AtomicU32::new(0));
        let applied = run(&toy, &publisher, &toy.env, plan("1", vec![create(), doomed(&["old"])])).await.unwrap();
        assert_eq!(applied.stopped.as_ref().map(Error::kind), expected, "{answers:?}");
        assert_eq!(there(&toy, "old").await, expected.is_some(), "nothing is deleted behind a step that failed");
    }
    let toy = table().await;
    let swap = || plan("1", vec![Step::Publish(Publish::Swap { from: None, to: "x".into() })]);
    for (put, kind) in [(Put::Lost, ErrorKind::Conflict), (Put::Unknown, ErrorKind::Unknown)] {
        let publisher = Answers(Mutex::new(vec![(false, put)]), AtomicU32::new(0));
        let applied = run(&toy, &publisher, &toy.env, swap()).await.unwrap();
        assert_eq!(applied.stopped.unwrap().kind(), kind);
        assert_eq!(publisher.1.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn rewrites_are_the_engines() {
    let toy = table().await;
    let steps = vec![doomed(&["old"]), Step::Rewrite(Vec::new())];
    let err = run(&toy, &StoragePublisher, &toy.env, plan("1", steps)).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unsupported);
    assert!(there(&toy, "old").await, "nothing is done");
}

#[tokio::test]
async fn what_a_rule_or_a_ref_names_stays_and_so_does_the_newest() {
    use crate::{table::Table, version::Span};
    let toy = Toy::new().await;
    for at in [10, 20, 30, 40] {
        toy.push(Entry { at, ..Entry::default() }).await;
    }
    toy.tag("keep", RefKind::Tag, "1");
    let timeline = toy.timeline(&Span::all()).await.unwrap();
    let refs = toy.refs().await.unwrap();
    let age = |ms| Some(Duration::from_millis(ms));
    let all = Retain::default;
    for (retain, refs, expected) in [
        (all(), &[][..], "4"),
        (all(), &refs[..], "1 4"),
        (Retain { at_least: 2, ..all() }, &[][..], "3 4"),
        (Retain { at_least: 99, ..all() }, &[][..], "0 1 2 3 4"),
        (Retain { newer_than: Some(Millis(20)), ..all() }, &[][..], "3 4"),
        (Retain { age: age(20), ..all() }, &refs[..], "1 4"),
        (Retain { age: age(21), ..all() }, &[][..], "3 4"),
        (Retain { age: Some(Duration::MAX), ..all() }, &[][..], "0 1 2 3 4"),
        (Retain { ids: vec![VersionId::new("0")], ..all() }, &[][..], "0 4"),
    ] {
        let kept: Vec<&str> = retain.kept(&timeline, refs, Millis(50)).iter().map(|it| it.id.as_str()).collect();
        assert_eq!(kept.join(" "), expected, "{retain:?}");
    }
    assert!(all().kept(&Timeline::default(), &[], Millis(0)).is_empty());
}
