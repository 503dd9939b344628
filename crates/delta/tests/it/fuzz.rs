//! Damaged tables: whatever the bytes, reading ends in an answer or in a typed error.
//!
//! A round takes the log and the deletion vectors of a real table (the conformance corpus), damages one or two of the
//! files, and asks the table everything that needs no rows. A panic, an `Internal` error or a round that does not end
//! is a failure, and names the round: `LAKEBED_FUZZ_FIRST=<round> LAKEBED_FUZZ_ROUNDS=1` plays it again.
//! `LAKEBED_FUZZ_ROUNDS` says how many rounds to play; without it there are few, so that every test run has some.
use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path as Folder,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::TryStreamExt;
use lakebed_core::{
    Error, ErrorKind, Result,
    commit::StoragePublisher,
    format::{OpenOptions, TableFormat, TableLocation},
    listing::ListingColumns,
    scan::Scan,
    storage::Storage,
    table::Table,
    version::{AsOf, Span},
};
use lakebed_delta::Delta;
use lakebed_testkit::{
    corpus,
    env::env as test_env,
    seed::{Dice, Seed},
};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};

const ROUNDS: u64 = 300;
/// A round reads some kilobytes: this long without a next one means that it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bigger files are not damaged: a round should be short.
const MOST_BYTES: u64 = 200_000;
/// What stands for a number that a writer never meant.
const NUMBERS: [&[u8]; 8] =
    [b"-1", b"0", b"9223372036854775807", b"-9223372036854775808", b"4294967296", b"1e400", b"null", b"\"x\""];

/// The files of a table that are no rows: path below the root, and bytes.
type Files = Vec<(String, Vec<u8>)>;

#[test]
fn fuzz_damaged_tables() {
    let tables: Vec<Files> = corpus::cases("delta").iter().map(|it| metadata(&it.table())).collect();
    if tables.is_empty() {
        return;
    }
    let first = number("LAKEBED_FUZZ_FIRST", 0);
    let rounds = number("LAKEBED_FUZZ_ROUNDS", ROUNDS);
    let (tell, told) = mpsc::channel();
    let player = thread::spawn(move || {
        for round in first..first.saturating_add(rounds) {
            // The listener left: it gave up on an earlier round.
            if tell.send((round, play(round, &tables))).is_err() {
                return;
            }
        }
    });
    let mut next = first;
    loop {
        match told.recv_timeout(PATIENCE) {
            Ok((round, Ok(()))) => next = round + 1,
            Ok((round, Err(wrong))) => panic!("round {round}: {wrong}"),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("round {next} does not end"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    player.join().expect("the player catches panics");
    assert_eq!(next, first + rounds);
}

/// Caches decide nothing: with one of them damaged, a table whose commits are all there has the files it had, or
/// reading is an error.
///
/// Hints and checksum files are damaged in any way. Checkpoints and compacted files are cut, replaced or deleted: bytes
/// changed in the middle of their pages and lines are not always seen.
#[test]
fn fuzz_damaged_caches_change_no_answer() {
    let tables = corpus::cases("delta").into_iter().map(|it| metadata(&it.table()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let whole = tables.filter_map(|files| {
        let commits: Files = files.iter().filter(|(name, _)| !is_cache(name)).cloned().collect();
        let caches = files.iter().any(|(name, _)| is_cache(name));
        let truth = runtime.block_on(live(commits)).ok().filter(|_| caches)?;
        let same = runtime.block_on(live(files.clone())).ok()? == truth;
        same.then_some((files, truth))
    });
    let whole: Vec<_> = whole.collect();
    assert!(whole.is_empty() || whole.len() > 5, "most tables of the corpus with caches have all their commits");
    let rounds = if whole.is_empty() { 0 } else { number("LAKEBED_FUZZ_ROUNDS", ROUNDS) };
    let first = number("LAKEBED_FUZZ_FIRST", 0);
    for round in first..first.saturating_add(rounds) {
        let dice = Dice::new(Seed(round));
        let (files, truth) = &whole[index(&dice, whole.len())];
        let mut files = files.clone();
        let caches: Vec<usize> = (0..files.len()).filter(|it| is_cache(&files[*it].0)).collect();
        let at = caches[index(&dice, caches.len())];
        let donor = files[index(&dice, files.len())].1.clone();
        let (name, body) = &mut files[at];
        let name = name.clone();
        if name.ends_with(".crc") || name.ends_with("_last_checkpoint") {
            damage(&dice, &name, body, &donor);
        } else {
            match dice.below(3) {
                0 => body.truncate(index(&dice, body.len().max(1))),
                1 => *body = b"PAR1 is not all of it".to_vec(),
                _ => drop(files.remove(at)),
            }
        }
        if let Ok(seen) = runtime.block_on(live(files)) {
            assert_eq!(&seen, truth, "round {round}: {name} damaged");
        }
    }
}

fn is_cache(name: &str) -> bool {
    let inside = name.strip_prefix("_delta_log/");
    inside.is_some_and(|it| it.contains("checkpoint") || it.ends_with(".crc") || it.contains(".compacted."))
        || name.starts_with("_delta_log/_sidecars/")
}

/// The live files of the newest version, and its columns.
async fn live(files: Files) -> Result<(Vec<String>, SchemaRef)> {
    let (table, _) = open(files).await?;
    let snapshot = table.snapshot(&AsOf::Latest).await?;
    let columns = ListingColumns { path: true, deletes: true, ..ListingColumns::NONE };
    let batches: Vec<_> = snapshot.files(&Scan::all(), columns).try_collect().await?;
    let mut rows = Vec::new();
    for batch in &batches {
        let shown = arrow_cast::pretty::pretty_format_batches(std::slice::from_ref(batch));
        let shown = shown.map_err(|it| Error::internal(it.to_string()))?.to_string();
        let all = shown.lines().filter(|it| it.starts_with('|')).skip(1);
        rows.extend(all.map(|it| it.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    rows.sort();
    Ok((rows, Arc::clone(snapshot.schema())))
}

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).map_or(otherwise, |it| it.parse().unwrap_or_else(|_| panic!("{name} is `{it}`, not a number")))
}

/// The log and the vectors below `folder`.
fn metadata(folder: &Folder) -> Files {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(place) = open.pop() {
        for entry in fs::read_dir(&place).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            let wanted = name.starts_with("_delta_log/") || name.ends_with(".bin");
            if wanted && entry.metadata().unwrap().len() <= MOST_BYTES {
                files.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

fn play(round: u64, tables: &[Files]) -> Result<(), String> {
    let dice = Dice::new(Seed(round));
    let mut files = tables[index(&dice, tables.len())].clone();
    let damages = 1 + dice.below(2);
    let mut damaged = Vec::new();
    for _ in 0..damages {
        let at = index(&dice, files.len());
        let donor = files[index(&dice, files.len())].1.clone();
        let (name, body) = &mut files[at];
        damage(&dice, name, body, &donor);
        damaged.push(name.clone());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match catch_unwind(AssertUnwindSafe(|| runtime.block_on(read(files)))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(err)) if err.kind() == ErrorKind::Internal => {
            Err(format!("{damaged:?} damaged: an internal error: {err}"))
        }
        Ok(Err(_)) => Ok(()),
        Err(_) => Err(format!("{damaged:?} damaged: a panic")),
    }
}

fn index(dice: &Dice, length: usize) -> usize {
    usize::try_from(dice.below(length as u64)).unwrap()
}

/// One to four changes, each of a kind that fits the file.
fn damage(dice: &Dice, name: &str, body: &mut Vec<u8>, donor: &[u8]) {
    let text = name.ends_with(".json") || name.ends_with(".crc") || name.ends_with("_last_checkpoint");
    for _ in 0..=dice.below(4) {
        if body.is_empty() {
            body.extend_from_slice(donor);
        } else if text && dice.chance(60) {
            damage_text(dice, body, donor);
        } else {
            damage_bytes(dice, body, donor);
        }
    }
}

fn damage_bytes(dice: &Dice, body: &mut Vec<u8>, donor: &[u8]) {
    // The end of a Parquet file says what the rest means.
    let from = if dice.chance(50) { body.len().saturating_sub(2048) } else { 0 };
    let at = from + index(dice, body.len() - from);
    match dice.below(7) {
        0 => body[at] ^= 1 << dice.below(8),
        1 => body[at] = [0, 0xff, 0x7f, 0x80][index(dice, 4)],
        2 => body.truncate(at),
        3 => drop(body.drain(at..body.len().min(at + 1 + index(dice, 16)))),
        4 => {
            let copy = body[at..body.len().min(at + 1 + index(dice, 64))].to_vec();
            body.splice(at..at, copy);
        }
        5 => {
            let wide = dice.next().to_le_bytes();
            let end = body.len().min(at + wide.len());
            body[at..end].copy_from_slice(&wide[..end - at]);
        }
        _ => {
            let piece = index(dice, donor.len().max(1));
            body.splice(at.., donor.get(piece..).unwrap_or_default().iter().copied());
        }
    }
}

/// Changes that leave JSON lines mostly readable, so that what they say is wrong and not how it is written.
fn damage_text(dice: &Dice, body: &mut Vec<u8>, donor: &[u8]) {
    let mut lines: Vec<Vec<u8>> = body.split(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
    let line = index(dice, lines.len());
    match dice.below(6) {
        0 => drop(lines.remove(line)),
        1 => {
            let other = index(dice, lines.len());
            lines.swap(line, other);
        }
        2 => lines.insert(line, lines[line].clone()),
        3 => {
            let others: Vec<&[u8]> = donor.split(|it| *it == b'\n').collect();
            lines.insert(line, others[index(dice, others.len())].to_vec());
        }
        4 => replace(dice, &mut lines[line], u8::is_ascii_digit, NUMBERS[index(dice, NUMBERS.len())]),
        _ => {
            let word: &[u8] =
                [&b"%zz"[..], b"../x", b"\\u0000", b"", b"struct", b"true", b"deletionVectors"][index(dice, 7)];
            replace(dice, &mut lines[line], u8::is_ascii_alphanumeric, word);
        }
    }
    *body = lines.join(&b'\n');
}

/// Puts `with` in the place of one run of bytes that are `like` that.
fn replace(dice: &Dice, line: &mut Vec<u8>, like: fn(&u8) -> bool, with: &[u8]) {
    if line.is_empty() {
        return;
    }
    let from = index(dice, line.len());
    let Some(start) = line[from..].iter().position(like).map(|it| from + it) else { return };
    let end = line[start..].iter().position(|it| !like(it)).map_or(line.len(), |it| start + it);
    line.splice(start..end, with.iter().copied());
}

/// Asks the table all that needs no data file. The first error ends it.
async fn read(files: Files) -> Result<()> {
    let (table, storage) = open(files).await?;
    // `examine` and the timeline are for broken tables: they answer where a snapshot cannot.
    not_internal(table.examine().await)?;
    not_internal(table.timeline(&Span::all()).await)?;
    not_internal(table.refs().await)?;
    not_internal(table.changes(&Span::all()).try_collect::<Vec<_>>().await)?;
    let snapshot = table.snapshot(&AsOf::Latest).await?;
    snapshot.facts();
    snapshot.totals().await?;
    snapshot.files(&Scan::all(), ListingColumns::ALL).try_collect::<Vec<_>>().await?;
    let tasks: Vec<_> = snapshot.tasks(&Scan::all()).try_collect().await?;
    for vector in tasks.iter().flat_map(|it| &it.deletes) {
        Delta.decode_vector(&storage, vector).await?;
    }
    Ok(())
}

/// The table of these files, in memory.
async fn open(files: Files) -> Result<(Arc<dyn Table>, Storage)> {
    let store = InMemory::new();
    for (name, body) in files {
        let path = Path::parse(&name).map_err(|it| Error::invalid(it.to_string()))?;
        store.put(&path, Bytes::from(body).into()).await.map_err(|it| Error::internal(it.to_string()))?;
    }
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    let storage = Storage::new(store, Path::default(), "memory:///t");
    let at = TableLocation {
        storage: storage.clone(),
        publisher: Arc::new(StoragePublisher),
        env: test_env(Seed(0)),
        options: OpenOptions::default(),
    };
    Ok((Delta.open(at).await?, storage))
}

fn not_internal<T>(answer: Result<T>) -> Result<()> {
    match answer {
        Err(err) if err.kind() == ErrorKind::Internal => Err(err),
        _ => Ok(()),
    }
}
