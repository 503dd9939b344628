"""Reads the newest version of tables with deltalake and DuckDB; prints where the rows are, or why there are none.

    readers.py FOLDER NAME=TABLE...
"""
import json
import sys
from pathlib import Path

import duckdb
import duckdb_extensions
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder


def deltalake(path: str) -> pa.Table:
    table = DeltaTable(path)
    return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())


def duck(path: str) -> pa.Table:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("LOAD delta")
    return connection.execute(f"SELECT * FROM delta_scan('{path}')").to_arrow_table()


def main():
    folder = Path(sys.argv[1])
    duckdb_extensions.import_extension("delta")
    tables = dict(it.split("=", 1) for it in sys.argv[2:])
    answers = {}
    for reader in (deltalake, duck):
        answers[reader.__name__] = {}
        for name, path in tables.items():
            file = folder / f"{name}.{reader.__name__}.parquet"
            try:
                pq.write_table(reader(path), file)
                answers[reader.__name__][name] = {"rows": str(file)}
            except BaseException as error:  # panics of Rust are no Exception
                answers[reader.__name__][name] = {"cannot": f"{type(error).__name__}: {' '.join(str(error).split())}"}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
