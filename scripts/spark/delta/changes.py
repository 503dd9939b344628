"""The change data feed."""

FEED = "'delta.enableChangeDataFeed' = 'true'"


def _story(t, properties, layout=""):
    t.all(
        f"CREATE TABLE {{t}} (id INT, v STRING, p STRING) USING delta {layout} TBLPROPERTIES ({FEED}, {properties})",
        "INSERT INTO {t} SELECT CAST(id AS INT), 'a', IF(id % 2 = 0, 'even day', 'odd%') FROM range(12) AS r(id)",
        "UPDATE {t} SET v = 'b' WHERE id IN (1, 2)",
        "DELETE FROM {t} WHERE id IN (3, 4)",
        """MERGE INTO {t} AS t USING (SELECT CAST(id AS INT) AS id FROM range(10, 15) AS r(id)) AS s ON t.id = s.id
           WHEN MATCHED AND s.id = 10 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm'
           WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'i', 'odd%')""",
        "OPTIMIZE {t}",
        "DELETE FROM {t} WHERE p = 'odd%'",
        "INSERT OVERWRITE {t} VALUES (100, 'o', NULL)",
        "INSERT INTO {t} VALUES (101, NULL, 'even day')",
    )
    t.changes()


def feed_rewritten(t):
    _story(t, "'delta.enableDeletionVectors' = 'false'")


def feed_vectors(t):
    _story(t, "'delta.enableDeletionVectors' = 'true'")


def feed_partitioned(t):
    _story(t, "'delta.enableDeletionVectors' = 'false'", "PARTITIONED BY (p)")


def feed_partitioned_vectors(t):
    _story(t, "'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '3'", "PARTITIONED BY (p)")


def feed_mapped(t):
    _story(t, "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'", "PARTITIONED BY (p)")


def feed_ict(t):
    _story(t, "'delta.enableInCommitTimestamps' = 'true', 'delta.enableDeletionVectors' = 'true'")


def feed_enabled_late(t):
    """A range that reaches back to versions without the feed fails; later ones read."""
    t.all(
        "CREATE TABLE {t} (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({FEED})",
        "UPDATE {t} SET v = 'c' WHERE id = 1",
        "ALTER TABLE {t} ADD COLUMN n INT",
        "INSERT INTO {t} VALUES (3, 'd', 3)",
        "DELETE FROM {t} WHERE id = 2",
    )
    t.changes((2, 6), (5, 6), (0, 6), (1, 3), (4, 4), (3, 3))


def feed_restored(t):
    """RESTORE in the feed: adds and removes without change files."""
    t.all(
        f"CREATE TABLE {{t}} (id INT) USING delta TBLPROPERTIES ({FEED})",
        "INSERT INTO {t} VALUES (1), (2)",
        "DELETE FROM {t} WHERE id = 1",
        "INSERT INTO {t} VALUES (3)",
        "RESTORE TABLE {t} TO VERSION AS OF 1",
    )
    t.changes()


def feed_of_named_column(t):
    """A table without the feed may have a column named as the feed's."""
    t.all("CREATE TABLE {t} (id INT, _change_type STRING) USING delta", "INSERT INTO {t} VALUES (1, 'mine')", "UPDATE {t} SET id = 2")
