//! Behaviours of upkeep.
use std::time::Duration;

use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind,
    commit::StoragePublisher,
    maintain::{self, Maintenance, MaintenancePlan, Retain},
    path::FilePath,
    table::Table,
    timeline::Action,
    version::{AsOf, Millis, Span},
};

use super::{Subject, World, commit, ids, rows, three_appends, writing};
use crate::pond::intent;

pub(super) const FOREVER: Millis = Millis(i64::MAX / 2);

async fn carry_out(table: &dyn Table, world: &World, action: Maintenance) {
    let plan = table.plan(&action).await.expect("a plan");
    let applied = maintain::run(table, &StoragePublisher, &world.env, plan).await.expect("upkeep without faults");
    assert!(applied.stopped.is_none(), "{action:?}: {:?}", applied.stopped);
}

/// A text without what each plan makes anew: the ids of objects whose names are theirs alone.
fn without_ids(text: &str) -> String {
    let is_id = |it: &str| it.len() == 36 && it.matches('-').count() == 4;
    let parts = text.split_inclusive(|it: char| !(it.is_ascii_hexdigit() || it == '-'));
    let shown = parts.map(|it| match it.char_indices().next_back() {
        Some((end, last)) if is_id(&it[..end]) => format!("<id>{last}"),
        _ => it.to_owned(),
    });
    shown.collect()
}

fn keep_newest(at_least: usize) -> Maintenance {
    Maintenance::Expire(Retain { at_least, ..Retain::default() })
}

/// Planning writes nothing, and neither does planning again.
pub async fn a_plan_changes_nothing(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let before = world.store.requests();
    let all = [
        keep_newest(1),
        Maintenance::RemoveOrphans { older_than: FOREVER },
        Maintenance::Vacuum { retain: Retain::default(), older_than: Some(FOREVER), lite: false, forced: true },
        Maintenance::Checkpoint,
    ];
    for action in all {
        let one = table.plan(&action).await.expect("a plan");
        let two = table.plan(&action).await.expect("a plan");
        let steps = |it: &MaintenancePlan| without_ids(&format!("{:?}", it.steps));
        assert_eq!(steps(&one), steps(&two), "{action:?}");
    }
    let wrote: Vec<_> = world.store.log().into_iter().skip(before).filter(|it| it.op.writes()).collect();
    assert!(wrote.is_empty(), "{wrote:?}");
}

/// Expired versions are `NotFound`; those that stay read as before.
pub async fn expired_versions_are_named_and_others_stay(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let timeline = table.timeline(&Span::all()).await.expect("a timeline");
    let versions: Vec<_> = timeline.versions().map(|it| it.id.clone()).collect();
    carry_out(table.as_ref(), world, keep_newest(2)).await;
    let of = async |at: usize| ids(subject, table.as_ref(), &AsOf::Version(versions[at].clone())).await;
    assert_eq!(of(3).await.expect("rows"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(of(2).await.expect("rows"), [1, 2, 3]);
    // A format may keep more than it must: to read a version it may need those before it.
    let left = table.timeline(&Span::all()).await.expect("a timeline");
    for (at, rows) in [(0, &[][..]), (1, &[1, 2])] {
        match left.versions().any(|it| it.id == versions[at]) {
            true => assert_eq!(of(at).await.expect("it is listed"), rows),
            false => assert_eq!(of(at).await.expect_err("it was forgotten").kind(), ErrorKind::NotFound),
        }
    }
    subject.append(table.as_ref(), &world.env, &rows([7])).await.expect("an append");
    carry_out(table.as_ref(), world, keep_newest(1)).await;
    assert_eq!(ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows"), [1, 2, 3, 4, 5, 6, 7]);
}

/// A file of a write that never committed goes; everything reachable stays; young files stay, too.
pub async fn orphans_go_and_files_in_use_stay(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let write = table.begin(intent(Action::Append)).await.expect("a write");
    let orphan = subject.data_file(table.as_ref(), &world.env, &write, &rows([9])).await.expect("a file");
    table.abandon(&write).await.expect("abandoned");
    let there = async |path: &FilePath| table.storage().head(path).await.expect("a head").is_some();
    assert!(there(&orphan.path).await, "abandoning deletes no data file");
    carry_out(table.as_ref(), world, Maintenance::RemoveOrphans { older_than: Millis(0) }).await;
    assert!(there(&orphan.path).await, "it is young");
    carry_out(table.as_ref(), world, Maintenance::RemoveOrphans { older_than: FOREVER }).await;
    assert!(!there(&orphan.path).await, "no version names it");
    let retain = Retain { age: Some(Duration::MAX), ..Retain::default() };
    let reachable: Vec<FilePath> = table.reachable(&retain).try_collect().await.expect("paths");
    for path in &reachable {
        assert!(there(path).await, "{path} is reachable and gone");
    }
    let timeline = table.timeline(&Span::all()).await.expect("a timeline");
    for version in timeline.versions() {
        ids(subject, table.as_ref(), &AsOf::Version(version.id.clone())).await.expect("every version reads");
    }
}

/// A tagged version outlives every expiry.
pub async fn tags_keep_versions(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let timeline = table.timeline(&Span::all()).await.expect("a timeline");
    let tagged = timeline.versions().nth(1).expect("a second version").id.clone();
    let write = table.begin(intent(Action::Ref)).await.expect("a write");
    commit(table.as_ref(), &world.env, &write, &[writing::tag_of("keep", &tagged)]).await.expect("a tag");
    let write = table.begin(intent(Action::Compaction)).await.expect("a write");
    let changes = subject.compaction(table.as_ref(), &world.env, &write).await.expect("changes");
    commit(table.as_ref(), &world.env, &write, &changes).await.expect("a compaction");
    carry_out(table.as_ref(), world, keep_newest(1)).await;
    carry_out(table.as_ref(), world, Maintenance::RemoveOrphans { older_than: FOREVER }).await;
    assert_eq!(ids(subject, table.as_ref(), &AsOf::Ref("keep".into())).await.expect("rows"), [1, 2]);
    assert_eq!(ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows"), [1, 2, 3, 4, 5, 6]);
}

/// Files that no kept version needs go, in whatever version they once were; head and tags read as before.
pub async fn a_vacuum_keeps_what_versions_need(subject: &dyn Subject, world: &World) {
    for lite in [true, false] {
        let world_again = World::memory();
        let world = if lite { world } else { &world_again };
        let table = three_appends(subject, world).await;
        let timeline = table.timeline(&Span::all()).await.expect("a timeline");
        let tagged = timeline.versions().nth(2).expect("a third version").id.clone();
        let write = table.begin(intent(Action::Ref)).await.expect("a write");
        commit(table.as_ref(), &world.env, &write, &[writing::tag_of("keep", &tagged)]).await.expect("a tag");
        writing::delete(subject, table.as_ref(), world, &[1, 4]).await;
        let write = table.begin(intent(Action::Compaction)).await.expect("a write");
        let changes = subject.compaction(table.as_ref(), &world.env, &write).await.expect("changes");
        commit(table.as_ref(), &world.env, &write, &changes).await.expect("a compaction");
        let young = Maintenance::Vacuum { retain: Retain::default(), older_than: Some(Millis(0)), lite, forced: true };
        carry_out(table.as_ref(), world, young).await;
        for version in table.timeline(&Span::all()).await.expect("a timeline").versions() {
            ids(subject, table.as_ref(), &AsOf::Version(version.id.clone())).await.expect("nothing was old enough");
        }
        let vacuum = Maintenance::Vacuum { retain: Retain::default(), older_than: Some(FOREVER), lite, forced: true };
        carry_out(table.as_ref(), world, vacuum).await;
        assert_eq!(ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows"), [2, 3, 5, 6]);
        assert_eq!(ids(subject, table.as_ref(), &AsOf::Ref("keep".into())).await.expect("rows"), [1, 2, 3]);
        subject.append(table.as_ref(), &world.env, &rows([7])).await.expect("an append");
        assert_eq!(ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows"), [2, 3, 5, 6, 7]);
    }
}
