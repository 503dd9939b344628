//! `t$refs`: branches, tags and savepoints.
use arrow_array::RecordBatch;
use lakebed_core::{
    Result,
    version::{Ref, RefKind},
};

use super::rows::Columns;

pub(super) fn rows(refs: &[Ref]) -> Result<RecordBatch> {
    Columns::default()
        .text("name", refs.iter().map(|it| it.name.clone()))
        .text("kind", refs.iter().map(|it| kind(it.kind)))
        .text("version", refs.iter().map(|it| it.version.to_string()))
        .time("created_at", refs.iter().map(|it| it.created_at))
        .time("expires_at", refs.iter().map(|it| it.expires_at))
        .batch()
}

fn kind(kind: RefKind) -> &'static str {
    match kind {
        RefKind::Branch => "branch",
        RefKind::Tag => "tag",
    }
}
