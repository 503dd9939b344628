//! Statements that write, on Pond tables; [`files`] looks into what they wrote.
mod files;

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use datafusion::{
    datasource::memory::MemorySourceConfig,
    execution::{SessionStateBuilder, runtime_env::RuntimeEnvBuilder},
    physical_plan::ExecutionPlan,
    prelude::SessionConfig,
    scalar::ScalarValue,
};
use lakebed_core::{
    ErrorKind, Result,
    change::Application,
    commit::Intent,
    expr::{Predicate, Scalar},
    file::DataFile,
    maintain::{MaintenancePlan, Step},
    timeline::Action,
    version::AsOf,
};
use lakebed_testkit::{
    env::env,
    pond::{Played, Pond, PondSpec, intent},
    seed::Seed,
    store::{Fault, FaultyStore, Op, Times},
    value::Value,
};

use super::{Done, Driver, Extent, Insert, Source, WriteContext, compact, compile, insert, live::tasks_of, truncate};
use crate::{registry::Formats, sql::functions::Functions};

struct World {
    store: FaultyStore,
    table: Played,
    context: WriteContext,
}

impl World {
    async fn new(spec: PondSpec) -> Self {
        let store = FaultyStore::new(Seed(5));
        let table = Played::create(store.storage("t"), env(Seed(6)), &spec).await.unwrap();
        let config = SessionConfig::new().with_target_partitions(3).with_extension(Arc::new(Functions::new(None)));
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        let formats = Formats::new(vec![Arc::new(Pond)]);
        let (handle, publisher) = (Arc::clone(&table.table), Arc::clone(&table.publisher));
        let context = WriteContext::new(handle, &formats, publisher, table.env.clone(), Arc::new(state)).unwrap();
        Self { store, table, context }
    }

    async fn insert(&self, batches: Vec<RecordBatch>, replaces: Option<Extent>) -> Result<Done> {
        self.insert_as(intent(if replaces.is_some() { Action::Overwrite } else { Action::Append }), batches, replaces)
            .await
    }

    /// Every batch is a stream of its own.
    async fn insert_as(&self, intent: Intent, batches: Vec<RecordBatch>, replaces: Option<Extent>) -> Result<Done> {
        let driver = Driver::begin(&self.context, intent).await?;
        let columns = driver.base().schema().fields().len();
        let job =
            Insert { sources: (0..columns).map(Source::Input).collect(), added: Vec::new(), replaces, read: None };
        insert(driver, job, plan(batches)).await
    }

    /// `column` of every row, sorted.
    async fn column(&self, column: &str) -> Vec<String> {
        let rows = self.table.rows(&AsOf::Latest).await.unwrap().project(&[column]).unwrap();
        let mut shown: Vec<String> = rows.rows.iter().map(|it| it[0].to_string()).collect();
        shown.sort();
        shown
    }

    async fn live(&self) -> Vec<DataFile> {
        let base = self.table.table.snapshot(&AsOf::Latest).await.unwrap();
        let tasks = base.tasks(&lakebed_core::scan::Scan::all());
        let tasks: Vec<_> = futures::TryStreamExt::try_collect(tasks).await.unwrap();
        tasks.into_iter().flat_map(|it| it.files).collect()
    }

    /// Data files in the store, whoever names them.
    async fn stored(&self) -> usize {
        let listed = self.store.restarted().storage("t").list_all("data");
        let listed: Vec<lakebed_core::storage::Object> = futures::TryStreamExt::try_collect(listed).await.unwrap();
        listed.len()
    }
}

fn plan(batches: Vec<RecordBatch>) -> Arc<dyn ExecutionPlan> {
    let schema = batches[0].schema();
    let streams: Vec<Vec<RecordBatch>> = batches.into_iter().map(|it| vec![it]).collect();
    MemorySourceConfig::try_new_exec(&streams, schema, None).unwrap()
}

fn batch(rows: &[(i64, &str)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|it| it.0)));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|it| it.1)));
    RecordBatch::try_from_iter([("a", ids), ("b", names)]).unwrap()
}

fn with(property: &str, value: &str) -> PondSpec {
    PondSpec { properties: BTreeMap::from([(property.to_owned(), value.to_owned())]), ..PondSpec::default() }
}

#[tokio::test]
async fn many_streams_of_few_rows_make_one_file() {
    let world = World::new(PondSpec::default()).await;
    let done = world.insert(vec![batch(&[(1, "x")]), batch(&[(2, "y")]), batch(&[(3, "z")])], None).await.unwrap();
    assert_eq!((done.count, done.version.unwrap().id.as_str()), (3, "1"));
    assert_eq!(world.column("id").await, ["1", "2", "3"]);
    assert_eq!(world.live().await.len(), 1);
}

#[tokio::test]
async fn rows_find_their_partition() {
    let world = World::new(PondSpec::default().partitioned_by(&["name"])).await;
    let rows: Vec<(i64, String)> = (0..300).map(|it| (it, format!("p{}", it % 100))).collect();
    let rows: Vec<(i64, &str)> = rows.iter().map(|it| (it.0, it.1.as_str())).collect();
    world.insert(vec![batch(&rows), batch(&[(300, "p7")])], None).await.unwrap();
    let live = world.live().await;
    let mut seen: Vec<Option<Scalar>> = live.iter().map(|it| it.partition[0].1.clone()).collect();
    seen.dedup();
    assert_eq!(live.iter().filter_map(|it| it.stats.rows).sum::<u64>(), 301);
    assert!(live.len() >= 100 && live.len() < 140, "{} files", live.len());
    let rows = world.table.rows(&AsOf::Latest).await.unwrap();
    let (id, name) = (rows.column("id").unwrap(), rows.column("name").unwrap());
    for row in &rows.rows {
        let Value::Int(value) = row[id] else { panic!("no number") };
        let expected = if value == 300 { 7 } else { value % 100 };
        assert_eq!(row[name], Value::from(format!("p{expected}").as_str()));
    }
}

#[tokio::test]
async fn memory_is_bounded_by_the_sessions() {
    let spec = PondSpec::default().partitioned_by(&["name"]);
    let mut world = World::new(spec).await;
    small(&mut world, 10 << 20);
    let long = "x".repeat(2_000);
    let rows = |from: i64| -> RecordBatch {
        let names: Vec<String> = (0..1_000).map(|it| format!("{}{long}", it % 3)).collect();
        batch(&names.iter().enumerate().map(|(at, it)| (from + at as i64, it.as_str())).collect::<Vec<_>>())
    };
    // The partition column is in no file: what is written is small, what is read is not.
    let batches: Vec<RecordBatch> = (0..20).map(|it| rows(it * 1_000)).collect();
    world.insert(batches, None).await.unwrap();
    assert_eq!(world.column("id").await.len(), 20_000);
}

/// A session of so many bytes.
fn small(world: &mut World, bytes: usize) {
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0).build_arc().unwrap();
    let config = world.context.state.config().clone();
    let state = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    world.context.state = Arc::new(state.build());
}

#[tokio::test]
async fn of_many_partitions_each_gets_one_file() {
    const PARTITIONS: i64 = 700;
    let mut world = World::new(PondSpec::default().partitioned_by(&["name"])).await;
    small(&mut world, 24 << 20);
    // Each batch has rows of every partition.
    let rows = |from: i64| -> RecordBatch {
        let names: Vec<String> = (0..2 * PARTITIONS).map(|it| format!("p{}", it * 31 % PARTITIONS)).collect();
        batch(&names.iter().enumerate().map(|(at, it)| (from + at as i64, it.as_str())).collect::<Vec<_>>())
    };
    let batches: Vec<RecordBatch> = (0..120).map(|it| rows(it * 2 * PARTITIONS)).collect();
    let wanted: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let input = MemorySourceConfig::try_new_exec(&[batches], batch(&[(0, "")]).schema(), None).unwrap();
    let driver = Driver::begin(&world.context, intent(Action::Append)).await.unwrap();
    let job =
        Insert { sources: vec![Source::Input(0), Source::Input(1)], added: Vec::new(), replaces: None, read: None };
    insert(driver, job, input).await.unwrap();
    let live = world.live().await;
    assert_eq!(live.len(), PARTITIONS as usize);
    assert!(live.iter().all(|it| it.stats.rows == Some(240)));
    let rows = world.table.rows(&AsOf::Latest).await.unwrap();
    let (id, name) = (rows.column("id").unwrap(), rows.column("name").unwrap());
    let mut seen = std::collections::BTreeSet::new();
    for row in &rows.rows {
        let Value::Int(value) = row[id] else { panic!("no number") };
        let place = value % i128::from(2 * PARTITIONS) * 31 % i128::from(PARTITIONS);
        assert_eq!(row[name], Value::from(format!("p{place}").as_str()));
        seen.insert(value);
    }
    assert_eq!((seen.len(), rows.rows.len()), (wanted, wanted));
}

#[tokio::test]
async fn rules_are_checked_and_nothing_stays_of_a_row_that_breaks_one() {
    let mut spec = with("constraint.positive", "id > 0");
    spec.schema =
        Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8, false)]));
    let world = World::new(spec).await;
    let err = world.insert(vec![batch(&[(1, "x"), (-2, "y")])], None).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Invalid);
    assert_eq!(err.to_string(), "constraint `positive` (id > 0) does not hold for row (id = -2, name = y)");
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let nulls = RecordBatch::try_from_iter([("a", ids), ("b", names)]).unwrap();
    let err = world.insert(vec![nulls], None).await.unwrap_err();
    assert_eq!(err.to_string(), "column `name` may not be null, and is in row (id = NULL, name = NULL)");
    assert_eq!((world.stored().await, world.live().await.len()), (0, 0));
}

#[tokio::test]
async fn nulls_inside_of_columns_count_where_something_is_there() {
    let strict = Arc::new(Field::new("x", DataType::Int64, false));
    let loose = Arc::new(Field::new("x", DataType::Int64, true));
    let kind = |x: &Arc<Field>| {
        let part = DataType::Struct(vec![Arc::clone(x)].into());
        DataType::List(Arc::new(Field::new("element", part, true)))
    };
    let schema = Arc::new(Schema::new(vec![Field::new("l", kind(&strict), true)]));
    let spec = PondSpec { schema, ..PondSpec::default() };
    let world = World::new(spec).await;
    let lists = |nulls: Vec<bool>| {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let parts: ArrayRef =
            Arc::new(StructArray::new(vec![Arc::clone(&loose)].into(), vec![numbers], Some(nulls.into())));
        let DataType::List(item) = kind(&loose) else { panic!("a list") };
        let offsets = OffsetBuffer::new(vec![0, 1, 3].into());
        let list: ArrayRef = Arc::new(ListArray::new(item, offsets, parts, None));
        RecordBatch::try_from_iter([("l", list)]).unwrap()
    };
    let err = world.insert(vec![lists(vec![true, true, true])], None).await.unwrap_err();
    assert_eq!(err.to_string(), "column `l.element.x` may not be null, and is in row (l = [{x: NULL}, {x: 3}])");
    world.insert(vec![lists(vec![true, false, true])], None).await.unwrap();
    assert_eq!(world.live().await[0].stats.rows, Some(2));
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_named() {
    let world = World::new(PondSpec::default()).await;
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["1", "one"]));
    let names: ArrayRef = Arc::new(Float64Array::from(vec![1.5, 2.0]));
    let err =
        world.insert(vec![RecordBatch::try_from_iter([("a", ids), ("b", names)]).unwrap()], None).await.unwrap_err();
    assert_eq!(err.to_string(), "column `id`: 'one' is no BIGINT");
}

#[tokio::test]
async fn an_application_that_was_here_is_not_applied_again() {
    let world = World::new(PondSpec::default()).await;
    let job =
        |version| Intent { application: Some(Application { id: "job".into(), version }), ..intent(Action::Append) };
    let run = async |version| world.insert_as(job(version), vec![batch(&[(version, "x")])], None).await.unwrap();
    assert_eq!(run(1).await.count, 1);
    let again = run(1).await;
    assert_eq!((again.count, again.version), (0, None));
    assert_eq!(run(2).await.count, 1);
    assert_eq!(world.column("id").await, ["1", "2"]);
}

#[tokio::test]
async fn a_write_that_surely_failed_takes_its_files_with_it() {
    let world = World::new(PondSpec::default()).await;
    world.store.add_rule(Op::Create, "log", Fault::Forbid, Times::Always);
    let err = world.insert(vec![batch(&[(1, "x")])], None).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unauthorized);
    assert_eq!(world.stored().await, 0);
}

#[tokio::test]
async fn nothing_of_an_unknown_commit_is_deleted() {
    let world = World::new(PondSpec::default()).await;
    world.store.add_rule(Op::Create, "log", Fault::LoseAnswer, Times::Always);
    world.store.add_rule(Op::Get, "00000000000000000001.json", Fault::FailBefore, Times::Always);
    let err = world.insert(vec![batch(&[(1, "x")])], None).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unknown);
    world.store.heal();
    assert_eq!((world.stored().await, world.column("id").await), (1, vec!["1".to_owned()]));
}

#[tokio::test]
async fn a_lost_answer_for_a_data_file_is_found() {
    let world = World::new(PondSpec::default()).await;
    world.store.add_rule(Op::Create, "data", Fault::LoseAnswer, Times::First(1));
    world.insert(vec![batch(&[(1, "x")])], None).await.unwrap();
    assert_eq!((world.stored().await, world.column("id").await), (1, vec!["1".to_owned()]));
}

#[tokio::test]
async fn an_overwrite_replaces_what_it_says() {
    let spec = || PondSpec::default().partitioned_by(&["name"]);
    let rows = [(1, "x"), (2, "y"), (3, "z")];
    let partition = |name: &str| Extent::Partitions(vec![("name".to_owned(), Some(Scalar::Utf8(name.to_owned())))]);
    for (extent, new, expected) in [
        (Extent::Table, vec![(9, "x")], vec!["9"]),
        (Extent::Touched, vec![(8, "x"), (9, "y")], vec!["3", "8", "9"]),
        (partition("z"), vec![(9, "z")], vec!["1", "2", "9"]),
    ] {
        let world = World::new(spec()).await;
        world.insert(vec![batch(&rows)], None).await.unwrap();
        world.insert(vec![batch(&new)], Some(extent)).await.unwrap();
        assert_eq!(world.column("id").await, expected);
    }
}

#[tokio::test]
async fn rows_that_meet_a_condition_are_replaced_and_their_neighbours_stay() {
    for spec in [PondSpec::default(), PondSpec::default().partitioned_by(&["name"])] {
        let world = World::new(spec).await;
        world.insert(vec![batch(&[(1, "x"), (2, "y"), (3, "y")])], None).await.unwrap();
        let extent = |text| {
            let base = futures::executor::block_on(world.table.table.snapshot(&AsOf::Latest)).unwrap();
            Some(Extent::Where(compile(&world.context.state, base.schema(), text).unwrap()))
        };
        world.insert(vec![batch(&[(9, "y")])], extent("NAME = 'y'")).await.unwrap();
        assert_eq!(world.column("id").await, ["1", "9"]);
        world.insert(vec![batch(&[(10, "x")])], extent("id > 8")).await.unwrap();
        assert_eq!(world.column("id").await, ["1", "10"]);
        let err = world.insert(vec![batch(&[(5, "y")])], extent("id > 8")).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Invalid);
        assert!(err.to_string().starts_with("the row (id = 5, name = y) does not meet"), "{err}");
    }
}

#[tokio::test]
async fn an_append_only_table_keeps_its_rows() {
    let world = World::new(with("pond.append-only", "true")).await;
    world.insert(vec![batch(&[(1, "x")])], None).await.unwrap();
    let err = world.insert(vec![batch(&[(2, "x")])], Some(Extent::Table)).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused);
    let driver = Driver::begin(&world.context, intent(Action::Delete)).await.unwrap();
    assert_eq!(truncate(driver).await.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!((world.stored().await, world.column("id").await), (1, vec!["1".to_owned()]));
}

#[tokio::test]
async fn truncating_counts_what_goes() {
    let world = World::new(PondSpec::default()).await;
    world.insert(vec![batch(&[(1, "x"), (2, "y")])], None).await.unwrap();
    let run = async || {
        let driver = Driver::begin(&world.context, intent(Action::Delete)).await.unwrap();
        truncate(driver).await.unwrap()
    };
    let done = run().await;
    assert_eq!((done.count, done.version.is_some(), world.live().await.len()), (2, true, 0));
    assert_eq!(run().await.version, None, "nothing was left to take away");
}

#[tokio::test]
async fn columns_are_added_with_the_rows_that_need_them() {
    let world = World::new(PondSpec::default()).await;
    world.insert(vec![batch(&[(1, "x")])], None).await.unwrap();
    let driver = Driver::begin(&world.context, intent(Action::Append)).await.unwrap();
    let added = vec![(Arc::new(Field::new("extra", DataType::Utf8, true)), 1)];
    let constant = Source::Constant(ScalarValue::Utf8(Some("c".to_owned())));
    let job = Insert { sources: vec![Source::Input(0), constant], added, replaces: None, read: None };
    insert(driver, job, plan(vec![batch(&[(2, "new")])])).await.unwrap();
    assert_eq!(world.column("extra").await, ["\"new\"", "null"]);
    assert_eq!(world.column("name").await, ["\"c\"", "\"x\""]);
}

#[tokio::test]
async fn compaction_keeps_every_row_but_those_that_are_gone() {
    for spec in [PondSpec::default(), PondSpec::default().partitioned_by(&["name"])] {
        let world = World::new(spec).await;
        for id in 0..6 {
            world.insert(vec![batch(&[(id, "x"), (id + 10, "y")])], None).await.unwrap();
        }
        world.table.delete(|row| row.contains(&Value::from(12))).await.unwrap();
        let before = world.column("id").await;
        let files = world.live().await.len() as u64;
        let base = world.table.table.snapshot(&AsOf::Latest).await.unwrap();
        let tasks = tasks_of(base.as_ref(), Predicate::True).await.unwrap();
        let plan = MaintenancePlan { steps: vec![Step::Rewrite(tasks)], ..MaintenancePlan::default() };
        let done = compact(&world.context, &intent(Action::Compaction), plan, None).await.unwrap();
        assert_eq!(done.files_removed, files);
        assert_eq!(world.live().await.len() as u64, done.files_added);
        assert!(done.files_added <= 2, "{} files", done.files_added);
        assert_eq!(world.column("id").await, before);
    }
}
