//! Finding the table's columns in files that were written under other schemas.
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float32Array, Int8Array, Int16Array, Int32Array, Int64Array,
    ListArray, MapArray, RecordBatch, StringArray, StructArray, TimestampMillisecondArray, TimestampNanosecondArray,
    types::Int32Type,
};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use lakebed_core::{
    ErrorKind,
    expr::Scalar,
    scan::{FIELD_ID, INITIAL_DEFAULT, MatchBy, PHYSICAL_NAME},
    version::Millis,
};

use object_store::ObjectStoreExt as _;

use super::world::{World, column, field, numbers, partitioned, pushing, query, text, try_query};

fn batch(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn ints(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int32Array>())
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[tokio::test]
async fn ids_find_renamed_columns_and_never_a_name_that_came_back() {
    let table = Schema::new(vec![
        field("name", DataType::Utf8, &[(FIELD_ID, "1")]),
        field("amount", DataType::Int64, &[(FIELD_ID, "2")]),
        field("flag", DataType::Int32, &[(FIELD_ID, "3"), (INITIAL_DEFAULT, "42")]),
        field("old", DataType::Int32, &[(FIELD_ID, "13")]),
        field("part", DataType::Utf8, &[(FIELD_ID, "5")]),
    ]);
    let mut world = World::new(MatchBy::FieldId, table);
    let rows = batch(vec![
        (field("old", DataType::Int32, &[(FIELD_ID, "9")]), ints([100, 200])),
        (field("a", DataType::Utf8, &[(FIELD_ID, "1")]), texts(&["x", "y"])),
        (field("q", DataType::Int32, &[(FIELD_ID, "2")]), ints([7, 8])),
        // A name the table has, without an id: not the table's.
        (field("amount", DataType::Int32, &[]), ints([-1, -2])),
    ]);
    let file = world.small("a.parquet", rows).await;
    world.add_file(partitioned(file, "part", Some(Scalar::Utf8("P1".to_owned()))));
    world.check().await;
    for push in ["on", "off"] {
        let context = world.session(|it| pushing(it, push));
        let found =
            query(&context, "select amount from t where name = 'y' and flag = 42 and old is null and part = 'P1'")
                .await;
        assert_eq!(numbers(&found), [8]);
        for none in ["flag = 41", "part = 'P2'", "old = 100", "amount = -1", "old > 1 or flag < 42"] {
            assert!(
                numbers(&query(&context, &format!("select amount from t where {none}")).await).is_empty(),
                "{none}"
            );
        }
    }
}

#[tokio::test]
async fn physical_names_find_columns_and_may_be_swapped() {
    let table = Schema::new(vec![
        field("b", DataType::Int32, &[(PHYSICAL_NAME, "a")]),
        field("a", DataType::Utf8, &[(PHYSICAL_NAME, "b")]),
        field("part", DataType::Int32, &[(PHYSICAL_NAME, "c")]),
    ]);
    let mut world = World::new(MatchBy::PhysicalName, table);
    world.partition = vec!["part".to_owned()];
    let rows = batch(vec![
        (field("a", DataType::Int32, &[]), ints([1, 2])),
        (field("b", DataType::Utf8, &[]), texts(&["x", "y"])),
        (field("c", DataType::Int32, &[]), ints([77, 77])),
    ]);
    for (name, value) in [("one", Some(Scalar::Int(10))), ("two", None)] {
        let file = world.small(name, rows.clone()).await;
        world.add_file(partitioned(file, "part", value));
    }
    world.check().await;
    let context = world.session(|it| it);
    let count =
        async |filter: &str| numbers(&query(&context, &format!("select count(*) as n from t where {filter}")).await)[0];
    assert_eq!(count("part = 10").await, 2);
    assert_eq!(count("part is null").await, 2);
    assert_eq!(count("part = 77").await, 0);
    assert_eq!(count("part is null or part + 1 = 11").await, 4);
    assert_eq!(count("b = 2 and a = 'y'").await, 2);
    assert_eq!(count("b = part").await, 0);
}

#[tokio::test]
async fn names_match_without_case_and_an_exact_one_first() {
    let table = Schema::new(vec![field("Id", DataType::Int32, &[]), field("NAME", DataType::Utf8, &[])]);
    let mut world = World::new(MatchBy::Name, table);
    let rows = batch(vec![
        (field("name", DataType::Utf8, &[]), texts(&["x"])),
        (field("Id", DataType::Int32, &[]), ints([1])),
        (field("id", DataType::Int32, &[]), ints([2])),
    ]);
    let file = world.small("a", rows).await;
    world.add_file(file);
    world.check().await;
    let twice =
        batch(vec![(field("ID", DataType::Int32, &[]), ints([1])), (field("id", DataType::Int32, &[]), ints([2]))]);
    let file = world.small("b", twice).await;
    world.add_file(file);
    let err = try_query(&world.session(|it| it), "select \"Id\" from t").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Corrupt);
    assert!(err.to_string().contains("b: column `Id`") && err.to_string().contains("two columns"), "{err}");
}

#[tokio::test]
async fn types_widen() {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let ntz = DataType::Timestamp(TimeUnit::Microsecond, None);
    let ms = DataType::Timestamp(TimeUnit::Millisecond, None);
    let cases: Vec<(DataType, DataType, ArrayRef)> = vec![
        (DataType::Int8, DataType::Int16, Arc::new(Int8Array::from(vec![Some(-7), None]))),
        (DataType::Int8, DataType::Int64, Arc::new(Int8Array::from(vec![Some(-7), None]))),
        (DataType::Int16, DataType::Int32, Arc::new(Int16Array::from(vec![-700, 5]))),
        (DataType::Int32, DataType::Int64, ints([i32::MIN, i32::MAX])),
        (DataType::Int32, DataType::Float64, ints([i32::MIN, i32::MAX])),
        (DataType::Int32, DataType::Decimal128(12, 2), ints([i32::MIN, 3])),
        (DataType::Int64, DataType::Decimal128(25, 3), Arc::new(Int64Array::from(vec![i64::MIN, 3]))),
        (DataType::Float32, DataType::Float64, Arc::new(Float32Array::from(vec![1.5, -0.25]))),
        (
            DataType::Decimal128(5, 2),
            DataType::Decimal128(12, 4),
            Arc::new(Decimal128Array::from(vec![12345, -1]).with_precision_and_scale(5, 2).unwrap()),
        ),
        (DataType::Date32, ntz.clone(), Arc::new(Date32Array::from(vec![-1, 20_000]))),
        (ms.clone(), ntz, Arc::new(TimestampMillisecondArray::from(vec![-1, 1_700_000_000_123]))),
        (ms, utc, Arc::new(TimestampMillisecondArray::from(vec![-1, 1_700_000_000_123]))),
    ];
    for (from, to, values) in cases {
        let mut world = World::new(MatchBy::Name, Schema::new(vec![field("v", to.clone(), &[])]));
        let file = world.small("a", batch(vec![(field("v", from.clone(), &[]), values)])).await;
        world.add_file(file);
        world.check().await;
        let found = query(&world.session(|it| it), "select v from t where v is not null").await;
        let shown = found[0].schema().field(0).data_type().clone();
        assert_eq!(shown, to, "from {from}");
    }
}

#[tokio::test]
async fn narrower_types_are_errors_not_nulls() {
    let cases = [
        (DataType::Int32, DataType::Int16),
        (DataType::Int64, DataType::Int32),
        (DataType::Int64, DataType::Float64),
        (DataType::Float64, DataType::Float32),
        (DataType::Decimal128(12, 4), DataType::Decimal128(12, 2)),
        (DataType::Utf8, DataType::Int32),
        (DataType::Int32, DataType::Utf8),
        (DataType::Int32, DataType::Date32),
    ];
    for (from, to) in cases {
        let mut world = World::new(MatchBy::Name, Schema::new(vec![field("v", to.clone(), &[])]));
        let values = arrow_cast::cast(&ints([1]), &from).unwrap();
        let file = world.small("a", batch(vec![(field("v", from.clone(), &[]), values)])).await;
        world.add_file(file);
        let err = try_query(&world.session(|it| it), "select v from t").await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::Corrupt, "{from} to {to}: {err}");
        assert!(err.to_string().starts_with("a: column `v` is"), "{err}");
    }
}

/// `s: {a, b: {c}}`, a list of such structs and a map to them, written under older names, types and orders.
#[tokio::test]
async fn nested_fields_are_renamed_filled_and_widened() {
    let inner = |c: DataType, name: &str| Fields::from(vec![field(name, c, &[(PHYSICAL_NAME, "p-c")])]);
    let shape = |c: DataType, name: &str| {
        Fields::from(vec![
            field("b", DataType::Struct(inner(c, name)), &[(PHYSICAL_NAME, "p-b")]),
            field("fresh", DataType::Utf8, &[(PHYSICAL_NAME, "p-f")]),
            field("a", DataType::Int64, &[(PHYSICAL_NAME, "p-a")]),
        ])
    };
    let table = DataType::Struct(shape(DataType::Int64, "c"));
    let list = DataType::List(Arc::new(Field::new("element", table.clone(), true)));
    let entries = |value: DataType| {
        let fields = vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)];
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields.into()), false)), false)
    };
    let schema = Schema::new(vec![
        field("s", table.clone(), &[(PHYSICAL_NAME, "p-s")]),
        field("l", list, &[(PHYSICAL_NAME, "p-l")]),
        field("m", entries(table), &[(PHYSICAL_NAME, "p-m")]),
    ]);
    let mut world = World::new(MatchBy::PhysicalName, schema);

    let c: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let b: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(Field::new("p-c", DataType::Int32, true)), c)]));
    let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(10), Some(20), None]));
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("p-a", DataType::Int32, true)), a),
        (Arc::new(Field::new("gone", DataType::Int32, true)), ints([0, 0, 0])),
        (Arc::new(Field::new("p-b", b.data_type().clone(), true)), b),
    ]);
    let nulls = arrow_buffer::NullBuffer::from(vec![true, true, false]);
    let structs = StructArray::new(structs.fields().clone(), structs.columns().to_vec(), Some(nulls));
    let item = Arc::new(Field::new("array", structs.data_type().clone(), true));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
    let lists = ListArray::new(item, offsets.clone(), Arc::new(structs.clone()), None);
    let pairs = StructArray::from(vec![
        (Arc::new(Field::new("key", DataType::Utf8, false)), texts(&["x", "y", "z"])),
        (Arc::new(Field::new("value", structs.data_type().clone(), true)), Arc::new(structs.clone()) as ArrayRef),
    ]);
    let entries = Arc::new(Field::new("key_value", pairs.data_type().clone(), false));
    let maps = MapArray::new(entries, offsets, pairs, None, false);
    let rows = batch(vec![
        (Field::new("p-l", lists.data_type().clone(), true), Arc::new(lists)),
        (Field::new("p-m", maps.data_type().clone(), true), Arc::new(maps)),
        (Field::new("p-s", structs.data_type().clone(), true), Arc::new(structs)),
    ]);
    let file = world.small("a", rows).await;
    world.add_file(file);
    world.check().await;
    for push in ["on", "off"] {
        let context = world.session(|it| pushing(it, push));
        let found = query(&context, "select s['b']['c'] as c, s['a'] as a from t where s['b']['c'] = 1").await;
        assert_eq!((column(&found, 0), column(&found, 1)), (vec![1], vec![10]));
        let found = query(&context, "select count(*) as n from t where s['fresh'] is null").await;
        assert_eq!(numbers(&found), [3]);
        let found = query(&context, "select count(*) as n from t where s is null").await;
        assert_eq!(numbers(&found), [1]);
        assert_eq!(numbers(&query(&context, "select l[2]['a'] as a from t where l[2]['a'] > 1").await), [20]);
    }
}

#[tokio::test]
async fn void_columns_are_null_and_lists_keep_their_rows() {
    let item = Arc::new(Field::new("element", DataType::Int64, true));
    let schema = Schema::new(vec![field("v", DataType::Null, &[]), field("l", DataType::List(item), &[])]);
    let mut world = World::new(MatchBy::Name, schema);
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None]), None, Some(vec![])]);
    let rows = batch(vec![(Field::new("l", lists.data_type().clone(), true), Arc::new(lists))]);
    let file = world.small("a", rows).await;
    world.add_file(file);
    world.check().await;
    assert_eq!(numbers(&query(&world.session(|it| it), "select count(*) as n from t where v is null").await), [3]);
}

#[tokio::test]
async fn virtual_columns_tell_where_a_row_lies() {
    let mut world = World::new(MatchBy::Name, Schema::new(vec![field("id", DataType::Int32, &[])]));
    let rows = |range: std::ops::Range<i32>| batch(vec![(field("id", DataType::Int32, &[]), ints(range))]);
    for (at, name) in ["x/one.parquet", "two.parquet"].into_iter().enumerate() {
        let start = i32::try_from(at).unwrap() * 100;
        let mut file = world.small(name, rows(start..start + 5)).await;
        file.modified_at = Some(Millis(1000));
        file.first_row_id = Some(1000 * (at as u64 + 1));
        file.row_version = Some(at as u64 + 4);
        world.add_file(file);
    }
    let context = world.session(|it| it);
    let sql = "select _path, _file, _time, _row_index, _row_id, _row_commit_version, id from t \
               where _file = 'two.parquet' and _row_index >= 3 order by id";
    insta::assert_snapshot!(text(&query(&context, sql).await), @r"
    +-------------------------+-------------+----------------------+------------+---------+---------------------+-----+
    | _path                   | _file       | _time                | _row_index | _row_id | _row_commit_version | id  |
    +-------------------------+-------------+----------------------+------------+---------+---------------------+-----+
    | memory:///t/two.parquet | two.parquet | 1970-01-01T00:00:01Z | 3          | 2003    | 5                   | 103 |
    | memory:///t/two.parquet | two.parquet | 1970-01-01T00:00:01Z | 4          | 2004    | 5                   | 104 |
    +-------------------------+-------------+----------------------+------------+---------+---------------------+-----+
    ");
    let found = query(&context, "select id from t where _row_id in (1002, 2001) order by 1").await;
    assert_eq!(numbers(&found), [2, 101]);
    let sizes = query(&context, "select count(distinct _size) as n, count(*) as m from t where _size > 4").await;
    assert_eq!(column(&sizes, 1), [10]);
    for name in ["_path", "_file", "_size", "_time", "_row_index", "_row_id", "_row_commit_version"] {
        assert_eq!(numbers(&query(&context, &format!("select count({name}) as n from t")).await), [10], "{name}");
    }
}

#[tokio::test]
async fn moved_rows_keep_their_ids() {
    let mut world = World::new(MatchBy::Name, Schema::new(vec![field("id", DataType::Int32, &[])]));
    let mut mapping = world.mapping.as_ref().clone();
    mapping.row_id_column = Some("_mat_id".to_owned());
    mapping.row_version_column = Some("_mat_version".to_owned());
    world.mapping = Arc::new(mapping);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(9)]));
    let versions: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(2)]));
    let rows = batch(vec![
        (field("id", DataType::Int32, &[]), ints([1, 2, 3])),
        (field("_mat_id", DataType::Int64, &[]), ids),
        (field("_mat_version", DataType::Int64, &[]), versions),
    ]);
    let mut moved = world.small("a", rows).await;
    (moved.first_row_id, moved.row_version) = (Some(50), Some(4));
    let mut plain = world.small("b", batch(vec![(field("id", DataType::Int32, &[]), ints([4]))])).await;
    (plain.first_row_id, plain.row_version) = (Some(60), Some(5));
    world.add_file(moved);
    world.add_file(plain);
    let found = query(&world.session(|it| it), "select _row_id, _row_commit_version from t order by id").await;
    assert_eq!(column(&found, 0), [7, 51, 9, 60]);
    assert_eq!(column(&found, 1), [1, 4, 2, 5]);
}

#[tokio::test]
async fn instants_are_exact_or_an_error_that_names_the_file() {
    let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let nanos = |values: Vec<i64>| Arc::new(TimestampNanosecondArray::from(values).with_timezone("UTC")) as ArrayRef;
    let millis = |values: Vec<i64>| Arc::new(TimestampMillisecondArray::from(values).with_timezone("UTC")) as ArrayRef;
    let cases: [(ArrayRef, Option<&[i64]>); 7] = [
        (nanos(vec![1_000, -1_000, i64::MAX - 807]), Some(&[1, -1, 9_223_372_036_854_775])),
        (nanos(vec![1_000, 1_001]), None),
        (nanos(vec![-1]), None),
        (millis(vec![1, -1]), Some(&[1_000, -1_000])),
        (millis(vec![i64::MAX / 1_000 + 1]), None),
        (Arc::new(Date32Array::from(vec![1, -1])), Some(&[86_400_000_000, -86_400_000_000])),
        (Arc::new(Date32Array::from(vec![i32::MAX])), None),
    ];
    for (at, (values, expected)) in cases.into_iter().enumerate() {
        let kind = match values.data_type() {
            DataType::Date32 => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => micros.clone(),
        };
        let mut world = World::new(MatchBy::Name, Schema::new(vec![field("at", kind, &[])]));
        let rows = batch(vec![(field("at", values.data_type().clone(), &[]), values)]);
        world.add_file(world.small("odd.parquet", rows).await);
        let context = world.session(|it| pushing(it, "off"));
        match (expected, try_query(&context, "select at from t").await) {
            (Some(expected), Ok(found)) => assert_eq!(numbers(&found), expected, "case {at}"),
            (None, Err(err)) => {
                assert_eq!(err.kind(), ErrorKind::Corrupt, "case {at}: {err}");
                assert!(err.to_string().contains("odd.parquet"), "case {at}: {err}");
            }
            (expected, found) => panic!("case {at}: {expected:?}, not {found:?}"),
        }
    }
}

#[tokio::test]
async fn a_file_of_another_size_is_named_with_both_sizes() {
    let mut world = World::new(MatchBy::Name, Schema::new(vec![field("a", DataType::Int32, &[])]));
    let mut file = world.small("short.parquet", batch(vec![(field("a", DataType::Int32, &[]), ints([1]))])).await;
    let actual = file.bytes.to_string();
    file.bytes = 1_000_000_000_000;
    world.add_file(file);
    let err = try_query(&world.session(|it| it), "select a from t").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Corrupt, "{err}");
    for part in ["short.parquet", "1000000000000", &actual] {
        assert!(err.to_string().contains(part), "{err} lacks {part}");
    }
}

#[tokio::test]
async fn a_file_that_was_replaced_after_its_footer_was_read_is_an_error() {
    let mut world = World::new(MatchBy::Name, Schema::new(vec![field("a", DataType::Int32, &[])]));
    let rows = |value| batch(vec![(field("a", DataType::Int32, &[]), ints([value]))]);
    let file = world.small("a.parquet", rows(1)).await;
    let other = world.small("b.parquet", rows(2)).await;
    assert_eq!(file.bytes, other.bytes, "the same size, so that only its tag tells");
    let (store, key) = world.storage.object(&file.path).unwrap();
    let bytes = world.storage.read(&other.path).await.unwrap().unwrap();
    world.add_file(file);
    let context = world.session(|it| it);
    assert_eq!(numbers(&query(&context, "select a from t").await), [1]);
    store.put(&key, bytes.into()).await.unwrap();
    let err = try_query(&context, "select a from t").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Corrupt, "{err}");
    assert!(err.to_string().contains("a.parquet was replaced"), "{err}");
    // Who did not see the old one reads the new one.
    assert_eq!(numbers(&query(&world.session(|it| it), "select a from t").await), [2]);
}
