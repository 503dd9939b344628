//! Making the rows of a table those of an earlier version again, as a new version.
//!
//! 1. Files that are live now and were not then are removed; those that were live then and are not now are added again,
//!    with all that was said of them. A file under another vector is both.
//! 2. What is added again must be there: a vacuum may have been faster.
//! 3. Schema, partition columns and properties become those of that version: its files can be read with no others. What
//!    must never go back stays: column ids given, since when commits carry their time, which checkpoints are protected.
//! 4. The protocol stays. If that version used a feature that the table has lost since, it cannot be restored.
//!
//! Application versions, metadata domains and tags are not touched: they tell what happened, not what the rows are.
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Error, ErrorKind, Result,
    path::FilePath,
    version::{AsOf, Millis},
};

use super::{live::Whole, named};
use crate::{
    properties::Properties,
    spec::{Action, Add, Metadata, Remove},
    state::{Head, State, key},
    timeline::{number, resolve},
};

/// Files looked for at once.
const AT_ONCE: usize = 32;
/// So many missing files are named.
const NAMED: usize = 10;

/// Properties that stay as they are now.
const FIXED: [&str; 4] = [
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.requireCheckpointProtectionBeforeVersion",
];
const MAX_COLUMN_ID: &str = "delta.columnMapping.maxColumnId";

/// The actions that give the table, as it is in `onto`, the rows of `as_of`: metadata first, if it changes. `now` is when
/// files are removed.
///
/// # Errors
/// Not found if there is no such version; refused, naming them, if files of it are gone, or rows of a table that only
/// grows would go; unsupported if it needs a feature the table has no longer.
pub(crate) async fn actions(head: &Head, onto: &State, as_of: &AsOf, now: Millis) -> Result<Vec<Action>> {
    let version = number(&resolve::resolve(head, as_of).await?.version.id)?;
    let then = head.at(version).await?;
    let then = then.confirmed().await?.map_or(then, Arc::new);
    then.readable()?;
    check_features(onto, &then)?;
    let (removed, added) = difference(onto, &then).await?;
    if !removed.is_empty() && Properties(&onto.metadata.configuration).flag("delta.appendOnly")? {
        let message = format!("the table only grows (`delta.appendOnly`), and version {version} has fewer rows");
        return Err(Error::new(ErrorKind::Refused, message));
    }
    check_there(onto, version, &added).await?;
    let metadata = metadata(&onto.metadata, &then.metadata);
    let metadata = (metadata != onto.metadata).then_some(Action::Metadata(metadata));
    let removed = removed.into_iter().map(|it| Action::Remove(remove(it, now)));
    Ok(metadata.into_iter().chain(removed).chain(added.into_iter().map(Action::Add)).collect())
}

fn check_features(onto: &State, then: &State) -> Result<()> {
    let lost: Vec<String> = then.protocol.features().into_iter().filter(|it| !onto.protocol.supports(it)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let message =
        format!("version {} used features that the table has lost since: `{}`", then.version, lost.join("`, `"));
    Err(Error::unsupported(message).with_hint("add them to the table first"))
}

/// What is live in the one and not in the other, and the other way round; in the order of the lists.
async fn difference(onto: &State, then: &State) -> Result<(Vec<Add>, Vec<Add>)> {
    let policy = onto.log.storage().policy();
    let keys = async |state: &State| {
        let mut keys = HashMap::new();
        for (at, batch) in state.files().await?.batches.iter().enumerate() {
            let files = batch.files();
            for row in batch.live_rows() {
                let key = key::of_row(policy, files.path.value(row), files.vectors.as_ref(), row).into_owned();
                keys.insert(key, (at, row));
            }
        }
        Ok::<_, Error>(keys)
    };
    let (mut now, mut before) = (keys(onto).await?, keys(then).await?);
    now.retain(|key, _| before.remove(key).is_none());
    Ok((adds(onto, now.into_values()).await?, adds(then, before.into_values()).await?))
}

/// The files at these places, a batch and a row in it.
async fn adds(state: &State, places: impl Iterator<Item = (usize, usize)>) -> Result<Vec<Add>> {
    let mut wanted: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (batch, row) in places {
        wanted.entry(batch).or_default().insert(row);
    }
    let files = state.files().await?;
    let mut adds = Vec::new();
    for (batch, rows) in wanted {
        let whole = Whole::of(files.batches[batch].clone()).await?;
        adds.extend(rows.into_iter().map(|row| whole.add(row)));
    }
    Ok(adds)
}

/// The removal of a live file.
pub(crate) fn remove(add: Add, now: Millis) -> Remove {
    Remove {
        path: add.path,
        deletion_timestamp: Some(now.0),
        data_change: true,
        extended_file_metadata: Some(true),
        partition_values: Some(add.partition_values),
        size: Some(add.size),
        stats: add.stats,
        tags: add.tags,
        deletion_vector: add.deletion_vector,
        base_row_id: add.base_row_id,
        default_row_commit_version: add.default_row_commit_version,
    }
}

async fn check_there(onto: &State, version: u64, added: &[Add]) -> Result<()> {
    let storage = onto.log.storage();
    let mut places: BTreeSet<FilePath> = BTreeSet::new();
    for add in added {
        // A place that the table may not name fails here, as it would when read.
        storage.policy().resolve_uri(&add.path)?;
        places.extend(named::of_file(storage.policy(), &add.path, add.deletion_vector.as_ref())?);
    }
    let looked = stream::iter(places).map(|path| async move {
        let there = storage.head(&path).await?.is_some();
        Ok::<_, Error>((!there).then_some(path))
    });
    let gone: Vec<Option<FilePath>> = looked.buffered(AT_ONCE).try_collect().await?;
    let gone: Vec<FilePath> = gone.into_iter().flatten().collect();
    if gone.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = gone.iter().take(NAMED).map(|it| it.as_str().escape_debug().to_string()).collect();
    let more = gone.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("{} files of version {version} are gone: {}{more}", gone.len(), names.join(", "));
    Err(Error::new(ErrorKind::Refused, message)
        .with_hint("a vacuum removed them; `lakebed log` shows which versions can be read"))
}

/// The metadata of `then`, for a table that now has those of `now`.
fn metadata(now: &Metadata, then: &Metadata) -> Metadata {
    let mut configuration = then.configuration.clone();
    configuration.retain(|key, _| !FIXED.iter().any(|it| key.eq_ignore_ascii_case(it)));
    let configuration = with_fixed(configuration, now, highest_column_id(now).max(highest_column_id(then)));
    Metadata {
        schema_string: then.schema_string.clone(),
        partition_columns: then.partition_columns.clone(),
        configuration,
        ..now.clone()
    }
}

/// `configuration` with the properties of `now` that stay whatever becomes of a table, unless it says them itself, and
/// with the highest column id, where ids were given.
pub(crate) fn with_fixed(
    mut configuration: BTreeMap<String, String>,
    now: &Metadata,
    highest: i64,
) -> BTreeMap<String, String> {
    for name in FIXED {
        if configuration.keys().any(|key| key.eq_ignore_ascii_case(name)) {
            continue;
        }
        let kept = now.configuration.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        configuration.extend(kept.map(|(key, value)| (key.clone(), value.clone())));
    }
    let own = Properties(&configuration).count(MAX_COLUMN_ID).ok().flatten().unwrap_or(0);
    if highest.max(own) > 0 {
        configuration.insert(MAX_COLUMN_ID.to_owned(), highest.max(own).to_string());
    }
    configuration
}

/// The highest id that a column of the table was given; 0 if none was.
pub(crate) fn highest_column_id(of: &Metadata) -> i64 {
    Properties(&of.configuration).count(MAX_COLUMN_ID).ok().flatten().unwrap_or(0)
}
