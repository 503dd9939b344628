//! Which files versions name: data files, files of vectors, files of changed rows.
//!
//! A run of versions names what its first has, and what each later one added. Files are known by a hash of their path
//! where there may be a million of them: two that meet in one hash keep each other, and nothing is lost by that.
use std::{
    collections::HashSet,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    ErrorKind, Result,
    path::{FilePath, PathPolicy},
};

use super::{Upkeep, kept::Run};
use crate::{
    log::Commit,
    spec::DeletionVectorDescriptor,
    state::{ListBatch, State},
};

/// Commits read at once.
const AT_ONCE: usize = 16;

/// Files that must stay, by the hash of their path.
#[derive(Debug, Default)]
pub(super) struct Needed(HashSet<u64>);

impl Needed {
    pub(super) fn insert(&mut self, path: &FilePath) {
        self.0.insert(hash(path.as_str()));
    }

    /// Whether a file below the root may be needed; false only if it surely is not.
    pub(super) fn may_hold(&self, path: &str) -> bool {
        self.0.contains(&hash(path))
    }
}

fn hash(path: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(path)
}

/// The files that the versions of a run name; of changed rows, too, where `changes` are wanted.
pub(super) fn of_run<'a>(
    upkeep: Upkeep<'a>,
    newest: Arc<State>,
    run: Run,
    changes: bool,
) -> BoxStream<'a, Result<Vec<FilePath>>> {
    let policy = upkeep.head.log().storage().policy().clone();
    let live = stream::once(async move {
        let state = upkeep.state_at(&newest, run.first).await?;
        state.files().await
    });
    let live = live.map_ok(move |files| {
        let policy = policy.clone();
        stream::iter((0..files.batches.len()).map(move |at| of_batch(&policy, &files.batches[at])))
    });
    // The first version's own commit matters for the changes it recorded.
    let first = if changes && run.whole { run.first } else { run.first.saturating_add(1) };
    live.try_flatten().chain(of_commits(upkeep, first..=run.last)).boxed()
}

/// The files that commits added or recorded.
fn of_commits<'a>(
    upkeep: Upkeep<'a>,
    versions: impl Iterator<Item = u64> + Send + 'a,
) -> impl stream::Stream<Item = Result<Vec<FilePath>>> + Send + 'a {
    let log = upkeep.head.log();
    let read = stream::iter(versions)
        .map(move |version| async move { of_commit(log.storage().policy(), &log.read_commit(version).await?) });
    read.buffered(AT_ONCE)
}

pub(super) fn of_batch(policy: &PathPolicy, batch: &ListBatch) -> Result<Vec<FilePath>> {
    let files = batch.files();
    let mut named = Vec::with_capacity(batch.live.count);
    for row in batch.live_rows() {
        named.extend(of_file(policy, files.path.value(row), files.vector(row).as_ref())?);
    }
    Ok(named)
}

/// What a commit adds and records.
pub(super) fn of_commit(policy: &PathPolicy, commit: &Commit) -> Result<Vec<FilePath>> {
    let mut named = Vec::new();
    for add in commit.adds() {
        named.extend(of_file(policy, &add.path, add.deletion_vector.as_ref())?);
    }
    for cdc in commit.cdc() {
        named.extend(of_file(policy, &cdc.path, None)?);
    }
    Ok(named)
}

/// What a commit says was there before it.
pub(super) fn of_removes(policy: &PathPolicy, commit: &Commit) -> Result<Vec<FilePath>> {
    let mut named = Vec::new();
    for remove in commit.removes() {
        named.extend(of_file(policy, &remove.path, remove.deletion_vector.as_ref())?);
    }
    Ok(named)
}

/// A data file and the file of its vector. Places that the table may not name are nobody's to delete, and left out.
///
/// # Errors
/// Corrupt for what cannot be understood: nobody knows which file it keeps.
pub(super) fn of_file(
    policy: &PathPolicy,
    raw: &str,
    vector: Option<&DeletionVectorDescriptor>,
) -> Result<impl Iterator<Item = FilePath> + use<>> {
    let path = admitted(policy.resolve_uri(raw))?;
    let vector = match vector {
        None => None,
        Some(vector) => {
            let target = path.clone().unwrap_or_else(|| FilePath::below(raw));
            admitted(vector.delete_file(&target, policy))?.and_then(|it| it.place.path().cloned())
        }
    };
    Ok(path.into_iter().chain(vector))
}

fn admitted<T>(place: Result<T>) -> Result<Option<T>> {
    match place {
        Ok(place) => Ok(Some(place)),
        Err(err) if err.kind() == ErrorKind::Refused => Ok(None),
        Err(err) => Err(err),
    }
}

impl Needed {
    /// Adds what a stream names.
    pub(super) async fn extend(&mut self, mut named: BoxStream<'_, Result<Vec<FilePath>>>) -> Result<()> {
        while let Some(paths) = named.try_next().await? {
            paths.iter().for_each(|it| self.insert(it));
        }
        Ok(())
    }
}
