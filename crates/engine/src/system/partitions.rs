//! `t$partitions`: how many files, rows and bytes each partition has, by the partition's JSON text.
//!
//! A table without partitions has one row, `{}`. Rows are null where a file does not say how many it has.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use futures::TryStreamExt;
use lakebed_core::{Error, Result, listing::ListingColumns, scan::Scan, table::Snapshot};

use super::rows::Columns;

#[derive(Default)]
struct Sum {
    files: u64,
    bytes: u64,
    rows: Option<u64>,
}

pub(super) async fn rows(snapshot: &Arc<dyn Snapshot>) -> Result<RecordBatch> {
    let columns = ListingColumns { bytes: true, rows: true, partition: true, ..ListingColumns::NONE };
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut batches = snapshot.files(&Scan { statistics: true, ..Scan::all() }, columns);
    while let Some(batch) = batches.try_next().await? {
        add(&mut sums, &batch)?;
    }
    let all = || sums.values();
    Columns::default()
        .text("partition", sums.keys().cloned())
        .count("files", all().map(|it| Some(it.files)))
        .count("rows", all().map(|it| it.rows))
        .count("bytes", all().map(|it| Some(it.bytes)))
        .batch()
}

fn add(sums: &mut BTreeMap<String, Sum>, batch: &RecordBatch) -> Result<()> {
    let wrong = |name: &str| Error::internal(format!("a listing without its column `{name}`"));
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| wrong(name));
    let numbers = |name| column(name)?.as_any().downcast_ref::<Int64Array>().cloned().ok_or_else(|| wrong(name));
    let (bytes, rows) = (numbers("bytes")?, numbers("rows")?);
    let partitions = column("partition")?.as_any().downcast_ref::<StringArray>().ok_or_else(|| wrong("partition"))?;
    for index in 0..batch.num_rows() {
        let partition = if partitions.is_valid(index) { partitions.value(index) } else { "{}" };
        let live = rows.is_valid(index).then(|| u64::try_from(rows.value(index)).ok()).flatten();
        let first = !sums.contains_key(partition);
        let sum = sums.entry(partition.to_owned()).or_default();
        sum.files += 1;
        sum.bytes = sum.bytes.saturating_add(u64::try_from(bytes.value(index)).unwrap_or(0));
        sum.rows = match (first, sum.rows, live) {
            (true, _, live) => live,
            (false, Some(before), Some(live)) => before.checked_add(live),
            (false, _, _) => None,
        };
    }
    Ok(())
}
