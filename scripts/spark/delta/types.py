"""Every type of a column, at its edges."""

PRIMITIVES = """
    id BIGINT, flag BOOLEAN, b TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE,
    d9 DECIMAL(9,2), d18 DECIMAL(18,4), d38 DECIMAL(38,10), t STRING, bin BINARY, day DATE, at TIMESTAMP, ntz TIMESTAMP_NTZ
"""


def types_primitive(t):
    """Extremes, nulls, NaN and infinities, years far from now; the last versions stand behind a checkpoint."""
    t.sql(f"CREATE TABLE {{t}} ({PRIMITIVES}) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '3')")
    t.all(
        """INSERT INTO {t} VALUES
            (1, true, 127, 32767, 2147483647, 9223372036854775807, float('3.4028235E38'), 1.7976931348623157E308D,
             9999999.99, 99999999999999.9999, 9999999999999999999999999999.9999999999, 'a', X'00FF', DATE'9999-12-31',
             TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999')""",
        """INSERT INTO {t} VALUES
            (2, false, -128, -32768, -2147483648, -9223372036854775808, float('-3.4028235E38'), -1.7976931348623157E308D,
             -9999999.99, -99999999999999.9999, -9999999999999999999999999999.9999999999, '', X'', DATE'0001-01-01',
             TIMESTAMP'0001-01-01 00:00:00.000001', TIMESTAMP_NTZ'0001-01-01 00:00:00.000001')""",
        "INSERT INTO {t} (id) VALUES (3), (4)",
        """INSERT INTO {t} VALUES
            (5, true, 0, 0, 0, 0, float('NaN'), double('NaN'), 0, 0, 0, 'ünïcødé 漢字 🏔', X'DEADBEEF', DATE'1970-01-01',
             TIMESTAMP'1970-01-01 00:00:00', TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'),
            (6, NULL, 1, 1, 1, 1, float('Infinity'), double('-Infinity'), 0.01, 0.0001, 0.0000000001, 'tab\\tline\\nquote"',
             X'01', DATE'1582-10-15', TIMESTAMP'1582-10-15 00:00:00', TIMESTAMP_NTZ'2026-03-29 02:30:00'),
            (7, NULL, 1, 1, 1, 1, float('-0.0'), double('-0.0'), -0.01, -0.0001, -0.0000000001, ' ',
             X'20', DATE'1899-12-31', TIMESTAMP'1900-01-01 00:00:00.123456', TIMESTAMP_NTZ'1900-01-01 00:00:00.123456')""",
        "INSERT INTO {t} SELECT * FROM {t} WHERE id > 4",
    )
    t.filters(
        "id > 4", "i = 2147483647", "d9 < 0", "d38 > 1", "t = ''", "t > 'a'", "day < DATE '1900-01-01'", "flag", "flag IS NULL",
        "at >= TIMESTAMP '1970-01-01 00:00:00Z' AND id <> 1", "f IS NOT NULL AND id < 3", "l IN (0, 1)",
    )


def types_nested(t):
    """Structs, arrays and maps in each other; null at each level, and empty."""
    t.sql("""CREATE TABLE {t} (id INT, st STRUCT<a: INT, b: STRUCT<c: STRING, d: ARRAY<INT>>>, ar ARRAY<STRUCT<x: INT, y: STRING>>,
             m MAP<STRING, ARRAY<INT>>, mm MAP<STRUCT<k: INT>, MAP<STRING, DOUBLE>>, aa ARRAY<ARRAY<STRING>>) USING delta""")
    t.all(
        """INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', named_struct('c', 'x', 'd', array(1, NULL, 3))),
             array(named_struct('x', 1, 'y', 'p'), NULL, named_struct('x', NULL, 'y', NULL)),
             map('k', array(1, 2), 'e', array()), map(named_struct('k', 1), map('p', 1.5D)), array(array('a', NULL), NULL, array()))""",
        "INSERT INTO {t} (id) VALUES (2)",
        """INSERT INTO {t} VALUES (3, named_struct('a', NULL, 'b', NULL), array(), map(), map(), array()),
             (4, named_struct('a', 4, 'b', named_struct('c', NULL, 'd', array())), NULL, map('n', NULL), NULL, array(NULL))""",
    )
    t.query("SELECT id, st FROM {t} WHERE st.a = 4", "SELECT id, st FROM {t} WHERE st.a = 4")


def types_legacy_parquet(t):
    """INT96 timestamps, two-level lists and old map names, as old Sparks wrote them."""
    t.set(
        spark__sql__parquet__outputTimestampType="INT96", spark__sql__parquet__writeLegacyFormat="true",
        spark__sql__parquet__int96RebaseModeInWrite="CORRECTED",
    )
    t.all(
        "CREATE TABLE {t} (id INT, at TIMESTAMP, ar ARRAY<INT>, st ARRAY<STRUCT<a: INT>>, m MAP<STRING, INT>, d DECIMAL(10,3)) USING delta",
        """INSERT INTO {t} VALUES (1, TIMESTAMP'2026-01-02 03:04:05.678901', array(1, NULL), array(named_struct('a', 1)), map('a', 1), 1.234),
             (2, TIMESTAMP'1969-07-20 20:17:40', array(), array(), map(), -1.234), (3, NULL, NULL, NULL, NULL, NULL),
             (4, TIMESTAMP'9999-12-31 23:59:59.999999', array(), NULL, map('b', NULL), 9999999.999)""",
    )
    t.filters("at > TIMESTAMP '2000-01-01 00:00:00Z'")


def types_timestamps_millis(t):
    """Milliseconds in the files, microseconds in the table."""
    t.set(spark__sql__parquet__outputTimestampType="TIMESTAMP_MILLIS")
    t.all(
        "CREATE TABLE {t} (id INT, at TIMESTAMP) USING delta",
        "INSERT INTO {t} VALUES (1, TIMESTAMP'2026-01-02 03:04:05.678'), (2, TIMESTAMP'1969-07-20 20:17:40.999'), (3, NULL)",
    )
    t.filters("at = TIMESTAMP '2026-01-02 03:04:05.678Z'")


def types_char_varchar(t):
    """What the files hold: that Spark pads CHAR when it reads is a setting of Spark's."""
    t.set(spark__sql__readSideCharPadding="false")
    t.all(
        "CREATE TABLE {t} (id INT, c CHAR(5), v VARCHAR(10)) USING delta",
        "INSERT INTO {t} VALUES (1, 'ab', 'cd'), (2, NULL, NULL), (3, 'abcde', 'abcdefghij')",
    )


def types_variant(t):
    t.all(
        "CREATE TABLE {t} (id INT, v VARIANT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        """INSERT INTO {t} SELECT id, parse_json(j) FROM VALUES
             (1, '{"a": 1, "b": [true, null, "x"], "c": {"d": 1.5}}'), (2, 'null'), (3, '"text"'), (4, '12345678901234567890'),
             (5, '[]'), (6, '{}'), (7, '-0.001'), (8, 'false'), (9, NULL) AS s(id, j)""",
        "DELETE FROM {t} WHERE id = 5",
        "INSERT INTO {t} SELECT 10, to_variant_object(named_struct('n', 1, 'l', array(1, 2)))",
    )


def types_variant_shredded(t):
    t.set(spark__sql__variant__writeShredding__enabled="true", spark__sql__variant__forceShreddingSchemaForTest="a INT, b STRING")
    t.all(
        "CREATE TABLE {t} (id INT, v VARIANT) USING delta TBLPROPERTIES ('delta.enableVariantShredding' = 'true')",
        """INSERT INTO {t} SELECT id, parse_json(j) FROM VALUES (1, '{"a": 1, "b": "x", "c": 2}'), (2, '{"a": "not an int"}'),
             (3, '[1, 2]'), (4, NULL), (5, '{"b": null}') AS s(id, j)""",
    )


def types_ntz(t):
    t.all(
        "CREATE TABLE {t} (id INT, at TIMESTAMP_NTZ, part TIMESTAMP_NTZ) USING delta PARTITIONED BY (part)",
        """INSERT INTO {t} VALUES (1, TIMESTAMP_NTZ'2026-03-29 02:30:00', TIMESTAMP_NTZ'2026-01-01 00:00:00'),
             (2, NULL, TIMESTAMP_NTZ'2026-01-01 00:00:00.123456'), (3, TIMESTAMP_NTZ'1900-01-01 00:00:00', NULL)""",
    )
    t.filters("part = TIMESTAMP '2026-01-01 00:00:00'", "part IS NULL", "at > TIMESTAMP '2000-01-01 00:00:00'")


def types_void(t):
    """A column of no type is never stored; it reads as null."""
    t.all("CREATE TABLE {t} (id INT, nothing VOID, s STRING) USING delta", "INSERT INTO {t} (id, s) VALUES (1, 'a'), (2, NULL)")


def types_collated(t):
    t.set(spark__databricks__delta__schema__typeCheck__enabled="false")
    t.all("CREATE TABLE {t} (id INT, s STRING COLLATE UTF8_LCASE) USING delta", "INSERT INTO {t} VALUES (1, 'Aa'), (2, 'aA'), (3, 'b')")
