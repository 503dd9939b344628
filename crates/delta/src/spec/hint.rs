//! `_last_checkpoint`: where a reader may start. It saves time and decides nothing.
use serde::{Deserialize, Serialize};

use super::{Sidecar, action::CheckpointMetadata};

/// Spec: Delta PROTOCOL.md, "Last Checkpoint File Schema".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastCheckpoint {
    pub(crate) version: u64,
    /// Actions in the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size_in_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) num_of_add_files: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) v2_checkpoint: Option<LastCheckpointV2>,
    /// MD5 of the canonical form of everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<String>,
}

/// The V2 checkpoint the hint names, with its small actions, so that a reader need not open it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastCheckpointV2 {
    /// The bare file name of the checkpoint.
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size_in_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) modification_time: Option<i64>,
    /// Actions other than files, each spelled as a line of a commit. `None` when there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) non_file_actions: Option<Vec<serde_json::Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sidecar_files: Option<Vec<Sidecar>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint_metadata: Option<CheckpointMetadata>,
}
