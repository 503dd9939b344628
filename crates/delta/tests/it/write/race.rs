//! Writers among others: what a commit costs, who wins, what is found again.
use lakebed_core::ErrorKind;
use lakebed_testkit::store::{Fault, Op, Times};

use super::*;

#[tokio::test]
async fn with_a_snapshot_in_hand_an_append_is_two_requests() {
    let place = Place::new();
    let table = place.create(plain(&[])).await.unwrap();
    for at in 0..3 {
        let write = table.begin(intent(Action::Append)).await.unwrap();
        place.store.clear_log();
        place.conclude(table.as_ref(), &write, &[added(vec![file(&format!("{at}"), at)])]).await.unwrap();
        let log = place.store.log();
        assert_eq!((log.len(), log[0].op, log[1].op), (2, Op::Create, Op::List), "{log:?}");
    }
}

#[tokio::test]
async fn what_a_handle_committed_it_does_not_read() {
    let place = Place::new();
    let table = place.create(plain(&[])).await.unwrap();
    place.append(table.as_ref(), vec![file("0", 0)]).await.unwrap();
    for at in 1..4 {
        place.append(table.as_ref(), vec![file(&format!("{at}"), at)]).await.unwrap();
        place.store.clear_log();
        let write = table.begin(intent(Action::Append)).await.unwrap();
        let log = place.store.log();
        assert_eq!((log.len(), log[0].op), (1, Op::List), "{log:?}");
        assert_eq!(write.base.version().id.as_str(), (at + 1).to_string());
    }
    assert_eq!(paths(table.as_ref()).await, ["0", "1", "2", "3"]);
    // What another handle committed it reads.
    let other = place.opened().await;
    place.append(other.as_ref(), vec![file("4", 4)]).await.unwrap();
    assert_eq!(paths(table.as_ref()).await, ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn appends_of_two_handles_both_stand() {
    let place = Place::new();
    let (one, two) = (place.create(plain(&[])).await.unwrap(), place.opened().await);
    let (first, second) =
        (one.begin(intent(Action::Append)).await.unwrap(), two.begin(intent(Action::Append)).await.unwrap());
    place.conclude(one.as_ref(), &first, &[added(vec![file("a", 0)])]).await.unwrap();
    let done = place.conclude(two.as_ref(), &second, &[added(vec![file("b", 0)])]).await.unwrap();
    assert_eq!((done.version.id.as_str(), done.rebased), ("2", 1));
    assert_eq!(place.action(2, "commitInfo").await["readVersion"], 1);
    for table in [one, two] {
        assert_eq!(paths(table.as_ref()).await, ["a", "b"]);
    }
}

#[tokio::test]
async fn a_lost_race_costs_what_the_winners_wrote() {
    let place = Place::new();
    let (one, two) = (place.create(plain(&[])).await.unwrap(), place.opened().await);
    place.append(two.as_ref(), vec![file("a", 0)]).await.unwrap();
    let write = two.begin(intent(Action::Append)).await.unwrap();
    for at in ["b", "c"] {
        place.append(one.as_ref(), vec![file(at, 0)]).await.unwrap();
    }
    place.store.clear_log();
    let done = place.conclude(two.as_ref(), &write, &[added(vec![file("d", 0)])]).await.unwrap();
    assert_eq!(done.version.id.as_str(), "4");
    let log = place.store.log();
    let count = |op| log.iter().filter(|it| it.op == op).count();
    // Lost; who won and what they did; the version they made; once more whether it is the newest; won, and seen.
    assert_eq!((count(Op::Create), count(Op::List), count(Op::Get), log.len()), (2, 4, 4, 10), "{log:#?}");
    assert_eq!(paths(two.as_ref()).await, ["a", "b", "c", "d"]);
}

/// delta-rs 268: a commit whose answer was lost is not made again as the next version.
#[tokio::test]
async fn an_answer_that_was_lost_is_found_again() {
    for fault in [Fault::LoseAnswer, Fault::LoseAnswerAndRetry, Fault::LoseRequest, Fault::FailAfter] {
        let place = Place::new();
        let table = place.create(plain(&[])).await.unwrap();
        place.store.add_rule(Op::Create, "00001.json", fault, Times::First(1));
        let done = place.append(table.as_ref(), vec![file("a", 0)]).await.unwrap();
        assert_eq!(done.version.id.as_str(), "1");
        place.append(table.as_ref(), vec![file("b", 0)]).await.unwrap();
        assert_eq!(paths(place.opened().await.as_ref()).await, ["a", "b"]);
    }
}

#[tokio::test]
async fn one_file_goes_once() {
    let place = Place::new();
    let (one, two) = (place.create(plain(&[])).await.unwrap(), place.opened().await);
    place.append(one.as_ref(), vec![file("a", 0)]).await.unwrap();
    let (first, second) =
        (one.begin(intent(Action::Delete)).await.unwrap(), two.begin(intent(Action::Delete)).await.unwrap());
    place.conclude(one.as_ref(), &first, &[removed("a", None)]).await.unwrap();
    let err = place.conclude(two.as_ref(), &second, &[removed("a", None)]).await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Conflict);
    assert!(err.to_string().contains("already removed a"), "{err}");
}

#[tokio::test]
async fn two_jobs_that_share_an_id_conflict() {
    let place = Place::new();
    let (one, two) = (place.create(plain(&[])).await.unwrap(), place.opened().await);
    let (first, second) =
        (one.begin(of_application("etl", 1)).await.unwrap(), two.begin(of_application("etl", 2)).await.unwrap());
    place.conclude(one.as_ref(), &first, &[added(vec![file("a", 0)])]).await.unwrap();
    let err = place.conclude(two.as_ref(), &second, &[added(vec![file("b", 0)])]).await.unwrap_err();
    assert!(err.to_string().contains("give each job its own appId"), "{err}");
}

/// What beginning a write on a table of this protocol with this column comes to.
async fn begun(reader: i32, writer: i32, kind: Value, metadata: Value) -> String {
    let world = crate::world::World::new();
    let schema = serde_json::json!({"type": "struct", "fields": [
        {"name": "a", "type": "long", "nullable": true, "metadata": {}},
        {"name": "c", "type": kind, "nullable": true, "metadata": metadata},
    ]});
    let metadata = serde_json::json!({"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.to_string(), "partitionColumns": [], "configuration": {}}});
    let protocol = serde_json::json!({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}});
    world.commit(0, &[protocol, metadata]).await;
    match world.table().await.begin(intent(Action::Append)).await {
        Err(err) => shown(&err),
        Ok(write) => format!("{:?}", write.base.write_rules().unwrap().constraints),
    }
}

#[tokio::test]
async fn what_a_column_uses_is_refused_by_name() {
    use serde_json::json;
    let generated = json!({"delta.generationExpression": "a + 1"});
    for (reader, writer, kind, metadata, expected) in [
        (
            1,
            4,
            "long",
            generated.clone(),
            "Unsupported: column `c` uses the feature `generatedColumns`, which this build does not write (-)",
        ),
        (1, 3, "long", generated, "[]"),
        (1, 4, "long", json!({}), "[]"),
        (
            1,
            6,
            "long",
            json!({"delta.identity.start": 1}),
            "Unsupported: column `c` uses the feature `identityColumns`, which this build does not write (-)",
        ),
        (
            1,
            2,
            "long",
            json!({"delta.invariants": r#"{"expression":{"expression":"c > 3"}}"#}),
            r#"[Constraint { name: "invariant of `c`", expression: "c > 3", null_passes: false }]"#,
        ),
        (1, 2, "variant", json!({}), "Unsupported: column `c` is a variant, which this build does not write (-)"),
    ] {
        assert_eq!(begun(reader, writer, json!(kind), metadata).await, expected);
    }
}

#[tokio::test]
async fn what_is_not_written_is_refused_before_a_byte() {
    let protocol = |features: &str| {
        let features: Vec<&str> = features.split(' ').collect();
        serde_json::json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}})
    };
    let world = crate::world::World::with_versions(1).await;
    world.commit(2, &[protocol("appendOnly rowTracking clustering")]).await;
    let table = world.table().await;
    world.store.clear_log();
    let err = table.begin(intent(Action::Append)).await.unwrap_err();
    assert_eq!(
        err.to_string(),
        "table (writer version 7) needs writer features this build does not have: `rowTracking`, `clustering`"
    );
    assert!(world.store.log().iter().all(|it| it.op != Op::Create));
    let err = table.snapshot(&AsOf::Latest).await.unwrap().write_rules().unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unsupported);
}
