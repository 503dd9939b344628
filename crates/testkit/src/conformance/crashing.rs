//! Behaviours of writers that die, and of stores that fail: whatever befalls whichever call, a write is wholly there or not
//! at all, what was acknowledged is there, what was refused is not, and life goes on.
//!
//! Alone, and where two others committed since the write began: one of ours and, where the subject has one, another engine.
use lakebed_core::{
    ErrorKind, Result,
    change::{Change, RowDelta},
    commit::Write,
    conflict::Isolation,
    table::Table,
    timeline::Action,
    version::{AsOf, Span},
};

use super::{
    Subject, World, commit, commit_as, ids,
    points::{Point, at_every_call},
    rows, three_appends, writing,
};
use crate::pond::intent;

/// What there is before an action: three appends, and a tag.
const BEFORE: &str = "1 2 3 4 5 6 #first";

/// The ids of the newest version, and the tags.
async fn shown(subject: &dyn Subject, table: &dyn Table) -> Result<String> {
    let found = ids(subject, table, &AsOf::Latest).await?;
    let mut shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    shown.extend(table.refs().await?.iter().map(|it| format!("#{}", it.name)));
    Ok(shown.join(" "))
}

async fn made(subject: &dyn Subject) -> World {
    let world = World::memory();
    let table = three_appends(subject, &world).await;
    let timeline = table.timeline(&Span::all()).await.expect("a timeline");
    let first = timeline.versions().nth(1).expect("the first append").id.clone();
    let write = table.begin(intent(Action::Ref)).await.expect("a write");
    commit(table.as_ref(), &world.env, &write, &[writing::tag_of("first", &first)]).await.expect("a tag");
    world
}

/// The action turns `before` into `after`, or leaves it.
async fn all_or_nothing(
    subject: &dyn Subject,
    before: &str,
    after: &str,
    action: impl AsyncFn(&dyn Table, &World) -> Result<()>,
) {
    let made = made(subject).await;
    let action = async |table: &dyn Table, world: &World, point: &Point| {
        point.arm(world);
        action(table, world).await
    };
    at_every_call(subject, &made, action, async |point: &Point, done: Result<()>, world: &World| {
        let what = &point.what;
        let again = world.reopened(subject).await.unwrap_or_else(|err| panic!("{what}: {err}"));
        let found = shown(subject, again.as_ref()).await.unwrap_or_else(|err| panic!("{what}: {err}"));
        match done {
            Ok(()) => assert_eq!(found, after, "acknowledged, {what}"),
            Err(err) if point.is_untouched() => panic!("{err}"),
            Err(err) if err.kind() == ErrorKind::Unknown => {
                assert!(found == before || found == after, "{what}: {found}");
            }
            Err(err) => assert_eq!(found, before, "{what}: `{err}` says that nothing happened"),
        }
        life_goes_on(subject, again.as_ref(), world, &found, what).await;
    })
    .await;
}

/// Old versions read as before, and one more append is one more row.
async fn life_goes_on(subject: &dyn Subject, table: &dyn Table, world: &World, found: &str, what: &str) {
    subject.append(table, &world.env, &rows([99])).await.unwrap_or_else(|err| panic!("{what}: {err}"));
    let more = shown(subject, table).await.expect("rows");
    let (tags, mut expected): (Vec<&str>, Vec<&str>) = found.split(' ').partition(|it| it.starts_with('#'));
    expected.push("99");
    expected.extend(tags);
    assert_eq!(more, expected.join(" "), "{what}");
    let timeline = table.timeline(&Span::all()).await.expect("a timeline");
    let full = timeline.versions().nth(3).expect("the third append").id.clone();
    assert_eq!(ids(subject, table, &AsOf::Version(full)).await.expect("rows"), [1, 2, 3, 4, 5, 6], "{what}");
}

/// A write of these changes.
async fn alone(
    table: &dyn Table,
    world: &World,
    action: Action,
    changes: impl AsyncFn(&Write) -> Result<Vec<Change>>,
) -> Result<()> {
    let write = table.begin(intent(action)).await?;
    let changes = changes(&write).await?;
    commit(table, &world.env, &write, &changes).await.map(|_| ())
}

/// The same, when two others commit after it began. It stands on what it touches, and on nothing else that it read.
async fn beside(
    subject: &dyn Subject,
    table: &dyn Table,
    world: &World,
    action: Action,
    changes: impl AsyncFn(&Write) -> Result<Vec<Change>>,
) -> Result<()> {
    let begun = table.begin(intent(action)).await;
    two_others(subject, world).await;
    let write = begun?;
    let changes = changes(&write).await?;
    commit_as(table, &world.env, &write, &changes, Isolation::Snapshot, None).await.map(|_| ())
}

/// Adds rows 50 and 60. Both are healthy.
pub(super) async fn two_others(subject: &dyn Subject, world: &World) {
    let rival = world.reopened(subject).await.expect("a table");
    subject.append(rival.as_ref(), &world.env, &rows([50])).await.expect("a rival's append");
    match subject.foreigner() {
        Some(foreigner) => {
            let done = foreigner.append(rival.storage(), &world.env, "another engine's", &rows([60])).await;
            done.expect("another engine's append");
        }
        None => subject.append(rival.as_ref(), &world.env, &rows([60])).await.expect("a second rival's append"),
    }
}

async fn added(subject: &dyn Subject, table: &dyn Table, world: &World, write: &Write, ids: &[i64]) -> Result<Change> {
    let added = vec![subject.data_file(table, &world.env, write, &rows(ids.iter().copied())).await?];
    Ok(Change::Rows(RowDelta { added, ..RowDelta::default() }))
}

async fn merged(subject: &dyn Subject, table: &dyn Table, world: &World, write: &Write) -> Result<Vec<Change>> {
    let mut changes = subject.deletion(table, &world.env, write, &[1, 5]).await?;
    changes.push(added(subject, table, world, write, &[11, 15]).await?);
    Ok(changes)
}

async fn tag(table: &dyn Table) -> Result<Vec<Change>> {
    Ok(vec![writing::tag_of("second", &table.resolve(&AsOf::Latest).await?.version.id)])
}

async fn to_first() -> Result<Vec<Change>> {
    Ok(vec![Change::Restore(AsOf::Ref("first".into()))])
}

/// An append is wholly there or not at all.
pub async fn an_append_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, BEFORE, "1 2 3 4 5 6 7 8 #first", async |table, world| {
        subject.append(table, &world.env, &rows([7, 8])).await
    })
    .await;
}

/// So it is on top of what others committed meanwhile.
pub async fn an_append_beside_others_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, "1 2 3 4 5 6 50 60 #first", "1 2 3 4 5 6 7 50 60 #first", async |table, world| {
        let changes = async |write: &Write| Ok(vec![added(subject, table, world, write, &[7]).await?]);
        beside(subject, table, world, Action::Append, changes).await
    })
    .await;
}

/// A delete is wholly there or not at all.
pub async fn a_delete_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, BEFORE, "1 3 6 #first", async |table, world| {
        let changes = async |write: &Write| subject.deletion(table, &world.env, write, &[2, 4, 5]).await;
        alone(table, world, Action::Delete, changes).await
    })
    .await;
}

/// So it is on top of what others committed meanwhile.
pub async fn a_delete_beside_others_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, "1 2 3 4 5 6 50 60 #first", "1 3 6 50 60 #first", async |table, world| {
        let changes = async |write: &Write| subject.deletion(table, &world.env, write, &[2, 4, 5]).await;
        beside(subject, table, world, Action::Delete, changes).await
    })
    .await;
}

/// Rows that go and rows that come in one commit do so together.
pub async fn a_merge_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, BEFORE, "2 3 4 6 11 15 #first", async |table, world| {
        let changes = async |write: &Write| merged(subject, table, world, write).await;
        alone(table, world, Action::RowDelta, changes).await
    })
    .await;
}

/// So they do on top of what others committed meanwhile.
pub async fn a_merge_beside_others_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, "1 2 3 4 5 6 50 60 #first", "2 3 4 6 11 15 50 60 #first", async |table, world| {
        let changes = async |write: &Write| merged(subject, table, world, write).await;
        beside(subject, table, world, Action::RowDelta, changes).await
    })
    .await;
}

/// A compaction changes no row, whether it lands or not.
pub async fn a_compaction_changes_no_row(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, BEFORE, BEFORE, async |table, world| {
        let changes = async |write: &Write| subject.compaction(table, &world.env, write).await;
        alone(table, world, Action::Compaction, changes).await
    })
    .await;
}

/// Nor does it lose a row that others added meanwhile.
pub async fn a_compaction_beside_others_changes_no_row(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, "1 2 3 4 5 6 50 60 #first", "1 2 3 4 5 6 50 60 #first", async |table, world| {
        let changes = async |write: &Write| subject.compaction(table, &world.env, write).await;
        beside(subject, table, world, Action::Compaction, changes).await
    })
    .await;
}

/// A restore is wholly there or not at all.
pub async fn a_restore_is_all_or_nothing(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, BEFORE, "1 2 #first", async |table, world| {
        alone(table, world, Action::Restore, async |_: &Write| to_first().await).await
    })
    .await;
}

/// A restore would undo what it never saw: when others committed meanwhile, it is refused, whatever else goes wrong.
pub async fn a_restore_beside_others_is_refused(subject: &dyn Subject, _: &World) {
    let before = "1 2 3 4 5 6 50 60 #first";
    all_or_nothing(subject, before, before, async |table, world| {
        let begun = table.begin(intent(Action::Restore)).await;
        two_others(subject, world).await;
        match commit(table, &world.env, &begun?, &to_first().await?).await {
            Ok(committed) => panic!("version {} restores what it never saw", committed.version.id),
            Err(err) if err.kind() == ErrorKind::Conflict => Ok(()),
            Err(err) => Err(err),
        }
    })
    .await;
}

/// A tag is there or not, and changes no row.
pub async fn a_tag_is_there_or_not(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, BEFORE, "1 2 3 4 5 6 #first #second", async |table, world| {
        alone(table, world, Action::Ref, async |_: &Write| tag(table).await).await
    })
    .await;
}

/// So it is on top of what others committed meanwhile.
pub async fn a_tag_beside_others_is_there_or_not(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, "1 2 3 4 5 6 50 60 #first", "1 2 3 4 5 6 50 60 #first #second", async |table, world| {
        beside(subject, table, world, Action::Ref, async |_: &Write| tag(table).await).await
    })
    .await;
}

/// A tag that is dropped is gone or still there.
pub async fn a_tag_goes_or_stays(subject: &dyn Subject, _: &World) {
    all_or_nothing(subject, BEFORE, "1 2 3 4 5 6", async |table, world| {
        alone(table, world, Action::Ref, async |_: &Write| Ok(vec![Change::DropRef("first".into())])).await
    })
    .await;
}
