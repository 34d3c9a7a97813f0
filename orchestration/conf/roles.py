"""Which field of a sample is what: time, device, zone, metric, value, unit, flags of quality; the rest that is numeric is measured."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from expectations.wording import counted
from orchestration.conf import vocabulary
from orchestration.conf.instants import TimeFormat
from orchestration.conf.sample import Row, Sample
from orchestration.conf.sample_times import (
    MOST,
    Columns,
    columns_of,
    is_share,
    named,
    parts_of_time,
    time_among,
    time_of,
    why_none_is_a_time,
)
from orchestration.conf.vocabulary import (
    Scalar,
    is_called,
    is_flag,
    is_id,
    is_measurement,
    is_number,
    is_of_transfer,
    is_unit_of,
    last,
    number_of,
    rank,
    snake,
)
from silver.short_forms import ELEMENT

MAX_METRICS_OF_LONG_ROWS = 200
MAX_PARTS = 100


@dataclass(frozen=True)
class Flag:
    """A field by which a sender says how good its values are: how often it says what, and the rule for a good one.

    `is_sure`: a word says what is good; otherwise the most frequent value counts as good.
    """

    path: str
    seen: dict[str, int]
    holds: str
    is_sure: bool


@dataclass(frozen=True)
class Roles:
    """Fields by path. `metrics` of wide rows: field by name of metric; of long rows it is empty, and `metric` and `value` are set.

    `time` is empty where the arrival serves. `flags` by name. `left_out`: every field that is not read, with the reason where there is one.
    """

    time: str
    time_format: TimeFormat
    other_times: list[str]
    device: str | None
    other_devices: list[str]
    zone: str | None
    metric: str | None
    value: str | None
    unit: str | None
    metrics: dict[str, str]
    flags: dict[str, Flag]
    left_out: dict[str, str]

    @property
    def zone_of_time(self) -> str | None:
        """The zone that the name of the field says, such as `UTC Time`, or `Date Time, GMT+01:00` of HOBO loggers."""
        match = re.search(r"(?:GMT|UTC)([+-])(\d\d):?00\b", self.time)
        in_utc = "UTC" if {"utc", "gmt"} & {*snake(self.time).split("_")} else None
        return f"Etc/GMT{'-' if match[1] == '+' else '+'}{int(match[2])}" if match else in_utc

    def measurements(self, row: Row) -> list[tuple[str, Scalar]]:
        """Metric and value as they stand in a row."""
        if self.metric and self.value:
            return [(str(row[self.metric]).strip(), row[self.value])] if self.metric in row and self.value in row else []
        return [(metric, row[path]) for metric, path in self.metrics.items() if path in row]


def roles_of(sample: Sample) -> Roles | str:
    """The roles; else a sentence that says what is missing."""
    columns = columns_of(sample)
    lists = [f"{path} {sample.empty.get(path, 'is empty')}" for path in sample.fields if path not in columns]
    times = {path: format for path, values in columns.items() if (format := time_of(path, values))}
    time = time_among({path: format for path, format in times.items() if 2 * len(columns[path]) >= len(sample.rows)})
    if (time is None or times[time].is_date) and (parts := parts_of_time(columns, time)):
        return (
            f"has its time in several fields ({', '.join(parts)}) in a format that is not known; write time.fields and time.format by hand"
        )
    if time is None and (reason := why_none_is_a_time(columns, lists, has_arrival=sample.format == "json")):
        return reason
    rest = {path: values for path, values in columns.items() if path not in times}
    numeric = [path for path, values in rest.items() if _is_numeric(path, values)]
    texts = [path for path in rest if path not in numeric]
    zone = named(texts, "zone")
    metric, value = _metric_and_value(sample, rest, texts, numeric)
    flags = [path for path in rest if path not in (metric, value) and is_flag(path, rest[path])]
    others = {path: values for path, values in rest.items() if path not in (zone, metric, value, *flags)}
    devices = _devices(sample, others, (time, metric))
    device = devices[0] if devices else None
    measured = [value] if value else _measured({path: rest[path] for path in numeric if path != device}, flags)
    if not measured:
        return _why_no_number({path: rest[path] for path in texts if path not in (device, zone)}, numeric, lists)
    unit = _unit(texts, measured)
    flags, metrics = [path for path in flags if path not in measured], {} if metric else _metrics(measured)
    read = (time, device, zone, metric, value, unit, *metrics.values())
    reasons = dict.fromkeys(times, "a time") | dict.fromkeys(flags, "quality")
    unread = [path for path in sample.fields if path not in read]
    left_out = {path: reasons.get(path) or _why_not_read(path, columns.get(path, []), sample) for path in unread}
    other_times, regular = [path for path in times if path != time], [path for path in flags if 2 * len(rest[path]) >= len(sample.rows)]
    names = {path: f"quality_{snake(path.removeprefix(ELEMENT))[:40]}" if regular[1:] else "quality" for path in regular}
    said = {name: _flag(name, path, rest[path], metrics, len(sample.rows)) for path, name in names.items()}
    format = times.get(time or "", TimeFormat("arrival", names_zone=True))
    return Roles(time or "", format, other_times, device, devices[1:], zone, metric, value, unit, metrics, said, left_out)


def _is_numeric(path: str, values: list[Scalar]) -> bool:
    return is_share(values, number_of, 0.5 if rank(path, "value") < vocabulary.UNKNOWN else 0.8) and not is_id(values)


def _metric_and_value(sample: Sample, rest: Columns, texts: list[str], numeric: list[str]) -> tuple[str | None, str | None]:
    """Find metric and value of long rows. The value by its name; else the only number, if the name of the metric is plain enough (`type`
    may be anything).

    In a list an id beside a value is the name of a metric.
    """
    if "otlp" in sample.decode:
        return "name", "value"
    few = [path for path in texts if len(set(map(str, rest[path]))) <= MAX_METRICS_OF_LONG_ROWS and 2 * len(rest[path]) >= len(sample.rows)]
    value = named(numeric, "value")
    if value and sum(last(path) == last(value) for path in numeric) > 1:  # {"temperature": {"value": 20.5}, "pressure": {"value": 1013}}
        return None, None
    near = [path for path in few if rank(path, "metric") < vocabulary.PLAIN_METRICS or not value or _parent(path) == _parent(value)]
    metric = named(near, "metric") or (value and named([path for path in few if path.startswith(ELEMENT)], "device"))
    if metric and not value and (metric.startswith(ELEMENT) or rank(metric, "metric") < vocabulary.PLAIN_METRICS):
        numbers = [path for path in numeric if not is_flag(path, rest[path])]
        value = numbers[0] if len(numbers) == 1 else None
    return (metric, value) if metric and value else (None, None)


def _unit(texts: list[str], measured: list[str]) -> str | None:
    """The field of the unit of all values. One inside an object is of what is in that object, and `temp_unit` beside others of `temp`."""
    around = [path for path in texts if all(other.startswith(_parent(path)) for other in measured)]
    return named([path for path in around if sum(is_unit_of(path, other) for other in measured) in (0, len(measured))], "unit")


def _parent(path: str) -> str:
    return path.removesuffix(last(path))


def _measured(numeric: Columns, flags: list[str]) -> list[str]:
    """Fields that neither count nor name something, are no flags and not about how a message came; but a switch may have nothing but a
    status, and a meter a counter."""
    plain = [path for path, values in numeric.items() if path not in flags and any(is_measurement(path, value) for value in values)]
    return (
        [path for path in plain if not is_of_transfer(path)]
        or plain
        or [path for path in numeric if rank(path, "device") == vocabulary.UNKNOWN and not is_called(path, "flag")]
    )


def _devices(sample: Sample, rest: Columns, others: tuple[str | None, ...]) -> list[str]:
    """Fields that all rows have and that may name the device, the likeliest first: by its name, or in a list as it tells elements of one
    time apart."""
    possible = [
        path
        for path, values in rest.items()
        if (rank(path, "device") < vocabulary.UNKNOWN or (path == "key" and "by_key" in sample.decode))
        and _may_be_device(path, values, len(sample.rows))
    ]
    best, inside = named(possible, "device", is_anything=True), named([path for path in possible if path.startswith(ELEMENT)], "device")
    distinct = {device: len({tuple(row.get(path or "") for path in (device, *others)) for row in sample.rows}) for device in (best, inside)}
    first = (
        inside if inside and (best is None or rank(best, "device") >= vocabulary.UNKNOWN - 2 or distinct[inside] > distinct[best]) else best
    )
    return sorted(possible, key=lambda path: path != first)


def _may_be_device(path: str, values: list[Scalar], rows: int) -> bool:
    """A field with a new value in every row numbers the messages, not the devices, but for one that is plainly named after a device; small
    numbers inside an object number parts of a device."""
    is_no_number = not any(isinstance(value, bool) or (is_number(str(value)) and "." in str(value)) for value in values)
    is_part = "." in path.removeprefix(ELEMENT) and all(isinstance(value, int) and value < MAX_PARTS for value in values)
    repeats = len(values) <= 3 or 2 * len(set(map(str, values))) <= len(values)
    return is_no_number and not is_part and len(values) >= MOST * rows and (repeats or rank(path, "device") < vocabulary.PLAIN_DEVICES)


def _flag(name: str, path: str, values: list[Scalar], metrics: Mapping[str, str], rows: int) -> Flag:
    """`temp_valid` beside `temp` is of that metric only, and so is one that stands in an object with one value of several."""
    seen = Counter(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
    words: list[str] = next((words for name, words in vocabulary.WORDS["good"].items() if re.fullmatch(name, snake(last(path)))), [])
    good = next((value for value in seen if value.lower() in words), None)
    said, best = f"attributes['{name}']", good or seen.most_common(1)[0][0]
    said = said if len(values) == rows else f"coalesce({said}, '{best}')"
    own = [metric for metric in metrics if re.fullmatch(rf"{re.escape(snake(metric))}_.*|.*_{re.escape(snake(metric))}", snake(last(path)))]
    near = [metric for metric, field in metrics.items() if (above := _parent(field.removeprefix(ELEMENT))) and above in path]
    metric = own[0] if own else near[0] if len(near) == 1 < len(metrics) else None
    return Flag(path, dict(seen), (f"metric <> '{metric}' or " if metric else "") + f"{said} = '{best}'", is_sure=good is not None)


def _metrics(measured: list[str]) -> dict[str, str]:
    """Field by name of metric: the last part of its path that says something, where that tells it from the others."""
    parts = {path: [path] if " " in path else path.removeprefix(ELEMENT).split(".") for path in measured}  # Symo 8.2 (1) is no path
    is_plain = {path: steps[1:] and snake(steps[-1]) in ("value", "val", "v") for path, steps in parts.items()}
    names = {path: steps[-2 if is_plain[path] else -1].strip() or path for path, steps in parts.items()}
    counts = Counter(names.values())
    return {(name if counts[name] == 1 else path.strip()): path for path, name in names.items()}


def _why_not_read(path: str, values: list[Scalar], sample: Sample) -> str:
    if is_called(path, "counter") and is_share(values, number_of, MOST):
        return "counts or names something"
    if rank(path, "unit") < vocabulary.UNKNOWN:
        return "a unit of single fields"
    if is_share(values, number_of, MOST) and is_id(values):
        return "looks like an id"
    return f"in {len(values)} of {counted(len(sample.rows), sample.row)}" if 0 < len(values) < MOST * len(sample.rows) else ""


def _why_no_number(texts: Columns, numeric: list[str], lists: list[str]) -> str:
    odd_texts = {path: [str(value)[:60] for value in values if number_of(value) is None] for path, values in texts.items()}
    words = [
        f"{path} has words such as {odd[0]} in {len(odd)} of {counted(len(texts[path]), 'event')}" for path, odd in odd_texts.items() if odd
    ]
    odd = [f"{path} looks like a counter, an id or a status" for path in numeric]
    return f"holds no field with numbers to measure: {', '.join(words + odd + lists) or 'only times and names'}"
