use std::{collections::HashMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};
use async_trait::async_trait;
use futures::{StreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error,
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    file::{DataFile, DeleteFile, DeleteKind, DeletePlace},
    format::{FormatKind, TableLocation},
    path::FilePath,
    scan::{
        ColumnMapping, DeleteMarker, FIELD_ID, INITIAL_DEFAULT, KeyMerge, MatchBy, MergeRule, PHYSICAL_NAME,
        StagedMerge,
    },
};
use roaring::RoaringTreemap;

use super::*;
use crate::{
    batch::{parquet_bytes, to_batch},
    seed::Seed,
    store::FaultyStore,
};

/// Vectors are inline lists of single-byte positions.
#[derive(Debug)]
struct Bare;

#[async_trait]
impl TableFormat for Bare {
    fn kind(&self) -> FormatKind {
        FormatKind::new("bare")
    }
    async fn detect(&self, _: &Storage) -> Result<bool> {
        Ok(false)
    }
    async fn open(&self, _: TableLocation) -> Result<Arc<dyn Table>> {
        Err(Error::unsupported("only bytes"))
    }
    async fn decode_vector(&self, _: &Storage, file: &DeleteFile) -> Result<RoaringTreemap> {
        let DeletePlace::Inline(bytes) = &file.place else { return Err(Error::unsupported("only inline")) };
        Ok(bytes.iter().map(|it| u64::from(*it)).collect())
    }
    fn decode_rows(&self, _: &Storage, _: &DataFile, _: SchemaRef) -> BoxStream<'static, Result<RecordBatch>> {
        stream::empty().boxed()
    }
}

fn field(name: &str, data_type: DataType, metadata: &[(&str, &str)]) -> Field {
    let metadata: HashMap<String, String> =
        metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Field::new(name, data_type, true).with_metadata(metadata)
}

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

async fn file(storage: &Storage, name: &str, schema: &SchemaRef, rows: &[&[Value]]) -> DataFile {
    let mut table = Rows::new(schema.fields().iter().map(|it| it.name().clone()));
    table.rows = rows.iter().map(|it| it.to_vec()).collect();
    let body = parquet_bytes(&[to_batch(&table, schema).unwrap()], schema, 1024).unwrap();
    let bytes = body.len() as u64;
    let _ = storage.create(name, body).await.unwrap();
    DataFile::parquet(FilePath::below(name), bytes)
}

fn task(files: Vec<DataFile>, table: &SchemaRef, by: MatchBy) -> ScanTask {
    let columns = ColumnMapping { by, schema: Arc::clone(table), row_id_column: None, row_version_column: None };
    ScanTask {
        files,
        deletes: vec![],
        only: vec![],
        merge: Merge::Concat,
        columns: columns.into(),
        residual: Predicate::True,
    }
}

fn vector(positions: &[u8]) -> DeleteFile {
    DeleteFile {
        kind: DeleteKind::Vector,
        place: DeletePlace::Inline(positions.to_vec()),
        id: None,
        targets: vec![],
        rows: None,
        native: Default::default(),
    }
}

fn shown(rows: &Rows) -> Vec<String> {
    rows.rows.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")).collect()
}

fn storage() -> Storage {
    FaultyStore::new(Seed(1)).storage("t")
}

#[tokio::test]
async fn columns_are_found_by_id_and_never_by_name_then() {
    let storage = storage();
    let inner = |name: &str, id| field(name, DataType::Int32, &[(FIELD_ID, id)]);
    let nested = |name: &str, children: Vec<Field>| field(name, DataType::Struct(children.into()), &[(FIELD_ID, "2")]);
    let written = schema(vec![
        field("a", DataType::Int32, &[(FIELD_ID, "1")]),
        nested("s", vec![inner("x", "3"), inner("y", "4")]),
        field("b", DataType::Utf8, &[(FIELD_ID, "9")]),
    ]);
    let pair = Value::Struct(vec![("x".into(), 10.into()), ("y".into(), 20.into())]);
    let data = file(&storage, "f", &written, &[&[1.into(), pair, "old".into()]]).await;
    let table = schema(vec![
        field("renamed", DataType::Int64, &[(FIELD_ID, "1")]),
        nested("s", vec![inner("yy", "4"), inner("z", "5")]),
        field("b", DataType::Utf8, &[(FIELD_ID, "13")]),
        field("c", DataType::Int32, &[(FIELD_ID, "14"), (INITIAL_DEFAULT, "42")]),
        field("p", DataType::Utf8, &[(FIELD_ID, "15")]),
    ]);
    let data = DataFile { partition: vec![("p".into(), Some(Scalar::Utf8("P1".into())))], ..data };
    let rows = read(&Bare, &storage, &[task(vec![data], &table, MatchBy::FieldId)]).await.unwrap();
    assert_eq!(shown(&rows), [r#"1 {yy: 20, z: null} null 42 "P1""#]);
}

#[tokio::test]
async fn columns_are_found_by_name_without_case_and_by_physical_name() {
    let storage = storage();
    let written = schema(vec![field("Id", DataType::Int32, &[]), field("col-1", DataType::Utf8, &[])]);
    let data = file(&storage, "f", &written, &[&[1.into(), "x".into()]]).await;
    let table =
        schema(vec![field("id", DataType::Int32, &[]), field("name", DataType::Utf8, &[(PHYSICAL_NAME, "col-1")])]);
    let by = async |by| shown(&read(&Bare, &storage, &[task(vec![data.clone()], &table, by)]).await.unwrap());
    assert_eq!(by(MatchBy::Name).await, ["1 null"]);
    assert_eq!(by(MatchBy::PhysicalName).await, [r#"null "x""#]);
    assert_eq!(by(MatchBy::FieldId).await, ["null null"]);
}

#[tokio::test]
async fn only_and_deletes_work_together() {
    let storage = storage();
    let table = schema(vec![field("id", DataType::Int64, &[])]);
    let rows: Vec<Value> = (0..6).map(Value::from).collect();
    let rows: Vec<&[Value]> = rows.iter().map(std::slice::from_ref).collect();
    let data = file(&storage, "f", &table, &rows).await;
    let data = DataFile { first_row_id: Some(100), row_version: Some(7), ..data };
    let mut task = task(vec![data], &table, MatchBy::Name);
    (task.only, task.deletes) = (vec![vector(&[1, 2, 4])], vec![vector(&[2])]);
    task.residual = Predicate::Compare(ColumnPath::top("id"), Cmp::Lt, Scalar::Int(3));
    let mut reading = Reading { places: true, row_ids: true, ..Reading::default() };
    let found = read_with(&Bare, &storage, &[task.clone()], &reading).await.unwrap();
    assert_eq!(found.columns, ["id", "_path", "_row_index", "_row_id", "_row_commit_version"]);
    assert_eq!(shown(&found), [r#"1 "f" 1 101 7"#, r#"4 "f" 4 104 7"#]);
    reading = Reading { residual: true, ..Reading::default() };
    assert_eq!(shown(&read_with(&Bare, &storage, &[task], &reading).await.unwrap()), ["1"]);
}

#[tokio::test]
async fn a_wrong_row_count_in_the_metadata_is_corrupt() {
    let storage = storage();
    let table = schema(vec![field("id", DataType::Int64, &[])]);
    let mut data = file(&storage, "f", &table, &[&[1.into()]]).await;
    data.stats.rows = Some(2);
    let err = read(&Bare, &storage, &[task(vec![data], &table, MatchBy::Name)]).await.unwrap_err();
    assert_eq!(err.to_string(), "f has 1 rows, its metadata say 2");
}

/// Lines are `key order value`, with `-` for null and `del` as the value of a deletion.
async fn merged(merge: Merge, files: &[&str]) -> Vec<String> {
    let storage = storage();
    let columns = |extra: bool| {
        let mut fields =
            vec![field("k", DataType::Int64, &[]), field("ts", DataType::Int64, &[]), field("v", DataType::Utf8, &[])];
        // Deletions are marked in a column that only the files have.
        fields.extend(extra.then(|| field("_op", DataType::Utf8, &[])));
        schema(fields)
    };
    let number = |text: &str| Value::from(text.parse::<i64>().ok());
    let mut data = Vec::new();
    for (at, text) in files.iter().enumerate() {
        let rows: Vec<Vec<Value>> = text
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                let (value, op) = match words[2] {
                    "del" => (Value::Null, Value::from("D")),
                    "-" => (Value::Null, Value::Null),
                    other => (Value::from(other), Value::Null),
                };
                vec![number(words[0]), number(words[1]), value, op]
            })
            .collect();
        let rows: Vec<&[Value]> = rows.iter().map(Vec::as_slice).collect();
        data.push(file(&storage, &format!("f{at}"), &columns(true), &rows).await);
    }
    let mut task = task(data, &columns(false), MatchBy::Name);
    task.merge = merge;
    let mut rows = shown(&read(&Bare, &storage, &[task]).await.unwrap());
    rows.sort();
    rows
}

fn key_merge(rule: MergeRule) -> KeyMerge {
    KeyMerge {
        key: vec![ColumnPath::top("k")],
        order: vec![ColumnPath::top("ts")],
        rule,
        deletion: Some(DeleteMarker { column: ColumnPath::top("_op"), values: vec!["D".into()] }),
    }
}

fn staged(unconditional_deletes: bool) -> Merge {
    let merge = key_merge(MergeRule::LastRow);
    Merge::Staged(StagedMerge { base_files: 1, merge, unconditional_deletes }.into())
}

#[tokio::test]
async fn one_fold_takes_the_newest_row() {
    let last = || Merge::ByKey(key_merge(MergeRule::LastRow).into());
    assert_eq!(merged(last(), &["1 5 a, 2 5 b", "1 5 c, 2 4 d"]).await, [r#"1 5 "c""#, r#"2 5 "b""#]);
    assert_eq!(merged(last(), &["1 5 a", "1 6 del", "1 5 b"]).await, [""; 0], "a deletion is kept as a tombstone");
    let first = Merge::ByKey(key_merge(MergeRule::FirstRow).into());
    assert_eq!(merged(first, &["1 5 a", "1 6 b"]).await, [r#"1 5 "a""#]);
    let partial = Merge::ByKey(key_merge(MergeRule::PartialUpdate).into());
    assert_eq!(merged(partial, &["1 5 a", "1 6 -"]).await, [r#"1 6 "a""#]);
    let functions = vec![(ColumnPath::top("ts"), "max".into()), (ColumnPath::top("v"), "min".into())];
    let merge = KeyMerge { order: vec![], ..key_merge(MergeRule::Aggregate(functions)) };
    assert_eq!(merged(Merge::ByKey(merge.into()), &["1 5 b", "1 3 a, 1 4 -"]).await, [r#"1 5 "a""#]);
}

#[tokio::test]
async fn two_stages_differ_from_one_fold() {
    // The updates alone: the commit-time delete wins, then the insertion. Its low order loses to the base row.
    let files = ["1 5 base", "1 - del", "1 1 again"];
    assert_eq!(merged(staged(true), &files).await, [r#"1 5 "base""#]);
    assert_eq!(merged(staged(true), &["1 5 base", "1 - del"]).await, [""; 0]);
    assert_eq!(merged(staged(false), &["1 5 base", "1 - del"]).await, [r#"1 5 "base""#]);
    assert_eq!(merged(staged(true), &["1 5 base", "1 4 del"]).await, [r#"1 5 "base""#], "a real value must win");
    assert_eq!(merged(staged(true), &["1 5 base", "1 9 del", "1 8 late"]).await, [""; 0], "a tombstone stays");
    assert_eq!(
        merged(staged(true), &["1 5 a, 2 1 b", "2 1 c, 3 0 d"]).await,
        [r#"1 5 "a""#, r#"2 1 "c""#, r#"3 0 "d""#]
    );
}

#[test]
fn shredded_variants_become_json() {
    use parquet_variant::VariantBuilder;
    let mut builder = VariantBuilder::new();
    builder.new_object().with_field("rest", "r").finish();
    let (metadata, rest) = builder.finish();
    let pair = |value: Value, typed: Value| Value::Struct(vec![("value".into(), value), ("typed_value".into(), typed)]);
    let typed =
        Value::Struct(vec![("n".into(), pair(Value::Null, 7.into())), ("gone".into(), pair(Value::Null, Value::Null))]);
    let value = Value::Struct(vec![
        ("metadata".into(), Value::Bytes(metadata)),
        ("value".into(), Value::Bytes(rest)),
        ("typed_value".into(), typed),
    ]);
    let pair_type = DataType::Struct(
        vec![Field::new("value", DataType::Binary, true), Field::new("typed_value", DataType::Int64, true)].into(),
    );
    let typed_type =
        DataType::Struct(vec![Field::new("n", pair_type.clone(), true), Field::new("gone", pair_type, true)].into());
    let from = Field::new(
        "v",
        DataType::Struct(
            vec![
                Field::new("metadata", DataType::Binary, false),
                Field::new("value", DataType::Binary, true),
                Field::new("typed_value", typed_type, true),
            ]
            .into(),
        ),
        true,
    );
    assert_eq!(variant_json(&value, &from).unwrap(), Value::Json(r#"{"n":7,"rest":"r"}"#.into()));
}
