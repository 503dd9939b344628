//! Behaviours of processes that die: between any two calls of the store, the table is whole.
use lakebed_core::{
    Result,
    commit::StoragePublisher,
    maintain::{self, Maintenance, Retain},
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};

use super::{Subject, World, commit, ids, rows, three_appends};
use crate::pond::intent;

/// More calls than any of the actions here makes.
const MOST_CALLS: u64 = 400;

/// Runs an action in a fresh world each time, dead after n calls, for every n until it gets through.
async fn at_every_call(
    subject: &dyn Subject,
    before: &[i64],
    after: &[i64],
    action: impl AsyncFn(&dyn Table, &World) -> Result<()>,
) {
    for n in 0..MOST_CALLS {
        let world = World::memory();
        let table = three_appends(subject, &world).await;
        world.store.crash_after(n);
        let done = action(table.as_ref(), &world).await;
        let crashed = world.store.crashed();
        let again = world.reopened(subject).await.expect("the table is still a table");
        let found = ids(subject, again.as_ref(), &AsOf::Latest).await.unwrap_or_else(|err| panic!("call {n}: {err}"));
        match done {
            Ok(()) => assert_eq!(found, after, "acknowledged, dead after call {n}"),
            Err(_) => assert!(found == before || found == after, "dead after call {n}: {found:?}"),
        }
        // Life goes on.
        subject.append(again.as_ref(), &world.env, &rows([99])).await.unwrap_or_else(|err| panic!("call {n}: {err}"));
        let more = ids(subject, again.as_ref(), &AsOf::Latest).await.expect("rows");
        assert_eq!(more.len(), found.len() + 1, "dead after call {n}");
        if !crashed {
            return;
        }
    }
    panic!("the action makes more than {MOST_CALLS} calls");
}

/// An append that dies is wholly there or not at all.
pub async fn an_append_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let append = async |table: &dyn Table, world: &World| subject.append(table, &world.env, &rows([7, 8])).await;
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6, 7, 8], append).await;
}

/// A delete that dies is wholly there or not at all.
pub async fn a_delete_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let delete = async |table: &dyn Table, world: &World| {
        let write = table.begin(intent(Action::Delete)).await?;
        let changes = subject.deletion(table, &world.env, &write, &[2, 4, 5]).await?;
        commit(table, &world.env, &write, &changes).await.map(|_| ())
    };
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[1, 3, 6], delete).await;
}

/// Expiring that dies leaves every version that is still listed readable; run again, it ends.
pub async fn upkeep_stops_anywhere_unharmed(subject: &dyn Subject, _: &World) {
    for n in 0..MOST_CALLS {
        let world = World::memory();
        let table = three_appends(subject, &world).await;
        let write = table.begin(intent(Action::Compaction)).await.expect("a write");
        let changes = subject.compaction(table.as_ref(), &world.env, &write).await.expect("changes");
        commit(table.as_ref(), &world.env, &write, &changes).await.expect("a compaction");
        world.store.crash_after(n);
        let _ = expire(table.as_ref(), &world).await;
        let crashed = world.store.crashed();
        let again = world.reopened(subject).await.expect("the table is still a table");
        every_listed_version_is_readable(subject, again.as_ref(), n).await;
        expire(again.as_ref(), &world).await.unwrap_or_else(|err| panic!("again after call {n}: {err}"));
        every_listed_version_is_readable(subject, again.as_ref(), n).await;
        if !crashed {
            return;
        }
    }
    panic!("expiring makes more than {MOST_CALLS} calls");
}

async fn expire(table: &dyn Table, world: &World) -> Result<()> {
    let plan = table.plan(&Maintenance::Expire(Retain { at_least: 1, ..Retain::default() })).await?;
    let applied = maintain::run(table, &StoragePublisher, &world.env, plan).await?;
    applied.stopped.map_or(Ok(()), Err)
}

async fn every_listed_version_is_readable(subject: &dyn Subject, table: &dyn Table, n: u64) {
    let timeline = table.timeline(&Span::all()).await.unwrap_or_else(|err| panic!("dead after call {n}: {err}"));
    for version in timeline.versions() {
        let found = ids(subject, table, &AsOf::Version(version.id.clone())).await;
        found.unwrap_or_else(|err| panic!("dead after call {n}, version {}: {err}", version.id));
    }
    let found = ids(subject, table, &AsOf::Latest).await.expect("rows");
    assert_eq!(found, [1, 2, 3, 4, 5, 6], "dead after call {n}");
}
