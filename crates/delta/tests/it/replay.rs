//! Which files are live: action reconciliation, pruning, listings.
use arrow_array::cast::AsArray;
use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind,
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    listing::ListingColumns,
    scan::Scan,
    table::{Pruning, Snapshot, Totals},
};
use serde_json::{Value, json};

use crate::world::{World, add, checkpoint_bytes, metadata, names, paths, protocol, remove};

fn vector(id: &str) -> Value {
    json!({"storageType": "u", "pathOrInlineDv": id, "offset": 1, "sizeInBytes": 36, "cardinality": 2})
}

fn with_vector(mut action: Value, id: &str) -> Value {
    let name = if action.get("add").is_some() { "add" } else { "remove" };
    action[name]["deletionVector"] = vector(id);
    action
}

async fn check(commits: &[Vec<Value>], expected: &[u64]) {
    let world = World::new();
    for (version, lines) in (0_u64..).zip(commits) {
        let mut lines = lines.clone();
        if version == 0 {
            lines.extend([protocol(), metadata(&[], json!({}))]);
        }
        world.commit(version, &lines).await;
    }
    assert_eq!(world.files().await, Ok(names(expected.iter().copied())));
}

#[tokio::test]
async fn the_newest_mention_of_a_file_decides() {
    check(&[vec![add(1), add(2)], vec![remove("1.parquet")]], &[2]).await;
    check(&[vec![add(1)], vec![remove("1.parquet")], vec![add(1)]], &[1]).await;
    check(&[vec![add(1)], vec![remove("9.parquet")]], &[1]).await;
    check(&[vec![add(1), add(1)]], &[1]).await;
}

#[tokio::test]
async fn the_order_within_a_commit_says_nothing() {
    let older = with_vector(add(1), "old");
    let (gone, newer) = (with_vector(remove("1.parquet"), "old"), with_vector(add(1), "new"));
    check(&[vec![older.clone()], vec![gone.clone(), newer.clone()]], &[1]).await;
    check(&[vec![older.clone()], vec![newer, gone.clone()]], &[1]).await;
    check(&[vec![older], vec![gone]], &[]).await;
}

#[tokio::test]
async fn a_removal_without_the_vector_does_not_reach_the_file_with_it() {
    check(&[vec![with_vector(add(1), "x")], vec![remove("1.parquet")]], &[1]).await;
    check(&[vec![add(1)], vec![with_vector(remove("1.parquet"), "x")]], &[1]).await;
}

#[tokio::test]
async fn one_file_has_many_spellings() {
    let mut spaced = add(1);
    spaced["add"]["path"] = json!("a%20b/1.parquet");
    for spelled in ["a%20b/1.parquet", "a b/1.parquet", "%61%20b/1.parquet", "memory:///t/a%20b/1.parquet"] {
        check(&[vec![spaced.clone(), add(2)], vec![remove(spelled)]], &[2]).await;
    }
    let mut absolute = add(1);
    absolute["add"]["path"] = json!("/some/p%20x");
    let world = World::new();
    world.commit(0, &[protocol(), metadata(&[], json!({})), absolute, add(2)]).await;
    world.commit(1, &[remove("file:///some/p%20x")]).await;
    assert_eq!(world.files().await, Ok(names([2])));
}

#[tokio::test]
async fn commits_after_a_checkpoint_win_over_it() {
    let world = World::with_versions(12).await;
    world.checkpoint(10).await;
    world.commit(13, &[remove("3.parquet"), remove("12.parquet"), with_vector(add(5), "x"), remove("5.parquet")]).await;
    let expected = names((0..=11).filter(|it| *it != 3));
    assert_eq!(world.files().await, Ok(expected));
    let snapshot = world.latest().await.unwrap();
    let totals = snapshot.totals().await.unwrap();
    let bytes = (0..=11).filter(|it| *it != 3).map(|it| 100 + it).sum();
    assert_eq!(totals, Totals { files: 11, bytes, rows: Some(108), deleted_rows: Some(2) });
}

#[tokio::test]
async fn statistics_prune_and_their_absence_does_not() {
    let world = World::with_versions(12).await;
    world.checkpoint(10).await;
    let mut bare = add(40);
    bare["add"]["stats"] = json!(null);
    let mut damaged = add(41);
    damaged["add"]["stats"] = json!("{\"numRecords\":");
    world.commit(13, &[bare, damaged]).await;
    let snapshot = world.latest().await.unwrap();
    let id = |cmp, value| Predicate::Compare(ColumnPath::top("id"), cmp, Scalar::Int(value));
    for (predicate, kept) in [
        (id(Cmp::Eq, 35), 3),
        (id(Cmp::GtEq, 115), 4),
        (id(Cmp::Lt, 0), 2),
        (Predicate::Or(vec![id(Cmp::Eq, 5), id(Cmp::Eq, 127)]), 4),
        (Predicate::IsNull(ColumnPath::top("id")), 2),
        (Predicate::False, 0),
        (Predicate::True, 15),
    ] {
        let scan = Scan { predicate: predicate.clone(), ..Scan::all() };
        assert_eq!(
            snapshot.pruning(&scan).await.unwrap(),
            Pruning { files_total: 15, files_kept: kept },
            "{predicate:?}"
        );
        let tasks: Vec<_> = snapshot.tasks(&scan).try_collect().await.unwrap();
        assert_eq!(tasks.len() as u64, kept, "{predicate:?}");
    }
}

#[tokio::test]
async fn partition_values_prune_from_commits_and_checkpoints() {
    let world = World::new();
    let part = |version: u64, day: Value| {
        let mut add = add(version);
        add["add"]["partitionValues"] = json!({"day": day});
        add
    };
    let first = [part(0, json!("2026-11-01")), part(1, json!("2026-11-02")), part(2, json!(null)), part(3, json!(""))];
    let lines: Vec<Value> = [protocol(), metadata(&["day"], json!({}))].into_iter().chain(first).collect();
    world.commit(0, &lines).await;
    world.put("00000000000000000000.checkpoint.parquet", checkpoint_bytes(&lines)).await;
    world.put("_last_checkpoint", json!({"version": 0}).to_string()).await;
    world.commit(1, &[part(4, json!("2026-11-02")), part(5, json!("2026-11-03"))]).await;
    let snapshot = world.latest().await.unwrap();
    let day = |cmp, days| Predicate::Compare(ColumnPath::top("day"), cmp, Scalar::Date(days));
    let november_2 = 20_759;
    for (predicate, kept) in [
        (day(Cmp::Eq, november_2), vec![1, 4]),
        (day(Cmp::Gt, november_2), vec![5]),
        (Predicate::IsNull(ColumnPath::top("day")), vec![2, 3]),
        (
            Predicate::And(vec![
                day(Cmp::Eq, november_2),
                Predicate::Compare(ColumnPath::top("id"), Cmp::Gt, Scalar::Int(30)),
            ]),
            vec![4],
        ),
    ] {
        let scan = Scan { predicate, ..Scan::all() };
        let tasks: Vec<_> = snapshot.tasks(&scan).try_collect().await.unwrap();
        let mut found: Vec<_> = tasks.iter().map(|it| (it.files[0].path.as_str().to_owned(), None)).collect();
        found.sort();
        assert_eq!(names(kept), found, "{:?}", scan.predicate);
    }
    let columns = ListingColumns { path: true, partition: true, ..ListingColumns::NONE };
    let batches: Vec<_> = snapshot.files(&Scan::all(), columns).try_collect().await.unwrap();
    let shown: Vec<String> = batches
        .iter()
        .flat_map(|it| {
            it.column(0).as_string::<i32>().iter().flatten().zip(it.column(1).as_string::<i32>().iter().flatten())
        })
        .map(|(path, partition)| format!("{path} {partition}"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    0.parquet {"day":"2026-11-01"}
    1.parquet {"day":"2026-11-02"}
    2.parquet {"day":null}
    3.parquet {"day":null}
    4.parquet {"day":"2026-11-02"}
    5.parquet {"day":"2026-11-03"}
    "#);
}

#[tokio::test]
async fn a_listing_has_the_columns_asked_for() {
    let world = World::with_versions(11).await;
    world.checkpoint(10).await;
    world.commit(12, &[remove("0.parquet"), with_vector(add(12), "x")]).await;
    let snapshot = world.latest().await.unwrap();
    let all: Vec<_> = snapshot.files(&Scan::all(), ListingColumns::ALL).try_collect().await.unwrap();
    let text = arrow_cast::pretty::pretty_format_batches(&[all.last().unwrap().clone()]).unwrap().to_string();
    insta::assert_snapshot!(text, @r#"
    +------------+-------+------+-----------+---------+---------+------------+------------+----------+
    | path       | bytes | rows | partition | format  | deletes | min        | max        | added_in |
    +------------+-------+------+-----------+---------+---------+------------+------------+----------+
    | 11.parquet | 111   | 10   |           | parquet | 0       | {"id":110} | {"id":119} | 11       |
    | 12.parquet | 112   | 8    |           | parquet | 2       | {"id":120} | {"id":129} | 12       |
    +------------+-------+------+-----------+---------+---------+------------+------------+----------+
    "#);
    let counted: Vec<_> = snapshot.files(&Scan::all(), ListingColumns::NONE).try_collect().await.unwrap();
    assert_eq!(counted.iter().map(|it| it.num_rows()).sum::<usize>(), 12);
    assert!(counted.iter().all(|it| it.num_columns() == 0));
}

#[tokio::test]
async fn a_limit_ends_the_tasks_once_it_is_surely_met() {
    let world = World::with_versions(9).await;
    let snapshot = world.latest().await.unwrap();
    for (limit, tasks) in [(1, 1), (10, 1), (11, 2), (1000, 10)] {
        let scan = Scan { limit: Some(limit), ..Scan::all() };
        assert_eq!(snapshot.tasks(&scan).try_collect::<Vec<_>>().await.unwrap().len(), tasks, "{limit}");
    }
}

#[tokio::test]
async fn places_outside_the_table_are_refused_when_read() {
    for path in ["file:///etc/passwd", "../x", "%2e%2e/x", "//host/x", "s3://other/x"] {
        let world = World::new();
        let mut outside = add(1);
        outside["add"]["path"] = json!(path);
        world.commit(0, &[protocol(), metadata(&[], json!({})), outside]).await;
        let snapshot = world.latest().await.unwrap();
        let tasks: Result<Vec<_>, _> = snapshot.tasks(&Scan::all()).try_collect().await;
        let err = tasks.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
        assert!(err.to_string().ends_with("and the commit of version 0 names it"), "{err}");
        assert!(err.hint().unwrap().contains("`paths.allow`"), "{err:?}");
        assert_eq!(paths(&snapshot).await.unwrap().len(), 1, "listing still shows it");
    }
}

/// ClickHouse 115043: what a reader does not know, it does not read over.
#[tokio::test]
async fn a_table_of_unknown_features_is_opened_but_not_read() {
    let world = World::new();
    let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timeCrystal"], "writerFeatures": ["timeCrystal"]}});
    world.commit(0, &[protocol, metadata(&[], json!({})), add(1)]).await;
    let snapshot = world.latest().await.unwrap();
    assert_eq!(snapshot.schema().fields().len(), 2);
    let err = snapshot.tasks(&Scan::all()).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(err.to_string().contains("`timeCrystal`"), "{err}");
    assert!(snapshot.totals().await.is_err());
    // An unknown feature may change which files are live: a list of files would be a guess.
    let listed: Result<Vec<_>, _> = snapshot.files(&Scan::all(), ListingColumns::NONE).try_collect().await;
    assert_eq!(listed.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_partition_value_that_is_left_out_is_an_error_and_null_is_not() {
    let with = |version: u64, values: Value| {
        let mut file = add(version);
        file["add"]["partitionValues"] = values;
        file
    };
    let head = [protocol(), metadata(&["day"], json!({}))];
    let sound = [with(0, json!({"day": null})), with(1, json!({"day": ""})), with(2, json!({"day": "2024-01-02"}))];
    let left_out = [with(3, json!({})), with(3, json!(null)), with(3, json!({"other": "2024-01-02"}))];
    for (checkpoint, file) in [false, true].into_iter().flat_map(|it| left_out.iter().map(move |file| (it, file))) {
        let world = World::new();
        let publish = async |lines: &[Value]| {
            world.commit(0, lines).await;
            if checkpoint {
                world.put("00000000000000000000.checkpoint.parquet", checkpoint_bytes(lines)).await;
            }
        };
        publish(&[&head[..], &sound].concat()).await;
        assert_eq!(world.latest().await.unwrap().tasks(&Scan::all()).try_collect::<Vec<_>>().await.unwrap().len(), 3);
        publish(&[&head[..], &sound, std::slice::from_ref(file)].concat()).await;
        let snapshot = world.latest().await.unwrap();
        // A predicate does not hide it either: what is not known is kept.
        let day = Predicate::Compare(ColumnPath::top("day"), Cmp::Eq, Scalar::Date(0));
        for scan in [Scan::all(), Scan { predicate: day, ..Scan::all() }] {
            let err = snapshot.tasks(&scan).try_collect::<Vec<_>>().await.unwrap_err();
            let expected = "3.parquet: its add action leaves out the value of partition column `day`";
            assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Corrupt, expected));
        }
    }
}

#[tokio::test]
async fn a_compacted_file_that_contradicts_itself_is_used_only_if_it_goes_back_in_time() {
    let removed_at =
        |path: &str, at: i64| json!({"remove": {"path": path, "deletionTimestamp": at, "dataChange": true}});
    let newest_first = [removed_at("2.parquet", 900), removed_at("1.parquet", 800), add(2), add(1), add(0)];
    let oldest_first = [add(0), add(1), add(2), removed_at("1.parquet", 800), removed_at("2.parquet", 900)];
    for (lines, warned) in [(newest_first, false), (oldest_first, true)] {
        let world = World::new();
        world.commit(0, &[protocol(), metadata(&[], json!({})), add(0)]).await;
        world.commit(1, &[add(1), add(2)]).await;
        world.commit(2, &[removed_at("1.parquet", 800)]).await;
        world.commit(3, &[removed_at("2.parquet", 900)]).await;
        world.put("00000000000000000001.00000000000000000003.compacted.json", crate::world::text(&lines)).await;
        assert_eq!(world.files().await, Ok(names([0])));
        assert_eq!(world.warnings().await.is_empty(), !warned, "{:?}", world.warnings().await);
    }
}
