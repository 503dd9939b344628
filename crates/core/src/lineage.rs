//! Which version of which table was made from which versions of which others.
use crate::{
    catalog::TableIdent,
    version::{Millis, VersionId},
};

/// One run of one job, as OpenLineage names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Run {
    pub job: String,
    pub run: String,
    pub started_at: Millis,
}

/// A version that stays the same one when ids come back: the commit time stands beside the id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pinned {
    pub table: TableIdent,
    pub version: VersionId,
    pub committed_at: Millis,
}

/// One commit and what it read. Table lineage is the same without the versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub run: Run,
    pub sources: Vec<Pinned>,
    pub sink: Pinned,
}
