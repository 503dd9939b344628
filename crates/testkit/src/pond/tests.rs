use std::time::Duration;

use futures::TryStreamExt;
use lakebed_core::{
    change::{Change, ChangeSpan, RowDelta},
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    listing::ListingColumns,
    maintain::{Maintenance, Retain, Step},
    scan::{Merge, Scan, ScanTask},
    timeline::Action,
    version::{AsOf, Span, VersionId},
};

use super::*;
use crate::{reference, rows::Rows, seed::Seed, store::FaultyStore, value::Value};

fn rows(lines: &[(i64, &str)]) -> Rows {
    let mut rows = Rows::new(["id", "name"]);
    rows.rows = lines.iter().map(|(id, name)| vec![(*id).into(), (*name).into()]).collect();
    rows
}

fn keyed(lines: &[(i64, Option<i64>, &str)]) -> Rows {
    let mut rows = Rows::new(["id", "ts", "name"]);
    rows.rows = lines.iter().map(|(id, ts, name)| vec![(*id).into(), (*ts).into(), (*name).into()]).collect();
    rows
}

/// `name` of every row, sorted.
async fn names(table: &Played, as_of: AsOf) -> Vec<String> {
    let rows = table.rows(&as_of).await.unwrap().project(&["name"]).unwrap();
    let mut names: Vec<String> = rows.rows.iter().map(|row| row[0].text()).collect();
    names.sort();
    names
}

fn at(version: u64) -> AsOf {
    AsOf::Version(version.into())
}

async fn pond(spec: PondSpec) -> Played {
    Played::memory(&FaultyStore::new(Seed(1)), &spec).await.unwrap()
}

#[tokio::test]
async fn rows_come_and_go_and_every_version_stays() {
    let table = pond(PondSpec::default()).await;
    table.append(&rows(&[(1, "a"), (2, "b")])).await.unwrap();
    table.append(&rows(&[(3, "c")])).await.unwrap();
    table.delete(|row| row[0] == Value::from(2)).await.unwrap();
    table.delete(|row| row[0] == Value::from(1)).await.unwrap();
    assert_eq!(names(&table, at(0)).await, [""; 0]);
    assert_eq!(names(&table, at(2)).await, ["a", "b", "c"]);
    assert_eq!(names(&table, at(3)).await, ["a", "c"]);
    assert_eq!(names(&table, AsOf::Latest).await, ["c"]);
    table.restore(at(3)).await.unwrap();
    assert_eq!(names(&table, AsOf::Latest).await, ["a", "c"]);
    table.compact().await.unwrap().unwrap();
    assert_eq!(names(&table, AsOf::Latest).await, ["a", "c"]);
    assert_eq!(names(&table, at(4)).await, ["c"]);
}

#[tokio::test]
async fn keys_merge_in_one_fold_or_in_two_stages() {
    for (merging, expected) in [(Merging::OneFold, ["again"]), (Merging::TwoStages, ["base"])] {
        let table = pond(PondSpec::keyed(merging)).await;
        table.append(&keyed(&[(1, Some(5), "base")])).await.unwrap();
        let snapshot = table.table.snapshot(&AsOf::Latest).await.unwrap();
        let tasks: Vec<ScanTask> = snapshot.tasks(&Scan::all()).try_collect().await.unwrap();
        assert!(matches!(tasks[0].merge, Merge::Concat), "a lone base file needs no merge");
        table.update(&keyed(&[(1, None, "gone")]), &[Some("D")]).await.unwrap();
        let order = if merging == Merging::OneFold { 5 } else { 1 };
        table.update(&keyed(&[(1, Some(order), "again")]), &[None]).await.unwrap();
        assert_eq!(names(&table, AsOf::Latest).await, expected, "{merging:?}");
        table.compact().await.unwrap().unwrap();
        assert_eq!(names(&table, AsOf::Latest).await, expected, "{merging:?} compacted");
    }
}

#[tokio::test]
async fn tags_name_versions_and_keep_them() {
    let table = pond(PondSpec::default()).await;
    table.append(&rows(&[(1, "a")])).await.unwrap();
    table.tag("first", &1.into()).await.unwrap();
    table.append(&rows(&[(2, "b")])).await.unwrap();
    assert_eq!(names(&table, AsOf::Ref("first".into())).await, ["a"]);
    let refs = table.table.refs().await.unwrap();
    assert_eq!((refs.len(), refs[0].version.as_str()), (1, "1"));
    let write = table.begin(Action::Ref).await.unwrap();
    table.commit(&write, &[Change::DropRef("first".into())]).await.unwrap();
    assert!(table.rows(&AsOf::Ref("first".into())).await.unwrap_err().to_string().contains("no tag `first`"));
}

#[tokio::test]
async fn partitions_are_pruned_and_bounds_too() {
    let spec = PondSpec::default().partitioned_by(&["name"]);
    let table = pond(spec).await;
    table.append(&rows(&[(1, "a"), (2, "a")])).await.unwrap();
    table.append(&rows(&[(7, "b")])).await.unwrap();
    let snapshot = table.table.snapshot(&AsOf::Latest).await.unwrap();
    let kept = async |predicate| {
        let pruning = snapshot.pruning(&Scan { predicate, ..Scan::all() }).await.unwrap();
        (pruning.files_kept, pruning.files_total)
    };
    let name = |it: &str| Predicate::Compare(ColumnPath::top("name"), Cmp::Eq, Scalar::Utf8(it.into()));
    assert_eq!(kept(name("a")).await, (1, 2));
    assert_eq!(kept(name("x")).await, (0, 2));
    assert_eq!(kept(Predicate::Compare(ColumnPath::top("id"), Cmp::Gt, Scalar::Int(2))).await, (1, 2));
    assert_eq!(names(&table, AsOf::Latest).await, ["a", "a", "b"]);
    let listed: Vec<_> = snapshot.files(&Scan::all(), ListingColumns::ALL).try_collect().await.unwrap();
    let listed = Rows::from_batches(&listed).unwrap().project(&["rows", "partition", "min", "added_in"]).unwrap();
    let second = [Value::from(1), Value::from(r#"{"name":"b"}"#), Value::from(r#"{"id":7}"#), Value::from("2")];
    assert_eq!(listed.rows[1], second);
}

#[tokio::test]
async fn a_change_feed_tells_inserts_and_deletes() {
    let table = pond(PondSpec::default()).await;
    table.append(&rows(&[(1, "a"), (2, "b"), (3, "c")])).await.unwrap();
    table.delete(|row| row[0] == Value::from(1)).await.unwrap();
    table.delete(|row| row[0] == Value::from(2)).await.unwrap();
    table.compact().await.unwrap();
    table.restore(at(2)).await.unwrap();
    let span = ChangeSpan { first: at(1), last: at(3) };
    let feed = table.table.change_feed(&span).await.unwrap();
    let found = reference::read_changes(&Pond, &table.storage, feed).await.unwrap();
    let mut lines: Vec<String> =
        found.rows.iter().map(|row| format!("{} {} {}", row[1].text(), row[2].text(), row[3])).collect();
    lines.sort();
    assert_eq!(lines, ["a delete 2", "a insert 1", "b delete 3", "b insert 1", "c insert 1"]);
}

#[tokio::test]
async fn expiring_forgets_versions_but_not_rows() {
    let table = pond(PondSpec::default()).await;
    for (id, name) in [(1, "a"), (2, "b"), (3, "c")] {
        table.append(&rows(&[(id, name)])).await.unwrap();
    }
    table.compact().await.unwrap();
    let retain = Retain { at_least: 2, ..Retain::default() };
    let plan = table.table.plan(&Maintenance::Expire(retain)).await.unwrap();
    let shown: Vec<String> = plan
        .steps
        .iter()
        .map(|it| match it {
            Step::Write { path, .. } => format!("write {path}"),
            Step::Delete(files) => format!("delete {}", files.len()),
            _ => "other".into(),
        })
        .collect();
    assert_eq!(shown, ["write pond/log/00000000000000000003.checkpoint.json", "delete 1", "delete 2"]);
    assert_eq!(names(&table, at(1)).await, ["a"], "a plan changes nothing");
    for step in plan.steps {
        match step {
            Step::Write { path, body: lakebed_core::maintain::Body::Bytes(body) } => {
                let _ = table.storage.create(&path, body).await.unwrap();
            }
            Step::Delete(files) => {
                let files: Vec<_> = files.into_iter().map(|it| it.path).collect();
                let _ = table.storage.delete(&files).await.unwrap();
            }
            _ => unreachable!("an expiry writes and deletes"),
        }
        assert_eq!(names(&table, at(3)).await, ["a", "b", "c"], "readable after each step");
        assert_eq!(names(&table, AsOf::Latest).await, ["a", "b", "c"], "readable after each step");
    }
    assert!(table.rows(&at(1)).await.unwrap_err().to_string().contains("which has 3 to 4"));
    table.append(&rows(&[(4, "d")])).await.unwrap();
    assert_eq!(names(&table, AsOf::Latest).await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn leased_tables_show_what_is_pending() {
    let table = pond(PondSpec::default().leased()).await;
    let write = table.begin(Action::Append).await.unwrap();
    let pending = table.table.timeline(&Span::all()).await.unwrap().pending().count();
    assert_eq!(pending, 1);
    let added = vec![table.write_file(&write, &rows(&[(1, "a")])).await.unwrap()];
    table.commit(&write, &[Change::Rows(RowDelta { added, ..RowDelta::default() })]).await.unwrap();
    let timeline = table.table.timeline(&Span::all()).await.unwrap();
    assert_eq!((timeline.pending().count(), timeline.versions().count()), (0, 2));
    let abandoned = table.begin(Action::Append).await.unwrap();
    table.table.abandon(&abandoned).await.unwrap();
    table.table.abandon(&abandoned).await.unwrap();
    assert_eq!(table.table.timeline(&Span::all()).await.unwrap().pending().count(), 0);
}

#[tokio::test]
async fn one_lease_at_a_time_until_it_runs_out() {
    use std::sync::Arc;

    use crate::env::{ManualClock, SeededIds};
    let clock = Arc::new(ManualClock::default());
    let ids = Arc::new(SeededIds::new(Seed(3)));
    let env = lakebed_core::env::Env { clock: Arc::clone(&clock) as _, ids };
    let store = FaultyStore::new(Seed(1));
    let table = Played::create(store.storage("t"), env, &PondSpec::default().leased()).await.unwrap();
    let (one, two) = (table.begin(Action::Append).await.unwrap(), table.begin(Action::Append).await.unwrap());
    let first = table.table.lease(&one).await.unwrap().unwrap();
    assert!(first.still_held().await.unwrap());
    clock.advance(Duration::from_millis(10_001));
    assert!(!first.still_held().await.unwrap(), "it ran out");
    let second = table.table.lease(&two).await.unwrap().unwrap();
    assert!(second.still_held().await.unwrap() && !first.still_held().await.unwrap());
    second.release().await.unwrap();
    assert!(table.table.lease(&one).await.unwrap().unwrap().still_held().await.unwrap());
}

#[tokio::test]
async fn what_is_not_known_is_refused_by_name() {
    let table = pond(PondSpec::default()).await;
    let write = table.begin(Action::Properties).await.unwrap();
    let err = table.commit(&write, &[Change::Upgrade { features: vec!["tides".into()] }]).await.unwrap_err();
    assert_eq!(err.to_string(), "table needs feature `tides`");
    // Another engine's write: the entry is there all the same.
    let entry = entry::Entry { features: vec!["tides".into()], ..entry::Entry::default() };
    let _ = table.storage.create("pond/log/00000000000000000001.json", entry.bytes()).await.unwrap();
    assert_eq!(table.rows(&AsOf::Latest).await.unwrap_err().to_string(), "table needs feature `tides`");
    assert_eq!(table.table.resolve(&AsOf::Latest).await.unwrap().version.id, VersionId::from(1));
    assert_eq!(table.table.examine().await.unwrap()[0].code, "P001");
    let _ = table.storage.create("pond/log/00000000000000000003.json", entry.bytes()).await.unwrap();
    let err = table.table.resolve(&AsOf::Latest).await.unwrap_err();
    assert_eq!(err.to_string(), "log version 2 is gone, but 3 is there");
}

#[tokio::test]
async fn a_damaged_vector_is_no_vector() {
    let table = pond(PondSpec::default()).await;
    table.append(&rows(&[(1, "a"), (2, "b")])).await.unwrap();
    let vector = Vector::new([1]);
    let file = lakebed_core::path::FilePath::below("data/f");
    let inline = |bytes: &[u8], rows| DeleteFile {
        place: lakebed_core::file::DeletePlace::Inline(bytes.to_vec()),
        rows: Some(rows),
        ..vector.inline("v", &file)
    };
    let decode = async |it: DeleteFile| Pond.decode_vector(&table.storage, &it).await.map_err(|it| it.to_string());
    let good = vector.bytes();
    assert_eq!(decode(inline(&good, 1)).await.unwrap(), vector.rows);
    assert_eq!(decode(inline(&good, 2)).await.unwrap_err(), "vector v has 1 rows, the log says 2");
    let bad = String::from_utf8(good.to_vec()).unwrap().replace("[1]", "[2]");
    assert_eq!(decode(inline(bad.as_bytes(), 1)).await.unwrap_err(), "vector v: checksum is wrong");
}
