use std::{
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures::{TryStreamExt, stream};
use object_store::{
    CopyOptions, Error as StoreError, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions,
    PutOptions, PutResult, memory::InMemory,
};

use super::*;
use crate::{env::Env, path::PathPolicy};

type StoreResult<T> = std::result::Result<T, StoreError>;

/// A store in memory whose creates and deletes answer what the test wants.
#[derive(Debug, Default)]
struct Scripted {
    inner: InMemory,
    /// What the next create answers, and whether the object lands.
    create: Mutex<Option<(StoreError, bool)>>,
    ignores_conditions: bool,
    short_bodies: bool,
    undeletable: Vec<&'static str>,
    /// One error stands for the whole of a bulk delete.
    one_error: bool,
    /// Entries of listings, in an order of the test's.
    listing: Option<Vec<&'static str>>,
    listed: AtomicUsize,
}

impl fmt::Display for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("scripted")
    }
}

#[async_trait]
impl ObjectStore for Scripted {
    async fn put_opts(&self, at: &Path, body: PutPayload, mut options: PutOptions) -> StoreResult<PutResult> {
        let scripted = self.create.lock().unwrap().take();
        if let Some((err, lands)) = scripted {
            if lands {
                self.inner.put(at, body).await?;
            }
            return Err(err);
        }
        if self.ignores_conditions {
            options.mode = PutMode::Overwrite;
        }
        self.inner.put_opts(at, body, options).await
    }
    async fn put_multipart_opts(&self, at: &Path, it: PutMultipartOptions) -> StoreResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, it).await
    }
    async fn get_opts(&self, at: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let found = self.inner.get_opts(at, options).await?;
        if !self.short_bodies {
            return Ok(found);
        }
        let (meta, range, attributes) = (found.meta.clone(), found.range.clone(), found.attributes.clone());
        let bytes = found.bytes().await?;
        let cut = bytes.slice(..bytes.len() / 2);
        let payload = GetResultPayload::Stream(stream::once(async { Ok(cut) }).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }
    fn delete_stream(&self, keys: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        let (undeletable, one_error, inner) = (self.undeletable.clone(), self.one_error, self.inner.clone());
        keys.then(move |key| {
            let (undeletable, inner) = (undeletable.clone(), inner.clone());
            async move {
                let key = key?;
                if undeletable.contains(&key.as_ref()) {
                    return Err(StoreError::Generic { store: "scripted", source: "stuck".into() });
                }
                inner.head(&key).await?;
                inner.delete(&key).await.map(|()| key)
            }
        })
        .filter(move |it| futures::future::ready(!one_error || it.is_ok()))
        .boxed()
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.listed.fetch_add(1, Ordering::Relaxed);
        let Some(keys) = &self.listing else { return self.inner.list(prefix) };
        let meta = |it: &&'static str| ObjectMeta {
            location: Path::parse(it).unwrap(),
            last_modified: chrono::DateTime::UNIX_EPOCH,
            size: 1,
            e_tag: None,
            version: None,
        };
        stream::iter(keys.iter().map(|it| Ok(meta(it))).collect::<Vec<_>>()).boxed()
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn storage(store: Scripted) -> (Storage, Arc<Scripted>) {
    let store = Arc::new(store);
    (Storage::new(Arc::clone(&store) as Arc<dyn ObjectStore>, Path::from("t"), "memory:///t"), store)
}

fn memory() -> Storage {
    storage(Scripted::default()).0
}

async fn names(storage: &Storage, folder: &str, start: &str) -> Vec<String> {
    storage.list_after(folder, start).map_ok(|it| it.path).try_collect().await.unwrap()
}

async fn put_all(storage: &Storage, paths: &[&str]) {
    for path in paths {
        assert_eq!(storage.create(path, "x".into()).await.unwrap(), Put::Won);
    }
}

const RETRIED: &str = "Error performing PUT in 3.1s, after 2 retries, max_retries: 10, retry_timeout: 180s  - Server returned non-2xx status code: 412";
const AT_ONCE: &str = "Error performing PUT in 9ms - Server returned non-2xx status code: 412: PreconditionFailed";
const CONFLICT: &str =
    "Error performing PUT in 9ms - Server returned non-2xx status code: 409: ConditionalRequestConflict";
const DENIED_LATE: &str = "Error performing PUT in 3.1s, after 1 retries, max_retries: 10, retry_timeout: 180s  - Server returned non-2xx status code: 403";

#[tokio::test]
async fn a_create_has_three_outcomes_and_errors_only_for_what_was_never_sent() {
    let path = || "k".to_owned();
    let exists = |text: &'static str| StoreError::AlreadyExists { path: path(), source: text.into() };
    let cases: Vec<(StoreError, &str)> = vec![
        (exists("taken"), "Lost"),
        (exists(AT_ONCE), "Lost"),
        (exists(RETRIED), "Unknown"),
        (exists(CONFLICT), "Unknown"),
        (StoreError::Precondition { path: path(), source: AT_ONCE.into() }, "Lost"),
        (StoreError::Precondition { path: path(), source: RETRIED.into() }, "Unknown"),
        (StoreError::Generic { store: "s3", source: "operation timed out".into() }, "Unknown"),
        (StoreError::Generic { store: "s3", source: "connection reset".into() }, "Unknown"),
        (StoreError::NotModified { path: path(), source: "?".into() }, "Unknown"),
        (StoreError::PermissionDenied { path: path(), source: "403".into() }, "Unauthorized"),
        (StoreError::PermissionDenied { path: path(), source: DENIED_LATE.into() }, "Unknown"),
        (StoreError::Unauthenticated { path: path(), source: "401".into() }, "Unauthorized"),
        (StoreError::NotFound { path: path(), source: "no bucket".into() }, "NotFound"),
        (StoreError::NotSupported { source: "no".into() }, "Unsupported"),
        (StoreError::NotImplemented { operation: "create".into(), implementer: "x".into() }, "Unsupported"),
    ];
    for (answer, expected) in cases {
        let shown = answer.to_string();
        let (storage, store) = storage(Scripted::default());
        *store.create.lock().unwrap() = Some((answer, false));
        let outcome = match storage.create("k", "x".into()).await {
            Ok(put) => format!("{put:?}"),
            Err(err) => format!("{:?}", err.kind()),
        };
        assert_eq!(outcome, expected, "{shown}");
    }
    let storage = memory();
    assert_eq!(storage.create("k", "one".into()).await.unwrap(), Put::Won);
    assert_eq!(storage.create("k", "two".into()).await.unwrap(), Put::Lost);
    assert_eq!(storage.create("../k", "x".into()).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(storage.read(&FilePath::below("k")).await.unwrap().unwrap(), "one");
}

#[tokio::test]
async fn reads_say_what_is_not_there() {
    let storage = memory();
    let file = FilePath::below("k");
    assert!(storage.read(&file).await.unwrap().is_none());
    assert!(storage.head(&file).await.unwrap().is_none());
    assert_eq!(storage.read_range(&file, 0..1).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(storage.create("k", "0123456789".into()).await.unwrap(), Put::Won);
    assert_eq!(storage.read_range(&file, 2..5).await.unwrap(), "234");
    assert_eq!(storage.read_range(&file, 5..5).await.unwrap(), "");
    assert_eq!(storage.read_ranges(&file, &[8..10, 0..0, 0..2]).await.unwrap(), ["89", "", "01"]);
    assert_eq!(storage.head(&file).await.unwrap().unwrap().bytes, 10);
    assert_eq!(storage.read_limited(&file, 10).await.unwrap().unwrap().len(), 10);
    assert_eq!(storage.read_limited(&file, 9).await.unwrap_err().kind(), ErrorKind::Limit);
    for range in [8..11, 10..12, 99..100, Range { start: 5, end: 4 }] {
        let err = storage.read_range(&file, range.clone()).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Corrupt, "{range:?}: {err}");
    }
}

/// Readers that bring their own I/O know sizes from metadata, and meet the store's own errors.
#[tokio::test]
async fn bytes_behind_the_end_are_the_objects_fault_on_every_store() {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("t")).unwrap();
    let theirs = object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let stores: [Arc<dyn ObjectStore>; 3] =
        [Arc::new(InMemory::new()), Arc::new(LocalDisk::new(folder.path())), Arc::new(theirs)];
    for store in stores {
        let key = Path::from(format!("t/{}", store.to_string().len()));
        store.put(&key, PutPayload::from_static(b"0123456789")).await.unwrap();
        let far = 999_999_999_992..1_000_000_000_000;
        let one = store.get_range(&key, far.clone()).await.unwrap_err();
        let many = store.get_ranges(&key, &[0..4, far]).await.unwrap_err();
        for err in [one, many] {
            let err = storage_error("part", err);
            assert_eq!(err.kind(), ErrorKind::Corrupt, "{store}: {err}");
            assert!(err.to_string().starts_with("part: ") && err.to_string().contains("its metadata say"), "{err}");
        }
    }
    let answer = "Error performing GET in 9ms - Server returned non-2xx status code: 416: InvalidRange";
    let err = storage_error("part", StoreError::Generic { store: "s3", source: answer.into() });
    assert_eq!(err.kind(), ErrorKind::Corrupt);
    let silent = storage_error("part", StoreError::Generic { store: "s3", source: "timed out".into() });
    assert_eq!(silent.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_link_is_an_answer_of_an_inventory_and_an_error_of_a_listing() {
    let folder = tempfile::TempDir::new().unwrap();
    let disk = Storage::new(Arc::new(LocalDisk::new(folder.path())), Path::default(), "file:///lake/t");
    put_all(&disk, &["a", "d/x", "z"]).await;
    std::os::unix::fs::symlink("a", folder.path().join("part")).unwrap();
    std::os::unix::fs::symlink("x", folder.path().join("d/1.json")).unwrap();
    let mut inventory = Inventory::list(&disk).await.unwrap();
    for (path, expected) in [
        ("a", Found::Object(1)),
        ("part", Found::Link),
        ("d/1.json", Found::Link),
        ("d/x", Found::Object(1)),
        ("z", Found::Object(1)),
        ("d", Found::Nothing),
    ] {
        assert_eq!(inventory.find(&FilePath::below(path)).await.unwrap(), expected, "{path}");
    }
    let outside = FilePath::Outside("s3://o/x".into());
    assert_eq!(inventory.find(&outside).await.unwrap_err().kind(), ErrorKind::Refused);
    let refused = [
        (disk.list_all(""), "file:///lake/t: `d/1.json` is a symbolic link"),
        (disk.list_after("", ""), "file:///lake/t: `d/1.json` is a symbolic link"),
        (disk.list_after("d", "2.json"), "d: `d/1.json` is a symbolic link"),
    ];
    for (listed, expected) in refused {
        let err = listed.try_collect::<Vec<_>>().await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Refused);
        assert!(err.to_string().starts_with(expected), "{err}");
    }
    let later = disk.list_all("").filter_map(|it| async { it.ok() }).map(|it| it.path);
    assert_eq!(later.collect::<Vec<_>>().await, ["a", "d/x", "z"], "the listing goes on after a link");
}

#[tokio::test]
async fn a_body_cut_short_is_the_stores_fault() {
    let (storage, _) = storage(Scripted { short_bodies: true, ..Scripted::default() });
    assert_eq!(storage.create("k", "0123456789".into()).await.unwrap(), Put::Won);
    let file = FilePath::below("k");
    for err in [storage.read(&file).await.unwrap_err(), storage.read_range(&file, 2..8).await.unwrap_err()] {
        assert_eq!(err.kind(), ErrorKind::Unavailable, "{err}");
    }
}

#[tokio::test]
async fn files_outside_are_read_where_they_were_admitted() {
    let other = Arc::new(InMemory::new());
    other.put(&Path::from("base/p x"), PutPayload::from_static(b"theirs")).await.unwrap();
    let policy = PathPolicy::new("s3://b/t");
    let storage = Storage::with_policy(Arc::new(InMemory::new()), Path::from("t"), "s3://b/t", policy).with_outside(
        "s3a://o/base/",
        other,
        Path::from("base"),
    );
    let file = storage.policy().resolve_uri("s3a://o/base/p%20x").unwrap();
    assert_eq!(file, FilePath::Outside("s3://o/base/p x".into()));
    assert_eq!(storage.read(&file).await.unwrap().unwrap(), "theirs");
    let err = storage.delete(&[FilePath::below("own"), file.clone()]).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
    assert!(storage.read(&file).await.unwrap().is_some());
    for place in ["s3://o/base2/x", "s3://o/other", "file:///etc/passwd"] {
        assert_eq!(storage.read(&FilePath::Outside(place.into())).await.unwrap_err().kind(), ErrorKind::Refused);
    }
}

#[tokio::test]
async fn a_folder_is_listed_by_name_and_not_deeper() {
    let storage = memory();
    let paths = [
        "log/0.json",
        "log/1.json",
        "log/2.json",
        "log/10.json",
        "log/_sidecars/a",
        "log/_sidecars/b",
        "log/_x",
        "logs/z",
        "log.txt",
    ];
    put_all(&storage, &paths).await;
    assert_eq!(names(&storage, "log", "").await, ["log/0.json", "log/1.json", "log/10.json", "log/2.json", "log/_x"]);
    assert_eq!(names(&storage, "log", "1.json").await, ["log/10.json", "log/2.json", "log/_x"]);
    assert_eq!(names(&storage, "log/", "1.jso").await, ["log/1.json", "log/10.json", "log/2.json", "log/_x"]);
    assert_eq!(names(&storage, "log", "zz").await, Vec::<String>::new());
    assert_eq!(names(&storage, "nothing", "").await, Vec::<String>::new());
    assert_eq!(names(&storage, "", "").await, ["log.txt"]);
    let mut all: Vec<String> = storage.list_all("").map_ok(|it| it.path).try_collect().await.unwrap();
    all.sort();
    let mut expected = paths.map(str::to_owned);
    expected.sort();
    assert_eq!(all, expected);
    assert_eq!(storage.list_all("log/_sidecars").try_collect::<Vec<_>>().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_folder_inside_is_jumped_over() {
    let inner = Arc::new(InMemory::new());
    for it in 0..5_000 {
        inner.put(&Path::from(format!("t/log/_sidecars/{it:05}")), PutPayload::new()).await.unwrap();
    }
    for name in ["0.json", "_x"] {
        inner.put(&Path::from(format!("t/log/{name}")), PutPayload::new()).await.unwrap();
    }
    let stats = Arc::new(IoStats::default());
    let store = Arc::new(CountingStore::new(inner, Arc::clone(&stats)));
    let storage = Storage::new(store, Path::from("t"), "memory:///t");
    assert_eq!(names(&storage, "log", "").await, ["log/0.json", "log/_x"]);
    assert_eq!(stats.count(IoKind::List), 2, "one listing up to the folder, one behind it");
}

#[tokio::test]
async fn a_listing_is_read_no_further_than_asked() {
    let inner = Arc::new(InMemory::new());
    for it in 0..3_500 {
        inner.put(&Path::from(format!("t/log/{it:05}")), PutPayload::new()).await.unwrap();
    }
    let stats = Arc::new(IoStats::default());
    let store = Arc::new(CountingStore::new(inner, Arc::clone(&stats)));
    let storage = Storage::new(store, Path::from("t"), "memory:///t");
    assert_eq!(storage.list_after("log", "").take(10).count().await, 10);
    assert_eq!(stats.count(IoKind::List), 1);
    assert_eq!(names(&storage, "log", "00999").await.len(), 2_500);
    assert_eq!(stats.count(IoKind::List), 1 + 3);
}

#[tokio::test]
async fn odd_listings_are_mended_or_refused() {
    let twice = Scripted { listing: Some(vec!["t/log/a", "t/log/b", "t/log/b", "t/log/c"]), ..Scripted::default() };
    assert_eq!(names(&storage(twice).0, "log", "").await, ["log/a", "log/b", "log/c"]);
    let unsorted = Scripted { listing: Some(vec!["t/log/b", "t/log/a"]), ..Scripted::default() };
    let err = storage(unsorted).0.list_after("log", "").try_collect::<Vec<_>>().await.unwrap_err();
    assert!(err.to_string().contains("out of order"), "{err}");
    let foreign = Scripted { listing: Some(vec!["other/x", "t/log/a"]), ..Scripted::default() };
    assert_eq!(names(&storage(foreign).0, "log", "").await, ["log/a"]);
}

#[tokio::test]
async fn a_delete_reports_exactly_what_is_gone() {
    for one_error in [false, true] {
        let (storage, _) = storage(Scripted { undeletable: vec!["t/stuck"], one_error, ..Scripted::default() });
        put_all(&storage, &["a", "stuck", "b"]).await;
        let files = ["a", "gone", "stuck", "b"].map(FilePath::below);
        let removal = storage.delete(&files).await.unwrap();
        assert_eq!(removal.removed, ["a", "b"].map(FilePath::below));
        let failed: Vec<&str> = removal.failed.iter().map(|it| it.0.as_str()).collect();
        if one_error {
            assert_eq!(failed, ["gone", "stuck"], "what was not confirmed");
        } else {
            assert_eq!(removal.missing, [FilePath::below("gone")]);
            assert_eq!(failed, ["stuck"]);
        }
        assert!(storage.read(&FilePath::below("stuck")).await.unwrap().is_some());
    }
    let err = memory().delete(&[FilePath::below("")]).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused);
}

#[tokio::test]
async fn only_hints_are_overwritten() {
    let storage = memory();
    for (name, allowed) in [
        ("_delta_log/_last_checkpoint", true),
        ("snapshot/LATEST", true),
        ("snapshot/EARLIEST", true),
        ("metadata/version-hint.text", true),
        (".hoodie/hoodie.properties", true),
        (".hoodie/timeline/history/_version_", true),
        (".hoodie/.heartbeat/20260101", true),
        (".hoodie/.locks/table_lock.json", true),
        ("consumer/consumer-a", true),
        ("_delta_log/00000000000000000000.json", false),
        ("_delta_log/_last_checkpoint.json", false),
        ("snapshot/snapshot-1", false),
        ("hoodie.properties", false),
        ("consumer/other", false),
        ("part-0.parquet", false),
    ] {
        for body in ["one", "two"] {
            let written = storage.overwrite_hint(name, body.into()).await;
            assert_eq!(written.is_ok(), allowed, "{name}");
        }
        assert_eq!(storage.read(&FilePath::below(name)).await.unwrap().is_some(), allowed, "{name}");
    }
}

#[tokio::test]
async fn streams_become_objects_small_and_large() {
    let folder = tempfile::TempDir::new().unwrap();
    let disk = Storage::new(Arc::new(LocalDisk::new(folder.path())), Path::default(), "file:///t");
    for storage in [memory(), disk] {
        for (name, chunks) in [("none", 0), ("small", 3), ("large", 40)] {
            let body = || stream::iter((0..chunks).map(|it| Ok(Bytes::from(vec![it as u8; 1 << 20])))).boxed();
            assert_eq!(storage.create_stream(name, body()).await.unwrap(), Put::Won);
            let found = storage.read(&FilePath::below(name)).await.unwrap().unwrap();
            assert_eq!(found.len(), chunks << 20);
            assert!(found.chunks(1 << 20).enumerate().all(|(it, chunk)| chunk.iter().all(|byte| *byte == it as u8)));
            assert_eq!(storage.create_stream(name, body()).await.unwrap(), Put::Lost, "{name}");
        }
        let broken = stream::iter((0..20).map(|it| match it {
            19 => Err(Error::corrupt("the producer failed")),
            _ => Ok(Bytes::from(vec![0; 1 << 20])),
        }));
        let err = storage.create_stream("broken", broken.boxed()).await.unwrap_err();
        assert_eq!(err.to_string(), "the producer failed");
        assert!(storage.read(&FilePath::below("broken")).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_probe_tells_stores_that_ignore_conditions() {
    let env = Env::system();
    for (ignores, expected) in [(false, CreateSupport::Honoured), (true, CreateSupport::Ignored)] {
        let store = Arc::new(Scripted { ignores_conditions: ignores, ..Scripted::default() });
        let dynamic = Arc::clone(&store) as Arc<dyn ObjectStore>;
        let support = probe_create(&dynamic, &Path::from("a/b"), &env).await.unwrap();
        assert_eq!(support, expected);
        assert_eq!(support.require(dynamic.as_ref()).is_ok(), !ignores);
        assert!(store.inner.list(None).try_collect::<Vec<_>>().await.unwrap().is_empty());
    }
    let store = Arc::new(Scripted::default());
    let lacks = StoreError::NotImplemented { operation: "create".into(), implementer: "x".into() };
    *store.create.lock().unwrap() = Some((lacks, false));
    let dynamic = Arc::clone(&store) as Arc<dyn ObjectStore>;
    assert_eq!(probe_create(&dynamic, &Path::default(), &env).await.unwrap(), CreateSupport::Missing);
    let silent = StoreError::Generic { store: "s3", source: "timed out".into() };
    *store.create.lock().unwrap() = Some((silent, true));
    assert_eq!(probe_create(&dynamic, &Path::default(), &env).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let folder = tempfile::TempDir::new().unwrap();
    let disk: Arc<dyn ObjectStore> = Arc::new(LocalDisk::new(folder.path()));
    assert_eq!(probe_create(&disk, &Path::default(), &env).await.unwrap(), CreateSupport::Honoured);
}

#[tokio::test]
async fn requests_bytes_and_waves_are_counted() {
    let stats = Arc::new(IoStats::with_log());
    let store = Arc::new(CountingStore::new(Arc::new(InMemory::new()), Arc::clone(&stats)));
    let storage = Storage::new(store, Path::from("t"), "memory:///t");
    put_all(&storage, &["log/0", "log/1", "big"]).await;
    let (one, two) = (FilePath::below("log/0"), FilePath::below("log/1"));
    stats.clear_events();
    // Wave 1: a list. Wave 2: two gets at once. Wave 3: a get of something else.
    names(&storage, "log", "").await;
    let (_, _) = futures::try_join!(storage.read(&one), storage.read(&two)).unwrap();
    storage.read_range(&FilePath::below("big"), 0..1).await.unwrap();
    assert_eq!((stats.count(IoKind::Put), stats.count(IoKind::List), stats.count(IoKind::Get)), (3, 1, 3));
    assert_eq!((stats.bytes_written(), stats.bytes_read()), (3, 3));
    assert!(storage.head(&FilePath::below("none")).await.unwrap().is_none());
    assert!(storage.read(&FilePath::below("none")).await.unwrap().is_none());
    assert_eq!((stats.count(IoKind::Head), stats.count(IoKind::Get), stats.requests()), (1, 4, 9));
    let _ = storage.delete(&[one]).await.unwrap();
    assert_eq!(stats.count(IoKind::Delete), 1);
    let events = stats.events();
    assert!(events.iter().all(|it| it.ended.is_some_and(|end| end > it.started)), "{events:?}");
    assert!(stats.waves() >= 3);
    let far: Vec<Range<u64>> = vec![0..1, 5_000_000..5_000_001, 1..2];
    let before = stats.count(IoKind::Get);
    let _ = storage.read_ranges(&FilePath::below("big"), &far).await;
    assert_eq!(stats.count(IoKind::Get) - before, 2, "ranges far apart are two requests to a cloud");
}

#[test]
fn waves_are_chains_of_waiting() {
    let stats = Arc::new(IoStats::with_log());
    assert_eq!(stats.waves(), 0);
    let (a, b) = (stats.start(IoKind::Get, "a"), stats.start(IoKind::Get, "b"));
    assert_eq!(stats.waves(), 1);
    drop(a);
    let c = stats.start(IoKind::Get, "c");
    assert_eq!(stats.waves(), 2);
    drop(b);
    let d = stats.start(IoKind::Get, "d");
    assert_eq!(stats.waves(), 2, "d waited for b, as c for a");
    drop((c, d));
    drop(stats.start(IoKind::Get, "e"));
    assert_eq!(stats.waves(), 3);
}
