"""Spark's types by their names in SQL, such as bigint, array<double>; `?` stands for those that the fast engine does not know."""

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from sqlglot import exp

SCALARS = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "void": pa.null(),
}
IN_DELTA = {"integer": "int", "long": "bigint"}
IN_SQLGLOT = {"text": "string", "timestamptz": "timestamp"}
IN_DUCKDB = {"string": "varchar", "binary": "blob", "timestamp": "timestamptz", "void": "int"}
INTEGERS = {"int": 10, "bigint": 20}
"""With the digits that Spark counts for them where they meet decimals."""


def from_delta(kind: Any) -> str:
    """Of a column, as the log of a Delta table describes it."""
    if isinstance(kind, dict):
        parts = [kind.get("elementType")] if kind["type"] == "array" else [kind.get("keyType"), kind.get("valueType")]
        inner = [from_delta(part) for part in parts if part is not None]
        return "?" if kind["type"] not in {"array", "map"} or "?" in inner else f"{kind['type']}<{','.join(inner)}>"
    name = IN_DELTA.get(kind, str(kind))
    return name if name in SCALARS or digits(name) else "?"


def from_sqlglot(kind: exp.DataType) -> str:
    """Of a cast; a name that is not in SCALARS where the fast engine does not know it."""
    name = kind.sql(dialect="spark").lower() if isinstance(kind.this, str) or kind.expressions else kind.this.value.lower()
    return IN_SQLGLOT.get(name, name)


def digits(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None for other types."""
    match = re.fullmatch(r"decimal\(([0-9]+),([0-9]+)\)", kind)
    return (int(match[1]), int(match[2])) if match else None


def inner(kind: str) -> list[str]:
    """The element of an array; key and value of a map, whose keys are plain; nothing for other types."""
    shape, _, rest = kind.partition("<")
    if shape == "array":
        return [rest[:-1]]
    return rest[:-1].split(",", 1) if shape == "map" else []


def arrow(kind: str) -> pa.DataType:
    """As Spark gives it to Arrow."""
    match inner(kind):
        case [element]:
            return pa.list_(pa.field("element", arrow(element)))
        case [key, value]:
            return pa.map_(arrow(key), arrow(value))
    return pa.decimal128(*decimal) if (decimal := digits(kind)) else SCALARS[kind]


def duckdb(kind: str) -> str:
    """By its name in DuckDB."""
    match inner(kind):
        case [element]:
            return f"{duckdb(element)}[]"
        case [key, value]:
            return f"map({duckdb(key)}, {duckdb(value)})"
    return IN_DUCKDB.get(kind, kind)


def cast(sql: str, kind: str) -> str:
    """In DuckDB's SQL; it ends with an error where a value has no place in the type."""
    return f"cast({sql} as {duckdb(kind)})"


def is_number(kind: str) -> bool:
    """Whether one can calculate with it."""
    return kind in INTEGERS or kind == "double" or digits(kind) is not None


def has(kind: str, *parts: str) -> bool:
    """Whether it is, or holds, one of these."""
    return any(part in parts for part in re.split(r"[<>,]", kind))


def common(kinds: Iterable[str]) -> str | None:
    """The type in which Spark compares or mixes them without a loss; None where there is none that is known."""
    wide = "void"
    for kind in kinds:
        both = {wide, kind} - {"void"}
        if len(both) < 2:
            wide = both.pop() if both else wide
        elif both == {"date", "timestamp"}:
            wide = "timestamp"
        elif not all(map(is_number, both)):
            return None
        elif "double" in both or both == {"int", "bigint"}:
            wide = "double" if "double" in both else "bigint"
        else:
            sizes = [digits(each) or (INTEGERS[each], 0) for each in both]
            scale, whole = max(scale for _, scale in sizes), max(precision - scale for precision, scale in sizes)
            if whole + scale > 38:
                return None
            wide = f"decimal({whole + scale},{scale})"
    return wide
