"""Table features that a reader must know, or know to ignore."""

IDS = "SELECT *, _row_id, _row_commit_version FROM {t}"
SPARK_IDS = "SELECT *, _metadata.row_id AS _row_id, _metadata.row_commit_version AS _row_commit_version FROM {t}"


def rows_tracked(t):
    """Row ids outlive updates, merges and compaction."""
    t.all(
        """CREATE TABLE {t} (id INT, v STRING) USING delta
           TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '4')""",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'a' FROM range(10) AS r(id)",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'b' FROM range(10, 15) AS r(id)",
        "UPDATE {t} SET v = 'u' WHERE id IN (2, 12)",
        "DELETE FROM {t} WHERE id = 3",
        "MERGE INTO {t} AS t USING (SELECT 4 AS id UNION ALL SELECT 99) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')",
        "OPTIMIZE {t}",
        "INSERT INTO {t} VALUES (200, 'z')",
    )
    for version in (1, 3, 5, 6, 7):
        t.query(IDS, SPARK_IDS, version)


def rows_tracked_later(t):
    """Row tracking switched on with rows there: they get their ids then."""
    t.all(
        "CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(5) AS r(id)",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "INSERT INTO {t} VALUES (100)",
        "UPDATE {t} SET id = 101 WHERE id = 1",
    )
    t.query(IDS, SPARK_IDS)


def clustered(t):
    t.all(
        "CREATE TABLE {t} (id INT, k STRING, n BIGINT) USING delta CLUSTER BY (k, n)",
        *["INSERT INTO {t} SELECT CAST(id AS INT), concat('k', id % 7), id FROM range(50) AS r(id)" for _ in range(3)],
        "OPTIMIZE {t}",
        "ALTER TABLE {t} CLUSTER BY (id)",
        "INSERT INTO {t} VALUES (1000, 'new', 1)",
        "OPTIMIZE {t} FULL",
        "ALTER TABLE {t} CLUSTER BY NONE",
    )
    t.filters("k = 'k3' AND n < 20", "id = 1000")


def zordered(t):
    t.all(
        "CREATE TABLE {t} (id INT, k INT, p STRING) USING delta PARTITIONED BY (p)",
        *["INSERT INTO {t} SELECT CAST(id AS INT), CAST(hash(id) % 50 AS INT), IF(id % 2 = 0, 'a', 'b') FROM range(40) AS r(id)" for _ in range(2)],
        "OPTIMIZE {t} WHERE p = 'a' ZORDER BY (k, id)",
        "OPTIMIZE {t}",
    )
    t.filters("k > 0 AND p = 'a'")


def checkpoint_protected(t):
    """A feature dropped: the history before is protected, and still reads."""
    t.all(
        "CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(10) AS r(id)",
        "DELETE FROM {t} WHERE id = 1",
        "ALTER TABLE {t} DROP FEATURE deletionVectors",
        "INSERT INTO {t} VALUES (50)",
    )


def features_for_writers(t):
    """Features that bind writers alone, all at once."""
    t.all(
        """CREATE TABLE {t} (id INT, s STRING) USING delta TBLPROPERTIES
           ('delta.appendOnly' = 'true', 'delta.feature.domainMetadata' = 'supported', 'delta.feature.checkConstraints' = 'supported',
            'delta.feature.invariants' = 'supported', 'delta.feature.vacuumProtocolCheck' = 'supported', 'delta.feature.generatedColumns' = 'supported')""",
        "INSERT INTO {t} VALUES (1, 'a')",
    )


def partition_columns_in_files(t):
    """Partition columns stored in the files too: the log decides."""
    t.all(
        """CREATE TABLE {t} (id INT, p STRING, q INT) USING delta PARTITIONED BY (p, q)
           TBLPROPERTIES ('delta.feature.materializePartitionColumns' = 'supported', 'delta.enableMaterializePartitionColumnsFeature' = 'true')""",
        "INSERT INTO {t} VALUES (1, 'a b', 1), (2, NULL, NULL), (3, '', 3)",
    )
    t.filters("p = 'a b'", "q IS NULL")


def iceberg_compatible(t):
    t.all(
        """CREATE TABLE {t} (id INT, m MAP<STRING, INT>, ar ARRAY<INT>) USING delta
           TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name')""",
        "INSERT INTO {t} VALUES (1, map('a', 1), array(1, 2)), (2, NULL, NULL)",
        "ALTER TABLE {t} RENAME COLUMN ar TO list",
    )


def symlink_manifest(t):
    """Other folders beside the log are not data."""
    t.all("CREATE TABLE {t} (id INT) USING delta", "INSERT INTO {t} VALUES (1)", "GENERATE symlink_format_manifest FOR TABLE {t}")
