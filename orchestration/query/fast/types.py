"""Spark's types by their names in SQL, such as bigint, array<double>; `?` stands for those that the fast engine does not know."""

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

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
INTEGERS = {"int": 10, "bigint": 20}
"""With the digits that Spark counts for them where they meet decimals."""
INSTANT = 'Timestamp(Microsecond, Some("UTC"))'
IN_DATAFUSION = {"string": "varchar", "binary": "bytea"}


def from_delta(kind: Any) -> str:
    """Of a column, as the log of a Delta table tells it."""
    if isinstance(kind, dict):
        parts = [kind.get("elementType")] if kind["type"] == "array" else [kind.get("keyType"), kind.get("valueType")]
        inner = [from_delta(part) for part in parts if part is not None]
        return "?" if kind["type"] not in {"array", "map"} or "?" in inner else f"{kind['type']}<{','.join(inner)}>"
    name = IN_DELTA.get(kind, str(kind))
    return name if name in SCALARS or digits(name) else "?"


def digits(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None for other types."""
    found = re.fullmatch(r"decimal\(([0-9]+),([0-9]+)\)", kind)
    return (int(found[1]), int(found[2])) if found else None


def element(kind: str) -> str | None:
    """Of an array; None for other types."""
    return kind.removeprefix("array<")[:-1] if kind.startswith("array<") else None


def key_and_value(kind: str) -> tuple[str, str] | None:
    """Of a map, whose keys are plain; None for other types."""
    if not kind.startswith("map<"):
        return None
    key, _, value = kind.removeprefix("map<")[:-1].partition(",")
    return key, value


def arrow(kind: str) -> pa.DataType:
    """As Spark gives it to Arrow."""
    if (of_array := element(kind)) is not None:
        return pa.list_(pa.field("element", arrow(of_array)))
    if (of_map := key_and_value(kind)) is not None:
        return pa.map_(*map(arrow, of_map))
    return pa.decimal128(*decimal) if (decimal := digits(kind)) else SCALARS[kind]


def is_number(kind: str) -> bool:
    """Whether one can reckon with it."""
    return kind in INTEGERS or kind == "double" or digits(kind) is not None


def has(kind: str, *inner: str) -> bool:
    """Whether it is, or holds, one of these."""
    return any(part in inner for part in re.split(r"[<>,]", kind))


def as_decimal(kind: str) -> tuple[int, int]:
    """Precision and scale of a decimal that holds every value of an exact number."""
    return digits(kind) or (INTEGERS[kind], 0)


def common(kinds: Iterable[str]) -> str | None:
    """The type in which Spark compares or mixes them without a loss; None where there is none that is known."""
    found = "void"
    for kind in kinds:
        both = {found, kind} - {"void"}
        if len(both) < 2:
            found = both.pop() if both else found
        elif both == {"date", "timestamp"}:
            found = "timestamp"
        elif all(map(is_number, both)):
            wider = _wider_number(*both)
            if wider is None:
                return None
            found = wider
        else:
            return None
    return found


def _wider_number(one: str, other: str) -> str | None:
    if "double" in {one, other}:
        return "double"
    if one in INTEGERS and other in INTEGERS:
        return "bigint"
    (precision, scale), (other_precision, other_scale) = as_decimal(one), as_decimal(other)
    wide = max(scale, other_scale)
    whole = max(precision - scale, other_precision - other_scale)
    return f"decimal({whole + wide},{wide})" if whole + wide <= 38 else None


def cast(sql: str, kind: str) -> str:
    """In DataFusion's SQL; it ends with an error where a value has no place in the type."""
    if kind == "timestamp":
        return f"arrow_cast({sql}, '{INSTANT}')"
    if kind == "binary":
        return f"arrow_cast({sql}, 'Binary')"
    return f"cast({sql} as {IN_DATAFUSION.get(kind, kind)})"


def text(value: str) -> str:
    """A string in DataFusion's SQL, which knows no escapes but doubled quotes."""
    return "'" + value.replace("'", "''") + "'"
