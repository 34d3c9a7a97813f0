"""Which field of a sample is what: time, device, zone, metric, value, unit, flags of quality; the rest that is numeric is measured."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestration.conf.instants import TIME_OF_DAY, TimeFormat, time_format_of, why_no_time
from orchestration.conf.names import differ_in_case
from orchestration.conf.sample import Row, Sample
from orchestration.conf.vocabulary import (
    COUNTERS,
    DECIMAL_COMMA,
    FLAGS,
    PLAIN_DEVICES,
    PLAIN_METRICS,
    UNKNOWN,
    Scalar,
    is_measurement,
    is_number,
    is_numeric,
    is_word_for_none,
    last,
    rank,
    snake,
)
from silver.spec import ELEMENT

MAX_METRICS_OF_LONG_ROWS = 200
MAX_WORDS_OF_A_FLAG = 10
MOST = 0.95
Columns = dict[str, list[Scalar]]


@dataclass(frozen=True)
class Roles:
    """Fields by path. `metrics` of wide rows: field by name of metric; of long rows it is empty, and `metric` and `value` are set."""

    time: str
    time_format: TimeFormat
    other_times: list[str]
    device: str | None = None
    zone: str | None = None
    metric: str | None = None
    value: str | None = None
    unit: str | None = None
    metrics: dict[str, str] = field(default_factory=dict)
    flags: dict[str, list[Scalar]] = field(default_factory=dict)
    """What a sender says about the quality of its values, with what it says."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Every field that is not read, with the reason where there is one."""

    def measurements(self, row: Row) -> list[tuple[str, Scalar]]:
        """Metric and value as they stand in a row."""
        if self.metric and self.value:
            return [(str(row[self.metric]).strip(), row[self.value])] if self.metric in row and self.value in row else []
        return [(metric, row[path]) for metric, path in self.metrics.items() if path in row]


def roles_of(sample: Sample) -> Roles | str:
    """The roles; else a sentence that says what is missing."""
    columns = _columns(sample)
    times = {path: format for path, values in columns.items() if (format := _time(path, values))}
    half = [path for path in times if 2 * len(columns[path]) >= len(sample.rows)] or [*times]
    time = min(
        half, key=lambda path: (times[path].is_date, not path.startswith(ELEMENT), rank(path, "time"), path.count(".")), default=None
    )
    if time is None or times[time].is_date:
        if parts := _parts_of_time(columns, time):
            return f"has its time in several fields ({', '.join(parts)}), which is not read yet; write it into one, such as 2026-01-05 08:00:00"
    if time is None:
        return _why_no_time(columns)
    rest = {path: values for path, values in columns.items() if path not in times}
    numeric = [path for path, values in rest.items() if _is_share(values, is_numeric, 0.5 if rank(path, "value") < UNKNOWN else 0.8)]
    texts = [path for path in rest if path not in numeric]
    unit, zone = _unit(texts), _named(texts, "zone")
    metric, value = _metric_and_value(sample, rest, texts, numeric)
    flags = {path: rest[path] for path in rest if path not in (metric, value) and _is_flag(path, rest[path])}
    taken = {unit, zone, value, metric, *flags}
    device = _device(sample, {path: values for path, values in rest.items() if path not in taken}, (time, metric))
    measured = [path for path in numeric if path not in (device, zone)]
    if not metric:
        plain = [path for path in measured if path not in flags and any(is_measurement(path, value) for value in rest[path])]
        measured = plain or [path for path in measured if rank(path, "device") == UNKNOWN]  # a switch has a status, a meter a counter
        if not measured:
            return _why_no_number({path: rest[path] for path in texts if path not in (device, unit, zone)})
        flags = {path: values for path, values in flags.items() if path not in measured}
    metrics = {} if metric else _metrics(measured)
    read = {time, device, zone, metric, value, unit, *metrics.values()}
    reasons = {
        path: _why_not_read(
            path, columns.get(path, []), len(sample.rows), "a time" if path in times else "quality" if path in flags else ""
        )
        for path in sample.fields
        if path not in read
    }
    return Roles(time, times[time], [p for p in times if p != time], device, zone, metric, value, unit, metrics, flags, reasons)


def _metric_and_value(sample: Sample, rest: Columns, texts: list[str], numeric: list[str]) -> tuple[str | None, str | None]:
    """Of long rows. The value by its name; else the only number there is, where the name of the metric is plain enough (`type` may be
    anything). In a list an id that stands beside a value is the name of a metric."""
    few = [path for path in texts if len(set(map(str, rest[path]))) <= MAX_METRICS_OF_LONG_ROWS and 2 * len(rest[path]) >= len(sample.rows)]
    value = _named(numeric, "value")
    metric = _named(few, "metric") or (value and _named([path for path in few if path.startswith(ELEMENT)], "device"))
    if metric and not value and (metric.startswith(ELEMENT) or rank(metric, "metric") < PLAIN_METRICS):
        others = [path for path in numeric if not _is_flag(path, rest[path])]
        value = others[0] if len(others) == 1 else None
    return (metric, value) if metric and value else (None, None)


def _device(sample: Sample, rest: Columns, others: tuple[str | None, ...]) -> str | None:
    """By name, of fields that all rows have. In a list, one that tells elements apart which would else have the device and time of another."""
    possible = [path for path, values in rest.items() if rank(path, "device") < UNKNOWN and _may_be_device(path, values, len(sample.rows))]
    best = _named(possible, "device")
    inside = _named([path for path in possible if path.startswith(ELEMENT)], "device")

    def distinct(device: str | None) -> int:
        return len({tuple(row.get(path or "") for path in (device, *others)) for row in sample.rows})

    return inside if inside and (rank(best or "", "device") >= UNKNOWN - 1 or distinct(inside) > distinct(best)) else best


def _may_be_device(path: str, values: list[Scalar], rows: int) -> bool:
    """A field with a new value in every row numbers the messages, not the devices, but for one that is plainly named after a device."""
    distinct = set(map(str, values))
    is_id = not any(isinstance(value, bool) or (is_number(str(value)) and "." in str(value)) for value in values)
    repeats = len(values) <= 3 or 2 * len(distinct) <= len(values)
    return is_id and len(values) >= MOST * rows and (repeats or rank(path, "device") < PLAIN_DEVICES)


def _is_flag(path: str, values: list[Scalar]) -> bool:
    return bool(FLAGS.fullmatch(snake(last(path)))) and len(set(map(str, values))) <= MAX_WORDS_OF_A_FLAG


def _unit(texts: list[str]) -> str | None:
    """Of the whole row: of several fields none says which value is meant."""
    named = [path for path in texts if rank(path, "unit") < UNKNOWN]
    return _named(named, "unit") if len(named) == 1 or any(rank(path, "unit") < UNKNOWN - 1 for path in named) else None


def _metrics(measured: list[str]) -> dict[str, str]:
    """Field by name of metric: the last part of its path that says something, where that tells it from the others."""
    parts = {path: path.removeprefix(ELEMENT).split(".") for path in measured}
    names = {path: of[-2] if of[1:] and snake(of[-1]) in ("value", "val", "v") else of[-1] for path, of in parts.items()}
    counts = Counter(names.values())
    return {(name if counts[name] == 1 else path): path for path, name in names.items()}


def _why_not_read(path: str, values: list[Scalar], rows: int, role: str) -> str:
    if role:
        return role
    if _is_share(values, _is_decimal_comma, 0.5):
        return f"a decimal comma, such as {next(filter(_is_decimal_comma, values))}, which is no number"
    if COUNTERS.fullmatch(snake(last(path))) and _is_share(values, is_numeric, MOST):
        return "counts or names something"
    return f"in {len(values)} of {rows} events" if 0 < len(values) < MOST * rows else ""


def _why_no_time(columns: Columns) -> str:
    ranked = sorted(columns.items(), key=lambda column: rank(column[0], "time"))
    reasons = [f"{path} {reason}" for path, values in ranked if (reason := why_no_time(values, rank(path, "time") < UNKNOWN))]
    formats = "ISO 8601, epoch in s, ms or us since 2000, or a common date pattern"
    return f"holds no field with a time that can be read ({formats})" + (f": {'; '.join(reasons)}" if reasons else "")


def _why_no_number(texts: Columns) -> str:
    commas = [path for path, values in texts.items() if _is_share(values, _is_decimal_comma, 0.5)]
    words = [f"{path} (such as {', '.join(dict.fromkeys(str(value)[:30] for value in values[:3]))})" for path, values in texts.items()]
    reason = f"{', '.join(commas)} have a decimal comma, which is not read as a number" if commas else f"words are in {', '.join(words)}"
    return "holds no field with numbers to measure" + (f": {reason}" if words else "")


def _parts_of_time(columns: Columns, date: str | None) -> list[str]:
    """Fields that hold a date and a time of day, or year, month and day; none where there is one part only."""
    split = [path for path in columns if snake(last(path)) in ("year", "month", "day")]
    days = [date] if date else split if len(split) == 3 else []
    of_day = [
        path for path in columns if path not in days and (rank(path, "time of day") < UNKNOWN or _is_share(columns[path], _is_of_day, 0.5))
    ]
    return days + of_day if days and (of_day or not date) else []


def _is_of_day(value: Scalar) -> bool:
    return bool(TIME_OF_DAY.fullmatch(str(value)))


def _is_decimal_comma(value: Scalar) -> bool:
    return bool(DECIMAL_COMMA.fullmatch(str(value)))


def _columns(sample: Sample) -> Columns:
    """Values by path. Of fields that exclude each other (a value here and an object there, or `t` and `T`) the more frequent one."""
    columns: Columns = {}
    for row in sample.rows:
        for path, value in row.items():
            columns.setdefault(path, []).append(value)
    for path in sorted(columns, key=lambda path: len(columns[path])):
        if any(_exclude_each_other(path, other, sample.format) for other in columns):
            del columns[path]
    return columns


def _exclude_each_other(path: str, other: str, format: str) -> bool:
    is_inside = path.startswith(f"{other}.") or other.startswith(f"{path}.")
    return differ_in_case(path, other) or (is_inside and format == "json")


def _time(path: str, values: list[Scalar]) -> TimeFormat | None:
    """A number is a time only where the name says so, or where it is too exact for a measurement."""
    is_named = rank(path, "time") < UNKNOWN or re.search(r"time|date|_at$|(^|_)ts($|_)", snake(path))
    format = time_format_of(values, 0.5 if rank(path, "time") < UNKNOWN else MOST)
    if is_named or format is None or not format.is_whole_number:
        return format
    return format if format.format not in ("epoch_s", "yyyyMMdd") and len(set(values)) > 1 else None


def _named(paths: list[str], role: str) -> str | None:
    """The field that is most likely called by its role, an element's before an event's; None where none is."""
    best = min(paths, key=lambda path: (rank(path, role), not path.startswith(ELEMENT), path.count(".")), default=None)
    return best if best and rank(best, role) < UNKNOWN else None


def _is_share(values: list[Scalar], holds: Callable[[Scalar], bool], least: float) -> bool:
    """Whether it holds of this share of the values; words that stand for no value do not count."""
    held = [holds(value) for value in values if not is_word_for_none(value)]
    return bool(held) and sum(held) >= least * len(held)
