"""Runs the tables of `tables.py`: Lakebed and Spark write each in turn, and must agree on every version of it.

    main.py --lakebed BINARY --jars DIR --twins DIR --readers PYTHON [--only name,name] [--keep DIR] [--verbose]

Afterwards deltalake and DuckDB read the newest version of each table; where they can, the rows must be Spark's. Prints
each difference and, last, `N passed, M failed`; exits 1 if anything differs.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import pyarrow.parquet as pq  # noqa: E402

import rows  # noqa: E402
import session  # noqa: E402
import tables  # noqa: E402
from table import Lakebed, Table, Wrong  # noqa: E402

WORKERS = 3


def write_one(table: Table, build) -> str | None:
    """None when all went well, else what did not."""
    started = time.monotonic()
    try:
        build(table)
        final = table.final()
    except Wrong as error:
        return str(error)
    except Exception as error:  # py4j, Spark and Arrow each have their own
        return f"after turn {table.turns}: {type(error).__name__}: {str(error)[:900]}"
    pq.write_table(final, table.path.with_suffix(".parquet"))
    print(f"  {table.name}: {table.turns} turns, {table.compared} comparisons, {time.monotonic() - started:.1f} s", flush=True)
    return None


def ask(python: Path, folder: Path, tables: dict[str, Path]) -> dict:
    """By reader and table, the file of its rows or why it cannot read."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [python, HERE / "readers.py", folder, *(f"{name}={path}" for name, path in tables.items())]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the other readers: {done.stderr[-900:]}")
    return json.loads(done.stdout)


def ask_readers(python: Path, out: Path, tables: list[Table]) -> list[str]:
    """What other readers see differently, unless they misread what Spark alone wrote in the same way."""
    if not tables:
        return []
    answers = ask(python, out / "read", {table.name: table.path for table in tables})
    twins = ask(python, out / "read-twins", {table.name: table.twin for table in tables})
    wrong = []
    for reader, read in answers.items():
        able = [table for table in tables if "rows" in read[table.name]]
        unable = "; ".join(f"{name}: {answer['cannot'][:100]}" for name, answer in read.items() if "cannot" in answer)
        print(f"{reader} reads {len(able)} of {len(tables)} tables" + (f" (not {unable})" if unable else ""))
        for table in able:
            difference = misread(table.path.with_suffix(".parquet"), read[table.name])
            if difference and misread(table.newest_answer(), twins[reader][table.name]):
                print(f"{reader} misreads {table.name} as Spark writes it, too")
            elif difference:
                wrong.append(f"{table.name}, as {reader} reads it: {difference}")
    return wrong


def misread(expected: Path, answer: dict) -> str | None:
    if "cannot" in answer:
        return answer["cannot"]
    return rows.difference(loose(pq.read_table(expected)), loose(pq.read_table(answer["rows"])))


def loose(table):
    """Types as text: other readers have other names for some of them. Columns by name: some move the partition."""
    columns = sorted(table.column_names)
    return table.select(columns).cast(rows.texts(table.select(columns).schema))


def main() -> int:
    arguments = argparse.ArgumentParser()
    for name in ("lakebed", "jars", "twins", "readers"):
        arguments.add_argument(f"--{name}", type=Path, required=True)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--keep", type=Path, help="leave the tables in this folder")
    arguments.add_argument("--verbose", action="store_true", help="say everything a failure says")
    options = arguments.parse_args()
    builders = tables.all_tables()
    names = [name for name in options.only.split(",") if name] or list(builders)
    with tempfile.TemporaryDirectory() as scratch:
        out = (options.keep or Path(scratch) / "tables").resolve()
        out.mkdir(parents=True, exist_ok=True)
        spark = session.start(options.jars.resolve(), Path(scratch))
        lakebed, twins = Lakebed(options.lakebed.resolve()), options.twins.resolve()
        made = {name: Table(lakebed, spark.newSession(), out, twins, name) for name in names}
        with ThreadPoolExecutor(WORKERS) as pool:
            said = dict(zip(names, pool.map(lambda name: write_one(made[name], builders[name]), names)))
        spark.stop()
        wrong = [f"{name}, {text}" for name, text in said.items() if text]
        wrong += ask_readers(options.readers, out, [made[name] for name, text in said.items() if not text])
    for text in wrong:
        print(f"FAILED {text if options.verbose else text[:1500]}")
    compared = sum(table.compared for table in made.values())
    print(f"{len(names)} tables, {compared} comparisons")
    print(f"{len(names) - sum(map(bool, said.values()))} passed, {len(wrong)} failed")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
