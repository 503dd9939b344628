//! What goes wrong while Lakebed writes, one thing at a time: a full disk, lost rights, clocks, others' doings, bad caches.
use std::{sync::Arc, time::Duration};

use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind, Result,
    change::{Change, RowDelta},
    commit::StoragePublisher,
    env::{Clock, Env},
    maintain::{self, Applied, Maintenance, MaintenancePlan, Retain},
    path::FilePath,
    table::Table,
    timeline::Action,
    version::{AsOf, Millis, Span, Version, VersionId},
};
use lakebed_testkit::{
    conformance::{Foreigner, Subject, World, commit, ids, location, rows},
    env::{ManualClock, START, SeededIds},
    pond::intent,
    seed::Seed,
    store::{Fault, FaultyStore, Op, Times},
};
use object_store::{ObjectStoreExt, PutPayload, path::Path};

use crate::{
    foreigner::{Spark, commit_path},
    written::{self, Written},
};

const LATER: Millis = Millis(i64::MAX / 4);

async fn table_of(subject: Written, world: &World, appends: &[&[i64]]) -> Arc<dyn Table> {
    let table = subject.create(world.location()).await.unwrap();
    for ids in appends {
        subject.append(table.as_ref(), &world.env, &rows(ids.iter().copied())).await.unwrap();
    }
    table
}

async fn newest(table: &dyn Table) -> Vec<i64> {
    ids(&Written::PLAIN, table, &AsOf::Latest).await.unwrap()
}

async fn at(table: &dyn Table, version: u64) -> Result<Vec<i64>> {
    ids(&Written::PLAIN, table, &AsOf::Version(VersionId::from(version))).await
}

async fn delete(subject: Written, table: &dyn Table, env: &Env, gone: &[i64]) -> Result<u64> {
    let write = table.begin(intent(Action::Delete)).await?;
    let changes = subject.deletion(table, env, &write, gone).await?;
    Ok(commit(table, env, &write, &changes).await?.version.id.as_str().parse().unwrap())
}

async fn compact(subject: Written, table: &dyn Table, env: &Env) {
    let write = table.begin(intent(Action::Compaction)).await.unwrap();
    let changes = subject.compaction(table, env, &write).await.unwrap();
    commit(table, env, &write, &changes).await.unwrap();
}

async fn restore(table: &dyn Table, env: &Env, to: u64) -> Result<()> {
    let write = table.begin(intent(Action::Restore)).await?;
    commit(table, env, &write, &[Change::Restore(AsOf::Version(VersionId::from(to)))]).await.map(|_| ())
}

fn vacuum(older_than: Millis) -> Maintenance {
    Maintenance::Vacuum { retain: Retain::default(), older_than: Some(older_than), lite: false, forced: true }
}

async fn run(table: &dyn Table, env: &Env, plan: MaintenancePlan) -> Applied {
    maintain::run(table, &StoragePublisher, env, plan).await.unwrap()
}

async fn versions(table: &dyn Table) -> Vec<Version> {
    table.timeline(&Span::all()).await.unwrap().versions().cloned().collect()
}

async fn put(store: &FaultyStore, name: &str, body: &[u8]) {
    let key = Path::from(format!("t/_delta_log/{name}"));
    store.restarted().put(&key, PutPayload::from(body.to_vec())).await.unwrap();
}

#[tokio::test]
async fn a_store_without_room_leaves_the_table_as_it_was() {
    for subject in [Written::PLAIN, Written::VECTORS] {
        for place in ["part-", "_delta_log", "deletion_vector", ""] {
            let world = World::memory();
            let table = table_of(subject, &world, &[&[1, 2], &[3]]).await;
            world.store.add_rule(Op::Create, place, Fault::Full, Times::Always);
            world.store.add_rule(Op::Put, place, Fault::Full, Times::Always);
            let append = subject.append(table.as_ref(), &world.env, &rows([4])).await.err();
            let delete = delete(subject, table.as_ref(), &world.env, &[1]).await.err();
            for err in [append, delete].into_iter().flatten() {
                let kind = err.kind();
                assert!(matches!(kind, ErrorKind::Unavailable | ErrorKind::Unknown), "{place}: {kind:?}: {err}");
            }
            if let Ok(plan) = table.plan(&Maintenance::Checkpoint).await {
                let stopped = run(table.as_ref(), &world.env, plan).await.stopped;
                assert!(stopped.is_some() || !"_delta_log".contains(place), "a checkpoint needs room");
            }
            world.store.heal();
            let again = world.reopened(&subject).await.unwrap();
            let found = newest(again.as_ref()).await;
            if place.is_empty() || place == "_delta_log" {
                assert_eq!(found, [1, 2, 3], "{place}");
            }
            subject.append(again.as_ref(), &world.env, &rows([9])).await.unwrap();
            assert_eq!(newest(again.as_ref()).await.len(), found.len() + 1);
        }
    }
}

#[tokio::test]
async fn who_may_not_write_is_told_so_and_changes_nothing() {
    let world = World::memory();
    let table = table_of(Written::VECTORS, &world, &[&[1, 2], &[3]]).await;
    world.store.add_rule(Op::Create, "_delta_log", Fault::Forbid, Times::Always);
    let err = Written::VECTORS.append(table.as_ref(), &world.env, &rows([4])).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unauthorized, "{err}");
    world.store.heal();
    assert_eq!(newest(table.as_ref()).await, [1, 2, 3]);
    assert_eq!(versions(table.as_ref()).await.len(), 3);
}

#[tokio::test]
async fn rights_lost_between_two_tries_leave_the_outcome_unknown() {
    let world = World::memory();
    let table = table_of(Written::VECTORS, &world, &[&[1]]).await;
    let write = table.begin(intent(Action::Append)).await.unwrap();
    let added = vec![written::data_file(table.storage(), &world.env, &write, &rows([2])).await.unwrap()];
    let changes = [Change::Rows(RowDelta { added, ..RowDelta::default() })];
    world.store.add_rule(Op::Create, "_delta_log", Fault::LoseAnswer, Times::First(1));
    world.store.add_rule(Op::List, "", Fault::Forbid, Times::Always);
    world.store.add_rule(Op::Get, "_delta_log", Fault::Forbid, Times::Always);
    let err = commit(table.as_ref(), &world.env, &write, &changes).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unknown, "it landed, and nobody may look: {err}");
    world.store.heal();
    let done = commit(table.as_ref(), &world.env, &write, &changes).await.unwrap();
    assert_eq!((done.version.id.as_str(), newest(table.as_ref()).await), ("2", vec![1, 2]), "tried again, it is there");
}

#[tokio::test]
async fn a_vacuum_that_may_not_delete_says_what_is_left() {
    let world = World::memory();
    let subject = Written::PLAIN;
    let table = table_of(subject, &world, &[&[1, 2], &[3], &[4]]).await;
    compact(subject, table.as_ref(), &world.env).await;
    let plan = table.plan(&vacuum(LATER)).await.unwrap();
    world.store.add_rule(Op::Delete, "", Fault::Forbid, Times::Nth(2));
    let applied = run(table.as_ref(), &world.env, plan).await;
    assert_eq!((applied.removed, applied.failed.len()), (2, 1), "{applied:?}");
    assert_eq!(applied.stopped.as_ref().map(lakebed_core::Error::kind), Some(ErrorKind::Unauthorized), "{applied:?}");
    world.store.heal();
    assert_eq!(newest(table.as_ref()).await, [1, 2, 3, 4]);
    let applied = run(table.as_ref(), &world.env, table.plan(&vacuum(LATER)).await.unwrap()).await;
    assert!(applied.stopped.is_none() && applied.removed == 1, "{applied:?}");
}

fn at_clock(clock: &Arc<ManualClock>, seed: u64) -> Env {
    Env { clock: Arc::clone(clock) as Arc<dyn Clock>, ids: Arc::new(SeededIds::new(Seed(seed))) }
}

#[tokio::test]
async fn times_of_commits_rise_whatever_the_clocks_say() {
    let store = FaultyStore::new(Seed(1));
    let clock = Arc::new(ManualClock::default());
    let env = at_clock(&clock, 2);
    let table = Written::MODERN.create(location(store.storage("t"), &env)).await.unwrap();
    // An hour back, still, two writers five minutes apart, an hour on.
    for (at, offset) in [0, -3_600_000, -3_600_000, 0, 300_000, 0, 3_600_000, 3_600_000].into_iter().enumerate() {
        clock.set(Millis(START.0 + offset));
        let id = i64::try_from(at).unwrap();
        Written::MODERN.append(table.as_ref(), &env, &rows([id])).await.unwrap();
    }
    let versions = versions(table.as_ref()).await;
    assert_eq!(versions.len(), 9);
    for pair in versions.windows(2) {
        assert!(pair[0].committed_at < pair[1].committed_at, "{pair:?}");
        let resolved = table.resolve(&AsOf::Time(pair[0].committed_at)).await.unwrap();
        assert_eq!(resolved.version.id, pair[0].id);
    }
}

/// delta-rs 4290: a file that is old and was removed just now stays, for a full vacuum and for a lite one.
#[tokio::test]
async fn a_tombstone_is_as_young_as_its_commit_and_not_as_its_file() {
    let store = FaultyStore::new(Seed(1));
    let clock = Arc::new(ManualClock::default());
    let store = store.timed(Arc::clone(&clock) as Arc<dyn Clock>, Duration::ZERO);
    let env = at_clock(&clock, 2);
    let subject = Written::PLAIN;
    let table = subject.create(location(store.storage("t"), &env)).await.unwrap();
    for ids in [[1, 2], [3, 4]] {
        subject.append(table.as_ref(), &env, &rows(ids)).await.unwrap();
    }
    // The files are a month old when they are removed.
    clock.advance(Duration::from_secs(30 * 86_400));
    compact(subject, table.as_ref(), &env).await;
    clock.advance(Duration::from_secs(86_400));
    for lite in [false, true] {
        let week = Maintenance::Vacuum { retain: Retain::default(), older_than: None, lite, forced: false };
        let plan = table.plan(&week).await.unwrap();
        assert!(plan.steps.is_empty(), "removed yesterday: {:?}", plan.steps);
    }
    assert_eq!(at(table.as_ref(), 2).await.unwrap(), [1, 2, 3, 4]);
    clock.advance(Duration::from_secs(7 * 86_400));
    let week = Maintenance::Vacuum { retain: Retain::default(), older_than: None, lite: false, forced: false };
    let applied = run(table.as_ref(), &env, table.plan(&week).await.unwrap()).await;
    assert_eq!((applied.removed, applied.stopped.is_none()), (2, true), "{applied:?}");
    assert_eq!(newest(table.as_ref()).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_vacuum_stops_where_a_restore_came_first() {
    let world = World::memory();
    let subject = Written::PLAIN;
    let table = table_of(subject, &world, &[&[1, 2], &[3]]).await;
    delete(subject, table.as_ref(), &world.env, &[1, 2]).await.unwrap();
    let plan = table.plan(&vacuum(LATER)).await.unwrap();
    assert!(!plan.steps.is_empty());
    restore(table.as_ref(), &world.env, 2).await.unwrap();
    let applied = run(table.as_ref(), &world.env, plan).await;
    assert_eq!(applied.stopped.map(|it| it.kind()), Some(ErrorKind::Refused));
    assert_eq!((applied.removed, newest(table.as_ref()).await), (0, vec![1, 2, 3]));
}

#[tokio::test]
async fn a_restore_of_what_a_vacuum_took_is_refused() {
    let world = World::memory();
    let subject = Written::PLAIN;
    let table = table_of(subject, &world, &[&[1, 2], &[3]]).await;
    delete(subject, table.as_ref(), &world.env, &[1, 2]).await.unwrap();
    run(table.as_ref(), &world.env, table.plan(&vacuum(LATER)).await.unwrap()).await;
    let err = restore(table.as_ref(), &world.env, 2).await.unwrap_err();
    assert!(matches!(err.kind(), ErrorKind::Refused | ErrorKind::NotFound), "{:?}: {err}", err.kind());
    assert_eq!(newest(table.as_ref()).await, [3]);
}

#[tokio::test]
async fn of_two_vacuums_and_two_checkpoints_both_end() {
    let world = World::memory();
    let subject = Written::VECTORS;
    let table = table_of(subject, &world, &[&[1, 2], &[3], &[4]]).await;
    compact(subject, table.as_ref(), &world.env).await;
    for action in [Maintenance::Checkpoint, vacuum(LATER), Maintenance::Expire(Retain::default())] {
        let (one, two) = (table.plan(&action).await.unwrap(), table.plan(&action).await.unwrap());
        for plan in [one, two] {
            let applied = run(table.as_ref(), &world.env, plan).await;
            assert!(applied.stopped.is_none(), "{action:?}: {applied:?}");
        }
        let again = world.reopened(&subject).await.unwrap();
        assert_eq!(newest(again.as_ref()).await, [1, 2, 3, 4], "{action:?}");
    }
}

#[tokio::test]
async fn a_compaction_and_a_restore_from_one_base_do_not_both_land() {
    let world = World::memory();
    let subject = Written::PLAIN;
    let table = table_of(subject, &world, &[&[1, 2], &[3], &[4]]).await;
    let write = table.begin(intent(Action::Compaction)).await.unwrap();
    let changes = subject.compaction(table.as_ref(), &world.env, &write).await.unwrap();
    restore(table.as_ref(), &world.env, 2).await.unwrap();
    let err = commit(table.as_ref(), &world.env, &write, &changes).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict, "{err}");
    assert_eq!(newest(table.as_ref()).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_reader_of_an_old_version_sees_no_upkeep_within_the_window() {
    let world = World::memory();
    let subject = Written::MODERN;
    let table = table_of(subject, &world, &[&[1, 2], &[3], &[4]]).await;
    let pinned = table.snapshot(&AsOf::Version(VersionId::from(2))).await.unwrap();
    delete(subject, table.as_ref(), &world.env, &[1]).await.unwrap();
    compact(subject, table.as_ref(), &world.env).await;
    for action in [Maintenance::Checkpoint, Maintenance::Expire(Retain { at_least: 1, ..Retain::default() })] {
        run(table.as_ref(), &world.env, table.plan(&action).await.unwrap()).await;
    }
    let week = Maintenance::Vacuum { retain: Retain::default(), older_than: None, lite: false, forced: false };
    run(table.as_ref(), &world.env, table.plan(&week).await.unwrap()).await;
    let format = subject.format();
    let rows = lakebed_testkit::reference::read_snapshot(format.as_ref(), table.storage(), pinned.as_ref()).await;
    assert_eq!(rows.unwrap().len(), 3);
}

#[tokio::test]
async fn what_others_say_about_a_file_stays_when_it_gets_a_vector() {
    let world = World::memory();
    let subject = Written::VECTORS;
    let table = table_of(subject, &world, &[&[1, 2]]).await;
    Spark.append(&world.store.storage("t"), &world.env, "theirs", &rows([3, 4])).await.unwrap();
    let version = delete(subject, table.as_ref(), &world.env, &[4]).await.unwrap();
    assert_eq!(newest(table.as_ref()).await, [1, 2, 3]);
    let body = table.storage().read(&FilePath::below(commit_path(version))).await.unwrap().unwrap();
    let lines = serde_json::Deserializer::from_slice(&body).into_iter::<serde_json::Value>();
    let add = lines.map(Result::unwrap).find_map(|it| it.get("add").cloned()).expect("the file under its vector");
    assert!(add["stats"].as_str().is_some_and(|it| it.contains("\"numRecords\":2")), "{add}");
    assert!(add["tags"].is_object(), "{add}");
    // And it survives a checkpoint.
    run(table.as_ref(), &world.env, table.plan(&Maintenance::Checkpoint).await.unwrap()).await;
    assert_eq!(newest(world.reopened(&subject).await.unwrap().as_ref()).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_commit_that_another_engine_overwrote_is_reported() {
    let world = World::memory();
    let subject = Written::VECTORS;
    let table = table_of(subject, &world, &[&[1, 2], &[3]]).await;
    let checkpoint = table.plan(&Maintenance::Checkpoint).await.unwrap();
    run(table.as_ref(), &world.env, checkpoint).await;
    let healthy = table.examine().await.unwrap();
    let bad = |it: &&lakebed_core::table::Finding| it.level != lakebed_core::table::Level::Info;
    assert_eq!(healthy.iter().filter(bad).count(), 0, "{healthy:?}");
    // It has no put-if-absent, and took version 2 for free.
    let add = crate::foreigner::added(&world.store.storage("t"), &world.env, &rows([30])).await.unwrap();
    let info = serde_json::json!({"commitInfo": {"timestamp": START.0, "operation": "WRITE", "txnId": "theirs"}});
    put(&world.store, "00000000000000000002.json", crate::world::text(&[info, add]).as_bytes()).await;
    let found = table.examine().await.unwrap();
    let said = found.iter().filter(bad).find(|it| it.object.contains('2') || it.evidence.contains("version 2"));
    assert!(said.is_some(), "doctor says what happened to version 2: {found:?}");
}

#[tokio::test]
async fn writing_needs_no_hint_and_believes_no_bad_one() {
    let hints: [&[u8]; 6] = [
        b"",
        b"garbage",
        b"{\"version\":99,\"size\":1}",
        b"{\"version\":0,\"size\":1}",
        b"{\"version\":-1}",
        b"\0\0\0",
    ];
    for hint in hints {
        let world = World::memory();
        let table = table_of(Written::VECTORS, &world, &[&[1, 2], &[3]]).await;
        run(table.as_ref(), &world.env, table.plan(&Maintenance::Checkpoint).await.unwrap()).await;
        put(&world.store, "_last_checkpoint", hint).await;
        let again = world.reopened(&Written::VECTORS).await.unwrap();
        Written::VECTORS.append(again.as_ref(), &world.env, &rows([4])).await.unwrap();
        assert_eq!(newest(again.as_ref()).await, [1, 2, 3, 4], "{hint:?}");
        assert_eq!(at(again.as_ref(), 3).await.unwrap(), [1, 2, 3, 4], "{hint:?}");
        run(again.as_ref(), &world.env, again.plan(&Maintenance::Checkpoint).await.unwrap()).await;
        let last = world.reopened(&Written::VECTORS).await.unwrap();
        assert_eq!(newest(last.as_ref()).await, [1, 2, 3, 4], "{hint:?}");
    }
}

#[tokio::test]
async fn writing_onto_a_damaged_checkpoint_is_writing_onto_the_log() {
    for spoil in ["garbage", ""] {
        let world = World::memory();
        let table = table_of(Written::VECTORS, &world, &[&[1, 2], &[3]]).await;
        run(table.as_ref(), &world.env, table.plan(&Maintenance::Checkpoint).await.unwrap()).await;
        put(&world.store, "00000000000000000002.checkpoint.parquet", spoil.as_bytes()).await;
        let again = world.reopened(&Written::VECTORS).await.unwrap();
        delete(Written::VECTORS, again.as_ref(), &world.env, &[1]).await.unwrap();
        assert_eq!(newest(again.as_ref()).await, [2, 3], "{spoil}");
    }
}

#[tokio::test]
async fn every_pair_of_writes_from_one_base_lands_as_the_rules_say() {
    // Rows, then who may land second, under Serializable with everything read but by appends.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Kind {
        Append,
        DeleteOne,
        DeleteOther,
        Compact,
    }
    use Kind::{Append, Compact, DeleteOne, DeleteOther};
    let all = [Append, DeleteOne, DeleteOther, Compact];
    let lands = |first: Kind, second: Kind| second == Append || (first, second) == (Append, Compact);
    for subject in [Written::PLAIN, Written::VECTORS] {
        for first in all {
            for second in all {
                let world = World::memory();
                let table = table_of(subject, &world, &[&[1, 2], &[3, 4]]).await;
                let mut writes = Vec::new();
                for (at, kind) in [first, second].into_iter().enumerate() {
                    let action = match kind {
                        Append => Action::Append,
                        DeleteOne | DeleteOther => Action::Delete,
                        Compact => Action::Compaction,
                    };
                    let write = table.begin(intent(action)).await.unwrap();
                    let changes = match kind {
                        Append => {
                            let id = 10 + i64::try_from(at).unwrap();
                            let file =
                                written::data_file(table.storage(), &world.env, &write, &rows([id])).await.unwrap();
                            vec![Change::Rows(RowDelta { added: vec![file], ..RowDelta::default() })]
                        }
                        DeleteOne => subject.deletion(table.as_ref(), &world.env, &write, &[1]).await.unwrap(),
                        DeleteOther => subject.deletion(table.as_ref(), &world.env, &write, &[3]).await.unwrap(),
                        Compact => subject.compaction(table.as_ref(), &world.env, &write).await.unwrap(),
                    };
                    writes.push((write, changes));
                }
                commit(table.as_ref(), &world.env, &writes[0].0, &writes[0].1).await.unwrap();
                let done = commit(table.as_ref(), &world.env, &writes[1].0, &writes[1].1).await;
                let what = format!("{subject:?}: {first:?}, then {second:?}: {done:?}");
                assert_eq!(done.is_ok(), lands(first, second), "{what}");
                let landed = [Some(first), done.is_ok().then_some(second)];
                let mut expected = vec![1, 2, 3, 4];
                for (at, kind) in landed.into_iter().enumerate() {
                    match kind {
                        Some(Append) => expected.push(10 + i64::try_from(at).unwrap()),
                        Some(DeleteOne) => expected.retain(|it| *it != 1),
                        Some(DeleteOther) => expected.retain(|it| *it != 3),
                        Some(Compact) | None => (),
                    }
                }
                assert_eq!(newest(table.as_ref()).await, expected, "{what}");
                if let Err(err) = done {
                    assert_eq!(err.kind(), ErrorKind::Conflict, "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn sixteen_writers_of_one_table_all_land() {
    let world = World::memory();
    let table = table_of(Written::MODERN, &world, &[]).await;
    let append = async |writer: i64| {
        let table = world.reopened(&Written::MODERN).await.unwrap();
        for n in 0..5 {
            Written::MODERN.append(table.as_ref(), &world.env, &rows([writer * 100 + n])).await.unwrap();
        }
    };
    futures::future::join_all((0..16).map(append)).await;
    assert_eq!(newest(table.as_ref()).await.len(), 80);
    let deltas: Vec<_> = table.changes(&Span::all()).try_collect().await.unwrap();
    assert_eq!(deltas.len(), 81);
}
