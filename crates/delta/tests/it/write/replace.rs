//! A table in place of another: what stays, what goes, and who comes in between.
use lakebed_core::ErrorKind;
use lakebed_testkit::store::{Fault, Op, Times};

use super::*;

fn replacement() -> Intent {
    Intent { operation: "REPLACE TABLE".to_owned(), ..intent(Action::Overwrite) }
}

async fn replace(place: &Place, create: CreateTable, changes: &[Change]) -> Result<Committed> {
    let creation = Delta.begin_replace(place.location(), create, replacement()).await?;
    place.conclude(creation.table.as_ref(), &creation.write, changes).await
}

fn by_day(properties: &[(&str, &str)]) -> CreateTable {
    described(columns(&[("day", DataType::Date32), ("v", DataType::Float64)]), &["day"], properties)
}

#[tokio::test]
async fn everything_is_the_new_tables_but_its_id_and_history() {
    let place = Place::new();
    let old = place.create(plain(&[("mine", "x"), ("delta.enableDeletionVectors", "true")])).await.unwrap();
    place.append(old.as_ref(), vec![file("a", 0), file("b", 10)]).await.unwrap();
    let of_old = place.action(0, "metaData").await;
    let done = replace(&place, by_day(&[("theirs", "y")]), &[]).await.unwrap();
    assert_eq!(done.version.id.as_str(), "2");

    let of_new = place.action(2, "metaData").await;
    assert_eq!((&of_new["id"], &of_new["createdTime"]), (&of_old["id"], &of_old["createdTime"]));
    assert_eq!(of_new["configuration"], serde_json::json!({"theirs": "y"}));
    assert_eq!(of_new["partitionColumns"], serde_json::json!(["day"]));
    // The protocol never goes back: what it had is still there, and not said again.
    assert!(place.action(2, "protocol").await.is_null());
    let removed: Vec<Value> = place.lines(2).await.iter().filter_map(|it| it.get("remove").cloned()).collect();
    assert_eq!(removed.iter().map(|it| it["path"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(removed.iter().all(|it| it["dataChange"] == true && it["size"] == 100));

    let table = place.opened().await;
    let now = latest(table.as_ref()).await;
    assert_eq!(now.schema().fields().iter().map(|it| it.name().as_str()).collect::<Vec<_>>(), ["day", "v"]);
    assert!(paths(table.as_ref()).await.is_empty());
    let then = table.snapshot(&AsOf::Version(1.into())).await.unwrap();
    assert_eq!(then.schema().fields().len(), 2);
    assert_eq!(crate::world::paths(&then).await.unwrap().len(), 2);
}

#[tokio::test]
async fn it_comes_with_its_rows() {
    let place = Place::new();
    let old = place.create(plain(&[])).await.unwrap();
    place.append(old.as_ref(), vec![file("a", 0)]).await.unwrap();
    // A table that takes new rows only may replace one that did not, with constraints of its own.
    let create = plain(&[("delta.appendOnly", "true")]);
    let check = Change::AddConstraint { name: "c".to_owned(), expression: "id > 0".to_owned() };
    replace(&place, create, &[check, added(vec![file("b", 1)])]).await.unwrap();
    assert_eq!(paths(place.opened().await.as_ref()).await, ["b"]);
    let protocol = place.action(2, "protocol").await;
    assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&1.into(), &3.into()));
    // And none may replace a table that keeps its rows.
    let err = replace(&place, plain(&[]), &[]).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
}

#[tokio::test]
async fn ids_of_columns_and_times_of_commits_go_on() {
    let place = Place::new();
    let properties = [("delta.columnMapping.mode", "name"), ("delta.enableInCommitTimestamps", "true")];
    place.create(plain(&properties)).await.unwrap();
    replace(&place, plain(&[("delta.columnMapping.mode", "name")]), &[]).await.unwrap();
    let metadata = place.action(1, "metaData").await;
    assert_eq!(metadata["configuration"]["delta.columnMapping.maxColumnId"], "4");
    assert_eq!(metadata["configuration"]["delta.enableInCommitTimestamps"], "true");
    let schema: Value = serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
    assert_eq!(schema["fields"][0]["metadata"]["delta.columnMapping.id"], 3);
    let times = [place.action(0, "commitInfo").await, place.action(1, "commitInfo").await];
    let [before, after] = times.map(|it| it["inCommitTimestamp"].as_i64().unwrap());
    assert!(before < after);
}

/// Files are written as the new table was described when the write began; the commit must say the same of its columns.
#[tokio::test]
async fn columns_are_mapped_as_the_write_was_told_whatever_was_before() {
    let mapped = [("delta.columnMapping.mode", "name")];
    for (before, after) in [(&[][..], &mapped[..]), (&mapped, &[]), (&mapped, &mapped)] {
        let place = Place::new();
        place.create(plain(before)).await.unwrap();
        let creation = Delta.begin_replace(place.location(), plain(after), replacement()).await.unwrap();
        let told = creation.write.base.write_rules().unwrap().files.schema;
        place.conclude(creation.table.as_ref(), &creation.write, &[]).await.unwrap();
        let said = latest(place.opened().await.as_ref()).await.write_rules().unwrap().files.schema;
        assert_eq!(told, said, "{before:?} {after:?}");
        assert_eq!(told.field(0).name() == "id", after.is_empty());
    }
}

#[tokio::test]
async fn whatever_is_committed_in_between_is_a_conflict() {
    let place = Place::new();
    let other = place.create(plain(&[])).await.unwrap();
    place.append(other.as_ref(), vec![file("a", 0)]).await.unwrap();
    let creation = Delta.begin_replace(place.location(), by_day(&[]), replacement()).await.unwrap();
    place.append(other.as_ref(), vec![file("b", 10)]).await.unwrap();
    let err = place.conclude(creation.table.as_ref(), &creation.write, &[]).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict, "{err}");
    assert_eq!(paths(place.opened().await.as_ref()).await, ["a", "b"]);
}

#[tokio::test]
async fn an_answer_that_is_lost_is_found_again() {
    let place = Place::new();
    place.create(plain(&[])).await.unwrap();
    let creation = Delta.begin_replace(place.location(), by_day(&[]), replacement()).await.unwrap();
    place.store.add_rule(Op::Create, "00001.json", Fault::LoseAnswer, Times::First(1));
    let done = place.conclude(creation.table.as_ref(), &creation.write, &[]).await.unwrap();
    assert_eq!(done.version.id.as_str(), "1");
    assert_eq!(latest(place.opened().await.as_ref()).await.schema().field(0).name(), "day");
}

#[tokio::test]
async fn where_nothing_is_nothing_is_replaced() {
    let place = Place::new();
    let err = Delta.begin_replace(place.location(), plain(&[]), replacement()).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::NotFound, "{err}");
}
