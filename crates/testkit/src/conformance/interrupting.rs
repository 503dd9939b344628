//! Behaviours of upkeep that dies, or whose store fails: whatever befalls whichever call, nothing that is needed is gone.
//!
//! The table has an old version that a tag names, files that only forgotten versions need, and files that no version ever
//! named. Each kind of upkeep runs alone; while writers commit between its plan and its first step; and after another
//! keeper of the same plan. Whatever happened, then
//!
//! 1. head and tag have their rows, and every file they reach is there;
//! 2. every other version that is still listed can be read, unless it is a vacuum's business to empty it;
//! 3. run again, the same upkeep comes to its end, and then there is nothing left for it to do;
//! 4. after a full vacuum there is no file that nothing reaches, and one more append is one more row.
use std::collections::BTreeSet;

use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind, Result,
    commit::StoragePublisher,
    maintain::{self, Maintenance, Retain, Step},
    path::FilePath,
    scan::{Scan, ScanTask},
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};

use super::{
    Subject, World, commit,
    crashing::two_others,
    ids,
    points::{Point, at_every_call},
    rows, three_appends,
    upkeep::FOREVER,
    writing,
};
use crate::pond::intent;

const TAG: &str = "kept";

/// Who else is at work, after the plan was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    Nobody,
    Writers,
    /// One who carries out a plan of the same action.
    Keeper,
}

/// Rows 1, 2, 3, 5 and 6; under the tag, also 4.
async fn made(subject: &dyn Subject) -> World {
    let world = World::memory();
    let table = three_appends(subject, &world).await;
    let head = writing::head(table.as_ref()).await;
    let write = table.begin(intent(Action::Ref)).await.expect("a write");
    commit(table.as_ref(), &world.env, &write, &[writing::tag_of(TAG, &head)]).await.expect("a tag");
    subject.append(table.as_ref(), &world.env, &rows([7])).await.expect("an append");
    writing::delete(subject, table.as_ref(), &world, &[4, 7]).await;
    let write = table.begin(intent(Action::Compaction)).await.expect("a write");
    let changes = subject.compaction(table.as_ref(), &world.env, &write).await.expect("changes");
    commit(table.as_ref(), &world.env, &write, &changes).await.expect("a compaction");
    let write = table.begin(intent(Action::Append)).await.expect("a write");
    subject.data_file(table.as_ref(), &world.env, &write, &rows([8])).await.expect("an orphan");
    table.abandon(&write).await.expect("abandoned");
    world
}

async fn unharmed(subject: &dyn Subject, action: &Maintenance) {
    let made = made(subject).await;
    for company in [Company::Nobody, Company::Writers, Company::Keeper] {
        let act = async |table: &dyn Table, world: &World, point: &Point| {
            // Others meet a plan that was made: what befalls its making is the same with and without them.
            if company == Company::Nobody {
                point.arm(world);
            }
            let plan = table.plan(action).await?;
            match company {
                Company::Nobody => (),
                Company::Writers => two_others(subject, world).await,
                Company::Keeper => {
                    let other = world.reopened(subject).await?;
                    keep_up(other.as_ref(), world, action).await.expect("the other keeper is healthy");
                }
            }
            if company != Company::Nobody {
                point.arm(world);
            }
            let applied = maintain::run(table, &StoragePublisher, &world.env, plan).await?;
            applied.stopped.map_or(Ok(()), Err)
        };
        at_every_call(subject, &made, act, async |point: &Point, done: Result<()>, world: &World| {
            let what = format!("{action:?} beside {company:?}, {}", point.what);
            if let (true, Err(err)) = (point.is_untouched(), &done) {
                panic!("{what}: {err}");
            }
            let after = After { subject, world, action, company, what };
            // Deletes that go out together succeed one by one: what is left of a version may still be listed, and read
            // no more.
            after.holds(point.survives()).await;
            after.ends().await;
        })
        .await;
    }
}

async fn keep_up(table: &dyn Table, world: &World, action: &Maintenance) -> Result<()> {
    let plan = table.plan(action).await?;
    let applied = maintain::run(table, &StoragePublisher, &world.env, plan).await?;
    applied.stopped.map_or(Ok(()), Err)
}

/// The world after one run.
struct After<'a> {
    subject: &'a dyn Subject,
    world: &'a World,
    action: &'a Maintenance,
    company: Company,
    what: String,
}

impl After<'_> {
    /// Points 1 and 2. `halves` of versions may be left.
    async fn holds(&self, halves: bool) {
        let what = &self.what;
        let table = self.world.reopened(self.subject).await.unwrap_or_else(|err| panic!("{what}: {err}"));
        let table = table.as_ref();
        let mut head = vec![1, 2, 3, 5, 6];
        if self.company == Company::Writers {
            head.extend([50, 60]);
        }
        for (as_of, rows) in [(AsOf::Latest, head), (AsOf::Ref(TAG.into()), vec![1, 2, 3, 4, 5, 6])] {
            let found = ids(self.subject, table, &as_of).await.unwrap_or_else(|err| panic!("{what}, {as_of:?}: {err}"));
            assert_eq!(found, rows, "{what}, {as_of:?}");
        }
        let there = self.files(table).await;
        let reachable = reachable(table).await;
        assert!(reachable.is_subset(&there), "{what}: {:?} is gone", reachable.difference(&there).next());
        let empties = matches!(self.action, Maintenance::Vacuum { .. });
        let timeline = table.timeline(&Span::all()).await.unwrap_or_else(|err| panic!("{what}: {err}"));
        for version in timeline.versions().filter(|_| !empties) {
            match needed(table, &AsOf::Version(version.id.clone())).await {
                Ok(needed) => assert!(needed.is_subset(&there), "{what}, version {}", version.id),
                Err(err) if halves && err.kind() == ErrorKind::NotFound => (),
                Err(err) => panic!("{what}, version {}: {err}", version.id),
            }
        }
    }

    /// Points 3 and 4.
    async fn ends(&self) {
        let what = &self.what;
        let table = self.world.reopened(self.subject).await.expect("a table");
        let table = table.as_ref();
        let healthy = World { store: self.world.store.restarted(), env: self.world.env.clone(), _folder: None };
        keep_up(table, &healthy, self.action).await.unwrap_or_else(|err| panic!("again after {what}: {err}"));
        self.holds(false).await;
        let there = self.files(table).await;
        let plan = table.plan(self.action).await.expect("a plan");
        let doomed = plan.steps.iter().flat_map(|it| if let Step::Delete(batch) = it { &batch[..] } else { &[] });
        // A lite vacuum looks at no folder, and dooms anew what it took before.
        let left = doomed.map(|it| &it.path).find(|it| there.contains(it));
        assert_eq!(left, None, "{what}: it is left");
        if let Maintenance::Vacuum { lite: false, .. } = self.action {
            let holds_rows = self.subject.holds_rows();
            let reachable = reachable(table).await;
            let leaked = there.iter().find(|it| holds_rows(it.as_str()) && !reachable.contains(it));
            assert_eq!(leaked, None, "{what}: nothing reaches it");
        }
        let before = ids(self.subject, table, &AsOf::Latest).await.expect("rows").len();
        self.subject.append(table, &healthy.env, &rows([99])).await.unwrap_or_else(|err| panic!("{what}: {err}"));
        assert_eq!(ids(self.subject, table, &AsOf::Latest).await.expect("rows").len(), before + 1, "{what}");
    }

    async fn files(&self, table: &dyn Table) -> BTreeSet<FilePath> {
        let listed = table.storage().list_all("").map_ok(|it| FilePath::below(it.path)).try_collect().await;
        listed.unwrap_or_else(|err| panic!("{}: {err}", self.what))
    }
}

/// Files of head and tags.
async fn reachable(table: &dyn Table) -> BTreeSet<FilePath> {
    let retain = Retain { at_least: 1, ..Retain::default() };
    table.reachable(&retain).try_collect().await.expect("what is reachable")
}

/// Files that a version's rows are read from.
async fn needed(table: &dyn Table, as_of: &AsOf) -> Result<BTreeSet<FilePath>> {
    let tasks: Vec<ScanTask> = table.snapshot(as_of).await?.tasks(&Scan::all()).try_collect().await?;
    let vectors = tasks.iter().flat_map(|it| &it.deletes).filter_map(|it| it.place.path().cloned());
    Ok(tasks.iter().flat_map(|it| &it.files).map(|it| it.path.clone()).chain(vectors).collect())
}

fn vacuum(lite: bool) -> Maintenance {
    Maintenance::Vacuum { retain: Retain::default(), older_than: Some(FOREVER), lite, forced: true }
}

/// A checkpoint that was cut short is a cache that is not there.
pub async fn a_checkpoint_stops_anywhere_unharmed(subject: &dyn Subject, _: &World) {
    unharmed(subject, &Maintenance::Checkpoint).await;
}

/// Versions go one by one, each wholly.
pub async fn log_clean_up_stops_anywhere_unharmed(subject: &dyn Subject, _: &World) {
    unharmed(subject, &Maintenance::Expire(Retain { at_least: 1, ..Retain::default() })).await;
}

/// A vacuum takes files that no version needs which has to stay, and no others, in whatever order.
pub async fn a_vacuum_stops_anywhere_unharmed(subject: &dyn Subject, _: &World) {
    unharmed(subject, &vacuum(false)).await;
}

/// So does one that knows of files from the log alone.
pub async fn a_lite_vacuum_stops_anywhere_unharmed(subject: &dyn Subject, _: &World) {
    unharmed(subject, &vacuum(true)).await;
}

/// What no version ever named goes, and nothing else.
pub async fn the_search_for_orphans_stops_anywhere_unharmed(subject: &dyn Subject, _: &World) {
    unharmed(subject, &Maintenance::RemoveOrphans { older_than: FOREVER }).await;
}
