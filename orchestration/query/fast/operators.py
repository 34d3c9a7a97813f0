"""Operators: what Spark means by a sign, in DataFusion's SQL. Spark is in ANSI mode: what overflows or divides by 0 is an error."""

from collections.abc import Callable, Sequence
from functools import partial

from orchestration.query.fast.patterns import like_pattern, regular_expression
from orchestration.query.fast.telling import differs
from orchestration.query.fast.types import INTEGERS, as_decimal, cast, common, digits, text
from orchestration.query.fast.value import (
    Value,
    alike,
    become,
    comparable,
    require_boolean,
    require_key,
    require_number,
    require_order,
)

Meaning = Callable[[Sequence[Value], int], Value]

EXACT = "decimal(20,0)"
"""Holds what DataFusion would let overflow in silence; the way back to bigint is an error where Spark ends with one."""
BROKEN = "cast(1 / 0 as double)"
"""Ends the query, as a division of doubles by 0 does in Spark."""


def exact(sign: str, left: str, right: str, kind: str) -> str:
    """Of whole numbers, with an error where the result has no place in the type."""
    wide = "bigint" if kind == "int" else EXACT
    return cast(f"({cast(left, wide)} {sign} {cast(right, wide)})", kind)


def _named(form: str, *values: Value) -> str | None:
    names = [value.name for value in values]
    return None if None in names else form.format(*names)


def _arithmetic(sign: str, values: Sequence[Value], at: int) -> Value:
    left, right = values
    if "void" in {left.type, right.type}:
        raise differs("arithmetic with NULL", at)
    for value in values:
        require_number(value)
    kind, name = common((left.type, right.type)), _named(f"({{}} {sign} {{}})", *values)
    if kind in INTEGERS:
        return Value(exact(sign, left.sql, right.sql, kind), kind, name, at)
    if kind != "double":
        return _of_decimals(sign, left, right, name, at)
    one, other = (become(value, "double") for value in values)
    sql = unless_by_0(sign, one, other) if sign == "%" else f"({one.sql} {sign} {other.sql})"
    return Value(sql, "double", name, at)


def _of_decimals(sign: str, left: Value, right: Value, name: str | None, at: int) -> Value:
    (precision, scale), (other_precision, other_scale) = map(_of_written, (left, right))
    if sign == "*":
        total, point = precision + other_precision + 1, scale + other_scale
    else:
        point = max(scale, other_scale)
        total = max(precision - scale, other_precision - other_scale) + point + 1
    if sign == "%" or total > 38:
        raise differs("these decimals", at, "cast one of them to double")
    kind = f"decimal({total},{point})"
    one, other = (cast(value.sql, f"decimal({p},{s})") for value, (p, s) in ((left, _of_written(left)), (right, _of_written(right))))
    return Value(cast(f"({one} {sign} {other})", kind), kind, name, at)


def _of_written(value: Value) -> tuple[int, int]:
    """A whole number that is written out has as many digits as it has."""
    if value.type in INTEGERS and isinstance(value.constant, int):
        return len(str(abs(value.constant))), 0
    return as_decimal(value.type)


def unless_by_0(sign: str, left: Value, divisor: Value) -> str:
    """A division of doubles, which ends the query where the divisor is 0; by nothing, or of nothing, it is null."""
    divided = f"({left.sql} {sign} {divisor.sql})"
    if isinstance(divisor.constant, int | float | str) and float(divisor.constant) != 0:
        return divided
    return f"(case when {divisor.sql} = 0e0 and {left.sql} is not null then {BROKEN} else {divided} end)"


def _divided(values: Sequence[Value], at: int) -> Value:
    left, right = values
    for value in values:
        require_number(value)
    if any(map(digits, (left.type, right.type))) and "double" not in {left.type, right.type}:
        raise differs("a division of decimals", at, "write 100e0 for 100.0, or cast one side to double")
    sql = unless_by_0("/", become(left, "double"), become(right, "double"))
    return Value(sql, "double", _named("({} / {})", left, right), at)


def _whole_division(values: Sequence[Value], at: int) -> Value:
    if any(value.type not in INTEGERS for value in values):
        raise differs("DIV of other than whole numbers", at, "divide by / and use floor")
    one, other = (cast(value.sql, "bigint") for value in values)
    return Value(f"({one} / {other})", "bigint", _named("({} div {})", *values), at)


def _negative(values: Sequence[Value], at: int) -> Value:
    (value,) = values
    require_number(value)
    sql = exact("-", "0", value.sql, value.type) if value.type in INTEGERS else f"(- {value.sql})"
    return Value(sql, value.type, _named("(- {})", value), at)


def _positive(values: Sequence[Value], at: int) -> Value:
    (value,) = values
    require_number(value)
    return Value(value.sql, value.type, _named("(+ {})", value), at)


def _compared(sign: str, values: Sequence[Value], at: int) -> Value:
    for value in values:
        require_key(value) if sign in {"=", "<>", "<=>"} else require_order(value)
        if value.type.startswith("array"):
            raise differs("a comparison of arrays", at)
    left, right = alike(list(values), is_comparison=True)
    meant = "is not distinct from" if sign == "<=>" else sign
    form = "(NOT ({} = {}))" if sign == "<>" else f"({{}} {sign} {{}})"
    name = None if any(map(digits, (left.type, right.type))) else _named(form, *values)
    return Value(f"({comparable(left)} {meant} {comparable(right)})", "boolean", name, at)


def _between(values: Sequence[Value], at: int) -> Value:
    value, least, greatest = values
    above, below = _compared(">=", (value, least), at), _compared("<=", (value, greatest), at)
    return Value(f"({above.sql} and {below.sql})", "boolean", _named("between({}, {}, {})", *values), at)


def _in(values: Sequence[Value], at: int) -> Value:
    for value in values:
        require_key(value)
        if value.type.startswith("array"):
            raise differs("a comparison of arrays", at)
    one, *among = (comparable(each) for each in alike(list(values), is_comparison=True))
    name = _named(f"({{}} IN ({', '.join(['{}'] * len(among))}))", *values)
    if all(each.constant is not None or each.type == "void" for each in values[1:]):
        return Value(f"({one} in ({', '.join(among)}))", "boolean", name, at)
    # DataFusion answers null for a list with a CASE in it (measured with 55: 5 in (0, case when x = 72 then null else x end, 7)).
    return Value(f"({' or '.join(f'{one} = {each}' for each in among)})", "boolean", name, at)


def _logical(word: str, values: Sequence[Value], at: int) -> Value:
    left, right = (require_boolean(value, word.upper(), may_be_null=True).sql for value in values)
    return Value(f"({left} {word} {right})", "boolean", _named(f"({{}} {word.upper()} {{}})", *values), at)


def _not(values: Sequence[Value], at: int) -> Value:
    (value,) = values
    return Value(f"(not {require_boolean(value, 'NOT', may_be_null=True).sql})", "boolean", _named("(NOT {})", value), at)


def _is(test: str, form: str, values: Sequence[Value], at: int) -> Value:
    (value,) = values
    sql = value.sql if "null" in test else require_boolean(value, f"IS {test.upper()}").sql
    return Value(f"({sql} is {test})", "boolean", _named(form, value), at)


def _joined(values: Sequence[Value], at: int) -> Value:
    """`||` and concat: null where one of them is null."""
    if any(value.type not in {"string", "int", "bigint", "boolean", "date"} for value in values):
        raise differs("a concatenation of other than strings", at, "cast to string what is not")
    parts = [value.sql if value.type == "string" else cast(value.sql, "string") for value in values]
    return Value(f"({' || '.join(parts)})", "string", _named(f"concat({', '.join(['{}'] * len(values))})", *values), at)


def _like(word: str, values: Sequence[Value], at: int) -> Value:
    value, pattern = values
    if value.type != "string" or not isinstance(pattern.constant, str) or pattern.type != "string":
        raise differs(f"this {word.upper()}", at, "compare a string with a pattern that is written out")
    if word == "rlike":
        sql = f"regexp_like({value.sql}, {text(regular_expression(pattern.constant, pattern.at))})"
    elif word == "ilike":
        sql = f"(lower({value.sql}) like lower({text(like_pattern(pattern.constant, pattern.at))}))"
    else:
        sql = f"({value.sql} like {text(like_pattern(pattern.constant, pattern.at))})"
    form = {"like": "{} LIKE {}", "ilike": "ilike({}, {})", "rlike": "RLIKE({}, {})"}[word]
    return Value(sql, "boolean", _named(form, *values), at)


OPERATORS: dict[str, Meaning] = {
    **{sign: partial(_arithmetic, sign) for sign in ("+", "-", "*", "%")},
    **{sign: partial(_compared, sign) for sign in ("=", "<>", "<=>", "<", ">", "<=", ">=")},
    **{word: partial(_like, word) for word in ("like", "ilike", "rlike")},
    **{word: partial(_logical, word) for word in ("and", "or")},
    "/": _divided,
    "div": _whole_division,
    "unary -": _negative,
    "unary +": _positive,
    "between": _between,
    "in": _in,
    "not": _not,
    "is null": partial(_is, "null", "({} IS NULL)"),
    "is not null": partial(_is, "not null", "({} IS NOT NULL)"),
    "is unknown": partial(_is, "null", "({} IS NULL)"),
    "is not unknown": partial(_is, "not null", "({} IS NOT NULL)"),
    "is true": partial(_is, "true", "({} <=> true)"),
    "is false": partial(_is, "false", "({} <=> false)"),
    "||": _joined,
    "concat": _joined,
}
"""By their names in syntax."""
