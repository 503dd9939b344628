//! Says whether a commit still holds on top of versions committed since it read the table.
//!
//! Filled in by `check`: see its table.
use crate::{change::Claim, expr::Predicate, path::FilePath, version::VersionId};

/// What this commit depends on, so that a later version can be told to break it.
#[derive(Debug, Clone)]
pub struct ConflictPolicy {
    pub isolation: Isolation,
    /// The rows the writer read; `None` for a blind append.
    pub read: Option<Predicate>,
    /// Parts of the table this write owns.
    pub claims: Vec<Claim>,
    /// How often to rebase over other writers before giving up.
    pub retries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A concurrent append that matches `read` is a conflict.
    Serializable,
    /// A concurrent *blind* append that matches `read` is not; other appends that match are.
    WriteSerializable,
    /// Only a concurrent removal or rewrite of what this commit touches is.
    Snapshot,
}

/// Why a commit cannot be rebased.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("version {by} already removed {path}")]
    RemovedTwice { by: VersionId, path: FilePath },
    #[error("version {by} removed {path}, of which this commit deletes rows")]
    TargetRemoved { by: VersionId, path: FilePath },
    #[error("version {by} deleted rows of {path}, which this commit rewrites")]
    DeleteWouldBeLost { by: VersionId, path: FilePath },
    #[error("version {by} deleted other rows of {path}: both commits hold a vector for it")]
    VectorReplaced { by: VersionId, path: FilePath },
    #[error("version {by} added {path}, whose rows this commit should have read")]
    PhantomRows { by: VersionId, path: FilePath },
    #[error("version {by} changed the schema or the properties")]
    SchemaChanged { by: VersionId },
    #[error("version {by} changed the protocol")]
    ProtocolChanged { by: VersionId },
    #[error("version {by} also wrote {claim:?}, which only one writer may")]
    ClaimedTwice { by: VersionId, claim: Claim },
    #[error("version {by} was also written by application `{application}`; give each job its own appId")]
    SameApplication { by: VersionId, application: String },
}
