use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use lakebed_core::{
    expr::{ColumnPath, Scalar},
    file::ColumnStats,
};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use parquet::{
    arrow::ArrowWriter,
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::SchemaDescriptor,
};

use super::*;

fn encode(batch: &RecordBatch, group_rows: usize) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

async fn stored(bytes: &[u8]) -> (Storage, FilePath) {
    let store = InMemory::new();
    store.put(&Path::from("t/f.parquet"), bytes.to_vec().into()).await.unwrap();
    (Storage::new(Arc::new(store), Path::from("t"), "memory:///t"), FilePath::below("f.parquet"))
}

/// Opens a file and reads the columns that `columns` chooses, of the row groups that `keep` keeps.
async fn read_columns(
    storage: &Storage,
    file: &FilePath,
    bytes: u64,
    columns: impl FnOnce(&SchemaDescriptor) -> ProjectionMask,
    keep: impl Fn(&RowGroupMetaData) -> bool,
    batch_rows: usize,
) -> Result<Vec<RecordBatch>> {
    let object = ParquetObject::open(storage, file, bytes).await?;
    let columns = columns(object.metadata().file_metadata().schema_descr());
    let groups = object.metadata().row_groups().iter().enumerate().filter(|(_, it)| keep(it));
    let row_groups = Some(groups.map(|(index, _)| index).collect());
    object.read(Wanted { columns, row_groups, batch_rows }).try_collect().await
}

fn numbers(rows: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|it| format!("name {it} of many"))));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

async fn read_all(bytes: &[u8], leaf: usize) -> Result<usize> {
    let (storage, file) = stored(bytes).await;
    let columns = |schema: &SchemaDescriptor| ProjectionMask::leaves(schema, [leaf]);
    let batches = read_columns(&storage, &file, bytes.len() as u64, columns, |_| true, 1000).await?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

#[tokio::test]
async fn small_and_large_files_give_every_row() {
    for rows in [1, 3000, 300_000] {
        let bytes = encode(&numbers(rows), 50_000);
        assert_eq!(read_all(&bytes, 0).await.unwrap(), rows as usize);
        assert_eq!(read_all(&bytes, 1).await.unwrap(), rows as usize);
    }
}

#[tokio::test]
async fn row_groups_are_chosen_by_their_statistics() {
    let bytes = encode(&numbers(3000), 1000);
    let (storage, file) = stored(&bytes).await;
    let late = |group: &RowGroupMetaData| match group.column(0).statistics() {
        Some(parquet::file::statistics::Statistics::Int64(it)) => it.max_opt().is_none_or(|it| *it >= 2500),
        _ => true,
    };
    let all = |_: &SchemaDescriptor| ProjectionMask::all();
    let batches = read_columns(&storage, &file, bytes.len() as u64, all, late, 8192).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1000);
}

#[tokio::test]
async fn what_is_no_parquet_file_says_so() {
    let whole = encode(&numbers(10), 10);
    for (bytes, reason) in [
        (b"".to_vec(), "0 bytes are too few"),
        (b"PAR1 but then text".to_vec(), "its last four bytes are not PAR1"),
        (whole[..whole.len() - 3].to_vec(), "its last four bytes are not PAR1"),
        ([&whole[..20], &[0xff, 0xff, 0, 0], b"PAR1"].concat(), "a footer of 65535 bytes does not fit"),
        ([&whole[..20], &[0xff; 4], b"PAR1"].concat(), "more than the 268435456 this build reads"),
        ([&whole[..20], &[4, 0, 0, 0], b"PARE"].concat(), "the footer is encrypted"),
    ] {
        let err = read_all(&bytes, 0).await.unwrap_err().to_string();
        assert!(err.contains(reason) && err.contains("f.parquet"), "{err}");
    }
}

#[tokio::test]
async fn a_file_cut_or_flipped_anywhere_is_an_error_or_other_rows_but_never_a_panic() {
    let whole = encode(&numbers(100), 50);
    for at in 0..whole.len() {
        let _ = read_all(&whole[..at], 1).await;
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        let _ = read_all(&flipped, 1).await;
    }
}

#[tokio::test]
async fn statistics_come_from_the_footer() {
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from(vec![Some(5), None, Some(-3), Some(9)]))),
        ("name", Arc::new(StringArray::from(vec!["b", "a", "d", "c"]))),
        ("price", Arc::new(Float64Array::from(vec![0.0, 1.5, f64::NAN, 2.5]))),
        ("cost", Arc::new(Decimal128Array::from(vec![-150, 20, 300, 4]).with_precision_and_scale(20, 2).unwrap())),
    ];
    let bytes = encode(&RecordBatch::try_from_iter(columns).unwrap(), 2);
    let (storage, file) = stored(&bytes).await;
    let object = ParquetObject::open(&storage, &file, bytes.len() as u64).await.unwrap();
    let stats = file_stats(object.metadata());
    assert_eq!(stats.rows, Some(4));
    let of = |name: &str| stats.columns.iter().find(|it| it.0 == ColumnPath::top(name)).map(|it| it.1.clone()).unwrap();
    let known =
        |lower, upper, nulls| ColumnStats { lower: Some(lower), upper: Some(upper), nulls: Some(nulls), exact: true };
    assert_eq!(of("id"), known(Scalar::Int(-3), Scalar::Int(9), 1));
    assert_eq!(of("name"), known(Scalar::Utf8("a".into()), Scalar::Utf8("d".into()), 0));
    assert_eq!(of("price"), known(Scalar::Double(-0.0), Scalar::Double(2.5), 0));
    assert_eq!(of("cost"), known(Scalar::Decimal(-150, 2), Scalar::Decimal(300, 2), 0));
}

#[test]
fn a_stream_holds_a_row_group_however_long_it_gets() {
    let largest = |batches: usize| {
        let batch = numbers(1_000);
        let mut stream = ParquetStream::new("long", batch.schema(), 2_000, &[]).unwrap();
        let (mut largest, mut total) = (0, 0);
        for _ in 0..batches {
            stream.write(&batch).unwrap();
            let taken = stream.taken().len();
            (largest, total) = (largest.max(taken), total + taken);
        }
        (largest, total + stream.finish().unwrap().len())
    };
    let (short, long) = (largest(10), largest(100));
    assert!(long.1 > 9 * short.1, "{short:?} {long:?}");
    assert!(long.0 <= 2 * short.0 && long.0 * 20 < long.1, "{short:?} {long:?}");
}
