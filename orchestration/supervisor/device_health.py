"""Problems of devices, metrics and sources, by their arrivals: silent, stuck, ahead, undeclared, all late. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

from expectations.wording import counted
from orchestration.jobs.watched_devices import Arrivals, WatchedDevice, WatchedDevices, WatchedMetric
from orchestration.rendering import lasting
from orchestration.supervisor.problem import Problem, Severity
from orchestration.utc import from_micros
from silver.policy import Bounds
from silver.reasons import shortened

SECOND_US = 1_000_000
SILENT_TIMES, LEAST_SILENCE_US, LEAST_ARRIVALS = 3, 20 * SECOND_US, 5
"""Silent for three of its own usual pauses, and for 20 s at least while others of its source are heard: a batch may take some seconds."""
QUIET_US = 30 * SECOND_US
"""So long nothing may come from a source: a busy machine takes in the one source later than the other."""
STUCK_TIMES, LEAST_EQUAL, LEAST_STUCK_US, LEAST_SHARE = 10, 120, 300 * SECOND_US, 0.2
"""A sensor that changed in a fifth of its readings is stuck once so many are equal, and ten times as many as ever before."""
AHEAD_US, HOUR_SECONDS = 60 * SECOND_US, 3600
GARBLED = "\N{REPLACEMENT CHARACTER}"
LEAST_LATE = 10
MOST = 5
"""Problems of one kind that are listed one by one."""
MARGIN = 1.1
"""The lateness that is proposed is a tenth more than what was seen."""


@dataclass(frozen=True)
class Context:
    """`known_us`: up to here it is known what came, and is there nothing newer: nothing came. `registered`: devices that conf or a file
    declares.

    `heard_since_us`: by source, when it began to answer this run, or again after an outage; others are down, paused or no more in conf.
    `bounds`: by source.
    """

    known_us: int
    heard_since_us: Mapping[str, int]
    registered: Collection[str] = ()
    bounds: Mapping[str, Bounds] = field(default_factory=dict)


def problems_of_devices(watched: WatchedDevices, context: Context) -> Iterator[Problem]:
    """Yield the problems of all devices, of each kind a few by name and one for the rest."""
    devices = {name: device for name, device in watched.devices.items() if name in context.registered}
    newest_us = _newest_by_source(devices)
    silent = {name for name, device in devices.items() if _is_silent(device, newest_us[device.source], context)}
    yield from _of_silence(devices, silent, context)
    heard = {name: device for name, device in devices.items() if name not in silent}
    yield from _shortened([*_stuck(heard)], "sensors are stuck")
    yield from _shortened([*_ahead(heard, context)], "clocks are ahead")
    yield from _shortened([*_undeclared(watched, context)], "devices have readings in quarantine")
    yield from _late(watched, context)


def _newest_by_source(devices: Mapping[str, WatchedDevice]) -> dict[str, int]:
    newest = dict[str, int]()
    for device in devices.values():
        newest[device.source] = max(device.arrivals.last_us, newest.get(device.source, 0))
    return newest


def _is_silent(device: WatchedDevice, newest_us: int, context: Context) -> bool:
    """Judge by what has come from others of its source, the last at `newest_us`; where nothing comes from it, by the clock."""
    arrivals, heard_us = device.arrivals, context.heard_since_us.get(device.source, 0)
    if arrivals.count < LEAST_ARRIVALS:
        return False
    beside_others, together = newest_us - max(arrivals.last_us, heard_us), context.known_us - max(newest_us, heard_us)
    allowed_us = SILENT_TIMES * arrivals.usual_us
    return beside_others > max(allowed_us, LEAST_SILENCE_US) or together > max(allowed_us, QUIET_US)


def _of_silence(devices: Mapping[str, WatchedDevice], silent: set[str], context: Context) -> Iterator[Problem]:
    """One for each device; for a source of which no device is heard only one: then it is not the devices."""
    by_source = defaultdict[str, list[str]](list)
    for name, device in devices.items():
        if device.source in context.heard_since_us and device.arrivals.count >= LEAST_ARRIVALS:
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
        bounds = context.bounds.get(device.source)
        # Whoever allows hours means forecasts.
        allowed_us = SECOND_US * bounds.ahead_seconds if bounds and bounds.ahead_seconds >= HOUR_SECONDS else AHEAD_US
        if device.ahead_us > allowed_us:
            text = f"The clock of device {shortened(name)} is ahead by {lasting(device.ahead_us / SECOND_US)}. Set it."
            yield Problem(Severity.WARNING, f"device {name}", text, from_micros(device.ahead_since_us), _view(name))


def _undeclared(watched: WatchedDevices, context: Context) -> Iterator[Problem]:
    retry = "tidemark quarantine retry --rule device_is_known"
    for name, rows in watched.undeclared.items():
        in_quarantine = f"{counted(rows.rows, 'reading')} of source {rows.source} {'is' if rows.rows == 1 else 'are'} in quarantine"
        severity, is_name = Severity.NOTICE, GARBLED not in name
        if name in context.registered:
            text = f"is declared by now, and {in_quarantine}."
        elif is_name:
            severity, text = Severity.WARNING, f"is not in devices.yml: {in_quarantine}. Declare it there, then admit them."
        else:
            text = f"has broken letters: {in_quarantine}. Set the encoding of the source, or look at the device."
        view, command = "/quarantine?rule=device_is_known", retry if is_name else ""
        yield Problem(severity, f"device {name}", f"{shortened(name)} {text}", from_micros(rows.first_us), view, command)


def _late(watched: WatchedDevices, context: Context) -> Iterator[Problem]:
    for name, source in watched.sources.items():
        if source.late >= LEAST_LATE and name in context.heard_since_us:
            behind, bound = source.behind_us / SECOND_US, context.bounds[name].lateness_seconds
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
