"""Tables after upkeep: restored, vacuumed, cloned, converted."""


def restored(t):
    t.all(
        "CREATE TABLE {t} (id INT, s STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "DELETE FROM {t} WHERE id = 2",
        "ALTER TABLE {t} ADD COLUMN n INT",
        "INSERT INTO {t} VALUES (4, 'd', 4)",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
        "INSERT INTO {t} VALUES (5, 'e')",
        "RESTORE TABLE {t} TO VERSION AS OF 4",
        "RESTORE TABLE {t} TO VERSION AS OF 0",
        "RESTORE TABLE {t} TO VERSION AS OF 6",
    )


def vacuumed(t):
    """Versions whose files are gone are an error, never fewer rows."""
    t.all(
        "CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(10) AS r(id)",
        "INSERT INTO {t} VALUES (100)",
        "DELETE FROM {t} WHERE id = 3",
        "DELETE FROM {t} WHERE id = 4",
        "OPTIMIZE {t}",
        "DELETE FROM {t} WHERE id = 5",
        "VACUUM {t} RETAIN 0 HOURS",
    )


def vacuumed_lite(t):
    t.all(
        "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
        "INSERT INTO {t} VALUES (1, 'a b'), (2, 'c')",
        "UPDATE {t} SET id = 10 WHERE id = 1",
        "VACUUM {t} LITE RETAIN 0 HOURS",
        "INSERT INTO {t} VALUES (3, 'c')",
    )


def cloned(t):
    """A shallow clone names files outside its own folder: refused until they are allowed."""
    source = t.out / "tables" / "clone_source"
    t.all(
        f"CREATE TABLE delta.`{source}` (id INT) USING delta",
        f"INSERT INTO delta.`{source}` VALUES (1), (2)",
        f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{source}`",
        "INSERT INTO {t} VALUES (3)",
    )
    t.refuse("outside")


def converted(t):
    """Plain Parquet, converted: no statistics, partition folders of Hive."""
    t.sql("SELECT CAST(id AS INT) AS id, concat('s', id) AS s, IF(id % 2 = 0, 'a b', 'c%') AS p FROM range(10) AS r(id)") \
        .write.partitionBy("p").parquet(str(t.path))
    t.all("CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p STRING)", "INSERT INTO {t} VALUES (100, 'new', 'a b')", "DELETE FROM {t} WHERE id = 2")
    t.filters("p = 'c%'", "id > 5")
