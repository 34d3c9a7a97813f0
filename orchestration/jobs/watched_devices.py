"""Arrivals of each device, metric and source, as the run saw them: `devices.json` in the lake, from which health tells who is silent.

Instants are in microseconds since 1970, UTC: a device may send any event time. All but the file is pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from types import MappingProxyType

from orchestration.location import Location
from orchestration.storage.state_file import StateFile
from silver.policy import Bounds

FILE = "devices.json"
FADING = 0.95
"""A long pause counts less with each arrival after it: after 14 of them half."""
MINUTE_US, DAY_US = 60_000_000, 86_400_000_000
FORGOTTEN_US = 7 * DAY_US
MOST_UNDECLARED = 100


@dataclass(frozen=True)
class Seen:
    """Rows of one device in the batches of one look.

    `batches`: how many brought some, ingested from `first_us` to `last_us`. `event_us`: the newest event time, None where all rows are in
    quarantine. `lead_us`: by how much the event times are ahead of the arrival, at least.
    """

    device_id: str
    source: str
    batches: int
    first_us: int
    last_us: int
    event_us: int | None = None
    lead_us: int | None = None


@dataclass(frozen=True)
class Rest:
    """Accepted readings of one metric of one device that follow each other and have one value; event times of the first and the last."""

    device_id: str
    metric: str
    value: float
    readings: int
    begin_us: int
    end_us: int


@dataclass(frozen=True)
class SeenSource:
    """Readings of a source in one look: on time, and late ones. `late_at_us`: when the first of these was ingested; `late_event_us`: the
    newest of their event times."""

    source: str
    readings: int
    late: int
    late_at_us: int = 0
    late_event_us: int | None = None


@dataclass
class Arrivals:
    """`last_us`: when the newest was ingested; `event_us`: the newest event time. `usual_us`: the longest time between two, see FADING.

    `count`: batches with arrivals since it last caught up with a backlog, whose pace says nothing.
    """

    last_us: int
    event_us: int | None = None
    usual_us: float = 0.0
    count: int = 0

    def add(self, seen: Seen) -> None:
        moved = seen.event_us - self.event_us if seen.event_us is not None and self.event_us is not None else 0
        if moved > 2 * (seen.last_us - self.last_us) + MINUTE_US:
            self.usual_us, self.count = 0.0, 0
        else:
            pause = max(seen.first_us - self.last_us, (seen.last_us - seen.first_us) / max(seen.batches - 1, 1))
            self.usual_us = max(pause, FADING**seen.batches * self.usual_us)
            self.count += seen.batches
        self.last_us = max(self.last_us, seen.last_us)
        self.event_us = max((at for at in (self.event_us, seen.event_us) if at is not None), default=None)


@dataclass
class WatchedMetric:
    """`equal`: readings in a row with `value`, since the event time `equal_since_us`; `longest`: the most in a row before.

    `event_us`: the newest event time. `readings`: all that were seen; `changes`: how many differed from the one before.
    """

    event_us: int
    value: float | None = None
    equal: int = 0
    equal_since_us: int = 0
    longest: int = 0
    readings: int = 0
    changes: int = 0

    def add(self, rest: Rest) -> None:
        self.readings += rest.readings
        self.event_us = max(self.event_us, rest.end_us)
        if rest.value == self.value:
            self.equal += rest.readings
        else:
            self.changes += 1
            self.longest = max(self.longest, self.equal)
            self.value, self.equal, self.equal_since_us = rest.value, rest.readings, rest.begin_us


@dataclass
class WatchedDevice:
    """`ahead_us`: by how much its clock was ahead of the newest arrivals, 0 where it is not, and since when (`ahead_since_us`)."""

    source: str
    arrivals: Arrivals
    metrics: dict[str, WatchedMetric] = field(default_factory=dict)
    ahead_us: int = 0
    ahead_since_us: int = 0

    def add(self, seen: Seen) -> None:
        self.source = seen.source
        self.arrivals.add(seen)
        self.ahead_since_us = self.ahead_since_us if self.ahead_us > 0 else seen.first_us
        self.ahead_us = max(seen.lead_us or 0, 0)


@dataclass
class WatchedSource:
    """`late`: readings since the last one that came on time, the first at `since_us`; the newest of them `behind_us` behind the newest
    of its lane."""

    late: int = 0
    since_us: int = 0
    behind_us: int = 0


@dataclass
class Undeclared:
    """Rows of a device that the registry does not know, in quarantine."""

    source: str
    rows: int
    first_us: int
    last_us: int


@dataclass
class WatchedDevices:
    """`bronze_batch`: the last one that was looked at, ingested at `at_us`.

    `retried`: the retry of the quarantine after which `undeclared` was counted anew.
    """

    bronze_batch: int = -1
    at_us: int = 0
    retried: int = -1
    devices: dict[str, WatchedDevice] = field(default_factory=dict)
    sources: dict[str, WatchedSource] = field(default_factory=dict)
    undeclared: dict[str, Undeclared] = field(default_factory=dict)


def watched_devices(lake: Location) -> StateFile[WatchedDevices]:
    """The file, which is not there where no run has looked yet."""
    return StateFile(lake / FILE, WatchedDevices, "Remove it: it only says when devices came last.")


def add_rows(watched: WatchedDevices, rows: Iterable[Seen]) -> None:
    """Note what came, a row for each device. A device that sends only what goes to quarantine is not new: any text may stand there."""
    for seen in rows:
        if seen.event_us is not None:
            watched.devices.setdefault(seen.device_id, WatchedDevice(seen.source, Arrivals(seen.first_us)))
        if (device := watched.devices.get(seen.device_id)) is not None:
            device.add(seen)
            watched.at_us = max(watched.at_us, device.arrivals.last_us)
    for device_id in [name for name, device in watched.devices.items() if device.arrivals.last_us < watched.at_us - FORGOTTEN_US]:
        del watched.devices[device_id]


def add_rests(watched: WatchedDevices, rests: Iterable[Rest]) -> None:
    """Note values. `rests`: in order of time, after the rows of the same look."""
    for rest in rests:
        if (device := watched.devices.get(rest.device_id)) is not None:
            device.metrics.setdefault(rest.metric, WatchedMetric(rest.end_us)).add(rest)


def add_sources(watched: WatchedDevices, seen: Iterable[SeenSource], bounds: Mapping[str, Bounds] = MappingProxyType({})) -> None:
    """Note what was late, after the rows of the same look. `bounds`: by source; equal ones are of one lane."""
    for row in seen:
        if row.readings:
            watched.sources[row.source] = WatchedSource()
        elif row.late:
            source = watched.sources.setdefault(row.source, WatchedSource())
            source.since_us = source.since_us if source.late else row.late_at_us
            source.late += row.late
            lane = (device.arrivals for device in watched.devices.values() if bounds.get(device.source) == bounds.get(row.source))
            newest = max((arrivals.event_us for arrivals in lane if arrivals.event_us is not None), default=None)
            if row.late_event_us is not None and newest is not None:
                source.behind_us = max(newest - row.late_event_us, 0)


def add_undeclared(watched: WatchedDevices, rows: Iterable[tuple[str, Undeclared]]) -> None:
    """Note devices that the registry does not know, of very many those that came last; forget those that stopped a day ago."""
    for device_id, seen in rows:
        before = watched.undeclared.get(device_id)
        counted = Undeclared(seen.source, before.rows + seen.rows, before.first_us, seen.last_us) if before else seen
        watched.undeclared[device_id] = counted
    recent = [entry for entry in watched.undeclared.items() if entry[1].last_us >= watched.at_us - DAY_US]
    newest = nlargest(MOST_UNDECLARED, recent, lambda entry: entry[1].last_us)
    watched.undeclared = dict(newest)
