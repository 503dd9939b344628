//! Keeping tables: checkpoints, log clean-up, vacuum, orphans, compaction.
use std::{sync::Arc, time::Duration};

use lakebed_core::{
    Result,
    commit::StoragePublisher,
    env::Env,
    format::{OpenOptions, TableFormat, TableLocation},
    maintain::{self, Applied, Doomed, Maintenance, MaintenancePlan, Step},
    storage::Storage,
    table::Table,
};
use lakebed_delta::{Delta, DeltaTable};
use lakebed_testkit::{
    env::{ManualClock, SeededIds},
    seed::Seed,
    store::FaultyStore,
};
use object_store::{ObjectStoreExt, path::Path};
use serde_json::{Value, json};

use crate::world::{metadata, protocol, text};

mod changes;
mod checkpoint;
mod compact;
mod expire;
mod vacuum;

const DAY: Duration = Duration::from_secs(86_400);

/// A table made by hand, in a world whose clock the test owns.
#[derive(Debug)]
pub(super) struct Yard {
    pub(super) store: FaultyStore,
    pub(super) clock: Arc<ManualClock>,
    pub(super) env: Env,
    pub(super) version: u64,
}

impl Yard {
    /// Version 0: no files, these properties, and a protocol that may have tags.
    pub(super) async fn new(configuration: Value) -> Self {
        let protocol =
            json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata"]}});
        Self::with(protocol, metadata(&[], configuration)).await
    }

    pub(super) async fn plain() -> Self {
        Self::with(protocol(), metadata(&[], json!({}))).await
    }

    pub(super) async fn with(protocol: Value, metadata: Value) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = FaultyStore::new(Seed(1)).timed(Arc::clone(&clock) as _, Duration::ZERO);
        let env = Env { clock: Arc::clone(&clock) as _, ids: Arc::new(SeededIds::new(Seed(2))) };
        let mut yard = Self { store, clock, env, version: 0 };
        yard.log("00000000000000000000.json", &text(&[protocol, metadata])).await;
        yard.version = 0;
        yard
    }

    pub(super) async fn put(&self, path: &str, body: impl Into<bytes::Bytes>) {
        self.store.put(&Path::parse(format!("t/{path}")).unwrap(), body.into().into()).await.unwrap();
    }

    pub(super) async fn log(&self, name: &str, body: &str) {
        self.put(&format!("_delta_log/{name}"), body.to_owned()).await;
    }

    /// The next version.
    pub(super) async fn commit(&mut self, lines: &[Value]) {
        self.version += 1;
        self.log(&format!("{:020}.json", self.version), &text(lines)).await;
    }

    /// A data file, and the next version, which adds it.
    pub(super) async fn add(&mut self, path: &str) {
        self.put(path, "rows").await;
        self.commit(&[add(path)]).await;
    }

    pub(super) async fn remove(&mut self, path: &str) {
        let remove = self.removal(path);
        self.commit(&[remove]).await;
    }

    pub(super) fn removal(&self, path: &str) -> Value {
        json!({"remove": {"path": path, "deletionTimestamp": self.env.clock.now().0, "dataChange": true, "size": 4}})
    }

    pub(super) async fn tag(&mut self, name: &str, version: u64) {
        let configuration = json!({"tags": {name: {"version": version}}}).to_string();
        self.commit(&[json!({"domainMetadata": {
            "domain": "lakebed.refs", "configuration": configuration, "removed": false,
        }})])
        .await;
    }

    pub(super) fn days(&self, days: u32) {
        self.clock.advance(DAY * days);
    }

    pub(super) fn storage(&self) -> Storage {
        self.store.storage("t")
    }

    /// The table as a new process sees it.
    pub(super) async fn table(&self) -> Arc<DeltaTable> {
        let publisher = Arc::new(StoragePublisher);
        let at = TableLocation {
            storage: self.storage(),
            publisher,
            env: self.env.clone(),
            options: OpenOptions::default(),
        };
        let table: Arc<dyn std::any::Any + Send + Sync> = Delta.open(at).await.unwrap();
        table.downcast().unwrap()
    }

    pub(super) async fn plan(&self, action: &Maintenance) -> Result<MaintenancePlan> {
        self.table().await.plan(action).await
    }

    pub(super) async fn run(&self, action: &Maintenance) -> Applied {
        let table = self.table().await;
        let plan = table.plan(action).await.unwrap();
        maintain::run(table.as_ref(), &StoragePublisher, &self.env, plan).await.unwrap()
    }

    /// Carries out an action, and fails unless it went through.
    pub(super) async fn keep_up(&self, action: &Maintenance) {
        let applied = self.run(action).await;
        assert!(applied.stopped.is_none() && applied.failed.is_empty(), "{action:?}: {applied:?}");
    }

    /// Every object below the root, without the log, sorted.
    pub(super) async fn files(&self) -> Vec<String> {
        let mut names = self.names("").await;
        names.retain(|it| !it.starts_with("_delta_log/"));
        names
    }

    pub(super) async fn names(&self, folder: &str) -> Vec<String> {
        use futures::TryStreamExt;
        let storage = self.storage();
        let found: Vec<_> = storage.list_all(folder).map_ok(|it| it.path).try_collect().await.unwrap();
        let mut found: Vec<String> = found;
        found.sort();
        found
    }

    /// The log's files, short: `3.json 4.checkpoint`.
    pub(super) async fn log_names(&self) -> String {
        let names = self.names("_delta_log").await;
        let short = names.iter().filter_map(|it| {
            let name = it.strip_prefix("_delta_log/")?;
            let (version, rest) = name.split_once('.')?;
            Some(format!("{}.{}", version.parse::<u64>().ok()?, rest.trim_end_matches(".parquet")))
        });
        let mut short: Vec<String> = short.collect();
        short.sort_by_key(|it| (it.split('.').next().and_then(|it| it.parse::<u64>().ok()), it.clone()));
        short.join(" ")
    }
}

pub(super) fn add(path: &str) -> Value {
    json!({"add": {"path": path, "partitionValues": {}, "size": 4, "modificationTime": 7, "dataChange": true}})
}

pub(super) fn doomed(plan: &MaintenancePlan) -> Vec<&Doomed> {
    let batches = plan.steps.iter().filter_map(|it| match it {
        Step::Delete(batch) => Some(batch),
        _ => None,
    });
    batches.flatten().collect()
}

/// The paths a plan would delete, sorted.
pub(super) fn paths(plan: &MaintenancePlan) -> Vec<String> {
    let mut paths: Vec<String> = doomed(plan).iter().map(|it| it.path.as_str().to_owned()).collect();
    paths.sort();
    paths
}
