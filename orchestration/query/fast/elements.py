"""Elements of arrays and maps, in DataFusion's SQL. A test compares each with Spark."""

from collections.abc import Sequence
from functools import partial

from orchestration.query.fast.operators import Meaning
from orchestration.query.fast.special import named
from orchestration.query.fast.telling import differs
from orchestration.query.fast.types import INTEGERS, cast, element, key_and_value
from orchestration.query.fast.value import Value, become, comparable, require_key


def _size(function: str, values: Sequence[Value], at: int) -> Value:
    (value,) = values
    if element(value.type) is None and (key_and_value(value.type) is None or function == "array_size"):
        raise differs(f"{function} of {value.type}", at)
    return Value(cast(f"cardinality({value.sql})", "int"), "int", named(f"{function}({{}})", values), at)


def _bracket(values: Sequence[Value], at: int) -> Value:
    """From 0; an error where the array has no such element, null where the map has no such key."""
    value, place = values
    name = None if value.name is None or place.name is None else f"{value.name}[{place.name}]"
    if key_and_value(value.type) is not None:
        return _of_key(value, place, name, at)
    found = _get((value, place), at)
    index = _index(place)
    length = f"cast(array_length({value.sql}) as bigint)"
    beyond = f"{index} < 0 or {index} >= {length}"
    # With the length in it, it is nothing that DataFusion would work out, and end with, before it reads.
    broken = f"cast('no index ' || cast({index} as varchar) || ' in an array of ' || cast({length} as varchar) as bigint)"
    sql = f"array_element({value.sql}, case when {beyond} then {broken} else {index} + 1 end)"
    return Value(sql, found.type, name, at)


def _get(values: Sequence[Value], at: int) -> Value:
    """From 0; null where there is no such element."""
    value, place = values
    inner = element(value.type)
    if inner is None or place.type not in INTEGERS:
        raise differs(f"an element of {value.type} by {place.type}", at)
    index = _index(place)
    is_there = f"{index} >= 0 and {index} < cast(array_length({value.sql}) as bigint)"
    return Value(f"(case when {is_there} then array_element({value.sql}, {index} + 1) end)", inner, named("get({})", values), at)


def _index(place: Value) -> str:
    """Spark's are int, whatever they come from."""
    return cast(cast(place.sql, "int"), "bigint")


def _element_at(function: str, values: Sequence[Value], at: int) -> Value:
    """From 1. An error where the array has no such element, for element_at."""
    value, place = values
    if key_and_value(value.type) is not None:
        return _of_key(value, place, named(f"{function}({{}})", values), at)
    if place.type != "int" or not isinstance(place.constant, int) or place.constant < 1:
        raise differs(f"{function} by anything but a number from 1 on that is written out", at, "use get")
    before = Value(f"{place.constant - 1}", "int", None, at, place.constant - 1)
    found = _bracket((value, before), at) if function == "element_at" else _get((value, before), at)
    return Value(found.sql, found.type, named(f"{function}({{}})", values), at)


def _of_key(value: Value, key: Value, name: str | None, at: int) -> Value:
    kinds = key_and_value(value.type)
    if kinds is None or kinds[0] != "string" or key.type != "string" or not isinstance(key.constant, str):
        raise differs(f"an entry of {value.type} by {key.type}", at, "write the key out")
    return Value(f"({value.sql}[{key.sql}])", kinds[1], name, at)


def _contains(values: Sequence[Value], at: int) -> Value:
    """Null where the array holds nulls and not the value."""
    value, wanted = values
    inner = element(value.type)
    if inner is None or wanted.type == "void":
        raise differs(f"array_contains of {value.type}", at)
    require_key(wanted)
    sought = comparable(become(wanted, inner))
    has = f"array_has({value.sql}, {sought})"
    has_null = f"array_position({value.sql}, null) is not null"
    sql = f"(case when {sought} is null then null when {has} then true when {has_null} then null else {has} end)"
    return Value(sql, "boolean", named("array_contains({})", values), at)


def _of_map(function: str, values: Sequence[Value], at: int) -> Value:
    (value,) = values
    kinds = key_and_value(value.type)
    if kinds is None:
        raise differs(f"{function} of {value.type}", at)
    inner = kinds[0] if function == "map_keys" else kinds[1]
    return Value(f"{function}({value.sql})", f"array<{inner}>", named(f"{function}({{}})", values), at)


FUNCTIONS: dict[str, Meaning] = {
    **{name: partial(_size, name) for name in ("size", "cardinality", "array_size")},
    **{name: partial(_element_at, name) for name in ("element_at", "try_element_at")},
    **{name: partial(_of_map, name) for name in ("map_keys", "map_values")},
    "[]": _bracket,
    "array_contains": _contains,
    "get": _get,
}
"""By their names."""
