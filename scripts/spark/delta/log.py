"""Shapes of the log: checkpoints of each kind, clocks, long histories, logs that were cleaned."""
import os
import time


def _grow(t, properties, commits=7, **settings):
    t.set(**settings)
    t.all(
        f"CREATE TABLE {{t}} (id INT, s STRING, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES ({properties})",
        *[f"INSERT INTO {{t}} SELECT CAST(id AS INT), concat('s', id), CAST(id % 3 AS INT) FROM range({n}0, {n}6) AS r(id)" for n in range(commits)],
        "DELETE FROM {t} WHERE id IN (1, 11, 21)",
        "DELETE FROM {t} WHERE p = 2 AND id < 40",
    )
    t.filters("id BETWEEN 20 AND 31", "p = 1 AND id > 40", "s = 's33'")


def checkpoint_classic(t):
    _grow(t, "'delta.checkpointInterval' = '2', 'delta.enableDeletionVectors' = 'true'")


def checkpoint_multipart(t):
    _grow(t, "'delta.checkpointInterval' = '4'", spark__databricks__delta__checkpoint__partSize="3")


def checkpoint_v2_json(t):
    _grow(
        t, "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3', 'delta.enableDeletionVectors' = 'true'",
        spark__databricks__delta__checkpointV2__topLevelFileFormat="json", spark__databricks__delta__checkpoint__partSize="5",
    )


def checkpoint_v2_parquet(t):
    _grow(
        t, "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3'",
        spark__databricks__delta__checkpointV2__topLevelFileFormat="parquet", spark__databricks__delta__checkpoint__partSize="4",
    )


def checkpoint_v2_later(t):
    """Classic first, V2 afterwards, classic again."""
    _grow(t, "'delta.checkpointInterval' = '2'", commits=3)
    t.all(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')",
        "INSERT INTO {t} VALUES (500, 'v2', 0)", "INSERT INTO {t} VALUES (501, 'v2', 1)", "DELETE FROM {t} WHERE id = 500",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'classic')",
        "INSERT INTO {t} VALUES (502, 'classic', 0)", "INSERT INTO {t} VALUES (503, 'classic', 1)",
    )


def checkpoint_only_json_statistics(t):
    _grow(t, "'delta.checkpointInterval' = '3', 'delta.checkpoint.writeStatsAsJson' = 'true', 'delta.checkpoint.writeStatsAsStruct' = 'false'")


def checkpoint_without_statistics(t):
    _grow(t, "'delta.checkpointInterval' = '3', 'delta.checkpoint.writeStatsAsJson' = 'false', 'delta.checkpoint.writeStatsAsStruct' = 'false'")


def statistics_of_two_columns(t):
    """Columns past the first two have no statistics: they may hold anything."""
    t.all(
        "CREATE TABLE {t} (a INT, b STRING, c INT, d STRING) USING delta TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '2')",
        "INSERT INTO {t} VALUES (1, 'x', 1, 'x'), (2, repeat('y', 100), 2, repeat('y', 100))",
        "INSERT INTO {t} VALUES (NULL, NULL, NULL, NULL), (3, repeat('z', 40), 3, 'z')",
        "INSERT INTO {t} VALUES (NULL, NULL, 7, 'q')",
    )
    t.filters("c = 2", "d = 'z'", "b = repeat('y', 100)", "b > repeat('y', 99)", "b LIKE 'zzz%'", "a IS NULL", "c IS NOT NULL AND a IS NULL", "a IN (3, 4)")


def clock_in_commits(t):
    t.all(
        "CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true', 'delta.checkpointInterval' = '3')",
        *[f"INSERT INTO {{t}} VALUES ({n})" for n in range(6)],
    )
    _age(t, 86_400)
    t.times()


def clock_in_commits_later(t):
    """Times of the first versions are the files', those of the later ones the commits'."""
    t.all("CREATE TABLE {t} (id INT) USING delta", "INSERT INTO {t} VALUES (1)", "INSERT INTO {t} VALUES (2)")
    t.all(
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO {t} VALUES (3)", "INSERT INTO {t} VALUES (4)", "INSERT INTO {t} VALUES (5)",
    )
    t.times()


def clock_of_files(t):
    """File times that go back and stand still: they are made to rise by a millisecond."""
    t.all("CREATE TABLE {t} (id INT) USING delta", *[f"INSERT INTO {{t}} VALUES ({n})" for n in range(5)])
    base = int(time.time()) - 100_000
    for version, offset in enumerate((0, 50, 50, 20, 100, 40)):
        os.utime(t.log() / f"{version:020}.json", (base + offset, base + offset))
    t.times()


def many_versions(t):
    t.all("CREATE TABLE {t} (id INT, v STRING) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '10')")
    for n in range(32):
        t.sql(f"DELETE FROM {{t}} WHERE id = {n - 5}" if n % 6 == 5 else f"INSERT INTO {{t}} VALUES ({n}, 'v{n}'), (1{n}, NULL)")


def log_cleaned(t):
    """Old commits are gone from the log: versions from the oldest checkpoint on still read."""
    t.all(
        """CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES
           ('delta.checkpointInterval' = '4', 'delta.logRetentionDuration' = 'interval 2 days', 'delta.deletedFileRetentionDuration' = 'interval 1 days', 'delta.enableExpiredLogCleanup' = 'true')""",
        *[f"INSERT INTO {{t}} VALUES ({n})" for n in range(9)],
    )
    _age(t, 10 * 86_400)
    t.all(*[f"INSERT INTO {{t}} VALUES (10{n})" for n in range(4)])
    # Spark refuses to look further back than this, though the files are there.
    t.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 99 days', 'delta.deletedFileRetentionDuration' = 'interval 90 days')")
    t.query("SELECT * FROM {t}", version=3)


def transactions(t):
    """Writes that name an application and its version; the second write of the same pair does nothing."""
    t.sql("CREATE TABLE {t} (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    for app, version, first in (("app", 1, 0), ("app", 2, 10), ("app", 2, 20), ("other app", 7, 30)):
        rows = t.spark.range(first, first + 3)
        rows.write.format("delta").mode("append").option("txnAppId", app).option("txnVersion", version).save(str(t.path))


def streamed(t):
    """Appended by a stream from another table."""
    source = t.out / "tables" / "many_appends_source"
    for n in range(3):
        t.spark.range(n * 5, n * 5 + 5).write.format("delta").mode("append").save(str(source))
    stream = t.spark.readStream.format("delta").option("maxFilesPerTrigger", 2).load(str(source))
    writer = stream.writeStream.format("delta").option("checkpointLocation", str(t.out / "scratch" / "stream"))
    writer.trigger(availableNow=True).start(str(t.path)).awaitTermination()


def empty(t):
    t.all("CREATE TABLE {t} (id INT, s STRING) USING delta", "ALTER TABLE {t} ADD COLUMN n INT")


def _age(t, seconds):
    """Makes every file of the log older."""
    for file in t.log().iterdir():
        if file.is_file():
            at = file.stat().st_mtime - seconds
            os.utime(file, (at, at))
