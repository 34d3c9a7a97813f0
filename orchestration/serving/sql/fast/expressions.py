"""What literals, operators, casts and CASE mean, in DuckDB's SQL."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from orchestration.serving.sql.fast.errors import SqlError, unsupported
from orchestration.serving.sql.fast.functions import Value, become, called, text, written_time
from orchestration.serving.sql.fast.literals import MICROS, length, number, string
from orchestration.serving.sql.fast.scope import Scope, meaning, meaning_of
from orchestration.serving.sql.fast.signatures import FUNCTIONS, OPERATORS
from orchestration.serving.sql.fast.types import INTEGERS, SCALARS, cast, common, digits, from_sqlglot

SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.And: "and",
    exp.Or: "or",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.GT: ">",
    exp.LTE: "<=",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
}
SAME_CASTS = {
    *(("bigint", "int"), ("double", "int"), ("double", "bigint"), ("boolean", "int"), ("boolean", "bigint"), ("int", "string")),
    *(("bigint", "string"), ("boolean", "string"), ("date", "string"), ("date", "timestamp")),
}
"""From, to."""
CASTS = {
    ("double", "int"): "trunc({})",  # DuckDB rounds
    ("double", "bigint"): "trunc({})",
    ("binary", "string"): "decode({})",  # what is no UTF-8 is an error here as it is in Spark's answer
    ("string", "binary"): "encode({})",
    ("timestamp", "date"): "naive({})",
    ("timestamp", "string"): r"regexp_replace(strftime(naive({}), '%Y-%m-%d %H:%M:%S.%f'), '\.?0+$', '')",
}
SPECIAL_NUMBERS = {"nan": "NaN", "infinity": "inf", "inf": "inf", "-infinity": "-inf", "-inf": "-inf"}


@meaning_of.register
def _literal(node: exp.Literal | exp.Null | exp.Boolean, scope: Scope) -> Value:
    return literal(node, scope.source)


@meaning_of.register
def _column(node: exp.Column | exp.Star, scope: Scope) -> Value:
    if isinstance(node, exp.Star) or isinstance(node.this, exp.Star):
        raise SqlError("* can stand alone in SELECT and in count(*) only", node)
    return scope.column(node)


@meaning_of.register
def _parentheses(node: exp.Paren, scope: Scope) -> Value:
    return meaning(node.this, scope)


@meaning_of.register
def _cast(node: exp.TryCast, scope: Scope) -> Value:
    return converted(meaning(node.this, scope), from_sqlglot(node.to), node)


@meaning_of.register
def _subquery(node: exp.Subquery, scope: Scope) -> Value:
    return scope.scalar(node, scope.columns)


@meaning_of.register
def _extract(node: exp.Extract, scope: Scope) -> Value:
    unit = Value("", "string", node.this.name, node, node.this.name)
    return called(FUNCTIONS, "extract", [unit, meaning(node.expression, scope)], node)


@meaning_of.register
def _interval(node: exp.Interval, scope: Scope) -> Value:
    raise unsupported("an interval by itself", node, "add it to an instant, or use timestampdiff")


@meaning_of.register
def _sign(node: exp.Neg | exp.Not | exp.NullSafeNEQ | exp.Is, scope: Scope) -> Value:
    inside = node.this
    match node:
        case exp.Neg() if isinstance(inside, exp.Literal) and not inside.is_string:
            return literal(inside, scope.source, "-")
        case exp.Neg():
            return _operator("unary-", [inside], node, scope)
        case exp.NullSafeNEQ():
            return _operator("not", [exp.NullSafeEQ(this=inside, expression=node.expression)], node, scope)
        case exp.Is():
            test = "null" if isinstance(node.expression, exp.Null) else str(node.expression.this).lower()
            return _operator(f"is{test}", [inside], node, scope)
    if isinstance(inside, exp.Is) and isinstance(inside.expression, exp.Null):
        return _operator("isnotnull", [inside.this], node, scope)
    return _operator("not", [inside], node, scope)


@meaning_of.register
def _several(node: exp.Between | exp.In | exp.Bracket, scope: Scope) -> Value:
    match node:
        case exp.Between():
            return _operator("between", [node.this, node.args["low"], node.args["high"]], node, scope)
        case exp.In() if node.args.get("query"):
            raise unsupported("IN (SELECT ..) anywhere but in WHERE, alone or between ANDs,", node, "use a join")
    return _operator("in" if isinstance(node, exp.In) else "[]", [node.this, *node.expressions], node, scope)


@meaning_of.register
def _binary(node: exp.Binary, scope: Scope) -> Value:
    right = node.expression
    if isinstance(node, exp.Add | exp.Sub) and isinstance(right.this if isinstance(right, exp.Add) else right, exp.Interval):
        return _moved(node, scope)
    if type(node) not in SIGNS:
        raise unsupported(f"this {node.key}", node)
    value = _operator(SIGNS[type(node)], [node.this, node.expression], node, scope)
    return called(OPERATORS, "not", [value], node) if node.args.get("negate") else value


def _operator(sign: str, operands: Sequence[exp.Expr], node: exp.Expr, scope: Scope) -> Value:
    values = [meaning(operand, scope) for operand in operands]
    kinds = [value.type for value in values]
    is_decimal = any(map(digits, kinds))
    if sign in {"+", "-", "*", "/", "%", "div"}:
        if "void" in kinds:
            raise unsupported("arithmetic with NULL", node)
        if is_decimal and "double" not in kinds:
            return _of_decimals(sign, values, node)
    value = called(OPERATORS, sign, values, node)
    return replace(value, name=None) if is_decimal and "double" not in kinds and sign in {"=", "<>", "<=>", "<", ">", "<=", ">="} else value


def _of_decimals(sign: str, values: Sequence[Value], node: exp.Expr) -> Value:
    """Spark's rules for digits, as far as all of them have a place."""
    sizes = [_size(value) for value in values]
    (precision, scale), (other_precision, other_scale) = sizes
    if sign == "*":
        total, point = precision + other_precision + 1, scale + other_scale
    else:
        point = max(scale, other_scale)
        total = max(precision - scale, other_precision - other_scale) + point + 1
    if sign not in {"+", "-", "*"} or total > 38:
        raise unsupported("this arithmetic with decimals", node, "write 100e0 for 100.0, or cast one side to double")
    one, other = (cast(value.sql, f"decimal({p},{s})") for value, (p, s) in zip(values, sizes, strict=True))
    name = None if None in {value.name for value in values} else f"({values[0].name} {sign} {values[1].name})"
    return Value(cast(f"({one} {sign} {other})", f"decimal({total},{point})"), f"decimal({total},{point})", name, node)


def _size(value: Value) -> tuple[int, int]:
    """A whole number that is written out has as many digits as it has; nothing else than numbers fits."""
    written = len(str(abs(value.constant))) if isinstance(value.constant, int) else None
    return digits(value.type) or (written or INTEGERS.get(value.type, 99), 0)


def literal(node: exp.Expr, source: str, sign: str = "") -> Value:
    """A value that is written out."""
    if isinstance(node, exp.Null):
        return Value("null", "void", "NULL", node)
    if isinstance(node, exp.Boolean):
        return Value(str(node.this).lower(), "boolean", str(node.this).lower(), node, node.this)
    written = source[node.meta["start"] : node.meta["end"] + 1]
    if node.is_string:
        said = string(written, node)
        return Value(text(said), "string", said, node, said)
    kind, value = number(sign + written, node)
    is_plain = kind != "double" or value == 0 or 1e-3 <= abs(value) < 1e7
    return Value(cast(text(str(value)) if kind not in INTEGERS else str(value), kind), kind, str(value) if is_plain else None, node, value)


@meaning_of.register
def _case(node: exp.Case, scope: Scope) -> Value:
    operand = node.this and meaning(node.this, scope)
    otherwise = meaning(node.args["default"], scope) if node.args.get("default") else None
    whens, names, results = [], ["CASE"], []
    for branch in node.args["ifs"]:
        condition, result = meaning(branch.this, scope), meaning(branch.args["true"], scope)
        if operand:
            condition = called(OPERATORS, "=", [operand, condition], node)
        if condition.type != "boolean":
            raise unsupported(f"{condition.type} in a condition", branch.this)
        whens.append(condition.sql)
        results.append(result)
        names += ["WHEN", condition.name or "?", "THEN", result.name or "?"]
    results += [otherwise] if otherwise else []
    kind = common(value.type for value in results) or "?"
    sql = [become(value, kind) for value in results]
    if None in sql:
        raise unsupported(f"a CASE of {' and '.join(dict.fromkeys(value.type for value in results))}", node, "cast them")
    written = " ".join(f"when {when} then {then.sql}" for when, then in zip(whens, sql, strict=False) if then)
    names += ["ELSE", otherwise.name or "?"] if otherwise else []
    last = sql[-1].sql if otherwise and sql[-1] else "null"
    return Value(f"(case {written} else {last} end)", kind, None if "?" in names else " ".join([*names, "END"]), node)


def _moved(node: exp.Binary, scope: Scope) -> Value:
    value, (months, micros) = meaning(node.this, scope), length(node.expression)
    if value.type == "date" and micros % MICROS["day"]:
        value = become(value, "timestamp") or value
    if value.type not in {"timestamp", "date"}:
        raise unsupported(f"{value.type} and an interval", node)
    moved = f"{SIGNS[type(node)]} interval '{months} months {micros} microseconds'"
    sql = f"aware(naive({value.sql}) {moved})" if value.type == "timestamp" else f"({value.sql} {moved})"
    return Value(cast(sql, value.type), value.type, None, node)


def converted(value: Value, kind: str, node: exp.Expr) -> Value:
    """A cast, where both engines make the same of a value, or end with an error."""
    name = None if value.name is None else f"CAST({value.name} AS {kind.upper()})"
    if kind not in SCALARS and not digits(kind):
        raise unsupported("a cast to this type", node)
    if kind == value.type:
        return replace(value, name=name, constant=None)
    if value.type == "string" and isinstance(value.constant, str) and kind != "binary":
        return Value(_of_text(value.constant, kind, node), kind, name, node)
    pair = (value.type, kind)
    is_wider = common(pair) == kind and (kind in INTEGERS or kind == "double")
    if not (value.type == "void" or pair in SAME_CASTS or pair in CASTS or is_wider):
        raise unsupported(f"a cast of {value.type} to {kind}", node)
    return Value(cast(CASTS.get(pair, "{}").format(value.sql), kind), kind, name, node)


def _of_text(written: str, kind: str, node: exp.Expr) -> str:
    if kind in {"date", "timestamp"}:
        return written_time(written, kind, node)
    is_whole, is_plain = written.lstrip("-").isdigit(), written.lstrip("-").replace(".", "", 1).isdigit()
    if written.isascii() and len(written) <= 18 and "--" not in written:
        if (kind in INTEGERS and is_whole) or (kind == "double" and is_plain and written[-1] != "." and written.lstrip("-")[0] != "."):
            return cast(text(written), kind)
        if kind == "double" and written.lower() in SPECIAL_NUMBERS:
            return cast(text(SPECIAL_NUMBERS[written.lower()]), kind)
    raise unsupported(f"a cast of {written!r} to {kind}", node)
