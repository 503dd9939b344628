//! The columns of a checkpoint, named and typed as the reference implementation writes them.
//!
//! Spec: Delta PROTOCOL.md, "Checkpoint Schema".
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

/// What a file of a checkpoint holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A V1 checkpoint: everything.
    Classic,
    /// A V2 checkpoint without sidecars: everything.
    Whole,
    /// A V2 checkpoint whose files stand in sidecars.
    Main,
    /// Files alone.
    Sidecar,
}

impl Content {
    pub(super) fn schema(self) -> SchemaRef {
        let mut fields = Vec::new();
        if self != Self::Sidecar {
            fields.extend([txn(), metadata(), protocol(), domain()]);
        }
        if matches!(self, Self::Whole | Self::Main) {
            fields.extend([sidecar(), group("checkpointMetadata", vec![long("version")])]);
        }
        if self != Self::Main {
            fields.extend([add(), remove()]);
        }
        Arc::new(Schema::new(fields))
    }
}

/// Columns whose values hardly repeat.
pub(super) const PLAIN: [&[&str]; 4] = [&["add", "path"], &["add", "stats"], &["remove", "path"], &["sidecar", "path"]];

fn txn() -> Field {
    group("txn", vec![text("appId"), long("version"), long("lastUpdated")])
}

fn metadata() -> Field {
    let format = group("format", vec![text("provider"), texts("options")]);
    let fields = vec![
        text("id"),
        text("name"),
        text("description"),
        format,
        text("schemaString"),
        list("partitionColumns"),
        texts("configuration"),
        long("createdTime"),
    ];
    group("metaData", fields)
}

fn protocol() -> Field {
    let fields = vec![int("minReaderVersion"), int("minWriterVersion"), list("readerFeatures"), list("writerFeatures")];
    group("protocol", fields)
}

fn domain() -> Field {
    group("domainMetadata", vec![text("domain"), text("configuration"), flag("removed")])
}

fn sidecar() -> Field {
    group("sidecar", vec![text("path"), long("sizeInBytes"), long("modificationTime"), texts("tags")])
}

fn add() -> Field {
    let fields = vec![
        text("path"),
        texts("partitionValues"),
        long("size"),
        long("modificationTime"),
        flag("dataChange"),
        text("stats"),
        texts("tags"),
        Field::new("deletionVector", DataType::Struct(vector()), true),
        long("baseRowId"),
        long("defaultRowCommitVersion"),
        text("clusteringProvider"),
    ];
    group("add", fields)
}

fn remove() -> Field {
    let fields = vec![
        text("path"),
        long("deletionTimestamp"),
        flag("dataChange"),
        flag("extendedFileMetadata"),
        texts("partitionValues"),
        long("size"),
        Field::new("deletionVector", DataType::Struct(vector()), true),
        long("baseRowId"),
        long("defaultRowCommitVersion"),
    ];
    group("remove", fields)
}

pub(super) fn vector() -> Fields {
    vec![text("storageType"), text("pathOrInlineDv"), int("offset"), int("sizeInBytes"), long("cardinality")].into()
}

/// The type of a map of texts: its entries, which have a key and perhaps a value.
pub(super) fn entries() -> FieldRef {
    let key = Field::new("key", DataType::Utf8, false);
    let pair = DataType::Struct(vec![key, text("value")].into());
    Arc::new(Field::new("key_value", pair, false))
}

fn group(name: &str, fields: Vec<Field>) -> Field {
    Field::new(name, DataType::Struct(fields.into()), true)
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn long(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn int(name: &str) -> Field {
    Field::new(name, DataType::Int32, true)
}

fn flag(name: &str) -> Field {
    Field::new(name, DataType::Boolean, true)
}

fn texts(name: &str) -> Field {
    Field::new(name, DataType::Map(entries(), false), true)
}

fn list(name: &str) -> Field {
    Field::new(name, DataType::List(Arc::new(text("element"))), true)
}
