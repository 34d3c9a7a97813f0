"""Functions of values and texts whose types or SQL depend on their arguments, in DataFusion's SQL. A test compares each with Spark."""

from collections.abc import Sequence
from functools import partial

from orchestration.query.fast.operators import OPERATORS, Meaning
from orchestration.query.fast.telling import differs
from orchestration.query.fast.types import INTEGERS, cast, text
from orchestration.query.fast.value import Value, alike, become, comparable, require_boolean, require_number, require_order, total

LONGEST = 10_000
"""Characters that a function may make a text long."""
DIGITS = range(5)
"""After the point, to which a double is rounded as Spark does it: by its shortest decimal text, half away from 0."""


def named(form: str, values: Sequence[Value]) -> str | None:
    """As Spark names a column; None where a name is not known."""
    names = [value.name for value in values]
    return None if None in names else form.format(", ".join(map(str, names)))


def written_text(value: Value, what: str) -> str:
    """A string that is written out."""
    if value.type != "string" or not isinstance(value.constant, str):
        raise differs(f"{what} by anything but a string that is written out", value.at)
    return value.constant


def written_number(value: Value, what: str, allowed: range) -> int:
    """A whole number that is written out."""
    if value.type != "int" or value.constant not in allowed:
        raise differs(f"{what} by anything but a number from {allowed.start} to {allowed.stop - 1} that is written out", value.at)
    return int(value.constant)


def _first(function: str, values: Sequence[Value], at: int) -> Value:
    """coalesce and its kin."""
    if len(values) < 2:
        raise ValueError
    same = alike(list(values))
    sql = f"coalesce({', '.join(value.sql for value in same)})"
    return Value(sql, same[0].type, named(f"{function}({{}})", values), at)


def _if(values: Sequence[Value], at: int) -> Value:
    condition, yes, no = values
    condition = require_boolean(condition, "IF", may_be_null=True)
    return conditional([(condition, yes)], no, named("(IF({}))", values), at)


def _nvl2(values: Sequence[Value], at: int) -> Value:
    value, yes, no = values
    test = Value(f"({value.sql} is not null)", "boolean", None, at)
    return conditional([(test, yes)], no, named("nvl2({})", values), at)


def conditional(branches: Sequence[tuple[Value, Value]], otherwise: Value | None, name: str | None, at: int) -> Value:
    """CASE, with all results in one type."""
    results = alike([result for _, result in branches] + ([otherwise] if otherwise else []))
    whens = " ".join(
        f"when {require_boolean(condition, 'a condition').sql} then {result.sql}"
        for (condition, _), result in zip(branches, results, strict=False)
    )
    last = results[-1].sql if otherwise else "null"
    return Value(f"(case {whens} else {last} end)", results[0].type, name, at)


def _nullif(values: Sequence[Value], at: int) -> Value:
    value, other = values
    for each in values:
        require_order(each)
    left, right = alike([value, other], is_comparison=True)
    sql = f"(case when {comparable(left)} = {comparable(right)} then null else {value.sql} end)"
    return Value(sql, value.type, named("nullif({})", values), at)


def _extreme(function: str, values: Sequence[Value], at: int) -> Value:
    """greatest and least; nulls are passed over."""
    for value in values:
        require_order(value)
    if len(values) < 2:
        raise ValueError
    same = alike(list(values))
    return Value(f"{function}({', '.join(map(total, same))})", same[0].type, named(f"{function}({{}})", values), at)


def _concat_ws(values: Sequence[Value], at: int) -> Value:
    separator, *parts = values
    if any(part.type not in {"string", "void"} for part in parts) or not parts:
        raise differs("concat_ws of other than strings", at, "cast them to string")
    joined = ", ".join(become(part, "string").sql for part in parts)
    sql = f"concat_ws({text(written_text(separator, 'concat_ws'))}, {joined})"
    return Value(sql, "string", named("concat_ws({})", values), at)


def _replace(values: Sequence[Value], at: int) -> Value:
    value, old, new = values
    if not written_text(old, "replace") or value.type != "string" or new.type != "string":
        raise differs("this replace", at)
    return Value(f"replace({value.sql}, {old.sql}, {new.sql})", "string", named("replace({})", values), at)


def _pad(function: str, values: Sequence[Value], at: int) -> Value:
    value, length, *pad = values
    filling = written_text(pad[0], function) if pad else " "
    if value.type != "string" or not filling or len(pad) > 1:
        raise differs(f"this {function}", at)
    sql = f"{function}({value.sql}, {written_number(length, function, range(LONGEST + 1))}, {text(filling)})"
    return Value(sql, "string", named(f"{function}({{}})", values) if pad else None, at)


def _repeat(values: Sequence[Value], at: int) -> Value:
    value, count = values
    if value.type != "string":
        raise differs("repeat of other than strings", at)
    sql = f"repeat({value.sql}, {written_number(count, 'repeat', range(LONGEST + 1))})"
    return Value(sql, "string", named("repeat({})", values), at)


def _round(values: Sequence[Value], at: int) -> Value:
    value, *to = values
    places = written_number(to[0], "round", DIGITS) if to else 0
    name = named("round({})", values) if to else named("round({}, 0)", values)
    if value.type in INTEGERS:
        return Value(value.sql, value.type, name, at)
    if value.type != "double" or len(to) > 1:
        raise differs(f"round of {value.type}", at, "cast it to double")
    if places == 0:
        return Value(f"(round({value.sql}) + 0e0)", "double", name, at)
    by_text = cast(cast(cast(cast(value.sql, "string"), f"decimal(38,{places})"), "string"), "double")
    small, large = f"abs({value.sql}) < 5e-{places + 1}", f"abs({value.sql}) < 1e15"
    return Value(f"(case when {small} then 0e0 when {large} then {by_text} else {value.sql} end)", "double", name, at)


def _mod(values: Sequence[Value], at: int) -> Value:
    found = OPERATORS["%"](values, at)
    return Value(found.sql, found.type, named("mod({})", values), at)


def _pmod(values: Sequence[Value], at: int) -> Value:
    """Never below 0 for a divisor above it."""
    value, divisor = values
    written_number(divisor, "pmod", range(1, 2**30))
    if value.type not in INTEGERS:
        raise differs(f"pmod of {value.type}", at)
    left, right = alike([value, divisor])
    return Value(f"((({left.sql} % {right.sql}) + {right.sql}) % {right.sql})", left.type, named("pmod({})", values), at)


def _try_divide(values: Sequence[Value], at: int) -> Value:
    for value in values:
        require_number(value)
    left, right = (become(value, "double") for value in values)
    return Value(f"({left.sql} / nullif({right.sql} + 0e0, 0e0))", "double", named("try_divide({})", values), at)


FUNCTIONS: dict[str, Meaning] = {
    **{name: partial(_first, name) for name in ("coalesce", "ifnull", "nvl")},
    **{name: partial(_extreme, name) for name in ("greatest", "least")},
    **{name: partial(_pad, name) for name in ("lpad", "rpad")},
    "concat_ws": _concat_ws,
    "if": _if,
    "mod": _mod,
    "nullif": _nullif,
    "nvl2": _nvl2,
    "pmod": _pmod,
    "repeat": _repeat,
    "replace": _replace,
    "round": _round,
    "try_divide": _try_divide,
}
"""By their names."""
