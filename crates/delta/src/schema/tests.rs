use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn field(name: &str, kind: impl Into<Value>) -> Value {
    json!({"name": name, "type": kind.into(), "nullable": true, "metadata": {}})
}

fn parse(fields: &[Value], mapping: Mapping) -> Result<Schema, DeltaError> {
    parse::parse(&json!({"type": "struct", "fields": fields}).to_string(), mapping)
}

fn check(kind: impl Into<Value>, expected: DataType) {
    let schema = parse(&[field("c", kind)], Mapping::None).unwrap();
    assert_eq!(schema.field(0).data_type(), &expected);
}

fn refused(fields: &[Value], mapping: Mapping, reason: &str) {
    let err = parse(fields, mapping).unwrap_err().to_string();
    assert!(err.contains(reason), "{err}");
}

#[test]
fn every_primitive_type_has_an_arrow_type() {
    check("string", DataType::Utf8);
    check("varchar(12)", DataType::Utf8);
    check("byte", DataType::Int8);
    check("short", DataType::Int16);
    check("integer", DataType::Int32);
    check("long", DataType::Int64);
    check("float", DataType::Float32);
    check("double", DataType::Float64);
    check("boolean", DataType::Boolean);
    check("binary", DataType::Binary);
    check("date", DataType::Date32);
    check("timestamp", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    check("timestamp_ntz", DataType::Timestamp(TimeUnit::Microsecond, None));
    check("void", DataType::Null);
    check("decimal(38,0)", DataType::Decimal128(38, 0));
    check("decimal(5, 2)", DataType::Decimal128(5, 2));
    check("decimal", DataType::Decimal128(10, 0));
}

#[test]
fn types_nest() {
    let inner = json!({"type": "struct", "fields": [field("x", "long")]});
    let array = json!({"type": "array", "elementType": inner, "containsNull": false});
    let map = json!({"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": true});
    let DataType::Map(entries, false) = parse(&[field("m", map)], Mapping::None).unwrap().field(0).data_type().clone()
    else {
        panic!("no map")
    };
    assert_eq!(
        entries.data_type().to_string(),
        r#"Struct("key": non-null Utf8, "value": List(non-null Struct("x": Int64), field: 'element'))"#
    );
}

#[test]
fn a_variant_is_marked() {
    let schema = parse(&[field("v", "variant")], Mapping::None).unwrap();
    assert!(is_variant(schema.field(0)));
    assert_eq!(schema.field(0).metadata()["ARROW:extension:name"], "arrow.parquet.variant");
    let array = parse(&[field("a", json!({"type": "array", "elementType": "variant"}))], Mapping::None).unwrap();
    let DataType::List(element) = array.field(0).data_type() else { panic!("no list") };
    assert!(is_variant(element));
}

#[test]
fn metadata_are_kept_as_text() {
    let metadata = json!({
        "comment": "what it is", "delta.generationExpression": "id + 1", "delta.identity.start": 7,
        "delta.typeChanges": [{"fromType": "short", "toType": "integer"}], "delta.columnMapping.physicalName": "col-1"
    });
    let column = json!({"name": "c", "type": "integer", "nullable": false, "metadata": metadata});
    let schema = parse(&[column], Mapping::None).unwrap();
    let found = schema.field(0).metadata();
    assert_eq!(found["comment"], "what it is");
    assert_eq!(found["delta.generationExpression"], "id + 1");
    assert_eq!(found["delta.identity.start"], "7");
    assert_eq!(found["delta.typeChanges"], r#"[{"fromType":"short","toType":"integer"}]"#);
    assert_eq!(physical_name(schema.field(0)), "c", "without mapping the physical name does not count");
    assert!(!schema.field(0).is_nullable());
}

fn mapped(name: &str, id: i64, kind: impl Into<Value>) -> Value {
    let metadata = json!({"delta.columnMapping.id": id, "delta.columnMapping.physicalName": format!("col-{id}")});
    json!({"name": name, "type": kind.into(), "nullable": true, "metadata": metadata})
}

#[test]
fn mapped_columns_carry_names_and_ids_on_every_level() {
    let inner = json!({"type": "struct", "fields": [mapped("x", 2, "long")]});
    let mut list = mapped("l", 1, json!({"type": "array", "elementType": inner}));
    list["metadata"]["parquet.field.nested.ids"] = json!({"col-1.element": 9});
    let schema = parse(&[list], Mapping::Id).unwrap();
    assert_eq!((physical_name(schema.field(0)), &*schema.field(0).metadata()[FIELD_ID]), ("col-1", "1"));
    let DataType::List(element) = schema.field(0).data_type() else { panic!("no list") };
    assert_eq!(element.metadata()[FIELD_ID], "9");
    let DataType::Struct(fields) = element.data_type() else { panic!("no struct") };
    assert_eq!((physical_name(&fields[0]), &*fields[0].metadata()[FIELD_ID]), ("col-2", "2"));
}

#[test]
fn mapping_needs_its_metadata() {
    refused(&[field("c", "long")], Mapping::Name, "has no `delta.columnMapping.physicalName`");
    refused(&[field("c", "long")], Mapping::Id, "has no `delta.columnMapping.id`");
    refused(
        &[mapped("a", 1, "long"), mapped("b", 1, "long")],
        Mapping::Name,
        "two columns have the physical name `col-1`",
    );
}

#[test]
fn the_mode_counts_only_when_the_protocol_has_mapping() {
    let set = BTreeMap::from([("delta.columnMapping.mode".to_owned(), "name".to_owned())]);
    let protocol =
        |reader, writer| Protocol { min_reader_version: reader, min_writer_version: writer, ..Protocol::default() };
    assert_eq!(Mapping::of(&protocol(1, 2), &set).unwrap(), Mapping::None);
    assert_eq!(Mapping::of(&protocol(2, 5), &set).unwrap(), Mapping::Name);
    assert_eq!(Mapping::of(&protocol(2, 5), &BTreeMap::new()).unwrap(), Mapping::None);
    let odd = BTreeMap::from([("delta.columnMapping.mode".to_owned(), "both".to_owned())]);
    Mapping::of(&protocol(2, 5), &odd).unwrap_err();
}

#[test]
fn what_is_wrong_with_a_schema_names_the_column() {
    refused(&[field("Id", "long"), field("iD", "long")], Mapping::None, "columns `Id` and `iD` differ by case only");
    let inner = json!({"type": "struct", "fields": [field("x", "interval day")]});
    refused(&[field("s", inner)], Mapping::None, "column `s.x` has type `interval day`");
    refused(&[field("c", "decimal(39,2)")], Mapping::None, "no decimal of up to 38 digits");
    refused(&[field("c", "decimal(4,5)")], Mapping::None, "no decimal of up to 38 digits");
    refused(&[json!({"type": "long"})], Mapping::None, "a field without a name");
    refused(&[field("c", json!({"type": "array"}))], Mapping::None, "has no `elementType`");
    assert!(parse::parse("{", Mapping::None).unwrap_err().to_string().contains("not JSON"));
    assert!(parse::parse("{\"type\":\"array\"}", Mapping::None).is_err());
}

#[test]
fn depth_and_width_are_bounded() {
    let mut deep = "\"long\"".to_owned();
    for _ in 0..10_000 {
        deep = format!(r#"{{"type":"array","elementType":{deep},"containsNull":true}}"#);
    }
    let text =
        format!(r#"{{"type":"struct","fields":[{{"name":"a","type":{deep},"nullable":true,"metadata":{{}}}}]}}"#);
    let err = parse::parse(&text, Mapping::None).unwrap_err();
    assert!(matches!(err, DeltaError::SchemaLimit { .. }), "{err}");
    let wide: Vec<Value> = (0..100_001).map(|it| field(&format!("c{it}"), "long")).collect();
    refused(&wide, Mapping::None, "columns: 100001, more than the 100000");
}

#[test]
fn partition_columns_are_found_by_their_own_name() {
    let schema = parse(&[field("a", "long"), field("Day", "date")], Mapping::None).unwrap();
    assert_eq!(partition_indexes(&schema, &["Day".into(), "A".into()]).unwrap(), [1, 0]);
    let err = partition_indexes(&schema, &["gone".into()]).unwrap_err();
    assert_eq!(err.to_string(), "schema: partition column `gone` is not in the schema");
}

#[test]
fn rows_of_an_older_schema_read_as_the_newer_when_nothing_is_lost() {
    let fields = |list: &[Value]| parse(list, Mapping::None).unwrap().fields().clone();
    let old = fields(&[field("a", "integer"), field("b", "string")]);
    assert_eq!(incompatible(&old, &fields(&[field("b", "string"), field("A", "long"), field("c", "date")])), None);
    assert_eq!(incompatible(&old, &fields(&[field("a", "integer")])).unwrap(), "column `b` is gone");
    let narrowed = fields(&[field("a", "short"), field("b", "string")]);
    assert_eq!(incompatible(&old, &narrowed).unwrap(), "column `a` was Int32 and is Int16");
    let wide = |kind: &str| incompatible(&fields(&[field("a", "decimal(10,2)")]), &fields(&[field("a", kind)]));
    assert_eq!((wide("decimal(12,4)"), wide("decimal(12,2)")), (None, None));
    assert!(wide("decimal(11,4)").is_some());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,80}", kind in "[a-z(), 0-9]{0,20}") {
        let _ = parse::parse(&text, Mapping::Id);
        let _ = parse(&[field(&text, kind)], Mapping::Name);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let mapped = |name: &str, id: i64, kind: Value| {
        json!({"name": name, "type": kind, "nullable": true, "metadata": {
            "delta.columnMapping.id": id, "delta.columnMapping.physicalName": format!("col-{id}"), "comment": "5"}})
    };
    let inner = json!({"type": "struct", "fields": [mapped("x", 3, json!("timestamp_ntz"))]});
    let fields = json!([
        mapped("a b", 1, json!("decimal(38,37)")),
        mapped("s", 2, inner.clone()),
        mapped("l", 4, json!({"type": "array", "elementType": inner, "containsNull": false})),
        mapped("m", 5, json!({"type": "map", "keyType": "string", "valueType": "binary", "valueContainsNull": true})),
        mapped("v", 6, json!("variant")),
        mapped("n", 7, json!("void")),
        {"name": "c", "type": "string", "nullable": false, "metadata": {"delta.columnMapping.id": 8,
            "delta.columnMapping.physicalName": "c", "__CHAR_VARCHAR_TYPE_STRING": "char(3)", "kept": {"deep": [1, null]},
            "delta.typeChanges": [{"fromType": "short", "toType": "integer"}]}},
    ]);
    let before = json!({"type": "struct", "fields": fields});
    let arrow = parse::parse(&before.to_string(), Mapping::Name).unwrap();
    let with_before = text::to_text(arrow.fields(), Some(&before.to_string())).unwrap();
    assert!(
        with_before.starts_with(r#"{"type":"struct","fields":[{"name":"a b","type":"decimal(38,37)","nullable":true,"#)
    );
    assert_eq!(serde_json::from_str::<Value>(&with_before).unwrap(), before);
    let alone = text::to_text(arrow.fields(), None).unwrap();
    assert_eq!(parse::parse(&alone, Mapping::Name).unwrap(), arrow);
}
