//! Another table in place of the one that is there, in one commit: its history stays.
//!
//! 1. The new table is described like one that is to be made. What tells the table from others stays (its id), and what
//!    must never go back: column ids go on from the highest ever given, commits keep their times. The protocol has what
//!    both tables need.
//! 2. The write stands on a state without files, which is of the version that is there.
//! 3. Its commit takes every live file away. Whatever was committed since the write began is a conflict: nobody knows
//!    whether the new rows are still those that were meant.
use std::{collections::BTreeSet, sync::Arc};

use lakebed_core::{
    Error, ErrorKind, Result,
    commit::{Intent, Write},
    format::{CreateTable, Creation, TableLocation},
    version::Millis,
};

use super::{create, draft::Draft, ours, rules};
use crate::{
    schema::TableSchema,
    snapshot::DeltaSnapshot,
    spec::{Metadata, Protocol},
    state::State,
    table::DeltaTable,
    upkeep::{live::Whole, restore},
};

/// Begins to replace the table at `at`.
pub(crate) async fn begin(at: TableLocation, create: CreateTable, mut intent: Intent) -> Result<Creation> {
    if let Some(branch) = &intent.branch {
        return Err(super::no_branches(branch));
    }
    let table = Arc::new(DeltaTable::new(at.clone()));
    let beneath = table.newest().await?;
    let State { protocol: old_protocol, metadata: old, log, .. } = &*beneath.state;
    rules::check(old_protocol, old, &beneath.schema)?;
    if rules::append_only(old_protocol, old)? {
        return Err(rules::keeps_rows("every row"));
    }
    let highest = restore::highest_column_id(old);
    let (protocol, metadata) = create::described(&at, &create, highest)?;
    let protocol = joined(old_protocol, &protocol);
    let metadata = Metadata {
        id: old.id.clone(),
        name: old.name.clone(),
        created_time: old.created_time,
        configuration: restore::with_fixed(metadata.configuration, old, highest),
        ..metadata
    };
    rules::check(&protocol, &metadata, &TableSchema::of(&protocol, &metadata)?)?;
    create::fill_parameters(&mut intent, &metadata);
    let state = State::before_first(log, protocol, metadata);
    let base = Arc::new(DeltaSnapshot::replacing(beneath, state)?);
    Ok(Creation { table, write: Write { base, intent, id: super::write_id(&at.env) } })
}

/// What both have need of.
fn joined(old: &Protocol, new: &Protocol) -> Protocol {
    let features: BTreeSet<String> = old.features().into_iter().chain(new.features()).collect();
    let reader = old.min_reader_version.max(new.min_reader_version);
    Protocol::lowest(&features).at_least(reader, old.min_writer_version.max(new.min_writer_version))
}

/// Makes the commit one that replaces the table, where its write began as such.
///
/// # Errors
/// Conflict if the table has changed since.
pub(super) async fn apply(draft: &mut Draft<'_>) -> Result<()> {
    let said = ours(draft.write.base.as_ref())?;
    let Some(beneath) = &said.replaces else { return Ok(()) };
    let onto = &draft.onto.state;
    if onto.version != beneath.state.version {
        let message = format!("version {} was committed while the table was being replaced", onto.version);
        return Err(Error::new(ErrorKind::Conflict, message).with_hint("look at it, and run the statement again"));
    }
    draft.protocol = said.state.protocol.clone();
    draft.metadata = said.state.metadata.clone();
    let now = Millis(draft.now);
    for batch in &onto.files().await?.batches {
        let whole = Whole::of(batch.clone()).await?;
        draft.files.removes.extend(batch.live_rows().map(|row| restore::remove(whole.add(row), now)));
    }
    Ok(())
}
