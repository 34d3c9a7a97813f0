"""Messages of simulated devices: what sensors measure, sent at once, delayed, twice, broken, or kept while the network is down.

Messages come out in the order in which they arrive. Memory: one slice of time, and the messages that are still on their way.
"""

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from orchestration.conf.model import Device
from orchestration.connectors.simulator.faults import Floats, Ints
from orchestration.connectors.simulator.plan import DAY_US, MICROSECONDS, Plan, is_switch
from silver.metric import Metric

Messages = NDArray[np.void]  # One record a message. `value[j]` is a value of metric number `metric + j`, NaN where there is none.
FUTURE_US = 4_070_908_800 * MICROSECONDS  # 2099-01-01
YEAR_US = 365 * DAY_US
USUAL = {"degC": (17.0, 27.0), "%": (30.0, 70.0), "W": (200.0, 2000.0), "mm/s": (0.5, 6.0), "lux": (50.0, 600.0), "ppm": (400.0, 1200.0)}
USUAL |= {"V": (225.0, 235.0), "bar": (1.0, 6.0)}
USUAL |= {"oven degC": (160.0, 220.0), "fridge degC": (2.0, 8.0), "press degC": (35.0, 60.0), "pump degC": (25.0, 45.0)}
"""Usual values by unit, or by kind of device and unit; else those from the metric's minimum to its maximum."""
CORRELATION = 0.95  # between a noise value and the one before
NOISE_TICKS = 2**17  # ticks after which the noise of a series repeats
STUCK_SHARE, STUCK_TICKS = 6e-4, 30
DROPOUT_SHARE, DROPOUT_TICKS = 4e-4, 20
SPIKE_SHARE = 1e-4


class Kind(IntEnum):
    """How a message was sent; which of them a watermark turns away depends on how batches are cut.

    late: it arrives more than the longest allowed lateness after it was measured. duplicate: the same bytes once more.
    """

    GOOD = 0
    DUPLICATE = 1
    LATE = 2
    MALFORMED = 3
    FUTURE = 4


class Defect(IntEnum):
    NONE = 0
    BROKEN_NUMBER = 1
    CUT = 2
    EMPTY = 3
    TWO_OBJECTS = 4
    INVALID_UTF8 = 5


def message_type(width: int) -> np.dtype[np.void]:
    fields = [("arrival_us", "i8"), ("event_us", "i8"), ("device", "i4"), ("metric", "i4"), ("kind", "i1"), ("defect", "i1")]
    return np.dtype([*fields, ("value", "f8", (width,))])


class Arrivals:
    """All messages of a plan: exactly `plan.events`, resent ones included."""

    def __init__(self, plan: Plan) -> None:
        """The seed decides everything, as long as `until` is called with the same instants."""
        self._plan = plan
        self._rng = np.random.default_rng(plan.seed)
        self._sensors = Sensors(plan, self._rng)
        # Long enough that most of what a device says afterwards is late.
        ticks = max(1, 3 * plan.lateness_us // plan.interval_us)
        self._outages = Spells(self._rng, plan.odds.offline, ticks, len(plan.devices))
        self._first = plan.first_sent
        self._ticks = self._sent = 0
        self._on_the_way = np.zeros(0, message_type(plan.width))

    @property
    def is_over(self) -> bool:
        return self._sent >= self._first and not len(self._on_the_way)

    def until(self, instant_us: int) -> Messages:
        """Return the messages that arrive before the instant and have not come out yet; after the last measurement all that are left."""
        messages = self._on_the_way
        count = -(-(instant_us - self._plan.start_us) // self._plan.interval_us) - self._ticks
        if count > 0 and self._sent < self._first:
            messages = np.concatenate([messages, self._disturbed(self._measured(count))])
        has_arrived = (messages["arrival_us"] < instant_us) | (self._sent >= self._first)
        self._on_the_way = messages[~has_arrived]
        arrived = messages[has_arrived]
        return arrived[np.argsort(arrived["arrival_us"], kind="stable")]

    def _measured(self, count: int) -> Messages:
        """The next `count` ticks in order of time."""
        plan, devices = self._plan, np.arange(len(self._plan.devices))
        ticks = np.arange(self._ticks, self._ticks + count)
        self._ticks += count
        event = plan.measured_us(ticks[:, None], devices)
        arrival = event + self._outages.left(ticks) * plan.interval_us
        lines = plan.events_per_tick // len(devices)
        messages = np.zeros((count, len(devices), lines), self._on_the_way.dtype)
        messages["value"] = self._sensors.values(ticks).reshape(*messages.shape, plan.width)
        messages["event_us"], messages["arrival_us"] = event[:, :, None], arrival[:, :, None]
        messages["device"], messages["metric"] = devices[:, None], np.arange(lines)
        is_sent = ~np.isnan(messages["value"]).all(axis=-1)
        sent: Messages = messages[is_sent][: self._first - self._sent]
        return sent

    def _disturbed(self, messages: Messages) -> Messages:
        """Delay, break and resend some; resends stand behind the messages that they repeat."""
        odds, lateness, rng = self._plan.odds, max(self._plan.lateness_us, self._plan.interval_us), self._rng
        is_delayed = rng.random(len(messages)) < odds.late
        messages["arrival_us"][is_delayed] += rng.integers(lateness * 6 // 5, lateness * 3, int(is_delayed.sum()))
        messages["kind"][messages["arrival_us"] - messages["event_us"] > self._plan.lateness_us] = Kind.LATE
        draw = rng.random(len(messages))
        is_malformed = draw < odds.malformed
        is_future = ~is_malformed & (draw < odds.malformed + odds.future)
        messages["kind"][is_malformed], messages["kind"][is_future] = Kind.MALFORMED, Kind.FUTURE
        messages["defect"][is_malformed] = rng.integers(1, len(Defect), int(is_malformed.sum()))
        messages["event_us"][is_future] = FUTURE_US + messages["event_us"][is_future] % YEAR_US
        again = messages[self._resent(len(messages))]
        again["arrival_us"] += rng.integers(0, lateness // 2, len(again))
        again["kind"][np.isin(again["kind"], [Kind.GOOD, Kind.LATE])] = Kind.DUPLICATE
        self._sent += len(messages)
        return np.concatenate([messages, again])

    def _resent(self, count: int) -> Ints:
        """Draw which of the next `count` messages are sent again: evenly spread, so that the total comes out exactly."""
        resent = self._plan.events - self._first
        quota = resent * (self._sent + count) // self._first - resent * self._sent // self._first
        return np.sort(self._rng.choice(count, quota, replace=False))


class Spells:
    """Spells of a fixed length that come back: stuck sensors, dropouts, devices without network. Each series has its own offset."""

    def __init__(self, rng: np.random.Generator, share: float, ticks: int, series: int) -> None:
        """`share` is the share of the time that is within a spell."""
        self._ticks, self._period = ticks, round(ticks / share) if share else 2**62
        self._offset = rng.integers(0, self._period, series)

    def left(self, ticks: Ints) -> Ints:
        """The rest of the spell in ticks, 0 outside of one; a row a tick, a column a series."""
        left: Ints = np.maximum(self._ticks - (ticks[:, None] + self._offset) % self._period, 0)
        return left


class Sensors:
    """Values of every metric of every device; NaN where a sensor drops out."""

    def __init__(self, plan: Plan, rng: np.random.Generator) -> None:
        """Series go device by device, each with all metrics."""
        pairs = [(device, metric) for device in plan.devices for metric in plan.metrics]
        low, high = np.array([_usual_range(device, metric) for device, metric in pairs]).T
        self._span, self._turn = high - low, 2 * math.pi * plan.interval_us / DAY_US
        self._center = rng.uniform(low + 0.35 * self._span, low + 0.65 * self._span)
        self._phase = rng.uniform(0, 2 * math.pi, len(pairs))
        self._scale = 10.0 ** np.clip(3 - np.ceil(np.log10(self._span)), 1, 9)
        self._low, self._high = np.array([_limits(metric) for _, metric in pairs]).T
        self._is_switch = np.array([is_switch(metric) for _, metric in pairs])
        self._noise = 0.04 * _correlated(rng.standard_normal(NOISE_TICKS)) + 0.3 * (rng.random(NOISE_TICKS) < SPIKE_SHARE)
        self._offset = rng.integers(0, NOISE_TICKS, len(pairs))
        self._stuck = Spells(rng, STUCK_SHARE, STUCK_TICKS, len(pairs))
        self._dropout = Spells(rng, DROPOUT_SHARE, DROPOUT_TICKS, len(pairs))
        self._faults = plan.faults

    def values(self, ticks: Ints) -> Floats:
        """Measure at ticks counted from the start of the simulation; a row a tick, a column a series."""
        stuck = self._stuck.left(ticks)
        # A stuck sensor repeats the value of the tick at which it got stuck.
        at = ticks[:, None] - np.where(stuck, STUCK_TICKS - stuck, 0)
        level = self._levels(at, slice(None))
        for fault in self._faults:
            fault.change(level, ticks, self._levels)
        values = np.round((self._center + self._span * level) * self._scale) / self._scale
        values = np.where(self._is_switch, level > 0.15, np.clip(values, self._low, self._high))
        return np.where(self._dropout.left(ticks), np.nan, values)

    def _levels(self, at: Ints, series: Ints | slice) -> Floats:
        """Return values in spans of their series, around 0; a tick and a series each."""
        phase, noise = self._phase[series], self._noise[(at + self._offset[series]) % NOISE_TICKS]
        levels: Floats = 0.2 * np.sin(at * self._turn + phase) + 0.1 * np.sin(at * (self._turn / 30) + 2 * phase) + noise
        return levels


def _correlated(white: Floats) -> Floats:
    """AR(1) noise with variance 1: each value is CORRELATION times the value before plus its own share of white noise."""
    weights = math.sqrt(1 - CORRELATION**2) * CORRELATION ** np.arange(100)
    return np.convolve(np.concatenate([white[-99:], white]), weights, "valid")


def _limits(metric: Metric) -> tuple[float, float]:
    return -math.inf if metric.minimum is None else metric.minimum, math.inf if metric.maximum is None else metric.maximum


def _usual_range(device: Device, metric: Metric) -> tuple[float, float]:
    low, high = _limits(metric)
    usual = USUAL.get(f"{device.device_id.split('-')[0]} {metric.unit}") or USUAL.get(metric.unit or "")
    if usual and low <= usual[0] and usual[1] <= high:
        return usual
    if math.isinf(low):
        low = 0.0 if math.isinf(high) else high - 100
    if math.isinf(high):
        high = low + 100
    return (low, high) if low < high else (low, low + 1)
