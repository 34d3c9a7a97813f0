"""What a sample says about devices, metrics and steps: everything a proposed conf is written from."""

import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from orchestration.conf.diagnostic import counted, printable
from orchestration.conf.instants import seconds_of
from orchestration.conf.roles import MOST, Roles, roles_of
from orchestration.conf.sample import Row, Sample, sample_of
from orchestration.conf.vocabulary import GOOD, NEGATIVE, NOT_BAD, SWITCHES, Scalar, is_word_for_none, last, number_of, snake
from orchestration.errors import ConfError

STEPS = (1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 21600, 86400)
READINGS_PER_STEP = 10
DEFAULT_STEP_SECONDS = 600
MAX_DEVICES = 1_000
MAX_AGE_SECONDS = 10 * 365 * 86_400


@dataclass(frozen=True)
class Seen:
    """Readings of one metric in the sample. `unit` is the one most of them name."""

    count: int
    minimum: float
    maximum: float
    units: tuple[str, ...]
    words: dict[str, float]
    """Those of a switch, with the number that they stand for."""


@dataclass(frozen=True)
class Flag:
    """What a sender says about the quality of its values: `seen` with counts, and `good`, which is said of a good one."""

    name: str
    path: str
    good: str
    seen: dict[str, int]


@dataclass(frozen=True)
class Proposal:
    """`interval_seconds` is the median between two readings of one device and metric; None where the sample has no two."""

    sample: Sample
    roles: Roles
    metrics: dict[str, Seen]
    devices: list[str]
    interval_seconds: float | None
    step_seconds: int
    flags: list[Flag]
    not_measured: list[str]
    """Words that stand for no value, as they are written."""
    age_seconds: int | None
    """Of the median time, where that is more than ten years."""


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
    words = {str(value).strip() for row in sample.rows for _, value in roles.measurements(row) if is_word_for_none(value)}
    return Proposal(
        sample, roles, metrics, _devices(sample, roles), interval, _step(interval), _flags(roles), sorted(words), _age(sample, roles)
    )


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
    if roles.time_format.is_date:
        sentences.append("times are dates without a time of day")
    if roles.other_times:
        sentences.append(f"other fields that hold times: {', '.join(roles.other_times)}; confirm which one is the time of measurement")
    if roles.device:
        ids = counted(len(proposal.devices), "id")
        sentences.append(f"device is {roles.device} (such as {first[roles.device]}), {ids} in the sample")
    else:
        sentences.append("no field names a device in all rows: the name of the file serves; confirm, or set a field or a constant")
    sentences += _doubts(proposal)
    if roles.left_out:
        names = [f"{path or 'a field without a name'}" + (f" ({reason})" if reason else "") for path, reason in roles.left_out.items()]
        sentences.append(f"not read: {', '.join(names)}")
    return [printable(sentence) for sentence in sentences]


def _doubts(proposal: Proposal) -> Iterator[str]:
    """Where the proposal may be wrong, or leaves readings out."""
    sample, roles = proposal.sample, proposal.roles
    rows = len(sample.rows)
    counts = Counter(path for row in sample.rows for path in row)
    read = [path for path in (roles.time, roles.unit, *roles.metrics.values()) if path and counts[path] < MOST * rows]
    if read:
        noun = f"elements of {sample.each}" if sample.each else "events"
        yield f"come only in some of {rows} {noun}: {', '.join(f'{path} ({counts[path]})' for path in read)}"
    times = [row[roles.time] for row in sample.rows if roles.time in row]
    if odd := [value for value in times if seconds_of(value, roles.time_format.format) is None]:
        yield f"{len(odd)} of {len(times)} times are outside 2000 to 2100 or in another format (such as {odd[0]})"
    if sample.encoding:
        yield f"the text is {sample.encoding}, not UTF-8: see encoding in sources.yml"
    if proposal.age_seconds:
        yield "most times are older than ten years: set policy.max_age_seconds in pipeline.yml"
    values: dict[tuple[Scalar | None, ...], set[float]] = defaultdict(set)
    texts: Counter[str] = Counter()
    for row in sample.rows:
        for metric, value in roles.measurements(row):
            if (number := number_of(value)) is not None:
                values[row.get(roles.device or ""), row.get(roles.time), metric].add(number)
            elif not is_word_for_none(value):
                texts[str(value)[:60]] += 1
    if conflicts := sum(len(of) - 1 for of in values.values()):
        yield f"{counted(conflicts, 'value')} would be lost: device, metric and time are those of another one; confirm all three"
    if texts:
        yield f"{counted(texts.total(), 'value')} of metrics are texts, which go to silver.quarantine: {', '.join([*texts][:5])}"
    if proposal.not_measured:
        yield f"words for no value: {', '.join(proposal.not_measured)}; see not_measured in sources.yml"
    if words := {word: number for seen in proposal.metrics.values() for word, number in seen.words.items()}:
        yield f"words for numbers: {', '.join(f'{word} for {number:g}' for word, number in words.items())}; see words in metrics.yml"
    for flag in proposal.flags:
        said = ", ".join(f"{value} ({count})" for value, count in flag.seen.items())
        yield f"{flag.path} says how good a value is: {said}; see attributes in sources.yml and the rule in rules.yml"
    if roles.unit and not roles.metric and len(roles.metrics) > 1:
        yield f"{roles.unit} is taken for the unit of every metric; confirm"
    yield "the last windows stay open for a while, so gold may be empty after the first run: see idle_close_seconds in groups.yml"


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
    words: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        unit = str(row.get(roles.unit or "", "")).strip()
        for metric, value in roles.measurements(row):
            number = number_of(value)
            if usable(metric) and number is not None:
                values[metric].append(number)
                units[metric].update([unit] if usable(unit) else [])
                if (word := str(value).strip()).lower() in SWITCHES.keys() - {"true", "false"}:
                    words[metric][word] = number
    by_count = {metric: tuple(unit for unit, _ in counts.most_common()) for metric, counts in units.items()}
    return {metric: Seen(len(seen), min(seen), max(seen), by_count[metric], words[metric]) for metric, seen in values.items()}


def _flags(roles: Roles) -> list[Flag]:
    flags = []
    for path, values in roles.flags.items():
        seen = Counter(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
        words = NOT_BAD if NEGATIVE.search(snake(last(path))) else GOOD
        good = next((value for value in seen if value.lower() in words), seen.most_common(1)[0][0])
        flags.append(Flag(last(path) if roles.flags.keys() - {path} else "quality", path, good, dict(seen)))
    return flags


def _devices(sample: Sample, roles: Roles) -> list[str]:
    """Ids seen in the sample; where the file's name has to serve, its own."""
    name = sample.file.name.removesuffix(".gz").removesuffix(suffix_of(sample.file))
    names = {str(row[roles.device]).strip() for row in sample.rows if roles.device in row} if roles.device else {name}
    return sorted(filter(usable, names))[:MAX_DEVICES]


def _age(sample: Sample, roles: Roles) -> int | None:
    seconds = [second for row in sample.rows if (second := seconds_of(row.get(roles.time, ""), roles.time_format.format)) is not None]
    age = int(time.time() - statistics.median(seconds))
    return age if age > MAX_AGE_SECONDS else None


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
