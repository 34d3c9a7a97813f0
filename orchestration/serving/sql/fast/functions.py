"""What a call or an operator means for values: the line of the tables that takes them, filled in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from orchestration.serving.sql.fast.errors import unsupported
from orchestration.serving.sql.fast.literals import day, instant, like_pattern, regular_expression, time_format
from orchestration.serving.sql.fast.signatures import CHOICES, RANGES, Signature, signatures
from orchestration.serving.sql.fast.types import INTEGERS, cast, common, digits, has, inner, is_number


@dataclass(frozen=True)
class Value:
    """An expression in DuckDB's SQL with Spark's type. `name`: of a column without alias, None if not known. `constant`: if written out."""

    sql: str
    type: str
    name: str | None
    node: exp.Expr | None = None
    constant: Any = None


def text(value: str) -> str:
    """A string in DuckDB's SQL, which knows no escapes but doubled quotes, and takes no character 0."""
    quoted = "'" + value.replace("'", "''") + "'"
    return "(" + quoted.replace("\0", "' || chr(0) || '") + ")" if "\0" in value else quoted


def called(lines: str, function: str, values: Sequence[Value], node: exp.Expr, *, distinct: bool = False, tail: str = "") -> Value:
    """What a function of one of the tables makes of values. `tail`: FILTER or OVER."""
    for is_wider in (False, True):
        for signature in signatures(lines).get(function, ()):
            if (sql := _fitting(signature, values, is_wider=is_wider)) is not None:
                kind = _type(signature.type, values, sql)
                if distinct and "$d" not in signature.sql:
                    break
                names = [value.name for value in values]
                name = None if None in names or signature.column == "?" else filled(signature.column, [str(each) for each in names])
                name = name.replace("(", "(DISTINCT ", 1) if name and distinct else name
                filling = [f"({each})" for each, _ in sql]
                return Value(f"({filled(signature.sql, filling, 'distinct' * distinct, tail)})", kind, name, node)
    raise unsupported(f"{function}({'distinct ' * distinct}{', '.join(value.type for value in values)})", node)


def filled(form: str, parts: Sequence[str], distinct: str = "", tail: str = "") -> str:
    """A form of the tables with the arguments in their places."""
    lists = {"*": ", ".join(parts), "+": ", ".join(parts[1:]), "$": " || ".join(parts), "d": distinct, "t": tail}
    return re.sub(r"\$([*+$dt]|[1-9])", lambda at: lists[at[1]] if at[1] in lists else parts[int(at[1]) - 1], form)


def _type(kind: str, values: Sequence[Value], sql: Sequence[tuple[str, str]]) -> str:
    parts = inner(values[0].type) if values else []
    match kind:
        case "same":
            return values[0].type
        case "T":
            return sql[-1][1]
        case "element" | "value":
            return parts[-1]
        case "keys" | "values":
            return f"array<{parts[kind == 'values']}>"
    return kind


def _fitting(signature: Signature, values: Sequence[Value], *, is_wider: bool) -> list[tuple[str, str]] | None:
    """SQL and type of each argument as the signature takes it; None where it does not."""
    takes = list(signature.takes)
    if takes and takes[-1].endswith(".."):
        takes = [*takes[:-1], *[takes[-1][:-2]] * (len(values) - len(takes) + 1)]
    if len(values) != len(takes):
        return None
    mixed = [value for value, kind in zip(values, takes, strict=True) if kind in "TKOL"]
    kind_of_all = _mixed(mixed, takes) if mixed else None
    taken = []
    for value, kind in zip(values, takes, strict=True):
        one = become(value, kind_of_all or "?") if kind in "TKOL" else _taken(value, kind, values[0], is_wider=is_wider)
        if one is None:
            return None
        taken.append((one.sql, one.type))
    return taken


def _mixed(values: Sequence[Value], takes: Sequence[str]) -> str | None:
    kinds = {value.type for value in values}
    if "L" in takes or "O" in takes:
        is_fit = not any(has(kind, "map", "array", "?") for kind in kinds)
    else:
        is_fit = "K" not in takes or not any(kind.startswith("array") or not is_key(kind) for kind in kinds)
    if "K" in takes or "O" in takes:
        instants = kinds & {"timestamp", "date"}
        if instants:
            kinds = {value.type for value in values if not _is_written(value)} | instants
    return common(sorted(kinds)) if is_fit else None


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
    if kind == "double" and isinstance(value.constant, int | str):
        return replace(value, sql=cast(text(repr(float(value.constant))), kind), type=kind)
    return replace(value, sql=cast(value.sql, kind), type=kind)


def written_time(written: str, kind: str, node: exp.Expr | None) -> str:
    """A date or an instant in DuckDB's SQL."""
    value = day(written, node) if kind == "date" else instant(written, node)
    return cast(text(value.isoformat()), kind)


def _taken(value: Value, kind: str, first: Value, *, is_wider: bool) -> Value | None:  # noqa: PLR0911
    if kind.startswith("#"):
        written = _written(value, kind[1:])
        return None if written is None else replace(value, sql=written)
    kinds = kind.split("|")
    if kind == "any" or value.type in kinds or (digits(value.type) and "decimal" in kinds) or value.type.partition("<")[0] == kind:
        return value
    match kind:
        case "number" if is_number(value.type) and (is_wider or value.type == "double"):
            return become(value, "double")
        case "condition":
            return become(value, "boolean")
        case "instant":
            return become(value, "timestamp")
        case "time" | "clock" if (
            value.type == "timestamp"
        ):  # DuckDB's own functions of instants look for zones, which takes ten times as long
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
    constant = value.constant
    if kind == "share":
        is_share = value.type.startswith("decimal") and 0 <= float(constant or 2) <= 1
        return repr(float(constant)) if is_share else None
    if kind.isdigit() or kind in RANGES:
        allowed = RANGES[kind] if kind in RANGES else range(int(kind), 2**30)
        return str(constant) if value.type == "int" and isinstance(constant, int) and constant in allowed else None
    if not _is_written(value):
        return None
    if kind in CHOICES:
        chosen = CHOICES[kind].get(constant.lower())
        return None if chosen is None else chosen if kind == "elapsed" else text(chosen)
    match kind:
        case "like":
            return text(like_pattern(constant, value.node))
        case "regex":
            return text(regular_expression(constant, value.node))
        case "format":
            return text(time_format(constant, value.node))
    return text(constant) if constant or kind == "text" else None
