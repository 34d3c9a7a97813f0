"""What calls mean, in DuckDB's SQL: functions of one row, aggregates, functions over windows."""

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from sqlglot import exp

from orchestration.serving.sql.fast.errors import ASK_SPARK, SqlError, unsupported
from orchestration.serving.sql.fast.expressions import converted, literal
from orchestration.serving.sql.fast.functions import Value, called, is_key, written_time
from orchestration.serving.sql.fast.literals import instant
from orchestration.serving.sql.fast.scope import Scope, meaning, meaning_of
from orchestration.serving.sql.fast.signatures import (
    AGGREGATES,
    FUNCTIONS,
    IN_WINDOWS,
    INSTEAD,
    OF_WINDOWS,
    OPERATORS,
    UNFRAMED,
    signatures,
)
from orchestration.serving.sql.fast.types import SCALARS, digits, has

CONVERSIONS = SCALARS.keys() - {"void"}
"""Functions that are casts by the name of the type."""
OPERATORS_TO_CALL = {"concat", "like", "ilike", "mod", "rlike", "unary+"}
"""The last one stands for a sign, see parser."""
WITH_UNITS = {"timestampdiff", "datediff"}


def function_of(node: exp.Expr) -> str:
    """The name of what is called, in lower case; nothing for other expressions."""
    call = node.this if isinstance(node, exp.Filter | exp.Window) else node
    call = call.this if isinstance(call, exp.Filter) else call
    return str(call.this).lower() if isinstance(call, exp.Anonymous) and isinstance(call.this, str) else ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it makes one value of many rows; functions over windows do not."""
    return not isinstance(node, exp.Window) and function_of(node) in {**signatures(AGGREGATES), **INSTEAD}


def has_aggregate(node: exp.Expr) -> bool:
    """Whether there is one in it, but for subqueries."""
    parts: Iterator[exp.Expr] = node.walk(prune=lambda part: isinstance(part, exp.Query))
    return any(is_aggregate(part) and not (isinstance(part.parent, exp.Window) and part.arg_key == "this") for part in parts)


@meaning_of.register
def _call(node: exp.Anonymous | exp.Filter | exp.Window, scope: Scope) -> Value:
    function = function_of(node)
    if isinstance(node, exp.Window):
        return _windowed(function, node, scope)
    if is_aggregate(node):
        return _aggregated(function, node, scope)
    if function in signatures(OF_WINDOWS):
        raise SqlError(f"{function} needs OVER (..)", node)
    if isinstance(node, exp.Filter) or any(isinstance(each, exp.Distinct) for each in node.expressions):
        raise SqlError(f"{function} is no aggregate: DISTINCT and FILTER have no meaning for it", node)
    if function.endswith(" text"):
        kind, written = function.removesuffix(" text"), literal(node.expressions[0], scope.source).constant
        said = str(instant(written, node).replace(tzinfo=None)) if kind == "timestamp" else written.strip()
        said = said.rstrip("0").rstrip(".") if "." in said else said
        return Value(written_time(written, kind, node), kind, f"{kind.upper()} '{said}'", node)
    arguments = list(node.expressions)
    values = []
    if function in WITH_UNITS and len(arguments) == 3 and isinstance(arguments[0], exp.Column):
        unit = arguments.pop(0)
        values = [Value("", "string", unit.name, unit, unit.name)]
    if function not in {*signatures(FUNCTIONS), *CONVERSIONS, *OPERATORS_TO_CALL}:
        nearest = get_close_matches(function, signatures(FUNCTIONS) | signatures(AGGREGATES), n=1, cutoff=0.75)
        hint = f"did you mean '{nearest[0]}'? If not, " if nearest else ""
        raise SqlError(f"the fast engine knows no function {function}; {hint}{ASK_SPARK}", node)
    values += [meaning(argument, scope) for argument in arguments]
    if function in CONVERSIONS and len(values) == 1:
        return replace(converted(values[0], function, node), name=None)
    return called(FUNCTIONS if function in signatures(FUNCTIONS) else OPERATORS, function, values, node)


def _aggregated(function: str, node: exp.Expr, scope: Scope) -> Value:
    if function in INSTEAD:
        raise unsupported(function, node, INSTEAD[function])
    if not scope.has_aggregates:
        raise SqlError(f"{function} answers many rows and cannot be asked of one; group them in a subquery first", node)
    call = node.this if isinstance(node, exp.Filter) else node
    if scope.is_alias_first:
        for argument in call.expressions:
            if isinstance(argument, exp.Column) and scope.alias(
                argument
            ):  # Spark takes it for the alias in ORDER BY, and ends with an error
                raise unsupported(f"{function} of what is the name of a column and of an alias", argument, "rename the alias")
    rows = replace(scope, aliases=(), has_aggregates=False, has_windows=False)
    where = meaning(node.expression.this, rows) if isinstance(node, exp.Filter) else None
    if where and where.type != "boolean":
        raise unsupported(f"{where.type} in FILTER", node.expression.this)
    tail = f" filter (where {where.sql})" if where else ""
    value = _many(AGGREGATES, function, call, rows, tail)
    if where is None:
        return value
    return replace(value, name=None if None in {value.name, where.name} else f"{value.name} FILTER (WHERE {where.name})")


def _many(lines: str, function: str, call: exp.Expr, scope: Scope, tail: str) -> Value:
    arguments = call.expressions
    is_distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    arguments = arguments[0].expressions if is_distinct else arguments
    if (
        function == "count"
        and len(arguments) == 1
        and isinstance(arguments[0], exp.Star)
        and not is_distinct
        and not arguments[0].args.get("except_")
    ):
        values = [Value("1", "int", "1", arguments[0], 1)]
    else:
        values = [meaning(argument, scope) for argument in arguments]
    if is_distinct and not all(is_key(value.type) for value in values):
        raise unsupported(f"{function}(distinct {values[0].type})", call)
    return called(lines, function, values, call, distinct=is_distinct, tail=tail)


def _windowed(function: str, node: exp.Window, scope: Scope) -> Value:
    call, of_windows = node.this, signatures(OF_WINDOWS)
    if not scope.has_windows:
        raise SqlError("a function with OVER can only stand in SELECT and ORDER BY; ask its result in a subquery", node)
    if not isinstance(call, exp.Anonymous) or any(isinstance(each, exp.Distinct) for each in call.expressions):
        raise unsupported("DISTINCT or FILTER over a window", node)
    if function not in IN_WINDOWS and function not in of_windows:
        raise unsupported(f"{function} over a window", node)
    order, spec = node.args.get("order"), node.args.get("spec")
    if function in UNFRAMED and not order:
        raise SqlError(f"{function} needs a window with ORDER BY", node)
    inside = replace(scope, has_windows=False)
    over = [f"partition by {', '.join(_key(part, inside) for part in node.args['partition_by'])}"] if node.args.get("partition_by") else []
    over += [f"order by {', '.join(ordered(part, meaning(part.this, inside)) for part in order.expressions)}"] if order else []
    over += [_frame(spec)] if spec else []
    value = _many(OF_WINDOWS if function in of_windows else AGGREGATES, function, call, inside, f" over ({' '.join(over)})")
    is_moving = spec and spec.args.get("start") != "UNBOUNDED"
    kinds = [meaning(each, inside).type for each in call.expressions if not isinstance(each, exp.Star)]
    if spec and (function in of_windows or (is_moving and any(has(kind, "double") or digits(kind) for kind in kinds))):
        raise unsupported(f"{function} over a window whose first row moves", node, "let it begin with UNBOUNDED PRECEDING")
    return replace(value, name=None)


def _key(node: exp.Expr, scope: Scope) -> str:
    value = meaning(node, scope)
    require_key(value)
    return value.sql


def require_key(value: Value) -> None:
    """Refuse what the two engines may tell apart differently."""
    if not is_key(value.type):
        raise unsupported(f"a comparison of values of type {value.type}", value.node)


def ordered(term: exp.Ordered, value: Value, sql: str = "") -> str:
    """A term of ORDER BY. Nulls come first where nothing else is said, and last where the order is descending."""
    if has(value.type, "map", "array", "?"):
        raise unsupported(f"an order of values of type {value.type}", term)
    direction = "desc" if term.args.get("desc") else "asc"
    return f"{sql or value.sql} {direction} nulls {'first' if term.args.get('nulls_first') else 'last'}"


def _frame(spec: exp.WindowSpec) -> str:
    if str(spec.args.get("kind")).upper() != "ROWS":
        raise unsupported("a window frame of RANGE", spec, "count it in ROWS")
    bounds = [_bound(spec, "start")] + ([_bound(spec, "end")] if spec.args.get("end") else ["current row"])
    return f"rows between {' and '.join(bounds)}"


def _bound(spec: exp.WindowSpec, end: str) -> str:
    bound, side = spec.args[end], str(spec.args.get(f"{end}_side") or "").lower()
    if isinstance(bound, exp.Literal) and bound.name.isdigit() and side in {"preceding", "following"}:
        return f"{int(bound.name)} {side}"
    if not isinstance(bound, str) or side not in {"preceding", "following", ""}:
        raise unsupported("this window frame", spec)
    return f"{bound.lower()} {side}".strip()
