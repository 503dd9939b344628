//! A store that fails while a table is read: every kind of fault, on every kind of object.
//!
//! The answer is right for the version it says it is, or an error whose kind says what is the matter. A store that does
//! not answer is never taken for damage: only a cache that is wrong, or that the store definitely refuses, may be passed
//! over for an older base.

use lakebed_core::{Error, ErrorKind, table::Snapshot, version::AsOf};
use lakebed_delta::Delta;
use lakebed_testkit::{
    corpus, reference,
    rows::Rows,
    seed::Seed,
    store::{Fault, FaultyStore, Op, Times},
};
use object_store::{ObjectStoreExt, PutPayload, path::Path};

use crate::world::{File, World, names, open, paths};

const NEWEST: u64 = 13;
const TIMES: [Times; 4] = [Times::Always, Times::First(1), Times::Nth(2), Times::Nth(3)];

/// A table with its whole log, and one whose commits before the checkpoint were cleaned away.
async fn worlds() -> [World; 2] {
    let worlds = [World::with_versions(NEWEST).await, World::with_versions(NEWEST).await];
    for world in &worlds {
        world.checkpoint(10).await;
    }
    for version in 0..=10 {
        worlds[1].delete(&format!("{version:020}.json")).await;
    }
    worlds
}

/// The version a reader without a past sees, and its files.
async fn seen(store: &FaultyStore, version: Option<u64>) -> Result<(u64, Vec<File>), Error> {
    let table = open(store.storage("t")).await;
    let snapshot = match version {
        None => table.latest().await?,
        Some(version) => table.at(version).await?,
    };
    let files = paths(&snapshot).await?;
    Ok((snapshot.version().id.as_str().parse().unwrap(), files))
}

/// The faults of a read that are the store's, with the kind of error they must be.
fn refusals() -> Vec<(Fault, ErrorKind)> {
    vec![
        (Fault::FailBefore, ErrorKind::Unavailable),
        (Fault::FailAfter, ErrorKind::Unavailable),
        (Fault::LoseRequest, ErrorKind::Unavailable),
        (Fault::LoseAnswer, ErrorKind::Unavailable),
        (Fault::Forbid, ErrorKind::Unauthorized),
    ]
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_never_taken_for_damage() {
    let mut failed = 0;
    for (at, world) in worlds().await.into_iter().enumerate() {
        // A body cut by a line would still be a commit, with fewer rows.
        let line = world.get("00000000000000000013.json").await;
        let line = line[..line.len() - 1].rsplit(|it| *it == b'\n').next().unwrap().len() + 1;
        let mut faults = refusals();
        faults.extend([1, line, 1 << 20].map(|by| (Fault::ShortBody(by), ErrorKind::Unavailable)));
        let objects = [
            (Op::Get, "_last_checkpoint"),
            (Op::List, ""),
            (Op::Get, ".checkpoint.parquet"),
            (Op::Get, "00000000000000000011.json"),
            (Op::Get, "00000000000000000013.json"),
        ];
        for (op, object) in objects {
            for (fault, kind) in &faults {
                for times in TIMES {
                    for wanted in [None, Some(12)] {
                        let what = format!("{fault:?} {times:?} of {op:?} {object}, version {wanted:?}");
                        let store = world.store.restarted().rule(op, object, fault.clone(), times);
                        let version = wanted.unwrap_or(NEWEST);
                        match seen(&store, wanted).await {
                            Ok(seen) => assert_eq!(seen, (version, names(0..=version)), "{what}"),
                            Err(err) => assert_eq!(err.kind(), *kind, "{what}: {err}"),
                        }
                        let hit = store.log().iter().any(|it| it.op == op && it.path.contains(object));
                        // A listing has no body to cut.
                        let cut = matches!(fault, Fault::ShortBody(_)) && op == Op::List;
                        if !hit || times != Times::Always || cut {
                            continue;
                        }
                        // A definite no about a cache is no silence: the log rebuilds the same version, if it is whole.
                        let cache = object == "_last_checkpoint" || object == ".checkpoint.parquet" && at == 0;
                        if cache && *fault == Fault::Forbid {
                            let found = seen(&store, wanted).await;
                            assert_eq!(found.expect(&what), (version, names(0..=version)), "{what}");
                        } else {
                            let err = seen(&store, wanted).await.expect_err(&what);
                            assert_eq!(err.kind(), *kind, "{what}: {err}");
                            failed += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(failed > 100, "{failed} readings met a fault that lasts");
}

#[tokio::test]
async fn a_stale_listing_shows_an_older_version_whole_or_none() {
    for world in worlds().await {
        for newest in 0..20 {
            for times in TIMES {
                for wanted in [None, Some(12)] {
                    let what = format!("without the newest {newest}, {times:?}, version {wanted:?}");
                    let store = world.store.restarted().rule(Op::List, "", Fault::StaleList(newest), times);
                    match seen(&store, wanted).await {
                        Ok((version, files)) => {
                            assert_eq!(files, names(0..=version), "{what}: version {version}");
                            assert!(wanted.is_none_or(|it| it == version), "{what}: version {version}");
                        }
                        Err(err) => {
                            let kind = err.kind();
                            assert!(
                                matches!(kind, ErrorKind::NotFound | ErrorKind::Corrupt),
                                "{what}: {kind:?}: {err}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// A table with deletion vectors in its checkpoint and after it, in a store that can fail.
async fn with_vectors() -> Option<(FaultyStore, Rows)> {
    let case = corpus::case("delta", "dv-partitioned-checkpoint")?;
    let store = FaultyStore::new(Seed(7));
    for (name, body) in files(&case.table(), "t") {
        store.put(&Path::parse(name).unwrap(), PutPayload::from(body)).await.unwrap();
    }
    Some((store, case.expected().unwrap()))
}

fn files(folder: &std::path::Path, key: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let key = format!("{key}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), &key));
        } else {
            found.push((key, std::fs::read(entry.path()).unwrap()));
        }
    }
    found
}

async fn rows(store: &FaultyStore) -> Result<Rows, Error> {
    reference::read_table(&Delta, open(store.storage("t")).await.as_ref(), &AsOf::Latest).await
}

#[tokio::test]
async fn a_vector_that_cannot_be_read_is_an_error_and_never_no_vector() {
    let Some((store, expected)) = with_vectors().await else { return };
    let whole = rows(&store).await.unwrap();
    assert_eq!(expected.difference(&whole), None);
    let mut faults = refusals();
    faults.extend([1, 4, 1 << 20].map(|by| (Fault::ShortBody(by), ErrorKind::Unavailable)));
    // The checksum tells; one bit a reading, wherever the seed says.
    faults.extend((0..64).map(|_| (Fault::BitFlip, ErrorKind::Corrupt)));
    for (at, (fault, kind)) in faults.into_iter().enumerate() {
        for times in [Times::First(1), Times::Nth(2), Times::Always] {
            let seeded = FaultyStore::over(std::sync::Arc::new(store.restarted()), Seed(at as u64));
            let faulty = seeded.rule(Op::Get, "deletion_vector_", fault.clone(), times);
            let Err(err) = rows(&faulty).await else { panic!("{fault:?} {times:?}: each vector is read") };
            assert_eq!(err.kind(), kind, "{fault:?} {times:?}: {err}");
        }
    }
}
