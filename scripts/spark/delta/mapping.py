"""Column mapping: files keep their names, the table changes its."""


def _evolve(t, mode):
    t.all(
        f"""CREATE TABLE {{t}} (id INT, name STRING, st STRUCT<a: INT, b: STRING>, ar ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<y: INT>>, p STRING)
            USING delta PARTITIONED BY (p)
            TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}', 'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '4')""",
        "INSERT INTO {t} VALUES (1, 'one', named_struct('a', 1, 'b', 'x'), array(named_struct('x', 1)), map('k', named_struct('y', 1)), 'p 1')",
        "ALTER TABLE {t} RENAME COLUMN name TO `full name`",
        "INSERT INTO {t} VALUES (2, 'two', named_struct('a', 2, 'b', 'y'), array(named_struct('x', 2)), map('k', named_struct('y', 2)), 'p%2')",
        "ALTER TABLE {t} RENAME COLUMN st.a TO a2",
        "ALTER TABLE {t} RENAME COLUMN p TO part",
        "ALTER TABLE {t} ADD COLUMN name DOUBLE",
        "INSERT INTO {t} VALUES (3, 'three', named_struct('a2', 3, 'b', 'z'), array(), map(), NULL, 3.5)",
        "DELETE FROM {t} WHERE id = 2",
        "ALTER TABLE {t} DROP COLUMN `full name`",
        "ALTER TABLE {t} DROP COLUMN st.b",
        "ALTER TABLE {t} RENAME COLUMN ar.element.x TO xx",
        "ALTER TABLE {t} ADD COLUMN `full name` INT",
        "INSERT INTO {t} VALUES (4, named_struct('a2', 4), array(named_struct('xx', 4)), map('k', named_struct('y', 4)), 'p 1', 4.5, 4)",
        "ALTER TABLE {t} ADD COLUMN st.c BIGINT AFTER a2",
        "ALTER TABLE {t} ALTER COLUMN name FIRST",
    )
    t.filters("part = 'p 1'", "id > 2", "part IS NULL", "name > 4", "`full name` = 4", "`full name` IS NULL")


def mapping_name(t):
    _evolve(t, "name")


def mapping_id(t):
    _evolve(t, "id")


def mapping_upgraded(t):
    """Mapping switched on late: the old files have the old names and no ids."""
    t.all(
        "CREATE TABLE {t} (id INT, Name STRING) USING delta",
        "INSERT INTO {t} VALUES (1, 'a')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
        "ALTER TABLE {t} RENAME COLUMN Name TO label",
        "INSERT INTO {t} VALUES (2, 'b')",
        "ALTER TABLE {t} DROP COLUMN label",
        "ALTER TABLE {t} ADD COLUMN Name STRING",
        "INSERT INTO {t} VALUES (3, 'c')",
    )
    t.filters("Name = 'c'", "Name IS NULL")


def mapping_odd_names(t):
    """Names that Parquet alone could not carry, and names in upper case."""
    t.all(
        """CREATE TABLE {t} (`a b` INT, `c,d;e` INT, `x.y` STRING, `Groß` STRING, `名前` STRING, UPPER INT, `quo``te` INT, `tab\tx` INT)
           USING delta PARTITIONED BY (`Groß`) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')""",
        "INSERT INTO {t} VALUES (1, 2, 'dot', 'part one', 'n', 6, 7, 8), (11, 12, NULL, NULL, NULL, 16, 17, 18)",
        "ALTER TABLE {t} RENAME COLUMN `x.y` TO `z.w`",
        "INSERT INTO {t} VALUES (21, 22, 'dot2', 'part%two', 'm', 26, 27, 28)",
    )
    t.query('SELECT "a b", "z.w" FROM {t} WHERE "a b" > 1', "SELECT `a b`, `z.w` FROM {t} WHERE `a b` > 1")
    t.query("SELECT upper FROM {t} WHERE upper > 6", "SELECT UPPER FROM {t} WHERE upper > 6")


def mapping_dropped(t):
    """The feature dropped again: files are rewritten under the logical names."""
    t.all(
        "CREATE TABLE {t} (id INT, old STRING) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        "ALTER TABLE {t} RENAME COLUMN old TO new",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
        "INSERT INTO {t} VALUES (3, 'c')",
    )


def mapping_null_partitions(t):
    """A timestamp without zone as partition column under mapping, with nulls."""
    t.all(
        """CREATE TABLE {t} (id INT, p TIMESTAMP_NTZ, q DATE) USING delta PARTITIONED BY (p, q)
           TBLPROPERTIES ('delta.columnMapping.mode' = 'id', 'delta.checkpointInterval' = '2')""",
        "INSERT INTO {t} VALUES (1, TIMESTAMP_NTZ'2026-01-01 00:00:00', DATE'2026-01-01'), (2, NULL, NULL)",
        "ALTER TABLE {t} RENAME COLUMN p TO r",
        "INSERT INTO {t} VALUES (3, TIMESTAMP_NTZ'2026-01-01 00:00:00.5', NULL)",
    )
    t.filters("r IS NULL", "r = TIMESTAMP '2026-01-01 00:00:00'", "q = DATE '2026-01-01'")
