//! Merges against the slow reader's, under projections, predicates, limits and several partitions.
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use lakebed_core::{
    ErrorKind,
    expr::ColumnPath,
    scan::{DeleteMarker, KeyMerge, MatchBy, Merge, MergeRule, StagedMerge},
};
use lakebed_testkit::{
    rows::{Rows, assert_same},
    value::Value,
};

use super::world::{World, numbers, pushing, query, try_query, vector};

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("ts", DataType::Int64, true),
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
    ])
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn maybe(&mut self, sides: u64) -> Option<i64> {
        let rolled = self.roll(sides + 1);
        (rolled < sides).then_some(rolled as i64)
    }
}

/// Rows with few keys, nulls everywhere but in the key, and a marker column that is not the table's.
fn rows(dice: &mut Dice, count: usize, keys: u64, unique: bool) -> RecordBatch {
    let mut key: Vec<i64> = (0..count).map(|_| dice.roll(keys) as i64).collect();
    if unique {
        key.sort_unstable();
        key.dedup();
    }
    let count = key.len();
    let op: Vec<Option<&str>> =
        (0..count).map(|_| [Some("i"), Some("u"), Some("d"), None][dice.roll(4) as usize]).collect();
    let ts: Int64Array = (0..count).map(|_| dice.maybe(4)).collect();
    let a: Int64Array = (0..count).map(|_| dice.maybe(100)).collect();
    let b: StringArray = (0..count).map(|_| dice.maybe(100).map(|it| format!("b{it}"))).collect();
    let mut fields: Vec<Field> = schema().fields().iter().map(|it| it.as_ref().clone()).collect();
    fields.push(Field::new("op", DataType::Utf8, true));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(key)), Arc::new(ts), Arc::new(a), Arc::new(b), Arc::new(StringArray::from(op))];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn rule(rule: MergeRule, ordered: bool, deletes: bool) -> KeyMerge {
    KeyMerge {
        key: vec![ColumnPath::top("k")],
        order: if ordered { vec![ColumnPath::top("ts")] } else { Vec::new() },
        rule,
        deletion: deletes.then(|| DeleteMarker { column: ColumnPath::top("op"), values: vec!["d".to_owned()] }),
    }
}

fn merges() -> Vec<(String, Merge)> {
    let mut merges = Vec::new();
    for (ordered, deletes) in [(true, true), (true, false), (false, true), (false, false)] {
        for one in [MergeRule::LastRow, MergeRule::FirstRow, MergeRule::PartialUpdate] {
            let name = format!("{one:?} ordered={ordered} deletes={deletes}");
            merges.push((name.clone(), Merge::ByKey(Arc::new(rule(one.clone(), ordered, deletes)))));
            if one == MergeRule::FirstRow {
                continue;
            }
            for (base_files, unconditional_deletes) in [(0, false), (1, false), (1, true)] {
                let merge = rule(one.clone(), ordered, deletes);
                let staged = StagedMerge { base_files, merge, unconditional_deletes };
                merges.push((
                    format!("staged {base_files} {unconditional_deletes} {name}"),
                    Merge::Staged(Arc::new(staged)),
                ));
            }
        }
    }
    merges
}

async fn world(seed: u64, merge: &Merge) -> World {
    let mut dice = Dice(seed);
    let mut world = World::new(MatchBy::Name, schema());
    for unit in 0..3 {
        let mut files = Vec::new();
        for at in 0..4 {
            let batch = rows(&mut dice, 60, 40, at == 0);
            files.push(world.small(&format!("{unit}/{at}"), batch).await);
        }
        let deletes = vec![vector(&files[1], [0, 3, 17])];
        world.add(files, deletes, merge.clone());
    }
    world
}

#[tokio::test]
async fn merged_rows_are_the_slow_readers() {
    for (at, (name, merge)) in merges().into_iter().enumerate() {
        let world = world(at as u64 + 1, &merge).await;
        let expected = world.expected().await;
        for partitions in [1, 2, 5] {
            let context = world.session(|it| it.with_target_partitions(partitions).with_repartition_file_min_size(1));
            let found = query(&context, "select k, ts, a, b from t").await;
            let found = Rows::from_batches(&found).unwrap();
            if let Some(difference) = expected.difference(&found) {
                panic!("{name} in {partitions}: {difference:?}");
            }
        }
        let context = world.session(|it| it);
        let count = query(&context, "select count(*) as n from t").await;
        assert_eq!(numbers(&count), [expected.len() as i64], "{name}");
        assert_eq!(numbers(&query(&context, "select k from t limit 5").await).len(), expected.len().min(5), "{name}");
    }
}

#[tokio::test]
async fn predicates_see_merged_rows_only() {
    let merge = Merge::ByKey(Arc::new(rule(MergeRule::LastRow, true, true)));
    let world = world(99, &merge).await;
    let expected = world.expected().await;
    for push in ["on", "off"] {
        let context = world.session(|it| pushing(it, push));
        for (predicate, wanted) in [
            ("k < 10", (|it: &[Value]| it[0] < Value::Int(10)) as fn(&[Value]) -> bool),
            ("a > 50", |it| it[2] > Value::Int(50) && !it[2].is_null()),
            ("b = 'b7' or a = 3", |it| it[3] == Value::Text("b7".to_owned()) || it[2] == Value::Int(3)),
            ("b is null and k > 5", |it| it[3].is_null() && it[0] > Value::Int(5)),
        ] {
            let mut kept = expected.clone();
            kept.rows.retain(|it| wanted(it));
            let kept = kept.project(&["b", "k"]).unwrap();
            let found = query(&context, &format!("select b, k from t where {predicate}")).await;
            assert_same(&kept, &Rows::from_batches(&found).unwrap());
        }
    }
}

#[tokio::test]
async fn merges_beside_plain_files() {
    let merge = Merge::ByKey(Arc::new(rule(MergeRule::LastRow, true, true)));
    let mut world = world(5, &merge).await;
    let file = world.small("plain", rows(&mut Dice(3), 500, 10_000, false)).await;
    world.add_file(file);
    let expected = world.expected().await;
    for partitions in [1, 2, 5] {
        let context = world.session(|it| it.with_target_partitions(partitions).with_repartition_file_min_size(1));
        let found = query(&context, "select k, ts, a, b from t").await;
        assert_same(&expected, &Rows::from_batches(&found).unwrap());
    }
}

#[tokio::test]
async fn merged_rows_have_no_row_number_and_strange_rules_are_refused() {
    let merge = Merge::ByKey(Arc::new(rule(MergeRule::LastRow, true, true)));
    let world = world(5, &merge).await;
    let err = try_query(&world.session(|it| it), "select k, _row_index from t").await.unwrap_err();
    assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Unsupported, "merged rows have no row number"));
    let merge = Merge::ByKey(Arc::new(rule(MergeRule::Aggregate(Vec::new()), true, true)));
    let world = self::world(5, &merge).await;
    let err = try_query(&world.session(|it| it), "select k from t").await.unwrap_err();
    assert_eq!(err.kind(), ErrorKind::Unsupported);
}
