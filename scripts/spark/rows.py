"""Compares two Arrow tables as multisets of rows."""
import json
from collections import Counter
from decimal import Decimal

import pyarrow as pa

SHOWN = 3
"""Rows of each side that a difference shows."""


def difference(expected: pa.Table, actual: pa.Table, json_columns=()) -> str | None:
    """None if both hold the same columns and the same rows as often; `json_columns` are compared as JSON values."""
    wanted = [(field.name, type_name(field.type)) for field in expected.schema]
    found = [(field.name, type_name(field.type)) for field in actual.schema]
    if wanted != found:
        return f"columns differ: {describe(wanted, found)}"
    left, right = multiset(expected, json_columns), multiset(actual, json_columns)
    if left == right:
        return None
    missing, extra = list((left - right).items()), list((right - left).items())
    return (f"{expected.num_rows} rows expected, {actual.num_rows} found; missing {sum(n for _, n in missing)}: {missing[:SHOWN]}, "
            f"not expected {sum(n for _, n in extra)}: {extra[:SHOWN]}")


def describe(wanted: list, found: list) -> str:
    if [name for name, _ in wanted] != [name for name, _ in found]:
        return f"{[name for name, _ in wanted]} expected, {[name for name, _ in found]} found"
    pairs = [f"{name} is {other}, not {kind}" for (name, kind), (_, other) in zip(wanted, found) if kind != other]
    return ", ".join(pairs)


def multiset(table: pa.Table, json_columns) -> Counter:
    columns = []
    for name, column in zip(table.column_names, table.columns):
        values = [value for chunk in column.chunks for value in plain(chunk)]
        columns.append([as_json(value) for value in values] if name in json_columns else values)
    return Counter(zip(*columns)) if columns else Counter({(): table.num_rows})


def as_json(text):
    return None if text is None else json.dumps(json.loads(text, parse_float=lambda number: str(Decimal(number).normalize())), sort_keys=True)


def type_name(kind: pa.DataType) -> str:
    """One name for the types that differ in layout only."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return type_name(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return "binary"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp without zone"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if is_list(kind):
        return f"list<{type_name(kind.value_type)}>"
    if types.is_struct(kind):
        return "struct<" + ", ".join(f"{field.name}: {type_name(field.type)}" for field in kind) + ">"
    return str(kind)


def is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return any(test(kind) for test in (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view))


def plain(array: pa.Array) -> list:
    """The values as things that can be compared and hashed."""
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_timestamp(kind):
        # Whole microseconds are all that a lake type holds: a cast that would lose something fails.
        return array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
    if types.is_date32(kind):
        return array.cast(pa.int32()).to_pylist()
    if types.is_floating(kind):
        return [None if value is None else repr(value) for value in array.to_pylist()]
    if types.is_map(kind):
        return [frozenset(plain(value.values)) if value.is_valid else None for value in array]
    if is_list(kind):
        return [tuple(plain(value.values)) if value.is_valid else None for value in array]
    if types.is_struct(kind):
        fields = [plain(field) for field in array.flatten()] if kind.num_fields else []
        whole = list(zip(*fields)) if fields else [()] * len(array)
        return [value if valid else None for value, valid in zip(whole, array.is_valid().to_pylist())]
    return array.to_pylist()


def texts(schema: pa.Schema) -> pa.Schema:
    """The schema with one width of integers, floats and texts, for readers that do not keep them apart."""
    return pa.schema([field.with_type(wide(field.type)) for field in schema])


def wide(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_integer(kind):
        return pa.int64()
    if type_name(kind) == "string":
        return pa.string()
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    return kind
