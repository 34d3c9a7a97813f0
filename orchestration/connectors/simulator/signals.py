"""What sensors measure: a daily cycle, correlated noise, slow drift, and now and then a fault.

Vectorised over ticks and series; noise and faults go on from one call to the next.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orchestration.conf.model import Device
from orchestration.connectors.simulator.plan import MICROSECONDS
from silver.spec import Metric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# What such devices and units are usually seen at; elsewhere the middle of the metric's own range.
TYPICAL_OF_DEVICE = {
    ("oven", "degC"): (160.0, 220.0),
    ("fridge", "degC"): (2.0, 8.0),
    ("press", "degC"): (35.0, 60.0),
    ("pump", "degC"): (25.0, 45.0),
}
TYPICAL_OF_UNIT = {
    "degC": (17.0, 27.0),
    "%": (30.0, 70.0),
    "W": (200.0, 2000.0),
    "mm/s": (0.5, 6.0),
    "lux": (50.0, 600.0),
    "ppm": (400.0, 1200.0),
    "V": (225.0, 235.0),
    "bar": (1.0, 6.0),
}
DAY_US = 86_400 * MICROSECONDS
DRIFT_PERIOD_US = 30 * DAY_US
CORRELATION = 0.95
"""Of a noise value with the one before."""
STUCK_ODDS, STUCK_TICKS = 2e-5, 30
DROPOUT_ODDS, DROPOUT_TICKS = 2e-5, 20
SPIKE_ODDS = 1e-4
BLOCK = 64


class Episodes:
    """Spells of a fixed length that begin at random: stuck sensors, dropouts, devices without network."""

    def __init__(self, odds: float, ticks: int, series: int) -> None:
        """`odds` is the chance that a spell of `ticks` begins at one tick of one of the `series`."""
        self.odds, self.ticks = odds, ticks
        self._newest = np.full(series, -ticks, dtype=np.int64)

    def begun(self, rng: np.random.Generator, first: int, count: int) -> tuple[Ints, Bools]:
        """For each tick and series: the tick at which the newest spell began, and whether it still lasts."""
        ticks = np.arange(first, first + count)[:, None]
        begins = rng.random((count, len(self._newest)), dtype=np.float32) < self.odds
        newest = np.where(begins, ticks, self._newest[None, :])
        np.maximum.accumulate(newest, axis=0, out=newest)
        self._newest = newest[-1]
        return newest, ticks - newest < self.ticks


class Signals:
    """Values of every metric of every device, tick after tick; NaN where a sensor drops out."""

    def __init__(self, devices: Sequence[Device], metrics: Sequence[Metric], rng: np.random.Generator) -> None:
        """Series are device-major: device 0 with all metrics, then device 1."""
        ranges = np.array([_range(device, metric) for device in devices for metric in metrics])
        series, self._span = len(ranges), ranges[:, 1] - ranges[:, 0]
        self._center = ranges[:, 0] + self._span * rng.uniform(0.35, 0.65, series)
        self._phase = rng.uniform(0, 2 * math.pi, series)
        self._noise = np.zeros(series)
        limits = np.array([_limits(metric) for metric in metrics])
        self._low, self._high = (np.tile(limits[:, side], len(devices)) for side in (0, 1))
        self._is_switch = np.tile([_is_switch(metric) for metric in metrics], len(devices))
        self._scale = 10.0 ** np.clip(3 - np.ceil(np.log10(self._span)), 1, 9)
        self._stuck = Episodes(STUCK_ODDS, STUCK_TICKS, series)
        self._dropout = Episodes(DROPOUT_ODDS, DROPOUT_TICKS, series)
        self._held = self._center.copy()

    def values(self, rng: np.random.Generator, first: int, times_us: Ints) -> Floats:
        """One row a tick; `first` counts ticks since the start of the simulation."""
        count, series = len(times_us), len(self._span)
        noise = correlated(rng.standard_normal((count, series)), self._noise)
        self._noise = noise[-1]
        day, drift = (2 * math.pi / period * (times_us % period)[:, None] for period in (DAY_US, DRIFT_PERIOD_US))
        spikes = rng.random((count, series), dtype=np.float32) < SPIKE_ODDS
        level = 0.2 * np.sin(day + self._phase) + 0.1 * np.sin(drift + 2 * self._phase) + 0.04 * noise + 0.3 * spikes
        values = np.round((self._center + self._span * level) * self._scale) / self._scale
        values = np.where(self._is_switch, level > 0.15, np.clip(values, self._low, self._high))
        values = self._frozen(values, *self._stuck.begun(rng, first, count), first)
        return np.where(self._dropout.begun(rng, first, count)[1], np.nan, values)

    def _frozen(self, values: Floats, since: Ints, is_stuck: Bools, first: int) -> Floats:
        """A stuck sensor repeats what it said when it got stuck, perhaps in an earlier call."""
        row = np.clip(since - first, 0, None)
        then = np.where(since < first, self._held[None, :], np.take_along_axis(values, row, axis=0))
        values = np.where(is_stuck, then, values)
        self._held = values[-1]
        return values


def correlated(noise: Floats, before: Floats) -> Floats:
    """AR(1) with variance 1: each row is CORRELATION times the row before plus its own share of white noise.

    A block of rows at once by a matrix; row by row a long simulation of few devices would spend its time in the interpreter.
    """
    power = np.arange(BLOCK)
    kernel = np.tril(CORRELATION ** np.abs(power[:, None] - power[None, :])) * math.sqrt(1 - CORRELATION**2)
    out = np.empty_like(noise)
    for begin in range(0, len(noise), BLOCK):
        part = noise[begin : begin + BLOCK]
        size = len(part)
        out[begin : begin + size] = kernel[:size, :size] @ part + CORRELATION ** (power[:size, None] + 1) * before
        before = out[begin + size - 1]
    return out


def _limits(metric: Metric) -> tuple[float, float]:
    return -math.inf if metric.minimum is None else metric.minimum, math.inf if metric.maximum is None else metric.maximum


def _range(device: Device, metric: Metric) -> tuple[float, float]:
    """Where the values of a metric of a device usually are, inside the limits of the metric."""
    low, high = _limits(metric)
    unit = metric.unit or ""
    typical = TYPICAL_OF_DEVICE.get((device.device_id.split("-")[0], unit), TYPICAL_OF_UNIT.get(unit))
    if typical and low <= typical[0] < typical[1] <= high:
        return typical
    if math.isinf(low):
        low = 0.0 if math.isinf(high) else high - 100.0
    if math.isinf(high):
        high = low + 100.0
    return (low, high) if low < high else (low, low + 1.0)


def _is_switch(metric: Metric) -> bool:
    """0 or 1 without a unit: something is open or not."""
    return metric.minimum == 0 and metric.maximum == 1 and metric.unit is None
