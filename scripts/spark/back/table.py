"""One table that Lakebed and Spark write in turn, its twin that Spark writes alone, and what is compared after each turn."""
import json
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import rows

TIMEOUT_S = 180
CRASHES = (70, 101, 134, 136, 139)
CHANGE_COLUMNS = ("_commit_version", "_commit_timestamp")
"""Of a change feed, what a twin has differently."""


class Wrong(Exception):
    """A difference, or a statement that failed."""


class Lakebed:
    def __init__(self, binary: Path):
        self.binary = binary

    def run(self, *arguments: str) -> bytes:
        command = [str(self.binary), "-q", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            crashed = "crashed, " if done.returncode in CRASHES or done.returncode < 0 else ""
            raise Wrong(f"{crashed}exit {done.returncode}: {said[-600:]}\n    of {' '.join(arguments)[:600]}")
        return done.stdout

    def read(self, statement: str) -> pa.Table:
        return pa.ipc.open_stream(self.run("sql", "--format", "arrow", "-c", statement)).read_all()


class Table:
    """`{t}` in a statement stands for the table, `{path}` for its folder. A pair is Lakebed's and Spark's spelling of one
    thing, None where only the other has to do it."""

    def __init__(self, lakebed: Lakebed, spark, out: Path, twins: Path, name: str):
        self.lakebed, self.session, self.name = lakebed, spark, name
        self.path, self.twin = out / name, twins / "tables" / name
        self.answers = twins / "answers" / name
        self.busy = self.answers / "busy"
        # A run that was cut short in the middle of a statement: nobody knows whether it was done.
        if self.busy.exists():
            shutil.rmtree(self.twin, ignore_errors=True)
            shutil.rmtree(self.answers)
        self.turns = self.compared = 0
        self.seen: set[int] = set()
        self.cdf = False
        self.first_readable = 0
        self.allowed: dict[str, str] = {}

    # -- writing

    def lake(self, *statements):
        """Lakebed's turn; one process runs all of it. The twin runs the same."""
        mine = [text for text, _ in map(pair, statements) if text]
        if mine:
            self.lakebed.run("sql", "-c", ";\n".join(self.named(text, self.path) for text in mine))
        self.turn([text for _, text in map(pair, statements) if text])

    def sweep(self, *statements):
        """Lakebed's turn with a vacuum of everything: only the newest version reads afterwards."""
        mine = [text for text, _ in map(pair, statements) if text]
        self.lakebed.run("sql", "-c", ";\n".join(self.named(text, self.path) for text in mine))
        self.first_readable = self.newest()
        self.turn([text for _, text in map(pair, statements) if text])

    def verb(self, verb: str, *arguments: str, twin=()):
        """Lakebed's turn by a verb of the command line; `{path}` is the table."""
        self.lakebed.run(*verb.split(), *(it.replace("{path}", str(self.path)) for it in arguments))
        self.turn(list(twin))

    def spark(self, *statements: str):
        """Spark's turn."""
        for text in statements:
            self.session.sql(self.named(text, self.path))
        self.turn(statements)

    def refused(self, statement: str):
        """Neither may do it; nothing happens."""
        newest = self.newest()
        try:
            self.lakebed.run("sql", "-c", self.named(statement, self.path))
        except Wrong as error:
            if "crashed" in str(error) or self.newest() != newest:
                raise
            return
        raise Wrong(f"done, and not refused: {statement}")

    def tag(self, name: str, version: int):
        """A tag still names its version."""
        expected = self.lakebed.read(self.lake_at(version))
        self.compare(f"tag {name}", expected, self.lakebed.read(f"SELECT * FROM {self.named('{t}', self.path)} VERSION AS OF '{name}'"))

    def changes(self):
        """From now on, the change feed is compared too: all of it by both, and its rows with the twin's."""
        self.cdf = True

    # -- comparing

    def turn(self, twin_statements):
        """Compares every new version as both read it, and the newest rows with the twin's."""
        at, self.turns = self.turns, self.turns + 1
        newest = self.newest()
        for version in range(max(self.first_readable, 0), newest + 1):
            if version not in self.seen:
                self.compare(f"version {version}", self.spark_at(version), self.lakebed.read(self.lake_at(version)))
                self.seen.add(version)
        current = self.spark_at(newest)
        self.compare(f"twin after turn {at}", self.answer(f"{at}", twin_statements, self.newest_of_twin), current)
        if self.cdf:
            ours = self.lakebed.read(f"SELECT * FROM table_changes('{self.path}', {self.first_readable}, {newest})")
            self.compare("change feed", self.feed(self.path, self.first_readable, newest), ours)
            if self.first_readable == 0:
                twin = self.answer(f"{at}-changes", (), lambda: self.feed(self.twin, 0, None))
                self.compare(f"twin's change feed after turn {at}", without(twin), without(ours))

    def compare(self, what: str, expected: pa.Table, actual: pa.Table):
        self.compared += 1
        wrong = rows.difference(expected, actual)
        if wrong:
            raise Wrong(f"{what}: {wrong}")

    def answer(self, name: str, statements, read) -> pa.Table:
        """What Spark gives on the twin, after these statements; from the last run where it is known."""
        file = self.answers / f"{name}.parquet"
        if not file.exists():
            self.answers.mkdir(parents=True, exist_ok=True)
            self.busy.touch()
            for text in statements:
                self.session.sql(self.named(text, self.twin))
            pq.write_table(read(), file)
            self.busy.unlink()
        return pq.read_table(file)

    def newest_answer(self) -> Path:
        """The file of the twin's newest rows."""
        return self.answers / f"{self.turns - 1}.parquet"

    def final(self) -> pa.Table:
        """The newest rows, for other readers."""
        self.check_history()
        return self.spark_at(self.newest())

    def check_history(self):
        """Spark's history must name all versions, and Lakebed's the same operations."""
        history = self.session.sql(self.named("DESCRIBE HISTORY {t}", self.path)).collect()
        theirs = {int(row.version): row.operation for row in history}
        shown = json.loads(self.lakebed.run("log", str(self.path), "--no-check", "-o", "json"))["rows"]
        for row in shown:
            operation = theirs.get(int(row["id"]))
            # A version of which only the checkpoint is left has no history.
            if operation is None and not row["operation"]:
                continue
            if operation is None or operation not in json.dumps(row):
                raise Wrong(f"history of version {row['id']}: Spark says {operation}, Lakebed {row}")

    def newest(self) -> int:
        log = (self.path / "_delta_log").glob("*.json")
        return max((int(it.stem) for it in log if it.stem.isdigit()), default=-1)

    def newest_of_twin(self) -> pa.Table:
        return self.session.read.format("delta").load(str(self.twin)).toArrow()

    def spark_at(self, version: int) -> pa.Table:
        reader = self.session.read.format("delta")
        # Right after a vacuum Spark refuses to travel, even to the newest version.
        return (reader if version == self.newest() else reader.option("versionAsOf", version)).load(str(self.path)).toArrow()

    def lake_at(self, version: int) -> str:
        return f"SELECT * FROM delta('{self.path}', version => {version})"

    def feed(self, path: Path, first: int, last) -> pa.Table:
        reader = self.session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first)
        return (reader if last is None else reader.option("endingVersion", last)).load(str(path)).toArrow()

    @staticmethod
    def named(statement: str, path: Path) -> str:
        return statement.replace("{t}", f"delta.`{path}`").replace("{path}", str(path))


def pair(statement):
    return statement if isinstance(statement, tuple) else (statement, statement)


def without(feed: pa.Table) -> pa.Table:
    return feed.drop_columns(list(CHANGE_COLUMNS))
