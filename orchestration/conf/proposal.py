"""What a sample says about devices, metrics and steps: everything a proposed conf is written from."""

import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from orchestration.conf.diagnostic import counted, printable
from orchestration.conf.instants import Scalar, seconds_of
from orchestration.conf.roles import Roles, roles_of
from orchestration.conf.sample import Row, Sample, is_number, sample_of
from orchestration.errors import ConfError

STEPS = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 21600, 86400)
READINGS_PER_STEP = 10
DEFAULT_STEP_SECONDS = 600
MAX_DEVICES = 1_000


@dataclass(frozen=True)
class Seen:
    """Readings of one metric in the sample. `unit` is the one most of them name."""

    count: int
    minimum: float
    maximum: float
    units: tuple[str, ...]


@dataclass(frozen=True)
class Proposal:
    """`interval_seconds` is the median between two readings of one device and metric; None where the sample has no two."""

    sample: Sample
    roles: Roles
    metrics: dict[str, Seen]
    devices: list[str]
    interval_seconds: float | None
    step_seconds: int


def proposal_of(file: Path) -> Proposal:
    """Raises ConfError where the file is unreadable, or has no time or no number in it."""
    sample = sample_of(file)
    roles = roles_of(sample)
    if isinstance(roles, str):
        raise ConfError(f"{file} {roles}; name a file of readings, or write the conf by hand from `tidemark init DIR`")
    metrics = _metrics(sample.rows, roles)
    if not metrics:
        raise ConfError(f"{file} holds no metric with a usable name and numbers; write the conf by hand from `tidemark init DIR`")
    interval = _interval(sample.rows, roles)
    return Proposal(sample, roles, metrics, _devices(sample, roles), interval, _step(interval))


def findings_of(proposal: Proposal) -> list[str]:
    """What was found and what to confirm, a sentence each."""
    sample, roles = proposal.sample, proposal.roles
    first = {path: str(value)[:60] for row in reversed(sample.rows) for path, value in row.items()}
    shape = "long rows (one measurement each)" if roles.metric else "wide rows (several measurements each)"
    sentences = [f"{sample.format}, {shape}" + (f", in the list {sample.each}" if sample.each else ""), *sample.notes]
    sentences.append(f"time is {roles.time} (such as {first[roles.time]}), read as {roles.time_format.format}")
    if not roles.time_format.names_zone:
        sentences.append("times name no zone and are taken for UTC; confirm time_zone")
    if roles.time_format.is_ambiguous:
        sentences.append("day and month could change places in every time of the sample; confirm the format")
    if roles.other_times:
        sentences.append(f"other fields that hold times: {', '.join(roles.other_times)}; confirm which one is the time of measurement")
    if roles.device:
        ids = counted(len(proposal.devices), "id")
        sentences.append(f"device is {roles.device} (such as {first[roles.device]}), {ids} in the sample")
    else:
        sentences.append("no field names a device: the name of the file serves; confirm, or set a field or a constant")
    if roles.left_out:
        sentences.append(f"not read: {', '.join(roles.left_out)}")
    return [printable(sentence) for sentence in sentences]


def usable(name: str) -> bool:
    """Whether conf takes it as the name of a metric, device or unit."""
    return name.isprintable() and name.strip() != "" and len(name) <= 200


def suffix_of(file: Path) -> str:
    """The ending of the file's name, without that of gzip; empty where it is no plain one."""
    suffix = Path(file.name.removesuffix(".gz")).suffix
    return suffix if suffix[1:].isalnum() else ""


def _metrics(rows: list[Row], roles: Roles) -> dict[str, Seen]:
    values: dict[str, list[float]] = defaultdict(list)
    units: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        unit = str(row.get(roles.unit or "", "")).strip()
        for metric, value in _measurements(row, roles):
            number = _number(value)
            if usable(metric) and number is not None:
                values[metric].append(number)
                units[metric].update([unit] if usable(unit) else [])
    by_count = {metric: tuple(unit for unit, _ in counts.most_common()) for metric, counts in units.items()}
    return {metric: Seen(len(seen), min(seen), max(seen), by_count[metric]) for metric, seen in values.items()}


def _measurements(row: Row, roles: Roles) -> list[tuple[str, Scalar]]:
    if roles.metric and roles.value:
        is_whole = roles.metric in row and roles.value in row
        return [(str(row[roles.metric]).strip(), row[roles.value])] if is_whole else []
    return [(metric, row[path]) for metric, path in roles.metrics.items() if path in row]


def _number(value: Scalar) -> float | None:
    """As the silver layer reads it: also true and false."""
    text = str(value).lower()
    if text in ("true", "false"):
        return float(text == "true")
    return float(text) if is_number(text) else None


def _devices(sample: Sample, roles: Roles) -> list[str]:
    """Ids seen in the sample; where the file's name has to serve, also those of the files of its kind beside it."""
    if roles.device:
        names = {str(row[roles.device]).strip() for row in sample.rows if roles.device in row}
    else:
        suffix = suffix_of(sample.file)
        beside = [file for file in sample.file.resolve().parent.iterdir() if suffix_of(file) == suffix and file.is_file()]
        names = {file.name.removesuffix(".gz").removesuffix(suffix) for file in beside}
    return sorted(filter(usable, names))[:MAX_DEVICES]


def _interval(rows: list[Row], roles: Roles) -> float | None:
    times: dict[tuple[Scalar | None, Scalar | None], set[float]] = defaultdict(set)
    for row in rows:
        second = seconds_of(row[roles.time], roles.time_format.format) if roles.time in row else None
        if second is not None:
            times[row.get(roles.device or ""), row.get(roles.metric or "")].add(second)
    gaps = [later - earlier for seen in times.values() for earlier, later in pairwise(sorted(seen))]
    return statistics.median(gaps) if gaps else None


def _step(interval: float | None) -> int:
    """About ten readings a window, at a length people use."""
    if interval is None:
        return DEFAULT_STEP_SECONDS
    return next((step for step in STEPS if step >= READINGS_PER_STEP * interval), STEPS[-1])


def file_name_pattern(file: Path) -> str:
    """Takes the device from the name of a file, in any folder below the landing folder."""
    suffix = suffix_of(file)
    return rf"([^/]+?){re.escape(suffix)}(?:\.gz)?$"
