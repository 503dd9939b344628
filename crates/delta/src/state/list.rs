//! The live files of a version: batches of columns, and which rows of each are live.
use std::sync::Arc;

use lakebed_core::Result;

use super::{
    Base,
    columns::{Extras, FileColumns, StatsText},
    replay::{Decided, Live},
};
use crate::{
    checkpoint::files::{CheckpointBatch, FileStatistics},
    log::{Log, LogError, actions::ActionBatch},
};

/// Checkpoint first, then commits, oldest first.
#[derive(Debug, Default)]
pub(crate) struct FileList {
    pub(crate) batches: Vec<ListBatch>,
}

#[derive(Debug, Clone)]
pub(crate) struct ListBatch {
    source: Source,
    pub(crate) live: Live,
}

#[derive(Debug, Clone)]
enum Source {
    Checkpoint(Arc<CheckpointBatch>),
    Commits(Arc<ActionBatch>),
}

impl FileList {
    /// Reads the files of the base and reconciles them.
    pub(super) async fn read(log: &Log, base: &Base, partitioned: bool) -> Result<Self> {
        let policy = log.storage().policy();
        let files = match &base.checkpoint {
            Some(checkpoint) => checkpoint.files(partitioned).await?,
            None => Arc::default(),
        };
        counted(base, files.iter().map(|it| it.files.rows()).sum())?;
        let mut decided = Decided::default();
        let mut commits = Vec::new();
        for batch in base.commits.iter().rev() {
            let live = decided.take(policy, batch);
            if live.count > 0 {
                commits.push(ListBatch { source: Source::Commits(Arc::clone(batch)), live });
            }
        }
        let mut batches = Vec::new();
        for batch in files.iter() {
            let live = decided.filter(policy, &batch.files);
            if live.count > 0 {
                batches.push(ListBatch { source: Source::Checkpoint(Arc::clone(batch)), live });
            }
        }
        batches.extend(commits.into_iter().rev());
        Ok(Self { batches })
    }

    pub(crate) fn count(&self) -> u64 {
        self.batches.iter().map(|it| it.live.count as u64).sum()
    }
}

/// Checks that the checkpoint has as many files as it should: one that was cut after a line looks whole.
fn counted(base: &Base, found: usize) -> Result<()> {
    let (Some(checkpoint), Some(expected)) = (&base.segment.checkpoint, &base.expected) else { return Ok(()) };
    if expected.files == found as u64 {
        return Ok(());
    }
    let rule = format!("it has {found} files, and {} says {}", expected.source, expected.files);
    Err(LogError::BadFile { file: checkpoint.name(), rule }.into())
}

impl ListBatch {
    pub(crate) fn files(&self) -> &FileColumns {
        match &self.source {
            Source::Checkpoint(batch) => &batch.files,
            Source::Commits(batch) => &batch.adds,
        }
    }

    /// Rows of [`Self::files`] that are live, ascending.
    pub(crate) fn live_rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.files().rows()).filter(|row| self.live.is_live(*row))
    }

    /// Statistics of all rows, live or not; read now where they are not at hand. `wanted` says which leaves below
    /// `stats_parsed` are needed.
    pub(crate) async fn statistics(&self, wanted: impl Fn(&[String]) -> bool) -> Result<FileStatistics> {
        match &self.source {
            Source::Checkpoint(batch) => batch.statistics(wanted).await,
            Source::Commits(batch) => Ok(batch.adds.stats.clone().map_or(FileStatistics::None, text)),
        }
    }

    /// Tags and clustering of all rows, live or not; read now where they are not at hand.
    pub(crate) async fn extras(&self) -> Result<Extras> {
        match &self.source {
            Source::Checkpoint(batch) => batch.extras().await,
            Source::Commits(batch) => Ok(batch.adds.extras.clone()),
        }
    }
}

fn text(stats: StatsText) -> FileStatistics {
    FileStatistics::Text(stats)
}
