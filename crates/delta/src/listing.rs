//! The live files of a snapshot as rows, without making tasks.
use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, builder::StringBuilder};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use lakebed_core::{Error, Result, file::FileStats, listing::ListingColumns, scan::Scan};
use serde_json::{Map, Value};

use crate::{
    checkpoint::{files::FileStatistics, on_a_thread},
    partition,
    prune::{Pruner, StatsLeaves},
    scan::{self, Pruned, Statistics},
    schema::{TableSchema, physical_name},
    snapshot::{DeltaSnapshot, RowCounts},
    state::{State, key},
    stats::{StatsColumns, StatsPlan},
};

/// Batches of the listing with `columns`, pruned by `scan`.
pub(crate) fn batches(
    snapshot: &DeltaSnapshot,
    scan: &Scan,
    columns: ListingColumns,
) -> BoxStream<'static, Result<RecordBatch>> {
    let pruner = Arc::new(Pruner::new(&snapshot.schema, &scan.predicate));
    let bounds = columns.min || columns.max;
    let nothing = std::collections::BTreeSet::new();
    let described = if bounds { None } else { Some(&nothing) };
    let leaves = Arc::new(StatsLeaves::of(&snapshot.schema, described));
    let statistics = if bounds || columns.rows { Statistics::Of(leaves) } else { Statistics::None };
    let lister = Arc::new(Lister {
        state: Arc::clone(&snapshot.state),
        schema: Arc::clone(&snapshot.schema),
        plan: StatsPlan::of(&snapshot.schema, described),
        columns,
    });
    scan::pruned(Arc::clone(&snapshot.state), pruner, statistics)
        .and_then(move |it| {
            let lister = Arc::clone(&lister);
            // A row of a listing is some hundred bytes of text to make.
            on_a_thread(it.rows.len().saturating_mul(100), move || lister.batch(&it))
        })
        .boxed()
}

struct Lister {
    state: Arc<State>,
    schema: Arc<TableSchema>,
    plan: StatsPlan,
    columns: ListingColumns,
}

impl Lister {
    fn batch(&self, pruned: &Pruned) -> Result<RecordBatch> {
        let wanted = self.columns;
        let mut columns: Vec<ArrayRef> = Vec::new();
        if wanted.path {
            columns.push(self.paths(pruned));
        }
        if wanted.bytes {
            columns.push(
                pruned
                    .rows
                    .iter()
                    .map(|row| Some(pruned.batch.files().bytes.value(*row)))
                    .collect::<Int64Array>()
                    .into_ref(),
            );
        }
        if wanted.rows {
            columns.push(self.live_rows(pruned));
        }
        if wanted.partition {
            columns.push(self.partitions(pruned)?);
        }
        if wanted.format {
            columns.push(StringArray::from_iter_values(pruned.rows.iter().map(|_| "parquet")).into_ref());
        }
        if wanted.deletes {
            columns.push(pruned.rows.iter().map(|row| Some(deleted(pruned, *row))).collect::<Int64Array>().into_ref());
        }
        if wanted.min || wanted.max {
            self.bounds(pruned, &mut columns);
        }
        if wanted.added_in {
            columns.push(added_in(pruned));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(pruned.rows.len()));
        let batch = RecordBatch::try_new_with_options(lakebed_core::listing::schema(wanted), columns, &options);
        batch.map_err(|it| Error::internal(format!("a listing does not have its own schema: {it}")))
    }

    fn paths(&self, pruned: &Pruned) -> ArrayRef {
        let policy = self.state.log.storage().policy();
        let path = &pruned.batch.files().path;
        let mut builder = StringBuilder::with_capacity(pruned.rows.len(), pruned.rows.len() * 64);
        for row in &pruned.rows {
            builder.append_value(key::canonical(policy, path.value(*row)));
        }
        Arc::new(builder.finish())
    }

    fn live_rows(&self, pruned: &Pruned) -> ArrayRef {
        let counts = RowCounts::of(&self.schema, &pruned.statistics);
        let live = pruned.rows.iter().map(|row| {
            let rows = i64::try_from(counts.get(*row)?).ok()?;
            rows.checked_sub(deleted(pruned, *row)).filter(|it| *it >= 0)
        });
        live.collect::<Int64Array>().into_ref()
    }

    /// Each combination of values is turned into text once.
    fn partitions(&self, pruned: &Pruned) -> Result<ArrayRef> {
        let fields: Vec<_> = self.schema.partition_fields().collect();
        if fields.is_empty() {
            return Ok(StringArray::new_null(pruned.rows.len()).into_ref());
        }
        let columns: Vec<_> =
            fields.iter().map(|it| pruned.batch.files().partition_values(physical_name(it))).collect();
        let mut known: HashMap<Vec<Option<&str>>, String> = HashMap::new();
        let mut builder = StringBuilder::new();
        let mut values = Vec::with_capacity(columns.len());
        for row in &pruned.rows {
            values.clear();
            values.extend(columns.iter().map(|it| it.get(*row)));
            let named = columns.iter().all(|it| it.is_named(*row));
            if let Some(text) = known.get(&values).filter(|_| named) {
                builder.append_value(text);
                continue;
            }
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(&columns) {
                let file = pruned.batch.files().path.value(*row);
                let parsed = partition::of_row(file, field, column, *row)?;
                let shown = parsed.map_or(Value::Null, |it| partition::json(&it, field.data_type()));
                object.insert(field.name().clone(), shown);
            }
            let text = Value::Object(object).to_string();
            builder.append_value(&text);
            known.insert(values.clone(), text);
        }
        Ok(Arc::new(builder.finish()))
    }

    fn bounds(&self, pruned: &Pruned, columns: &mut Vec<ArrayRef>) {
        let parsed = match &pruned.statistics {
            FileStatistics::Parsed(columns) => Some(StatsColumns::of(&self.plan, columns)),
            _ => None,
        };
        let (mut min, mut max) = (StringBuilder::new(), StringBuilder::new());
        for row in &pruned.rows {
            let stats = match (&pruned.statistics, &parsed) {
                (FileStatistics::Text(text), _) => text.get(*row).map(|it| self.plan.read(&it)),
                (_, Some(columns)) => Some(columns.read(&self.plan, *row)),
                _ => None,
            };
            let (lower, upper) = self.plan.bounds_json(&stats.unwrap_or_else(FileStats::default));
            min.append_option(lower);
            max.append_option(upper);
        }
        if self.columns.min {
            columns.push(Arc::new(min.finish()));
        }
        if self.columns.max {
            columns.push(Arc::new(max.finish()));
        }
    }
}

fn deleted(pruned: &Pruned, row: usize) -> i64 {
    pruned.batch.files().vectors.as_ref().map_or(0, |it| it.deleted(row))
}

fn added_in(pruned: &Pruned) -> ArrayRef {
    match &pruned.batch.files().added_in {
        None => StringArray::new_null(pruned.rows.len()).into_ref(),
        Some(versions) => {
            let shown = pruned.rows.iter().map(|row| Some(versions.value(*row).to_string()));
            shown.collect::<StringArray>().into_ref()
        }
    }
}

trait IntoRef {
    fn into_ref(self) -> ArrayRef;
}

impl<T: Array + 'static> IntoRef for T {
    fn into_ref(self) -> ArrayRef {
        Arc::new(self)
    }
}
