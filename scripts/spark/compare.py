"""Asks Lakebed every question of a manifest and compares its answers with Spark's, as multisets of rows.

    compare.py --lakebed BINARY --out DIR [--only name,name] [--verbose]

Prints each difference and, last, `N passed, M failed`; exits 1 if anything differs. Names, order and types of columns
count, values count exactly: NaN is NaN, -0.0 is not 0.0, decimals are compared by value, times by instant.
Where Spark failed, Lakebed must fail too, with a message and without crashing.
"""
import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import rows

WORKERS = 2
TIMEOUT_S = 120
CRASHES = (70, 101, 134, 136, 139)
"""Exit codes of an internal error, a panic, and signals."""


class Lakebed:
    def __init__(self, binary: Path):
        self.binary = binary

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [str(self.binary), *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)

    def sql(self, statement: str) -> subprocess.CompletedProcess:
        return self.run("sql", "--format", "arrow", "-c", statement)


def questions(table: dict, out: Path):
    """Yields (label, statement, expected answer) for everything the manifest holds of a table."""
    path = str(out / table["path"]).replace("'", "''")
    for version in table["versions"]:
        number = version["version"]
        yield f"version {number}", f"SELECT * FROM delta('{path}', version => {number})", version
    for query in table["queries"]:
        at = "" if query["version"] is None else f", version => {query['version']}"
        statement = query["sql"].replace("{t}", f"delta('{path}'{at})")
        yield f"{query['sql']}{at}", statement, query
    for span in table["changes"]:
        start, end = span["start"], span["end"]
        yield f"changes {start} to {end}", f"SELECT * FROM table_changes('{path}', {start}, {end})", span
    for time in table["times"]:
        text = rfc3339(time["ms"])
        yield f"time {text}", f"SELECT * FROM delta('{path}', timestamp => '{text}')", time
    if table["files"] is not None:
        expected = {"table": pa.table({"n": pa.array([table["files"]], pa.int64())})}
        yield "live files", f"SELECT count(*) AS n FROM delta_files('{path}')", expected


def ask(lakebed: Lakebed, out: Path, statement: str, expected: dict) -> str | None:
    """None when the answer is right, else what is wrong with it."""
    try:
        done = lakebed.sql(statement)
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT_S} s"
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode in CRASHES or done.returncode < 0:
        return f"crashed with {done.returncode}: {said[-600:]}"
    if "refused" in expected or "spark_error" in expected:
        return refusal(done, said, expected)
    if done.returncode != 0:
        return f"exit {done.returncode}: {said[-600:]}"
    try:
        answer = pa.ipc.open_stream(done.stdout).read_all()
    except pa.ArrowInvalid as error:
        return f"not an Arrow stream of {len(done.stdout)} bytes: {error}"
    wanted = expected["table"] if "table" in expected else pq.read_table(out / expected["rows"])
    return rows.difference(wanted, answer, expected.get("json", ()))


def refusal(done, said: str, expected: dict) -> str | None:
    if done.returncode == 0:
        return f"answered what {'must be refused' if 'refused' in expected else 'Spark cannot: ' + expected['spark_error'][:200]}"
    wanted = expected.get("refused", "")
    return None if said and wanted.lower() in said.lower() else f"says `{said[-300:]}`, not `{wanted}`"


def ask_history(lakebed: Lakebed, out: Path, table: dict) -> str | None:
    """`log` must name the versions, times and operations that Spark's DESCRIBE HISTORY names."""
    done = lakebed.run("log", str(out / table["path"]), "-o", "json")
    if done.returncode != 0:
        return f"exit {done.returncode}: {done.stderr.decode(errors='replace')[-600:]}"
    found = {int(row["id"]): row for row in json.loads(done.stdout)["rows"]}
    wrong = []
    for entry in table["history"]:
        row = found.get(entry["version"])
        if row is None:
            wrong.append(f"no version {entry['version']}")
        elif millis(row["committed_at"]) != entry["timestamp_ms"]:
            wrong.append(f"version {entry['version']} at {row['committed_at']}, Spark says {rfc3339(entry['timestamp_ms'])}")
        elif entry["operation"] not in json.dumps(row):
            wrong.append(f"version {entry['version']} is not said to be {entry['operation']}: {row}")
    return "; ".join(wrong[:3]) or None


def rfc3339(ms: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def millis(text: str) -> int:
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    at = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    return round((at - datetime(1970, 1, 1, tzinfo=timezone.utc)) / timedelta(milliseconds=1))


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--lakebed", type=Path, required=True)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--verbose", action="store_true", help="name what passes too")
    options = arguments.parse_args()
    out, lakebed = options.out.resolve(), Lakebed(options.lakebed.resolve())
    wanted = {name for name in options.only.split(",") if name}
    tables = [table for table in json.loads((out / "manifest.json").read_text())["tables"] if not wanted or table["name"] in wanted]

    jobs = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for table in tables:
            for label, statement, expected in questions(table, out):
                jobs.append((table["name"], label, statement, pool.submit(ask, lakebed, out, statement, expected)))
            if table["files"] is not None:
                jobs.append((table["name"], "history", "log", pool.submit(ask_history, lakebed, out, table)))
    failed = 0
    for name, label, statement, job in jobs:
        wrong = job.result()
        failed += wrong is not None
        if wrong:
            print(f"FAILED {name}, {label}\n    {statement}\n    {wrong}")
        elif options.verbose:
            print(f"ok {name}, {label}")
    print(f"{len(jobs) - failed} passed, {failed} failed")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
