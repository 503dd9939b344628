//! A log with a gap: what each reader of a span of versions makes of it.
//!
//! Who names a start gets every version after it, or an error that names the first one missing: a writer that checks what
//! others committed since its base must never take a winner that is gone for one that never was. Who names none gets what
//! is left, from the last gap on that a clean-up made and a checkpoint bridges; a gap that nothing bridges is an error.
use std::sync::Arc;

use futures::TryStreamExt;
use lakebed_core::{
    change::{Change, ChangeSpan, RowDelta},
    commit::{StoragePublisher, Write},
    maintain::{self, Maintenance, Retain},
    path::FilePath,
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};
use lakebed_testkit::{
    conformance::{Subject, World as Sea, commit, ids, rows},
    pond::intent,
};

use crate::{
    world::{World, as_of},
    written::{self, Written},
};

/// Versions 0 to 13 without those of `gone`, with a checkpoint at 10 if asked for.
async fn log(checkpoint: bool, gone: std::ops::RangeInclusive<u64>) -> World {
    let world = World::with_versions(13).await;
    if checkpoint {
        world.checkpoint(10).await;
    }
    for version in gone {
        world.delete(&format!("{version:020}.json")).await;
    }
    world
}

fn span(after: Option<u64>, until: Option<u64>) -> Span {
    Span { after: after.map(Into::into), until: until.map_or(AsOf::Latest, as_of) }
}

/// The versions of a span, or why not.
async fn changes(world: &World, after: Option<u64>, until: Option<u64>) -> String {
    let table = world.table().await;
    let deltas: Result<Vec<_>, _> = table.changes(&span(after, until)).try_collect().await;
    match deltas {
        Ok(deltas) => deltas.iter().map(|it| it.version.id.to_string()).collect::<Vec<_>>().join(" "),
        Err(err) => format!("{:?}: {err}", err.kind()),
    }
}

fn gone(version: u64) -> String {
    format!("NotFound: `_delta_log/{version:020}.json` is gone, and with it what version {version} changed")
}

#[tokio::test]
async fn a_gap_that_nothing_bridges_ends_every_span_across_it_by_name() {
    let world = log(false, 4..=4).await;
    for (after, until, expected) in [
        (None, None, gone(4)),
        (None, Some(9), gone(4)),
        (None, Some(4), gone(4)),
        (None, Some(3), "0 1 2 3".to_owned()),
        (Some(1), None, gone(4)),
        (Some(1), Some(3), "2 3".to_owned()),
        (Some(1), Some(4), gone(4)),
        (Some(3), None, gone(4)),
        (Some(3), Some(4), gone(4)),
        (Some(4), None, "5 6 7 8 9 10 11 12 13".to_owned()),
        (Some(11), None, "12 13".to_owned()),
        (Some(13), None, String::new()),
    ] {
        assert_eq!(changes(&world, after, until).await, expected, "after {after:?} until {until:?}");
    }
}

#[tokio::test]
async fn what_a_clean_up_left_behind_is_missed_by_who_asks_for_it_and_by_nobody_else() {
    // Cut short: it went from version 9 back to version 4.
    let world = log(true, 4..=9).await;
    for (after, until, expected) in [
        (None, None, "10 11 12 13".to_owned()),
        (None, Some(11), "10 11".to_owned()),
        (None, Some(6), gone(4)),
        (None, Some(3), "0 1 2 3".to_owned()),
        (Some(1), None, gone(4)),
        (Some(3), None, gone(4)),
        (Some(4), None, gone(5)),
        (Some(8), None, gone(9)),
        (Some(9), None, "10 11 12 13".to_owned()),
    ] {
        assert_eq!(changes(&world, after, until).await, expected, "after {after:?} until {until:?}");
    }
    // A second gap, above the checkpoint, is no clean-up's work.
    world.delete("00000000000000000012.json").await;
    assert_eq!(changes(&world, None, None).await, gone(12));
    assert_eq!(changes(&world, Some(9), None).await, gone(12));
    assert_eq!(changes(&world, Some(12), None).await, "13");
}

#[tokio::test]
async fn a_checkpoint_bridges_the_gap_before_it_and_no_other() {
    let world = log(true, 4..=4).await;
    // The version after the gap cannot be rebuilt, but the one of the checkpoint can: all is what is left.
    assert_eq!(changes(&world, None, None).await, "5 6 7 8 9 10 11 12 13");
    // Up to a version below the checkpoint, nothing bridges it.
    assert_eq!(changes(&world, None, Some(8)).await, gone(4));
}

#[tokio::test]
async fn a_version_that_is_not_there_yet_is_an_error_from_wherever_one_looks() {
    let world = log(true, 4..=9).await;
    for after in [None, Some(3), Some(11), Some(13), Some(15)] {
        let said = changes(&world, after, Some(20)).await;
        assert_eq!(said, "NotFound: version 20 does not exist: the newest is 13", "after {after:?}");
    }
    assert_eq!(changes(&world, Some(13), Some(13)).await, "");
    assert_eq!(changes(&world, Some(13), Some(11)).await, "");
}

#[tokio::test]
async fn history_shows_what_is_left_on_both_sides() {
    let table = log(true, 4..=9).await.table().await;
    for (after, expected) in [(None, "0 1 2 3 10 11 12 13"), (Some(2), "3 10 11 12 13"), (Some(11), "12 13")] {
        let timeline = table.timeline(&span(after, None)).await.unwrap();
        let shown: Vec<String> = timeline.versions().map(|it| it.id.to_string()).collect();
        assert_eq!(shown.join(" "), expected, "after {after:?}");
    }
}

#[tokio::test]
async fn a_change_feed_across_a_gap_names_the_version() {
    let table = log(true, 4..=9).await.table().await;
    for (first, missing) in [(0, 4), (3, 4), (5, 5), (9, 9)] {
        let span = ChangeSpan { first: as_of(first), last: AsOf::Latest };
        let said = table.change_feed(&span).await.map(|_| ()).unwrap_err();
        assert_eq!(format!("{:?}: {said}", said.kind()), gone(missing), "from {first}");
    }
}

const SUBJECT: Written = Written::VECTORS;

/// A writer that began at version 2, and what it would commit; then versions 3 to 5 by others, of which 3 deletes row 1.
async fn overtaken(action: Action) -> (Sea, Arc<dyn Table>, Write, Vec<Change>) {
    let world = Sea::memory();
    let table = SUBJECT.create(world.location()).await.unwrap();
    for ids in [vec![1, 2], vec![3]] {
        SUBJECT.append(table.as_ref(), &world.env, &rows(ids)).await.unwrap();
    }
    let write = table.begin(intent(action)).await.unwrap();
    let changes = match action {
        Action::Delete => SUBJECT.deletion(table.as_ref(), &world.env, &write, &[1]).await.unwrap(),
        _ => {
            let added = vec![written::data_file(table.storage(), &world.env, &write, &rows([9])).await.unwrap()];
            vec![Change::Rows(RowDelta { added, ..RowDelta::default() })]
        }
    };
    let rival = world.reopened(&SUBJECT).await.unwrap();
    let theirs = rival.begin(intent(Action::Delete)).await.unwrap();
    let gone = SUBJECT.deletion(rival.as_ref(), &world.env, &theirs, &[1]).await.unwrap();
    commit(rival.as_ref(), &world.env, &theirs, &gone).await.unwrap();
    for id in [4, 5] {
        SUBJECT.append(rival.as_ref(), &world.env, &rows([id])).await.unwrap();
    }
    (world, table, write, changes)
}

async fn keep_up(world: &Sea, action: Maintenance) {
    let table = world.reopened(&SUBJECT).await.unwrap();
    let plan = table.plan(&action).await.unwrap();
    let applied = maintain::run(table.as_ref(), &StoragePublisher, &world.env, plan).await.unwrap();
    assert!(applied.stopped.is_none(), "{applied:?}");
}

async fn newest(world: &Sea) -> Vec<i64> {
    let table = world.reopened(&SUBJECT).await.unwrap();
    ids(&SUBJECT, table.as_ref(), &AsOf::Latest).await.unwrap()
}

/// A clean-up that was cut short took one of the winners that a writer has to check, not the first.
#[tokio::test]
async fn a_winner_that_is_gone_is_never_skipped() {
    for action in [Action::Append, Action::Delete] {
        let (world, table, write, changes) = overtaken(action).await;
        keep_up(&world, Maintenance::Checkpoint).await;
        let storage = world.store.restarted().storage("t");
        let fourth = FilePath::below("_delta_log/00000000000000000004.json");
        assert_eq!(storage.delete(&[fourth]).await.unwrap().removed.len(), 1);
        let err = commit(table.as_ref(), &world.env, &write, &changes).await.unwrap_err();
        assert!(err.to_string().contains("00000000000000000004.json"), "the winner nobody can check: {err}");
        assert_eq!(newest(&world).await, [2, 3, 4, 5], "{action:?}");
    }
}

/// The clean-up took version 3 and all others that the writer has to check, so that its slot is free again. The protocol has
/// nothing against that, so the commit lands where nobody looks; but it is not acknowledged.
#[tokio::test]
async fn a_writer_older_than_the_log_is_told_that_nobody_may_see_its_commit() {
    let (world, table, write, changes) = overtaken(Action::Append).await;
    keep_up(&world, Maintenance::Expire(Retain { at_least: 1, ..Retain::default() })).await;
    let err = commit(table.as_ref(), &world.env, &write, &changes).await.unwrap_err();
    assert_eq!(err.kind(), lakebed_core::ErrorKind::Unknown, "{err}");
    assert!(err.to_string().contains("version 4 is gone and 5 is there"), "{err}");
    assert_eq!(newest(&world).await, [2, 3, 4, 5]);
}
