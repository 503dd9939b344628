//! Behaviours of writing without rivals.
use lakebed_core::{
    ErrorKind,
    change::{Change, ChangeSpan},
    table::Table,
    timeline::Action,
    version::{AsOf, Ref, RefKind, VersionId},
};

use super::{Subject, World, commit, ids, three_appends};
use crate::{pond::intent, reference};

/// Deletes rows by id, as one version.
pub(super) async fn delete(subject: &dyn Subject, table: &dyn Table, world: &World, gone: &[i64]) {
    let write = table.begin(intent(Action::Delete)).await.expect("a write");
    let changes = subject.deletion(table, &world.env, &write, gone).await.expect("changes");
    commit(table, &world.env, &write, &changes).await.expect("a commit without rivals");
}

pub(super) async fn head(table: &dyn Table) -> VersionId {
    table.resolve(&AsOf::Latest).await.expect("a version").version.id
}

pub(super) fn tag_of(name: &str, version: &VersionId) -> Change {
    Change::PutRef(Ref {
        name: name.into(),
        kind: RefKind::Tag,
        version: version.clone(),
        created_at: None,
        expires_at: None,
    })
}

/// Deletes reach rows of old and new files, twice on one file, and no older version.
pub async fn deleted_rows_are_gone_and_stay_in_old_versions(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let full = head(table.as_ref()).await;
    delete(subject, table.as_ref(), world, &[2, 5]).await;
    let less = head(table.as_ref()).await;
    delete(subject, table.as_ref(), world, &[1, 4]).await;
    let of = async |as_of| ids(subject, table.as_ref(), &as_of).await.expect("rows");
    assert_eq!(of(AsOf::Latest).await, [3, 6]);
    assert_eq!(of(AsOf::Version(less)).await, [1, 3, 4, 6]);
    assert_eq!(of(AsOf::Version(full)).await, [1, 2, 3, 4, 5, 6]);
}

/// A tag reads as its version until it is dropped.
pub async fn tags_name_versions(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let tagged = head(table.as_ref()).await;
    let change = async |change| {
        let write = table.begin(intent(Action::Ref)).await.expect("a write");
        commit(table.as_ref(), &world.env, &write, &[change]).await
    };
    change(tag_of("eod", &tagged)).await.expect("a tag");
    delete(subject, table.as_ref(), world, &[1]).await;
    let by_tag = AsOf::Ref("eod".into());
    assert_eq!(ids(subject, table.as_ref(), &by_tag).await.expect("rows"), [1, 2, 3, 4, 5, 6]);
    let refs = table.refs().await.expect("refs");
    assert_eq!((refs.len(), refs[0].name.as_str(), &refs[0].version), (1, "eod", &tagged));
    change(Change::DropRef("eod".into())).await.expect("no tag");
    assert_eq!(table.resolve(&by_tag).await.expect_err("it was dropped").kind(), ErrorKind::NotFound);
    change(tag_of("never", &VersionId::new("4711"))).await.expect_err("a tag on nothing");
    assert!(table.refs().await.expect("refs").is_empty());
}

/// Restoring makes a new version of old rows; what lies between stays readable.
pub async fn a_restore_is_a_new_version(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let full = head(table.as_ref()).await;
    delete(subject, table.as_ref(), world, &[1, 2, 3]).await;
    let less = head(table.as_ref()).await;
    let write = table.begin(intent(Action::Restore)).await.expect("a write");
    let done = commit(table.as_ref(), &world.env, &write, &[Change::Restore(AsOf::Version(full.clone()))]).await;
    let done = done.expect("a restore");
    assert!(done.version.id != full && done.version.id != less);
    let of = async |as_of| ids(subject, table.as_ref(), &as_of).await.expect("rows");
    assert_eq!(of(AsOf::Latest).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(of(AsOf::Version(less)).await, [4, 5, 6]);
}

/// Inserts minus deletes of the whole feed are the newest rows.
pub async fn a_change_feed_adds_up(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    delete(subject, table.as_ref(), world, &[2, 4]).await;
    delete(subject, table.as_ref(), world, &[1]).await;
    let first = table.timeline(&lakebed_core::version::Span::all()).await.expect("a timeline");
    let first = first.versions().next().expect("a version").id.clone();
    let span = ChangeSpan { first: AsOf::Version(first), last: AsOf::Latest };
    let feed = table.change_feed(&span).await.expect("a feed");
    let feed = reference::read_changes(subject.format().as_ref(), table.storage(), feed).await.expect("rows");
    let feed = feed.project(&["id", "_change_type"]).expect("columns");
    let mut found: Vec<i64> = Vec::new();
    for row in &feed.rows {
        let id: i64 = row[0].text().parse().expect("an id");
        match row[1].text().as_str() {
            "insert" => found.push(id),
            "delete" => {
                let at = found.iter().position(|it| *it == id).expect("a row is deleted after it was inserted");
                found.remove(at);
            }
            other => panic!("no such change here: {other}"),
        }
    }
    found.sort_unstable();
    assert_eq!(found, ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows"));
}
