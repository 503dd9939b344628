//! Turns changes into the next entry of the log.
//!
//! 1. Collect the changes into one entry; a restore becomes the files to remove and to add.
//! 2. Apply the entry to the state it is staged on. What does not fit there is a conflict that nobody may publish.
//! 3. The publish step creates the entry under the next number, or, in a leased table, under a name of its own.
use std::collections::BTreeMap;

use lakebed_core::{
    Error, ErrorKind, Result,
    change::{Change, RowDelta},
    commit::{Publish, Staged, Write},
    table::Table,
    timeline::Action,
    version::{AsOf, RefKind},
};

use super::{
    entry::{Changed, Entry, Tag},
    layout, rules,
    snapshot::PondSnapshot,
    state,
    state::{CONSTRAINT, State},
    table::{PondTable, version_of},
};

pub(super) async fn stage(table: &PondTable, write: &Write, onto: &PondSnapshot, changes: &[Change]) -> Result<Staged> {
    let base = &onto.state;
    let leased = base.leased();
    let now = table.at.env.clock.now().0;
    let at = if leased { now.max(base.at + 1) } else { now.max(base.at) };
    let mut entry = begun(write, base, at);
    for change in changes {
        add(table, &mut entry, base, change).await?;
    }
    let version = if leased {
        layout::leased_version(lakebed_core::version::Millis(at), &write.id)
    } else {
        let number: u64 = base.version.parse().map_err(|_| Error::corrupt("versions of this table are numbers"))?;
        (number + 1).to_string()
    };
    let mut next = base.clone();
    next.apply(&version, &entry)?;
    next.check_readable()?;
    let publish = Publish::Create { path: layout::entry(&version), body: entry.bytes() };
    Ok(Staged { version: version_of(&next), publish })
}

fn begun(write: &Write, base: &State, at: i64) -> Entry {
    let intent = &write.intent;
    Entry {
        write_id: write.id.clone(),
        at,
        action: native_action(intent.action).into(),
        operation: intent.operation.clone(),
        application: intent.application.as_ref().map(|it| (it.id.clone(), it.version)),
        read_version: Some(base.version.clone()),
        blind: intent.action == Action::Append,
        data_change: !matches!(intent.action, Action::Compaction | Action::Clustering),
        metrics: intent.metrics.clone(),
        lineage: intent.lineage.clone(),
        user_metadata: intent.user_metadata.clone(),
        ..Entry::default()
    }
}

const ACTIONS: [(Action, &str); 13] = [
    (Action::Create, "create"),
    (Action::Append, "append"),
    (Action::Overwrite, "overwrite"),
    (Action::Delete, "delete"),
    (Action::RowDelta, "delta"),
    (Action::Compaction, "compact"),
    (Action::Clustering, "cluster"),
    (Action::Schema, "schema"),
    (Action::Properties, "properties"),
    (Action::Ref, "tag"),
    (Action::Restore, "restore"),
    (Action::Clean, "clean"),
    (Action::Rollback, "rollback"),
];

fn native_action(action: Action) -> &'static str {
    ACTIONS.iter().find(|(it, _)| *it == action).map_or("other", |(_, name)| name)
}

pub(super) fn action_of(native: &str) -> Action {
    ACTIONS.iter().find(|(_, name)| *name == native).map_or(Action::Other, |(it, _)| *it)
}

async fn add(table: &PondTable, entry: &mut Entry, base: &State, change: &Change) -> Result<()> {
    match change {
        Change::Rows(rows) => {
            add_rows(entry, rows);
            rules::put_bare(entry, base, rows)?;
        }
        Change::Schema(schema) => entry.schema = Some(schema.as_ref().clone()),
        Change::Properties { set, unset } => {
            entry.properties.extend(set.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
            entry.properties.extend(unset.iter().map(|name| (name.clone(), None)));
            state::check_properties(set.keys())?;
        }
        Change::AddConstraint { name, expression } => {
            entry.properties.insert(format!("{CONSTRAINT}{name}"), Some(expression.clone()));
        }
        Change::DropConstraint { name } => {
            entry.properties.insert(format!("{CONSTRAINT}{name}"), None);
        }
        Change::Upgrade { features } => entry.features.extend(features.iter().cloned()),
        Change::PutRef(put) => {
            if put.kind != RefKind::Tag {
                return Err(Error::unsupported("pond has tags, no branches"));
            }
            table.resolve(&AsOf::Version(put.version.clone())).await?;
            entry.tags.push(Tag {
                name: put.name.clone(),
                version: put.version.as_str().to_owned(),
                created_at: put.created_at.map_or(entry.at, |it| it.0),
                expires_at: put.expires_at.map(|it| it.0),
            });
        }
        Change::DropRef(name) => {
            if !base.tags.iter().any(|it| it.name == *name) {
                return Err(Error::not_found(format!("no tag `{name}`")));
            }
            entry.dropped_tags.push(name.clone());
        }
        Change::Restore(to) => restore(table, entry, base, to).await?,
        other => return Err(Error::unsupported(format!("pond cannot {other:?}"))),
    }
    Ok(())
}

fn add_rows(entry: &mut Entry, rows: &RowDelta) {
    entry.added.extend(rows.added.iter().cloned());
    entry.vectors.extend(rows.added_deletes.iter().cloned());
    entry.removed.extend(rows.removed.iter().cloned());
    entry.removed_vectors.extend(rows.removed_deletes.iter().cloned());
    entry.change_files.extend(rows.change_files.iter().map(|it| Changed {
        path: it.path.clone(),
        encoding: it.encoding,
        bytes: it.bytes,
        partition: it.partition.clone(),
    }));
    if !rows.added_deletes.is_empty() && !entry.features.contains(&"vectors".to_owned()) {
        entry.features.push("vectors".into());
    }
    entry.blind &= rows.removed.is_empty() && rows.added_deletes.is_empty();
}

/// The rows, schema and own properties of an earlier version, as one more version.
async fn restore(table: &PondTable, entry: &mut Entry, base: &State, to: &AsOf) -> Result<()> {
    let history = table.history().await?;
    let wanted = history.resolve(to)?.version.id;
    let old = history.states(Some(wanted.as_str()))?.pop().expect("the version was resolved");
    let same = |one: &state::Live, two: &state::Live| one.key() == two.key();
    for live in base.files.iter().filter(|it| !old.files.iter().any(|old| same(it, old))) {
        entry.removed.push(live.key());
    }
    for live in old.files.iter().filter(|it| !base.files.iter().any(|now| same(it, now))) {
        if table.storage().head(&live.file.path).await?.is_none() {
            let gone = format!("version {wanted} cannot be restored: {} is gone", live.file.path);
            return Err(Error::new(ErrorKind::Refused, gone));
        }
        entry.added.push(live.file.clone());
        entry.vectors.extend(live.vector.clone());
    }
    entry.schema = (old.schema != base.schema).then(|| old.schema.clone()).flatten();
    let mut properties: BTreeMap<String, Option<String>> =
        base.properties.keys().map(|name| (name.clone(), None)).collect();
    properties.extend(old.properties.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
    properties.retain(|name, value| base.properties.get(name) != value.as_ref());
    entry.properties.extend(properties);
    entry.blind = false;
    Ok(())
}
