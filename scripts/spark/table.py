"""One table of the matrix: runs the statements that make it, then dumps what Spark reads back."""
import re
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import functions
from pyspark.sql.types import VariantType

EPOCH = datetime(1970, 1, 1)
EVERY_RANGE = (-1, -1)


class Table:
    """A table in the making. In every statement `{t}` stands for the table, `{path}` for its folder."""

    def __init__(self, spark, out: Path, name: str):
        self.spark, self.out, self.name = spark, out, name
        self.path = out / "tables" / name
        self.expected = out / "expected" / name
        self.queries, self.ranges, self.refused, self.asks_times = [], [], {}, False

    # -- making it

    def sql(self, statement: str):
        return self.spark.sql(statement.replace("{t}", f"delta.`{self.path}`").replace("{path}", str(self.path)))

    def all(self, *statements: str):
        for statement in statements:
            self.sql(statement)

    def set(self, **settings):
        """Settings of this table's session; `__` in a name stands for a dot."""
        for key, value in settings.items():
            self.spark.conf.set(key.replace("__", "."), value)

    def log(self) -> Path:
        return self.path / "_delta_log"

    # -- what to ask about it

    def query(self, lakebed: str, spark: str | None = None, version: int | None = None):
        """A question beyond `SELECT *`; `spark` is given where the two spell it differently."""
        self.queries.append((lakebed, spark or lakebed, version))

    def filters(self, *conditions: str):
        for condition in conditions:
            self.query(f"SELECT * FROM {{t}} WHERE {condition}")

    def changes(self, *ranges: tuple[int, int]):
        """Closed ranges of versions to read the change feed of; none named: all, and each version alone."""
        self.ranges.extend(ranges or [EVERY_RANGE])

    def times(self):
        """Read the table as of the time of each version, a millisecond before, and one after."""
        self.asks_times = True

    def refuse(self, why: str, *versions: int):
        """These versions (none named: all) must be refused with a message that holds `why`."""
        self.refused.update({version: why for version in versions or (None,)})

    # -- dumping it

    def dump(self) -> dict:
        history = self.sql("DESCRIBE HISTORY {t}").selectExpr("version", "unix_millis(timestamp)", "operation").collect()
        history = sorted(tuple(row) for row in history)
        versions = [self.dump_version(version) for version, _, _ in history]
        return {
            "name": self.name,
            "path": f"tables/{self.name}",
            "versions": versions,
            "history": [dict(zip(("version", "timestamp_ms", "operation"), row)) for row in history],
            "queries": [self.dump_query(index, *query) for index, query in enumerate(self.queries)],
            "changes": [self.dump_changes(*span) for span in self.spans(history)],
            "times": [self.dump_time(ms) for ms in self.moments(history)],
            "files": self.live_files(),
        }

    def dump_version(self, version: int) -> dict:
        refused = self.refused.get(version, self.refused.get(None))
        if refused:
            return {"version": version, "refused": refused}
        reader = self.spark.read.format("delta").option("versionAsOf", version)
        return {"version": version} | self.save(f"v{version}", lambda: reader.load(str(self.path)))

    def dump_query(self, index: int, lakebed: str, spark: str, version: int | None) -> dict:
        at = "" if version is None else f" VERSION AS OF {version}"
        text = spark.replace("{t}", f"delta.`{self.path}`{at}")
        return {"sql": lakebed, "version": version} | self.save(f"q{index}", lambda: self.sql(text))

    def dump_changes(self, start: int, end: int) -> dict:
        reader = self.spark.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", start).option("endingVersion", end)
        return {"start": start, "end": end} | self.save(f"c{start}-{end}", lambda: reader.load(str(self.path)))

    def dump_time(self, ms: int) -> dict:
        text = f"{EPOCH + timedelta(milliseconds=ms):%Y-%m-%d %H:%M:%S.%f}"
        reader = self.spark.read.format("delta").option("timestampAsOf", text)
        return {"ms": ms} | self.save(f"t{ms}", lambda: reader.load(str(self.path)))

    def moments(self, history) -> list[int]:
        """Nothing after the last version: there Spark fails, and Lakebed gives the newest with a warning."""
        if not self.asks_times:
            return []
        stamps = [ms for _, ms, _ in history]
        return sorted({ms + step for ms in stamps for step in (-1, 0, 1) if ms + step <= stamps[-1]})

    def spans(self, history) -> list[tuple[int, int]]:
        if EVERY_RANGE not in self.ranges:
            return self.ranges
        last = history[-1][0]
        named = [span for span in self.ranges if span != EVERY_RANGE]
        return named + [(0, last)] + [(version, version) for version in range(last + 1)]

    def live_files(self) -> int | None:
        if self.refused:
            return None
        return self.sql("DESCRIBE DETAIL {t}").collect()[0].numFiles

    def save(self, name: str, read) -> dict:
        """Writes the rows that `read` gives; or says how Spark failed."""
        try:
            frame = read()
            json_columns = [field.name for field in frame.schema if isinstance(field.dataType, VariantType)]
            for column in json_columns:
                frame = frame.withColumn(column, functions.to_json(functions.col(column)))
            rows = frame.toArrow()
        except Exception as error:  # py4j, Spark and Arrow each have their own
            return {"spark_error": first_line(error)}
        self.expected.mkdir(parents=True, exist_ok=True)
        file = self.expected / f"{name}.parquet"
        pq.write_table(rows, file)
        answer = {"rows": str(file.relative_to(self.out))}
        return answer | ({"json": json_columns} if json_columns else {})


def first_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error))[:300]
