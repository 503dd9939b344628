//! The files themselves: their footers, their sizes, and what the table is told of them.
use arrow_array::{BooleanArray, Date32Array, Decimal128Array, Float32Array, StringViewArray};
use arrow_schema::Fields;
use lakebed_codec::parquet::ParquetObject;
use lakebed_core::{
    expr::ColumnPath,
    scan::FIELD_ID,
    write::{Compression, FileShape, RowDeletes, WriteRules},
};
use parquet::{basic::Encoding, file::metadata::ParquetMetaData};

use super::*;
use crate::write::{FileWriter, Kind, Target, Written};

fn rules(schema: &Schema) -> WriteRules {
    let columns: Vec<String> = schema.fields().iter().map(|it| it.name().clone()).collect();
    WriteRules {
        files: FileShape {
            schema: Arc::new(schema.clone()),
            columns,
            folder: String::new(),
            partition_folders: None,
            empty_partition_is_null: true,
            random_prefix: 0,
            target_bytes: 1 << 30,
            compression: Compression::Zstd,
            packed_integers: true,
            indexed_columns: None,
        },
        constraints: Vec::new(),
        deletes: RowDeletes::Rewrite,
        change_folder: None,
        append_only: false,
        isolation: lakebed_core::conflict::Isolation::Serializable,
    }
}

async fn written(batches: &[RecordBatch], schema: Schema, rules: WriteRules) -> (World, Vec<Written>) {
    let world = World::new(PondSpec::default()).await;
    let target = Target::new(&world.context, &Arc::new(schema), &Default::default(), &rules).unwrap();
    let mut writer = FileWriter::new(&world.context, &Arc::new(target), Kind::Data);
    for batch in batches {
        writer.write(batch.clone()).await.unwrap();
    }
    let written = writer.finish().await.unwrap();
    (world, written)
}

async fn footer(world: &World, written: &Written) -> Arc<ParquetMetaData> {
    let storage = world.context.table.storage();
    let object = ParquetObject::open(storage, &written.file.path, written.file.bytes).await.unwrap();
    Arc::clone(object.metadata())
}

fn wide(rows: i32) -> RecordBatch {
    let numbers = || 0..i64::from(rows);
    let dice = |it: i64| it.wrapping_add(1).wrapping_mul(0x5851_F42D_4C95_7F2D) >> 20;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("key", Arc::new(Int64Array::from_iter_values(numbers().map(dice)))),
        ("few", Arc::new(Int64Array::from_iter_values(numbers().map(|it| it % 5)))),
        ("day", Arc::new(Date32Array::from_iter_values((0..rows).map(|it| 8_000 + it % 2_500)))),
        (
            "price",
            Arc::new(
                Decimal128Array::from_iter_values(numbers().map(|it| i128::from(it * 13)))
                    .with_precision_and_scale(15, 2)
                    .unwrap(),
            ),
        ),
        ("comment", Arc::new(StringViewArray::from_iter_values(numbers().map(|it| format!("comment {:x}", dice(it)))))),
        ("flag", Arc::new(StringArray::from_iter_values(numbers().map(|it| ["A", "N", "R"][(it % 3) as usize])))),
        ("ok", Arc::new(BooleanArray::from_iter(numbers().map(|it| Some(it % 2 == 0))))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn wide_schema() -> Schema {
    let field = |name: &str, kind, id: &str| {
        Field::new(name, kind, true).with_metadata([(FIELD_ID.to_owned(), id.to_owned())].into())
    };
    Schema::new(vec![
        field("key", DataType::Int64, "1"),
        field("few", DataType::Int64, "2"),
        field("day", DataType::Date32, "3"),
        field("price", DataType::Decimal128(15, 2), "4"),
        field("comment", DataType::Utf8, "5"),
        field("flag", DataType::Utf8, "6"),
        field("ok", DataType::Boolean, "7"),
    ])
}

#[tokio::test]
async fn columns_are_encoded_by_what_they_hold() {
    let batches: Vec<RecordBatch> = (0..5).map(|_| wide(10_000)).collect();
    let (world, written) = written(&batches, wide_schema(), rules(&wide_schema())).await;
    assert_eq!((written.len(), written[0].rows), (1, 50_000));
    assert!(written[0].file.path.as_str().ends_with("-c000.zstd.parquet"), "{}", written[0].file.path);
    let footer = footer(&world, &written[0]).await;
    assert!(footer.file_metadata().key_value_metadata().is_none_or(|it| it.is_empty()), "nothing of Arrow");
    let group = footer.row_group(0);
    let shown: Vec<String> = group
        .columns()
        .iter()
        .map(|it| {
            let kinds = [(Encoding::RLE_DICTIONARY, "dict"), (Encoding::DELTA_BINARY_PACKED, "delta")];
            let kinds = kinds.iter().filter(|(kind, _)| it.encodings().any(|own| own == *kind)).map(|(_, name)| *name);
            let id = it.column_descr().self_type().get_basic_info().id();
            format!("{}#{id}:{}:{:?}", it.column_path().string(), kinds.collect::<Vec<_>>().join("+"), it.column_type())
        })
        .collect();
    let expected = [
        "key#1:delta:INT64",
        "few#2:dict:INT64",
        "day#3:delta:INT32",
        "price#4:delta:INT64",
        "comment#5::BYTE_ARRAY",
        "flag#6:dict:BYTE_ARRAY",
        "ok#7::BOOLEAN",
    ];
    assert_eq!(shown, expected);
    assert!(group.columns().iter().all(|it| it.column_index_offset().is_some() && it.offset_index_offset().is_some()));
}

#[tokio::test]
async fn readers_that_lack_packing_get_plain_integers() {
    let mut plain = rules(&wide_schema());
    plain.files.packed_integers = false;
    let (world, written) = written(&[wide(10_000)], wide_schema(), plain).await;
    let footer = footer(&world, &written[0]).await;
    let packed = |it: &Encoding| *it == Encoding::DELTA_BINARY_PACKED;
    assert!(!footer.row_group(0).columns().iter().any(|it| it.encodings().any(|it| packed(&it))));
}

#[tokio::test]
async fn files_and_row_groups_end_in_time() {
    let mut small = rules(&wide_schema());
    small.files.target_bytes = 150_000;
    let batches: Vec<RecordBatch> = (0..30).map(|_| wide(10_000)).collect();
    let (_, several) = written(&batches, wide_schema(), small).await;
    assert!(several.len() > 2, "{} files", several.len());
    assert_eq!(several.iter().map(|it| it.rows).sum::<u64>(), 300_000);
    let (world, one) = written(&batches, wide_schema(), rules(&wide_schema())).await;
    let footer = footer(&world, &one[0]).await;
    assert_eq!((one.len(), footer.num_row_groups()), (1, 2));
}

#[tokio::test]
async fn a_nan_leaves_a_column_without_bounds_and_zeros_have_both_signs() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("nan", Arc::new(Float64Array::from(vec![1.0, f64::NAN]))),
        ("zero", Arc::new(Float32Array::from(vec![Some(0.0), None]))),
        ("masked", Arc::new(Float64Array::new(vec![2.0, f64::NAN].into(), Some(vec![true, false].into())))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let schema = batch.schema().as_ref().clone();
    let nullable =
        Schema::new(schema.fields().iter().map(|it| it.as_ref().clone().with_nullable(true)).collect::<Vec<_>>());
    let (_, written) = written(&[batch], nullable.clone(), rules(&nullable)).await;
    let bounds = |name: &str| {
        let (_, stats) = written[0].file.stats.columns.iter().find(|it| it.0 == ColumnPath::top(name)).unwrap();
        (stats.lower.clone(), stats.upper.clone(), stats.nulls)
    };
    assert_eq!(bounds("nan"), (None, None, Some(0)));
    let two = Some(Scalar::Double(2.0));
    assert_eq!(bounds("masked"), (two.clone(), two, Some(1)));
    let (lower, upper, nulls) = bounds("zero");
    assert_eq!(nulls, Some(1));
    let sign = |it: Option<Scalar>| match it {
        Some(Scalar::Float(it)) => it.is_sign_negative(),
        other => panic!("{other:?}"),
    };
    assert!(sign(lower) && !sign(upper));
}

#[tokio::test]
async fn nested_columns_keep_the_tables_names() {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let inner = |a: &str| Fields::from(vec![text(a), Field::new("n", DataType::Int64, true)]);
    let item = Arc::new(Field::new("element", DataType::Utf8, true));
    let schema = |a: &str, s: &str| {
        Schema::new(vec![
            Field::new(s, DataType::Struct(inner(a)), true),
            Field::new("l", DataType::List(Arc::clone(&item)), true),
        ])
    };
    let mut mapped = rules(&schema("col-1", "col-2"));
    mapped.files.columns = vec!["s".into(), "l".into()];
    mapped.files.indexed_columns = Some(vec![ColumnPath(vec!["s".into(), "a".into()])]);
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["x", "z"]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let loose = Fields::from(vec![Field::new("a", DataType::Utf8View, false), Field::new("n", DataType::Int64, false)]);
    let parts: ArrayRef = Arc::new(StructArray::new(loose, vec![views, numbers], None));
    let words: ArrayRef = Arc::new(StringArray::from(vec!["p", "q", "r"]));
    let own = Arc::new(Field::new("item", DataType::Utf8, true));
    let offsets = OffsetBuffer::new(vec![0, 2, 3].into());
    let list: ArrayRef = Arc::new(ListArray::new(own, offsets, words, None));
    let batch = RecordBatch::try_from_iter([("s", parts), ("l", list)]).unwrap();
    let (world, written) = written(&[batch], schema("a", "s"), mapped).await;
    let footer = footer(&world, &written[0]).await;
    let leaves: Vec<String> = footer.row_group(0).columns().iter().map(|it| it.column_path().string()).collect();
    assert_eq!(leaves, ["col-2.col-1", "col-2.n", "l.list.element"]);
    let stats = &written[0].file.stats.columns;
    assert_eq!((stats.len(), &stats[0].0.0), (1, &vec!["s".to_owned(), "a".to_owned()]));
    assert_eq!(stats[0].1.upper, Some(Scalar::Utf8("z".into())));
}
