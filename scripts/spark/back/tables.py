"""The tables of the matrix: every feature that Lakebed writes, each written on by Spark and by Lakebed again."""

VECTORS = "'delta.enableDeletionVectors' = 'true'"
MAPPED = "'delta.columnMapping.mode' = '{mode}'"
DATA = "(1, 'a', 'x', 1.5), (2, 'b', 'y', NULL), (3, NULL, 'x', 3.5), (4, 'd', 'z', CAST('-0.0' AS DOUBLE)), (5, 'e', NULL, 5.5), (6, 'é ü', 'a b', 6.25)"
COLUMNS = "id BIGINT, s STRING, p STRING, d DOUBLE"


def merge(ids: str, update: str, insert: str, more: str = "") -> str:
    return (f"MERGE INTO {{t}} AS t USING (SELECT * FROM VALUES {ids} AS v(id, s)) AS s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET {update} WHEN NOT MATCHED THEN INSERT {insert} {more}")


def on(t, columns="(id, s, p, d)"):
    """Spark goes on, then Lakebed, then Spark."""
    t.spark(
        f"INSERT INTO {{t}} {columns} VALUES (100, 'spark', 'x', 100.5), (101, 'spark', 'new', 101.5)",
        "DELETE FROM {t} WHERE id = 100",
        merge("(2, 'merged'), (102, 'spark')", "t.s = s.s", "(id, s) VALUES (s.id, s.s)"),
        "OPTIMIZE {t}",
    )
    t.lake(
        f"INSERT INTO {{t}} {columns} VALUES (200, 'lakebed', 'x', 200.5), (201, 'lakebed', 'q', NULL)",
        "UPDATE {t} SET s = 'again' WHERE id IN (2, 101)",
        "DELETE FROM {t} WHERE id = 201",
        merge("(102, 'once more'), (202, 'lakebed')", "t.s = s.s", "(id, s) VALUES (s.id, s.s)"),
        "OPTIMIZE {t}",
    )
    t.spark("DELETE FROM {t} WHERE id = 200", f"INSERT INTO {{t}} {columns} VALUES (103, 'spark', 'x', 1)")


def changed(t):
    """What every feature has to bear: rows added, deleted, updated, merged."""
    t.lake(
        f"INSERT INTO {{t}} VALUES {DATA}",
        "INSERT INTO {t} VALUES (7, 'g', 'x', 7.5), (8, 'h', 'y', 8.5), (9, 'i', 'z', 9.5)",
        "DELETE FROM {t} WHERE id IN (3, 8)",
        "UPDATE {t} SET s = concat(s, '!'), d = d + 1 WHERE p = 'x'",
        merge("(1, 'one'), (9, 'nine'), (10, 'ten')", "t.s = s.s", "(id, s) VALUES (s.id, s.s)",
              "WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE"),
    )


def plain(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta")
    changed(t)
    on(t)


def partitioned(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p)")
    changed(t)
    t.lake("DELETE FROM {t} WHERE p = 'y'", "UPDATE {t} SET p = 'c%d' WHERE id = 7")
    on(t)


def partitioned_by_types(t):
    columns = "id BIGINT, b BOOLEAN, day DATE, at TIMESTAMP, amount DECIMAL(10,2)"
    t.lake(
        f"CREATE TABLE {{t}} ({columns}) USING delta PARTITIONED BY (b, day, at, amount)",
        "INSERT INTO {t} VALUES (1, true, DATE '2026-01-31', TIMESTAMP '2026-01-31 12:30:00.125', 1.50), (2, NULL, NULL, NULL, NULL)",
        "INSERT INTO {t} VALUES (3, false, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59', -0.01)",
    )
    t.spark("INSERT INTO {t} VALUES (4, true, DATE '2026-01-31', TIMESTAMP '2026-01-31 12:30:00.125', 1.50)", "DELETE FROM {t} WHERE id = 2")
    t.lake("DELETE FROM {t} WHERE day = DATE '1969-12-31'", "UPDATE {t} SET amount = 2.25 WHERE id = 4")


def types(t):
    columns = ("i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f FLOAT, d DOUBLE, n DECIMAL(38,10), n9 DECIMAL(9,2), n18 DECIMAL(18,4), "
               "t STRING, b BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, flag BOOLEAN")
    insert = """INSERT INTO {t} VALUES
        (1, 2, 3, 4, 1.5, 2.5, 12345.0000000001, 1.25, 3.0001, 'text', X'00FF', DATE '2026-02-28', TIMESTAMP '2026-02-28 01:02:03.456789', LOCAL'2026-02-28 01:02:03.456789'), true),
        (-128, -32768, -2147483648, -9223372036854775807, -1.5, -2.5, -1, -1.25, -3.0001, '', X'', DATE '0001-01-01', TIMESTAMP '1900-01-01 00:00:00', LOCAL'1900-01-01 00:00:00'), false),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""
    mine = insert.replace("LOCAL", "arrow_cast(").replace("'), true", "', 'Timestamp(Microsecond, None)'), true").replace("'), false", "', 'Timestamp(Microsecond, None)'), false")
    t.lake(f"CREATE TABLE {{t}} ({columns}) USING delta", (mine, insert.replace("LOCAL", "to_timestamp_ntz(")))
    t.spark("INSERT INTO {t} (i64, t) VALUES (7, 'spark')", "DELETE FROM {t} WHERE i32 IS NULL AND i64 IS NULL")
    t.lake("UPDATE {t} SET t = 'seven', n9 = 7.77 WHERE i64 = 7", "OPTIMIZE {t}")


def nested(t):
    columns = "id BIGINT, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>, m MAP<STRING, INT>"
    t.lake(
        f"CREATE TABLE {{t}} ({columns}) USING delta",
        ("INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 'x'), make_array(1, 2, NULL), MAP {'k': 1}), (2, NULL, NULL, NULL)",
         "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 'x'), array(1, 2, NULL), map('k', 1)), (2, NULL, NULL, NULL)"),
    )
    t.spark("INSERT INTO {t} VALUES (3, named_struct('a', 3, 'b', NULL), array(), map())")
    t.lake("DELETE FROM {t} WHERE id = 2", "UPDATE {t} SET id = 30 WHERE id = 3")


def vectors(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta TBLPROPERTIES ({VECTORS})")
    changed(t)
    on(t)


def vectors_large(t):
    """Vectors over many rows and row groups; whole files that go; vectors on vectors, by both in turn."""
    t.lake(
        f"CREATE TABLE {{t}} (id BIGINT, k BIGINT) USING delta TBLPROPERTIES ({VECTORS})",
        ("INSERT INTO {t} SELECT value, value % 100 FROM range(300000)", "INSERT INTO {t} SELECT id, id % 100 FROM range(300000)"),
        "DELETE FROM {t} WHERE k = 7",
        "DELETE FROM {t} WHERE id BETWEEN 50000 AND 90000",
    )
    t.spark("DELETE FROM {t} WHERE k = 8", "UPDATE {t} SET k = -1 WHERE id = 299999")
    t.lake("DELETE FROM {t} WHERE k IN (8, 9) OR id < 10", "UPDATE {t} SET k = -2 WHERE id = 299998", "OPTIMIZE {t}")


def rewritten(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    changed(t)
    t.lake("DELETE FROM {t}", f"INSERT INTO {{t}} VALUES {DATA}")
    on(t)


def mapped(t, mode):
    mapping = MAPPED.format(mode=mode)
    t.lake(
        f"CREATE TABLE {{t}} ({COLUMNS}, gone INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ({mapping})",
        "INSERT INTO {t} VALUES (1, 'a', 'x', 1.5, 1), (2, 'b', 'y', 2.5, 2), (3, 'c', 'x', 3.5, 3)",
        "ALTER TABLE {t} RENAME COLUMN s TO `a name, with (odd) signs`",
        "ALTER TABLE {t} DROP COLUMN gone",
        "ALTER TABLE {t} ADD COLUMN n INT",
        "INSERT INTO {t} VALUES (4, 'd', 'z', 4.5, 40)",
        "DELETE FROM {t} WHERE id = 1",
        "UPDATE {t} SET n = 20 WHERE id = 2",
        "ALTER TABLE {t} RENAME COLUMN `a name, with (odd) signs` TO s",
        "ALTER TABLE {t} RENAME COLUMN p TO part",
    )
    t.spark(
        "INSERT INTO {t} VALUES (100, 'spark', 'x', 100.5, 1)", "ALTER TABLE {t} RENAME COLUMN n TO m",
        "DELETE FROM {t} WHERE id = 3", "ALTER TABLE {t} ADD COLUMN late STRING", "OPTIMIZE {t}",
    )
    t.lake("INSERT INTO {t} VALUES (200, 'lakebed', 'y', 2, 3, 'late')", "UPDATE {t} SET late = 'now' WHERE id = 100", "OPTIMIZE {t}")
    t.spark("DELETE FROM {t} WHERE id = 200")


def mapped_by_name(t):
    mapped(t, "name")


def mapped_by_id(t):
    mapped(t, "id")


def change_feed(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'false')")
    t.changes()
    changed(t)
    on(t)


def change_feed_of_vectors(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', {VECTORS})")
    t.changes()
    changed(t)
    on(t)


def clock_in_commits(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true', 'delta.checkpointInterval' = '3')")
    changed(t)
    on(t)


def checkpoints(t, properties):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.checkpointInterval' = '2', {properties})")
    changed(t)
    # Only the checkpoint and what follows is left to read it from.
    t.verb("checkpoint", "{path}")
    forget_before_newest_checkpoint(t)
    on(t)


def forget_before_newest_checkpoint(t):
    log = t.path / "_delta_log"
    newest = max(int(it.name.split(".")[0]) for it in log.glob("*.checkpoint*"))
    for file in log.glob("*.json"):
        if file.stem.isdigit() and int(file.stem) < newest:
            file.unlink()
    t.first_readable = newest


def checkpoints_classic(t):
    checkpoints(t, VECTORS)


def checkpoints_v2(t):
    checkpoints(t, f"'delta.checkpointPolicy' = 'v2', {VECTORS}")


def checkpoints_with_columns(t):
    checkpoints(t, "'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false'")


def constrained(t):
    t.lake(
        "CREATE TABLE {t} (id BIGINT NOT NULL, s STRING, p STRING, d DOUBLE) USING delta",
        "ALTER TABLE {t} ADD CONSTRAINT small CHECK (id < 1000)",
        f"INSERT INTO {{t}} VALUES {DATA}",
    )
    for bad in ("(NULL, 'a', 'b', 1)", "(2000, 'a', 'b', 1)"):
        t.refused(f"INSERT INTO {{t}} VALUES {bad}")
    on(t)


def made_from_a_query(t):
    query = ("SELECT id, concat('s', CAST(id AS STRING)) AS s, CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END AS p, "
             "CAST(id AS DOUBLE) / 2 AS d FROM ")
    create = f"CREATE TABLE {{t}} USING delta PARTITIONED BY (p) AS {query}"
    t.lake((f"{create} (SELECT value AS id FROM range(20)) AS r", f"{create} range(20)"))
    on(t)


def overwritten(t):
    dynamic = ("SET lakebed.write.partition_overwrite = dynamic", "SET spark.sql.sources.partitionOverwriteMode = dynamic")
    static = ("SET lakebed.write.partition_overwrite = static", "SET spark.sql.sources.partitionOverwriteMode = static")
    t.lake(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p)",
        f"INSERT INTO {{t}} VALUES {DATA}",
        static,
        "INSERT OVERWRITE {t} VALUES (50, 'over', 'x', 1), (51, 'over', 'y', 2)",
        "INSERT INTO {t} VALUES (52, 'more', 'z', 3)",
        dynamic,
        "INSERT OVERWRITE {t} VALUES (53, 'dynamic', 'x', 4), (54, 'dynamic', 'new', 5)",
        static,
    )
    t.lake("INSERT INTO {t} REPLACE WHERE p = 'z' SELECT 55, 'replaced', 'z', CAST(6 AS DOUBLE)")
    on(t)


def widened(t):
    """Columns that come with the rows."""
    t.lake(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING delta",
        f"INSERT INTO {{t}} VALUES {DATA}",
        ("SET lakebed.write.merge_schema = true", "SET spark.databricks.delta.schema.autoMerge.enabled = true"),
        "INSERT INTO {t} BY NAME SELECT CAST(20 AS BIGINT) AS id, 'wide' AS s, 'x' AS p, CAST(1 AS DOUBLE) AS d, CAST(7 AS INT) AS extra",
    )
    on(t)


def upgraded(t):
    """A table that gets its features one after the other, when asked."""
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta", f"INSERT INTO {{t}} VALUES {DATA}")
    for name, value in (
        ("delta.enableDeletionVectors", "true"), ("delta.columnMapping.mode", "name"), ("delta.enableInCommitTimestamps", "true"),
        ("delta.checkpointPolicy", "v2"), ("delta.enableChangeDataFeed", "true"),
    ):
        t.lake(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{name}' = '{value}')", "DELETE FROM {t} WHERE id = 1", "INSERT INTO {t} VALUES (1, 'again', 'x', 1)")
    on(t)
    t.lake("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')", "DELETE FROM {t} WHERE id = 5")


def restored(t):
    t.lake(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING delta TBLPROPERTIES ({VECTORS})",
        f"INSERT INTO {{t}} VALUES {DATA}",
        "DELETE FROM {t} WHERE id < 4",
        "ALTER TABLE {t} ADD COLUMN n INT",
        "INSERT INTO {t} VALUES (10, 'n', 'x', 1, 10)",
        "RESTORE TABLE {t} TO VERSION AS OF 1",
    )
    on(t)
    t.lake("RESTORE TABLE {t} TO VERSION AS OF 2")


def swept(t):
    t.lake(f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p) TBLPROPERTIES ({VECTORS})")
    changed(t)
    t.sweep(
        "OPTIMIZE {t}",
        ("SET lakebed.vacuum.retention_check = false", None),
        "VACUUM {t} RETAIN 0 HOURS",
    )
    on(t)


def tagged(t):
    """A tag is metadata of a domain that Spark has never heard of, and keeps."""
    t.lake(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING delta TBLPROPERTIES ('delta.feature.domainMetadata' = 'supported')",
        f"INSERT INTO {{t}} VALUES {DATA}",
    )
    t.verb("tag create", "first", "{path}@1")
    on(t)
    t.tag("first", 1)


def replaced(t):
    """Another table in place of the one that is there: schema, partitions and properties change, versions before it stay."""
    mapping = MAPPED.format(mode="name")
    t.lake(
        f"CREATE TABLE {{t}} ({COLUMNS}) USING delta PARTITIONED BY (p) TBLPROPERTIES ({VECTORS})",
        f"INSERT INTO {{t}} VALUES {DATA}",
        "DELETE FROM {t} WHERE id = 3",
        f"CREATE OR REPLACE TABLE {{t}} USING delta PARTITIONED BY (p) TBLPROPERTIES ({mapping}) AS SELECT id AS k, p, s AS `a b` FROM {{t}} WHERE id < 5",
        "INSERT INTO {t} VALUES (1, 'q', 'one'), (2, NULL, 'two')",
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT k AS id, k * 2 AS v FROM {t}",
    )
    t.spark("INSERT INTO {t} VALUES (3, 6)", "DELETE FROM {t} WHERE id = 1")
    t.lake("REPLACE TABLE {t} USING delta AS SELECT v, id FROM {t}", "INSERT INTO {t} VALUES (7, 8)")


def all_tables() -> dict:
    made = (
        plain, partitioned, partitioned_by_types, types, nested, vectors, vectors_large, rewritten, mapped_by_name, mapped_by_id,
        change_feed, change_feed_of_vectors, clock_in_commits, checkpoints_classic, checkpoints_v2, checkpoints_with_columns,
        constrained, made_from_a_query, overwritten, widened, upgraded, restored, replaced, swept, tagged,
    )
    return {build.__name__: build for build in made}
