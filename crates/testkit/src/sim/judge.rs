//! The last look at a table: everything that is still there, with a store that does not fail.
use std::collections::BTreeSet;

use futures::{FutureExt, TryStreamExt};
use lakebed_core::{
    Error, Result,
    commit::StoragePublisher,
    maintain::{self, Maintenance, Retain},
    path::FilePath,
    table::Table,
    version::{AsOf, Millis, Span},
};

use super::{
    Process, Report, Sea,
    history::{self, Violation},
    upkeep,
};
use crate::{conformance, seed::Dice};

/// Later than everything a schedule writes.
const LATER: Millis = Millis(i64::MAX / 4);

pub(super) async fn judge(sea: &Sea<'_>, dice: &Dice) -> Result<Report, Violation> {
    let process = sea.process(dice);
    let open = async || sea.open_whole(&process).await.map_err(|it| failed("the table does not open", &it));
    let table = open().await?;
    history::note_last_versions(&sea.history, table.as_ref()).await?;
    every_version_reads(sea, table.as_ref()).await?;
    everything_reachable_is_there(table.as_ref()).await?;
    let report = sea.history().judge()?;
    let written = sea.below.kept();
    let written: Vec<(String, bytes::Bytes)> =
        written.into_iter().map(|(key, body)| (key.trim_start_matches("t/").to_owned(), body)).collect();
    sea.subject.audit(&written).map_err(Violation::new)?;
    let before = heads(sea, table.as_ref()).await?;
    without_caches(sea, &process).await?;
    let same = heads(sea, open().await?.as_ref()).await?;
    if same != before {
        return Err(Violation::new(format!("without its caches the table has {same:?}, not {before:?}")));
    }
    sweep(sea, &process).await?;
    let same = heads(sea, open().await?.as_ref()).await?;
    if same != before {
        return Err(Violation::new(format!("after the last sweep the table has {same:?}, not {before:?}")));
    }
    Ok(report)
}

fn failed(what: &str, err: &Error) -> Violation {
    Violation::new(format!("{what}: {err}"))
}

async fn every_version_reads(sea: &Sea<'_>, table: &dyn Table) -> Result<(), Violation> {
    let timeline = table.timeline(&Span::all()).await.map_err(|it| failed("the timeline is gone", &it))?;
    let listed: Vec<_> = timeline.versions().map(|it| it.id.clone()).collect();
    // The oldest that had to stay may be known by its checkpoint alone, and read without being listed.
    sea.history().check_end(&listed, upkeep::AT_LEAST - 1)?;
    for version in listed {
        match conformance::ids(sea.subject, table, &AsOf::Version(version.clone())).await {
            Ok(ids) => sea.history().note_rows(&version, ids)?,
            Err(_) if sea.history().may_be_emptied(&version) => (),
            Err(err) => return Err(failed(&format!("version {version} is listed, but"), &err)),
        }
    }
    for tag in table.refs().await.map_err(|it| failed("refs", &it))? {
        let ids = conformance::ids(sea.subject, table, &AsOf::Ref(tag.name.clone())).await;
        let ids =
            ids.map_err(|it| failed(&format!("tag {} of version {} is listed, but", tag.name, tag.version), &it))?;
        sea.history().note_rows(&tag.version, ids)?;
    }
    Ok(())
}

async fn reachable(table: &dyn Table) -> Result<BTreeSet<FilePath>, Violation> {
    let found = table.reachable(&Retain { at_least: 1, ..Retain::default() }).try_collect().await;
    found.map_err(|it| failed("what is reachable, nobody knows", &it))
}

pub(super) async fn everything_reachable_is_there(table: &dyn Table) -> Result<(), Violation> {
    for path in reachable(table).await? {
        match table.storage().head(&path).await {
            Ok(Some(_)) => (),
            Ok(None) => return Err(Violation::new(format!("{path} is reachable, and gone"))),
            Err(err) => return Err(failed("a look at a file", &err)),
        }
    }
    Ok(())
}

/// The rows of the newest version and of each tag.
async fn heads(sea: &Sea<'_>, table: &dyn Table) -> Result<Vec<(String, Vec<i64>)>, Violation> {
    let refs = table.refs().await.map_err(|it| failed("refs", &it))?;
    let tags = refs.into_iter().map(|it| (it.name.clone(), AsOf::Ref(it.name)));
    let mut found = Vec::new();
    for (name, as_of) in std::iter::once(("newest".to_owned(), AsOf::Latest)).chain(tags) {
        let ids = conformance::ids(sea.subject, table, &as_of).await;
        found.push((name.clone(), ids.map_err(|it| failed(&name, &it))?));
    }
    Ok(found)
}

async fn names(process: &Process) -> Result<Vec<String>, Violation> {
    let listed = process.store.storage("t").list_all("").map_ok(|it| it.path).try_collect().await;
    listed.map_err(|it| failed("the last listing", &it))
}

async fn delete(process: &Process, paths: Vec<String>) {
    let files: Vec<FilePath> = paths.into_iter().map(FilePath::below).collect();
    let _ = process.store.storage("t").delete(&files).await;
}

async fn without_caches(sea: &Sea<'_>, process: &Process) -> Result<(), Violation> {
    let caches = sea.subject.caches(&names(process).await?);
    delete(process, caches).await;
    Ok(())
}

/// Lets upkeep take everything it may, and looks at what it left.
async fn sweep(sea: &Sea<'_>, process: &Process) -> Result<(), Violation> {
    let table = sea.open_whole(process).await.map_err(|it| failed("the table does not open", &it))?;
    let newest = Retain { at_least: 1, ..Retain::default() };
    let vacuum = Maintenance::Vacuum { retain: newest.clone(), older_than: Some(LATER), lite: false, forced: true };
    for action in [Maintenance::Expire(newest), vacuum, Maintenance::RemoveOrphans { older_than: LATER }] {
        let planned = table.plan(&action).await.map_err(|it| failed("the last sweep", &it))?;
        let applied = maintain::run(table.as_ref(), &StoragePublisher, &process.env, planned).boxed().await;
        let applied = applied.map_err(|it| failed("the last sweep", &it))?;
        if let Some(err) = applied.stopped {
            return Err(failed(&format!("the last sweep, {action:?},"), &err));
        }
    }
    let needed = reachable(table.as_ref()).await?;
    let holds_rows = sea.subject.holds_rows();
    let left = names(process).await?.into_iter().filter(|it| holds_rows(it)).map(FilePath::below);
    match left.into_iter().find(|it| !needed.contains(it)) {
        Some(path) => Err(Violation::new(format!("{path} is needed by nothing, and no sweep takes it"))),
        None => Ok(()),
    }
}
