//! The wire types of the Delta protocol, in its own words. They never leave this crate.
//!
//! Unknown fields are ignored everywhere, as the protocol asks; what is optional there is an `Option` here.
//! Spec: Delta PROTOCOL.md, "Actions".
mod action;
mod checksum;
mod hint;

pub(crate) use action::{
    Action, Add, Cdc, CheckpointMetadata, CommitInfo, DeletionVectorDescriptor, DomainMetadata, Metadata, Protocol,
    Remove, Sidecar, Txn,
};
pub(crate) use checksum::VersionChecksum;
pub(crate) use hint::{LastCheckpoint, LastCheckpointV2};
