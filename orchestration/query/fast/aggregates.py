"""Functions that answer many rows at once: aggregates, and functions of windows. Each line is compared with Spark by a test.

A line is `names (types) -> type: SQL`, as in functions; `ordered` is any type with an order, `any` any type, `same` that of the first
argument. `$d` is where DISTINCT stands, `$t` where FILTER or OVER stand.
"""

from collections.abc import Sequence

from orchestration.query.fast.functions import Signature, column_of, filled, fitting, signatures
from orchestration.query.fast.telling import AmissError, differs
from orchestration.query.fast.types import digits, has
from orchestration.query.fast.value import Value, comparable, require_key

AGGREGATES = """
count (any) -> bigint: count($d $1)$t
count_if (boolean) -> bigint: count(case when $1 then 1 end)$t
sum (int) -> bigint: sum($d cast($1 as bigint))$t
sum (bigint) -> bigint: cast(sum($d cast($1 as decimal(38,0)))$t as bigint)
sum (double) -> double: sum($d $1)$t
avg mean (number) -> double: avg($d $1)$t
min (double) -> double: LEAST
max (double) -> double: GREATEST
min (ordered) -> same: min($1)$t
max (ordered) -> same: max($1)$t
bool_or any some (boolean) -> boolean: bool_or($1)$t
bool_and every (boolean) -> boolean: bool_and($1)$t
stddev std stddev_samp (number) -> double: stddev_samp($1)$t
stddev_pop (number) -> double: stddev_pop($1)$t
variance var_samp (number) -> double: var_samp($1)$t
var_pop (number) -> double: var_pop($1)$t
covar_pop (number, number) -> double: covar_pop($1, $2)$t
covar_samp (number, number) -> double: covar_samp($1, $2)$t
corr (number, number) -> double: corr($1, $2)$t
median (number) -> double: median($1)$t
percentile=percentile+1 (number, #share) -> double: array_agg($1 order by nanvl($1, cast('NaN' as double)))$t
max_by (any, ordered) -> same: first_value($1 order by $2 desc nulls last)$t
min_by (any, ordered) -> same: first_value($1 order by $2 asc nulls last)$t
"""
OF_WINDOWS = """
row_number rank dense_rank () -> int: cast(NAME()$t as int)
percent_rank cume_dist () -> double: NAME()$t
ntile (#1) -> int: cast(ntile($1)$t as int)
lag lead (any) -> same: NAME($1)$t
lag lead (any, #1) -> same: NAME($1, $2)$t
first_value last_value (any) -> same: NAME($1)$t
nth_value (any, #1) -> same: nth_value($1, $2)$t
"""
# DataFusion's own take NaN for less than anything in groups, and there infinity for the greatest number that is finite (measured).
NAN, INFINITE, LOWEST = (f"cast('{number}' as double)" for number in ("NaN", "inf", "-inf"))
LEAST = (
    f"coalesce(min(case when isnan($1) or $1 = {INFINITE} then null else $1 end)$t, "
    f"case when bool_or($1 = {INFINITE})$t then {INFINITE} when count($1)$t > 0 then {NAN} end)"
)
GREATEST = (
    f"case when bool_or(isnan($1))$t then {NAN} else coalesce(max(case when isnan($1) or $1 = {LOWEST} then null else $1 end)$t, "
    f"case when count($1)$t > 0 then {LOWEST} end) end"
)
# DataFusion's own cuts the place between two values to six digits (measured). Of all values in order, $0, Spark's mean of two neighbours.
PLACE = "(cast(array_length($0) as double) - 1e0) * $2"
LOWER, HIGHER = (f"array_element($0, cast({bound}({PLACE}) as bigint) + 1)" for bound in ("floor", "ceil"))
QUANTILE = f"case when {LOWER} = {HIGHER} then {LOWER} else (ceil({PLACE}) - {PLACE}) * {LOWER} + ({PLACE} - floor({PLACE})) * {HIGHER} end"
IN_WINDOWS = {"count", "sum", "avg", "mean", "min", "max"}
UNFRAMED = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
"""Need an order and take no frame."""
INSTEAD = {
    "approx_count_distinct": "use count(distinct ..)",
    "approx_percentile": "use percentile",
    "percentile_approx": "use percentile",
    "first": "use min_by",
    "last": "use max_by",
    "any_value": "use min or max",
}
"""Known to answer otherwise."""


def is_aggregate(function: str) -> bool:
    """Whether it makes one value of many rows."""
    return function in signatures(AGGREGATES) or function in INSTEAD


def is_of_windows(function: str) -> bool:
    """Whether it needs a window."""
    return function in signatures(OF_WINDOWS)


def aggregate(function: str, arguments: Sequence[Value], is_distinct: bool, where: Value | None, at: int) -> tuple[Value, str]:
    """Over the rows of a group; and what becomes of it then, as SQL in which $0 is its column."""
    found, sql = _found(function, arguments, is_distinct, at)
    conditions = [] if where is None else [where.sql]
    if function in {"max_by", "min_by", "percentile"}:
        conditions.append(f"{arguments[0 if function == 'percentile' else 1].sql} is not null")
    tail = f" filter (where {' and '.join(conditions)})" if conditions else ""
    name = column_of(found, arguments, "DISTINCT " if is_distinct else "")
    if where is not None:
        name = None if name is None or where.name is None else f"{name} FILTER (WHERE {where.name})"
    after = filled(QUANTILE, sql) if function == "percentile" else "$0"
    return Value(_placed(found, sql, is_distinct, tail), _type(found, arguments), name, at), after


def windowed(function: str, arguments: Sequence[Value], over: str, is_ordered: bool, is_moving: bool, at: int) -> Value:  # noqa: PLR0917
    """Over the rows of a window. `is_moving`: its first row moves with the current one."""
    if function not in IN_WINDOWS and not is_of_windows(function):
        raise differs(f"{function} over a window", at)
    if function in UNFRAMED and not is_ordered:
        raise AmissError(f"{function} needs a window with ORDER BY", at)
    if is_moving and (function in UNFRAMED or any(has(value.type, "double") or digits(value.type) for value in arguments)):
        raise differs(f"{function} over a window whose first row moves", at, "let it begin with UNBOUNDED PRECEDING")
    found, sql = _found(function, arguments, False, at)
    return Value(_placed(found, sql, False, f" over ({over})"), _type(found, arguments), None, at)


def _found(function: str, arguments: Sequence[Value], is_distinct: bool, at: int) -> tuple[Signature, list[str]]:
    if function in INSTEAD:
        raise differs(function, at, INSTEAD[function])
    known = {**signatures(AGGREGATES), **signatures(OF_WINDOWS)}
    found = fitting(known[function], arguments)
    kinds = ", ".join(value.type for value in arguments)
    if found is None or (is_distinct and "$d" not in found[0].sql):
        raise differs(f"{function}({'distinct ' if is_distinct else ''}{kinds})", at)
    signature, sql = found
    if is_distinct:
        for value in arguments:
            require_key(value)
        sql = [comparable(value) if value.type == "double" else each for value, each in zip(arguments, sql, strict=True)]
    return signature, sql


def _placed(signature: Signature, sql: Sequence[str], is_distinct: bool, tail: str) -> str:
    return filled(_written_out(signature.sql).replace("$d ", "distinct " if is_distinct else "").replace("$t", tail), sql)


def _type(signature: Signature, arguments: Sequence[Value]) -> str:
    return arguments[0].type if signature.type == "same" else signature.type


def _written_out(sql: str) -> str:
    """With what is too long for a line of the table."""
    return {"LEAST": LEAST, "GREATEST": GREATEST}.get(sql, sql)
