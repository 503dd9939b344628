"""Rows deleted by deletion vectors, and by rewriting."""

VECTORS = "'delta.enableDeletionVectors' = 'true'"


def vectors_delete(t):
    """Vectors that grow, whole files deleted, a vector on each of several files, then a checkpoint over all of it."""
    t.all(
        f"CREATE TABLE {{t}} (id BIGINT, s STRING) USING delta TBLPROPERTIES ({VECTORS}, 'delta.checkpointInterval' = '5')",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range(100) AS r(id)",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range(100, 200) AS r(id)",
        "DELETE FROM {t} WHERE id % 10 = 3",
        "DELETE FROM {t} WHERE id % 10 = 4",
        "DELETE FROM {t} WHERE id >= 150",
        "DELETE FROM {t} WHERE id < 100",
        "INSERT INTO {t} VALUES (3, 'again')",
        "DELETE FROM {t} WHERE id = 149",
        "DELETE FROM {t}",
    )
    t.query("SELECT count(*) AS n FROM {t}", version=5)
    t.query("SELECT count(*) AS n, min(id) AS lo, max(id) AS hi FROM {t}", version=6)
    t.query("SELECT * FROM {t} WHERE id BETWEEN 140 AND 160", version=5)


def vectors_many_row_groups(t):
    """Positions count over the whole file: small row groups and pages, filters that skip most of them."""
    t.set(parquet__block__size="65536", parquet__page__size="4096", parquet__page__row__count__limit="500")
    t.all(
        f"CREATE TABLE {{t}} (id BIGINT, pad STRING, k INT) USING delta TBLPROPERTIES ({VECTORS})",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, sha2(CAST(id AS STRING), 256), CAST(id % 100 AS INT) FROM range(20000) AS r(id)",
        "DELETE FROM {t} WHERE k = 7",
        "DELETE FROM {t} WHERE id BETWEEN 5000 AND 9000",
    )
    t.filters("id = 12345", "id = 107", "id BETWEEN 8990 AND 9010", "id > 19990", "k = 8 AND id > 15000", "pad LIKE 'aa%'")
    t.query("SELECT count(*) AS n, sum(id) AS total FROM {t}")
    t.query("SELECT k, count(*) AS n FROM {t} GROUP BY k")


def vectors_update(t):
    t.all(
        f"CREATE TABLE {{t}} (id INT, v INT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ({VECTORS})",
        "INSERT INTO {t} SELECT CAST(id AS INT), CAST(id AS INT), IF(id % 2 = 0, 'a b', 'c%d') FROM range(40) AS r(id)",
        "UPDATE {t} SET v = -v WHERE id % 5 = 0",
        "UPDATE {t} SET v = v + 1000 WHERE p = 'c%d' AND id < 10",
        "UPDATE {t} SET p = 'moved' WHERE id = 7",
    )
    t.filters("v < 0", "p = 'moved'", "p = 'c%d' AND v > 1000")


def vectors_merge(t):
    t.all(
        f"CREATE TABLE {{t}} (id INT, v STRING) USING delta TBLPROPERTIES ({VECTORS})",
        "INSERT INTO {t} SELECT CAST(id AS INT), 'old' FROM range(30) AS r(id)",
        """MERGE INTO {t} AS t USING (SELECT CAST(id AS INT) AS id FROM range(20, 40) AS r(id)) AS s ON t.id = s.id
           WHEN MATCHED AND s.id < 25 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'new'
           WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'inserted')
           WHEN NOT MATCHED BY SOURCE AND t.id < 5 THEN DELETE""",
        "MERGE INTO {t} AS t USING (SELECT 6 AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "OPTIMIZE {t}",
        "REORG TABLE {t} APPLY (PURGE)",
    )


def vectors_switched(t):
    """Vectors switched off: those that are there still count, new deletes rewrite."""
    t.all(
        f"CREATE TABLE {{t}} (id INT) USING delta TBLPROPERTIES ({VECTORS})",
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(20) AS r(id)",
        "DELETE FROM {t} WHERE id = 1",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
        "INSERT INTO {t} VALUES (100)",
        "DELETE FROM {t} WHERE id = 2",
        "ALTER TABLE {t} DROP FEATURE deletionVectors",
    )


def rewritten(t):
    """DELETE, UPDATE and MERGE without vectors."""
    t.all(
        "CREATE TABLE {t} (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
        "INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(20) AS r(id)",
        "DELETE FROM {t} WHERE id < 3",
        "UPDATE {t} SET v = 'b' WHERE id > 15",
        """MERGE INTO {t} AS t USING (SELECT CAST(id AS INT) AS id FROM range(15, 25) AS r(id)) AS s ON t.id = s.id
           WHEN MATCHED THEN UPDATE SET v = 'c' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'd')
           WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'e'""",
        "TRUNCATE TABLE {t}",
        "INSERT INTO {t} VALUES (1, 'f')",
    )
