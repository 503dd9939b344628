//! Removals that stand: files that are gone from the newest state, but may still be read in older ones.
use std::sync::Arc;

use arrow_array::Array;
use lakebed_core::Result;

use super::{
    Base,
    columns::RemovedColumns,
    replay::{Decided, Live},
};
use crate::log::{Log, actions::ActionBatch};

/// Those of the checkpoint first, then those of commits, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Tombstones {
    batches: Vec<(Source, Live)>,
}

#[derive(Debug)]
enum Source {
    Checkpoint(Box<RemovedColumns>),
    Commits(Arc<ActionBatch>),
}

impl Source {
    fn removed(&self) -> &RemovedColumns {
        match self {
            Self::Checkpoint(removed) => removed,
            Self::Commits(batch) => &batch.removes,
        }
    }
}

impl Tombstones {
    pub(super) async fn read(log: &Log, base: &Base) -> Result<Self> {
        let policy = log.storage().policy();
        let of_checkpoint = match &base.checkpoint {
            Some(checkpoint) => checkpoint.removed().await?,
            None => Vec::new(),
        };
        let mut decided = Decided::default();
        let mut commits = Vec::new();
        for batch in base.commits.iter().rev() {
            let (_, gone) = decided.take_both(policy, batch);
            commits.extend((gone.count > 0).then(|| (Source::Commits(Arc::clone(batch)), gone)));
        }
        let mut batches: Vec<(Source, Live)> = Vec::new();
        for removed in of_checkpoint {
            let stands = decided.filter_removed(policy, &removed);
            batches.push((Source::Checkpoint(Box::new(removed)), stands));
        }
        batches.extend(commits.into_iter().rev());
        Ok(Self { batches })
    }

    /// Columns of removals, and a row of them that stands.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&RemovedColumns, usize)> {
        self.batches.iter().flat_map(|(source, stands)| {
            let removed = source.removed();
            (0..removed.rows()).filter(|row| stands.is_live(*row)).map(move |row| (removed, row))
        })
    }
}

impl RemovedColumns {
    /// When a file was removed, in milliseconds since the epoch; long ago where nobody says.
    pub(crate) fn time(&self, row: usize) -> i64 {
        if self.removed_at.is_valid(row) { self.removed_at.value(row) } else { 0 }
    }

    /// The size of a removed file, where its removal says it.
    pub(crate) fn size(&self, row: usize) -> Option<i64> {
        self.bytes.as_ref().filter(|it| it.is_valid(row)).map(|it| it.value(row))
    }
}
