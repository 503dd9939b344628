//! Arrow's types by the names SQL has for them.
use arrow_schema::{DataType, Field, TimeUnit};

/// The SQL name of a field's type; types without one keep Arrow's name.
pub(crate) fn name(field: &Field) -> String {
    if field.extension_type_name() == Some("arrow.parquet.variant") {
        return "VARIANT".to_owned();
    }
    match field.data_type() {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BINARY".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) => {
            format!("DECIMAL({p},{s})")
        }
        DataType::Timestamp(unit, zone) => timestamp(*unit, zone.is_some()),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("ARRAY<{}>", name(item))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|it| format!("{}: {}", it.name(), name(it))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => format!("MAP<{}, {}>", name(&fields[0]), name(&fields[1])),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

fn timestamp(unit: TimeUnit, zoned: bool) -> String {
    let base = if zoned { "TIMESTAMP" } else { "TIMESTAMP_NTZ" };
    match unit {
        TimeUnit::Microsecond => base.to_owned(),
        TimeUnit::Second => format!("{base}(0)"),
        TimeUnit::Millisecond => format!("{base}(3)"),
        TimeUnit::Nanosecond => format!("{base}(9)"),
    }
}
