//! What the mission asks of Lakebed, a test an item, through SQL and the library as any door has them.
//!
//! `tests/mission/<topic>.txt` lists the items of a topic; a test named `item_<number>_…` in the module of that topic, here
//! or in another crate, is the check of one, or a part of it. `scripts/mission` prints the list with what the tests said.
mod delta_log;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use lakebed::Lakebed;
use lakebed_core::{
    ErrorKind, Result,
    commit::{Publish, Publisher, StoragePublisher},
    env::Env,
    storage::{IoStats, Put, Storage},
    version::AsOf,
};
use lakebed_engine::{Access, Formats, Locator, Session, SessionOptions};
use lakebed_testkit::{env::env, seed::Seed, store::FaultyStore};

use crate::slt::answer;

/// Tables on this disk.
struct Disk {
    folder: tempfile::TempDir,
    session: Session,
}

impl Disk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (_, session) = process(folder.path());
        Self { folder, session }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `{t}` is the table `t`, `{path}` its folder.
    fn sql(&self, text: &str) -> String {
        let path = self.path("t").display().to_string();
        text.replace("{t}", &format!("delta.`{path}`")).replace("{path}", &path)
    }

    async fn told(&self, text: &str) -> Result<Vec<String>> {
        answer(&self.session, &self.sql(text)).await
    }

    async fn run(&self, text: &str) -> Vec<String> {
        self.told(text).await.unwrap_or_else(|err| panic!("{text}: {err}"))
    }

    /// Asks a process that knows nothing of the table yet.
    async fn afresh(&self, text: &str) -> Result<Vec<String>> {
        answer(&process(self.folder.path()).1, &self.sql(text)).await
    }

    /// What reading the newest version warns of.
    async fn warnings(&self) -> Vec<String> {
        let (lake, _) = process(self.folder.path());
        let opened = lake.open(&self.path("t").display().to_string(), None).await.unwrap();
        let snapshot = opened.table.snapshot(&AsOf::Latest).await.unwrap();
        let files = snapshot.tasks(&lakebed_core::scan::Scan::all());
        futures::TryStreamExt::try_collect::<Vec<_>>(files).await.unwrap();
        let warnings = snapshot.facts().into_iter().find(|(name, _)| name == "warnings");
        let texts = warnings.and_then(|(_, it)| it.as_array().cloned()).unwrap_or_default();
        texts.iter().map(|it| it.as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// What another process would have: nothing in common but the folder.
fn process(folder: &Path) -> (Lakebed, Session) {
    let lake = Lakebed::builder().base(folder).build().unwrap();
    let session = lake.session().unwrap();
    (lake, session)
}

/// Tables in a store that counts and fails.
struct Counted {
    store: FaultyStore,
    env: Env,
    session: Session,
    meddler: Arc<Meddler>,
}

impl Counted {
    fn over(store: FaultyStore, env: Env) -> Self {
        let meddler = Arc::new(Meddler::default());
        let session = session(&store, env.clone(), Arc::clone(&meddler) as Arc<dyn Publisher>);
        Self { store, env, session, meddler }
    }

    fn new() -> Self {
        Self::over(FaultyStore::new(Seed(1)), env(Seed(2)))
    }

    /// Another process, which has asked nothing yet.
    fn restarted(&self) -> Self {
        Self::over(self.store.restarted(), self.env.clone())
    }

    async fn told(&self, text: &str) -> Result<Vec<String>> {
        answer(&self.session, &text.replace("{t}", "delta.`/lake/t`")).await
    }

    async fn run(&self, text: &str) -> Vec<String> {
        self.told(text).await.unwrap_or_else(|err| panic!("{text}: {err}"))
    }

    /// Has another process do this while a commit of this one is about to be made visible, so many times.
    fn meddled(&self, text: &str, times: usize) {
        let (store, env, text) = (self.store.restarted(), self.env.clone(), text.to_owned());
        *self.meddler.plan.lock().unwrap() = Some(Meddling { store, env, text, times });
    }
}

fn session(store: &FaultyStore, env: Env, publisher: Arc<dyn Publisher>) -> Session {
    Session::new(SessionOptions {
        formats: Formats::new(lakebed::formats()),
        locator: Arc::new(Shelf(store.clone())),
        catalogs: Vec::new(),
        default_catalog: lakebed::CATALOG.to_owned(),
        default_schema: lakebed::SCHEMA.to_owned(),
        publisher,
        env,
        time_zone: "UTC".to_owned(),
        memory_limit: Some(256 << 20),
        target_partitions: Some(2),
        access: Access::ReadWrite,
    })
    .unwrap()
}

/// `/lake/<name>` is the table of that name.
#[derive(Debug)]
struct Shelf(FaultyStore);

#[async_trait]
impl Locator for Shelf {
    async fn locate(&self, location: &str) -> Result<Storage> {
        Ok(self.0.storage(location.trim_start_matches("/lake/")))
    }

    fn io(&self) -> Arc<IoStats> {
        Arc::new(IoStats::default())
    }
}

/// Publishes, and before that lets another one be faster.
#[derive(Debug, Default)]
struct Meddler {
    plan: Mutex<Option<Meddling>>,
}

/// What another process does, and how often yet.
#[derive(Debug, Clone)]
struct Meddling {
    store: FaultyStore,
    env: Env,
    text: String,
    times: usize,
}

impl Meddler {
    fn next(&self) -> Option<Meddling> {
        let mut plan = self.plan.lock().unwrap();
        let plan = plan.as_mut().filter(|it| it.times > 0)?;
        plan.times -= 1;
        Some(plan.clone())
    }
}

#[async_trait]
impl Publisher for Meddler {
    async fn publish(&self, storage: &Storage, publish: &Publish) -> Result<Put> {
        if let Some(Meddling { store, env, text, .. }) = self.next() {
            let other = std::thread::spawn(move || alone(Counted::over(store, env).run(&text)));
            other.join().unwrap();
        }
        StoragePublisher.publish(storage, publish).await
    }
}

/// Runs something to its end on a runtime of its own.
fn alone<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// An outcome in a line: `ok`, or the kind and the message.
fn shown<T>(outcome: &Result<T>) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(err) => format!("{:?}: {err}", err.kind()),
    }
}

fn kind<T>(outcome: &Result<T>) -> Option<ErrorKind> {
    outcome.as_ref().err().map(lakebed_core::Error::kind)
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|err| panic!("{}: {err}", folder.display()));
    let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
