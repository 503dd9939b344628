//! What history and travel by time cost: the commits that were asked for, not the age of the table.
use std::time::Duration;

use futures::TryStreamExt;
use lakebed_core::{
    change::VersionDelta,
    table::Table,
    version::{AsOf, Millis, Span, VersionId},
};
use lakebed_testkit::store::{Fault, Times, waves};
use serde_json::json;

use crate::world::{World, add, as_of, metadata, protocol};

/// The same bytes seen by a process that has asked nothing yet.
fn fresh(world: &World) -> World {
    World { store: world.store.restarted().rule(None, "", Fault::Delay(Duration::ZERO), Times::Always) }
}

/// When a version was committed.
async fn time_of(world: &World, version: u64) -> AsOf {
    let timeline = fresh(world).table().await.timeline(&Span::all()).await.unwrap();
    AsOf::Time(timeline.resolve(&as_of(version)).unwrap().committed_at)
}

/// A table whose commits carry their time: version `v` that of `1000 * (v + 1)`.
async fn stamped(last: u64) -> World {
    let world = World::new();
    for version in 0..=last {
        let mut lines = vec![json!({"commitInfo": {"inCommitTimestamp": 1000 * (version + 1), "operation": "WRITE"}})];
        if version == 0 {
            lines.extend([protocol(), metadata(&[], json!({"delta.enableInCommitTimestamps": "true"}))]);
        }
        lines.push(add(version));
        world.commit(version, &lines).await;
    }
    world
}

#[tokio::test]
async fn travel_by_time_costs_two_requests_more_than_by_number() {
    let world = World::with_versions(60).await;
    world.checkpoint(20).await;
    for version in [60, 33] {
        let by_number = fresh(&world);
        by_number.at(version).await.unwrap();
        let time = time_of(&world, version).await;
        let world = fresh(&world);
        let snapshot = world.table().await.snapshot(&time).await.unwrap();
        assert_eq!(snapshot.version().id, VersionId::from(version));
        assert_eq!(world.store.requests(), by_number.store.requests() + 2, "version {version}");
    }
}

#[tokio::test]
async fn the_state_that_tells_the_clock_is_read_once() {
    let world = stamped(60).await;
    let newest = fresh(&world);
    newest.latest().await.unwrap();
    let world = fresh(&world);
    let snapshot = world.table().await.snapshot(&AsOf::Time(Millis(i64::MAX / 4))).await.unwrap();
    assert_eq!(snapshot.version().committed_at, Millis(61_000));
    // Two listings more, the newest commit, and the commits of a bisection.
    assert_eq!(world.store.requests(), newest.store.requests() + 2 + 1 + 5);
}

#[tokio::test]
async fn a_bisection_reads_no_commit_twice() {
    let world = fresh(&stamped(60).await);
    let table = world.table().await;
    table.latest().await.unwrap();
    world.store.clear_log();
    let found = table.resolve(&AsOf::Time(Millis(30_500))).await.unwrap();
    assert_eq!((found.version.id, found.version.committed_at), (VersionId::from(29), Millis(30_000)));
    assert!(found.rule.contains("the next is 30 of"), "{}", found.rule);
    assert!(world.store.requests() <= 3 + 6, "{}", world.store.requests());
}

#[tokio::test]
async fn the_newest_of_history_cost_a_listing_and_themselves() {
    for (last, limit) in [(20, 3), (200, 3), (200, 7)] {
        let world = fresh(&World::with_versions(last).await);
        let timeline = world.table().await.timeline_newest(&Span::all(), limit).await.unwrap();
        let shown: Vec<VersionId> = timeline.versions().map(|it| it.id.clone()).collect();
        let first = last + 1 - limit as u64;
        assert_eq!(shown, (first..=last).map(VersionId::from).collect::<Vec<_>>());
        assert_eq!(timeline.earlier() as u64, first);
        assert_eq!((world.store.requests(), waves(&world.store.log())), (1 + limit, 2));
    }
}

#[tokio::test]
async fn the_newest_of_history_are_the_end_of_the_whole() {
    for world in [World::with_versions(9).await, stamped(9).await] {
        let table = world.table().await;
        for span in [Span::all(), Span { after: Some(2.into()), until: as_of(7) }] {
            let whole = table.timeline(&span).await.unwrap();
            for limit in [0, 1, 4, 99] {
                let newest = table.timeline_newest(&span, limit).await.unwrap();
                let cut = whole.clone().newest(limit);
                assert_eq!((newest.instants(), newest.earlier()), (cut.instants(), cut.earlier()), "{span:?} {limit}");
            }
        }
    }
}

#[tokio::test]
async fn a_version_that_was_resolved_is_not_read_again() {
    let world = fresh(&World::with_versions(13).await);
    let table = world.table().await;
    for version in [as_of(13), as_of(5)] {
        table.resolve(&version).await.unwrap();
        world.store.clear_log();
        table.snapshot(&version).await.unwrap();
        assert_eq!(world.store.requests(), 1, "{version:?}");
    }
    // Unless it is another one by now.
    world.commit(5, &[add(77)]).await;
    world.store.clear_log();
    table.snapshot(&as_of(5)).await.unwrap();
    assert!(world.store.requests() > 6);
}

#[tokio::test]
async fn a_time_and_whether_its_version_can_be_read_take_nine() {
    let world = World::with_versions(4).await;
    let time = time_of(&world, 3).await;
    let world = fresh(&world);
    let table = world.table().await;
    let version = table.resolve(&time).await.unwrap().version.id;
    assert_eq!(version, VersionId::from(3));
    let span = Span { after: Some(version.clone()), until: AsOf::Version(version.clone()) };
    let nothing: Vec<VersionDelta> = table.changes(&span).try_collect().await.unwrap();
    assert!(nothing.is_empty());
    table.snapshot(&AsOf::Version(version)).await.unwrap();
    assert_eq!(world.store.requests(), 9);
}

/// A commit without `commitInfo`, too large to be read by the first kilobytes: they are tried, and then it is read once.
#[tokio::test]
async fn a_large_commit_that_says_nothing_of_itself_is_read_once() {
    let world = World::with_versions(2).await;
    let mut large = add(3);
    large["add"]["stats"] = json!("x".repeat(5 << 20));
    world.commit(3, &[large]).await;
    let world = fresh(&world);
    let timeline = world.table().await.timeline(&Span::all()).await.unwrap();
    assert_eq!(timeline.versions().count(), 4);
    let asked = world.store.log().iter().filter(|it| it.path.contains("00000000000000000003.json")).count();
    assert_eq!(asked, 2, "{:?}", world.store.log());
}
