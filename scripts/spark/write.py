"""Writes the tables of the matrix with Spark, and beside each what Spark itself reads back from it.

    write.py --jars DIR --out DIR [--only name,name]

`out` then holds `tables/<name>`, `expected/<name>/*.parquet` and `manifest.json`, which lists every question that
`compare.py` asks Lakebed: the rows of each version, the change feed of ranges, queries that skip files, times, history.
An answer is a Parquet file of rows, or the name of Spark's error.
"""
import argparse
import json
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import delta
import session
from table import Table

WORKERS = 3


def write_one(spark, out: Path, name: str, build) -> dict:
    """Builds one table in a session of its own (settings do not leak) and dumps what Spark reads."""
    started = time.monotonic()
    table = Table(spark.newSession(), out, name)
    try:
        build(table)
        entry = table.dump()
    except Exception as error:
        traceback.print_exc()
        raise RuntimeError(f"table {name}: {str(error)[:500]}") from error
    print(f"  {name}: {len(entry['versions'])} versions, {time.monotonic() - started:.1f} s", flush=True)
    return entry


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--jars", type=Path, required=True)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--only", default="")
    options = arguments.parse_args()
    builders = delta.tables()
    wanted = [name for name in options.only.split(",") if name] or list(builders)
    out = options.out.resolve()
    (out / "scratch").mkdir(parents=True, exist_ok=True)
    spark = session.start(options.jars.resolve(), out / "scratch")
    with ThreadPoolExecutor(WORKERS) as pool:
        jobs = [pool.submit(write_one, spark, out, name, builders[name]) for name in wanted]
        failed = [job.exception() for job in jobs if job.exception()]
    spark.stop()
    for error in failed:
        print(f"FAILED {error}")
    if failed:
        return 1
    manifest = {"spark": spark.version, "tables": [job.result() for job in jobs]}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
