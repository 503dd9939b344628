//! What Pond adds to SQL: one of each kind, so that the engine's registration is tried without a real format.
use std::{any::Any, sync::Arc};

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use lakebed_core::{
    Error, Result,
    expr::Scalar,
    extension::{Arguments, Extension, Extensions, Parameter, RowSource, Setting},
    table::Table,
    version::AsOf,
};

use super::{snapshot::PondSnapshot, table::PondTable};

pub(super) fn all() -> Extensions {
    let entries = SchemaRef::new(Schema::new(vec![
        Field::new("version", DataType::Utf8, false),
        Field::new("operation", DataType::Utf8, false),
        Field::new("write_id", DataType::Utf8, false),
    ]));
    let count = SchemaRef::new(Schema::new(vec![Field::new("files", DataType::Int64, false)]));
    Extensions {
        functions: vec![Extension {
            name: "pond_entries",
            parameters: &[Parameter { name: "operation", required: false }],
            schema: Arc::clone(&entries),
            rows: Arc::new(Entries),
        }],
        system_tables: vec![Extension { name: "entries", parameters: &[], schema: entries, rows: Arc::new(Entries) }],
        procedures: vec![Extension {
            name: "pond_count_files",
            parameters: &[],
            schema: count,
            rows: Arc::new(CountFiles),
        }],
        settings: vec![Setting { name: "depth", default: "3", description: "How deep the pond is, in metres." }],
    }
}

/// The readable log, oldest first; only entries of one operation when that is given.
#[derive(Debug)]
struct Entries;

#[async_trait]
impl RowSource for Entries {
    async fn rows(&self, table: &Arc<dyn Table>, arguments: &Arguments) -> Result<Vec<RecordBatch>> {
        let table = (table.as_ref() as &dyn Any).downcast_ref::<PondTable>();
        let table = table.ok_or_else(|| Error::invalid("pond_entries takes a pond table"))?;
        let wanted = match arguments.values.get("operation") {
            Some(Scalar::Utf8(operation)) => Some(operation),
            Some(other) => return Err(Error::invalid(format!("operation is text, not {other:?}"))),
            None => None,
        };
        let history = table.history().await?;
        let rows: Vec<_> =
            history.entries.iter().filter(|(_, it)| wanted.is_none_or(|op| *op == it.operation)).collect();
        let columns: [StringArray; 3] = [
            rows.iter().map(|(version, _)| Some(version)).collect(),
            rows.iter().map(|(_, entry)| Some(&entry.operation)).collect(),
            rows.iter().map(|(_, entry)| Some(&entry.write_id)).collect(),
        ];
        let schema = Arc::clone(&all().system_tables[0].schema);
        let batch = RecordBatch::try_new(schema, columns.into_iter().map(|it| Arc::new(it) as _).collect());
        Ok(vec![batch.map_err(|it| Error::internal(it.to_string()))?])
    }
}

/// How many files the version has.
#[derive(Debug)]
struct CountFiles;

#[async_trait]
impl RowSource for CountFiles {
    async fn rows(&self, table: &Arc<dyn Table>, arguments: &Arguments) -> Result<Vec<RecordBatch>> {
        let snapshot = table.snapshot(arguments.as_of.as_ref().unwrap_or(&AsOf::Latest)).await?;
        let files = PondSnapshot::of(snapshot.as_ref())?.state.files.len();
        let column = Int64Array::from(vec![i64::try_from(files).unwrap_or(i64::MAX)]);
        let batch = RecordBatch::try_new(Arc::clone(&all().procedures[0].schema), vec![Arc::new(column)]);
        Ok(vec![batch.map_err(|it| Error::internal(it.to_string()))?])
    }
}
