//! Deleting many objects, and knowing which are gone.
//!
//! A bulk delete may work for some keys only, and one error may stand for a whole batch. What the store did not
//! confirm counts as failed: a caller can ask again, but must not report it as removed.
use std::sync::Arc;

use futures::{StreamExt, stream};
use object_store::{ObjectStore, path::Path};

use super::storage_error;
use crate::{Error, path::FilePath};

/// Objects per bulk request: what S3 takes at most.
const BATCH: usize = 1_000;

/// What became of each file of a delete, in the order asked.
#[derive(Debug, Default)]
#[must_use]
pub struct Removal {
    /// Confirmed by the store. Some stores (S3, memory) confirm objects that were not there too.
    pub removed: Vec<FilePath>,
    /// Were not there, by a store that tells.
    pub missing: Vec<FilePath>,
    /// May still be there.
    pub failed: Vec<(FilePath, Error)>,
}

/// `files` and `keys` go in pairs.
pub(super) async fn delete(store: &Arc<dyn ObjectStore>, files: &[FilePath], keys: Vec<Path>) -> Removal {
    let mut removal = Removal::default();
    for (files, keys) in files.chunks(BATCH).zip(keys.chunks(BATCH)) {
        let locations: Vec<_> = keys.iter().cloned().map(Ok).collect();
        // Answers come in the order of the keys.
        let mut answers: Vec<_> = store.delete_stream(stream::iter(locations).boxed()).collect().await;
        if answers.len() != keys.len() {
            keep_confirmed(&mut answers, keys);
        }
        let mut answers = answers.into_iter();
        for file in files {
            match answers.next() {
                Some(Ok(_)) => removal.removed.push(file.clone()),
                Some(Err(object_store::Error::NotFound { .. })) => removal.missing.push(file.clone()),
                Some(Err(err)) => removal.failed.push((file.clone(), storage_error(file.as_str(), err))),
                None => removal.failed.push((file.clone(), unconfirmed(file))),
            }
        }
    }
    removal
}

/// Makes `answers` one a key when one error stands for many keys: a key not confirmed by its name is not confirmed.
fn keep_confirmed(answers: &mut Vec<Result<Path, object_store::Error>>, keys: &[Path]) {
    let confirmed: std::collections::HashSet<Path> = answers.drain(..).filter_map(Result::ok).collect();
    answers.extend(keys.iter().map(|key| match confirmed.get(key) {
        Some(key) => Ok(key.clone()),
        None => Err(object_store::Error::Generic { store: "bulk delete", source: "not confirmed".into() }),
    }));
}

fn unconfirmed(file: &FilePath) -> Error {
    Error::new(crate::ErrorKind::Unavailable, format!("the store did not say whether it deleted {file}"))
}
