"""Read devices, metrics and steps from a sample: everything a proposed conf is written from."""

import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from orchestration.conf.diagnostic import printable
from orchestration.conf.instants import seconds_of
from orchestration.conf.joined_names import with_parted_names
from orchestration.conf.roles import Roles, roles_of
from orchestration.conf.sample import Row, Sample, sample_of
from orchestration.conf.sample_times import MOST, with_whole_time
from orchestration.conf.vocabulary import UNKNOWN, WORDS, Scalar, is_called, is_no_value, is_unit_of, last, number_of, rank, snake, unit_in
from orchestration.errors import ConfError
from silver.short_forms import ELEMENT

STEPS = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 21600, 86400)
READINGS_PER_STEP = 10
DEFAULT_STEP_SECONDS = 600
MAX_DEVICES = 1_000
RISES, MANY_RISES = 3, 30
"""Readings that are greater than the one before, after which a metric that never falls is taken for a counter."""
GROUP = re.compile("[a-z][a-z0-9_]{0,39}")
HOUR, DAY = 3600, 86_400
DECADE_SECONDS = 10 * 365 * 86_400


@dataclass(frozen=True)
class Seen:
    """Readings of one metric in the sample. `unit` is the one most of them name."""

    count: int
    minimum: float
    maximum: float
    units: tuple[str, ...]
    words: dict[str, float]
    """Words of a switch, with the number that each stands for."""
    is_counter: bool
    """Whether it only rises, as a meter does."""


@dataclass(frozen=True)
class Proposal:
    """`interval_seconds` is the median between two readings of one device and metric; None where the sample has no two.

    `not_measured`: words that stand for no value, as they are written. `texts`: what else stands where a number should. `conflicts`: values
    whose device, metric and time are those of another value. `odd_times` cannot be read, or are ten years off. `rare`: fields that are read
    and come only in some events, in how many. `age_seconds`: how old most readings are. `groups`: metrics by device group.
    `group_of`: the group of each device, by the field `divides`, if one divides the fleet. `goes_back_on`: the day on which local times go
    back by an hour, as when summer time ends.
    """

    sample: Sample
    roles: Roles
    metrics: dict[str, Seen]
    devices: list[str]
    interval_seconds: float | None
    step_seconds: int
    not_measured: list[str]
    texts: list[str]
    conflicts: int
    odd_times: list[Scalar]
    rare: dict[str, int]
    age_seconds: int
    divides: str | None
    group_of: dict[str, str]
    groups: dict[str, list[str]]
    goes_back_on: str | None


def proposal_of(file: Path) -> Proposal:
    """Raises ConfError where the file is unreadable, or has no time or no number in it."""
    sample = with_whole_time(sample_of(file))
    roles = roles_of(sample)
    if isinstance(roles, str):
        raise ConfError(f"{file} {printable(roles)}; name a file of readings, or write the conf by hand from `tidemark init DIR`")
    sample, roles = with_parted_names(sample, roles)
    rows, times = sample.rows, [*dict.fromkeys(row[roles.time] for row in sample.rows if roles.time in row)]
    seconds = dict(zip(times, seconds_of(times, roles.time_format.format), strict=True)) if times else {}
    metrics = _metrics(sorted(rows, key=lambda row: seconds.get(row.get(roles.time, "")) or 0), roles, sample.units)
    if not metrics:
        raise ConfError(f"{file} holds no metric with a usable name and numbers; write the conf by hand from `tidemark init DIR`")
    interval = _interval(rows, roles, seconds)
    read = [(row.get(roles.device or ""), row.get(roles.time), *measured) for row in rows for measured in roles.measurements(row)]
    texts = [str(value).strip()[:60] for *_, value in read if number_of(value) is None]
    values = {(*key, number_of(value)) for *key, value in read if number_of(value) is not None}
    median = statistics.median([second for second in seconds.values() if second is not None] or [time.time()])
    counts = Counter(path for row in rows for path in row)
    devices = _devices(sample, roles)
    divides, group_of, groups = _groups(rows, roles, metrics, devices)
    return Proposal(
        sample,
        roles,
        metrics,
        devices,
        interval,
        _step(interval),
        not_measured=sorted({text for text in texts if is_no_value(text)}),
        texts=[text for text in texts if not is_no_value(text)],
        conflicts=len(values) - len({value[:-1] for value in values}) if roles.time else 0,
        odd_times=[value for value, second in seconds.items() if second is None or abs(second - median) > DECADE_SECONDS],
        rare={path: n for path in (roles.time, roles.unit, *roles.metrics.values()) if path and (n := counts[path]) < MOST * len(rows)},
        age_seconds=round(time.time() - median),
        divides=divides,
        group_of=group_of,
        groups=groups,
        goes_back_on=None if roles.time_format.names_zone or sample.each else _goes_back_on(rows, roles, seconds),
    )


def usable(name: str) -> bool:
    """Whether conf takes it as the name of a metric, device or unit."""
    return name.isprintable() and name.strip() != "" and len(name) <= 200


def suffix_of(file: Path) -> str:
    """The ending of the file's name, without that of gzip; empty where it is no plain one."""
    suffix = Path(file.name.removesuffix(".gz")).suffix
    return suffix if suffix[1:].isalnum() else ""


def _metrics(rows: list[Row], roles: Roles, below_header: Mapping[str, str]) -> dict[str, Seen]:
    values: dict[str, list[float]] = defaultdict(list)
    units: dict[str, Counter[str]] = defaultdict(Counter)
    words: dict[str, dict[str, float]] = defaultdict(dict)
    series: dict[str, dict[Scalar | None, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        unit = str(row.get(roles.unit or "", "")).strip()
        for metric, value in roles.measurements(row):
            number = number_of(value)
            if usable(metric) and number is not None:
                values[metric].append(number)
                series[metric][row.get(roles.device or "")].append(number)
                units[metric].update([unit] if usable(unit) else [])
                if (word := str(value).strip().lower()) in WORDS["switches"].keys() - {"true", "false"}:
                    words[metric][word] = number
    by_count = {metric: tuple(unit for unit, _ in counts.most_common()) for metric, counts in units.items()}
    if not roles.unit:
        named = {metric: below_header.get(roles.metrics.get(metric, "")) or _unit_of(metric, rows, roles) for metric in values}
        by_count |= {metric: (unit,) for metric, unit in named.items() if unit and usable(unit)}
    counters = {metric: not words[metric] and _only_rises(metric, (*by_count[metric], "")[0], series[metric].values()) for metric in values}
    return {
        metric: Seen(len(seen), min(seen), max(seen), by_count[metric], words[metric], counters[metric]) for metric, seen in values.items()
    }


def _unit_of(metric: str, rows: list[Row], roles: Roles) -> str | None:
    """The unit of a metric where the events have no field for those of all: beside its value alone, always the same; or in its name."""
    path = roles.metrics.get(metric, metric)
    above = path.removesuffix(last(path))
    is_alone = above not in ("", ELEMENT) and sum(other.startswith(above) for other in roles.metrics.values()) == 1
    fields = {
        field
        for row in rows
        for field in row
        if rank(field, "unit") < UNKNOWN and ((is_alone and field.startswith(above)) or is_unit_of(field, path))
    }
    units = {str(row[field]).strip() for row in rows for field in fields if field in row}
    return units.pop() if len(units) == 1 else unit_in(metric)


def _only_rises(metric: str, unit: str, series: Iterable[list[float]]) -> bool:
    """Whether a metric rises and never falls on any device: soon, where its name or unit is one of counters, else in many readings."""
    several = [values for values in series if values[1:]]
    steps = [step for values in several for step in pairwise(values)]
    is_named = is_called(metric, "rising") or unit in ("kWh", "Wh", "MWh", "m3")
    rises = sum(after > before for before, after in steps)
    return rises >= (RISES if is_named else MANY_RISES) and all(0 <= before <= after for before, after in steps)


def _groups(
    rows: list[Row], roles: Roles, metrics: Collection[str], devices: list[str]
) -> tuple[str | None, dict[str, str], dict[str, list[str]]]:
    """The field that divides the fleet, the group of each device, and the metrics of each group; else one group of all."""
    read = {(str(row.get(roles.device or "")).strip(), metric) for row in rows for metric, _ in roles.measurements(row)}
    for path in (path for path in roles.left_out if is_called(path, "group")):
        group_of = _fleet(rows, roles, path)
        seen = {(group_of.get(device), metric) for device, metric in read}
        groups = {group: [metric for metric in metrics if (group, metric) in seen] for group in sorted(set(group_of.values()))}
        if group_of.keys() >= set(devices) and all(groups.values()):
            return path, group_of, groups
    return None, dict.fromkeys(devices, "all"), {"all": [*metrics]}


def _fleet(rows: list[Row], roles: Roles, path: str) -> dict[str, str]:
    """The groups of devices by a field that divides them: each device has one value of it. Empty where it does not."""
    pairs = (
        {(str(row[roles.device]).strip(), snake(str(row.get(path, "")))) for row in rows if roles.device in row} if roles.device else set()
    )
    groups = dict(pairs)
    is_one = len(groups) == len(pairs) and all(GROUP.fullmatch(name) for name in groups.values())
    return groups if is_one and 1 < len(set(groups.values())) < len(groups) else {}


def _devices(sample: Sample, roles: Roles) -> list[str]:
    """Ids seen in the sample; where the file's name has to serve, its own."""
    name = sample.file.name.removesuffix(".gz").removesuffix(suffix_of(sample.file))
    names = {str(row[roles.device]).strip() for row in sample.rows if roles.device in row} if roles.device else {name}
    return sorted(filter(usable, names))[:MAX_DEVICES]


def _interval(rows: list[Row], roles: Roles, seconds: Mapping[Scalar, float | None]) -> float | None:
    times: dict[tuple[Scalar | None, Scalar | None], set[float]] = defaultdict(set)
    for row in rows:
        if (second := seconds.get(row.get(roles.time, ""))) is not None:
            times[row.get(roles.device or ""), row.get(roles.metric or "")].add(second)
    gaps = [later - earlier for seen in times.values() for earlier, later in pairwise(sorted(seen))]
    return statistics.median(gaps) if gaps else None


def _goes_back_on(rows: list[Row], roles: Roles, seconds: Mapping[Scalar, float | None]) -> str | None:
    times: dict[tuple[Scalar | None, Scalar | None], list[float]] = defaultdict(list)
    for row in rows:
        if (second := seconds.get(row.get(roles.time, ""))) is not None:
            times[row.get(roles.device or ""), row.get(roles.metric or "")].append(second)
    steps = [(before, after) for seen in times.values() for before, after in pairwise(seen) if after <= before]
    days = {time.strftime("%a %Y-%m-%d", time.gmtime(after)) for _, after in steps}
    is_of_clock = all(before - after <= HOUR and after % DAY < 4 * HOUR for before, after in steps)
    return days.pop().removeprefix("Sun ") if len(days) == 1 and is_of_clock and next(iter(days)).startswith("Sun") else None


def _step(interval: float | None) -> int:
    """About ten readings a window, at a length people use."""
    if interval is None:
        return DEFAULT_STEP_SECONDS
    return next((step for step in STEPS if step >= READINGS_PER_STEP * interval), STEPS[-1])


def file_name_pattern(file: Path) -> str:
    """Takes the device from the name of a file, in any folder below the landing folder."""
    suffix = suffix_of(file)
    return rf"([^/]+?){re.escape(suffix)}(?:\.gz)?$"
