//! Behaviours of several writers, and of one whose answers get lost.
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use futures::future::join_all;
use lakebed_core::{
    ErrorKind, Result,
    change::{Change, RowDelta},
    commit::{Committed, Write},
    conflict::Isolation,
    expr::Predicate,
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};

use super::{Subject, World, commit, commit_as, ids, rows, three_appends};
use crate::{
    pond::intent,
    store::{Fault, Op, Times},
};

async fn begun(subject: &dyn Subject, table: &dyn Table, world: &World, id: i64) -> (Write, Vec<Change>) {
    let write = table.begin(intent(Action::Append)).await.expect("a write");
    let added = vec![subject.data_file(table, &world.env, &write, &rows([id])).await.expect("a file")];
    (write, vec![Change::Rows(RowDelta { added, ..RowDelta::default() })])
}

/// Six appends from one base all land, each once.
pub async fn writers_that_only_add_all_win(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let mut writes = Vec::new();
    for id in 11..17 {
        writes.push(begun(subject, table.as_ref(), world, id).await);
    }
    let commits = writes.iter().map(|(write, changes)| commit(table.as_ref(), &world.env, write, changes));
    let done: Vec<Result<Committed>> = join_all(commits).await;
    let mut versions: Vec<String> =
        done.iter().map(|it| it.as_ref().expect("an append has no rival").version.id.to_string()).collect();
    versions.sort();
    versions.dedup();
    assert_eq!(versions.len(), 6, "each commit is a version of its own");
    let found = ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows");
    assert_eq!(found, [1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16]);
}

/// The key of the object that publishing creates, learned from a commit in the same place.
async fn publishing(subject: &dyn Subject, table: &dyn Table, world: &World) -> usize {
    let (write, changes) = begun(subject, table, world, 7).await;
    let before = world.store.count(Op::Create);
    commit(table, &world.env, &write, &changes).await.expect("a commit without faults");
    world.store.count(Op::Create) - before
}

async fn one_answer_spoiled(subject: &dyn Subject, world: &World, fault: Fault) {
    let table = three_appends(subject, world).await;
    let creates = publishing(subject, table.as_ref(), world).await;
    let (write, changes) = begun(subject, table.as_ref(), world, 8).await;
    world.store.add_rule(Op::Create, "", fault.clone(), Times::Nth(creates as u64));
    let done = commit(table.as_ref(), &world.env, &write, &changes).await;
    world.store.heal();
    let done = done.unwrap_or_else(|err| panic!("{fault:?}: {err}"));
    let found = ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows");
    assert_eq!(found, [1, 2, 3, 4, 5, 6, 7, 8], "{fault:?}: once, not twice");
    let versions = table.timeline(&Span::all()).await.expect("a timeline");
    assert_eq!(versions.versions().next_back().map(|it| &it.id), Some(&done.version.id));
    assert_eq!(versions.versions().count(), 6, "{fault:?}: one version more");
}

/// The publish landed, the answer did not: ours is found and not made twice.
pub async fn an_answer_that_was_lost_is_found(subject: &dyn Subject, world: &World) {
    one_answer_spoiled(subject, world, Fault::LoseAnswer).await;
}

/// The publish never arrived, or its own retry met it: it is sent again, or known as ours.
pub async fn a_request_that_was_lost_is_sent_again(subject: &dyn Subject, world: &World) {
    one_answer_spoiled(subject, world, Fault::LoseRequest).await;
}

/// With no answer ever the outcome is unknown, and nothing that may be needed is deleted.
pub async fn without_answers_the_outcome_is_unknown(subject: &dyn Subject, world: &World) {
    for fault in [Fault::LoseRequest, Fault::LoseAnswer] {
        let world_again = World::memory();
        let world = if fault == Fault::LoseRequest { world } else { &world_again };
        let table = three_appends(subject, world).await;
        let (write, changes) = begun(subject, table.as_ref(), world, 8).await;
        let leased = match table.lease(&write).await.expect("a lease or none") {
            Some(lease) => lease.release().await.is_ok(),
            None => false,
        };
        let deletes = world.store.count(Op::Delete);
        world.store.add_rule(Op::Create, "", fault.clone(), Times::Always);
        // Without reading there is no way to learn what became of it.
        world.store.add_rule(Op::Get, "", Fault::FailBefore, Times::Always);
        world.store.add_rule(Op::List, "", Fault::FailBefore, Times::Always);
        let err = commit(table.as_ref(), &world.env, &write, &changes).await.expect_err("nobody answered");
        world.store.heal();
        // Who gets no lease has sent nothing, and knows it.
        let known = leased && err.kind() == ErrorKind::Unavailable;
        assert!(known || err.kind() == ErrorKind::Unknown, "{fault:?}: {err}");
        assert!(known || world.store.count(Op::Delete) == deletes, "nothing of an unknown commit is deleted");
        let found = ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows");
        let landed = found.contains(&8);
        assert_eq!(found.len(), if landed { 7 } else { 6 }, "all or nothing");
        assert!(!(known && landed), "`{err}` is no failure when the commit landed");
    }
}

/// Of two deletes of one row from one base, the second is told who was first.
pub async fn deleting_the_same_rows_twice_conflicts(subject: &dyn Subject, world: &World) {
    for isolation in [Isolation::Serializable, Isolation::WriteSerializable, Isolation::Snapshot] {
        let world_again = World::memory();
        let world = if isolation == Isolation::Serializable { world } else { &world_again };
        let table = three_appends(subject, world).await;
        let mut writes = Vec::new();
        for _ in 0..2 {
            let write = table.begin(intent(Action::Delete)).await.expect("a write");
            let changes = subject.deletion(table.as_ref(), &world.env, &write, &[4]).await.expect("changes");
            writes.push((write, changes));
        }
        let of = async |at: usize| {
            let (write, changes) = &writes[at];
            commit_as(table.as_ref(), &world.env, write, changes, isolation, Some(Predicate::True)).await
        };
        let first = of(0).await.expect("the first is alone");
        let err = of(1).await.expect_err("the second deletes what is gone");
        assert_eq!(err.kind(), ErrorKind::Conflict, "{isolation:?}: {err}");
        assert!(err.to_string().contains(first.version.id.as_str()), "`{err}` names version {}", first.version.id);
        let found = ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows");
        assert_eq!(found, [1, 2, 3, 5, 6]);
    }
}

/// Rows written for another schema do not land.
pub async fn a_schema_change_stops_older_writes(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let (write, changes) = begun(subject, table.as_ref(), world, 8).await;
    let schema = table.snapshot(&AsOf::Latest).await.expect("a snapshot").schema().as_ref().clone();
    let more = Field::new("more", DataType::Utf8, true);
    let schema = Schema::new(schema.fields().iter().cloned().chain([Arc::new(more)]).collect::<Vec<_>>());
    let alter = table.begin(intent(Action::Schema)).await.expect("a write");
    commit(table.as_ref(), &world.env, &alter, &[Change::Schema(schema.into())]).await.expect("a new column");
    let err = commit(table.as_ref(), &world.env, &write, &changes).await.expect_err("the schema is another one");
    assert_eq!(err.kind(), ErrorKind::Conflict, "{err}");
    assert_eq!(ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows"), [1, 2, 3, 4, 5, 6]);
}

/// Whoever read everything conflicts with a later append if serializable, and not under snapshot isolation.
pub async fn an_append_conflicts_with_who_read_all_only_when_serializable(subject: &dyn Subject, world: &World) {
    for (isolation, conflicts) in [(Isolation::Serializable, true), (Isolation::Snapshot, false)] {
        let world_again = World::memory();
        let world = if conflicts { world } else { &world_again };
        let table = three_appends(subject, world).await;
        let write = table.begin(intent(Action::Delete)).await.expect("a write");
        let changes = subject.deletion(table.as_ref(), &world.env, &write, &[1]).await.expect("changes");
        subject.append(table.as_ref(), &world.env, &rows([8])).await.expect("an append");
        let done = commit_as(table.as_ref(), &world.env, &write, &changes, isolation, Some(Predicate::True)).await;
        assert_eq!(done.is_err(), conflicts, "{isolation:?}: {done:?}");
        let found = ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows");
        assert_eq!(found.contains(&1), conflicts);
        assert!(found.contains(&8));
    }
}
