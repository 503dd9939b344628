"""Schemas that change: new columns, nested ones, wider types, other tables under the same name."""


def schema_merged(t):
    """Columns that come with the rows."""
    def append(query, **options):
        t.sql(query).write.format("delta").mode("append").options(**options).save(str(t.path))
    append("SELECT 1 AS id, 'a' AS s")
    append("SELECT 2 AS id, 'b' AS s, 2.5D AS d", mergeSchema="true")
    append("SELECT 3 AS ID, DATE'2026-01-01' AS day", mergeSchema="true")
    append("SELECT 'c' AS s, 4 AS id")
    t.filters("d IS NULL", "d > 2", "day = DATE '2026-01-01'", "ID = 3")


def schema_overwritten(t):
    """The same names with other types and another layout: each version has its own schema."""
    def overwrite(query, *layout):
        t.sql(query).write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy(*layout).save(str(t.path))
    overwrite("SELECT 1 AS a, 'x' AS b")
    overwrite("SELECT 'text' AS a, 2.5D AS b, true AS c", "c")
    overwrite("SELECT DATE'2026-01-01' AS b")
    t.query("SELECT b FROM {t} WHERE a = 'text'", version=1)


def schema_nested(t):
    """New fields in structs, in structs within arrays and within map values."""
    t.all(
        "CREATE TABLE {t} (id INT, st STRUCT<a: INT>, ar ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<y: INT>>) USING delta",
        "INSERT INTO {t} VALUES (1, named_struct('a', 1), array(named_struct('x', 1), NULL), map('k', named_struct('y', 1))), (2, NULL, NULL, NULL)",
        "ALTER TABLE {t} ADD COLUMNS (st.b STRING, st.inner STRUCT<deep: INT>)",
        "INSERT INTO {t} VALUES (3, named_struct('a', 3, 'b', 'bb', 'inner', named_struct('deep', 3)), array(named_struct('x', 3)), map())",
        "ALTER TABLE {t} ADD COLUMNS (ar.element.z DOUBLE, m.value.w BOOLEAN, st.inner.deeper ARRAY<INT>)",
        """INSERT INTO {t} VALUES (4, named_struct('a', 4, 'b', NULL, 'inner', named_struct('deep', NULL, 'deeper', array(1))),
             array(named_struct('x', 4, 'z', 4.5D)), map('k', named_struct('y', NULL, 'w', true)))""",
    )
    t.query("SELECT id, st.inner.deep AS deep FROM {t} WHERE st.a >= 3")
    t.query("SELECT id, st['b'] AS b FROM {t}", "SELECT id, st.b AS b FROM {t}")


def schema_commented(t):
    t.all(
        "CREATE TABLE {t} (id INT COMMENT 'the key', s STRING) USING delta COMMENT 'a table'",
        "INSERT INTO {t} VALUES (1, 'a')",
        "ALTER TABLE {t} ALTER COLUMN s COMMENT 'a \"text\"'",
        "ALTER TABLE {t} ADD COLUMN n INT AFTER id",
        "INSERT INTO {t} VALUES (2, 20, 'b')",
        "ALTER TABLE {t} ALTER COLUMN n AFTER s",
        "ALTER TABLE {t} SET TBLPROPERTIES ('my.own' = 'value with ''quotes''')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('my.own')",
    )


def types_widened(t):
    t.all(
        """CREATE TABLE {t} (id INT, b TINYINT, s SMALLINT, i INT, f FLOAT, d DECIMAL(6,2), day DATE, bd TINYINT, id2 INT, st STRUCT<n: SMALLINT>, ar ARRAY<INT>)
           USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported', 'delta.checkpointInterval' = '6')""",
        "INSERT INTO {t} VALUES (1, 1, 1, 1, 0.1F, 1.25, DATE'2026-01-01', 1, 1, named_struct('n', 1), array(1))",
        "INSERT INTO {t} VALUES (2, -128, -32768, -2147483648, float('NaN'), -9999.99, DATE'1900-01-01', -128, -1, NULL, NULL)",
        "ALTER TABLE {t} ALTER COLUMN b TYPE SMALLINT",
        "ALTER TABLE {t} ALTER COLUMN s TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN i TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(12,4)",
        "ALTER TABLE {t} ALTER COLUMN day TYPE TIMESTAMP_NTZ",
        "ALTER TABLE {t} ALTER COLUMN bd TYPE DECIMAL(10,0)",
        "ALTER TABLE {t} ALTER COLUMN id2 TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN st.n TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN ar.element TYPE BIGINT",
        "INSERT INTO {t} VALUES (3, 1000, 100000, 5000000000, 0.1D, 12345678.1234, TIMESTAMP_NTZ'2026-01-01 12:00:00', 1234567890, 0.5D, named_struct('n', 100000), array(5000000000))",
        "ALTER TABLE {t} ALTER COLUMN b TYPE BIGINT",
        "INSERT INTO {t} VALUES (4, 5000000000, 4, 4, 4, 4, TIMESTAMP_NTZ'2026-01-01 00:00:00', 4, 4, named_struct('n', 4), array(4))",
    )
    t.filters("b = 1", "b > 500", "s < 0", "i >= 1", "f > 0.05", "d = 1.25", "day = TIMESTAMP '2026-01-01 00:00:00'",
              "day > TIMESTAMP '2025-12-31 23:00:00'", "bd > 100", "id2 < 0.7 AND id2 > 0", "i = -2147483648")


def types_widened_partition(t):
    t.all(
        "CREATE TABLE {t} (id INT, p SMALLINT) USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} VALUES (1, 1), (2, 300), (3, NULL)",
        "ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT",
        "INSERT INTO {t} VALUES (4, 5000000000), (5, 300)",
        "DELETE FROM {t} WHERE id = 2",
    )
    t.filters("p = 300", "p > 1000", "p IS NULL")


def columns_computed(t):
    """NOT NULL, CHECK, generated columns, defaults and identity are writers' matters; the rows are rows."""
    t.all(
        """CREATE TABLE {t} (k BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), id INT NOT NULL, at TIMESTAMP,
             day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), s STRING DEFAULT 'none', st STRUCT<r: INT NOT NULL>)
           USING delta PARTITIONED BY (day) TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')""",
        "INSERT INTO {t} (id, at, st) VALUES (1, TIMESTAMP'2026-01-01 10:00:00', named_struct('r', 1)), (2, TIMESTAMP'2026-01-02 10:00:00', named_struct('r', 2))",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
        "INSERT INTO {t} (id, at, s, st) VALUES (3, TIMESTAMP'2026-01-01 11:00:00', 'given', named_struct('r', 3))",
        "ALTER TABLE {t} ALTER COLUMN s SET DEFAULT 'other'",
        "INSERT INTO {t} (id, at, st) VALUES (4, NULL, named_struct('r', 4))",
        "ALTER TABLE {t} DROP CONSTRAINT positive",
        "UPDATE {t} SET at = TIMESTAMP'2026-01-03 00:00:00', day = DATE'2026-01-03' WHERE id = 1",
    )
    t.filters("day = DATE '2026-01-01'", "day IS NULL", "id > 2", "k > 15")
