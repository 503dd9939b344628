//! What opening costs: parsing commits, and the age of the table (which must not matter).
use std::{hint::black_box, sync::Arc};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::TryStreamExt;
use lakebed_core::{
    commit::StoragePublisher,
    env::Env,
    format::{OpenOptions, TableFormat, TableLocation},
    listing::ListingColumns,
    scan::Scan,
    storage::{LocalDisk, Storage},
    table::Table,
    version::AsOf,
};
use lakebed_delta::Delta;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use serde_json::json;
use tokio::runtime::Runtime;

const FIRST: &str = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},{\"name\":\"day\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":["day"],"configuration":{}}}
"#;

fn add(file: u64) -> String {
    let stats =
        json!({"numRecords": 1000, "minValues": {"id": file}, "maxValues": {"id": file + 999}, "nullCount": {"id": 0}});
    let day = format!("2026-11-{:02}", file % 30 + 1);
    let add = json!({"add": {
        "path": format!("day={day}/part-00000-{file:032x}.c000.snappy.parquet"), "partitionValues": {"day": day},
        "size": 1_000_000 + file, "modificationTime": 1_700_000_000_000_u64 + file, "dataChange": true,
        "stats": stats.to_string(),
    }});
    format!("{add}\n")
}

async fn open(store: &Arc<dyn ObjectStore>) -> Arc<dyn Table> {
    let storage = Storage::new(Arc::clone(store), Path::from("t"), "memory:///t");
    let publisher = Arc::new(StoragePublisher);
    let at = TableLocation { storage, publisher, env: Env::system(), options: OpenOptions::default() };
    Delta.open(at).await.expect("the options are the default")
}

async fn count(table: &dyn Table) -> usize {
    let snapshot = table.snapshot(&AsOf::Latest).await.expect("the table is sound");
    let batches = snapshot.files(&Scan::all(), ListingColumns::NONE);
    batches.try_fold(0, |sum, it| async move { Ok(sum + it.num_rows()) }).await.expect("the table is sound")
}

fn parsing(c: &mut Criterion) {
    const FILES: u64 = 100_000;
    let runtime = Runtime::new().expect("a runtime");
    let text: String = std::iter::once(FIRST.to_owned()).chain((0..FILES).map(add)).collect();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let bytes = text.len() as u64;
    let commit = Path::from(format!("t/_delta_log/{:020}.json", 0));
    runtime.block_on(store.put(&commit, text.into())).expect("memory takes everything");
    let mut group = c.benchmark_group("parse");
    group.sample_size(10).throughput(Throughput::Bytes(bytes));
    group.bench_function("one commit of 100k adds", |b| {
        b.iter(|| runtime.block_on(async { black_box(count(&*open(&store).await).await) }));
    });
    group.finish();
}

/// A log of `age` versions on disk with a checkpoint (V2, in JSON, so that none of Parquet is timed) three commits back.
fn aged(folder: &std::path::Path, age: u64) -> Arc<dyn ObjectStore> {
    let log = folder.join("t/_delta_log");
    std::fs::create_dir_all(&log).expect("a temporary folder takes folders");
    let put =
        |name: String, body: String| std::fs::write(log.join(name), body).expect("a temporary folder takes files");
    for version in 0..=age {
        put(format!("{version:020}.json"), add(version));
    }
    let at = age - 3;
    let files: String = (0..100).map(add).collect();
    let body = format!("{{\"checkpointMetadata\":{{\"version\":{at}}}}}\n{FIRST}{files}");
    put(format!("{at:020}.checkpoint.00000000-0000-0000-0000-0000000000aa.json"), body);
    put("_last_checkpoint".to_owned(), json!({"version": at}).to_string());
    Arc::new(LocalDisk::new(folder))
}

fn ages(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = c.benchmark_group("age");
    group.sample_size(20);
    for age in [10, 100, 1_000, 10_000] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = aged(folder.path(), age);
        group.bench_with_input(BenchmarkId::new("open", age), &store, |b, store| {
            b.iter(|| runtime.block_on(async { black_box(count(&*open(store).await).await) }));
        });
        let table = runtime.block_on(open(&store));
        runtime.block_on(count(&*table));
        group.bench_with_input(BenchmarkId::new("refresh", age), &table, |b, table| {
            b.iter(|| runtime.block_on(table.snapshot(&AsOf::Latest)).expect("the table is sound"));
        });
    }
    group.finish();
}

criterion_group!(benches, parsing, ages);
criterion_main!(benches);
