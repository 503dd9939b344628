//! `information_schema`: catalogs, schemas and tables, as rows; and what SHOW asks of them.
//!
//! Catalogs are asked when a statement names these tables, not before. `tables` and `schemata` list names only;
//! `columns` opens the tables of the current schema.
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::catalog::TableProvider;
use lakebed_core::{Error, ErrorKind, Result};
use sqlparser::ast::Query;

use super::{in_memory, rows::Columns, types};
use crate::{
    sql::{functions::Functions, parse::own_query, resolve::Loader},
    text::did_you_mean,
};

const TABLES: &[&str] = &["catalogs", "columns", "functions", "schemata", "tables"];

/// One table of `information_schema`.
pub(crate) async fn load(loader: &mut Loader<'_>, name: &str) -> Result<Arc<dyn TableProvider>> {
    let rows = match name.to_lowercase().as_str() {
        "catalogs" => catalogs(loader)?,
        "schemata" => schemata(loader).await?,
        "tables" => tables(loader).await?,
        "columns" => columns(loader).await?,
        "functions" => functions(loader)?,
        _ => {
            let error = Error::not_found(format!("information_schema has no table `{name}`"));
            return Err(match did_you_mean(name, TABLES.iter().copied()) {
                Some(near) => error.with_hint(format!("did you mean `{near}`?")),
                None => error.with_hint(format!("it has {}", TABLES.join(", "))),
            });
        }
    };
    in_memory(rows)
}

fn catalogs(loader: &Loader<'_>) -> Result<RecordBatch> {
    let names = loader.shared.catalogs.iter().map(|it| it.0.clone());
    Columns::default().text("catalog_name", names).batch()
}

async fn schemata(loader: &Loader<'_>) -> Result<RecordBatch> {
    let schemas = schemas(loader).await?;
    Columns::default()
        .text("catalog_name", schemas.iter().map(|it| it.0.clone()))
        .text("schema_name", schemas.iter().map(|it| it.1.join(".")))
        .batch()
}

async fn schemas(loader: &Loader<'_>) -> Result<Vec<(String, Vec<String>)>> {
    let mut schemas = Vec::new();
    for (name, catalog) in &loader.shared.catalogs {
        let namespaces = catalog.namespaces(&[]).await?;
        schemas.extend(namespaces.into_iter().map(|it| (name.clone(), it)));
    }
    Ok(schemas)
}

async fn tables(loader: &Loader<'_>) -> Result<RecordBatch> {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for (name, namespace) in schemas(loader).await? {
        let catalog = loader.shared.catalog(&name)?.1;
        let tables = catalog.tables(&namespace).await?;
        rows.extend(tables.into_iter().map(|it| [name.clone(), namespace.join("."), it.name]));
    }
    let column = |index: usize| rows.iter().map(move |it| it[index].clone()).collect::<Vec<_>>().into_iter();
    Columns::default()
        .text("table_catalog", column(0))
        .text("table_schema", column(1))
        .text("table_name", column(2))
        .text("table_type", rows.iter().map(|_| "BASE TABLE"))
        .batch()
}

/// The columns of the tables in the current schema. A table that cannot be read is left out: it has its own error
/// when it is named.
async fn columns(loader: &mut Loader<'_>) -> Result<RecordBatch> {
    let place = loader.place.clone();
    let tables = match loader.shared.catalog(&place.catalog)?.1.tables(std::slice::from_ref(&place.schema)).await {
        Ok(tables) => tables,
        Err(err) if err.kind() == ErrorKind::NotFound => Vec::new(),
        Err(err) => return Err(err),
    };
    let mut rows: Vec<[String; 4]> = Vec::new();
    for ident in tables {
        let Ok((table, _)) = loader.table(&ident.name, None).await else { continue };
        let Ok(snapshot) = loader.snapshot(&table, None).await else { continue };
        for field in snapshot.schema().fields() {
            let nullable = if field.is_nullable() { "YES" } else { "NO" };
            rows.push([ident.name.clone(), field.name().clone(), types::name(field), nullable.to_owned()]);
        }
    }
    let column = |index: usize| rows.iter().map(move |it| it[index].clone()).collect::<Vec<_>>().into_iter();
    Columns::default()
        .text("table_catalog", rows.iter().map(|_| place.catalog.clone()))
        .text("table_schema", rows.iter().map(|_| place.schema.clone()))
        .text("table_name", column(0))
        .text("column_name", column(1))
        .text("data_type", column(2))
        .text("is_nullable", column(3))
        .batch()
}

fn functions(loader: &Loader<'_>) -> Result<RecordBatch> {
    let state = loader.state;
    let mut rows: Vec<(String, &str)> = Vec::new();
    let functions = Functions::of(state);
    rows.extend(functions.scalar_names().into_iter().map(|it| (it, "scalar")));
    rows.extend(functions.aggregate_names().into_iter().map(|it| (it, "aggregate")));
    rows.extend(functions.window_names().into_iter().map(|it| (it, "window")));
    rows.extend(state.table_functions().keys().map(|it| (it.clone(), "table")));
    rows.extend(["table_changes", "parquet"].map(|it| (it.to_owned(), "table")));
    for format in loader.shared.formats.iter() {
        rows.push((format.kind().name().to_owned(), "table"));
        rows.push((format!("{}_files", format.kind()), "table"));
        rows.extend(format.extensions().functions.iter().map(|it| (it.name.to_owned(), "table")));
    }
    rows.sort_unstable();
    rows.dedup();
    Columns::default()
        .text("function_name", rows.iter().map(|it| it.0.clone()))
        .text("kind", rows.iter().map(|it| it.1))
        .batch()
}

pub(crate) fn show_tables(catalog: &str, schema: &str, like: Option<&str>) -> Result<Query> {
    ask(&format!(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE {} AND {}{} ORDER BY table_name",
        same("table_catalog", catalog),
        same("table_schema", schema),
        likeness("table_name", like)
    ))
}

pub(crate) fn show_schemas(catalog: &str, like: Option<&str>) -> Result<Query> {
    ask(&format!(
        "SELECT schema_name FROM information_schema.schemata WHERE {}{} ORDER BY schema_name",
        same("catalog_name", catalog),
        likeness("schema_name", like)
    ))
}

pub(crate) fn show_catalogs() -> Result<Query> {
    ask("SELECT catalog_name FROM information_schema.catalogs ORDER BY catalog_name")
}

pub(crate) fn show_functions(like: Option<&str>) -> Result<Query> {
    ask(&format!(
        "SELECT function_name, kind FROM information_schema.functions WHERE true{} ORDER BY function_name, kind",
        likeness("function_name", like)
    ))
}

fn ask(sql: &str) -> Result<Query> {
    own_query(sql).map(|it| *it)
}

fn same(column: &str, value: &str) -> String {
    format!("lower({column}) = lower({})", literal(value))
}

fn likeness(column: &str, like: Option<&str>) -> String {
    like.map(|it| format!(" AND {column} ILIKE {}", literal(it))).unwrap_or_default()
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
