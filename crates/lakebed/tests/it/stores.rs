//! Locations to storage, over the fakes.
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use futures::TryStreamExt as _;
use lakebed::{
    Lakebed,
    config::{Config, Origin},
};
use lakebed_core::{
    ErrorKind,
    commit::Publish,
    path::FilePath,
    storage::{Put, Storage},
};
use lakebed_engine::{error::of_datafusion, session::Locator as _};
use lakebed_testkit::{corpus, rows::Rows, value::Value};

use crate::fake::{Conditions, Dialect, FakeCloud};

/// A lake whose cache folder is `cache` and whose stores are the fake.
fn lake(fake: &FakeCloud, dialect: Dialect, cache: &std::path::Path, more: &[(&str, &str)]) -> Lakebed {
    let mut config = Config::default();
    let prefix = match dialect {
        Dialect::S3 => "store.s3",
        Dialect::Azure => "store.azure",
        Dialect::Gcs => "store.gcs",
    };
    let mut set = |key: &str, value: &str| config.set(key, value.to_owned(), Origin::Flag("test")).unwrap();
    set(&format!("{prefix}.endpoint"), &fake.endpoint());
    set(&format!("{prefix}.allow_http"), "true");
    set(&format!("{prefix}.credentials"), "none");
    set("store.retries", "0");
    for (key, value) in more {
        set(key, value);
    }
    let environment = BTreeMap::from([
        ("XDG_CACHE_HOME".to_owned(), cache.display().to_string()),
        ("AWS_REGION".to_owned(), "eu-west-1".to_owned()),
    ]);
    Lakebed::builder().config(config).environment(environment).build().unwrap()
}

fn location(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::S3 => "s3a://shop/lake/orders",
        Dialect::Azure => "abfss://shop@account.dfs.core.windows.net/lake/orders",
        Dialect::Gcs => "gs://shop/lake/orders",
    }
}

const ALL: [Dialect; 3] = [Dialect::S3, Dialect::Azure, Dialect::Gcs];

async fn commit(lake: &Lakebed, storage: &Storage, name: &str) -> lakebed_core::Result<Put> {
    let publish = Publish::Create { path: name.to_owned(), body: "ours".into() };
    lake.publisher().publish(storage, &publish).await
}

#[tokio::test]
async fn tables_are_listed_and_read_in_every_cloud() {
    for dialect in ALL {
        let fake = FakeCloud::start(dialect, Conditions::Honoured).await;
        for version in 0..7 {
            fake.put(&format!("lake/orders/_delta_log/{version:020}.json"), b"0123456789");
        }
        fake.put("lake/orders/part 1%20.parquet", b"rows");
        let cache = tempfile::tempdir().unwrap();
        let lake = lake(&fake, dialect, cache.path(), &[]);
        let storage = lake.stores().locate(location(dialect)).await.unwrap();
        let log: Vec<String> = storage.list_after("_delta_log", "").map_ok(|it| it.path).try_collect().await.unwrap();
        assert_eq!(log.len(), 7, "{dialect:?}: {log:?}");
        assert_eq!(log[6], "_delta_log/00000000000000000006.json");
        let after: Vec<String> = storage
            .list_after("_delta_log", "00000000000000000004.json")
            .map_ok(|it| it.path)
            .try_collect()
            .await
            .unwrap();
        assert_eq!(
            after,
            ["_delta_log/00000000000000000005.json", "_delta_log/00000000000000000006.json"],
            "{dialect:?}"
        );
        let commit = FilePath::below("_delta_log/00000000000000000003.json");
        assert_eq!(storage.read_range(&commit, 2..5).await.unwrap().as_ref(), b"234", "{dialect:?}");
        assert_eq!(storage.head(&commit).await.unwrap().unwrap().bytes, 10, "{dialect:?}");
        assert!(storage.read(&FilePath::below("nowhere")).await.unwrap().is_none(), "{dialect:?}");
        let odd = storage.read(&FilePath::below("part 1%20.parquet")).await.unwrap();
        assert_eq!(odd.as_deref(), Some(&b"rows"[..]), "{dialect:?}");
        assert!(lake.stores().io().requests() >= 6, "{dialect:?}");
        assert!(!fake.requests().iter().any(|it| it.starts_with("PUT")), "{dialect:?}: reading never writes");
    }
}

#[tokio::test]
async fn a_real_table_is_queried_in_every_cloud() {
    let Some(case) = corpus::case("delta", "dv-partitioned-checkpoint") else { return };
    let expected = case.expected().unwrap();
    for dialect in ALL {
        let fake = FakeCloud::start(dialect, Conditions::Honoured).await;
        put_folder(&fake, &case.table(), "lake/orders");
        let cache = tempfile::tempdir().unwrap();
        let lake = lake(&fake, dialect, cache.path(), &[]);
        let table = format!("delta.`{}`", location(dialect));
        let found = query(&lake, &format!("SELECT * FROM {table}")).await.unwrap();
        assert_eq!(expected.difference(&found), None, "{dialect:?}");
        let counted = query(&lake, &format!("SELECT count(*) AS n FROM {table}")).await.unwrap();
        assert_eq!(counted.rows, [[Value::Int(expected.len() as i128)]], "{dialect:?}");
        let asked = fake.requests();
        for object in [".checkpoint.parquet", "deletion_vector_", "part=", "LIST "] {
            assert!(asked.iter().any(|it| it.contains(object)), "{dialect:?}: {object}: {asked:?}");
        }
        let old = asked.iter().filter(|it| it.starts_with("GET ") && it.ends_with("00000000000000000003.json"));
        assert_eq!(old.count(), 0, "{dialect:?}: the checkpoint stands for old commits: {asked:?}");
        assert!(!asked.iter().any(|it| it.starts_with("PUT")), "{dialect:?}: {asked:?}");
    }
}

/// Every file below `folder`, under `key`.
fn put_folder(fake: &FakeCloud, folder: &std::path::Path, key: &str) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let key = format!("{key}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            put_folder(fake, &entry.path(), &key);
        } else {
            fake.put(&key, &std::fs::read(entry.path()).unwrap());
        }
    }
}

async fn query(lake: &Lakebed, sql: &str) -> lakebed_core::Result<Rows> {
    let session = lake.session()?;
    let statements = session.parse(sql)?;
    let output = session.run(&statements[0]).await?;
    let batches: Vec<RecordBatch> = output.rows.try_collect().await.map_err(of_datafusion)?;
    Rows::from_batches(&batches)
}

#[tokio::test]
async fn the_first_commit_probes_once_and_only_then_publishes() {
    for dialect in ALL {
        let fake = FakeCloud::start(dialect, Conditions::Honoured).await;
        let cache = tempfile::tempdir().unwrap();
        let first = lake(&fake, dialect, cache.path(), &[]);
        let storage = first.stores().locate(location(dialect)).await.unwrap();
        assert_eq!(commit(&first, &storage, "_delta_log/0.json").await.unwrap(), Put::Won, "{dialect:?}");
        // Azure's 409 may also mean that nobody's write landed: the commit then looks who is there.
        let second = commit(&first, &storage, "_delta_log/0.json").await.unwrap();
        assert_eq!(second, if dialect == Dialect::Azure { Put::Unknown } else { Put::Lost }, "{dialect:?}");
        let probes = |fake: &FakeCloud| fake.requests().iter().filter(|it| it.contains(".lakebed-probe-")).count();
        let once = probes(&fake);
        assert!(once > 0, "{dialect:?}");
        // Another process of the same user asks the cache.
        let second = lake(&fake, dialect, cache.path(), &[]);
        let storage = second.stores().locate(location(dialect)).await.unwrap();
        assert_eq!(commit(&second, &storage, "_delta_log/1.json").await.unwrap(), Put::Won, "{dialect:?}");
        assert_eq!(probes(&fake), once, "{dialect:?}");
        assert_eq!(second.stores().io().requests(), 1, "{dialect:?}: the probe is not counted");
        let left: Vec<String> = fake.keys().into_iter().filter(|it| it.contains("probe")).collect();
        assert!(left.is_empty(), "{dialect:?}: {left:?}");
    }
}

#[tokio::test]
async fn a_store_that_ignores_conditions_gets_no_commit() {
    for dialect in ALL {
        let fake = FakeCloud::start(dialect, Conditions::Ignored).await;
        let cache = tempfile::tempdir().unwrap();
        let lake = lake(&fake, dialect, cache.path(), &[]);
        let storage = lake.stores().locate(location(dialect)).await.unwrap();
        for _ in 0..2 {
            let err = commit(&lake, &storage, "_delta_log/0.json").await.unwrap_err();
            assert_eq!(err.kind(), ErrorKind::Unsupported, "{dialect:?}: {err}");
            assert!(err.to_string().contains("of two commits both would win"), "{dialect:?}: {err}");
        }
        assert!(fake.keys().is_empty(), "{dialect:?}: {:?}", fake.keys());
    }
}

#[tokio::test]
async fn a_read_only_lake_refuses_to_commit_before_it_asks_anybody() {
    let fake = FakeCloud::start(Dialect::S3, Conditions::Honoured).await;
    let cache = tempfile::tempdir().unwrap();
    let lake = lake(&fake, Dialect::S3, cache.path(), &[("read_only", "true")]);
    let storage = lake.stores().locate("s3://shop/t").await.unwrap();
    let err = commit(&lake, &storage, "_delta_log/0.json").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused);
    assert!(storage.overwrite_hint("_delta_log/_last_checkpoint", "x".into()).await.is_err());
    assert!(fake.requests().is_empty(), "{:?}", fake.requests());
}

/// RELIABILITY F28: whoever is stopped while a commit has no answer can tell.
#[tokio::test]
async fn a_commit_without_an_answer_is_known_to_be_on_its_way() {
    let fake = FakeCloud::start(Dialect::S3, Conditions::Honoured).await;
    let cache = tempfile::tempdir().unwrap();
    let lake = std::sync::Arc::new(lake(&fake, Dialect::S3, cache.path(), &[]));
    let storage = lake.stores().locate("s3://shop/t").await.unwrap();
    fake.keep_silent("_delta_log/0.json");
    let committing = {
        let (lake, storage) = (std::sync::Arc::clone(&lake), storage.clone());
        tokio::spawn(async move { commit(&lake, &storage, "_delta_log/0.json").await })
    };
    while !fake.requests().iter().any(|it| it.starts_with("PUT") && it.ends_with("_delta_log/0.json")) {
        tokio::task::yield_now().await;
    }
    assert_eq!(lake.flights().open(), ["s3://shop/t/_delta_log/0.json"]);
    assert_eq!(lake.flights().unknown().unwrap().kind(), ErrorKind::Unknown);
    fake.keep_silent("");
    lake.flights().landed().await;
    assert_eq!(committing.await.unwrap().unwrap(), Put::Won);
    assert!(lake.flights().unknown().is_none());
}

#[tokio::test]
async fn memory_is_one_store_a_process() {
    let lake = Lakebed::builder().build().unwrap();
    let one = lake.stores().locate("memory:///a/t").await.unwrap();
    assert_eq!(one.create("x", "1".into()).await.unwrap(), Put::Won);
    let other = lake.stores().locate("memory:a").await.unwrap();
    assert_eq!(other.read(&FilePath::below("t/x")).await.unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!((one.location(), other.location()), ("memory:///a/t", "memory:///a"));
}

#[tokio::test]
async fn a_place_outside_is_open_only_when_the_operator_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(folder.join("t")).unwrap();
    std::fs::create_dir_all(folder.join("source")).unwrap();
    std::fs::write(folder.join("source/f"), "rows").unwrap();
    let outside = format!("file://{}/source/f", folder.display());
    let closed = Lakebed::builder().build().unwrap();
    let storage = closed.stores().locate(&folder.join("t").display().to_string()).await.unwrap();
    assert_eq!(storage.policy().resolve_uri(&outside).unwrap_err().kind(), ErrorKind::Refused);
    let mut config = Config::default();
    config.set("paths.allow", folder.join("source").display().to_string(), Origin::Flag("test")).unwrap();
    let open = Lakebed::builder().config(config).build().unwrap();
    let storage = open.stores().locate(&folder.join("t").display().to_string()).await.unwrap();
    let file = storage.policy().resolve_uri(&outside).unwrap();
    assert_eq!(storage.read(&file).await.unwrap().as_deref(), Some(&b"rows"[..]));
}

#[cfg(unix)]
#[tokio::test]
async fn a_table_may_be_reached_through_a_link_and_may_not_leave_through_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("real")).unwrap();
    std::fs::write(folder.path().join("real/inside"), "in").unwrap();
    std::fs::write(folder.path().join("secret"), "out").unwrap();
    std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), folder.path().join("real/leak")).unwrap();
    let lake = Lakebed::builder().base(folder.path()).build().unwrap();
    let storage = lake.stores().locate("link").await.unwrap();
    assert!(storage.location().ends_with("/real"), "{}", storage.location());
    assert_eq!(storage.read(&FilePath::below("inside")).await.unwrap().as_deref(), Some(&b"in"[..]));
    assert!(storage.read(&FilePath::below("leak")).await.is_err());
}
