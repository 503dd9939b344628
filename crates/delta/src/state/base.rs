//! Finding something to rebuild a version from.
//!
//! Complete checkpoints are tried newest first. One that cannot be read is a warning, and the next older is taken;
//! when the listing began at a hint and has no more, the log is listed from its start. Last comes the log alone,
//! from version 0. Only when nothing is left is it an error.
use std::{collections::BTreeSet, sync::Arc};

use futures::future;
use lakebed_core::{Error, ErrorKind, Result};

use super::{Base, Expected, commits};
use crate::{
    checkpoint::Checkpoint,
    layout::{self, LogFileKind},
    log::{
        Listing, Log, LogError, can_do_without,
        listing::CheckpointFiles,
        segment::{Compacted, Segment},
    },
    spec::{LastCheckpoint, VersionChecksum},
};

pub(super) struct Finder<'a> {
    log: &'a Log,
    listing: Listing,
    version: u64,
    hint: Option<&'a LastCheckpoint>,
    /// Names of checkpoints that proved to be damaged.
    pub(super) avoid: BTreeSet<String>,
    pub(super) compacted: Compacted,
    complete: bool,
}

impl<'a> Finder<'a> {
    /// `listing` begins at 0 or at a hint, and shows every file from there to `version`.
    pub(super) fn new(log: &'a Log, listing: Listing, version: u64, hint: Option<&'a LastCheckpoint>) -> Self {
        Self { log, listing, version, hint, avoid: BTreeSet::new(), compacted: Compacted::Use, complete: false }
    }

    /// Whether there is a checksum file of `version`.
    pub(super) fn checksum(&self, version: u64) -> Option<&crate::log::Listed> {
        self.listing.checksum(version)
    }

    /// The listing as far as it was needed.
    pub(super) fn into_listing(self) -> Listing {
        self.listing
    }

    /// The newest segment that no damaged checkpoint stands in the way of; reads nothing but listings.
    pub(super) async fn segment(&mut self, warnings: &mut Vec<String>) -> Result<Segment> {
        loop {
            let (checkpoints, said) = self.listing.checkpoints();
            let usable = |it: &CheckpointFiles| it.version <= self.version && !self.avoid.contains(&it.name());
            let base = checkpoints.into_iter().find(usable);
            let whole = self.complete || self.listing.first == 0;
            if base.is_some() || whole {
                for warning in said {
                    if !warnings.contains(&warning) {
                        warnings.push(warning);
                    }
                }
                return Ok(Segment::on(&self.listing, self.version, base, self.compacted)?);
            }
            self.listing = Listing::read(self.log.storage(), 0, self.version).await?;
            self.complete = true;
        }
    }

    /// Reads the newest base that can be read.
    pub(super) async fn load(&mut self, warnings: &mut Vec<String>) -> Result<Base> {
        let mut damage: Option<Error> = None;
        loop {
            let segment = match (self.segment(warnings).await, damage.take()) {
                (Ok(segment), _) => segment,
                (Err(err), Some(damage)) => return Err(because(err, damage)),
                (Err(err), None) => return Err(err),
            };
            let Some(files) = segment.checkpoint.clone() else {
                let commits = self.commits(&segment, warnings).await?;
                return Ok(Base { segment, checkpoint: None, commits, expected: None });
            };
            let hint = self.hint.and_then(|it| it.v2_checkpoint.as_ref());
            let opened = Checkpoint::open(self.log, &files, hint);
            let (opened, commits, expected) =
                future::join3(opened, self.commits(&segment, warnings), self.expected(files.version)).await;
            let checked = opened.and_then(|it| self.check(it, &files));
            match checked {
                Ok(checkpoint) => {
                    let (checkpoint, commits, expected) = (Some(Arc::new(checkpoint)), commits?, expected?);
                    return Ok(Base { segment, checkpoint, commits, expected });
                }
                Err(err) if can_do_without(&err) => {
                    warnings.push(format!("checkpoint {} is not used: {err}", files.version));
                    self.avoid.insert(files.name());
                    damage = Some(err);
                }
                Err(err) => return Err(err),
            }
        }
    }

    /// How many files the checkpoint of `version` has: by the hint, else by a checksum file. That of the version being
    /// read is compared with the files in the end.
    async fn expected(&self, version: u64) -> Result<Option<Expected>> {
        let hinted = self.hint.filter(|it| it.version == version).and_then(|it| it.num_of_add_files);
        if let Some(files) = hinted.and_then(|it| u64::try_from(it).ok()) {
            return Ok(Some(Expected { files, source: layout::LAST_CHECKPOINT.to_owned() }));
        }
        if version == self.version || self.listing.checksum(version).is_none() {
            return Ok(None);
        }
        let source = layout::checksum_path(version);
        // Whether it can be read or not: nothing but a check is lost.
        let body = self.log.read_cache(&source, &mut Vec::new()).await?.unwrap_or_default();
        let read = serde_json::from_slice::<VersionChecksum>(&body).ok();
        let files = read.and_then(|it| u64::try_from(it.num_files).ok());
        Ok(files.map(|files| Expected { files, source }))
    }

    /// A checkpoint holds the whole state, so it names protocol and metadata.
    fn check(&self, checkpoint: Checkpoint, files: &CheckpointFiles) -> Result<Checkpoint> {
        let missing = match (&checkpoint.small.protocol, &checkpoint.small.metadata) {
            (Some(_), Some(_)) => return Ok(checkpoint),
            (None, _) => "protocol",
            (_, None) => "metaData",
        };
        let rule = format!("a checkpoint has a {missing} action");
        Err(LogError::BadFile { file: files.name(), rule }.into())
    }

    /// The commits of a segment; without its compacted files when one of them is damaged.
    async fn commits(
        &self,
        segment: &Segment,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Arc<crate::log::actions::ActionBatch>>> {
        let compacted = segment.commits.iter().any(|it| matches!(it.file.kind, LogFileKind::Compacted { .. }));
        let err = match commits::read(self.log, &segment.commits).await {
            Err(err) if compacted && can_do_without(&err) => err,
            read => return read,
        };
        let plain = Segment::on(&self.listing, self.version, segment.checkpoint.clone(), Compacted::Avoid);
        let Ok(plain) = plain else { return Err(err) };
        let read = commits::read(self.log, &plain.commits).await?;
        warnings.push(format!("compacted files are not used: {err}"));
        Ok(read)
    }
}

/// The error when nothing is left, with the damage that led there.
pub(super) fn because(err: Error, damage: Error) -> Error {
    let Some(version) = (match err.cause::<LogError>() {
        Some(LogError::NoBase { missing, .. } | LogError::Gap { missing, .. }) => Some(*missing),
        _ => None,
    }) else {
        return err;
    };
    let hint = err.hint().map(str::to_owned);
    let error = LogError::NoUsableBase { version, reason: err.to_string(), checkpoint: damage.to_string() };
    // A checkpoint that may not be opened is not damaged: whoever may open it reads the table.
    let error = match damage.kind() {
        kind @ (ErrorKind::Unauthorized | ErrorKind::Refused) => Error::new(kind, error),
        _ => error.into(),
    };
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
