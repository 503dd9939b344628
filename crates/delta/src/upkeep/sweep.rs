//! The files of a table's folder that a sweep looks at.
//!
//! A name that starts with `_` or `.` is not rows, nor is anything in a folder of such a name, except partition folders
//! (`_day=…`), `_change_data` and `_delta_index`. What another table keeps in here is never looked at: a log of its own
//! below the root ends the sweep.
//! Spec: none; the names are those the reference implementation sweeps.
use futures::TryStreamExt;
use lakebed_core::{
    Error, ErrorKind, Result,
    storage::{Object, Storage},
};

use crate::{
    layout::LOG,
    schema::{TableSchema, physical_name},
    state::State,
};

/// Which files of one table a sweep may look at.
#[derive(Debug)]
pub(super) struct Sweep {
    /// Names of partition columns, logical and physical.
    partition: Vec<String>,
    /// Whether Iceberg's metadata lie beside the rows.
    iceberg: bool,
}

impl Sweep {
    pub(super) fn of(state: &State) -> Self {
        let mut partition = state.metadata.partition_columns.clone();
        if let Ok(schema) = TableSchema::of(&state.protocol, &state.metadata) {
            partition.extend(schema.partition_fields().map(|it| physical_name(it).to_owned()));
        }
        let iceberg = state.protocol.features().iter().any(|it| it.starts_with("icebergCompat"));
        Self { partition, iceberg }
    }

    /// Whether the file may be deleted at all.
    pub(super) fn sees(&self, path: &str) -> bool {
        let foreign = self.iceberg && path.starts_with("metadata/");
        !foreign && path.split('/').all(|it| !self.hides(it))
    }

    fn hides(&self, name: &str) -> bool {
        name.starts_with(['_', '.'])
            && !name.starts_with("_change_data")
            && !name.starts_with("_delta_index")
            && !self.partition.iter().any(|it| name.strip_prefix(it.as_str()).is_some_and(|it| it.starts_with('=')))
    }

    /// The files seen, and how many links were passed over.
    ///
    /// # Errors
    /// Refused, naming it, where another table's log lies below the root.
    pub(super) async fn each(&self, storage: &Storage, mut found: impl FnMut(Object)) -> Result<usize> {
        let mut links = 0;
        let mut listed = storage.list_all("");
        loop {
            let object = match listed.try_next().await {
                Ok(None) => return Ok(links),
                Ok(Some(object)) => object,
                // The listing goes on after a link: nobody reads through it, and nobody deletes it.
                Err(err) if err.kind() == ErrorKind::Refused => {
                    links += 1;
                    continue;
                }
                Err(err) => return Err(err),
            };
            if let Some(at) = object.path.find(&format!("/{LOG}/")) {
                let inner = object.path[..at].escape_debug().to_string();
                let message = format!("`{inner}` below the table is a table of its own");
                return Err(Error::new(ErrorKind::Refused, message)
                    .with_hint("move it elsewhere: a sweep cannot tell its files from those of this table"));
            }
            if self.sees(&object.path) {
                found(object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_not_rows() {
        let sweep = Sweep { partition: vec!["_day".into(), "b".into()], iceberg: false };
        for (path, seen) in [
            ("part-0.parquet", true),
            ("_delta_log/00000000000000000000.json", false),
            ("_tmp/part-0.parquet", false),
            (".part-0.parquet.crc", false),
            ("a/.hidden/part-0.parquet", false),
            ("a/_started", false),
            ("_day=1/part-0.parquet", true),
            ("_day/part-0.parquet", false),
            ("_days=1/part-0.parquet", false),
            ("_change_data/cdc-0.parquet", true),
            ("_change_data/_x/cdc-0.parquet", false),
            ("_delta_index/x", true),
            ("metadata/v1.metadata.json", true),
        ] {
            assert_eq!(sweep.sees(path), seen, "{path}");
        }
        let sweep = Sweep { iceberg: true, ..sweep };
        assert!(!sweep.sees("metadata/v1.metadata.json") && sweep.sees("metadata.parquet"));
    }
}
