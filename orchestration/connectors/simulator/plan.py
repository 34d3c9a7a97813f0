"""The plan of a simulation, from the conf and the command line. The same plan gives the same bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestration.conf.model import Conf, Device
from orchestration.errors import ConfError
from silver.metric import Metric
from silver.policy import UNASSIGNED_GROUP

DEFAULT_START = datetime(2026, 1, 5, tzinfo=UTC)
MICROSECONDS = 1_000_000
WITHOUT_END = 2**62  # events of a simulation that goes on until it is stopped
SHORTEST_INTERVAL = 0.001
"""Seconds. Event times are written in milliseconds, and two readings of one device at one instant would be one reading."""


@dataclass(frozen=True)
class Odds:
    """Shares of all events, 0 to 1; `offline` is the share of the time that a device has no network (it sends everything later)."""

    late: float = 0.005
    duplicate: float = 0.01
    malformed: float = 0.001
    future: float = 0.00002
    offline: float = 0.002


@dataclass(frozen=True)
class Plan:
    """`shape`: long (one measurement an event), wide or list (all metrics of a device in one event).

    `interval_us` lies between two measurements of a device. `lateness_us` is the longest that the conf allows:
    an event that arrives later than that is called late.
    """

    devices: tuple[Device, ...]
    metrics: tuple[Metric, ...]
    events: int
    seed: int
    start_us: int
    interval_us: int
    lateness_us: int
    shape: str
    odds: Odds

    @property
    def width(self) -> int:
        """Measurements in one event."""
        return 1 if self.shape == "long" else len(self.metrics)

    @property
    def events_per_tick(self) -> int:
        """Events in one round in which every device measures everything once."""
        return len(self.devices) * len(self.metrics) // self.width


def plan(
    conf: Conf, devices: Sequence[Device], *, events: int, seed: int, start: datetime, interval_seconds: float, shape: str, odds: Odds
) -> Plan:
    """Make a plan over all metrics of the conf; ConfError where there is nothing to simulate or the interval is too short."""
    if not devices:
        raise ConfError(f"{conf.folder}/devices.yml declares no devices to simulate; declare some, or give --devices N")
    if interval_seconds < SHORTEST_INTERVAL:
        problem = f"a device would measure every {interval_seconds:g} s, and event times have milliseconds"
        raise ConfError(f"{problem}: take a lower --rate or more --devices")
    lateness = max([conf.policy.lateness_seconds, *(group.lateness_seconds for group in conf.groups.values())])
    begin, interval, lateness = (round(seconds * MICROSECONDS) for seconds in (start.timestamp(), interval_seconds, lateness))
    return Plan(tuple(devices), tuple(conf.metrics.values()), events, seed, begin, interval, lateness, shape, odds)


def made_up_devices(conf: Conf, count: int) -> list[Device]:
    """sim-0001 and on, dealt to the device groups of the conf in turn."""
    groups = [name for name in conf.groups if name != UNASSIGNED_GROUP]
    return [
        Device(f"sim-{n + 1:04d}", groups=(groups[n % len(groups)],) if groups else (), zone=f"zone-{n % 4 + 1}", label=None)
        for n in range(count)
    ]
