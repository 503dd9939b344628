//! The hint that names the newest checkpoint.
//!
//! It never names an older one than before: whoever writes it has just listed the log and seen no newer checkpoint.
//! Between that look and the write another writer may put a newer hint; a hint that lags costs a reader some names of a
//! listing, and the next checkpoint mends it.
//! Spec: Delta PROTOCOL.md, "Last Checkpoint File", "JSON checksum".
use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use lakebed_core::{Error, Result, version::Millis};
use serde_json::{Value, json};

use super::{Outcome, Planned};
use crate::{
    checkpoint::Checkpoint,
    log::{Log, hint, listing::CheckpointFiles},
    spec::{LastCheckpoint, LastCheckpointV2},
};

/// A hint repeats a V2 checkpoint with up to so many small actions and sidecars.
const REPEATED: usize = 30;

/// The checkpoint that a hint shall name, planned and not yet written.
pub(super) struct Named {
    pub(super) version: u64,
    pub(super) path: String,
    pub(super) v2: bool,
    /// Small actions.
    pub(super) actions: Vec<Value>,
    /// Live files.
    pub(super) files: u64,
    /// Live files and tombstones.
    pub(super) file_actions: u64,
    pub(super) sidecars: Vec<Planned>,
    pub(super) outcome: Outcome,
    pub(super) now: Millis,
}

impl Named {
    /// The hint's bytes when it is written; none if the checkpoint is another writer's.
    pub(super) fn body(self) -> BoxStream<'static, Result<Bytes>> {
        stream::once(async move { self.bytes() }).boxed()
    }

    fn bytes(&self) -> Result<Bytes> {
        let Some(written) = self.outcome.get() else { return Ok(Bytes::new()) };
        let sidecars = self.sidecars.iter().map(Planned::sidecar).collect::<Result<Vec<_>>>()?;
        let bytes = i64::try_from(written.bytes).ok();
        let repeated = !sidecars.is_empty() && sidecars.len() <= REPEATED && self.actions.len() <= REPEATED;
        let size = self.actions.len() as u64 + sidecars.len() as u64 + self.file_actions;
        let v2_checkpoint = self.v2.then(|| LastCheckpointV2 {
            path: self.path.rsplit('/').next().unwrap_or_default().to_owned(),
            size_in_bytes: bytes,
            modification_time: Some(self.now.0),
            non_file_actions: repeated.then(|| self.actions.clone()),
            sidecar_files: repeated.then(|| sidecars.clone()),
            checkpoint_metadata: None,
        });
        let all = sidecars.iter().map(|it| it.size_in_bytes).try_fold(bytes.unwrap_or(0), i64::checked_add);
        spell(&LastCheckpoint {
            version: self.version,
            size: i64::try_from(size).ok(),
            parts: None,
            size_in_bytes: all,
            num_of_add_files: i64::try_from(self.files).ok(),
            v2_checkpoint,
            checksum: None,
        })
    }
}

/// A hint for a checkpoint that is there, with as much as can be told by opening it.
///
/// # Errors
/// As [`Checkpoint::open`].
pub(in crate::upkeep) async fn of_checkpoint(log: &Log, files: &CheckpointFiles) -> Result<Bytes> {
    let opened = Checkpoint::open(log, files, None).await?;
    let parts = (files.files.len() > 1).then(|| u32::try_from(files.files.len()).ok()).flatten();
    let size = opened.rows().and_then(|it| i64::try_from(it).ok());
    spell(&LastCheckpoint {
        version: files.version,
        size: Some(size.unwrap_or(-1)),
        parts,
        ..LastCheckpoint::default()
    })
}

/// Whether the hint names an older version, or nothing sensible.
pub(in crate::upkeep) async fn older_than(log: &Log, version: u64) -> Result<bool> {
    let hint = hint::read(log, &mut Vec::new()).await?;
    Ok(hint.is_none_or(|it| it.version < version))
}

fn spell(hint: &LastCheckpoint) -> Result<Bytes> {
    let mut value = json!(hint);
    let text = value.to_string();
    let sum = hint::checksum(text.as_bytes()).ok_or_else(|| Error::internal("a hint is no JSON object"))?;
    value["checksum"] = sum.into();
    Ok(value.to_string().into())
}
