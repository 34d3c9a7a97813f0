"""The plan of a simulation, from the conf and the command line. The same plan gives the same bytes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

import numpy as np

from orchestration.conf.model import Conf, Device
from orchestration.connectors.simulator.faults import FAULTS, Fault, Ints, drawn
from orchestration.errors import ConfError
from silver.metric import Metric
from silver.policy import UNASSIGNED_GROUP

DEFAULT_START = datetime(2026, 1, 5, tzinfo=UTC)
MICROSECONDS = 1_000_000
HOUR_US = 3600 * MICROSECONDS
DAY_US = 24 * HOUR_US
WITHOUT_END = 2**62  # events of a simulation that goes on until it is stopped
Ticks = TypeVar("Ticks", int, Ints)
SHORTEST_INTERVAL = 0.001
"""Seconds. Event times are written in milliseconds, and two readings of one device at one instant would be one reading."""
DEVIATION = 0.16
"""The standard deviation of a level of the sensors, which swings by 0.2 a day and 0.1 a month."""
FAULT_SEED = 302
"""Beside the seed of the plan: the one fault of `make demo` is a drift of an oven's temperature."""


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
    faults: tuple[Fault, ...] = ()

    @property
    def first_sent(self) -> int:
        """Events that are sent for the first time; the rest are resent ones."""
        return math.ceil(self.events / (1 + self.odds.duplicate))

    @property
    def width(self) -> int:
        """Measurements in one event."""
        return 1 if self.shape == "long" else len(self.metrics)

    @property
    def events_per_tick(self) -> int:
        """Events in one round in which every device measures everything once."""
        return len(self.devices) * len(self.metrics) // self.width

    def measured_us(self, tick: Ticks, device: Ticks) -> Ticks:
        """Return when a device measures. Devices take turns within an interval, so that they do not all speak at once."""
        return (self.start_us + tick * self.interval_us + device * self.interval_us // len(self.devices)) // 1000 * 1000


def plan(
    conf: Conf,
    devices: Sequence[Device],
    *,
    events: int,
    seed: int,
    start: datetime,
    interval_seconds: float,
    shape: str,
    odds: Odds,
    faults: int = 0,
) -> Plan:
    """Make a plan over all metrics of the conf; ConfError where there is nothing to simulate, or the interval or the time is too short."""
    if not devices:
        raise ConfError(f"{conf.folder}/devices.yml declares no devices to simulate; declare some, or give --devices N")
    if interval_seconds < SHORTEST_INTERVAL:
        problem = f"a device would measure every {interval_seconds:g} s, and event times have milliseconds"
        raise ConfError(f"{problem}: take a lower --rate or more --devices")
    lateness = max([conf.policy.lateness_seconds, *(group.lateness_seconds for group in conf.groups.values())])
    begin, interval, lateness = (round(seconds * MICROSECONDS) for seconds in (start.timestamp(), interval_seconds, lateness))
    made = Plan(tuple(devices), tuple(conf.metrics.values()), events, seed, begin, interval, lateness, shape, odds)
    return replace(made, faults=tuple(_faults(conf, made, faults)))


def is_switch(metric: Metric) -> bool:
    """0 or 1 without a unit: something is open or not."""
    return (metric.minimum, metric.maximum, metric.unit) == (0, 1, None)


def _faults(conf: Conf, plan: Plan, count: int) -> Iterator[Fault]:
    """Draw faults of all devices and kinds in turn, spread over the second half of the time. A device never has two at once."""
    rng = np.random.default_rng([plan.seed, FAULT_SEED])
    devices, kinds = rng.permutation(len(plan.devices)).tolist(), rng.permutation([*FAULTS]).tolist()
    ticks = plan.first_sent // plan.events_per_tick
    gap = 3 / 8 * ticks / max(count, 1)
    longest = min(ticks / 8, (len(devices) - 0.5) * gap)
    for number in range(count):
        again, turn = divmod(number, len(devices))
        windows = {series: window for series, window in _windows(conf, plan, devices[turn]) if 2 * window <= longest}
        if not windows:
            problem = f"{count} faults of two windows or more do not fit into {ticks * plan.interval_us / HOUR_US:.1f} h"
            raise ConfError(f"{problem}: take fewer --faults, more --events or a longer --interval")
        series = np.roll([*windows], rng.integers(len(windows))).tolist()
        possible = [kind for kind in kinds if (FAULTS[kind].width or 1) <= len(series)]
        begin, day = round(ticks / 2 + gap * (number + rng.uniform(0, 0.5))), max(4, DAY_US // plan.interval_us)
        kind, window = possible[(number + again) % len(possible)], windows[series[0]]
        yield drawn(kind, rng, begin, series, window=window, day=day, deviation=DEVIATION, longest=longest)


def _windows(conf: Conf, plan: Plan, device: int) -> Iterator[tuple[int, int]]:
    """Yield what the vectors of a device hold, switches apart: series, and ticks of a window. All metrics where it has no vector."""
    groups = [conf.groups[name] for name in plan.devices[device].groups if name in conf.groups]
    features = {name for group in groups if group.vector and group.vector.entity == "device" for name in group.vector.features}
    for number, metric in enumerate(plan.metrics):
        if not is_switch(metric) and (metric.name in features or not features):
            yield device * len(plan.metrics) + number, -(-metric.window_seconds * MICROSECONDS // plan.interval_us)


def made_up_devices(conf: Conf, count: int) -> list[Device]:
    """sim-0001 and on, dealt to the device groups of the conf in turn."""
    groups = [name for name in conf.groups if name != UNASSIGNED_GROUP]
    return [
        Device(f"sim-{n + 1:04d}", groups=(groups[n % len(groups)],) if groups else (), zone=f"zone-{n % 4 + 1}", label=None)
        for n in range(count)
    ]
