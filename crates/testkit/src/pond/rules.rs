//! What a writer of rows must obey, as a pond table's properties say it.
use std::sync::Arc;

use arrow_schema::Schema;
use lakebed_core::{
    Error, ErrorKind, Result,
    change::RowDelta,
    conflict::Isolation,
    file::{DeleteFile, DeletePlace},
    path::FilePath,
    write::{Compression, Constraint, FileShape, NewVector, RowDeletes, WriteRules},
};

use super::{
    entry::Entry,
    layout,
    state::{APPEND_ONLY, CHANGES, CONSTRAINT, DELETES, FILES, State, TARGET_BYTES},
    table::PondTable,
    vector::Vector,
};
use crate::files::put_fresh;

/// Vectors of up to this many rows lie inline.
const MOST_INLINE_ROWS: u64 = 2;

pub(super) fn of(state: &State) -> Result<WriteRules> {
    if state.properties.get(FILES).is_some_and(|it| it == "json") {
        return Err(Error::unsupported("only Pond itself writes tables with `pond.files`"));
    }
    let flag = |name: &str| state.properties.get(name).is_some_and(|it| it == "true");
    let constraint = |(name, expression): (&String, &String)| {
        let name = name.strip_prefix(CONSTRAINT)?.to_owned();
        Some(Constraint { name, expression: expression.clone(), null_passes: true })
    };
    Ok(WriteRules {
        files: shape(state)?,
        constraints: state.properties.iter().filter_map(constraint).collect(),
        deletes: match state.properties.get(DELETES).map(String::as_str) {
            Some("rewrite") => RowDeletes::Rewrite,
            _ => RowDeletes::Vectors,
        },
        change_folder: flag(CHANGES).then(|| "changes".to_owned()),
        append_only: flag(APPEND_ONLY),
        isolation: Isolation::Serializable,
    })
}

fn shape(state: &State) -> Result<FileShape> {
    let schema = state.schema();
    let stored = schema.fields().iter().filter(|it| !state.placement.partition.contains(it.name()));
    let stored: Vec<_> = stored.cloned().collect();
    let target_bytes = state.properties.get(TARGET_BYTES).map_or(Ok(1 << 20), |it| it.parse());
    Ok(FileShape {
        columns: stored.iter().map(|it| it.name().clone()).collect(),
        schema: Arc::new(Schema::new(stored)),
        folder: "data".into(),
        partition_folders: None,
        empty_partition_is_null: false,
        random_prefix: 0,
        target_bytes: target_bytes.map_err(|_| Error::invalid(format!("`{TARGET_BYTES}` is no number")))?,
        compression: Compression::Snappy,
        packed_integers: true,
        indexed_columns: None,
    })
}

/// Writes vectors; small ones lie inline.
pub(super) async fn write_vectors(table: &PondTable, vectors: Vec<NewVector>) -> Result<Vec<DeleteFile>> {
    let mut written = Vec::with_capacity(vectors.len());
    for NewVector { target, rows } in vectors {
        let id = format!("{:032x}", table.at.env.ids.uuid());
        let vector = Vector { rows };
        if vector.rows.len() <= MOST_INLINE_ROWS {
            written.push(vector.inline(&id, &target));
            continue;
        }
        let path = layout::vector(&id);
        put_fresh(&table.at.storage, &path, vector.bytes()).await?;
        written.push(vector.placed(&id, &target, DeletePlace::File(FilePath::below(path))));
    }
    Ok(written)
}

/// Files that get a vector go under their old one, and come again bare: the vector is put on them then.
pub(super) fn put_bare(entry: &mut Entry, base: &State, rows: &RowDelta) -> Result<()> {
    for target in rows.added_deletes.iter().filter_map(|it| it.targets.first()) {
        if rows.added.iter().any(|it| it.path == *target) {
            continue;
        }
        let live = base.files.iter().find(|it| it.file.path == *target).ok_or_else(|| {
            Error::new(ErrorKind::Conflict, format!("{target} is not there: no vector can be put on it"))
        })?;
        if !rows.removed.contains(&live.key()) {
            entry.removed.push(live.key());
        }
        entry.added.push(live.file.clone());
    }
    Ok(())
}
