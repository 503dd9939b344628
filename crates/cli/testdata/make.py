#!/usr/bin/env python3
"""Builds the table that the tests of the command line read, with the deltalake package: orders of a small shop.

    python3 -m venv v && v/bin/pip install deltalake pyarrow && v/bin/python make.py

Writes orders/ beside this file. The times of the commits are set to fixed ones, so that tests read the same wherever
and whenever it was built.
"""
import datetime as dt
import decimal
import json
import pathlib
import shutil

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "orders"
SCHEMA = pa.schema([
    pa.field("order_id", pa.int64(), nullable=False),
    pa.field("customer", pa.string()),
    pa.field("status", pa.string()),
    pa.field("amount", pa.decimal128(10, 2)),
    pa.field("ordered_on", pa.date32()),
])
START = dt.datetime(2026, 11, 2, 9, 0, tzinfo=dt.timezone.utc)
HOURS = [0, 26, 50, 74, 99, 123, 147, 171]


def rows(*values):
    columns = list(zip(*values))
    columns[3] = [decimal.Decimal(it) for it in columns[3]]
    columns[4] = [dt.date.fromisoformat(it) for it in columns[4]]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA)], schema=SCHEMA)


def build():
    shutil.rmtree(TABLE, ignore_errors=True)
    write_deltalake(TABLE, rows((1, "Ada", "paid", "40.00", "2026-11-02"), (2, "Grace", "paid", "12.50", "2026-11-02"),
                                (3, "Edsger", "open", "99.90", "2026-11-02")))
    write_deltalake(TABLE, rows((4, "Barbara", "open", "150.00", "2026-11-03"), (5, "Tony", "paid", "8.75", "2026-11-03")), mode="append")
    DeltaTable(TABLE).update(updates={"status": "'paid'"}, predicate="order_id = 3")
    write_deltalake(TABLE, rows((6, "Frances", "cancelled", "31.00", "2026-11-05"), (7, "Donald", "paid", "64.20", "2026-11-05")), mode="append")
    DeltaTable(TABLE).delete("status = 'cancelled'")
    DeltaTable(TABLE).create_checkpoint()
    write_deltalake(TABLE, rows((8, "Margaret", "open", "20.00", "2026-11-07"), (9, "Alan", "open", "77.70", "2026-11-07")), mode="append")
    DeltaTable(TABLE).delete("status = 'paid'")    # the accident: it should have been `cancelled` again
    write_deltalake(TABLE, rows((10, "Radia", "open", "18.30", "2026-11-09"),), mode="append")


def settle():
    """Gives every commit its fixed time."""
    for version, hours in enumerate(HOURS):
        path = TABLE / f"_delta_log/{version:020}.json"
        at = int((START + dt.timedelta(hours=hours)).timestamp() * 1000)
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = at
            for kind, key in (("add", "modificationTime"), ("remove", "deletionTimestamp"), ("metaData", "createdTime")):
                if kind in action:
                    action[kind][key] = at
        path.write_text("".join(json.dumps(it, separators=(",", ":")) + "\n" for it in actions))


if __name__ == "__main__":
    build()
    settle()
    print(sum(it.stat().st_size for it in TABLE.rglob("*") if it.is_file()), "bytes")
