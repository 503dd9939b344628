//! `N.crc`: what the state of version N adds up to. A cache: reading works without.
use serde::{Deserialize, Serialize};

use super::{DomainMetadata, Metadata, Protocol, Txn};

/// Spec: Delta PROTOCOL.md, "Version Checksum File".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionChecksum {
    pub(crate) table_size_bytes: i64,
    pub(crate) num_files: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_commit_timestamp_opt: Option<i64>,
    /// `None` when the writer did not say, which is not "there are none".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set_transactions: Option<Vec<Txn>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain_metadata: Option<Vec<DomainMetadata>>,
    pub(crate) metadata: Metadata,
    pub(crate) protocol: Protocol,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) num_deleted_records_opt: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) num_deletion_vectors_opt: Option<i64>,
}
