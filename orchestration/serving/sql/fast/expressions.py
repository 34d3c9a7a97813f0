"""What parts of the tree mean at a place of a query, in DuckDB's SQL: names, literals, operators, CASE, calls."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from sqlglot import exp

from orchestration.serving.sql.fast.errors import ASK_SPARK, TOO_LARGE, SqlError, unsupported
from orchestration.serving.sql.fast.functions import Value, become, called, is_key, literal, of_decimals, written_out, written_time
from orchestration.serving.sql.fast.literals import MICROS, instant, length
from orchestration.serving.sql.fast.scope import Scope
from orchestration.serving.sql.fast.signatures import (
    AGGREGATES,
    CASTS,
    FUNCTIONS,
    IN_WINDOWS,
    INSTEAD,
    OF_WINDOWS,
    OPERATORS,
    UNFRAMED,
    signatures,
)
from orchestration.serving.sql.fast.types import cast, common, digits, from_sqlglot, has

LARGEST = 1024 * 1024
"""Characters of SQL that are made of an expression: what is used twice is written twice."""
SIGNS: dict[type[exp.Expr], str] = {
    getattr(exp, kind): sign
    for pair in """
        Add +; Sub -; Mul *; Div /; IntDiv div; Mod %; DPipe ||; And and; Or or; Not not; Neg unary-; EQ =; NEQ <>; LT <; GT >; LTE <=
        GTE >=; NullSafeEQ <=>; NullSafeNEQ distinct; Between between; In in; Bracket []; Like like; ILike ilike; RegexpLike rlike
        """.strip()
    .replace("\n", ";")
    .split(";")
    for kind, sign in [pair.split()]
}
"""Operators of the tables by their kinds of nodes."""
ROWS = (exp.Where, exp.Group, exp.Join, exp.Lateral)
"""Clauses that hold conditions and keys of single rows."""


def meaning(node: exp.Expr, scope: Scope) -> Value:
    """SqlError for what has none, or may have another in Spark."""
    value = replace(_meaning(node, scope), node=node)
    if len(value.sql) > LARGEST:
        raise SqlError(TOO_LARGE)
    return value


def _meaning(node: exp.Expr, scope: Scope) -> Value:  # noqa: PLR0911, PLR0912
    inside = node.this
    match node:
        case exp.Paren():
            return meaning(inside, scope)
        case exp.Column() if not isinstance(inside, exp.Star):
            return scope.column(node)
        case exp.Column() | exp.Star():
            raise SqlError("* can stand alone in SELECT and in count(*) only", node)
        case exp.Null() | exp.Boolean():
            is_null, said = isinstance(node, exp.Null), str(inside).lower()
            return Value("null", "void", "NULL") if is_null else Value(said, "boolean", said, node, inside)
        case _ if number_of := written_out(node, scope.source):
            return literal(number_of, scope.source)
        case exp.Neg() if (number_of := written_out(inside, scope.source)) and not number_of.is_string:
            return literal(number_of, scope.source, "-")
        case exp.Subquery():
            return scope.scalar(node, scope.columns)
        case exp.TryCast():
            return called(CASTS, from_sqlglot(node.to), [meaning(inside, scope)], node)
        case exp.Case():
            return _case(node, scope)
        case exp.Extract():
            return called(FUNCTIONS, "extract", [_unit(inside), meaning(node.expression, scope)], node)
        case exp.Interval():
            raise unsupported("an interval by itself", node, "add it to an instant, or use timestampdiff")
        case exp.Window():
            return _windowed(node, scope)
        case exp.Anonymous() | exp.Filter():
            return _call(node, scope)
    return _operation(node, scope)


def _operation(node: exp.Expr, scope: Scope) -> Value:
    inside = node.this
    match node:
        case exp.Is():
            test = "null" if isinstance(node.expression, exp.Null) else str(node.expression.this).lower()
            return called(OPERATORS, f"is{test}", [meaning(inside, scope)], node)
        case exp.Not() if isinstance(inside, exp.Is) and isinstance(inside.expression, exp.Null):
            return called(OPERATORS, "isnotnull", [meaning(inside.this, scope)], node)
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            return _moved(node, scope)
        case exp.In() if node.args.get("query"):
            raise unsupported("IN (SELECT ..) anywhere but in WHERE, alone or between ANDs,", node, "use a join")
    if type(node) not in SIGNS:
        raise unsupported(f"this {node.key}", node)
    return _operator(SIGNS[type(node)], [meaning(operand, scope) for operand in node.iter_expressions()], node)


def _unit(node: exp.Expr) -> Value:
    return Value("", "string", node.name, node, node.name)


def _operator(sign: str, values: Sequence[Value], node: exp.Expr) -> Value:
    kinds = [value.type for value in values]
    is_decimal = any(map(digits, kinds)) and "double" not in kinds
    if is_decimal and sign in {"+", "-", "*", "/", "%", "div"}:
        return of_decimals(sign, values, node)
    value = called(OPERATORS + FUNCTIONS, sign, values, node)
    if node.args.get("negate"):
        return called(OPERATORS, "not", [value], node)
    return replace(value, name=None) if is_decimal and sign in {"=", "<>", "<=>", "<", ">", "<=", ">="} else value


def condition(value: Value, place: str) -> str:
    """Its SQL, if it is one."""
    if value.type != "boolean":
        raise unsupported(f"{value.type} in {place}", value.node, "write a condition")
    return value.sql


def _case(node: exp.Case, scope: Scope) -> Value:
    operand, last = node.this and meaning(node.this, scope), node.args.get("default")
    whens = [meaning(branch.this, scope) for branch in node.args["ifs"]]
    whens = [called(OPERATORS, "=", [operand, when], node) for when in whens] if operand else whens
    results = [meaning(branch.args["true"], scope) for branch in node.args["ifs"]] + ([meaning(last, scope)] if last else [])
    kind = common(value.type for value in results) or "?"
    alike = [each.sql for each in (become(value, kind) for value in results) if each]
    if len(alike) < len(results):
        raise unsupported(f"a CASE of {' and '.join(dict.fromkeys(value.type for value in results))}", node, "cast them")
    written = " ".join(f"when {condition(when, 'a condition')} then {then}" for when, then in zip(whens, alike, strict=False))
    pairs = [f"WHEN {when.name} THEN {result.name}" for when, result in zip(whens, results, strict=False)]
    name = " ".join(["CASE", *pairs, *([f"ELSE {results[-1].name}"] if last else []), "END"])
    is_named = None not in {value.name for value in (*whens, *results)}
    return Value(f"(case {written} else {alike[-1] if last else 'null'} end)", kind, name if is_named else None, node)


def _moved(node: exp.Expr, scope: Scope) -> Value:
    value, (months, micros) = meaning(node.this, scope), length(node.expression)
    if value.type == "date" and micros % MICROS["day"]:
        value = become(value, "timestamp") or value
    if value.type not in {"timestamp", "date"}:
        raise unsupported(f"{value.type} and an interval", node)
    moved = f"{SIGNS[type(node)]} interval '{months} months {micros} microseconds'"
    sql = f"aware(naive({value.sql}) {moved})" if value.type == "timestamp" else f"({value.sql} {moved})"
    return Value(cast(sql, value.type), value.type, None, node)


def function_of(node: exp.Expr) -> str:
    """The name of what is called, in lower case; nothing for other expressions."""
    call = node.this if isinstance(node, exp.Filter | exp.Window) else node
    call = call.this if isinstance(call, exp.Filter) else call
    return str(call.this).lower() if isinstance(call, exp.Anonymous) and isinstance(call.this, str) else ""


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate that is not over a window is in it, but for subqueries."""
    parts = node.walk(prune=lambda part: isinstance(part, exp.Query))
    return any(_is_aggregate(part) and not (isinstance(part.parent, exp.Window) and part.arg_key == "this") for part in parts)


def _is_aggregate(node: exp.Expr) -> bool:
    return not isinstance(node, exp.Window) and function_of(node) in {**signatures(AGGREGATES), **INSTEAD}


def _call(node: exp.Expr, scope: Scope) -> Value:
    function, arguments = function_of(node), list(node.expressions)
    if _is_aggregate(node):
        return _aggregated(function, node, scope)
    if function in signatures(OF_WINDOWS):
        raise SqlError(f"{function} needs OVER (..)", node)
    if isinstance(node, exp.Filter) or any(isinstance(each, exp.Distinct) for each in arguments):
        raise SqlError(f"{function} is no aggregate: DISTINCT and FILTER have no meaning for it", node)
    if function.endswith(" text"):
        kind, written = function.removesuffix(" text"), literal(arguments[0], scope.source).constant
        said = str(instant(written, node).replace(tzinfo=None)) if kind == "timestamp" else written.strip()
        said = said.rstrip("0").rstrip(".") if "." in said else said
        return Value(written_time(written, kind, node), kind, f"{kind.upper()} '{said}'", node)
    if function not in {*signatures(FUNCTIONS), *signatures(CASTS)}:
        nearest = get_close_matches(function, signatures(FUNCTIONS) | signatures(AGGREGATES), n=1, cutoff=0.75)
        hint = f"did you mean '{nearest[0]}'? If not, " if nearest else ""
        raise SqlError(f"the fast engine knows no function {function}; {hint}{ASK_SPARK}", node)
    has_unit = function in {"timestampdiff", "datediff"} and len(arguments) == 3 and isinstance(arguments[0], exp.Column)
    values = [_unit(arg) if has_unit and not place else meaning(arg, scope) for place, arg in enumerate(arguments)]
    if function in signatures(CASTS):
        return replace(called(CASTS, function, values, node), name=None)
    return called(FUNCTIONS, function, values, node)


def _aggregated(function: str, node: exp.Expr, scope: Scope) -> Value:
    if function in INSTEAD:
        raise unsupported(function, node, INSTEAD[function])
    if isinstance(node.find_ancestor(exp.Select, *ROWS), ROWS):
        raise SqlError(f"{function} answers many rows and cannot be asked of one; group them in a subquery first", node)
    call = node.this if isinstance(node, exp.Filter) else node
    for argument in call.expressions if scope.is_alias_first else ():
        # Spark takes it for the alias in ORDER BY, and ends with an error.
        if isinstance(argument, exp.Column) and scope.alias(argument):
            raise unsupported(f"{function} of what is the name of a column and of an alias", argument, "rename the alias")
    rows = replace(scope, aliases=())
    if call is node:
        return _many(AGGREGATES, function, call, rows, "")
    where = meaning(node.expression.this, rows)
    value = _many(AGGREGATES, function, call, rows, f" filter (where {condition(where, 'FILTER')})")
    return replace(value, name=f"{value.name} FILTER (WHERE {where.name})" if value.name and where.name else None)


def _many(lines: str, function: str, call: exp.Expr, scope: Scope, tail: str) -> Value:
    arguments = call.expressions
    is_distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    arguments = arguments[0].expressions if is_distinct else arguments
    if function == "count" and not is_distinct and arguments == [exp.Star()]:
        values = [Value("1", "int", "1", arguments[0], 1)]
    else:
        values = [meaning(argument, scope) for argument in arguments]
    if is_distinct and not all(is_key(value.type) for value in values):
        raise unsupported(f"{function}(distinct {values[0].type})", call)
    return called(lines, function, values, call, distinct=is_distinct, tail=tail)


def _windowed(node: exp.Window, scope: Scope) -> Value:
    call, function, of_windows = node.this, function_of(node), signatures(OF_WINDOWS)
    if isinstance(node.find_ancestor(exp.Select, exp.Having, exp.Window, *ROWS), (exp.Having, exp.Window, *ROWS)):
        raise SqlError("a function with OVER can only stand in SELECT and ORDER BY; ask its result in a subquery", node)
    if not isinstance(call, exp.Anonymous) or any(isinstance(each, exp.Distinct) for each in call.expressions):
        raise unsupported("DISTINCT or FILTER over a window", node)
    if function not in IN_WINDOWS and function not in of_windows:
        raise unsupported(f"{function} over a window", node)
    order, spec, parts = node.args.get("order"), node.args.get("spec"), node.args.get("partition_by") or []
    if function in UNFRAMED and not order:
        raise SqlError(f"{function} needs a window with ORDER BY", node)
    keys = ", ".join(key(meaning(part, scope)).sql for part in parts)
    terms = ", ".join(ordered(part, meaning(part.this, scope)) for part in order.expressions) if order else ""
    over = [f"partition by {keys}"] * bool(keys) + [f"order by {terms}"] * bool(terms) + ([_frame(spec)] if spec else [])
    value = _many(OF_WINDOWS if function in of_windows else AGGREGATES, function, call, scope, f" over ({' '.join(over)})")
    kinds = [meaning(each, scope).type for each in call.expressions if not isinstance(each, exp.Star)]
    is_moving = spec and spec.args.get("start") != "UNBOUNDED" and any(has(kind, "double") or digits(kind) for kind in kinds)
    if spec and (function in of_windows or is_moving):
        raise unsupported(f"{function} over a window whose first row moves", node, "let it begin with UNBOUNDED PRECEDING")
    return replace(value, name=None)


def key(value: Value) -> Value:
    """The value itself; refused is what the two engines may tell apart differently."""
    if not is_key(value.type):
        raise unsupported(f"a comparison of values of type {value.type}", value.node)
    return value


def ordered(term: exp.Ordered, value: Value, sql: str = "") -> str:
    """A term of ORDER BY. Nulls come first where nothing else is said, and last where the order is descending."""
    if has(value.type, "map", "array", "?"):
        raise unsupported(f"an order of values of type {value.type}", term)
    direction = "desc" if term.args.get("desc") else "asc"
    return f"{sql or value.sql} {direction} nulls {'first' if term.args.get('nulls_first') else 'last'}"


def _frame(spec: exp.WindowSpec) -> str:
    if str(spec.args.get("kind")).upper() != "ROWS":
        raise unsupported("a window frame of RANGE", spec, "count it in ROWS")
    return f"rows between {_bound(spec, 'start')} and {_bound(spec, 'end') if spec.args.get('end') else 'current row'}"


def _bound(spec: exp.WindowSpec, end: str) -> str:
    bound, side = spec.args[end], str(spec.args.get(f"{end}_side") or "").lower()
    if side not in {"preceding", "following", ""} or not (
        isinstance(bound, str) or (isinstance(bound, exp.Literal) and bound.name.isdigit())
    ):
        raise unsupported("this window frame", spec)
    return f"{bound.lower() if isinstance(bound, str) else int(bound.name)} {side}".strip()
