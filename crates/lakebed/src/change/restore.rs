//! Going back: the rows of an earlier version become those of a new one.
//!
//! 1. Compare the files of both versions, each with its vector.
//! 2. Look whether the files that come back are still there; a version that lost one cannot come back.
//! 3. Commit the restore; a writer that changed a row in between wins.
use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt;
use lakebed_core::{
    Error, ErrorKind, Result,
    change::Change,
    path::FilePath,
    scan::Scan,
    storage::{Found, Inventory},
    table::Snapshot,
    timeline::Action,
    version::{AsOf, VersionId},
};

use super::{Changed, Changer, intent, of_everything};

/// What a restore does to the newest version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returning {
    pub from: VersionId,
    pub to: VersionId,
    /// By path.
    pub files: Vec<Return>,
    metrics: BTreeMap<String, String>,
}

/// What becomes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    pub path: FilePath,
    pub bytes: u64,
    pub fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was in the old version and is not in the newest.
    Comes,
    /// It is in the newest version and was not in the old one.
    Goes,
    /// It is in both, with other rows deleted.
    Vector,
}

impl Fate {
    /// The word for tables and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comes => "add",
            Self::Goes => "remove",
            Self::Vector => "vector",
        }
    }
}

impl Returning {
    /// Count and bytes of the files with one fate.
    pub fn sum(&self, fate: Fate) -> (u64, u64) {
        sum(&self.files, fate)
    }
}

fn sum(files: &[Return], fate: Fate) -> (u64, u64) {
    let of = files.iter().filter(|it| it.fate == fate);
    of.fold((0, 0), |(count, bytes), it| (count + 1, bytes.saturating_add(it.bytes)))
}

/// The live files of a version: size, and the places and ids of what deletes rows of each.
type Files = BTreeMap<FilePath, (u64, Vec<(Option<FilePath>, Option<String>)>)>;

impl Changer<'_> {
    /// What going back to `to` would do; nothing is changed.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a version that is forgotten; [`ErrorKind::Refused`] for one whose files are gone.
    pub async fn returning(&self, to: &VersionId) -> Result<Returning> {
        let head = self.table.snapshot(&AsOf::Latest).await?;
        self.compare(head.as_ref(), to).await
    }

    /// Makes the rows of version `to` those of a new version. `None` when it is the newest already.
    ///
    /// # Errors
    /// As [`Self::returning`]; [`ErrorKind::Conflict`] when rows changed meanwhile; everything of
    /// [`commit::commit`](lakebed_core::commit::commit).
    pub async fn restore(&self, to: &VersionId) -> Result<(Returning, Option<Changed>)> {
        let mut write = self.table.begin(intent(Action::Restore, "RESTORE", [("version", to.to_string())])).await?;
        let compared = self.compare(write.base.as_ref(), to).await;
        let returning = self.or_abandon(&write, compared).await?;
        if returning.from == returning.to {
            self.table.abandon(&write).await?;
            return Ok((returning, None));
        }
        write.intent.metrics.clone_from(&returning.metrics);
        let change = Change::Restore(AsOf::Version(to.clone()));
        let committed = self.commit(&write, &[change], of_everything()).await?;
        Ok((returning, Some(Changed { committed, notes: Vec::new() })))
    }

    async fn compare(&self, head: &dyn Snapshot, to: &VersionId) -> Result<Returning> {
        let old = self.table.snapshot(&AsOf::Version(to.clone())).await?;
        let (now, then) = (files_of(head).await?, files_of(old.as_ref()).await?);
        self.check_there(to, &now, &then).await?;
        let mut files = Vec::new();
        let paths: BTreeSet<&FilePath> = now.keys().chain(then.keys()).collect();
        for path in paths {
            let (bytes, fate) = match (now.get(path), then.get(path)) {
                (None, Some((bytes, _))) => (*bytes, Fate::Comes),
                (Some((bytes, _)), None) => (*bytes, Fate::Goes),
                (Some((_, one)), Some((bytes, other))) if one != other => (*bytes, Fate::Vector),
                _ => continue,
            };
            files.push(Return { path: path.clone(), bytes, fate });
        }
        let metrics = metrics(&files, &then);
        Ok(Returning { from: head.version().id.clone(), to: to.clone(), files, metrics })
    }

    /// What the newest version has is there; the rest of the old one may have been vacuumed.
    async fn check_there(&self, to: &VersionId, now: &Files, then: &Files) -> Result<()> {
        let live = places(now);
        let coming: BTreeSet<&FilePath> = places(then).difference(&live).copied().collect();
        if coming.is_empty() {
            return Ok(());
        }
        let mut inventory = Inventory::list(self.table.storage()).await?;
        let mut gone = Vec::new();
        for path in coming {
            if !matches!(inventory.find(path).await?, Found::Object(_)) {
                gone.push(path);
            }
        }
        let Some(first) = gone.first() else { return Ok(()) };
        let message = format!("version {to} cannot come back: {} of its files are gone, {first} the first", gone.len());
        Err(Error::new(ErrorKind::Refused, message)
            .with_hint("`lakebed log TABLE` shows which versions still have all their files"))
    }
}

async fn files_of(snapshot: &dyn Snapshot) -> Result<Files> {
    let mut files = Files::new();
    let mut tasks = snapshot.tasks(&Scan { statistics: false, ..Scan::all() });
    while let Some(task) = tasks.try_next().await? {
        let deletes: Vec<_> = task.deletes.iter().map(|it| (it.place.path().cloned(), it.id.clone())).collect();
        for file in task.files {
            files.insert(file.path, (file.bytes, deletes.clone()));
        }
    }
    Ok(files)
}

/// Every object that a version needs.
fn places(files: &Files) -> BTreeSet<&FilePath> {
    let deletes = files.values().flat_map(|(_, deletes)| deletes.iter().filter_map(|(place, _)| place.as_ref()));
    files.keys().chain(deletes).collect()
}

/// As Spark spells them.
fn metrics(files: &[Return], then: &Files) -> BTreeMap<String, String> {
    let (comes, goes) = (sum(files, Fate::Comes), sum(files, Fate::Goes));
    let size = then.values().fold(0_u64, |sum, (bytes, _)| sum.saturating_add(*bytes));
    let all = [
        ("numRestoredFiles", comes.0),
        ("restoredFilesSize", comes.1),
        ("numRemovedFiles", goes.0),
        ("removedFilesSize", goes.1),
        ("numOfFilesAfterRestore", then.len() as u64),
        ("tableSizeAfterRestore", size),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}
