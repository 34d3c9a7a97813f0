"""Problems of devices, metrics and sources, by their arrivals: silent, stuck, ahead, undeclared, all late. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

from orchestration.conf.diagnostic import counted
from orchestration.jobs.watched_devices import Arrivals, Undeclared, WatchedDevice, WatchedDevices, WatchedMetric
from orchestration.rendering import lasting
from orchestration.supervisor.problem import Problem, Severity
from orchestration.utc import from_micros
from silver.reasons import shortened

SECOND_US = 1_000_000
SILENT_TIMES, LEAST_SILENCE_US, LEAST_ARRIVALS = 3, 20 * SECOND_US, 5
"""Silent for three of its own usual pauses, and for 20 s at least: a batch may take some seconds."""
QUIET_US = 30 * SECOND_US
"""So long nothing may come at all before that counts as silence: batches of other devices say sooner that time goes on."""
STUCK_TIMES, LEAST_EQUAL, LEAST_STUCK_US, LEAST_SHARE = 10, 120, 300 * SECOND_US, 0.2
"""A sensor that changed in a fifth of its readings is stuck once so many are equal, and ten times as many as ever before."""
AHEAD_US = 60 * SECOND_US
GARBLED = "\N{REPLACEMENT CHARACTER}"
LEAST_LATE = 10
MOST = 5
"""Problems of one kind that are listed one by one."""
MARGIN = 1.1
"""The lateness that is proposed is a tenth more than what was seen."""


@dataclass(frozen=True)
class Context:
    """`known_us`: up to here it is known what came, and is there nothing newer: nothing came. `heard_since_us`: by source, when
    it began to answer this run, or again after an outage.

    `is_idle`: bronze has no batch that was not looked at. `registered`: devices that conf or a file declares. `silent_sources`: those that
    are down, paused or no more in conf. `ahead_us`, `lateness_seconds`: by source; what is further ahead is a
    wrong clock.
    """

    known_us: int
    heard_since_us: Mapping[str, int] = field(default_factory=dict)
    is_idle: bool = False
    registered: Collection[str] = ()
    silent_sources: Collection[str] = ()
    ahead_us: Mapping[str, int] = field(default_factory=dict)
    lateness_seconds: Mapping[str, int] = field(default_factory=dict)


def problems_of_devices(watched: WatchedDevices, context: Context) -> Iterator[Problem]:
    """Yield the problems of all devices, of each kind a few by name and one for the rest."""
    devices = {name: device for name, device in watched.devices.items() if name in context.registered}
    silent = {name for name, device in devices.items() if _is_silent(device.arrivals, device.source, context)}
    yield from _of_silence(devices, silent, context)
    heard = {name: device for name, device in devices.items() if name not in silent}
    yield from _shortened([*_stuck(heard)], "sensors are stuck")
    yield from _shortened([*_ahead(heard, context)], "clocks are ahead")
    yield from _shortened([*_undeclared(watched, context)], "devices have readings in quarantine")
    yield from _garbled(watched)
    yield from _late(watched, context)


def _is_silent(arrivals: Arrivals, source: str, context: Context) -> bool:
    if arrivals.count < LEAST_ARRIVALS:
        return False
    silence = context.known_us - max(arrivals.last_us, context.heard_since_us.get(source, 0))
    return silence > max(SILENT_TIMES * arrivals.usual_us, QUIET_US if context.is_idle else LEAST_SILENCE_US)


def _of_silence(devices: Mapping[str, WatchedDevice], silent: set[str], context: Context) -> Iterator[Problem]:
    """One for each device; for a source of which no device is heard only one: then it is not the devices."""
    by_source = defaultdict[str, list[str]](list)
    for name, device in devices.items():
        if device.source not in context.silent_sources and device.arrivals.count >= LEAST_ARRIVALS:
            by_source[device.source].append(name)
    alone = list[str]()
    for source, names in by_source.items():
        if len(names) > 1 and silent.issuperset(names):
            last_us = max(devices[name].arrivals.last_us for name in names)
            text = f"Nothing comes from source {source} any more: all {len(names):,} of its devices are silent. Look at what sends to it."
            yield Problem(Severity.CRITICAL, f"source {source}", text, from_micros(last_us), "/devices")
        else:
            alone += silent.intersection(names)
    yield from _shortened([_silent(name, devices[name].arrivals) for name in alone], "devices are silent")


def _silent(name: str, arrivals: Arrivals) -> Problem:
    usual = lasting(arrivals.usual_us / SECOND_US)
    text = f"Device {shortened(name)} is silent; it usually sends every {usual}. Look at it, and at its network."
    return Problem(Severity.WARNING, f"device {name}", text, from_micros(arrivals.last_us), _view(name))


def _stuck(devices: Mapping[str, WatchedDevice]) -> Iterator[Problem]:
    for name, device in devices.items():
        for metric, watched in device.metrics.items():
            if _is_stuck(watched):
                text = f"{metric} of device {shortened(name)} is stuck: {watched.value:g} in the last {watched.equal:,} readings."
                since = _instant(watched.equal_since_us)
                yield Problem(Severity.WARNING, f"metric {metric} of {name}", f"{text} Look at the sensor.", since, _view(name))


def _is_stuck(metric: WatchedMetric) -> bool:
    """Zero is the value of much that rests."""
    before = metric.readings - metric.equal
    lasts_us = metric.event_us - metric.equal_since_us
    is_long = metric.equal >= max(LEAST_EQUAL, STUCK_TIMES * metric.longest) and lasts_us >= LEAST_STUCK_US
    return is_long and bool(metric.value) and before >= LEAST_EQUAL and metric.changes >= LEAST_SHARE * before


def _ahead(devices: Mapping[str, WatchedDevice], context: Context) -> Iterator[Problem]:
    for name, device in devices.items():
        if device.ahead_us > context.ahead_us.get(device.source, AHEAD_US):
            text = f"The clock of device {shortened(name)} is ahead by {lasting(device.ahead_us / SECOND_US)}. Set it."
            yield Problem(Severity.WARNING, f"device {name}", text, from_micros(device.ahead_since_us), _view(name))


def _undeclared(watched: WatchedDevices, context: Context) -> Iterator[Problem]:
    view, command = "/quarantine?rule=device_is_known", "tidemark quarantine retry --rule device_is_known"
    for name, rows in watched.undeclared.items():
        if GARBLED in name:
            continue
        in_quarantine = f"{counted(rows.rows, 'reading')} of source {rows.source} {'is' if rows.rows == 1 else 'are'} in quarantine"
        if name in context.registered:
            text, severity = f"{shortened(name)} is declared by now, and {in_quarantine}.", Severity.NOTICE
        else:
            text = f"{shortened(name)} is not in devices.yml: {in_quarantine}. Declare it there, then admit them."
            severity = Severity.WARNING
        yield Problem(severity, f"device {name}", text, from_micros(rows.first_us), view, command)


def _garbled(watched: WatchedDevices) -> Iterator[Problem]:
    """One for each source: nobody can declare such a name."""
    by_source = defaultdict[str, list[Undeclared]](list)
    for name, rows in watched.undeclared.items():
        if GARBLED in name:
            by_source[rows.source].append(rows)
    for source, garbled in by_source.items():
        text = f"{counted(sum(rows.rows for rows in garbled), 'reading')} of source {source} came under names with broken letters."
        remedy = "If all of its names are so, set its encoding in sources.yml; else look at what carries them."
        since = from_micros(min(rows.first_us for rows in garbled))
        yield Problem(Severity.NOTICE, f"source {source}", f"{text} {remedy}", since, "/quarantine?rule=device_is_known")


def _late(watched: WatchedDevices, context: Context) -> Iterator[Problem]:
    for name, source in watched.sources.items():
        if source.late >= LEAST_LATE and name not in context.silent_sources:
            behind, bound = source.behind_us / SECOND_US, context.lateness_seconds.get(name, 0)
            reason = f"they come {lasting(behind)} behind the newest reading of their lane, and its lateness_seconds is {bound:,}"
            remedy = f"Set lateness_seconds of this source to {proposed(behind, bound):,} or more in sources.yml."
            text = f"All {source.late:,} readings of source {name} are late: {reason}. {remedy}"
            yield Problem(Severity.WARNING, f"source {name}", text, _instant(source.since_us), "/")


def proposed(behind_seconds: float, bound: int) -> int:
    """Return the lateness with which readings so far behind are on time, in whole minutes."""
    return max(int(behind_seconds * MARGIN) // 60 + 1, bound // 60 + 1) * 60


def _shortened(problems: list[Problem], are: str) -> Iterator[Problem]:
    """Yield the worst few, and one for all the others."""
    problems.sort(key=lambda problem: problem.rank)
    yield from problems[:MOST]
    if rest := problems[MOST:]:
        first, view = rest[0], rest[0].view.partition("?")[0]
        subject = f"{first.about} and {len(rest):,} more"
        yield Problem(first.severity, subject, f"{len(rest):,} more {are}.", first.since, view)


def _view(device: str) -> str:
    return f"/devices?{urlencode({'device': device})}"


def _instant(micros: int) -> datetime | None:
    """None of an event time that Python has no instant for."""
    try:
        return from_micros(micros)
    except OverflowError:
        return None
