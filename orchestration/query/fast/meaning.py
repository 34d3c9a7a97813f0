"""What an expression of Spark means at a place of a query, in DataFusion's SQL."""

from collections.abc import Iterator
from functools import singledispatch

from orchestration.query.fast.aggregates import aggregate, is_aggregate, is_of_windows, windowed
from orchestration.query.fast.casts import converted
from orchestration.query.fast.dates import moved, unit_of
from orchestration.query.fast.functions import called, require_known
from orchestration.query.fast.instants import date_of, instant_of, spoken_instant
from orchestration.query.fast.scope import Keys, Scope
from orchestration.query.fast.special import conditional
from orchestration.query.fast.syntax import (
    Call,
    Case,
    Cast,
    Expression,
    InQuery,
    Interval,
    Literal,
    Name,
    Order,
    Over,
    Star,
    Subquery,
)
from orchestration.query.fast.telling import AmissError, differs
from orchestration.query.fast.types import SCALARS, cast, text
from orchestration.query.fast.value import Value, comparable, require_boolean, require_key, require_order

CONVERSIONS = SCALARS.keys() - {"void"}
"""Functions that are casts by the name of the type."""
WITH_UNITS = {"timestampdiff": "timestampdiff", "datediff": "datediff in units"}
LARGEST = 1024 * 1024
"""Characters of SQL that are made of an expression: what is used twice is written twice."""


def meaning(expression: Expression, scope: Scope) -> Value:
    """AmissError for what has none, or may have another in Spark."""
    value = scope.whole(expression) or _meaning(expression, scope)
    if len(value.sql) > LARGEST:
        raise AmissError("the query is too large; ask it in parts", expression.at)
    return value


@singledispatch
def _meaning(expression: Expression, scope: Scope) -> Value:
    raise AssertionError(expression)


@_meaning.register
def _literal(literal: Literal, scope: Scope) -> Value:  # noqa: PLR0911
    kind, at = literal.type, literal.at
    match kind:
        case "string":
            return Value(text(literal.value), kind, literal.name, at, literal.value)
        case "date text":
            return Value(date_of(literal.value, at), "date", f"DATE '{literal.value}'", at)
        case "timestamp text":
            return Value(instant_of(literal.value, at), "timestamp", f"TIMESTAMP '{spoken_instant(literal.value, at)}'", at)
        case "void":
            return Value("null", kind, literal.name, at)
        case "boolean":
            return Value(literal.name, kind, literal.name, at, literal.value)
        case "double":
            is_plain = literal.value == 0 or 1e-3 <= abs(literal.value) < 1e7
            return Value(cast(f"'{literal.value!r}'", kind), kind, repr(literal.value) if is_plain else None, at, literal.value)
        case _:
            written = f"'{literal.value}'" if kind.startswith("decimal") else str(literal.value)
            return Value(cast(written, kind), kind, literal.name, at, literal.value)


@_meaning.register
def _name(name: Name, scope: Scope) -> Value:
    return scope.column(name)


@_meaning.register
def _cast(expression: Cast, scope: Scope) -> Value:
    return converted(meaning(expression.value, scope), expression.type, expression.at)


@_meaning.register
def _case(case: Case, scope: Scope) -> Value:
    branches = [(meaning(condition, scope), meaning(result, scope)) for condition, result in case.branches]
    otherwise = meaning(case.otherwise, scope) if case.otherwise else None
    names = [value.name for branch in branches for value in branch] + ([otherwise.name] if otherwise else [])
    whens = " ".join(f"WHEN {condition.name} THEN {result.name}" for condition, result in branches)
    name = None if None in names else f"CASE {whens}{f' ELSE {otherwise.name}' if otherwise else ''} END"
    return conditional(branches, otherwise, name, case.at)


@_meaning.register
def _call(call: Call, scope: Scope) -> Value:  # noqa: PLR0911
    if call.over is not None:
        return scope.window(call)
    if is_aggregate(call.function):
        return scope.aggregate(call)
    if is_of_windows(call.function):
        raise AmissError(f"{call.function} needs OVER (..)", call.at)
    if call.is_distinct or call.where is not None:
        raise AmissError(f"{call.function} is no aggregate: DISTINCT and FILTER have no meaning for it", call.at)
    if call.function in {"+", "-"} and any(isinstance(argument, Interval) for argument in call.arguments):
        return _moved(call, scope)
    if call.function in WITH_UNITS and len(call.arguments) == 3:
        return _elapsed(call, scope)
    if call.function not in CONVERSIONS:
        require_known(call.function, call.at)
    values = [meaning(argument, scope) for argument in call.arguments]
    if call.function in CONVERSIONS and len(values) == 1:
        found = converted(values[0], call.function, call.at)
        return Value(found.sql, found.type, None, call.at)
    if call.function in {"+", "-"} and values[0].type == "date":
        return called("date_add" if call.function == "+" else "date_sub", values, call.at)
    return called(call.function, values, call.at)


def _moved(call: Call, scope: Scope) -> Value:
    instant, length = call.arguments
    if not isinstance(length, Interval) or isinstance(instant, Interval):
        raise differs("this sum with an interval", call.at, "write the interval behind the instant")
    sign = 1 if call.function == "+" else -1
    return moved(meaning(instant, scope), sign * length.months, sign * length.micros, call.at)


def _elapsed(call: Call, scope: Scope) -> Value:
    unit, *instants = call.arguments
    if not isinstance(unit, Name):
        raise differs(f"{call.function} without a unit", call.at)
    values = [unit_of(unit.parts[-1], unit.at), *(meaning(instant, scope) for instant in instants)]
    return called(WITH_UNITS[call.function], values, call.at)


@_meaning.register
def _subquery(subquery: Subquery, scope: Scope) -> Value:
    return scope.scalar(subquery.query)


@_meaning.register
def _in_query(expression: InQuery, scope: Scope) -> Value:
    raise differs("IN (SELECT ..) anywhere but in WHERE, alone or between ANDs,", expression.at, "use a join")


@_meaning.register
def _interval(interval: Interval, scope: Scope) -> Value:
    raise differs("an interval by itself", interval.at, "add it to an instant, or use timestampdiff")


@_meaning.register
def _star(star: Star, scope: Scope) -> Value:
    raise AmissError("* can stand alone in SELECT and in count(*) only", star.at)


def aggregate_of(call: Call, scope: Scope) -> tuple[Value, str]:
    """What an aggregate means over rows of the scope, and what becomes of it then: see aggregates.aggregate."""
    where = require_boolean(meaning(call.where, scope), "FILTER") if call.where is not None else None
    return aggregate(call.function, _arguments(call, scope), call.is_distinct, where, call.at)


def window_of(keys: Keys, call: Call, scope: Scope) -> Value:
    """What a function means over a window of rows of the scope."""
    assert call.over is not None
    if call.is_distinct or call.where is not None:
        raise differs("DISTINCT or FILTER over a window", call.at)
    over = _over(keys, call.over, scope)
    is_moving = call.over.frame is not None and not call.over.frame.startswith(("rows between unbounded", "rows unbounded"))
    if call.over.frame is not None and is_of_windows(call.function):
        raise differs(f"{call.function} over a window with ROWS", call.at)
    return windowed(call.function, _arguments(call, scope), over, bool(call.over.order), is_moving, call.at)


def _arguments(call: Call, scope: Scope) -> list[Value]:
    if call.function == "count" and len(call.arguments) == 1 and not call.is_distinct and _is_there(call.arguments[0]):
        # One text for all that counts rows: DataFusion takes two of them for one, and ends with an error.
        return [Value("1", "int", "1" if isinstance(call.arguments[0], Star) else meaning(call.arguments[0], scope).name, call.at, 1)]
    return [meaning(argument, scope) for argument in call.arguments]


def _is_there(argument: Expression) -> bool:
    """Whether it is in every row."""
    return (isinstance(argument, Star) and not argument.parts) or (isinstance(argument, Literal) and argument.type != "void")


def _over(keys: Keys, over: Over, scope: Scope) -> str:
    parts = []
    if over.partition:
        among = [meaning(each, scope) for each in over.partition]
        for value in among:
            require_key(value)
        parts.append(f"partition by {', '.join(keys.column(comparable(value)) for value in among)}")
    if over.order:
        parts.append(f"order by {', '.join(_key(keys, meaning(each.value, scope), each) for each in over.order)}")
    if over.frame is not None:
        parts.append(over.frame)
    return " ".join(parts)


def _key(keys: Keys, value: Value, order: Order) -> str:
    require_order(value)
    return f"{keys.column(comparable(value))} {direction(order)}"


def direction(order: Order) -> str:
    """Of ORDER BY."""
    return f"{'desc' if order.is_descending else 'asc'} nulls {'first' if order.is_nulls_first else 'last'}"


def parts_of(expression: Expression) -> Iterator[Expression]:
    """The expression and all in it, but for subqueries."""
    yield expression
    inner: list[Expression] = []
    match expression:
        case Call():
            inner = [*expression.arguments, *([expression.where] if expression.where else [])]
            if expression.over:
                inner += [*expression.over.partition, *(order.value for order in expression.over.order)]
        case Cast() | InQuery():
            inner = [expression.value]
        case Case():
            inner = [each for branch in expression.branches for each in branch] + ([expression.otherwise] if expression.otherwise else [])
    for each in inner:
        yield from parts_of(each)


def has_aggregate(expression: Expression) -> bool:
    """Whether it makes one value of many rows; functions over windows do not."""
    return any(isinstance(part, Call) and part.over is None and is_aggregate(part.function) for part in parts_of(expression))
