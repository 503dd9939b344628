//! Everything the log says of live files, for whoever repeats their `add` actions.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, Int64Array, RecordBatch, RecordBatchOptions, StructArray};
use arrow_json::LineDelimitedWriter;
use arrow_schema::{ArrowError, Schema};
use lakebed_core::{Error, Result};

use crate::{
    checkpoint::files::FileStatistics,
    spec::Add,
    state::{
        ListBatch,
        columns::{Extras, FileColumns, PartitionValues, StatsText},
    },
};

/// The files of one batch with all that is known of them.
#[derive(Debug)]
pub(crate) struct Whole {
    batch: ListBatch,
    stats: Stats,
    extras: Extras,
    partition: Vec<(String, PartitionValues)>,
}

#[derive(Debug)]
enum Stats {
    None,
    Text(StatsText),
    /// Written as JSON from the columns of a checkpoint.
    Json(Vec<Option<String>>),
}

impl Whole {
    /// Reads what is not at hand.
    pub(crate) async fn of(batch: ListBatch) -> Result<Self> {
        let stats = match batch.statistics(|_| true).await? {
            FileStatistics::None => Stats::None,
            FileStatistics::Text(text) => Stats::Text(text),
            FileStatistics::Parsed(columns) => Stats::Json(
                as_json(&columns).map_err(|err| Error::corrupt(format!("statistics of a checkpoint: {err}")))?,
            ),
        };
        let extras = batch.extras().await?;
        let files = batch.files();
        let dense = files.partition.iter().map(|it| (it.key.clone(), files.partition_values(&it.key)));
        let partition = dense.collect();
        Ok(Self { batch, stats, extras, partition })
    }

    pub(crate) fn files(&self) -> &FileColumns {
        self.batch.files()
    }

    /// Partition values by the physical names of their columns.
    pub(crate) fn partition(&self) -> &[(String, PartitionValues)] {
        &self.partition
    }

    /// Statistics as JSON.
    pub(crate) fn stats(&self, row: usize) -> Option<String> {
        match &self.stats {
            Stats::None => None,
            Stats::Text(text) => text.get(row).map(std::borrow::Cow::into_owned),
            Stats::Json(texts) => texts.get(row).cloned().flatten(),
        }
    }

    pub(crate) fn tags(&self, row: usize) -> Option<BTreeMap<String, Option<String>>> {
        self.extras.tags(row)
    }

    pub(crate) fn clustering(&self, row: usize) -> Option<String> {
        self.extras.clustering(row)
    }

    /// The file of a row as it was added, as a change of rows.
    pub(crate) fn add(&self, row: usize) -> Add {
        let files = self.files();
        let long = |column: Option<&Int64Array>| column.filter(|it| it.is_valid(row)).map(|it| it.value(row));
        let named = self.partition.iter().filter(|(_, it)| it.is_named(row));
        Add {
            path: files.path.value(row).to_owned(),
            partition_values: named.map(|(key, it)| (key.clone(), it.get(row).map(str::to_owned))).collect(),
            size: files.bytes.value(row),
            modification_time: long(files.modified_at.as_ref()).unwrap_or(0),
            data_change: true,
            stats: self.stats(row),
            tags: self.tags(row),
            deletion_vector: files.vector(row),
            base_row_id: long(files.base_row_id.as_ref()),
            default_row_commit_version: long(files.row_version.as_ref()),
            clustering_provider: self.clustering(row),
        }
    }
}

/// The rows of `stats_parsed` as `stats` spells them.
fn as_json(columns: &StructArray) -> Result<Vec<Option<String>>, ArrowError> {
    let schema = Arc::new(Schema::new(columns.fields().clone()));
    let options = RecordBatchOptions::new().with_row_count(Some(columns.len()));
    let batch = RecordBatch::try_new_with_options(schema, columns.columns().to_vec(), &options)?;
    let mut text = Vec::new();
    let mut writer = LineDelimitedWriter::new(&mut text);
    writer.write(&batch)?;
    writer.finish()?;
    let text = String::from_utf8(text).map_err(|it| ArrowError::JsonError(it.to_string()))?;
    let mut lines = text.lines();
    // A row without any statistics is a line, too.
    let row = |row| lines.next().filter(|it| columns.is_valid(row) && *it != "{}").map(str::to_owned);
    Ok((0..columns.len()).map(row).collect())
}
