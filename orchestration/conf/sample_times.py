"""Columns of a sample, and which of them hold times: in one field, in parts of several fields, or in none."""

import re
from collections.abc import Callable
from dataclasses import replace

from orchestration.conf import vocabulary
from orchestration.conf.instants import DAYS, NUMBERS, TIME_OF_DAY, TimeFormat, time_format_of, why_no_time
from orchestration.conf.sample import Sample
from orchestration.conf.vocabulary import Scalar, is_no_value, is_of_transfer, last, rank, snake
from silver.short_forms import ELEMENT

MOST, RANKS_PER_LEVEL = 0.95, 10
"""A device is rather named on top than within an object: by so many names of the vocabulary a level."""
Columns = dict[str, list[Scalar]]


def with_whole_time(sample: Sample) -> Sample:
    """The sample with one field in the place of those that hold a time in parts, named after them all."""
    columns = columns_of(sample)
    times = {path: format for path, values in columns.items() if (format := time_of(path, values))}
    date = named([path for path in times if 2 * len(columns[path]) >= len(sample.rows)], "time", is_anything=True)
    is_whole = any(2 * len(columns[path]) >= len(sample.rows) and not format.is_date for path, format in times.items())
    parts, name = [] if is_whole else parts_of_time(columns, date), ""
    name = " ".join(parts)
    rows = [
        {path: value for path, value in row.items() if path not in parts} | ({name: " ".join(str(row[part]) for part in parts)})
        for row in sample.rows
        if all(part in row for part in parts)
    ]
    if not parts[1:] or time_format_of([row[name] for row in rows]) is None:
        return sample
    fields = [name, *(path for path in sample.fields if path not in parts)]
    return replace(sample, rows=rows, fields=fields, time_parts=tuple(parts))


def parts_of_time(columns: Columns, date: str | None) -> list[str]:
    """Fields of a date and of a time of day, or of a year, a month and a day; none where there is one part only."""
    split = [path for path in columns if snake(last(path)) in ("year", "month", "day")]
    days = [date] if date else split if len(split) == 3 else []
    others = {path: values for path, values in columns.items() if path not in days}
    of_day = [
        path for path in others if rank(path, "time of day") < vocabulary.UNKNOWN or is_share(others[path], TIME_OF_DAY.fullmatch, 0.5)
    ]
    return days + of_day if days and (of_day or not date) else []


def columns_of(sample: Sample) -> Columns:
    """Values by path. Of fields that exclude each other (a value here and an object there) the more frequent one."""
    columns: Columns = {}
    for row in sample.rows:
        for path, value in row.items():
            columns.setdefault(path, []).append(value)
    for path in sorted(columns, key=lambda path: len(columns[path])):
        if sample.format == "json" and any(path.startswith(f"{other}.") or other.startswith(f"{path}.") for other in columns):
            del columns[path]
    return columns


def time_of(path: str, values: list[Scalar]) -> TimeFormat | None:
    """A number is a time only where the name says so, or where it is too exact for a measurement."""
    is_named = rank(path, "time") < vocabulary.UNKNOWN
    format = time_format_of(values, 0.5 if is_named else MOST)
    is_number = format is not None and format.format in (*NUMBERS, "yyyyMMdd")
    if format is None or not is_number or is_named or re.search(r"time|date|_at$|(^|_)ts($|_)", snake(path)):
        return format
    return format if format.format not in ("epoch_s", DAYS, "yyyyMMdd") and len(set(values)) > 1 else None


def time_among(times: dict[str, TimeFormat]) -> str | None:
    """The likeliest time of measurement: with a time of day before a date, of an element before one of its event, of the message before one
    of its transfer."""
    full = [path for path, format in times.items() if not format.is_date]
    own = [path for path in full if not is_of_transfer(path)]
    return named([path for path in own if path.startswith(ELEMENT)] or own or full or [*times], "time", is_anything=True)


def named(paths: list[str], role: str, is_anything: bool = False) -> str | None:
    """The field that is most likely called by its role, an element's before an event's; None where none is, unless anything will do."""
    named = [path for path in paths if is_anything or rank(path, role) < vocabulary.UNKNOWN]
    steps = RANKS_PER_LEVEL if role == "device" else 0
    depth = {path: path.removeprefix(ELEMENT).count(".") for path in named}
    return min(named, key=lambda path: (rank(path, role) + steps * depth[path], not path.startswith(ELEMENT), depth[path]), default=None)


def is_share(values: list[Scalar], reading: Callable[[str], object], least: float) -> bool:
    """Whether `reading` makes something of this share of the values; words that stand for no value do not count."""
    held = [reading(str(value)) is not None for value in values if not is_no_value(value)]
    return bool(held) and sum(held) >= least * len(held)


def why_none_is_a_time(columns: Columns, lists: list[str], has_arrival: bool) -> str | None:
    """Say why no field is a time; None where nothing looks like one, and the arrival of the message will do."""
    ranked = sorted(columns.items(), key=lambda column: rank(column[0], "time"))
    reasons = [f"{path} {reason}" for path, values in ranked if (reason := why_no_time(values, rank(path, "time") < vocabulary.UNKNOWN))]
    if has_arrival and not reasons and not any(reason.endswith(" is a list") for reason in lists):
        return None
    formats = "ISO 8601, epoch in s, ms, us or ns since 2000, FILETIME, or a common date pattern"
    reason = "; ".join(reasons or ["none is called after a time", *lists])
    return f"holds no field with a time that can be read ({formats}): {reason}"
