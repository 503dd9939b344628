//! `parquet('<file, folder or glob>')`: Parquet files that belong to no table.
//!
//! The folder before the first `*` or `?` is the place that is listed. A folder means every
//! `.parquet` file below it. The schema is that of all files together; files are read by DataFusion as they are.
use std::{fmt, sync::Arc};

use arrow_schema::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::DFSchema,
    datasource::{
        file_format::{FileFormat, parquet::ParquetFormat},
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::Result as PlanResult,
    execution::object_store::ObjectStoreUrl,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType, utils::conjunction},
    physical_plan::ExecutionPlan,
};
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Error, Result,
    path::FilePath,
    storage::{Storage, storage_error},
};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, path::Path};

use super::Call;
use crate::{
    error::of_datafusion,
    sql::{resolve::Loader, wanted::Argument},
    text::glob,
};

/// Files that are listed at most: a mistyped glob at the root of a bucket must end.
const MOST_FILES: usize = 1_000_000;
const FOOTERS_AT_ONCE: usize = 32;

pub(super) async fn load(loader: &mut Loader<'_>, arguments: &[Argument]) -> Result<Arc<dyn TableProvider>> {
    let call = Call::new("parquet", arguments, &["path"], &[], loader)?;
    let text = call.text("path")?;
    let Found { storage, store, files } = find(loader, text).await?;
    if files.is_empty() {
        return Err(Error::not_found(format!("no Parquet file at {text}"))
            .with_hint("check the path; a folder means every .parquet file below it"));
    }
    let schema = schema_of(loader, &store, &files).await?;
    Ok(Arc::new(ParquetFiles { name: text.to_owned(), location: storage.location().to_owned(), store, files, schema }))
}

/// Files of several writers spell text and bytes in several Arrow types; alone, each is brought to views, and those merge.
async fn schema_of(loader: &Loader<'_>, store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<SchemaRef> {
    let format = ParquetFormat::default();
    let alone = files.iter().map(|it| format.infer_schema(loader.state, store, std::slice::from_ref(it)));
    let schemas: Vec<SchemaRef> =
        stream::iter(alone).buffered(FOOTERS_AT_ONCE).try_collect().await.map_err(of_datafusion)?;
    let merged = Schema::try_merge(schemas.iter().map(|it| it.as_ref().clone()));
    Ok(Arc::new(merged.map_err(|it| Error::invalid(format!("the files have no schema in common: {it}")))?))
}

struct Found {
    storage: Storage,
    store: Arc<dyn ObjectStore>,
    files: Vec<ObjectMeta>,
}

/// Text without a pattern is a file of its folder, else a folder.
async fn find(loader: &Loader<'_>, text: &str) -> Result<Found> {
    let place = |text| loader.shared.locator.locate(text);
    let (folder, pattern) = split(text);
    let (parent, name) = text.trim_end_matches('/').rsplit_once('/').unwrap_or((".", text));
    // A bucket has no parent.
    if pattern.is_none() && !parent.ends_with(":/") && !name.is_empty() {
        let storage = place(if parent.is_empty() { "/" } else { parent }).await?;
        let (store, key) = storage.object(&FilePath::below(name))?;
        match store.head(&key).await {
            Ok(file) => return Ok(Found { storage, store, files: vec![file] }),
            Err(object_store::Error::NotFound { .. } | object_store::Error::InvalidPath { .. }) => (),
            Err(err) => return Err(storage_error(text, err)),
        }
    }
    let storage = place(folder).await?;
    let (store, key) = storage.object(&FilePath::below(""))?;
    let files = list(&store, &key, pattern).await?;
    Ok(Found { storage, store, files })
}

/// The folder to list and the pattern below it: `a/b/*.parquet` is `a/b` and `*.parquet`.
fn split(text: &str) -> (&str, Option<&str>) {
    let Some(first) = text.find(['*', '?']) else { return (text, None) };
    match text[..first].rfind('/') {
        Some(slash) => (if slash == 0 { "/" } else { &text[..slash] }, Some(&text[slash + 1..])),
        None => (".", Some(text)),
    }
}

async fn list(store: &Arc<dyn ObjectStore>, key: &Path, pattern: Option<&str>) -> Result<Vec<ObjectMeta>> {
    let failed = |it| storage_error(key.as_ref(), it);
    let pattern: Option<Vec<Vec<char>>> = pattern.map(|it| it.split('/').map(|it| it.chars().collect()).collect());
    let mut files = Vec::new();
    let mut listed = store.list(Some(key));
    while let Some(file) = listed.try_next().await.map_err(failed)? {
        let below = file.location.as_ref().strip_prefix(key.as_ref()).unwrap_or(file.location.as_ref());
        if wanted(below.trim_start_matches('/'), pattern.as_deref()) && file.size > 0 {
            files.push(file);
        }
        if files.len() > MOST_FILES {
            return Err(Error::new(lakebed_core::ErrorKind::Limit, format!("more than {MOST_FILES} files match")));
        }
    }
    files.sort_unstable_by(|a, b| a.location.cmp(&b.location));
    Ok(files)
}

/// Whether a file below the listed folder is asked for; `**` stands for any folders.
fn wanted(below: &str, pattern: Option<&[Vec<char>]>) -> bool {
    let segments: Vec<Vec<char>> = below.split('/').map(|it| it.chars().collect()).collect();
    match pattern {
        None => below.ends_with(".parquet") && !segments.iter().any(|it| matches!(it.first(), Some('_' | '.'))),
        Some(pattern) => segments_match(&segments, pattern),
    }
}

fn segments_match(segments: &[Vec<char>], pattern: &[Vec<char>]) -> bool {
    match (segments, pattern) {
        ([], []) => true,
        (_, [first, rest @ ..]) if *first == ['*', '*'] => {
            (0..=segments.len()).any(|it| segments_match(&segments[it..], rest))
        }
        ([segment, more @ ..], [first, rest @ ..]) => glob(segment, first, '*', '?') && segments_match(more, rest),
        _ => false,
    }
}

struct ParquetFiles {
    name: String,
    location: String,
    store: Arc<dyn ObjectStore>,
    files: Vec<ObjectMeta>,
    schema: SchemaRef,
}

impl fmt::Debug for ParquetFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFiles")
            .field("name", &self.name)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for ParquetFiles {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let url = url(&self.location)?;
        state.runtime_env().register_object_store(url.as_ref(), Arc::clone(&self.store));
        let options = state.config_options().execution.parquet.clone();
        let options = datafusion::common::config::TableParquetOptions { global: options, ..Default::default() };
        let table = TableSchema::from(&self.schema);
        let mut source = ParquetSource::new(table).with_table_parquet_options(options);
        if let Some(filter) = conjunction(filters.iter().cloned()) {
            let schema = DFSchema::try_from(self.schema.as_ref().clone())?;
            source = source.with_predicate(state.create_physical_expr(filter, &schema)?);
        }
        let files = self.files.iter().cloned().map(PartitionedFile::new_from_meta).collect();
        let groups = FileGroup::new(files).split_files(state.config_options().execution.target_partitions);
        let config = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(groups)
            .with_limit(limit)
            .with_projection_indices(projection.cloned())?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// The address of a place's store in the session: the place itself, spelled so that a host may have it.
fn url(location: &str) -> PlanResult<ObjectStoreUrl> {
    let host: String = location.bytes().map(|it| format!("{it:02x}")).collect();
    ObjectStoreUrl::parse(format!("lakebed-parquet://p{host}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_a_folder_and_a_pattern() {
        for (text, place, pattern) in [
            ("a/b/*.parquet", "a/b", Some("*.parquet")),
            ("/data/*/x?.parquet", "/data", Some("*/x?.parquet")),
            ("/*.parquet", "/", Some("*.parquet")),
            ("*.parquet", ".", Some("*.parquet")),
            ("a/b.parquet", "a/b.parquet", None),
        ] {
            assert_eq!(split(text), (place, pattern), "{text}");
        }
    }

    #[test]
    fn patterns_stay_within_a_folder_unless_doubled() {
        for (below, pattern, expected) in [
            ("a.parquet", Some("*.parquet"), true),
            ("d/a.parquet", Some("*.parquet"), false),
            ("d/a.parquet", Some("**/*.parquet"), true),
            ("a.parquet", Some("**/*.parquet"), true),
            ("d/e/a.parquet", Some("d/**"), true),
            ("a.parquet", None, true),
            ("_delta_log/a.parquet", None, false),
            ("a.crc", None, false),
        ] {
            let pattern: Option<Vec<Vec<char>>> =
                pattern.map(|it| it.split('/').map(|it| it.chars().collect()).collect());
            assert_eq!(wanted(below, pattern.as_deref()), expected, "{below} {pattern:?}");
        }
    }
}
