//! The state that entries add up to.
use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{Schema, SchemaRef};
use lakebed_core::{
    Error, ErrorKind, Result,
    file::{DataFile, DeleteFile, FileKey},
    path::FilePath,
};
use serde::{Deserialize, Serialize};

use super::entry::{Entry, Placement, Tag};

/// Properties that Pond acts on. Other names that begin with `pond.` are refused.
pub(super) const MERGE: &str = "pond.merge";
pub(super) const ORDER: &str = "pond.order";
pub(super) const LEASED: &str = "pond.leased";
pub(super) const CHECKPOINT_INTERVAL: &str = "pond.checkpoint-interval";
/// `json`: data files that only Pond can decode.
pub(super) const FILES: &str = "pond.files";
/// Size at which a file of rows is closed.
pub(super) const TARGET_BYTES: &str = "pond.target-bytes";
/// `vectors`, or `rewrite`: how rows leave their files.
pub(super) const DELETES: &str = "pond.deletes";
/// `true`: files of changed rows are kept.
pub(super) const CHANGES: &str = "pond.changes";
pub(super) const APPEND_ONLY: &str = "pond.append-only";
/// Before the name of a constraint.
pub(super) const CONSTRAINT: &str = "constraint.";
const KNOWN: [&str; 9] =
    [MERGE, ORDER, LEASED, CHECKPOINT_INTERVAL, FILES, TARGET_BYTES, DELETES, CHANGES, APPEND_ONLY];
/// Features this build reads and writes.
const FEATURES: [&str; 2] = ["vectors", "tags"];

/// Everything a version is. Also what a checkpoint holds, word for word.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) version: String,
    pub(super) parent: Option<String>,
    pub(super) at: i64,
    pub(super) schema_id: i64,
    pub(super) schema: Option<Schema>,
    pub(super) placement: Placement,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) features: Vec<String>,
    pub(super) files: Vec<Live>,
    pub(super) tags: Vec<Tag>,
    pub(super) applications: BTreeMap<String, i64>,
    pub(super) next_row_id: u64,
}

/// A data file with the vector that is on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Live {
    pub(super) file: DataFile,
    pub(super) vector: Option<DeleteFile>,
    pub(super) added_in: String,
}

impl Live {
    pub(super) fn key(&self) -> FileKey {
        FileKey { path: self.file.path.clone(), vector: self.vector.as_ref().and_then(|it| it.id.clone()) }
    }

    /// Rows that are neither deleted nor unknown.
    pub(super) fn rows(&self) -> Option<u64> {
        let gone = self.vector.as_ref().map_or(Some(0), |it| it.rows)?;
        self.file.stats.rows?.checked_sub(gone)
    }
}

impl State {
    /// The state after `entry`, which has become version `version`.
    ///
    /// Removals come first, then files, then vectors on them.
    ///
    /// # Errors
    /// `Conflict` if the entry removes what is not there: whoever stages it lost a race, whoever reads it has a
    /// table that is corrupt.
    pub(super) fn apply(&mut self, version: &str, entry: &Entry) -> Result<()> {
        self.parent = (!self.version.is_empty()).then(|| std::mem::take(&mut self.version));
        self.version = version.to_owned();
        self.at = self.at.max(entry.at);
        for key in &entry.removed {
            let place = self.files.iter().position(|it| it.key() == *key);
            self.files.remove(place.ok_or_else(|| gone(version, &key.path))?);
        }
        for key in &entry.removed_vectors {
            let had = self.files.iter_mut().find(|it| it.key() == *key && it.vector.is_some());
            had.ok_or_else(|| gone(version, &key.path))?.vector = None;
        }
        for file in &entry.added {
            self.add(version, file)?;
        }
        for vector in &entry.vectors {
            let target = vector.targets.first().ok_or_else(|| Error::corrupt("a vector without a data file"))?;
            let bare = self.files.iter_mut().find(|it| it.file.path == *target && it.vector.is_none());
            bare.ok_or_else(|| gone(version, target))?.vector = Some(vector.clone());
        }
        self.apply_metadata(entry);
        Ok(())
    }

    fn add(&mut self, version: &str, file: &DataFile) -> Result<()> {
        if self.files.iter().any(|it| it.file.path == file.path) {
            return Err(Error::new(ErrorKind::Conflict, format!("version {version} adds {} a second time", file.path)));
        }
        let mut file = file.clone();
        if file.first_row_id.is_none() {
            file.first_row_id = Some(self.next_row_id);
            file.row_version = version.parse().ok();
            self.next_row_id = self.next_row_id.saturating_add(file.stats.rows.unwrap_or(0));
        }
        self.files.push(Live { file, vector: None, added_in: version.to_owned() });
        Ok(())
    }

    fn apply_metadata(&mut self, entry: &Entry) {
        if let Some(schema) = &entry.schema {
            self.schema_id += i64::from(self.schema.is_some());
            self.schema = Some(schema.clone());
        }
        if let Some(placement) = &entry.layout {
            self.placement = placement.clone();
        }
        for (name, value) in &entry.properties {
            match value {
                Some(value) => self.properties.insert(name.clone(), value.clone()),
                None => self.properties.remove(name),
            };
        }
        for feature in &entry.features {
            if !self.features.contains(feature) {
                self.features.push(feature.clone());
            }
        }
        self.tags.retain(|it| !entry.dropped_tags.contains(&it.name));
        for tag in &entry.tags {
            self.tags.retain(|it| it.name != tag.name);
            self.tags.push(tag.clone());
        }
        if let Some((id, version)) = &entry.application {
            self.applications.insert(id.clone(), *version);
        }
    }

    /// # Errors
    /// `Unsupported` with the name of the first feature this build does not know.
    pub(super) fn check_readable(&self) -> Result<()> {
        match self.features.iter().find(|it| !FEATURES.contains(&it.as_str())) {
            Some(feature) => Err(Error::unsupported(format!("table needs feature `{feature}`"))),
            None => check_properties(self.properties.keys()),
        }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::new(self.schema.clone().unwrap_or_else(Schema::empty))
    }

    pub(super) fn leased(&self) -> bool {
        self.properties.get(LEASED).is_some_and(|it| it == "true")
    }
}

fn gone(version: &str, path: &FilePath) -> Error {
    Error::new(ErrorKind::Conflict, format!("version {version} removes {path}, which is not there that way"))
}

pub(super) fn check_properties<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    for name in names {
        if name.starts_with("pond.") && !KNOWN.contains(&name.as_str()) {
            return Err(Error::unsupported(format!("table has property `{name}`, which this build does not know")));
        }
    }
    Ok(())
}
