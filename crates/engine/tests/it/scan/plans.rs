//! What plans look like, and what they cost.
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use datafusion::{catalog::TableProvider, prelude::SessionContext};
use lakebed_core::{ErrorKind, expr::Scalar, scan::MatchBy};

use super::world::{World, numbers, partitioned, query, text, try_query, vector};

async fn world() -> World {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("v", DataType::Int64, true),
        Field::new("part", DataType::Int64, true),
    ]);
    let mut world = World::new(MatchBy::Name, schema);
    world.partition = vec!["part".to_owned()];
    for part in 0..4i64 {
        let ids = || (part * 100..part * 100 + 100).collect::<Int64Array>();
        let fields = ["id", "v"].map(|it| Field::new(it, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(ids()), Arc::new(ids())]).unwrap();
        let file = world.small(&format!("p{part}"), batch).await;
        let file = partitioned(file, "part", Some(Scalar::Int(part)));
        let deletes = if part == 2 { vec![vector(&file, [1, 2])] } else { Vec::new() };
        world.add(vec![file], deletes, lakebed_core::scan::Merge::Concat);
    }
    world
}

async fn explain(context: &SessionContext, sql: &str) -> String {
    let frame = context.sql(sql).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string()
}

#[tokio::test]
async fn explain_names_table_version_and_files() {
    let world = world().await;
    let context = world.session(|it| it.with_target_partitions(1));
    let plan = explain(&context, "select id from t where part >= 2").await;
    insta::assert_snapshot!(plan, @"DataSourceExec: file_groups={1 group: [[t/p2, t/p3]]}, projection=[id], file_type=lakebed, table=t, version=7, files=2 of 4, pruned_by=[part >= Int64(2)]");
    let plan = explain(&context, "select id from t where part = 1 and v < 150 and _row_index > 3").await;
    for said in
        ["files=1 of 4", "pruned_by=[", "part = Int64(1)", "v < Int64(150)", "predicate=v@1 < 150", "FilterExec"]
    {
        assert!(plan.contains(said), "{said}: {plan}");
    }
    assert!(!plan.contains("part@"), "the partition is decided by file: {plan}");
    let plan = explain(&context, "select id from t limit 3").await;
    assert!(plan.contains("files=4") && plan.contains("limit=3"), "{plan}");
}

/// Runs many kinds of query; each leaf must still be ours, each answer right.
#[tokio::test]
async fn every_leaf_stays_ours() {
    let world = world().await;
    let context = world.session(|it| it);
    let live = "(id < 201 or id > 202)";
    for (sql, expected) in [
        ("select count(*) as n from t", 398),
        ("select count(v) as n from t where part = 2", 98),
        ("select sum(case when part = 2 then 1 else 0 end) as n from t", 98),
        ("select count(*) as n from t a join t b on a.id = b.v", 398),
        ("select count(*) as n from t a join t b on a.id = b.v where b.part = 2", 98),
        ("select count(*) as n from t where id in (select v from t where part = 2)", 98),
        ("select count(*) as n from t where exists (select 1 from t u where u.v = t.id and u.part in (2, 3))", 198),
        ("select count(*) as n from (select id from t union all select v from t)", 796),
        ("select count(distinct part) as n from t where id > 150", 3),
        ("select max(id) as n from t where part < 2", 199),
        ("select count(*) as n from (select id, row_number() over (order by id) as r from t) where r <= 7", 7),
        ("select count(*) as n from (select id from t order by v desc limit 150)", 150),
        ("select max(n) as n from (select part, count(*) as n from t group by part)", 100),
        ("select min(n) as n from (select part, count(*) as n from t group by part)", 98),
        ("select count(*) as n from t where part + 1 = 3 and id % 2 = 0", 49),
        ("select file_row_index() as n from t where id = 203", 3),
        ("select count(*) as n from t where input_file_name() like '%p2'", 98),
    ] {
        assert_eq!(numbers(&query(&context, sql).await), [expected], "{sql}");
    }
    let all = query(&context, &format!("select count(*) as n from t where {live}")).await;
    assert_eq!(numbers(&all), [398]);
}

#[tokio::test]
async fn a_file_that_does_not_state_its_partition_is_checked_row_by_row() {
    let mut world = world().await;
    let ids = || Arc::new((1000..1010).collect::<Int64Array>());
    let fields = ["id", "v", "part"].map(|it| Field::new(it, DataType::Int64, true));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![ids(), ids(), ids()]).unwrap();
    let file = world.small("loose", batch).await;
    world.add_file(file);
    world.check().await;
    let context = world.session(|it| it);
    assert_eq!(numbers(&query(&context, "select id from t where part = 1003").await), [1003]);
    assert_eq!(numbers(&query(&context, "select count(*) as n from t where part = 2").await), [98]);
    assert_eq!(numbers(&query(&context, "select id from t where part = 2 limit 1").await).len(), 1);
}

#[tokio::test]
async fn nothing_is_an_answer_too() {
    let world = World { tasks: Vec::new(), ..world().await };
    let context = world.session(|it| it);
    assert_eq!(numbers(&query(&context, "select count(*) as n from t").await), [0]);
    assert!(numbers(&query(&context, "select id from t where _row_index > 3 or part = 1").await).is_empty());
}

#[tokio::test]
async fn statements_that_write_are_refused() {
    let world = world().await;
    let context = world.session(|it| it);
    for sql in ["delete from t where id = 1", "update t set v = 1", "insert into t select * from t"] {
        let err = try_query(&context, sql).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Unsupported, "{sql}: {err}");
    }
    assert_eq!(world.provider().schema().fields().len(), 3 + 5);
}

#[tokio::test]
async fn top_k_prunes_and_stays_right() {
    let world = world().await;
    let context = world.session(|it| it);
    let found = query(&context, "select id from t order by id desc limit 2").await;
    assert_eq!(numbers(&found), [399, 398]);
    assert!(text(&found).contains("399"));
}

/// Writers leave NaN out of Parquet's bounds, and NaN is greater than every number.
#[tokio::test]
async fn bounds_of_files_do_not_hide_nan() {
    let schema = Schema::new(vec![Field::new("x", DataType::Float64, true)]);
    let mut world = World::new(MatchBy::Name, schema.clone());
    for (name, values) in [("a", [1.0, 2.0, f64::NAN]), ("b", [1.0, 2.0, 7.0])] {
        let column = Arc::new(arrow_array::Float64Array::from(values.to_vec()));
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap();
        let file = world.small(name, batch).await;
        world.add_file(file);
    }
    for how in ["on", "off", "auto"] {
        let context = world.session(|it| super::world::pushing(it, how));
        for (condition, rows) in [("x > 5", 2), ("x = double 'nan'", 1), ("x >= 7", 2), ("x < 2", 2), ("x <> 1", 4)] {
            let sql = format!("select count(*) as n from t where {condition}");
            assert_eq!(numbers(&query(&context, &sql).await), [rows], "{condition}, pushdown {how}");
        }
        let top = query(&context, "select x from t order by x desc limit 1").await;
        assert!(text(&top).contains("NaN"), "{}", text(&top));
    }
}

#[tokio::test]
async fn row_numbers_are_counted_like_any_column() {
    let world = world().await;
    let sql = "select count(_row_index) as n from t";
    assert_eq!(numbers(&query(&world.session(|it| it), sql).await), [398]);
}

#[tokio::test]
async fn a_footer_is_read_once_a_session_and_a_small_file_in_one_request() {
    let io = Arc::new(lakebed_core::storage::IoStats::with_log());
    let mut world = world().await;
    let (store, _) = world.storage.object(&lakebed_core::path::FilePath::below("p0")).unwrap();
    let counted = lakebed_core::storage::CountingStore::new(store, Arc::clone(&io));
    world.storage =
        lakebed_core::storage::Storage::new(Arc::new(counted), object_store::path::Path::from("t"), "memory:///t");
    let context = world.session(|it| it.with_target_partitions(1));
    let sum = "select sum(v) as n from t where part < 2";
    assert_eq!(numbers(&query(&context, sum).await), [19_900]);
    assert_eq!(io.requests(), 2, "footer and columns of two small files: {:?}", io.events());
    assert_eq!(numbers(&query(&context, "select count(*) as n from t where part < 2").await), [200]);
    assert_eq!(io.requests(), 2, "both footers are known: {:?}", io.events());
}
