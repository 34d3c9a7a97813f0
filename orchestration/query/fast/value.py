"""An expression in DataFusion's SQL, with the type and the name that Spark gives it, and what Spark does to values before it uses them."""

from dataclasses import dataclass, replace
from typing import Any

from orchestration.query.fast.instants import date_of, instant_of
from orchestration.query.fast.telling import differs
from orchestration.query.fast.types import cast, common, has, is_number

WRITTEN = {"timestamp": instant_of, "date": date_of}
"""Types that a written string becomes where it meets them."""


@dataclass(frozen=True)
class Value:
    """`name`: of a column that holds it and has no alias; None where that is not known. `constant`: what was written out, if it was."""

    sql: str
    type: str
    name: str | None
    at: int
    constant: Any = None


def become(value: Value, kind: str) -> Value:
    """As Spark converts a value without being asked to: to a wider type only, and written strings to instants."""
    if value.type == kind:
        return value
    if value.type == "string" and isinstance(value.constant, str) and kind in WRITTEN:
        return replace(value, sql=WRITTEN[kind](value.constant, value.at), type=kind)
    if common((value.type, kind)) != kind:
        raise differs(f"{value.type} as {kind}", value.at, "cast it")
    if kind == "double" and isinstance(value.constant, int | str):
        return replace(value, sql=cast(repr(float(value.constant)), kind), type=kind)
    return replace(value, sql=cast(value.sql, kind), type=kind)


def alike(values: list[Value], *, is_comparison: bool = False) -> list[Value]:
    """In their common type. Compared with an instant or a date, a written string is one."""
    kinds = {value.type for value in values}
    if is_comparison and (instants := kinds & set(WRITTEN)):
        kinds -= {value.type for value in values if value.type == "string" and isinstance(value.constant, str)}
        kinds |= instants
    kind = common(sorted(kinds))
    if kind is None:
        odd = next(value for value in values if value.type != values[0].type)
        raise differs(f"{values[0].type} and {odd.type} together", odd.at, "cast one of them")
    return [become(value, kind) for value in values]


def comparable(value: Value) -> str:
    """SQL that compares as Spark does: -0.0 is 0.0, and all NaN are one, greater than any number."""
    if value.type == "double" and not isinstance(value.constant, int | str):
        return f"nanvl({value.sql} + 0e0, cast('NaN' as double))"
    return value.sql


def total(value: Value) -> str:
    """SQL with one kind of NaN, which is greater than any number; the sign of 0 is kept."""
    return f"nanvl({value.sql}, cast('NaN' as double))" if value.type == "double" else value.sql


def require_order(value: Value) -> None:
    """Refuse what the two engines may order differently."""
    if has(value.type, "map", "array", "?"):
        raise differs(f"an order of values of type {value.type}", value.at)


def require_key(value: Value) -> None:
    """Refuse what the two engines may tell apart differently."""
    if has(value.type, "map", "?") or value.type.startswith(("array<double", "array<array")):
        raise differs(f"a comparison of values of type {value.type}", value.at)


def require_boolean(value: Value, place: str, *, may_be_null: bool = False) -> Value:
    """Refuse a condition that is none; a NULL that is written out is one between AND, OR, NOT only."""
    if value.type != "boolean" and not (may_be_null and value.type == "void"):
        raise differs(f"{value.type} in {place}", value.at, "write a condition")
    return become(value, "boolean")


def require_number(value: Value) -> None:
    """Refuse to reckon with anything else."""
    if not is_number(value.type):
        raise differs(f"arithmetic with {value.type}", value.at, "cast it to a number")
