"""CAST, where both engines make the same of a value, or end with an error."""

import re
from dataclasses import replace

from orchestration.query.fast.telling import differs
from orchestration.query.fast.types import INTEGERS, SCALARS, cast, common, digits
from orchestration.query.fast.value import WRITTEN, Value

WHOLE = re.compile(r"-?[0-9]{1,18}")
NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
SPECIAL_NUMBERS = {"nan": "NaN", "infinity": "inf", "inf": "inf", "-infinity": "-inf", "-inf": "-inf"}
SAME = {
    ("bigint", "int"),
    ("double", "int"),
    ("double", "bigint"),
    ("boolean", "int"),
    ("boolean", "bigint"),
    ("int", "string"),
    ("bigint", "string"),
    ("boolean", "string"),
    ("date", "string"),
    ("date", "timestamp"),
    ("timestamp", "date"),
    ("binary", "string"),
    ("string", "binary"),
}
"""From, to. A binary that is no UTF-8 is an error here as it is in Spark's answer."""
TO_STRING = "regexp_replace(to_char({}, '%Y-%m-%d %H:%M:%S%.6f'), '\\.?0+$', '')"


def converted(value: Value, kind: str, at: int) -> Value:
    """A cast that was written; the name is for the lead of an expression, see select."""
    if kind not in SCALARS and not digits(kind):
        raise differs(f"a cast to {kind}", at)
    name = None if value.name is None else f"CAST({value.name} AS {kind.upper()})"
    if kind == value.type:
        return replace(value, name=name, constant=None)
    if value.type == "void":
        return Value(cast("null", kind), kind, name, at)
    if value.type == "string" and isinstance(value.constant, str):
        return Value(_of_text(value.constant, kind, value.at), kind, name, at)
    if (value.type, kind) == ("timestamp", "string"):
        return Value(TO_STRING.format(value.sql), kind, name, at)
    if (value.type, kind) in SAME or (common((value.type, kind)) == kind and (kind in INTEGERS or kind == "double")):
        return Value(cast(value.sql, kind), kind, name, at)
    raise differs(f"a cast of {value.type} to {kind}", at)


def _of_text(written: str, kind: str, at: int) -> str:
    if kind in WRITTEN:
        return WRITTEN[kind](written, at)
    if (kind in INTEGERS and WHOLE.fullmatch(written)) or (kind == "double" and NUMBER.fullmatch(written)):
        return cast(f"'{written}'", kind)
    if kind == "double" and written.lower() in SPECIAL_NUMBERS:
        return cast(f"'{SPECIAL_NUMBERS[written.lower()]}'", kind)
    raise differs(f"a cast of {written!r} to {kind}", at)
