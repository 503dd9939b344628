//! Single statements, and what they must not do.
use arrow_schema::{DataType, Field};
use lakebed_core::ErrorKind;
use lakebed_testkit::{
    env::env,
    pond::{Played, PondSpec},
    seed::Seed,
    store::Op,
};

use crate::world::World;

/// Runs statements; the last one's answer, or the first error with kind and hint.
async fn told(world: &World, script: &[&str]) -> String {
    let mut told = String::new();
    for sql in script {
        told = match world.run(sql).await {
            Ok(rows) => rows,
            Err(err) => match err.hint() {
                Some(hint) => return format!("{:?}: {err}\nhint: {hint}", err.kind()),
                None => return format!("{:?}: {err}", err.kind()),
            },
        };
    }
    told
}

async fn check(script: &[&str], expected: &str) {
    assert_eq!(told(&World::new().await, script).await, expected, "{script:?}");
}

const ALL: &str = "SELECT Id, name, day FROM orders ORDER BY Id, name";

#[tokio::test]
async fn rows_of_whole_files_go_without_a_look_at_them() {
    let world = World::new().await;
    world.store.clear_log();
    for (sql, count) in [("DELETE FROM orders WHERE day = 'd2'", 1), ("DELETE FROM orders", 2)] {
        assert_eq!(world.run(sql).await.expect(sql), format!("count\n{count}"));
    }
    let read: Vec<String> = world.store.log().into_iter().map(|it| it.path).filter(|it| it.contains("data/")).collect();
    assert!(read.is_empty(), "{read:?}");
    assert_eq!(world.run(ALL).await.expect("it is empty"), "Id|name|day");
}

#[tokio::test]
async fn files_that_hold_no_wanted_row_are_not_opened() {
    for sql in [
        "DELETE FROM orders WHERE Id = 3",
        "UPDATE orders SET name = 'x' WHERE Id > 2",
        "MERGE INTO orders o USING (SELECT 3 AS k) s ON o.Id = s.k WHEN MATCHED THEN UPDATE SET name = 'y'",
        "MERGE INTO orders o USING (VALUES (3), (7)) AS s(k) ON o.Id = s.k WHEN NOT MATCHED AND k < 7 THEN INSERT (Id) \
         VALUES (k) WHEN MATCHED THEN UPDATE SET name = 'y'",
        "MERGE INTO orders o USING (SELECT 4 AS k) s ON o.Id = s.k AND o.day = 'd2' WHEN MATCHED THEN UPDATE SET \
         name = 'y' WHEN NOT MATCHED BY SOURCE AND o.day = 'd2' THEN DELETE",
    ] {
        let world = World::new().await;
        world.store.clear_log();
        assert_eq!(world.run(sql).await.expect(sql), "count\n1", "{sql}");
        let log = world.store.log();
        let mut files: Vec<&str> =
            log.iter().filter(|it| it.op == Op::Get && it.path.contains("data/")).map(|it| it.path.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        assert_eq!(files.len(), 1, "{sql}: {files:?}");
    }
}

/// delta-io/delta-rs#4535: a merge that looks for rows without a partner read every partition, although its ON and the
/// clause both pin one.
#[tokio::test]
async fn delta_rs_4535_not_matched_by_source_reads_the_pinned_partition_only() {
    let files = |on: &str, clause: &str| {
        let sql = format!(
            "MERGE INTO orders o USING (SELECT 4 AS k) s ON o.Id = s.k{on} WHEN MATCHED THEN UPDATE SET name = 'y' \
             WHEN NOT MATCHED BY SOURCE AND {clause} THEN DELETE"
        );
        async move {
            let world = World::new().await;
            world.store.clear_log();
            assert_eq!(world.run(&sql).await.expect(&sql), "count\n1", "{sql}");
            let log = world.store.log().into_iter().map(|it| it.path).filter(|it| it.contains("data/"));
            log.collect::<std::collections::BTreeSet<_>>().len()
        }
    };
    let pinned = files(" AND o.day = 'd2'", "o.day = 'd2' AND o.name = 'cid'").await;
    assert_eq!(pinned, 1, "the file of d2");
    let open = files("", "o.name = 'cid'").await;
    assert!(open > pinned, "without a pin every file is read: {open}");
}

#[tokio::test]
async fn a_statement_reads_the_version_it_changes() {
    let script =
        ["DELETE FROM orders WHERE Id = (SELECT max(Id) FROM orders) OR Id IN (SELECT min(id) AS m FROM orders)", ALL];
    check(&script, "Id|name|day\n2|bob|d1").await;
    let script = ["UPDATE orders SET Id = Id + (SELECT count(*) FROM orders)", ALL];
    check(&script, "Id|name|day\n4|ann|d1\n5|bob|d1\n6|cid|d2").await;
    let script = [
        "MERGE INTO orders t USING orders s ON t.Id = s.Id + 1 \
         WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id) VALUES (-s.id)",
        ALL,
    ];
    check(&script, "Id|name|day\n-3|NULL|NULL\n1|ann|d1\n2|ann|d1\n3|bob|d2").await;
}

#[tokio::test]
async fn nothing_to_do_is_no_version() {
    for sql in [
        "DELETE FROM orders WHERE Id = 99",
        "DELETE FROM orders WHERE false",
        "DELETE FROM orders WHERE Id = 1 AND Id = 2",
        "DELETE FROM orders WHERE name > NULL",
        "UPDATE orders SET name = 'x' WHERE Id IN (SELECT Id + 100 FROM orders)",
        "MERGE INTO orders t USING (SELECT 9 AS k) s ON t.Id = s.k WHEN MATCHED THEN DELETE",
    ] {
        let script = [sql, "SELECT max(version) AS v FROM pond_entries('orders')"];
        let world = World::new().await;
        assert_eq!(world.run(sql).await.expect(sql), "count\n0");
        let version = told(&world, &script[1..]).await;
        assert_eq!(version, told(&World::new().await, &script[1..]).await, "{sql}");
    }
}

#[tokio::test]
async fn a_row_is_changed_once_or_not_at_all() {
    let twice = "Invalid: several rows of the source match one row of the target, which would be updated or deleted by \
                 each\nhint: make the source unique by the columns of ON: QUALIFY row_number() OVER (PARTITION BY …) = 1";
    let source = "(SELECT 1 AS k, 'x' AS n UNION ALL SELECT 1, 'y') s ON t.Id = s.k";
    let merge = |clauses: &str| format!("MERGE INTO orders t USING {source} {clauses}");
    check(&[&merge("WHEN MATCHED THEN UPDATE SET name = s.n")], twice).await;
    check(&[&merge("WHEN MATCHED AND s.n = 'x' THEN UPDATE SET name = s.n WHEN MATCHED THEN DELETE")], twice).await;
    check(&[&merge("WHEN MATCHED AND true THEN DELETE")], twice).await;
    check(&[&merge("WHEN MATCHED THEN DELETE")], "count\n1").await;
    check(
        &[&merge("WHEN MATCHED AND s.n = 'y' THEN UPDATE SET name = s.n"), ALL],
        "Id|name|day\n1|y|d1\n2|bob|d1\n3|cid|d2",
    )
    .await;
    check(&[&merge("WHEN NOT MATCHED THEN INSERT (Id) VALUES (s.k)")], "count\n0").await;
}

#[tokio::test]
async fn what_is_read_twice_by_others_is_read_once() {
    // Every reading of this source gives other rows: what is matched, inserted and updated must be of one reading.
    let script = [
        "MERGE INTO orders t USING (SELECT Id AS k, random() AS r FROM orders UNION ALL SELECT 10, random()) s \
         ON t.Id = s.k WHEN MATCHED AND r < 0.5 THEN UPDATE SET name = CAST(r AS VARCHAR) WHEN MATCHED THEN DELETE \
         WHEN NOT MATCHED THEN INSERT (Id, name) VALUES (k, CAST(r AS VARCHAR))",
        "SELECT count(*) AS n FROM orders WHERE Id < 10 AND CAST(name AS DOUBLE) >= 0.5",
    ];
    check(&script, "n\n0").await;
}

#[tokio::test]
async fn names_are_checked_before_anything_is_read() {
    for (sql, expected) in [
        ("DELETE FROM orders WHERE nam = 'x'", "Invalid: no column is called `nam`\nhint: did you mean `name`?"),
        ("UPDATE orders SET nam = 'x'", "Invalid: no column of the table is called `nam`\nhint: did you mean `name`?"),
        ("UPDATE orders SET name = 'a', NAME = 'b'", "Invalid: `NAME` is assigned twice"),
        ("UPDATE orders SET _path = 'x'", "Invalid: no column of the table is called `_path`"),
        (
            "UPDATE orders SET name.a = 'x'",
            "Unsupported: assigning to `name.a`: it lies in no struct\nhint: assign the whole column",
        ),
        (
            "UPDATE orders SET Id = DATE '2020-01-01'",
            "Invalid: column `Id` has type BIGINT, into which DATE does not go\nhint: cast the value in the query",
        ),
        (
            "MERGE INTO orders t USING (SELECT 1 AS k) s ON t.Id = s.k WHEN MATCHED THEN UPDATE SET *",
            "Invalid: the source of * has no column `Id`\nhint: name the columns one by one, with a value for each",
        ),
        (
            "MERGE INTO orders t USING (SELECT 1 AS k) s ON t.Id = s.k WHEN NOT MATCHED THEN INSERT (Id, id) VALUES (1, 2)",
            "Invalid: `id` is assigned twice",
        ),
    ] {
        let world = World::new().await;
        world.store.clear_log();
        assert_eq!(told(&world, &[sql]).await, expected, "{sql}");
        let read: Vec<String> =
            world.store.log().into_iter().map(|it| it.path).filter(|it| it.contains("data/")).collect();
        assert!(read.is_empty(), "{sql}: {read:?}");
    }
}

#[tokio::test]
async fn a_subquery_that_no_join_can_be_made_of_is_refused() {
    for sql in [
        "UPDATE orders SET name = CASE WHEN Id IN (SELECT 1) THEN 'a' ELSE 'b' END",
        "MERGE INTO orders t USING (SELECT 1 AS k) s ON t.Id = s.k WHEN MATCHED AND s.k IN (SELECT 1) THEN DELETE",
    ] {
        let world = World::new().await;
        let err = world.run(sql).await.expect_err(sql);
        assert_eq!(err.kind(), ErrorKind::Unsupported, "{sql}: {err}");
        assert!(err.hint().is_some_and(|it| it.contains("WHERE")), "{sql}: {err}");
        assert_eq!(told(&world, &[ALL]).await, "Id|name|day\n1|ann|d1\n2|bob|d1\n3|cid|d2");
    }
}

#[tokio::test]
async fn a_clause_names_only_rows_it_has() {
    let merge = |clause: &str| format!("MERGE INTO orders t USING (SELECT 1 AS k, 'a' AS n) s ON t.Id = s.k {clause}");
    for clause in [
        "WHEN NOT MATCHED THEN INSERT (Id) VALUES (t.Id)",
        "WHEN NOT MATCHED AND t.Id > 1 THEN INSERT (Id) VALUES (1)",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = s.n",
        "WHEN NOT MATCHED BY SOURCE AND s.k = 1 THEN DELETE",
    ] {
        let err = World::new().await.run(&merge(clause)).await.expect_err(clause);
        assert_eq!(err.kind(), ErrorKind::Invalid, "{clause}: {err}");
    }
}

#[tokio::test]
async fn a_partition_may_change() {
    let script = [
        "UPDATE orders SET day = 'd2', name = upper(name) WHERE Id = 1",
        "SELECT Id, name FROM orders WHERE day = 'd2' ORDER BY Id",
    ];
    check(&script, "Id|name\n1|ANN\n3|cid").await;
}

#[tokio::test]
async fn null_in_a_list_is_not_false() {
    // Among 1, null and 3: whether 2 is there is not known.
    let list = "(SELECT CASE WHEN Id = 2 THEN NULL ELSE Id END AS x FROM orders)";
    for condition in [
        format!("Id = 1 OR Id NOT IN {list}"),
        format!("Id = 1 OR NOT (Id IN {list})"),
        format!("Id = 1 AND (Id IN {list} OR Id NOT IN {list})"),
        format!("Id = 1 OR CASE WHEN Id IN {list} THEN false WHEN NOT (Id IN {list}) THEN true ELSE false END"),
        format!("Id = 1 AND (name = 'ann') = (Id IN {list})"),
    ] {
        let delete = format!("DELETE FROM orders WHERE {condition}");
        check(&[&delete, ALL], "Id|name|day\n2|bob|d1\n3|cid|d2").await;
    }
    check(&[&format!("SELECT Id FROM orders WHERE NOT (2 IN {list})")], "Id").await;
    check(&[&format!("SELECT Id FROM orders WHERE Id + 1 NOT IN {list}")], "Id").await;
    let correlated = "SELECT Id FROM orders o WHERE Id NOT IN (SELECT CASE WHEN i.Id = 2 THEN NULL ELSE i.Id + 1 END \
                      FROM orders i WHERE i.Id <= o.Id) ORDER BY Id";
    check(&[correlated], "Id\n1").await;
    let unknown = format!("SELECT Id FROM orders WHERE (Id IN {list}) IS NULL");
    check(&[&unknown], "Id\n2").await;
    let none = "SELECT Id FROM orders WHERE Id = 0 OR NULL NOT IN (SELECT Id FROM orders WHERE Id > 9) ORDER BY Id";
    check(&[none], "Id\n1\n2\n3").await;
}

#[tokio::test]
async fn a_source_beyond_the_memory_spills() {
    let source = "(SELECT value AS k, repeat('x', 60) || value AS pad FROM generate_series(1, 250000))";
    let merge = format!(
        "MERGE INTO orders t USING {source} s ON t.Id = s.k WHEN MATCHED THEN UPDATE SET name = s.pad \
         WHEN NOT MATCHED THEN INSERT (Id, name, day) VALUES (k, pad, 'd' || (k % 2))"
    );
    let world = World::new().await;
    assert_eq!(world.run(&merge).await.expect("it spills"), "count\n250000");
    let sums = "SELECT count(*) AS n, sum(Id) AS s, count(DISTINCT Id) AS d, min(length(name)) AS l FROM orders";
    assert_eq!(world.run(sums).await.expect("it can be read"), "n|s|d|l\n250000|31250125000|250000|61");
}

#[tokio::test]
async fn a_merge_into_more_than_the_memory_spills() {
    let world = World::new().await;
    let many = "INSERT INTO orders SELECT value, repeat('x', 250) || value, 'd1' FROM generate_series(10, 100009)";
    assert_eq!(world.run(many).await.expect("rows are written"), "count\n100000");
    let source = "(SELECT value AS k, repeat('y', 250) || value AS pad FROM generate_series(50010, 150009))";
    let merge = format!(
        "MERGE INTO orders t USING {source} s ON t.Id = s.k WHEN MATCHED THEN UPDATE SET name = s.pad \
         WHEN NOT MATCHED THEN INSERT (Id, name, day) VALUES (k, pad, 'd2') \
         WHEN NOT MATCHED BY SOURCE AND t.Id BETWEEN 10 AND 20009 THEN DELETE"
    );
    assert_eq!(world.run(&merge).await.expect("it spills"), "count\n120000");
    let sums = "SELECT count(*) AS n, sum(Id) AS s, sum(CASE WHEN name LIKE 'y%' THEN 1 END) AS y FROM orders";
    assert_eq!(world.run(sums).await.expect("it can be read"), "n|s|y\n130003|11051235006|100000");
}

#[tokio::test]
async fn of_two_deletions_none_is_lost() {
    let world = World::new().await;
    let (one, two) = tokio::join!(
        world.run("DELETE FROM orders WHERE Id = 1"),
        world.run("UPDATE orders SET name = 'x' WHERE Id = 2"),
    );
    let mut expected = vec!["Id|name|day"];
    match &one {
        Ok(_) => (),
        Err(err) => {
            assert_eq!(err.kind(), ErrorKind::Conflict, "{err}");
            expected.push("1|ann|d1");
        }
    }
    match &two {
        Ok(_) => expected.push("2|x|d1"),
        Err(err) => {
            assert_eq!(err.kind(), ErrorKind::Conflict, "{err}");
            expected.push("2|bob|d1");
        }
    }
    assert!(one.is_ok() || two.is_ok(), "one of two wins");
    expected.push("3|cid|d2");
    assert_eq!(world.run(ALL).await.expect("it can be read"), expected.join("\n"));
}

/// A table `/lake/own` with a struct, a constraint and a column that is not null.
async fn own(properties: &[(&str, &str)]) -> World {
    let world = World::new().await;
    let pair =
        DataType::Struct(vec![Field::new("a", DataType::Int64, true), Field::new("B", DataType::Utf8, true)].into());
    let mut spec = PondSpec::with_columns(&[("id", DataType::Int64), ("pair", pair)]);
    let fields: Vec<_> =
        spec.schema.fields().iter().map(|it| it.as_ref().clone().with_nullable(it.name() != "id")).collect();
    spec.schema = std::sync::Arc::new(arrow_schema::Schema::new(fields));
    spec.properties.extend(properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Played::create(world.store.storage("own"), env(Seed(9)), &spec).await.expect("a table");
    let rows = "INSERT INTO '/lake/own' VALUES (1, named_struct('a', 1, 'B', 'x')), (2, NULL)";
    world.run(rows).await.expect("rows");
    world
}

#[tokio::test]
async fn fields_of_structs_change() {
    let world = own(&[]).await;
    let script = [
        "UPDATE '/lake/own' SET PAIR.a = coalesce(pair.a, 0) + 7, pair.b = 'y' || id WHERE id < 3",
        "UPDATE '/lake/own' AS o SET o.pair.A = o.pair.a * 10 WHERE o.pair.b = 'y1'",
        "SELECT id, pair.a, pair.b FROM '/lake/own' ORDER BY id",
    ];
    assert_eq!(told(&world, &script).await.lines().skip(1).collect::<Vec<_>>(), ["1|80|y1", "2|7|y2"]);
    let twice = "UPDATE '/lake/own' SET pair.a = 1, pair = NULL";
    assert_eq!(told(&world, &[twice]).await, "Invalid: `pair` is assigned twice");
    let nothing = "UPDATE '/lake/own' SET pair.c = 1";
    assert_eq!(told(&world, &[nothing]).await, "Invalid: `pair.c`: there is no field `c`");
}

#[tokio::test]
async fn new_rows_meet_the_rules_of_the_table() {
    for deletes in ["rewrite", "vectors"] {
        let world = own(&[("pond.deletes", deletes), ("constraint.small", "id < 100")]).await;
        for sql in [
            "UPDATE '/lake/own' SET id = NULL WHERE id = 2",
            "UPDATE '/lake/own' SET id = id * 100",
            "MERGE INTO '/lake/own' t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN UPDATE SET id = 100",
            "MERGE INTO '/lake/own' t USING (SELECT 9 AS k) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (pair) VALUES (NULL)",
            "MERGE INTO '/lake/own' t USING (SELECT 101 AS k) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
        ] {
            let err = world.run(sql).await.expect_err(sql);
            assert_eq!(err.kind(), ErrorKind::Invalid, "{sql}: {err}");
        }
        let ids = world.run("SELECT id FROM '/lake/own' ORDER BY id").await.expect("it can be read");
        assert_eq!(ids, "id\n1\n2", "nothing was changed");
        world.run("DELETE FROM '/lake/own' WHERE id = 1").await.expect("deletion breaks no rule");
    }
}

#[tokio::test]
async fn a_table_that_only_grows_refuses_changes() {
    let world = own(&[("pond.append-only", "true")]).await;
    for sql in [
        "DELETE FROM '/lake/own'",
        "UPDATE '/lake/own' SET id = 3 WHERE id = 99",
        "MERGE INTO '/lake/own' t USING (SELECT 1 AS k) s ON t.id = s.k WHEN MATCHED THEN DELETE",
    ] {
        assert_eq!(world.run(sql).await.expect_err(sql).kind(), ErrorKind::Refused, "{sql}");
    }
    let grow = "MERGE INTO '/lake/own' t USING (SELECT 1 AS k UNION ALL SELECT 3) s ON t.id = s.k \
                WHEN NOT MATCHED THEN INSERT (id) VALUES (k)";
    assert_eq!(world.run(grow).await.expect("new rows are welcome"), "count\n1");
}
