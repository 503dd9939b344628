//! `schema`: the columns of a version, in SQL's words for their types.
use arrow_schema::{DataType, Field, TimeUnit};
use lakebed_core::table::Snapshot;

use crate::{
    args::Named,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

const COLUMNS: [Column; 5] = [
    Column::new("position", "#", Kind::Int),
    Column::new("name", "NAME", Kind::Text),
    Column::new("type", "TYPE", Kind::Text),
    Column::new("nullable", "NULLABLE", Kind::Bool),
    Column::new("partition", "PARTITION", Kind::Bool),
];

pub(crate) async fn run(door: &Door, args: &Named) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let (_, snapshot) = door.snapshot(&opened).await?;
    let mut columns = COLUMNS.to_vec();
    columns.push(Column::new("comment", "COMMENT", Kind::Text));
    let mut report = Report::new("lakebed.schema/1", opened.table.storage().location(), &columns);
    for (position, field) in (0_u64..).zip(snapshot.schema().fields()) {
        report.rows.push(vec![
            Value::from(position),
            Value::from(field.name().as_str()),
            Value::from(type_of(field)),
            Value::from(field.is_nullable()),
            Value::from(is_partition(snapshot.as_ref(), field)),
            Value::from(field.metadata().get("comment").cloned()),
        ]);
    }
    door.report(report)?;
    Ok(Verdict::Yes)
}

fn is_partition(snapshot: &dyn Snapshot, field: &Field) -> bool {
    snapshot.layout().partition.iter().any(|it| it.source.0.first() == Some(field.name()))
}

/// A field that Arrow stores as something else says so in its metadata.
fn type_of(field: &Field) -> String {
    match field.metadata().get("ARROW:extension:name").map(String::as_str) {
        Some("arrow.parquet.variant") => "variant".to_owned(),
        _ => type_name(field.data_type()),
    }
}

/// The type as `CREATE TABLE` would say it.
pub(super) fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "bigint".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Null => "void".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => "timestamp(9)".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "timestamp_ntz(9)".to_owned(),
        DataType::Timestamp(_, None) => "timestamp_ntz".to_owned(),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            format!("array<{}>", type_of(item))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|it| format!("{}: {}", it.name(), type_of(it))).collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => format!("map<{}, {}>", type_of(&pair[0]), type_of(&pair[1])),
            other => format!("map<{other}>"),
        },
        DataType::Dictionary(_, value) => type_name(value),
        other => other.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn types_are_in_sqls_words() {
        let item = Arc::new(Field::new("element", DataType::Decimal128(10, 2), true));
        let pair = vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::List(item), true)];
        let entries = Arc::new(Field::new("entries", DataType::Struct(pair.into()), false));
        let cases = [
            (DataType::Int16, "smallint"),
            (DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), "timestamp"),
            (DataType::Timestamp(TimeUnit::Microsecond, None), "timestamp_ntz"),
            (DataType::Map(entries, false), "map<string, array<decimal(10,2)>>"),
            (DataType::Struct(vec![Field::new("a", DataType::Utf8View, true)].into()), "struct<a: string>"),
        ];
        for (kind, expected) in cases {
            assert_eq!(type_name(&kind), expected);
        }
    }
}
