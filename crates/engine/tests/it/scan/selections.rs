//! Deleted rows under everything that reads less than a whole file.
use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::prelude::{SessionConfig, SessionContext};
use lakebed_core::{
    ErrorKind,
    scan::{MatchBy, Merge},
};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::world::{World, column, numbers, pushing, query, trusting, try_query, vector};

const ROWS: i64 = 20_000;
const GROUP: i64 = 2_000;

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("k", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ])
}

/// Clustered by `id`, scattered by `k`.
fn rows() -> RecordBatch {
    let ids = 0..ROWS;
    RecordBatch::try_new(
        Arc::new(schema()),
        vec![
            Arc::new(ids.clone().collect::<Int64Array>()),
            Arc::new(ids.clone().map(k).collect::<Int64Array>()),
            Arc::new(ids.map(|it| Some(format!("s{it}"))).collect::<StringArray>()),
        ],
    )
    .unwrap()
}

fn k(id: i64) -> i64 {
    id * 7919 % 1000
}

/// One percent at random, a whole row group, some consecutive ones, the first and the last: the decoder skips them.
fn gone() -> BTreeSet<u64> {
    let mut gone = scattered();
    gone.extend(4_000..6_000);
    gone.extend(9_100..9_540);
    gone
}

/// One percent at random, the first and the last: a mask takes them out of what was decoded.
fn scattered() -> BTreeSet<u64> {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % ROWS as u64
    };
    let mut gone: BTreeSet<u64> = (0..ROWS / 100).map(|_| random()).collect();
    gone.extend([0, ROWS as u64 - 1]);
    gone
}

async fn world() -> World {
    without(gone()).await
}

async fn without(gone: BTreeSet<u64>) -> World {
    let mut world = World::new(MatchBy::Name, schema());
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP as usize))
        .set_data_page_row_count_limit(200)
        .set_write_batch_size(200)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_dictionary_enabled(false)
        .build();
    let file = world.file("a.parquet", &[rows()], properties).await;
    let deletes = vec![vector(&file, gone)];
    world.add(vec![file], deletes, Merge::Concat);
    world
}

fn session(world: &World, pushdown: bool, pages: bool, stealing: bool, partitions: usize) -> SessionContext {
    world.session(|config: SessionConfig| {
        let mut config = config.with_target_partitions(partitions).with_repartition_file_min_size(1);
        config.options_mut().execution.parquet.enable_page_index = pages;
        config.options_mut().execution.enable_file_stream_work_stealing = stealing;
        pushing(config, if pushdown { "on" } else { "off" })
    })
}

type Case = (&'static str, fn(i64) -> bool);

const PREDICATES: [Case; 7] = [
    ("true", |_| true),
    ("id >= 4150 and id < 9300", |id| (4150..9300).contains(&id)),
    ("id between 10000 and 13999", |id| (10_000..=13_999).contains(&id)),
    ("k = 17", |id| k(id) == 17),
    ("k < 300 and id > 8999", |id| k(id) < 300 && id > 8999),
    ("s = 's9541'", |id| id == 9541),
    ("_row_index > 12345", |id| id > 12_345),
];

/// delta-rs 4692: nothing that reads less than a whole file moves a deletion to another row.
#[tokio::test]
async fn deleted_rows_stay_away_under_pruning_ranges_and_stealing() {
    stay_away(gone()).await;
}

#[tokio::test]
async fn masked_rows_stay_away_under_pruning_ranges_and_stealing() {
    stay_away(scattered()).await;
}

async fn stay_away(gone: BTreeSet<u64>) {
    let world = without(gone.clone()).await;
    for (pushdown, pages, stealing, partitions) in settings() {
        let context = session(&world, pushdown, pages, stealing, partitions);
        for (predicate, wanted) in PREDICATES {
            let expected: Vec<i64> = (0..ROWS).filter(|it| wanted(*it) && !gone.contains(&(*it as u64))).collect();
            let what = format!("{predicate} pushdown={pushdown} pages={pages} stealing={stealing} in {partitions}");
            let found = query(&context, &format!("select id from t where {predicate} order by id")).await;
            assert_eq!(numbers(&found), expected, "{what}");
            let found = query(&context, &format!("select id, _row_index from t where {predicate}")).await;
            assert_eq!(column(&found, 0), column(&found, 1), "row numbers, {what}");
            assert_eq!(column(&found, 0).len(), expected.len(), "{what}");
            let found = query(&context, &format!("select count(*) as n from t where {predicate}")).await;
            assert_eq!(numbers(&found), [expected.len() as i64], "count, {what}");
            // Columns in another order, one of them twice, and one that is made of two.
            let made = format!("select k + id as made, s, id, k, id as again from t where {predicate} order by id");
            let found = query(&context, &made).await;
            assert_eq!(column(&found, 2), expected, "{what}");
            assert_eq!(column(&found, 4), expected, "{what}");
            assert_eq!(column(&found, 0), expected.iter().map(|it| k(*it) + it).collect::<Vec<_>>(), "{what}");
        }
        for limit in [1, 1234, 12_345] {
            let found = query(&context, &format!("select id from t limit {limit}")).await;
            let ids: BTreeSet<i64> = numbers(&found).into_iter().collect();
            assert_eq!(ids.len(), limit);
            assert!(ids.iter().all(|it| !gone.contains(&(*it as u64))), "limit {limit}");
            let found = query(&context, &format!("select id from t where k < 500 limit {limit}")).await;
            let most = (0..ROWS).filter(|it| k(*it) < 500 && !gone.contains(&(*it as u64))).count();
            assert_eq!(numbers(&found).len(), limit.min(most), "limit {limit} with a filter");
        }
        let top = query(&context, "select id from t order by id desc limit 3").await;
        let expected: Vec<i64> = (0..ROWS).rev().filter(|it| !gone.contains(&(*it as u64))).take(3).collect();
        assert_eq!(numbers(&top), expected);
    }
}

fn settings() -> impl Iterator<Item = (bool, bool, bool, usize)> {
    let both = [true, false];
    let all = both
        .into_iter()
        .flat_map(move |a| both.into_iter().flat_map(move |b| both.into_iter().map(move |c| (a, b, c))));
    all.flat_map(|(a, b, c)| [1, 13].into_iter().map(move |it| (a, b, c, it)))
}

#[tokio::test]
async fn counts_and_bounds_are_not_answered_from_statistics_of_deleted_rows() {
    let mut world = world().await;
    let live = (ROWS as u64 - gone().len() as u64) as i64;
    let sql = "select count(*) as n, min(id) as a, max(id) as b from t";
    for trust in [false, true] {
        let context = world.session(|it| trusting(it, trust));
        assert_eq!(numbers(&query(&context, "select count(*) as n from t").await), [live]);
        let found = query(&context, sql).await;
        let last = (0..ROWS).rev().find(|it| !gone().contains(&(*it as u64))).unwrap();
        let first = (0..ROWS).find(|it| !gone().contains(&(*it as u64))).unwrap();
        assert_eq!((column(&found, 1)[0], column(&found, 2)[0]), (first, last));
    }
    // A recorded count that lies decides only where the session says so.
    world.tasks[0].files[0].stats.rows = Some(1_000_000);
    let lying = world.session(|it| it);
    assert_eq!(numbers(&query(&lying, "select count(*) as n from t").await), [live]);
}

#[tokio::test]
async fn rows_that_a_vector_took_are_read_by_name() {
    let mut world = world().await;
    let file = world.tasks[0].files[0].clone();
    world.tasks[0].only = vec![vector(&file, [3, 4, 5, 4_000, 19_999])];
    world.tasks[0].deletes = vec![vector(&file, [4, 100])];
    let found = query(&world.session(|it| it), "select id from t order by id").await;
    assert_eq!(numbers(&found), [3, 5, 4_000, 19_999]);
}

#[tokio::test]
async fn a_vector_of_every_row_leaves_none() {
    let mut world = world().await;
    let file = world.tasks[0].files[0].clone();
    world.tasks[0].deletes = vec![vector(&file, 0..ROWS as u64)];
    assert_eq!(numbers(&query(&world.session(|it| it), "select count(*) as n from t").await), [0]);
    assert!(numbers(&query(&world.session(|it| it), "select id from t").await).is_empty());
}

#[tokio::test]
async fn a_vector_of_another_file_is_an_error() {
    let mut world = world().await;
    let file = world.tasks[0].files[0].clone();
    world.tasks[0].deletes = vec![vector(&file, [ROWS as u64])];
    let err = try_query(&world.session(|it| it), "select id from t").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Corrupt);
    assert_eq!(err.to_string(), "a.parquet: its vector names row 20000, but the file has 20000 rows");
    // One that contradicts its own count keeps the decoder's error.
    world.tasks[0].deletes = vec![vector(&file, [7])];
    world.tasks[0].deletes[0].rows = Some(2);
    let err = try_query(&world.session(|it| it), "select id from t").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Corrupt);
    assert!(err.to_string().contains("has 1 rows, the log says 2"), "{err}");
}

#[tokio::test]
async fn a_plan_gives_its_rows_again_after_a_reset() {
    let world = world().await;
    let context = world.session(|it| it);
    let live = ROWS as usize - gone().len();
    let plan = context.sql("select id from t").await.unwrap().create_physical_plan().await.unwrap();
    for _ in 0..2 {
        let plan = Arc::clone(&plan).reset_state().unwrap();
        let rows = datafusion::physical_plan::collect(plan, context.task_ctx()).await.unwrap();
        assert_eq!(numbers(&rows).len(), live);
    }
}

#[tokio::test]
async fn files_that_are_not_what_the_table_says_are_named() {
    let world = world().await;
    let check = async |change: &dyn Fn(&mut World), expected: &str| {
        let mut world = world.clone();
        change(&mut world);
        let err = try_query(&world.session(|it| it), "select sum(k) as k from t").await.unwrap_err();
        assert_eq!(
            err.kind(),
            if expected.contains("gone.parquet") { ErrorKind::NotFound } else { ErrorKind::Corrupt },
            "{err}"
        );
        assert!(err.to_string().contains(expected), "{err}");
    };
    check(&|it| it.tasks[0].files[0].bytes += 1, "it is not the file that was committed").await;
    check(
        &|it| {
            it.tasks[0].deletes.clear();
            it.tasks[0].files[0].path = lakebed_core::path::FilePath::below("gone.parquet");
        },
        "gone.parquet",
    )
    .await;
    let _ = world.storage.create("junk.parquet", vec![7u8; 4000].into()).await.unwrap();
    check(
        &|it| {
            it.tasks[0].deletes.clear();
            it.tasks[0].files[0].path = lakebed_core::path::FilePath::below("junk.parquet");
            it.tasks[0].files[0].bytes = 4000;
        },
        "junk.parquet",
    )
    .await;
}
