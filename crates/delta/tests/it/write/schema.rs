//! A table's columns, changed.
use std::collections::HashMap;

use super::*;

const MAPPED: &[(&str, &str)] = &[("delta.columnMapping.mode", "name")];

/// A table with `a BIGINT, s STRUCT<x BIGINT>, p STRING` partitioned by `p`, and one file in it.
async fn made(place: &Place, properties: &[(&str, &str)]) -> Arc<dyn Table> {
    let inner = DataType::Struct(vec![Field::new("x", DataType::Int64, true)].into());
    let schema = columns(&[("a", DataType::Int64), ("s", inner), ("p", DataType::Utf8)]);
    let table = place.create(described(schema, &["p"], properties)).await.unwrap();
    let partition = vec![("p".to_owned(), Some(Scalar::Utf8("x".to_owned())))];
    place.append(table.as_ref(), vec![DataFile { partition, ..file("f", 0) }]).await.unwrap();
    table
}

/// What becomes of the schema when its fields are `change`d.
async fn evolved(properties: &[(&str, &str)], change: impl Fn(Vec<Field>) -> Vec<Field>) -> String {
    let place = Place::new();
    let table = made(&place, properties).await;
    let fields = latest(table.as_ref()).await.schema().fields().iter().map(|it| it.as_ref().clone()).collect();
    let schema = Arc::new(Schema::new(change(fields)));
    if let Err(err) = place.commit(table.as_ref(), intent(Action::Schema), &[Change::Schema(schema)]).await {
        return shown(&err);
    }
    let metadata = place.action(2, "metaData").await;
    if metadata.is_null() {
        return "unchanged".to_owned();
    }
    let text: Value = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    let max = metadata["configuration"]["delta.columnMapping.maxColumnId"].as_str().unwrap_or("-").to_owned();
    format!("{} max {max} by {}", names(&text), metadata["partitionColumns"])
}

/// `name#id:type` of each column; `!` for NOT NULL.
fn names(schema: &Value) -> String {
    let field = |it: &Value| {
        let id = it["metadata"]["delta.columnMapping.id"].as_i64().map(|it| format!("#{it}")).unwrap_or_default();
        let kind = it["type"].as_str().map_or_else(|| format!("<{}>", names(&it["type"])), str::to_owned);
        let not_null = if it["nullable"] == false { "!" } else { "" };
        format!("{}{id}:{kind}{not_null}", it["name"].as_str().unwrap())
    };
    schema["fields"].as_array().unwrap().iter().map(field).collect::<Vec<_>>().join(" ")
}

fn renamed(field: Field, name: &str) -> Field {
    field.with_name(name)
}

fn with(mut fields: Vec<Field>, more: Field) -> Vec<Field> {
    fields.push(more);
    fields
}

#[tokio::test]
async fn unmapped_columns_are_added_and_relaxed_only() {
    let new = |nullable| Field::new("n", DataType::Int32, nullable);
    assert_eq!(evolved(&[], |it| with(it, new(true))).await, r#"a:long s:<x:long> p:string n:integer max - by ["p"]"#);
    assert_eq!(
        evolved(&[], |mut it| {
            it.rotate_left(1);
            it
        })
        .await,
        r#"s:<x:long> p:string a:long max - by ["p"]"#,
        "the order says nothing"
    );
    for (change, expected) in [
        (
            evolved(&[], |it| with(it, new(false))).await,
            "Invalid: column `n` cannot be NOT NULL: the table has rows that have no value there, or may (add it as it is, and fill it)",
        ),
        (
            evolved(&[], |it| with(it, Field::new("A", DataType::Int32, true))).await,
            "Invalid: there are two columns `A`: names must differ without case (-)",
        ),
        (
            evolved(&[], |it| {
                it.into_iter().map(|f| if f.name() == "a" { f.with_data_type(DataType::Utf8) } else { f }).collect()
            })
            .await,
            "Unsupported: column `a` is Int64 and cannot become Utf8: this build changes no types (-)",
        ),
    ] {
        assert_eq!(change, expected);
    }
    let dropped = evolved(&[], |mut it| {
        it.remove(0);
        it
    });
    assert!(dropped.await.starts_with("Invalid: column `a` cannot be dropped: its columns are not mapped"));
    let local = DataType::Timestamp(TimeUnit::Microsecond, None);
    let needs = evolved(&[], |it| with(it, Field::new("t", local.clone(), true))).await;
    assert!(needs.starts_with("Refused: a type of the new schema needs the table feature `timestampNtz`"), "{needs}");
}

#[tokio::test]
async fn mapped_columns_are_renamed_dropped_and_numbered() {
    let nested = DataType::Struct(vec![Field::new("y", DataType::Int64, true)].into());
    for (found, expected) in [
        (
            evolved(MAPPED, |it| with(it, Field::new("n", nested.clone(), true))).await,
            r#"a#1:long s#2:<x#3:long> p#4:string n#5:<y#6:long> max 6 by ["p"]"#,
        ),
        (
            evolved(MAPPED, |mut it| {
                it.remove(0);
                it
            })
            .await,
            r#"s#2:<x#3:long> p#4:string max 4 by ["p"]"#,
        ),
        (
            evolved(MAPPED, |it| it.into_iter().map(|f| if f.name() == "p" { renamed(f, "day") } else { f }).collect())
                .await,
            r#"a#1:long s#2:<x#3:long> day#4:string max 4 by ["day"]"#,
        ),
        (
            evolved(MAPPED, |mut it| {
                it.pop();
                it
            })
            .await,
            "Invalid: column `p` partitions the table: it cannot go (-)",
        ),
        (
            // Fields without marks are the columns of their names.
            evolved(MAPPED, |it| it.into_iter().map(|f| f.with_metadata(HashMap::new())).collect()).await,
            "unchanged",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_column_that_a_constraint_speaks_of_stays() {
    let place = Place::new();
    let properties = [MAPPED[0], ("delta.dataSkippingStatsColumns", "a,s.x")];
    let table = made(&place, &properties).await;
    let constraint = Change::AddConstraint { name: "c".to_owned(), expression: "`A` > 0".to_owned() };
    place.commit(table.as_ref(), intent(Action::Properties), &[constraint]).await.unwrap();
    let schema = Arc::clone(latest(table.as_ref()).await.schema());
    let without = |name: &str| {
        Change::Schema(Arc::new(Schema::new(
            schema.fields().iter().filter(|it| it.name() != name).cloned().collect::<Vec<_>>(),
        )))
    };
    let err = place.commit(table.as_ref(), intent(Action::Schema), &[without("a")]).await.unwrap_err();
    assert_eq!(shown(&err), "Refused: constraint `c` speaks of column `a` (drop the constraint first)");
    let fields = schema
        .fields()
        .iter()
        .map(|it| if it.name() == "s" { renamed(it.as_ref().clone(), "t u") } else { it.as_ref().clone() });
    let renamed = Change::Schema(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
    place.commit(table.as_ref(), intent(Action::Schema), &[renamed]).await.unwrap();
    assert_eq!(latest(table.as_ref()).await.properties()["delta.dataSkippingStatsColumns"], "a,`t u`.x");
}

#[tokio::test]
async fn mapping_is_turned_on_over_files_that_are_there() {
    let place = Place::new();
    let table = made(&place, &[]).await;
    let on = set(&[("delta.columnMapping.mode", "name"), ("delta.feature.columnMapping", "supported")]);
    place.commit(table.as_ref(), intent(Action::Properties), &[on]).await.unwrap();
    let snapshot = latest(table.as_ref()).await;
    let physical = |it: &Field| it.metadata()["lakebed.physical_name"].clone();
    assert_eq!(snapshot.schema().fields().iter().map(|it| physical(it)).collect::<Vec<_>>(), ["a", "s", "p"]);
    assert_eq!(snapshot.properties()["delta.columnMapping.maxColumnId"], "4");
    assert_eq!(paths(table.as_ref()).await, ["f"]);
    let off =
        place.commit(table.as_ref(), intent(Action::Properties), &[set(&[("delta.columnMapping.mode", "none")])]).await;
    assert_eq!(
        shown(&off.unwrap_err()),
        "Invalid: table property `delta.columnMapping.mode`: the mode stays once columns are mapped (-)"
    );
}

#[tokio::test]
async fn files_are_written_in_a_schema_that_is_committed_with_them() {
    let place = Place::new();
    let table = made(&place, MAPPED).await;
    let write = table.begin(intent(Action::Append)).await.unwrap();
    let fields = write.base.schema().fields().iter().cloned().chain([Arc::new(Field::new("n", DataType::Int64, true))]);
    let wider: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let evolved = table.evolve(&write, &wider).await.unwrap();
    let shape = evolved.write_rules().unwrap().files;
    let physical = shape.schema.field(2).name().clone();
    assert!(physical.starts_with("col-"), "{shape:?}");
    let n = ColumnStats { lower: Some(Scalar::Int(1)), upper: Some(Scalar::Int(1)), nulls: None, exact: true };
    let stats = FileStats { rows: Some(1), columns: vec![(ColumnPath::top("n"), n)] };
    let partition = vec![("p".to_owned(), None)];
    let new = DataFile { stats, partition, ..file("g", 0) };
    let changes = [Change::Schema(Arc::clone(evolved.schema())), added(vec![new])];
    // Another writer comes first: the names stay.
    let other = place.opened().await;
    let partition = vec![("p".to_owned(), None)];
    place.append(other.as_ref(), vec![DataFile { partition, ..file("h", 0) }]).await.unwrap();
    let policy = ConflictPolicy { isolation: Isolation::WriteSerializable, read: None, claims: Vec::new(), retries: 5 };
    commit::commit(table.as_ref(), &StoragePublisher, &place.env, &write, &changes, &policy).await.unwrap();
    let stats = place.action(3, "add").await["stats"].as_str().unwrap().to_owned();
    assert!(stats.contains(&format!("{{\"{physical}\":1}}")), "{stats}");
    assert_eq!(latest(table.as_ref()).await.schema(), evolved.schema());
}

#[tokio::test]
async fn what_arrow_cannot_say_of_a_column_stays() {
    let world = crate::world::World::new();
    let schema = serde_json::json!({"type": "struct", "fields": [
        {"name": "c", "type": "string", "nullable": true, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)", "n": 7, "comment": "old"}},
        {"name": "u", "type": {"type": "udt", "class": "x.Y", "sqlType": "long"}, "nullable": true, "metadata": {}},
        {"name": "d", "type": "decimal", "nullable": true, "metadata": {}},
    ]});
    let metadata = serde_json::json!({"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.to_string(), "partitionColumns": [], "configuration": {}}});
    world.commit(0, &[crate::world::protocol(), metadata]).await;
    let table = world.table().await;
    let rules = latest(table.as_ref()).await.write_rules().unwrap();
    assert_eq!(rules.constraints[0].expression, "char_length(`c`) <= 3");
    let fields = latest(table.as_ref()).await.schema().fields().iter().map(|it| it.as_ref().clone()).collect();
    let place = Place { store: world.store.clone(), env: env::env(Seed(2)) };
    let wider = Change::Schema(Arc::new(Schema::new(with(fields, Field::new("n", DataType::Int64, true)))));
    place.commit(table.as_ref(), intent(Action::Schema), &[wider]).await.unwrap();
    let text = place.action(1, "metaData").await["schemaString"].as_str().unwrap().to_owned();
    let after: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(after["fields"].as_array().unwrap()[..3], schema["fields"].as_array().unwrap()[..]);
}
