"""Which field of a sample is what: time, device, zone, metric, value, unit; the rest that is numeric is measured."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from orchestration.conf.instants import Scalar, TimeFormat, time_format_of
from orchestration.conf.names import differ_in_case
from orchestration.conf.sample import Sample, is_number
from silver.spec import ELEMENT

NAMES = {
    "time": "ts timestamp event_time time datetime date_time measured_at recorded_at observed_at at date t",
    "device": """device_id device deviceid dev_eui sensor_id sensor sensorid machine_id machine asset_id asset station_id station
        node_id node unit_id thing host serial serial_number mac gateway dev id name""",
    "metric": """metric metric_name measurement measure parameter quantity variable signal channel tag
        property type kind name key m""",
    "value": "value val reading measured_value v number",
    "unit": "unit units uom u",
    "zone": "zone room area location site hall building floor line place",
    "counter": "seq sequence index idx row no nr counter id message_id msg_id n",
}
"""How fields of a role are called, the likeliest first."""
UNKNOWN = 100
"""Rank of a name that is not among them."""
PLAIN_METRICS = NAMES["metric"].split().index("property")
"""As many of those names are of a metric only; the others may be of anything."""
MAX_METRICS_OF_LONG_ROWS = 200


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
    left_out: list[str] = field(default_factory=list)


def roles_of(sample: Sample) -> Roles | str:
    """The roles; else a sentence that says what is missing."""
    columns = _columns(sample)
    left_out = sorted({path for row in sample.rows for path in row} - set(columns))
    times = {path: format for path, values in columns.items() if (format := _time(path, values))}
    if not times:
        return "holds no field with a time that can be read (ISO 8601, epoch in s, ms, us or ns since 2000, or a common date pattern)"
    time = min(times, key=lambda path: (_rank(path, "time"), path.count(".")))
    rest = [path for path in columns if path not in times]
    numeric = [path for path in rest if _is_share(columns[path], _is_numeric)]
    texts = [path for path in rest if path not in numeric]
    unit, zone = _named(texts, "unit"), _named(texts, "zone")
    metric = _named([path for path in texts if len(set(map(str, columns[path]))) <= MAX_METRICS_OF_LONG_ROWS], "metric")
    value = _value(numeric, metric) if metric else None
    taken = {unit, zone, value, metric if value else None}
    device = _named([path for path in rest if path not in taken and _repeats(columns[path])], "device")
    roles = Roles(time, times[time], [path for path in times if path != time], device, zone, unit=unit, left_out=left_out)
    if metric and value:
        return replace(roles, metric=metric, value=value)
    counters = [path for path in numeric if path != device and _rank(path, "counter") < UNKNOWN and _counts_up(columns[path])]
    measured = [path for path in numeric if path != device and path not in counters]
    if not measured:
        return "holds no field with numbers to measure (a decimal comma is not read as a number)"
    last = Counter(map(_last, measured))
    metrics = {(_last(path) if last[_last(path)] == 1 else path): path for path in measured}
    unread = [path for path in texts if path not in {device, unit, zone}]
    return replace(roles, metrics=metrics, left_out=[*left_out, *counters, *unread], unit=None)


def _value(numeric: list[str], metric: str) -> str | None:
    """By its name; else the only number there is, where the name of the metric is plain enough (`type` may be anything)."""
    is_plain = metric.startswith(ELEMENT) or _rank(metric, "metric") < PLAIN_METRICS
    return _named(numeric, "value") or (numeric[0] if is_plain and len(numeric) == 1 else None)


def _columns(sample: Sample) -> dict[str, list[Scalar]]:
    """Values by path. Of fields that exclude each other (a value here and an object there, or `t` and `T`) the more frequent one."""
    columns: dict[str, list[Scalar]] = {}
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
    format = time_format_of(values)
    if format is None or not format.format.startswith("epoch"):
        return format
    is_named = _rank(path, "time") < UNKNOWN or re.search(r"time|date|_at$|(^|_)ts($|_)", _snake(path))
    return format if is_named or (format.format != "epoch_s" and len(set(values)) > 1) else None


def _named(paths: list[str], role: str) -> str | None:
    """The field that is most likely called by its role."""
    ranks = {path: (_rank(path, role), path.count(".")) for path in paths if _rank(path, role) < UNKNOWN}
    return min(ranks, key=lambda path: ranks[path], default=None)


def _rank(path: str, role: str) -> int:
    """Place of the last part of a path among the names of a role, or of its last two (device.id: device_id)."""
    names = NAMES[role].split()
    parts = [_snake(part) for part in path.split(".")]
    tried = (parts[-1], "_".join(parts[-2:]))
    return min((names.index(name) for name in tried if name in names), default=UNKNOWN)


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()).strip("_")


def _last(path: str) -> str:
    return path.rsplit(".", 1)[-1]


def _is_numeric(value: Scalar) -> bool:
    return isinstance(value, bool | int | float) or is_number(value) or value.lower() in ("true", "false")


def _is_share(values: list[Scalar], holds: Callable[[Scalar], bool]) -> bool:
    return sum(map(holds, values)) >= 0.95 * len(values)


def _repeats(values: list[Scalar]) -> bool:
    """A field with a new value in every row numbers the messages, not the devices."""
    return len(values) <= 3 or len(set(map(str, values))) <= len(values) / 2


def _counts_up(values: list[Scalar]) -> bool:
    numbers = [float(value) for value in values if is_number(str(value))]
    return len(numbers) > 2 and all(later - earlier == 1 for earlier, later in pairwise(numbers))
