//! `schemaString` ⟷ Arrow.
//!
//! Names, types, nullability and comments come over as they are. What else a column's metadata says (generation
//! expressions, invariants, defaults, type changes, `char(n)`) is kept under its own key, as text. Where the table maps
//! columns, every field also carries [`PHYSICAL_NAME`] and [`FIELD_ID`], nested ones too; where it does not, stray
//! mapping metadata are kept but not honoured.
//!
//! | Delta | Arrow |
//! |---|---|
//! | `string`, `char(n)`, `varchar(n)` | Utf8 |
//! | `byte` `short` `integer` `long` `float` `double` `boolean` `binary` `date` | the type of that width |
//! | `decimal(p,s)` | Decimal128 |
//! | `timestamp` | microseconds with zone UTC |
//! | `timestamp_ntz` | microseconds without zone |
//! | `void` | Null |
//! | `variant` | struct of binary `metadata` and `value`, marked by [`VARIANT`] |
//! | `array` `map` `struct` | List, Map, Struct |
//!
//! Spec: Delta PROTOCOL.md, "Schema Serialization Format", "Column Mapping".
use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use lakebed_core::scan::{ColumnMapping, FIELD_ID, MatchBy, PHYSICAL_NAME};

use crate::{
    error::DeltaError,
    properties::Properties,
    spec::{Metadata, Protocol},
};

mod parse;
pub(crate) mod text;

/// Metadata key of a field whose Arrow type does not say all: see [`VARIANT`].
pub(crate) const TYPE: &str = "lakebed.type";
/// Value of [`TYPE`]: a variant, in Parquet's encoding.
pub(crate) const VARIANT: &str = "variant";

/// How columns are found in data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mapping {
    None,
    Id,
    Name,
}

impl Mapping {
    /// The table's mode; honoured only when the protocol supports mapping.
    pub(crate) fn of(protocol: &Protocol, configuration: &BTreeMap<String, String>) -> Result<Self, DeltaError> {
        const MODE: &str = "delta.columnMapping.mode";
        if !protocol.supports("columnMapping") {
            return Ok(Self::None);
        }
        match Properties(configuration).text(MODE) {
            None | Some("none") => Ok(Self::None),
            Some("id") => Ok(Self::Id),
            Some("name") => Ok(Self::Name),
            Some(other) => Err(DeltaError::Property {
                name: MODE.to_owned(),
                value: other.to_owned(),
                reason: "not none, id or name".to_owned(),
            }),
        }
    }
}

/// The columns of a table, and how its files hold them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableSchema {
    pub(crate) arrow: SchemaRef,
    pub(crate) mapping: Mapping,
    /// Indexes of the partition columns in `arrow`, in the order of `partitionColumns`.
    pub(crate) partition: Vec<usize>,
}

impl TableSchema {
    /// Reads the schema of a table state.
    ///
    /// # Errors
    /// Corrupt or over a limit for the text; unsupported for a type this build does not have, and for data files
    /// that are not Parquet.
    pub(crate) fn of(protocol: &Protocol, metadata: &Metadata) -> Result<Self, DeltaError> {
        if !metadata.format.provider.eq_ignore_ascii_case("parquet") {
            return Err(DeltaError::Provider { provider: metadata.format.provider.clone() });
        }
        let mapping = Mapping::of(protocol, &metadata.configuration)?;
        let arrow = Arc::new(parse::parse(&metadata.schema_string, mapping)?);
        let partition = partition_indexes(&arrow, &metadata.partition_columns)?;
        Ok(Self { arrow, mapping, partition })
    }

    /// The partition columns, in the order of `partitionColumns`.
    pub(crate) fn partition_fields(&self) -> impl Iterator<Item = &FieldRef> {
        self.partition.iter().map(|index| &self.arrow.fields()[*index])
    }

    /// How the engine finds these columns in data files.
    pub(crate) fn column_mapping(&self, configuration: &BTreeMap<String, String>) -> ColumnMapping {
        let name = |key: &str| Properties(configuration).text(key).map(str::to_owned);
        ColumnMapping {
            by: match self.mapping {
                Mapping::None => MatchBy::Name,
                Mapping::Id => MatchBy::FieldId,
                Mapping::Name => MatchBy::PhysicalName,
            },
            schema: Arc::clone(&self.arrow),
            row_id_column: name("delta.rowTracking.materializedRowIdColumnName"),
            row_version_column: name("delta.rowTracking.materializedRowCommitVersionColumnName"),
        }
    }
}

/// The column's name in the log's partition values and statistics, and in data files.
pub(crate) fn physical_name(field: &Field) -> &str {
    field.metadata().get(PHYSICAL_NAME).map_or(field.name(), String::as_str)
}

/// Whether the field is a variant, which has no statistics and cannot be compared.
pub(crate) fn is_variant(field: &Field) -> bool {
    field.metadata().get(TYPE).is_some_and(|it| it == VARIANT)
}

/// What keeps rows of `older` from being read as rows of `newer`; `None` if nothing does.
///
/// Columns may be added, become nullable, or become wider; a column that is gone, renamed in the file, or of an
/// unrelated type is in the way.
pub(crate) fn incompatible(older: &Fields, newer: &Fields) -> Option<String> {
    for field in older {
        let Some(now) = newer.iter().find(|it| same_column(field, it)) else {
            return Some(format!("column `{}` is gone", field.name()));
        };
        if !reads_as(field.data_type(), now.data_type()) {
            return Some(format!("column `{}` was {} and is {}", field.name(), field.data_type(), now.data_type()));
        }
        if let (DataType::Struct(older), DataType::Struct(newer)) = (field.data_type(), now.data_type())
            && let Some(reason) = incompatible(older, newer)
        {
            return Some(format!("in `{}`: {reason}", field.name()));
        }
    }
    None
}

fn same_column(a: &Field, b: &Field) -> bool {
    match (a.metadata().get(FIELD_ID), b.metadata().get(FIELD_ID)) {
        (Some(a), Some(b)) => a == b,
        _ => physical_name(a).eq_ignore_ascii_case(physical_name(b)),
    }
}

/// Whether values of `older` have an exact place in `newer`: the type itself, or one it may be widened to.
fn reads_as(older: &DataType, newer: &DataType) -> bool {
    use DataType::{
        Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, List, Map, Null, Struct, Timestamp,
    };
    match (older, newer) {
        (Int8, Int16 | Int32 | Int64 | Float64)
        | (Int16, Int32 | Int64 | Float64)
        | (Int32, Int64 | Float64)
        | (Float32, Float64)
        | (Date32, Timestamp(TimeUnit::Microsecond, None))
        | (Null, _) => true,
        (Int8 | Int16 | Int32, Decimal128(precision, scale)) => i16::from(*precision) - i16::from(*scale) >= 10,
        (Int64, Decimal128(precision, scale)) => i16::from(*precision) - i16::from(*scale) >= 20,
        (Decimal128(p, s), Decimal128(q, t)) => {
            t >= s && i16::from(*q) - i16::from(*t) >= i16::from(*p) - i16::from(*s)
        }
        (Struct(_), Struct(_)) => true,
        (List(a), List(b)) => element_reads_as(a, b),
        (Map(a, _), Map(b, _)) => element_reads_as(a, b),
        (a, b) => a == b,
    }
}

fn element_reads_as(older: &Field, newer: &Field) -> bool {
    match (older.data_type(), newer.data_type()) {
        (DataType::Struct(a), DataType::Struct(b)) => incompatible(a, b).is_none(),
        (a, b) => reads_as(a, b),
    }
}

fn partition_indexes(schema: &Schema, names: &[String]) -> Result<Vec<usize>, DeltaError> {
    let index = |name: &String| {
        let exact = schema.fields().iter().position(|it| it.name() == name);
        let found = exact.or_else(|| schema.fields().iter().position(|it| it.name().eq_ignore_ascii_case(name)));
        let index =
            found.ok_or_else(|| DeltaError::Schema(format!("partition column `{name}` is not in the schema")))?;
        let kind = schema.field(index).data_type();
        if kind.is_nested() {
            return Err(DeltaError::Schema(format!("partition column `{name}` is {kind}, which cannot partition")));
        }
        Ok(index)
    };
    names.iter().map(index).collect()
}

#[cfg(test)]
mod tests;
