//! One entry of the log: what a version changed, in Pond's own words.
use std::collections::BTreeMap;

use arrow_schema::Schema;
use bytes::Bytes;
use lakebed_core::{
    Error, Result,
    expr::{ColumnPath, Scalar},
    file::{DataFile, DeleteFile, Encoding, FileKey},
    format::CreateTable,
    path::FilePath,
    table::{Bucket, Layout, PartitionField, Transform},
    version::Millis,
};
use serde::{Deserialize, Serialize};

use super::{layout, state};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) write_id: String,
    pub(super) at: i64,
    pub(super) action: String,
    pub(super) operation: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) added: Vec<DataFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) vectors: Vec<DeleteFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) removed: Vec<FileKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) removed_vectors: Vec<FileKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) change_files: Vec<Changed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) schema: Option<Schema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) layout: Option<Placement>,
    /// A null value unsets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) properties: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) features: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<Tag>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dropped_tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) application: Option<(String, i64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) read_version: Option<String>,
    pub(super) blind: bool,
    pub(super) data_change: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) metrics: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lineage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) user_metadata: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) created_at: i64,
    pub(super) expires_at: Option<i64>,
}

/// A file of changed rows, with their kind in `_change_type`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Changed {
    pub(super) path: FilePath,
    pub(super) encoding: Encoding,
    pub(super) bytes: u64,
    pub(super) partition: Vec<(String, Option<Scalar>)>,
}

/// Where rows lie: the part of a [`Layout`] that Pond has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Placement {
    pub(super) partition: Vec<String>,
    pub(super) key: Vec<String>,
    pub(super) buckets: Option<u32>,
}

impl Placement {
    fn of(layout: &Layout) -> Result<Self> {
        if let Some(field) = layout.partition.iter().find(|it| it.transform != Transform::Identity) {
            return Err(Error::unsupported(format!("pond partitions by columns only, not by {:?}", field.transform)));
        }
        let names = |paths: &[ColumnPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
        Ok(Self {
            partition: layout.partition.iter().map(|it| it.source.to_string()).collect(),
            key: names(&layout.key),
            buckets: layout.bucket.as_ref().map(|it| it.count),
        })
    }

    pub(super) fn layout(&self) -> Layout {
        let top = |names: &[String]| names.iter().map(ColumnPath::top).collect::<Vec<_>>();
        let partition = self.partition.iter().map(|name| PartitionField {
            name: name.clone(),
            source: ColumnPath::top(name),
            transform: Transform::Identity,
        });
        let bucket = self.buckets.map(|count| Bucket { key: top(&self.key), count });
        Layout { partition: partition.collect(), key: top(&self.key), sort: Vec::new(), bucket }
    }
}

impl Entry {
    pub(super) fn creation(table: &CreateTable, at: Millis, write_id: String) -> Result<Self> {
        let properties: BTreeMap<_, _> =
            table.properties.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        state::check_properties(properties.keys())?;
        Ok(Self {
            write_id,
            at: at.0,
            action: "create".into(),
            operation: "CREATE TABLE".into(),
            schema: Some(table.schema.as_ref().clone()),
            layout: Some(Placement::of(&table.layout)?),
            properties,
            blind: true,
            ..Self::default()
        })
    }

    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).map_err(|it| Error::corrupt(format!("{path}: {it}")))
    }

    pub(super) fn bytes(&self) -> Bytes {
        serde_json::to_vec(self).expect("entries are plain data with text keys").into()
    }

    /// Where this entry lies as version `number` of a plain table, or under its own name in a leased one.
    pub(super) fn path(&self, number: u64) -> String {
        layout::entry(&number.to_string())
    }
}
