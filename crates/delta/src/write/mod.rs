//! Writing: from changes to the next commit.
//!
//! 1. *Begin*: the newest snapshot as the log has it, and an id. A table that asks for what this build does not write is
//!    refused here, by name, before a byte is written ([`rules`]).
//! 2. *Files*: the engine writes them as [`rules`] says; [`vectors`] writes what takes rows from files that stay.
//! 3. *Stage*: the changes become actions on top of one version, in an order of their own ([`stage`]): upgrades first, since
//!    what follows may need them, then properties, schema, constraints and tags, rows last, since they are described in
//!    the schema that the commit makes. The text is put together by [`draft`], `commitInfo` first ([`info`]).
//! 4. Publishing and retrying are core's ([`lakebed_core::commit`]). Each time a commit is staged anew, everything that
//!    depends on the version below is made anew: the time in the commit, the files looked up, the application's version.
//! 5. A commit that won is looked at once: log clean-up may have freed its slot before ([`landing`]).
//!
//! The bytes of a commit that won are remembered until the next look at the log ([`own`]), which then need not read them.
//! Spec: Delta PROTOCOL.md, "Actions", "Requirements for Writers".
use std::sync::Arc;

use arrow_schema::SchemaRef;
use lakebed_core::{
    Error, Result,
    change::Change,
    commit::{Staged, Write},
    env::Env,
    table::Snapshot,
    version::Millis,
};
use uuid::Uuid;

use self::draft::Draft;
use crate::{
    snapshot::DeltaSnapshot,
    spec::Action,
    state::Head,
    upkeep::{restore, tags},
};

pub(crate) mod create;
pub(crate) mod draft;
pub(crate) mod landing;
pub(crate) mod own;
pub(crate) mod path;
pub(crate) mod replace;
pub(crate) mod rules;
pub(crate) mod upgrade;
pub(crate) mod vectors;

mod constraints;
mod evolve;
mod files;
mod info;
mod settings;
mod stats;

/// An id that no other write has.
pub(crate) fn write_id(env: &Env) -> String {
    Uuid::from_u128(env.ids.uuid()).to_string()
}

pub(crate) fn no_branches(branch: &str) -> Error {
    Error::unsupported(format!("a Delta table has no branches, so none called `{}`", branch.escape_debug()))
}

/// The snapshot behind the trait.
pub(crate) fn ours(snapshot: &dyn Snapshot) -> Result<&DeltaSnapshot> {
    let any: &dyn std::any::Any = snapshot;
    any.downcast_ref().ok_or_else(|| Error::internal("a write of a Delta table stands on a snapshot of another format"))
}

/// The commit of `changes` on top of `onto`.
///
/// # Errors
/// Conflict if the changes do not fit there; invalid, refused or unsupported if they never could.
pub(crate) async fn stage(
    head: &Head,
    env: &Env,
    write: &Write,
    onto: &DeltaSnapshot,
    changes: &[Change],
) -> Result<Staged> {
    rules::check(&onto.state.protocol, &onto.state.metadata, &onto.schema)?;
    let mut draft = Draft::new(write, onto, env);
    replace::apply(&mut draft).await?;
    upgrade::apply(&mut draft, changes)?;
    settings::apply(&mut draft, changes)?;
    evolve::apply(&mut draft, changes).await?;
    constraints::apply(&mut draft, changes)?;
    if let Some(tags) = tags::action(head, &onto.state, &draft.protocol, changes, Millis(draft.now)).await? {
        draft.take(vec![Action::DomainMetadata(tags)])?;
    }
    for change in changes {
        if let Change::Restore(as_of) = change {
            draft.take(restore::actions(head, &onto.state, as_of, Millis(draft.now)).await?)?;
        }
    }
    draft.rows(changes).await?;
    draft.finish().await
}

/// The snapshot that `write` would stand on if the schema were `schema`.
pub(crate) async fn evolved(env: &Env, write: &Write, schema: &SchemaRef) -> Result<Arc<DeltaSnapshot>> {
    let onto = ours(write.base.as_ref())?;
    let mut draft = Draft::new(write, onto, env);
    evolve::apply(&mut draft, &[Change::Schema(Arc::clone(schema))]).await?;
    let Draft { protocol, metadata, .. } = draft;
    Ok(Arc::new(DeltaSnapshot::new(Arc::new(onto.state.evolved(protocol, metadata)))?))
}
