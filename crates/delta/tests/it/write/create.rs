//! New tables: the bytes of their first commit, the protocol of each set of properties, and who comes second.
use super::*;

/// Reader and writer version, and the features listed for each.
async fn protocol_of(schema: SchemaRef, properties: &[(&str, &str)]) -> String {
    let place = Place::new();
    match place.create(described(schema, &[], properties)).await {
        Err(err) => shown(&err),
        Ok(_) => {
            let protocol = place.action(0, "protocol").await;
            let list = |name: &str| {
                let listed =
                    protocol[name].as_array().map(|it| it.iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>());
                listed.map(|it| it.join(" "))
            };
            let lists = [list("readerFeatures"), list("writerFeatures")].map(|it| it.map(|it| format!(" [{it}]")));
            let [readers, writers] = lists.map(Option::unwrap_or_default);
            format!("{}/{}{readers}{writers}", protocol["minReaderVersion"], protocol["minWriterVersion"])
        }
    }
}

#[tokio::test]
async fn the_protocol_is_the_lowest_that_the_properties_need() {
    let plain = || columns(&[("id", DataType::Int64)]);
    for (properties, expected) in [
        (&[][..], "1/2"),
        (&[("delta.appendOnly", "true")], "1/2"),
        (&[("delta.enableChangeDataFeed", "true")], "1/4"),
        (&[("delta.columnMapping.mode", "name")], "2/5"),
        (&[("delta.columnMapping.mode", "id")], "2/5"),
        (&[("delta.columnMapping.mode", "none")], "1/2"),
        (&[("delta.enableDeletionVectors", "true")], "3/7 [deletionVectors] [appendOnly deletionVectors invariants]"),
        (&[("delta.enableDeletionVectors", "false")], "1/2"),
        (&[("delta.checkpointPolicy", "v2")], "3/7 [v2Checkpoint] [appendOnly invariants v2Checkpoint]"),
        (&[("delta.enableInCommitTimestamps", "true")], "1/7 [appendOnly inCommitTimestamp invariants]"),
        (&[("delta.feature.domainMetadata", "supported")], "1/7 [appendOnly domainMetadata invariants]"),
        (&[("delta.minReaderVersion", "1"), ("delta.minWriterVersion", "5")], "1/5"),
        (&[("delta.minReaderVersion", "3"), ("delta.minWriterVersion", "7")], "3/7 [] [appendOnly invariants]"),
        (
            &[("delta.enableDeletionVectors", "true"), ("delta.enableChangeDataFeed", "true")],
            "3/7 [deletionVectors] [appendOnly changeDataFeed deletionVectors invariants]",
        ),
        (
            &[("delta.enableRowTracking", "true")],
            "Unsupported: this build does not write the table feature `rowTracking` (-)",
        ),
        (
            &[("delta.feature.clustering", "supported")],
            "Unsupported: this build does not write the table feature `clustering` (-)",
        ),
        (
            &[("delta.feature.tides", "supported")],
            "Invalid: `tides` is no table feature that Lakebed knows (names of features have a case: `deletionVectors`, \
             `domainMetadata`)",
        ),
        (
            &[("delta.checkpointInterval", "never")],
            "Invalid: table property `delta.checkpointInterval` is `never`: not a whole number (-)",
        ),
    ] {
        assert_eq!(protocol_of(plain(), properties).await, expected, "{properties:?}");
    }
    let local = columns(&[("at", DataType::Timestamp(TimeUnit::Microsecond, None))]);
    assert_eq!(protocol_of(local, &[]).await, "3/7 [timestampNtz] [appendOnly invariants timestampNtz]");
}

#[tokio::test]
async fn the_first_commit_says_all_there_is_to_say() {
    let place = Place::new();
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("price", DataType::Decimal128(10, 2), true)
            .with_metadata([("comment".to_owned(), "5".to_owned())].into()),
        Field::new("at", zoned(), true),
        Field::new("day", DataType::Date32, true),
        Field::new_list("tags", Field::new("element", DataType::Utf8, false), true),
    ]));
    let create =
        CreateTable { comment: Some("what we sold".to_owned()), ..described(schema, &["day"], &[("owner", "me")]) };
    let table = place.create(create).await.unwrap();
    let body = place.storage().read(&FilePath::below("_delta_log/00000000000000000000.json")).await.unwrap().unwrap();
    insta::assert_snapshot!(String::from_utf8(body.to_vec()).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r###"
    {"commitInfo":{"timestamp":1767225600001,"operation":"CREATE TABLE","operationParameters":{"description":"\"what we sold\"","isManaged":"false","partitionBy":"[\"day\"]","properties":"{\"owner\":\"me\"}"},"operationMetrics":{},"isolationLevel":"WriteSerializable","isBlindAppend":true,"engineInfo":"Lakebed/VERSION","txnId":"987bbcbf-dd7e-532f-c3f2-827affe7f664"}}
    {"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
    {"metaData":{"id":"975835de-1c97-56ce-bfc8-46100bfc1e42","description":"what we sold","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":false,\"metadata\":{}},{\"name\":\"price\",\"type\":\"decimal(10,2)\",\"nullable\":true,\"metadata\":{\"comment\":\"5\"}},{\"name\":\"at\",\"type\":\"timestamp\",\"nullable\":true,\"metadata\":{}},{\"name\":\"day\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}},{\"name\":\"tags\",\"type\":{\"type\":\"array\",\"elementType\":\"string\",\"containsNull\":false},\"nullable\":true,\"metadata\":{}}]}","partitionColumns":["day"],"configuration":{"owner":"me"},"createdTime":1767225600000}}
    "###);
    let snapshot = latest(table.as_ref()).await;
    assert_eq!(snapshot.version().id.as_str(), "0");
    assert_eq!(snapshot.layout().partition[0].name, "day");
    assert!(!snapshot.schema().field(0).is_nullable());
}

#[tokio::test]
async fn a_table_comes_with_its_first_rows_or_not_at_all() {
    let place = Place::new();
    let creation = Delta.begin_create(place.location(), plain(&[]), intent(Action::Create)).await.unwrap();
    assert!(!Delta.detect(&place.storage()).await.unwrap(), "nothing is there yet");
    let rules = creation.write.base.write_rules().unwrap();
    assert_eq!(rules.files.columns, ["id", "name"]);
    place.store.clear_log();
    place.conclude(creation.table.as_ref(), &creation.write, &[added(vec![file("a.parquet", 0)])]).await.unwrap();
    assert_eq!(place.store.log().len(), 2, "the commit itself, and a look whether readers see it");
    assert_eq!(paths(creation.table.as_ref()).await, ["a.parquet"]);
    assert_eq!(place.action(0, "commitInfo").await["isBlindAppend"], true);
    place.append(creation.table.as_ref(), vec![file("b.parquet", 10)]).await.unwrap();
    assert_eq!(paths(place.opened().await.as_ref()).await, ["a.parquet", "b.parquet"]);
}

#[tokio::test]
async fn a_new_table_costs_a_put_between_two_listings() {
    let place = Place::new();
    place.create(plain(&[])).await.unwrap();
    assert_eq!(place.store.log().len(), 3, "{:?}", place.store.log());
}

#[tokio::test]
async fn who_comes_second_is_told_so() {
    let place = Place::new();
    let (first, second) = (
        Delta.begin_create(place.location(), plain(&[]), intent(Action::Create)).await.unwrap(),
        Delta.begin_create(place.location(), plain(&[]), intent(Action::Create)).await.unwrap(),
    );
    place.conclude(first.table.as_ref(), &first.write, &[]).await.unwrap();
    let err = place.conclude(second.table.as_ref(), &second.write, &[added(vec![file("x", 0)])]).await.unwrap_err();
    assert_eq!(shown(&err), "AlreadyExists: there is a Delta table at memory:///t (-)");
    let err = place.create(plain(&[])).await.unwrap_err();
    assert_eq!(err.kind(), lakebed_core::ErrorKind::AlreadyExists);
    assert!(paths(place.opened().await.as_ref()).await.is_empty());
}

#[tokio::test]
async fn a_new_table_whose_answer_was_lost_is_found() {
    use lakebed_testkit::store::{Fault, Op, Times};
    let place = Place::new();
    place.store.add_rule(Op::Create, "_delta_log", Fault::LoseAnswer, Times::First(1));
    let table = place.create(plain(&[])).await.unwrap();
    assert_eq!(latest(table.as_ref()).await.version().id.as_str(), "0");
}

#[tokio::test]
async fn names_and_partitions_that_cannot_be_are_refused_before_a_byte() {
    let refused = async |create: CreateTable| {
        let place = Place::new();
        let err = place.create(create).await.unwrap_err();
        assert!(place.store.log().is_empty(), "{err}");
        shown(&err)
    };
    let ints = |names: &[&str]| columns(&names.iter().map(|it| (*it, DataType::Int32)).collect::<Vec<_>>());
    for (create, expected) in [
        (
            described(ints(&["a", "A"]), &[], &[]),
            "Invalid: there are two columns `A`: names must differ without case (-)",
        ),
        (
            described(ints(&["a b"]), &[], &[]),
            "Invalid: column `a b`: a name with ` ` is only for mapped columns (`'delta.columnMapping.mode' = 'name'` maps columns)",
        ),
        (described(ints(&["a"]), &["b"], &[]), "Invalid: the table has no column `b` to be partitioned by (-)"),
        (
            described(ints(&["a"]), &["a"], &[]),
            "Invalid: a table is not partitioned by all of its columns: no file would hold anything (-)",
        ),
        (
            described(columns(&[("u", DataType::UInt64)]), &[], &[]),
            "Unsupported: column `u` has type `UInt64`, which this build does not have (-)",
        ),
    ] {
        assert_eq!(refused(create).await, expected);
    }
}

#[tokio::test]
async fn mapped_columns_get_ids_and_names_of_their_own() {
    let place = Place::new();
    let inner = DataType::Struct(vec![Field::new("x y", DataType::Int64, true)].into());
    let schema = columns(&[("a b", DataType::Int64), ("s", inner)]);
    let table = place.create(described(schema, &[], &[("delta.columnMapping.mode", "id")])).await.unwrap();
    assert_eq!(place.action(0, "metaData").await["configuration"]["delta.columnMapping.maxColumnId"], "3");
    let rules = latest(table.as_ref()).await.write_rules().unwrap();
    assert_eq!(rules.files.columns, ["a b", "s"]);
    let first = rules.files.schema.field(0);
    assert!(first.name().starts_with("col-"), "{first:?}");
    assert_eq!(first.metadata()["PARQUET:field_id"], "1");
    assert_eq!(rules.files.random_prefix, 2);
}
