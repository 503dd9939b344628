//! Change feeds: what came, what went, and files that say it row by row.
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use lakebed_core::{
    change::{ChangeKind, ChangeTask},
    expr::Scalar,
    scan::MatchBy,
    version::{Millis, Version, VersionId},
};

use super::world::{World, partitioned, query, text, vector};

fn version(id: u64) -> Version {
    Version { id: VersionId::from(id), committed_at: Millis(1000 * id as i64), parent: None, schema_id: None }
}

#[tokio::test]
async fn rows_come_with_kind_version_and_time() {
    let schema = Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("part", DataType::Int64, true)]);
    let mut world = World::new(MatchBy::Name, schema);
    let ids = |ids: &[i64]| Arc::new(Int64Array::from(ids.to_vec()));
    let plain = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let rows = RecordBatch::try_new(plain, vec![ids(&[1, 2, 3])]).unwrap();
    let added = partitioned(world.small("added", rows).await, "part", Some(Scalar::Int(9)));
    let said =
        Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("_change_type", DataType::Utf8, true)]);
    let kinds = Arc::new(StringArray::from(vec!["update_preimage", "update_postimage"]));
    let rows = RecordBatch::try_new(Arc::new(said), vec![ids(&[2, 2]), kinds]).unwrap();
    let recorded = partitioned(world.small("recorded", rows).await, "part", Some(Scalar::Int(9)));
    let taken = vector(&added, [2]);
    for file in [added.clone(), recorded, added] {
        world.add_file(file);
    }
    world.tasks[2].only = vec![taken];
    let kinds = [ChangeKind::Insert, ChangeKind::InColumn("_change_type".to_owned()), ChangeKind::Delete];
    let tasks = world.tasks.iter().zip(kinds).enumerate().map(|(at, (task, kind))| ChangeTask {
        task: task.clone(),
        kind,
        version: version(at as u64 + 1),
    });
    let context = world.changes(tasks.collect()).await;
    let sql = "select * from c where _commit_version > 0 order by _commit_version, _change_type, id";
    insta::assert_snapshot!(text(&query(&context, sql).await), @r"
    +----+------+------------------+-----------------+----------------------+
    | id | part | _change_type     | _commit_version | _commit_timestamp    |
    +----+------+------------------+-----------------+----------------------+
    | 1  | 9    | insert           | 1               | 1970-01-01T00:00:01Z |
    | 2  | 9    | insert           | 1               | 1970-01-01T00:00:01Z |
    | 3  | 9    | insert           | 1               | 1970-01-01T00:00:01Z |
    | 2  | 9    | update_postimage | 2               | 1970-01-01T00:00:02Z |
    | 2  | 9    | update_preimage  | 2               | 1970-01-01T00:00:02Z |
    | 3  | 9    | delete           | 3               | 1970-01-01T00:00:03Z |
    +----+------+------------------+-----------------+----------------------+
    ");
    let found = query(&context, "select id from c where _change_type = 'delete'").await;
    assert_eq!(super::world::numbers(&found), [3]);
}
