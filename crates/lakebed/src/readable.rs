//! Which versions of a table can still be read: the `readable` column of its log.
//!
//! A version is readable when the metadata rebuilds it and every live data and delete file is there.
//!
//! 1. List the table once: what is not in the listing is missing. A file outside the root is asked for by itself, once.
//! 2. Load the first version asked about: its live files, each with its delete files, some of them missing.
//! 3. For each later version apply what it changed. Where that cannot be learned, load the version anew; where that
//!    fails too, the version is not readable, and the error says which file is to blame.
//!
//! So the cost is one listing, one snapshot and the changes, however many versions are asked about.
use std::collections::{BTreeMap, HashMap, HashSet};

use futures::TryStreamExt;
use lakebed_core::{
    Error, ErrorKind, Result,
    change::RowDelta,
    file::DeleteFile,
    path::FilePath,
    scan::{Scan, ScanTask},
    storage::{Found, Inventory},
    table::Table,
    version::{AsOf, Span, Version, VersionId},
};

/// What is known of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    Yes,
    /// So many live data and delete files are gone.
    FilesMissing(u64),
    /// The metadata do not rebuild the version, and why.
    No(String),
    Unchecked,
}

impl std::fmt::Display for Readable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Yes => f.write_str("yes"),
            Self::FilesMissing(count) => write!(f, "files-missing {count}"),
            Self::No(why) => write!(f, "no: {why}"),
            Self::Unchecked => f.write_str("unchecked"),
        }
    }
}

/// One answer for each of `versions`, which are sorted oldest first.
///
/// # Errors
/// Only storage that does not answer: everything else is an answer.
pub async fn check(table: &dyn Table, versions: &[Version]) -> Result<Vec<Readable>> {
    let (Some(first), Some(last)) = (versions.first(), versions.last()) else { return Ok(Vec::new()) };
    let mut inventory = Inventory::list(table.storage()).await?;
    let mut deltas = changes(table, first, last).await;
    let mut live: Option<Live> = None;
    let mut answers = Vec::with_capacity(versions.len());
    for (at, version) in versions.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|it| versions.get(it));
        let next = deltas.remove(&version.id).filter(|_| version.parent.as_ref() == before.map(|it| &it.id));
        live = match (live.take(), next) {
            (Some(known), Some(delta)) => Some(known.apply(&delta)),
            _ => None,
        };
        if live.is_none() {
            match load(table, version).await {
                Ok(loaded) => live = Some(loaded),
                Err(err) => {
                    answers.push(unreadable(err)?);
                    continue;
                }
            }
        }
        let missing = live.as_ref().expect("loaded right above").missing(&mut inventory).await?;
        answers.push(if missing == 0 { Readable::Yes } else { Readable::FilesMissing(missing) });
    }
    Ok(answers)
}

/// Storage that fails says nothing about the version; any other error is the answer.
fn unreadable(err: Error) -> Result<Readable> {
    match err.kind() {
        ErrorKind::Unavailable | ErrorKind::Unauthorized => Err(err),
        _ => Ok(Readable::No(err.to_string())),
    }
}

/// What each version after `first` up to `last` changed, as far as it can be learned.
async fn changes(table: &dyn Table, first: &Version, last: &Version) -> HashMap<VersionId, RowDelta> {
    let span = Span { after: Some(first.id.clone()), until: AsOf::Version(last.id.clone()) };
    let mut stream = table.changes(&span);
    let mut found = HashMap::new();
    while let Ok(Some(delta)) = stream.try_next().await {
        found.insert(delta.version.id, delta.rows);
    }
    found
}

async fn load(table: &dyn Table, version: &Version) -> Result<Live> {
    let snapshot = table.snapshot(&AsOf::Version(version.id.clone())).await?;
    let mut live = Live::default();
    let mut tasks = snapshot.tasks(&Scan { statistics: false, ..Scan::all() });
    while let Some(task) = tasks.try_next().await? {
        live.add(&task);
    }
    Ok(live)
}

/// Live data files and the delete files on each; shared delete files count once.
#[derive(Debug, Default)]
struct Live {
    files: BTreeMap<FilePath, Vec<FilePath>>,
}

impl Live {
    fn add(&mut self, task: &ScanTask) {
        let deletes: Vec<FilePath> = task.deletes.iter().filter_map(place).collect();
        for file in &task.files {
            self.files.insert(file.path.clone(), deletes.clone());
        }
    }

    fn apply(mut self, delta: &RowDelta) -> Self {
        for gone in &delta.removed {
            self.files.remove(&gone.path);
        }
        for file in &delta.added {
            self.files.insert(file.path.clone(), Vec::new());
        }
        for gone in &delta.removed_deletes {
            self.files.values_mut().for_each(|it| it.retain(|on| *on != gone.path));
        }
        for delete in &delta.added_deletes {
            let Some(place) = place(delete) else { continue };
            for target in &delete.targets {
                self.files.entry(target.clone()).or_default().push(place.clone());
            }
        }
        self
    }

    async fn missing(&self, inventory: &mut Inventory) -> Result<u64> {
        let mut missing = 0;
        let deletes: HashSet<&FilePath> = self.files.values().flatten().collect();
        for file in self.files.keys().chain(deletes) {
            missing += u64::from(!matches!(inventory.find(file).await?, Found::Object(_)));
        }
        Ok(missing)
    }
}

fn place(delete: &DeleteFile) -> Option<FilePath> {
    delete.place.path().cloned()
}
