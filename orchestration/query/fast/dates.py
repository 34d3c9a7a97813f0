"""Functions of instants and dates whose SQL depends on their arguments, in DataFusion's SQL. A test compares each with Spark."""

from collections.abc import Sequence
from functools import partial

from orchestration.query.fast.instants import UNITS, date_of, format_of, instant_of
from orchestration.query.fast.operators import Meaning
from orchestration.query.fast.special import named, written_text
from orchestration.query.fast.telling import AmissError, differs
from orchestration.query.fast.types import cast, text
from orchestration.query.fast.value import Value, become

MICROS = {"second": 10**6, "minute": 60 * 10**6, "hour": 3_600 * 10**6, "day": 86_400 * 10**6, "week": 604_800 * 10**6}
PARTS = {
    **{name: name for name in ("year", "quarter", "month", "day", "hour", "minute")},
    "week": "week",
    "doy": "doy",
    "years": "year",
    "months": "month",
    "days": "day",
    "hours": "hour",
    "minutes": "minute",
}
"""What extract takes, and the part that DataFusion calls so."""
CLOCKS = {"current_timestamp": "now()", "now": "now()", "current_date": "current_date()"}


def _date_trunc(values: Sequence[Value], at: int) -> Value:
    unit, value = values
    cut = _unit(unit, UNITS)
    if value.type not in {"timestamp", "date"}:
        raise differs(f"date_trunc of {value.type}", at, "cast it to timestamp")
    sql = f"date_trunc({text(cut)}, {become(value, 'timestamp').sql})"
    return Value(sql, "timestamp", named("date_trunc({})", values), at)


def _trunc(values: Sequence[Value], at: int) -> Value:
    value, unit = values
    cut = _unit(unit, {name: each for name, each in UNITS.items() if each in {"year", "quarter", "month", "week"}})
    if value.type not in {"timestamp", "date"}:
        raise differs(f"trunc of {value.type}", at, "cast it to date")
    sql = cast(f"date_trunc({text(cut)}, {become(value, 'timestamp').sql})", "date")
    return Value(sql, "date", named("trunc({})", values), at)


def _unit(value: Value, known: dict[str, str]) -> str:
    name = written_text(value, "a unit of time").lower()
    if name not in known:
        raise differs(f"the unit {name!r}", value.at, f"use one of {', '.join(dict.fromkeys(known.values()))}")
    return known[name]


def _date_format(values: Sequence[Value], at: int) -> Value:
    value, pattern = values
    if value.type not in {"timestamp", "date"}:
        raise differs(f"date_format of {value.type}", at)
    form = format_of(written_text(pattern, "date_format"), pattern.at)
    return Value(f"to_char({become(value, 'timestamp').sql}, {text(form)})", "string", named("date_format({})", values), at)


def _extract(form: str, values: Sequence[Value], at: int) -> Value:
    """extract and date_part: whole numbers only, as Spark gives seconds with their parts."""
    field, value = values
    name = written_text(field, "extract").lower()
    is_of_clock = PARTS.get(name) in {"hour", "minute"}
    if name not in PARTS or value.type not in ({"timestamp"} if is_of_clock else {"timestamp", "date"}):
        raise differs(f"{name} of {value.type}", at, f"use one of {', '.join(dict.fromkeys(PARTS.values()))}")
    column = None if field.name is None or value.name is None else form.format(field.name, value.name)
    return Value(f"date_part({text(PARTS[name])}, {value.sql})", "int", column, at)


def _elapsed(function: str, values: Sequence[Value], at: int) -> Value:
    """timestampdiff: whole units between instants, cut towards 0."""
    unit, start, end = values
    name = str(unit.constant).lower()
    if unit.type != "unit" or name not in MICROS:
        raise differs(f"{function} in this unit", at, f"use one of {', '.join(MICROS)}")
    begin, until = (f"arrow_cast({become(value, 'timestamp').sql}, 'Int64')" for value in (start, end))
    column = named("timestampdiff({})", values)
    return Value(f"(({until} - {begin}) / {MICROS[name]})", "bigint", column, at)


def moved(value: Value, months: int, micros: int, at: int) -> Value:
    """An instant or a date and a length of time."""
    if value.type == "date" and micros % MICROS["day"]:
        value = become(value, "timestamp")
    if value.type not in {"timestamp", "date"}:
        raise differs(f"{value.type} and an interval", at)
    length = f"{months} months" if months else f"{micros // MICROS['day']} days" if value.type == "date" else f"{micros} microseconds"
    return Value(f"({value.sql} + interval '{length}')", value.type, None, at)


def _clock(function: str, values: Sequence[Value], at: int) -> Value:
    if values:
        raise ValueError
    kind = "date" if function == "current_date" else "timestamp"
    return Value(cast(CLOCKS[function], kind), kind, f"{function}()", at)


def _from_text(function: str, values: Sequence[Value], at: int) -> Value:
    """to_date and to_timestamp of what is written out; None of these functions for other values."""
    (value,) = values
    kind = function.removeprefix("to_")
    if value.type == "string" and isinstance(value.constant, str):
        of_kind = date_of(value.constant, value.at) if kind == "date" else instant_of(value.constant, value.at)
        return Value(of_kind, kind, named(f"{function}({{}})", values), at)
    if value.type not in {"date", "timestamp"}:
        raise differs(f"{function} of {value.type}", at)
    return Value(cast(value.sql, kind), kind, named(f"{function}({{}})", values), at)


def unit_of(name: str, at: int) -> Value:
    """The first argument of timestampdiff, which is no column."""
    if name.lower() not in MICROS:
        raise AmissError(f"timestampdiff of {name} is not known here; use one of {', '.join(MICROS)}", at)
    return Value("", "unit", name, at, name)


FUNCTIONS: dict[str, Meaning] = {
    **{name: partial(_clock, name) for name in CLOCKS},
    **{name: partial(_from_text, name) for name in ("to_date", "to_timestamp")},
    **{name: partial(_elapsed, name) for name in ("timestampdiff", "datediff in units")},
    "date_format": _date_format,
    "date_part": partial(_extract, "date_part({}, {})"),
    "date_trunc": _date_trunc,
    "extract": partial(_extract, "extract({} FROM {})"),
    "trunc": _trunc,
}
"""By their names."""
