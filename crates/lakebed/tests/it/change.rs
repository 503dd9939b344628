//! Tags, restores and plans through the library, on the toy format.
use std::{fs, sync::Arc};

use lakebed::{
    Lakebed, Opened,
    change::{Fate, NewTag, Upgrade},
    config::{Config, Origin},
    upkeep::Act,
};
use lakebed_core::{
    ErrorKind,
    maintain::Maintenance,
    version::{AsOf, Millis, VersionId},
};
use lakebed_engine::session::Locator as _;
use lakebed_testkit::{
    conformance::rows,
    pond::{Played, Pond, PondSpec},
};

struct World {
    folder: tempfile::TempDir,
    lake: Lakebed,
    played: Played,
    opened: Opened,
}

/// A table with the versions 0 (empty), 1 (ids 1, 2), 2 (id 3 more) and 3 (id 1 deleted).
async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let lake = Lakebed::builder().base(folder.path()).format(Arc::new(Pond)).build().unwrap();
    let storage = lake.stores().locate("./t").await.unwrap();
    let played = Played::create(storage, lake.env().clone(), &PondSpec::default()).await.unwrap();
    played.append(&rows([1, 2])).await.unwrap();
    played.append(&rows([3])).await.unwrap();
    played.delete(|row| row[0] == 1_i64.into()).await.unwrap();
    let opened = lake.open("./t", None).await.unwrap();
    World { folder, lake, played, opened }
}

fn tag(name: &str, version: u64) -> NewTag {
    NewTag { name: name.to_owned(), version: VersionId::from(version), expires_at: None, upgrade: Upgrade::Refused }
}

impl World {
    async fn refs(&self) -> Vec<String> {
        let refs = self.opened.table.refs().await.unwrap();
        refs.iter().map(|it| format!("{}={}", it.name, it.version)).collect()
    }

    async fn head(&self) -> String {
        self.opened.table.resolve(&AsOf::Latest).await.unwrap().version.id.to_string()
    }
}

#[tokio::test]
async fn a_tag_is_made_once_and_dropped_by_its_name() {
    let world = world().await;
    let changer = world.lake.changer(&world.opened).unwrap();
    let made =
        changer.create_tag(&NewTag { expires_at: Some(Millis(4_000_000_000_000)), ..tag("eod", 2) }).await.unwrap();
    assert_eq!((made.committed.version.id.as_str(), world.refs().await), ("4", vec!["eod=2".to_owned()]));
    for (name, version) in [("eod", 2), ("EOD", 1)] {
        let err = changer.create_tag(&tag(name, version)).await.unwrap_err();
        assert_eq!(
            (err.kind(), err.to_string().as_str()),
            (ErrorKind::AlreadyExists, "there is a tag `eod`, of version 2")
        );
    }
    let err = changer.create_tag(&tag("next", 99)).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::NotFound, "{err}");
    let err = changer.drop_tag("eid").await.unwrap_err();
    assert_eq!((err.kind(), err.hint()), (ErrorKind::NotFound, Some("did you mean `eod`?")));
    let (_, version) = changer.drop_tag("eod").await.unwrap();
    assert_eq!((version.as_str(), world.refs().await.len(), world.head().await.as_str()), ("2", 0, "5"));
}

/// RELIABILITY row 49.
#[tokio::test]
async fn names_that_could_be_taken_for_something_else_are_refused() {
    let world = world().await;
    let changer = world.lake.changer(&world.opened).unwrap();
    for name in ["", "../x", "a/b", "42", "v3", "head", "a@b", "a b", &"x".repeat(300)] {
        let err = changer.create_tag(&tag(name, 1)).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Invalid, "{name:?}: {err}");
    }
    assert_eq!(world.head().await, "3", "nothing was committed");
}

#[tokio::test]
async fn a_restore_is_what_its_plan_said() {
    let world = world().await;
    let changer = world.lake.changer(&world.opened).unwrap();
    let plan = changer.returning(&VersionId::from(1)).await.unwrap();
    let fates: Vec<Fate> = plan.files.iter().map(|it| it.fate).collect();
    assert_eq!(fates.len(), 2, "{plan:?}");
    assert!(fates.contains(&Fate::Goes) && fates.contains(&Fate::Vector), "{plan:?}");
    assert_eq!(world.head().await, "3", "a plan changes nothing");
    let (done, changed) = changer.restore(&VersionId::from(1)).await.unwrap();
    assert_eq!((done.files, changed.unwrap().committed.version.id.as_str()), (plan.files, "4"));
    assert_eq!(world.played.rows(&AsOf::Latest).await.unwrap().difference(&rows([1, 2])), None);
    let (_, changed) = changer.restore(&VersionId::from(4)).await.unwrap();
    assert!(changed.is_none() && world.head().await == "4", "the newest version is not restored");
}

/// RELIABILITY row 44.
#[tokio::test]
async fn a_version_whose_files_are_gone_does_not_come_back() {
    let world = world().await;
    let changer = world.lake.changer(&world.opened).unwrap();
    changer.restore(&VersionId::from(1)).await.unwrap();
    let plan = changer.returning(&VersionId::from(2)).await.unwrap();
    let lost = plan.files.iter().find(|it| it.fate == Fate::Comes).unwrap();
    fs::remove_file(world.folder.path().join("t").join(lost.path.as_str())).unwrap();
    let err = changer.restore(&VersionId::from(2)).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused);
    assert!(err.to_string().contains(lost.path.as_str()), "{err}");
    assert_eq!(world.head().await, "4");
}

#[tokio::test]
async fn a_plan_has_an_id_and_is_carried_out_as_it_is() {
    let world = world().await;
    let write = world.played.begin(lakebed_core::timeline::Action::Append).await.unwrap();
    let orphan = world.played.write_file(&write, &rows([9])).await.unwrap();
    let changer = world.lake.changer(&world.opened).unwrap();
    let action = Maintenance::RemoveOrphans { older_than: Millis(4_000_000_000_000) };
    let prepared = changer.prepare(&action).await.unwrap();
    assert_eq!(prepared.sum(Act::Delete).files, 1);
    assert_eq!(prepared.lines()[0].path.as_ref(), Some(&orphan.path));
    assert_eq!(changer.prepare(&action).await.unwrap().id, prepared.id);
    prepared.check(&prepared.id).unwrap();
    let more = world.played.write_file(&write, &rows([10])).await.unwrap();
    let other = changer.prepare(&action).await.unwrap();
    let err = other.check(&prepared.id).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
    let applied = changer.apply(prepared).await.unwrap();
    assert_eq!((applied.removed, applied.stopped.is_none()), (1, true));
    let there =
        async |it: &lakebed_core::file::DataFile| world.opened.table.storage().head(&it.path).await.unwrap().is_some();
    assert!(!there(&orphan).await && there(&more).await, "exactly the plan");
}

#[tokio::test]
async fn where_writes_are_switched_off_only_plans_are_made() {
    let world = world().await;
    let mut config = Config::default();
    config.set("read_only", "true".to_owned(), Origin::Flag("test")).unwrap();
    let lake = Lakebed::builder().base(world.folder.path()).config(config).format(Arc::new(Pond)).build().unwrap();
    let opened = lake.open("./t", None).await.unwrap();
    assert_eq!(lake.changer(&opened).unwrap_err().kind(), ErrorKind::Refused);
    let planner = lake.planner(&opened);
    assert_eq!(planner.returning(&VersionId::from(1)).await.unwrap().files.len(), 2);
    // Whoever goes past the door still meets the store.
    assert_eq!(planner.create_tag(&tag("x", 1)).await.unwrap_err().kind(), ErrorKind::Refused);
    let storage = lake.stores().locate("./t").await.unwrap();
    let err = storage.create("x", "1".into()).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
    assert!(err.hint().unwrap().contains("--read-only"), "{err:?}");
}

/// Eight writers tag one table at once: every name is made once, and none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tags_at_once_are_all_there() {
    let world = world().await;
    let world = Arc::new(world);
    let mut tasks = Vec::new();
    for number in 0..8_u64 {
        let world = Arc::clone(&world);
        tasks.push(tokio::spawn(async move {
            let opened = world.lake.open("./t", None).await.unwrap();
            world.lake.changer(&opened).unwrap().create_tag(&tag(&format!("tag-{number}"), 1)).await
        }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(world.refs().await.len(), 8);
}
