//! `t$ddl`, which `SHOW CREATE TABLE t` shows: the statement that would make such a table.
use std::{fmt::Write as _, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::Field;
use lakebed_core::{
    Error, Result,
    table::{PartitionField, Snapshot, Table, Transform},
};

use super::{rows::Columns, types};

pub(super) fn rows(name: &str, table: &Arc<dyn Table>, snapshot: &Arc<dyn Snapshot>) -> Result<RecordBatch> {
    let name = name.strip_suffix("$ddl").unwrap_or(name);
    let text = statement(name, table, snapshot).map_err(|_| Error::internal("text grows without end"))?;
    Columns::default().text("statement", std::iter::once(text)).batch()
}

fn statement(
    name: &str,
    table: &Arc<dyn Table>,
    snapshot: &Arc<dyn Snapshot>,
) -> std::result::Result<String, std::fmt::Error> {
    let mut text = format!("CREATE TABLE {} (\n", ident(name));
    let columns: Vec<String> = snapshot.schema().fields().iter().map(|it| column(it)).collect();
    writeln!(text, "  {}\n)", columns.join(",\n  "))?;
    write!(text, "USING {}", table.format())?;
    let layout = snapshot.layout();
    if !layout.partition.is_empty() {
        let fields: Vec<String> = layout.partition.iter().map(partition).collect();
        write!(text, "\nPARTITIONED BY ({})", fields.join(", "))?;
    }
    write!(text, "\nLOCATION {}", quoted(table.storage().location()))?;
    if !snapshot.properties().is_empty() {
        let pairs = snapshot.properties().iter().map(|(key, value)| format!("{} = {}", quoted(key), quoted(value)));
        write!(text, "\nTBLPROPERTIES (\n  {}\n)", pairs.collect::<Vec<_>>().join(",\n  "))?;
    }
    Ok(text)
}

fn column(field: &Field) -> String {
    let null = if field.is_nullable() { "" } else { " NOT NULL" };
    let comment = field.metadata().get("comment").map(|it| format!(" COMMENT {}", quoted(it))).unwrap_or_default();
    format!("{} {}{null}{comment}", ident(field.name()), types::name(field))
}

fn partition(field: &PartitionField) -> String {
    let source = field.source.to_string();
    match &field.transform {
        Transform::Identity => ident(&source),
        Transform::Bucket(count) => format!("bucket({count}, {})", ident(&source)),
        Transform::Truncate(width) => format!("truncate({width}, {})", ident(&source)),
        Transform::Year => format!("years({})", ident(&source)),
        Transform::Month => format!("months({})", ident(&source)),
        Transform::Day => format!("days({})", ident(&source)),
        Transform::Hour => format!("hours({})", ident(&source)),
        Transform::Other(name) => format!("{name}({})", ident(&source)),
    }
}

/// A name, in quotes where it needs them.
fn ident(name: &str) -> String {
    let plain = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
