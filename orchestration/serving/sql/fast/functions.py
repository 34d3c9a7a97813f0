"""What a call or an operator means for values: the line of the tables that takes them, filled in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from orchestration.serving.sql.fast.errors import unsupported
from orchestration.serving.sql.fast.literals import day, instant, like_pattern, number, regular_expression, string, time_format
from orchestration.serving.sql.fast.signatures import CASTS, CHOICES, RANGES, Signature, signatures
from orchestration.serving.sql.fast.types import INTEGERS, cast, common, digits, has, inner, is_number

WHOLE, REAL = re.compile(r"-?[0-9]{1,17}"), re.compile(r"(?=.{1,18}$)-?[0-9]+(\.[0-9]+)?")
SPECIAL_NUMBERS = {"nan": "NaN", "infinity": "inf", "inf": "inf", "-infinity": "-inf", "-inf": "-inf"}


@dataclass(frozen=True)
class Value:
    """An expression, or a column of something in FROM, in DuckDB's SQL with Spark's type.

    `name`: of a column without alias, None if not known. `constant`: if written out. `path`: what may stand before the name of a column,
    such as (silver, readings). Hidden columns are not in `*`.
    """

    sql: str
    type: str
    name: str | None
    node: exp.Expr | None = None
    constant: Any = None
    path: tuple[str, ...] = ()
    is_hidden: bool = False


def text(value: str) -> str:
    """A string in DuckDB's SQL, which knows no escapes but doubled quotes, and takes no character 0."""
    quoted = "'" + value.replace("'", "''") + "'"
    return "(" + quoted.replace("\0", "' || chr(0) || '") + ")" if "\0" in value else quoted


def called(lines: str, function: str, values: Sequence[Value], node: exp.Expr, *, distinct: bool = False, tail: str = "") -> Value:
    """What a function of one of the tables makes of values. `tail`: FILTER or OVER."""
    names = [value.name for value in values]
    for is_wider in (False, True):
        for signature in signatures(lines).get(function, ()):
            taken = _fitting(signature, values, is_wider=is_wider)
            if taken is None or (distinct and "$d" not in signature.sql):
                continue
            name = None if None in names or signature.column == "?" else filled(signature.column, [str(each) for each in names])
            name = name.replace("(", "(DISTINCT ", 1) if name and distinct else name
            sql = filled(signature.sql, [f"({value.sql})" for value in taken], "distinct" * distinct, tail)
            return Value(f"({sql})", _type(signature.type, taken, values), name, node)
    kinds = ", ".join(repr(value.constant) if lines == CASTS and _is_written(value) else value.type for value in values)
    what = f"a cast of {kinds} to {function}" if lines == CASTS else f"{function}({'distinct ' * distinct}{kinds})"
    raise unsupported(what, node)


def filled(form: str, parts: Sequence[str], distinct: str = "", tail: str = "") -> str:
    """A form of the tables with the arguments in their places."""
    lists = {"*": ", ".join(parts), "+": ", ".join(parts[1:]), "$": " || ".join(parts), "d": distinct, "t": tail}
    return re.sub(r"\$([*+$dt]|[1-9])", lambda at: lists[at[1]] if at[1] in lists else parts[int(at[1]) - 1], form)


def _type(kind: str, taken: Sequence[Value], values: Sequence[Value]) -> str:
    if kind == "T":
        return taken[-1].type
    parts = [values[0].type, *inner(values[0].type)] if values else []
    places = {"same": 0, "element": -1, "value": -1, "keys": 1, "values": 2}
    if kind not in places:
        return kind
    return f"array<{parts[places[kind]]}>" if kind in {"keys", "values"} else parts[places[kind]]


def _fitting(signature: Signature, values: Sequence[Value], *, is_wider: bool) -> list[Value] | None:
    """Each argument as the signature takes it; None where it does not."""
    takes = list(signature.takes)
    if takes and takes[-1].endswith(".."):
        takes = [*takes[:-1], *[takes[-1][:-2]] * (len(values) - len(takes) + 1)]
    if len(values) != len(takes):
        return None
    mixed = _mixed([value for value, kind in zip(values, takes, strict=True) if kind in "TKOL"], takes)
    taken = []
    for value, kind in zip(values, takes, strict=True):
        ways = (_taken(value, each, values[0], mixed, is_wider=is_wider) for each in kind.split("|"))
        taken.append(next((way for way in ways if way), None))
    return None if None in taken else [each for each in taken if each]


def _mixed(values: Sequence[Value], takes: Sequence[str]) -> str:
    """The type in which all of T, K, O or L meet; "?" where there is none."""
    kinds = {value.type for value in values}
    is_ordered = "L" in takes or "O" in takes
    if is_ordered and any(has(kind, "map", "array", "?") for kind in kinds):
        return "?"
    if "K" in takes and any(kind.startswith("array") or not is_key(kind) for kind in kinds):
        return "?"
    if ("K" in takes or "O" in takes) and (instants := kinds & {"timestamp", "date"}):
        kinds = {value.type for value in values if not _is_written(value)} | instants
    return common(sorted(kinds)) or "?"


def is_key(kind: str) -> bool:
    """Whether both engines tell its values apart alike."""
    return not has(kind, "map", "?") and not kind.startswith(("array<double", "array<array"))


def _is_written(value: Value) -> bool:
    return value.type == "string" and isinstance(value.constant, str)


def become(value: Value, kind: str) -> Value | None:
    """As Spark converts a value without being asked to: to a wider type only, and written strings to instants; None where it does not."""
    if value.type == kind:
        return value
    if _is_written(value) and kind in {"timestamp", "date"}:
        return replace(value, sql=written_time(value.constant, kind, value.node), type=kind)
    if common((value.type, kind)) != kind:
        return None
    sql = text(repr(float(value.constant))) if kind == "double" and isinstance(value.constant, int | str) else value.sql
    return replace(value, sql=cast(sql, kind), type=kind)


def written_time(written: str, kind: str, node: exp.Expr | None) -> str:
    """A date or an instant in DuckDB's SQL."""
    value = day(written, node) if kind == "date" else instant(written, node)
    return cast(text(value.isoformat()), kind)


def _taken(value: Value, kind: str, first: Value, mixed: str, *, is_wider: bool) -> Value | None:  # noqa: PLR0911
    if kind.startswith("#"):
        written = _written(value, kind[1:])
        return None if written is None else replace(value, sql=written)
    if kind == "any" or kind in {value.type, value.type.partition("<")[0], value.type.partition("(")[0]}:
        return value
    match kind:
        case "T" | "K" | "O" | "L":
            return become(value, mixed)
        case "number" if is_number(value.type) and (is_wider or value.type == "double"):
            return become(value, "double")
        case "condition":
            return become(value, "boolean")
        case "instant":
            return become(value, "timestamp")
        case "time" | "clock" if value.type == "timestamp":
            # DuckDB's own functions of instants look for zones, which takes ten times as long.
            return replace(value, sql=f"naive({value.sql})")
        case "time" if value.type == "date":
            return value
        case "written" if _is_written(value):
            return become(value, "date")
        case "plain" if value.type in {"string", *INTEGERS, "boolean", "date"}:
            return replace(value, sql=cast(value.sql, "string"))
        case "index" if value.type in INTEGERS:  # Spark's are int, whatever they come from
            return replace(value, sql=cast(cast(value.sql, "int"), "bigint"))
        case "E" if value.type != "void" and is_key(value.type):
            return become(value, inner(first.type)[0])
    return become(value, kind) if is_wider and kind in {"bigint", "double"} and value.type in INTEGERS else None


def _written(value: Value, kind: str) -> str | None:  # noqa: PLR0911
    """A value that is written out, if it is of this kind."""
    constant, node = value.constant, value.node
    if kind == "share":
        return repr(float(constant)) if value.type.startswith("decimal") and 0 <= float(constant or 2) <= 1 else None
    if kind.isdigit() or kind in RANGES:
        allowed = RANGES[kind] if kind in RANGES else range(int(kind), 2**30)
        return str(constant) if value.type == "int" and isinstance(constant, int) and constant in allowed else None
    if not _is_written(value):
        return None
    if kind in CHOICES:
        chosen = CHOICES[kind].get(constant.lower())
        return chosen if chosen is None or kind == "elapsed" else text(chosen)
    if kind in {"whole", "real"}:
        special = SPECIAL_NUMBERS.get(constant.lower()) if kind == "real" else None
        return text(special or constant) if special or (WHOLE if kind == "whole" else REAL).fullmatch(constant) else None
    if kind in {"date", "timestamp"}:
        return written_time(constant, kind, node)
    readings = {"like": like_pattern, "regex": regular_expression, "format": time_format}
    if kind in readings:
        return text(readings[kind](constant, node))
    return text(constant) if constant or kind == "text" else None


def of_decimals(sign: str, values: Sequence[Value], node: exp.Expr) -> Value:
    """Spark's rules for digits, as far as all of them have a place. A whole number that is written out has as many digits as it has."""
    sizes = [
        digits(value.type) or (len(str(abs(value.constant))) if isinstance(value.constant, int) else INTEGERS.get(value.type, 99), 0)
        for value in values
    ]
    (precision, scale), (other_precision, other_scale) = sizes
    point, total = scale + other_scale, precision + other_precision + 1
    if sign != "*":
        point = max(scale, other_scale)
        total = max(precision - scale, other_precision - other_scale) + point + 1
    if sign not in {"+", "-", "*"} or total > 38:
        raise unsupported("this arithmetic with decimals", node, "write 100e0 for 100.0, or cast one side to double")
    one, other = (cast(value.sql, f"decimal({p},{s})") for value, (p, s) in zip(values, sizes, strict=True))
    kind = f"decimal({total},{point})"
    name = None if None in {value.name for value in values} else f"({values[0].name} {sign} {values[1].name})"
    return Value(cast(f"({one} {sign} {other})", kind), kind, name, node)


def _source(node: exp.Expr, source: str) -> str:
    """A literal as it was written; sqlglot knows no place of .5."""
    return source[node.meta["start"] : node.meta["end"] + 1] if "start" in node.meta else str(node.this)


def written_out(node: exp.Expr, source: str) -> exp.Literal | None:
    """A literal; 1L is 1::bigint for sqlglot."""
    if isinstance(node, exp.TryCast) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return node.this if _source(node.this, source)[-1:] in set("LlDd") else None
    return node if isinstance(node, exp.Literal) else None


def literal(node: exp.Literal, source: str, sign: str = "") -> Value:
    """A value that is written out."""
    written = _source(node, source)
    if node.is_string:
        said = string(written, node)
        return Value(text(said), "string", said, node, said)
    kind, value = number(sign + written, node)
    is_plain = kind != "double" or value == 0 or 1e-3 <= abs(value) < 1e7
    return Value(cast(text(str(value)) if kind not in INTEGERS else str(value), kind), kind, str(value) if is_plain else None, node, value)
