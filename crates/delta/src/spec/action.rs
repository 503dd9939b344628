//! Actions: the lines of a commit.
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Map, Value};

/// One line of a commit or JSON checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Protocol(Protocol),
    Metadata(Metadata),
    Add(Add),
    Remove(Remove),
    Cdc(Cdc),
    Txn(Txn),
    DomainMetadata(DomainMetadata),
    CommitInfo(CommitInfo),
    Sidecar(Sidecar),
    CheckpointMetadata(CheckpointMetadata),
    /// An action this build does not know; readers ignore it.
    Unknown(String),
}

impl Action {
    /// The action's name in the log.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Protocol(_) => "protocol",
            Self::Metadata(_) => "metaData",
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Cdc(_) => "cdc",
            Self::Txn(_) => "txn",
            Self::DomainMetadata(_) => "domainMetadata",
            Self::CommitInfo(_) => "commitInfo",
            Self::Sidecar(_) => "sidecar",
            Self::CheckpointMetadata(_) => "checkpointMetadata",
            Self::Unknown(name) => name,
        }
    }
}

impl Serialize for Action {
    /// As a line of a commit: an object with one member, the action's name. An unknown action has lost its content.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = self.name();
        let mut line = serializer.serialize_map(Some(1))?;
        match self {
            Self::Protocol(it) => line.serialize_entry(name, it)?,
            Self::Metadata(it) => line.serialize_entry(name, it)?,
            Self::Add(it) => line.serialize_entry(name, it)?,
            Self::Remove(it) => line.serialize_entry(name, it)?,
            Self::Cdc(it) => line.serialize_entry(name, it)?,
            Self::Txn(it) => line.serialize_entry(name, it)?,
            Self::DomainMetadata(it) => line.serialize_entry(name, it)?,
            Self::CommitInfo(it) => line.serialize_entry(name, it)?,
            Self::Sidecar(it) => line.serialize_entry(name, it)?,
            Self::CheckpointMetadata(it) => line.serialize_entry(name, it)?,
            Self::Unknown(_) => line.serialize_entry(name, &Map::new())?,
        }
        line.end()
    }
}

impl Protocol {
    /// Whether both ask the same of readers and writers; the order of features says nothing.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let set = |it: &Option<Vec<String>>| it.iter().flatten().cloned().collect::<BTreeSet<_>>();
        (self.min_reader_version, self.min_writer_version) == (other.min_reader_version, other.min_writer_version)
            && set(&self.reader_features) == set(&other.reader_features)
            && set(&self.writer_features) == set(&other.writer_features)
    }
}

impl Metadata {
    /// Whether both describe the same rows.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.id == other.id
            && self.schema_string == other.schema_string
            && self.partition_columns == other.partition_columns
            && self.configuration == other.configuration
            && self.format.provider == other.format.provider
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ActionVisitor)
    }
}

struct ActionVisitor;

impl<'de> Visitor<'de> for ActionVisitor {
    type Value = Action;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one action")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Action, A::Error> {
        let mut found = None;
        let mut unknown = String::new();
        while let Some(name) = map.next_key::<String>()? {
            // A line holds one action; writers that spell the others as null exist.
            let next = match name.as_str() {
                "protocol" => map.next_value::<Option<Protocol>>()?.map(Action::Protocol),
                "metaData" => map.next_value::<Option<Metadata>>()?.map(Action::Metadata),
                "add" => map.next_value::<Option<Add>>()?.map(Action::Add),
                "remove" => map.next_value::<Option<Remove>>()?.map(Action::Remove),
                "cdc" => map.next_value::<Option<Cdc>>()?.map(Action::Cdc),
                "txn" => map.next_value::<Option<Txn>>()?.map(Action::Txn),
                "domainMetadata" => map.next_value::<Option<DomainMetadata>>()?.map(Action::DomainMetadata),
                "commitInfo" => map.next_value::<Option<CommitInfo>>()?.map(Action::CommitInfo),
                "sidecar" => map.next_value::<Option<Sidecar>>()?.map(Action::Sidecar),
                "checkpointMetadata" => map.next_value::<Option<CheckpointMetadata>>()?.map(Action::CheckpointMetadata),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    unknown = name;
                    None
                }
            };
            found = found.or(next);
        }
        Ok(found.unwrap_or(Action::Unknown(unknown)))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Protocol {
    pub(crate) min_reader_version: i32,
    pub(crate) min_writer_version: i32,
    /// Only from reader version 3 on; ignored below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reader_features: Option<Vec<String>>,
    /// Only from writer version 7 on; ignored below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) writer_features: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) format: Format,
    pub(crate) schema_string: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(crate) partition_columns: Vec<String>,
    #[serde(default, deserialize_with = "strings_without_nulls")]
    pub(crate) configuration: BTreeMap<String, String>,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created_time: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Format {
    pub(crate) provider: String,
    #[serde(default, deserialize_with = "strings_without_nulls")]
    pub(crate) options: BTreeMap<String, String>,
}

impl Default for Format {
    fn default() -> Self {
        Self { provider: "parquet".to_owned(), options: BTreeMap::new() }
    }
}

/// A data file becomes part of the table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Add {
    /// Percent-encoded, relative to the table's root or absolute.
    pub(crate) path: String,
    /// By physical column name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    pub(crate) size: i64,
    #[serde(default)]
    pub(crate) modification_time: i64,
    #[serde(default = "yes")]
    pub(crate) data_change: bool,
    /// Statistics as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<BTreeMap<String, Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<DeletionVectorDescriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_row_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default_row_commit_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clustering_provider: Option<String>,
}

/// A data file is no longer part of the table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remove {
    pub(crate) path: String,
    /// Milliseconds since the epoch; missing counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_timestamp: Option<i64>,
    #[serde(default = "yes")]
    pub(crate) data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extended_file_metadata: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) partition_values: Option<BTreeMap<String, Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stats: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<BTreeMap<String, Option<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deletion_vector: Option<DeletionVectorDescriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_row_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default_row_commit_version: Option<i64>,
}

/// A file of changed rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cdc {
    pub(crate) path: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(crate) partition_values: BTreeMap<String, Option<String>>,
    pub(crate) size: i64,
    #[serde(default)]
    pub(crate) data_change: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletionVectorDescriptor {
    /// `u` (named by UUID), `i` (inline) or `p` (absolute path).
    pub(crate) storage_type: String,
    pub(crate) path_or_inline_dv: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<i32>,
    pub(crate) size_in_bytes: i32,
    pub(crate) cardinality: i64,
}

impl DeletionVectorDescriptor {
    /// What tells this vector from others on the same file: `u…@offset`.
    pub(crate) fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline_dv),
            None => format!("{}{}", self.storage_type, self.path_or_inline_dv),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Txn {
    pub(crate) app_id: String,
    pub(crate) version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_updated: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DomainMetadata {
    pub(crate) domain: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(crate) configuration: String,
    #[serde(default)]
    pub(crate) removed: bool,
}

/// Who made the commit and how. Free-form but for a few fields; the whole is in `rest`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommitInfo {
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<i64>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) in_commit_timestamp: Option<i64>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) operation: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) operation_parameters: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) operation_metrics: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) read_version: Option<i64>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) isolation_level: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) is_blind_append: Option<bool>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) user_name: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) user_metadata: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) engine_info: Option<String>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub(crate) txn_id: Option<String>,
    /// Every other field, as written.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

/// A file of a V2 checkpoint, in `_delta_log/_sidecars/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sidecar {
    pub(crate) path: String,
    pub(crate) size_in_bytes: i64,
    #[serde(default)]
    pub(crate) modification_time: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckpointMetadata {
    pub(crate) version: i64,
}

fn yes() -> bool {
    true
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A map of strings; entries that are null are as if absent.
fn strings_without_nulls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let read = Option::<BTreeMap<String, Option<String>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(read.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

/// A field that is free-form by the protocol: another type than expected is as if absent.
fn lenient<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Action {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_add_needs_a_path_and_a_size_only() {
        let Action::Add(add) = parse(r#"{"add":{"path":"a%20b","size":7,"new":{"x":1}}}"#) else { panic!("no add") };
        assert_eq!((add.path.as_str(), add.size, add.data_change), ("a%20b", 7, true));
        assert!(serde_json::from_str::<Action>(r#"{"add":{"size":7}}"#).is_err());
    }

    #[test]
    fn unknown_actions_are_named_and_kept_apart() {
        assert_eq!(parse(r#"{"some_new_action":{"a":[1,{"b":2}]}}"#), Action::Unknown("some_new_action".into()));
        assert_eq!(parse("{}"), Action::Unknown(String::new()));
    }

    #[test]
    fn a_vector_is_known_by_type_place_and_offset() {
        let vector = |offset| DeletionVectorDescriptor {
            storage_type: "u".into(),
            path_or_inline_dv: "ab^-".into(),
            offset,
            ..Default::default()
        };
        assert_eq!(vector(Some(1)).unique_id(), "uab^-@1");
        assert_eq!(vector(None).unique_id(), "uab^-");
    }

    #[test]
    fn commit_info_is_free_form() {
        let Action::CommitInfo(info) = parse(
            r#"{"commitInfo":{"timestamp":"soon","operation":"WRITE","operationParameters":{"mode":"Append"},"x":{"y":1}}}"#,
        ) else {
            panic!("no commitInfo")
        };
        assert_eq!((info.timestamp, info.operation.as_deref()), (None, Some("WRITE")));
        assert_eq!(info.rest["x"], serde_json::json!({"y": 1}));
    }
}
