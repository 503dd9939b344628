//! What a writer of rows must obey, and whether this build obeys all that the table asks.
//!
//! Files hold the columns that do not partition the table, under their physical names and with their ids where columns are
//! mapped; `void` columns have no place in a file. Files lie in partition folders, or where columns are mapped or the table
//! says so in folders of random names.
//!
//! A CHECK constraint must be true of every row: null breaks it. So must an invariant of a column.
//! Spec: Delta PROTOCOL.md, "Requirements for Writers", "Column Invariants", "CHECK Constraints", "Writer Requirements for
//! Column Mapping".
use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, Fields, Schema};
use lakebed_core::{
    Error, ErrorKind, Result,
    conflict::Isolation,
    scan::FIELD_ID,
    write::{Compression, Constraint, FileShape, RowDeletes, WriteRules},
};

use super::{constraints, stats};
use crate::{
    properties::Properties,
    schema::{Mapping, TableSchema, is_variant, physical_name},
    snapshot::DeltaSnapshot,
    spec::{Metadata, Protocol},
};

/// Where files of changed rows go.
const CHANGE_FOLDER: &str = "_change_data";
/// Files are closed at this size where the table does not say.
const TARGET_BYTES: u64 = 128 << 20;
/// Lakebed's own property: whether integers may be packed as differences.
const PACKED_INTEGERS: &str = "lakebed.parquet.packed_integers";
const INVARIANT: &str = "delta.invariants";
const CHAR_VARCHAR: &str = "__CHAR_VARCHAR_TYPE_STRING";

/// The rules of a version.
pub(crate) fn of(snapshot: &DeltaSnapshot) -> Result<WriteRules> {
    let (protocol, metadata) = (&snapshot.state.protocol, &snapshot.state.metadata);
    let schema = &*snapshot.schema;
    check(protocol, metadata, schema)?;
    let properties = Properties(&metadata.configuration);
    let on = |feature: &str, property: &str| Ok::<_, Error>(protocol.supports(feature) && properties.flag(property)?);
    let mut constraints = constraints::checks(&metadata.configuration);
    of_columns(schema.arrow.fields(), &[], &mut constraints)?;
    Ok(WriteRules {
        files: file_shape(schema, properties)?,
        constraints,
        deletes: match on("deletionVectors", "delta.enableDeletionVectors")? {
            true => RowDeletes::Vectors,
            false => RowDeletes::Rewrite,
        },
        change_folder: on("changeDataFeed", "delta.enableChangeDataFeed")?.then(|| CHANGE_FOLDER.to_owned()),
        append_only: append_only(protocol, metadata)?,
        isolation: match properties.text("delta.isolationLevel") {
            Some(level) if level.eq_ignore_ascii_case("Serializable") => Isolation::Serializable,
            _ => Isolation::WriteSerializable,
        },
    })
}

/// Whether the table only takes new rows.
pub(super) fn append_only(protocol: &Protocol, metadata: &Metadata) -> Result<bool> {
    Ok(protocol.supports("appendOnly") && Properties(&metadata.configuration).flag("delta.appendOnly")?)
}

/// The refusal to take `what` away from such a table.
pub(super) fn keeps_rows(what: &str) -> Error {
    let message = format!("the table only takes new rows (`delta.appendOnly`), and {what} would go");
    Error::new(ErrorKind::Refused, message)
        .with_hint("`ALTER TABLE … SET TBLPROPERTIES ('delta.appendOnly' = 'false')` lifts it")
}

/// Whether this build writes such a table.
///
/// # Errors
/// Unsupported, naming what it does not write: features, and columns that use one.
pub(crate) fn check(protocol: &Protocol, metadata: &Metadata, schema: &TableSchema) -> Result<()> {
    protocol.readable_with(&metadata.configuration)?;
    protocol.writable()?;
    check_columns(protocol, schema.arrow.fields(), &[])
}

fn check_columns(protocol: &Protocol, fields: &Fields, above: &[&str]) -> Result<()> {
    for field in fields {
        let path = [above, &[field.name().as_str()]].concat();
        check_column(protocol, field, &path)?;
    }
    Ok(())
}

fn check_column(protocol: &Protocol, field: &Field, path: &[&str]) -> Result<()> {
    let column = || path.join(".").escape_debug().to_string();
    if let Some(feature) = protocol.unwritten_column(field.metadata()) {
        let message = format!("column `{}` uses the feature `{feature}`, which this build does not write", column());
        return Err(Error::unsupported(message));
    }
    if is_variant(field) {
        return Err(Error::unsupported(format!("column `{}` is a variant, which this build does not write", column())));
    }
    match field.data_type() {
        DataType::Struct(inner) => check_columns(protocol, inner, path),
        DataType::List(inner) => check_column(protocol, inner, &[path, &["element"]].concat()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) => check_columns(protocol, parts, path),
            _ => Ok(()),
        },
        DataType::Null if path.len() > 1 => {
            let message = format!(
                "column `{}` has no type (`void`) inside of another, which this build does not write",
                column()
            );
            Err(Error::unsupported(message))
        }
        _ => Ok(()),
    }
}

fn file_shape(schema: &TableSchema, properties: Properties<'_>) -> Result<FileShape> {
    let fields = schema.arrow.fields().iter().enumerate();
    let stored: Vec<&Arc<Field>> = fields
        .filter(|(index, field)| !schema.partition.contains(index) && *field.data_type() != DataType::Null)
        .map(|(_, field)| field)
        .collect();
    let (indexed, all) = stats::indexed_columns(schema, properties);
    let random = schema.mapping != Mapping::None || properties.flag("delta.randomizeFilePrefixes")?;
    let length = properties.count("delta.randomPrefixLength")?.and_then(|it| usize::try_from(it).ok());
    let names = schema.partition_fields().map(|it| physical_name(it).to_owned());
    Ok(FileShape {
        schema: Arc::new(Schema::new(stored.iter().map(|it| in_file(it)).collect::<Vec<_>>())),
        columns: stored.iter().map(|it| it.name().clone()).collect(),
        folder: String::new(),
        partition_folders: (!random && !schema.partition.is_empty()).then(|| names.collect()),
        empty_partition_is_null: true,
        random_prefix: if random { length.unwrap_or(2) } else { 0 },
        target_bytes: properties.bytes("delta.targetFileSize")?.filter(|it| *it > 0).unwrap_or(TARGET_BYTES),
        compression: compression(properties.text("delta.parquet.compression.codec"))?,
        packed_integers: properties.flag(PACKED_INTEGERS).is_ok_and(|it| it)
            || properties.text(PACKED_INTEGERS).is_none(),
        indexed_columns: (!all).then(|| indexed.into_iter().map(|it| it.path).collect()),
    })
}

fn compression(codec: Option<&str>) -> Result<Compression> {
    let codec = codec.map(str::to_ascii_lowercase);
    Ok(match codec.as_deref() {
        None | Some("zstd") => Compression::Zstd,
        Some("snappy") => Compression::Snappy,
        Some("gzip") => Compression::Gzip,
        Some("lz4" | "lz4_raw") => Compression::Lz4,
        Some("none" | "uncompressed") => Compression::Uncompressed,
        Some(other) => {
            let message = format!("data files compressed with `{}` are not written", other.escape_debug());
            return Err(
                Error::unsupported(message).with_hint("set `delta.parquet.compression.codec` to zstd or snappy")
            );
        }
    })
}

/// A column as it stands in a file.
fn in_file(field: &Field) -> Field {
    let kind = match field.data_type() {
        DataType::Struct(inner) => DataType::Struct(inner.iter().map(|it| in_file(it)).collect()),
        DataType::List(element) => DataType::List(Arc::new(in_file(element))),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(in_file(entries)), *sorted),
        other => other.clone(),
    };
    let id = field.metadata().get(FIELD_ID).map(|it| (FIELD_ID.to_owned(), it.clone()));
    Field::new(physical_name(field), kind, field.is_nullable()).with_metadata(id.into_iter().collect::<HashMap<_, _>>())
}

/// What the columns' own metadata ask of rows: invariants, and the lengths of `char` and `varchar`.
fn of_columns(fields: &Fields, above: &[&str], constraints: &mut Vec<Constraint>) -> Result<()> {
    for field in fields {
        let path = [above, &[field.name().as_str()]].concat();
        let name = path.iter().map(|it| format!("`{}`", it.replace('`', "``"))).collect::<Vec<_>>().join(".");
        if let Some(text) = field.metadata().get(INVARIANT) {
            let expression = invariant(text).ok_or_else(|| {
                Error::corrupt(format!(
                    "the invariant of column {name} is not what the protocol says: {}",
                    text.escape_debug()
                ))
            })?;
            constraints.push(Constraint { name: format!("invariant of {name}"), expression, null_passes: false });
        }
        if let Some((kind, most)) = field.metadata().get(CHAR_VARCHAR).and_then(|it| Some((it, length(it)?))) {
            let expression = format!("char_length({name}) <= {most}");
            constraints.push(Constraint { name: format!("{kind} of {name}"), expression, null_passes: true });
        }
        if let DataType::Struct(inner) = field.data_type() {
            of_columns(inner, &path, constraints)?;
        }
    }
    Ok(())
}

/// `{"expression":{"expression":"x > 3"}}`.
fn invariant(text: &str) -> Option<String> {
    let read: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(read.pointer("/expression/expression")?.as_str()?.to_owned())
}

/// The number in `char(n)` or `varchar(n)`.
fn length(kind: &str) -> Option<u32> {
    let inside = kind.strip_prefix("varchar").or_else(|| kind.strip_prefix("char"))?;
    inside.trim().strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok()
}
