"""Partition values: what the log says, whatever the folder is named."""


def partitions_text(t):
    """Spaces, percent signs, slashes, quotes, other scripts, null and the empty string, which is null."""
    t.all(
        "CREATE TABLE {t} (id INT, p STRING) USING delta PARTITIONED BY (p)",
        """INSERT INTO {t} VALUES (1, 'plain'), (2, 'two words'), (3, '100%'), (4, 'a/b'), (5, 'k=v'), (6, 'a:b'), (7, '漢字'),
             (8, 'q"uote'), (9, 'q''uote'), (10, NULL), (11, ''), (12, '%20'), (13, 'a+b&c?d#e'), (14, '__HIVE_DEFAULT_PARTITION__'),
             (15, ' lead'), (16, 'trail '), (17, 'back\\\\slash'), (18, '{brace}[x]'), (19, '.'), (20, 'ÄÖ~^')""",
        "INSERT INTO {t} VALUES (21, 'two words'), (22, '100%'), (23, NULL)",
        "DELETE FROM {t} WHERE p = 'a/b'",
        "UPDATE {t} SET id = id + 100 WHERE p = '100%'",
    )
    t.filters("p = 'two words'", "p = '100%'", "p IS NULL", "p = '%20'", "p > 'p'", "p IN ('漢字', 'k=v')", "p LIKE 'a%'", "p <> 'plain'")


def partitions_typed(t):
    """Ten partition columns, each of another type, with nulls."""
    t.all(
        """CREATE TABLE {t} (id INT, pi INT, pl BIGINT, pb BOOLEAN, pd DATE, pt TIMESTAMP, pn TIMESTAMP_NTZ, pdec DECIMAL(12,4),
             pf FLOAT, pdo DOUBLE, pby TINYINT, psh SMALLINT, pbin BINARY)
           USING delta PARTITIONED BY (pi, pl, pb, pd, pt, pn, pdec, pf, pdo, pby, psh, pbin)""",
        """INSERT INTO {t} VALUES
             (1, 1, 10, true, DATE'2026-01-01', TIMESTAMP'2026-01-01 01:02:03.456789', TIMESTAMP_NTZ'2026-01-01 01:02:03.456', 1.5, 1.5F, 1e10D, 1, 2, X'41'),
             (2, -1, -10, false, DATE'1900-01-01', TIMESTAMP'1900-01-01 00:00:00', TIMESTAMP_NTZ'1900-01-01 00:00:00', -1.0001, float('NaN'), double('-Infinity'), -1, -2, X'4142'),
             (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
             (4, 2147483647, 9223372036854775807, true, DATE'9999-12-31', TIMESTAMP'2026-06-30 23:59:59', NULL, 99999999.9999, 1e-3F, 0.1D, 127, 32767, X'C3A9')""",
        "INSERT INTO {t} SELECT id + 10, pi, pl, pb, pd, pt, pn, pdec, pf, pdo, pby, psh, pbin FROM {t} WHERE id < 3",
    )
    t.filters(
        "pi = 1", "pi > 1", "pi IS NULL", "pl < 0", "pb", "NOT pb", "pd = DATE '2026-01-01'", "pd > DATE '2000-01-01'",
        "pt = TIMESTAMP '2026-01-01 01:02:03.456789Z'", "pt > TIMESTAMP '2026-01-01 01:02:03.456Z'", "pdec = 1.5", "pdec < 0", "pdo > 1", "pby = -1",
        "pdo = 0.1", "pi = 1 AND pd IS NOT NULL",
    )


def partitions_local_timestamps(t):
    """Timestamps in the log in the old spelling, without a zone."""
    t.set(spark__databricks__delta__write__utcTimestampPartitionValues="false")
    t.all(
        "CREATE TABLE {t} (id INT, p TIMESTAMP) USING delta PARTITIONED BY (p)",
        "INSERT INTO {t} VALUES (1, TIMESTAMP'2026-01-01 01:02:03.456789'), (2, TIMESTAMP'2026-01-01 01:02:03'), (3, NULL)",
    )
    t.filters("p = TIMESTAMP '2026-01-01 01:02:03Z'")


def partitions_overwritten(t):
    """Overwrites: of the whole table, by condition, and of the partitions that the new rows have."""
    t.all("CREATE TABLE {t} (id INT, p STRING, q INT) USING delta PARTITIONED BY (p, q)")
    t.all("INSERT INTO {t} SELECT id, CASE WHEN id % 2 = 0 THEN 'even' ELSE 'odd' END, CAST(id % 3 AS INT) FROM range(20) AS r(id)")
    t.all("INSERT INTO {t} REPLACE WHERE p = 'even' AND q = 1 SELECT 100, 'even', 1")
    t.set(spark__sql__sources__partitionOverwriteMode="dynamic")
    t.all("INSERT OVERWRITE {t} VALUES (200, 'odd', 2), (201, 'new', 0)")
    t.set(spark__sql__sources__partitionOverwriteMode="static")
    t.all("INSERT OVERWRITE {t} VALUES (300, 'even', 1), (301, NULL, NULL)")
    t.filters("p = 'even' AND q = 1", "q IS NULL")


def partitions_checkpointed(t):
    """Partition values as structs in the checkpoint, statistics as structs only."""
    t.all(
        """CREATE TABLE {t} (id INT, d DATE, name STRING, amount DECIMAL(10,2), at TIMESTAMP) USING delta PARTITIONED BY (d)
           TBLPROPERTIES ('delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = 'false',
                          'delta.checkpointInterval' = '2')""",
        *[f"""INSERT INTO {{t}} VALUES ({n}, DATE'2026-01-0{n}', 'n{n}', {n}.25, TIMESTAMP'2026-01-0{n} 00:00:00.0001'),
              ({n}0, NULL, NULL, NULL, NULL)""" for n in range(1, 6)],
    )
    t.filters("id = 3", "d = DATE '2026-01-04'", "name > 'n3'", "amount BETWEEN 2 AND 4", "d IS NULL AND id > 30",
              "at > TIMESTAMP '2026-01-04 00:00:00Z'", "name IS NULL")
