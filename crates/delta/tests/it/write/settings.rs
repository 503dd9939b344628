//! Properties, constraints and features of tables that are there.
use super::*;

/// What becomes of an empty table made with `before` and changed by `changes`: its protocol and properties, or the error.
async fn changed(before: &[(&str, &str)], changes: &[Change]) -> String {
    let place = Place::new();
    let table = place.create(plain(before)).await.unwrap();
    if let Err(err) = place.commit(table.as_ref(), intent(Action::Properties), changes).await {
        return shown(&err);
    }
    let protocol = place.action(1, "protocol").await;
    let snapshot = latest(table.as_ref()).await;
    let mut properties = snapshot.properties().clone();
    properties.retain(|name, _| !name.contains("Enablement"));
    let protocol = if protocol.is_null() {
        String::new()
    } else {
        format!("{}/{} ", protocol["minReaderVersion"], protocol["minWriterVersion"])
    };
    format!("{protocol}{properties:?}")
}

fn constraint(name: &str, expression: &str) -> Change {
    Change::AddConstraint { name: name.to_owned(), expression: expression.to_owned() }
}

fn upgrade(feature: &str) -> Change {
    Change::Upgrade { features: vec![feature.to_owned()] }
}

const NOT_ASKED: &str =
    "adds it: engines that do not know it can no longer write to the table, and perhaps not read it)";

#[tokio::test]
async fn properties_are_set_checked_and_unset() {
    let unset = |name: &str| Change::Properties { set: BTreeMap::new(), unset: vec![name.to_owned()] };
    for (before, change, expected) in [
        (&[][..], set(&[("owner", "me")]), r#"{"owner": "me"}"#),
        (&[("owner", "me")], unset("owner"), "{}"),
        (&[("owner", "me")], unset("nothing"), r#"{"owner": "me"}"#),
        (&[], set(&[("delta.checkpointinterval", "5")]), r#"{"delta.checkpointInterval": "5"}"#),
        (
            &[],
            set(&[("delta.surprise", "5")]),
            "Invalid: `delta.surprise` is no property of Delta that Lakebed knows (properties of your own have names without `delta.`)",
        ),
        (&[], set(&[("delta.appendOnly", "true")]), r#"{"delta.appendOnly": "true"}"#),
    ] {
        assert_eq!(changed(before, &[change]).await, expected);
    }
}

#[tokio::test]
async fn a_property_never_changes_the_protocol_by_itself() {
    for (property, feature) in [
        (("delta.enableChangeDataFeed", "true"), "changeDataFeed"),
        (("delta.enableDeletionVectors", "true"), "deletionVectors"),
        (("delta.columnMapping.mode", "name"), "columnMapping"),
        (("delta.checkpointPolicy", "v2"), "v2Checkpoint"),
        (("delta.enableInCommitTimestamps", "true"), "inCommitTimestamp"),
    ] {
        let refused = changed(&[], &[set(&[property])]).await;
        let start = format!(
            "Refused: what this sets needs the table feature `{feature}`, which the table does not have (`ALTER TABLE … SET"
        );
        assert!(refused.starts_with(&start) && refused.ends_with(NOT_ASKED), "{refused}");
        let named = format!("delta.feature.{feature}");
        let by_property = changed(&[], &[set(&[property, (&named, "supported")])]).await;
        let by_upgrade = changed(&[], &[set(&[property]), upgrade(feature)]).await;
        assert_eq!(by_property, by_upgrade);
        assert!(by_property.contains(property.0) && !by_property.contains("delta.feature"), "{by_property}");
    }
    let err = changed(&[], &[upgrade("rowTracking")]).await;
    assert_eq!(err, "Unsupported: this build does not write the table feature `rowTracking` (-)");
    assert!(changed(&[], &[set(&[("delta.feature.deletionVectors", "on")])]).await.starts_with("Invalid"));
}

#[tokio::test]
async fn constraints_are_named_without_case() {
    let with = [("delta.feature.checkConstraints", "supported")];
    assert_eq!(
        changed(&with, &[constraint("Positive", "id > 0")]).await,
        r#"{"delta.constraints.positive": "id > 0"}"#
    );
    let twice = changed(&with, &[constraint("a", "id > 0"), constraint("A", "id > 1")]).await;
    assert_eq!(twice, "AlreadyExists: the table has a constraint `A` (-)");
    let dropped = [constraint("a", "id > 0"), Change::DropConstraint { name: "A".to_owned() }];
    assert_eq!(changed(&with, &dropped).await, "{}");
    let none = Change::DropConstraint { name: "a".to_owned() };
    assert_eq!(changed(&with, &[none]).await, "NotFound: the table has no constraint `a` (-)");
    assert!(changed(&[], &[constraint("a", "id > 0")]).await.starts_with("Refused: constraint `a` needs"));
    let upgraded = changed(&[], &[upgrade("checkConstraints"), constraint("a", "id > 0")]).await;
    assert_eq!(upgraded, r#"1/3 {"delta.constraints.a": "id > 0"}"#);

    // A new table has what its constraints need.
    let place = Place::new();
    let creation = Delta.begin_create(place.location(), plain(&[]), intent(Action::Create)).await.unwrap();
    place.conclude(creation.table.as_ref(), &creation.write, &[constraint("a", "id > 0")]).await.unwrap();
    assert_eq!(place.action(0, "protocol").await["minWriterVersion"], 3);
    let rules = latest(creation.table.as_ref()).await.write_rules().unwrap();
    assert_eq!((rules.constraints[0].name.as_str(), rules.constraints[0].expression.as_str()), ("a", "id > 0"));
    assert!(!rules.constraints[0].null_passes);
}

#[tokio::test]
async fn commit_times_begin_where_they_are_turned_on() {
    let place = Place::new();
    let table = place.create(plain(&[])).await.unwrap();
    place.append(table.as_ref(), vec![file("a", 0)]).await.unwrap();
    let on = set(&[("delta.enableInCommitTimestamps", "true"), ("delta.feature.inCommitTimestamp", "supported")]);
    place.commit(table.as_ref(), intent(Action::Properties), &[on]).await.unwrap();
    let properties = latest(table.as_ref()).await.properties().clone();
    let stamp = place.action(2, "commitInfo").await["inCommitTimestamp"].as_i64().unwrap();
    assert_eq!(properties["delta.inCommitTimestampEnablementVersion"], "2");
    assert_eq!(properties["delta.inCommitTimestampEnablementTimestamp"], stamp.to_string());
    assert!(place.action(1, "commitInfo").await.get("inCommitTimestamp").is_none());
    let off = set(&[("delta.enableInCommitTimestamps", "false")]);
    place.commit(table.as_ref(), intent(Action::Properties), &[off]).await.unwrap();
    assert!(latest(table.as_ref()).await.properties().keys().all(|it| !it.contains("Enablement")));
}

#[tokio::test]
async fn files_follow_the_properties() {
    let rules = async |properties: &[(&str, &str)], partition: &[&str]| {
        let place = Place::new();
        let schema = columns(&[("id", DataType::Int64), ("name", DataType::Utf8)]);
        let table = place.create(described(schema, partition, properties)).await.unwrap();
        latest(table.as_ref()).await.write_rules().unwrap()
    };
    let shape = rules(&[], &["name"]).await.files;
    assert_eq!(shape.partition_folders, Some(vec!["name".to_owned()]));
    assert_eq!((shape.random_prefix, shape.columns, shape.indexed_columns), (0, vec!["id".to_owned()], None));
    let all = [
        ("delta.targetFileSize", "1mb"),
        ("delta.parquet.compression.codec", "snappy"),
        ("delta.randomizeFilePrefixes", "true"),
        ("delta.randomPrefixLength", "4"),
        ("delta.dataSkippingNumIndexedCols", "1"),
        ("delta.enableChangeDataFeed", "true"),
        ("delta.appendOnly", "true"),
        ("delta.isolationLevel", "serializable"),
        ("lakebed.parquet.packed_integers", "false"),
    ];
    let rules = rules(&all, &[]).await;
    let shape = rules.files;
    assert_eq!((shape.target_bytes, shape.random_prefix, shape.packed_integers), (1 << 20, 4, false));
    assert_eq!(shape.compression, lakebed_core::write::Compression::Snappy);
    assert_eq!(shape.indexed_columns, Some(vec![ColumnPath::top("id")]));
    assert_eq!(rules.change_folder.as_deref(), Some("_change_data"));
    assert_eq!((rules.append_only, rules.isolation), (true, Isolation::Serializable));
}

#[tokio::test]
async fn the_history_tells_what_was_done() {
    use lakebed_core::version::{Ref, RefKind, Span};
    let place = Place::new();
    let table = place.create(plain(&[("delta.feature.domainMetadata", "supported")])).await.unwrap();
    place.append(table.as_ref(), vec![file("a", 0), file("b", 10)]).await.unwrap();
    let tag =
        Ref { name: "kept".to_owned(), kind: RefKind::Tag, version: 1.into(), created_at: None, expires_at: None };
    let tagging = Intent { operation: "CREATE TAG".to_owned(), ..intent(Action::Ref) };
    place.commit(table.as_ref(), tagging, &[Change::PutRef(tag)]).await.unwrap();
    place
        .commit(table.as_ref(), intent(Action::Compaction), &[added(vec![file("c", 0)]), removed("a", None)])
        .await
        .unwrap();
    place.commit(table.as_ref(), intent(Action::Delete), &[removed("c", None)]).await.unwrap();
    let back = Intent { operation: "RESTORE".to_owned(), ..intent(Action::Restore) };
    let missing = place.commit(table.as_ref(), back, &[Change::Restore(AsOf::Version(1.into()))]).await.unwrap_err();
    assert!(shown(&missing).starts_with("Refused"), "nobody wrote the files: {missing}");
    place.commit(table.as_ref(), intent(Action::Properties), &[set(&[("owner", "me")])]).await.unwrap();
    let timeline = table.timeline(&Span::all()).await.unwrap();
    let told: Vec<Action> = timeline.instants().iter().map(|it| it.action).collect();
    let done = [Action::Create, Action::Append, Action::Ref, Action::Compaction, Action::Delete, Action::Properties];
    assert_eq!(told, done);
    assert_eq!(table.refs().await.unwrap()[0].name, "kept");
}
