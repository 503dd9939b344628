//! Commits that this handle made: what they say need not be read again.
//!
//! A staged commit becomes one that is known by being told that it is visible. It is looked for only where a listing shows a
//! file of that name and size after a version that is still the one read before, so that another table in the same place
//! is never taken for it.
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

/// Larger commits are read again.
const MAX_BYTES: usize = 1 << 20;
/// Writes of one handle that are under way at once, and commits not yet looked at.
const MAX_KEPT: usize = 32;

/// See the [module](self). Clones share everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnCommits(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// What each write staged last.
    staged: HashMap<String, (u64, Bytes)>,
    visible: BTreeMap<u64, Bytes>,
}

impl OwnCommits {
    pub(crate) fn staged(&self, write: &str, version: u64, body: &Bytes) {
        let mut kept = self.kept();
        if kept.staged.len() >= MAX_KEPT {
            kept.staged.clear();
        }
        if body.len() <= MAX_BYTES {
            kept.staged.insert(write.to_owned(), (version, body.clone()));
        } else {
            kept.staged.remove(write);
        }
    }

    /// The write is over; it made `version` if there is one.
    pub(crate) fn ended(&self, write: &str, version: Option<u64>) {
        let mut kept = self.kept();
        let staged = kept.staged.remove(write);
        if let Some((at, body)) = staged.filter(|(at, _)| Some(*at) == version) {
            if kept.visible.len() >= MAX_KEPT {
                kept.visible.pop_first();
            }
            kept.visible.insert(at, body);
        }
    }

    /// The commit of `version`, if this handle made it and it has so many bytes.
    pub(crate) fn take(&self, version: u64, bytes: u64) -> Option<Bytes> {
        let body = self.kept().visible.remove(&version)?;
        if body.len() as u64 != bytes {
            tracing::warn!(
                version,
                "a commit of this process was overwritten by a writer that does not look before it writes"
            );
            return None;
        }
        Some(body)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What is kept is whole between two calls, whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_became_visible_is_known_and_once() {
        let own = OwnCommits::default();
        let body = Bytes::from_static(b"{}\n");
        own.staged("a", 3, &body);
        assert_eq!(own.take(3, 3), None, "nobody said that it is visible");
        own.ended("a", Some(4));
        assert_eq!(own.take(4, 3), None, "it was staged at another version");
        own.staged("b", 5, &body);
        own.ended("b", Some(5));
        assert_eq!(own.take(5, 3), Some(body.clone()));
        assert_eq!(own.take(5, 3), None);
        own.staged("c", 6, &body);
        own.ended("c", None);
        assert_eq!(own.take(6, 3), None);
        own.staged("d", 7, &body);
        own.ended("d", Some(7));
        assert_eq!(own.take(7, 4), None, "another file");
    }
}
