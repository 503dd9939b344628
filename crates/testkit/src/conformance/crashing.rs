//! Behaviours of processes that die, and of stores that fail: whatever befalls whichever call, the table is whole.
use lakebed_core::{
    ErrorKind, Result,
    change::{Change, RowDelta},
    commit::StoragePublisher,
    maintain::{self, Maintenance, Retain},
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};

use super::{Subject, World, commit, ids, rows, three_appends, upkeep::FOREVER, writing};
use crate::{
    pond::intent,
    store::{Fault, Times},
};

/// More calls than any of the actions here makes.
const MOST_CALLS: u64 = 400;

/// What befalls one call. The processes of the last two live on.
const FAULTS: [Fault; 6] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::FailAfter,
    Fault::LoseAnswer,
    Fault::LoseRequest,
    Fault::LoseAnswerAndRetry,
];

/// Runs an action in a fresh world each time, with a fault at its n-th call, for every fault and every n until it gets
/// through untouched.
async fn at_every_call(
    subject: &dyn Subject,
    before: &[i64],
    after: &[i64],
    action: impl AsyncFn(&dyn Table, &World) -> Result<()>,
) {
    for fault in FAULTS {
        for n in 1.. {
            assert!(n <= MOST_CALLS, "the action makes more than {MOST_CALLS} calls");
            let what = format!("{fault:?} at call {n}");
            let world = World::memory();
            let table = three_appends(subject, &world).await;
            let calls = world.store.requests();
            world.store.add_rule(None, "", fault.clone(), Times::Nth(n));
            let done = action(table.as_ref(), &world).await;
            let again = world.reopened(subject).await.expect("the table is still a table");
            let found = ids(subject, again.as_ref(), &AsOf::Latest).await.unwrap_or_else(|err| panic!("{what}: {err}"));
            match done {
                Ok(()) => assert_eq!(found, after, "acknowledged, {what}"),
                Err(err) if err.kind() == ErrorKind::Unknown => {
                    assert!(found == before || found == after, "{what}: {found:?}");
                }
                Err(err) => assert_eq!(found, before, "{what}: `{err}` says that nothing happened"),
            }
            life_goes_on(subject, again.as_ref(), &world, &found, &what).await;
            if ((world.store.requests() - calls) as u64) < n {
                break;
            }
        }
    }
}

/// Old versions read as before, and one more append is one more row.
async fn life_goes_on(subject: &dyn Subject, table: &dyn Table, world: &World, found: &[i64], what: &str) {
    subject.append(table, &world.env, &rows([99])).await.unwrap_or_else(|err| panic!("{what}: {err}"));
    let more = ids(subject, table, &AsOf::Latest).await.expect("rows");
    assert_eq!(more.len(), found.len() + 1, "{what}");
    let timeline = table.timeline(&Span::all()).await.expect("a timeline");
    let full = timeline.versions().nth(3).expect("the third append").id.clone();
    assert_eq!(ids(subject, table, &AsOf::Version(full)).await.expect("rows"), [1, 2, 3, 4, 5, 6], "{what}");
}

/// An append that fails is wholly there or not at all.
pub async fn an_append_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let append = async |table: &dyn Table, world: &World| subject.append(table, &world.env, &rows([7, 8])).await;
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6, 7, 8], append).await;
}

/// So it is when another writer commits first, and the append moves on top of that.
pub async fn an_append_over_a_rival_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let append = async |table: &dyn Table, world: &World| {
        // The rival is healthy, and first in any case.
        let rival = world.reopened(subject).await?;
        let begun = table.begin(intent(Action::Append)).await;
        subject.append(rival.as_ref(), &world.env, &rows([50])).await?;
        let write = begun?;
        let added = vec![subject.data_file(table, &world.env, &write, &rows([7])).await?];
        let changes = [Change::Rows(RowDelta { added, ..RowDelta::default() })];
        commit(table, &world.env, &write, &changes).await.map(|_| ())
    };
    at_every_call(subject, &[1, 2, 3, 4, 5, 6, 50], &[1, 2, 3, 4, 5, 6, 7, 50], append).await;
}

/// A delete that fails is wholly there or not at all.
pub async fn a_delete_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let delete = async |table: &dyn Table, world: &World| {
        let write = table.begin(intent(Action::Delete)).await?;
        let changes = subject.deletion(table, &world.env, &write, &[2, 4, 5]).await?;
        commit(table, &world.env, &write, &changes).await.map(|_| ())
    };
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[1, 3, 6], delete).await;
}

/// Rows that go and rows that come in one commit do so together.
pub async fn a_merge_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let merge = async |table: &dyn Table, world: &World| {
        let write = table.begin(intent(Action::RowDelta)).await?;
        let mut changes = subject.deletion(table, &world.env, &write, &[1, 5]).await?;
        let added = vec![subject.data_file(table, &world.env, &write, &rows([11, 15])).await?];
        changes.push(Change::Rows(RowDelta { added, ..RowDelta::default() }));
        commit(table, &world.env, &write, &changes).await.map(|_| ())
    };
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[2, 3, 4, 6, 11, 15], merge).await;
}

/// A compaction changes no row, whether it lands or not.
pub async fn a_compaction_changes_no_row(subject: &dyn Subject, _: &World) {
    let compact = async |table: &dyn Table, world: &World| {
        let write = table.begin(intent(Action::Compaction)).await?;
        let changes = subject.compaction(table, &world.env, &write).await?;
        commit(table, &world.env, &write, &changes).await.map(|_| ())
    };
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6], compact).await;
}

/// A restore that fails is wholly there or not at all.
pub async fn a_restore_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let restore = async |table: &dyn Table, world: &World| {
        let timeline = table.timeline(&Span::all()).await?;
        let to = timeline.versions().nth(1).expect("the first append").id.clone();
        let write = table.begin(intent(Action::Restore)).await?;
        let changes = [Change::Restore(AsOf::Version(to))];
        commit(table, &world.env, &write, &changes).await.map(|_| ())
    };
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[1, 2], restore).await;
}

/// A tag changes no row, whether it is there or not.
pub async fn a_tag_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    let tag = async |table: &dyn Table, world: &World| {
        let head = table.resolve(&AsOf::Latest).await?.version.id;
        let write = table.begin(intent(Action::Ref)).await?;
        commit(table, &world.env, &write, &[writing::tag_of("eod", &head)]).await.map(|_| ())
    };
    at_every_call(subject, &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6], tag).await;
}

/// Upkeep that fails leaves every version that is still listed readable; run again, it ends.
pub async fn upkeep_stops_anywhere_unharmed(subject: &dyn Subject, _: &World) {
    let forget = Maintenance::Expire(Retain { at_least: 1, ..Retain::default() });
    let all = [forget, Maintenance::Checkpoint, Maintenance::RemoveOrphans { older_than: FOREVER }];
    for action in all {
        for fault in FAULTS {
            for n in 1.. {
                assert!(n <= MOST_CALLS, "{action:?} makes more than {MOST_CALLS} calls");
                if one_upkeep(subject, &action, &fault, n).await < n {
                    break;
                }
            }
        }
    }
}

/// How many calls it made.
async fn one_upkeep(subject: &dyn Subject, action: &Maintenance, fault: &Fault, n: u64) -> u64 {
    let what = format!("{fault:?} at call {n} of {action:?}");
    let world = World::memory();
    let table = three_appends(subject, &world).await;
    let write = table.begin(intent(Action::Compaction)).await.expect("a write");
    let changes = subject.compaction(table.as_ref(), &world.env, &write).await.expect("changes");
    commit(table.as_ref(), &world.env, &write, &changes).await.expect("a compaction");
    let calls = world.store.requests();
    world.store.add_rule(None, "", fault.clone(), Times::Nth(n));
    let _ = keep_up(table.as_ref(), &world, action).await;
    let made = (world.store.requests() - calls) as u64;
    let again = world.reopened(subject).await.expect("the table is still a table");
    // Deletes that go out together succeed one by one: what is left of a version may still be listed, and read no more.
    let halves = !matches!(fault, Fault::CrashBefore | Fault::CrashAfter);
    every_listed_version_is_readable_or_forgotten(subject, again.as_ref(), halves, &what).await;
    keep_up(again.as_ref(), &world, action).await.unwrap_or_else(|err| panic!("again after {what}: {err}"));
    every_listed_version_is_readable_or_forgotten(subject, again.as_ref(), false, &what).await;
    subject.append(again.as_ref(), &world.env, &rows([99])).await.unwrap_or_else(|err| panic!("{what}: {err}"));
    made
}

async fn keep_up(table: &dyn Table, world: &World, action: &Maintenance) -> Result<()> {
    let plan = table.plan(action).await?;
    let applied = maintain::run(table, &StoragePublisher, &world.env, plan).await?;
    applied.stopped.map_or(Ok(()), Err)
}

async fn every_listed_version_is_readable_or_forgotten(
    subject: &dyn Subject,
    table: &dyn Table,
    forgotten: bool,
    what: &str,
) {
    let timeline = table.timeline(&Span::all()).await.unwrap_or_else(|err| panic!("{what}: {err}"));
    for version in timeline.versions() {
        let found = ids(subject, table, &AsOf::Version(version.id.clone())).await;
        match found {
            Err(err) if forgotten && err.kind() == ErrorKind::NotFound => (),
            found => drop(found.unwrap_or_else(|err| panic!("{what}, version {}: {err}", version.id))),
        }
    }
    let found = ids(subject, table, &AsOf::Latest).await.expect("rows");
    assert_eq!(found, [1, 2, 3, 4, 5, 6], "{what}");
}
