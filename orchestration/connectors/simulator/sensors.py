"""Values of simulated sensors: a daily cycle, correlated noise, slow drift, and now and then a fault.

A value is a function of its tick and its series, so that nothing has to be remembered from one slice of time to the next.
"""

import math

import numpy as np
from numpy.typing import NDArray

from orchestration.conf.model import Device
from orchestration.connectors.simulator.plan import MICROSECONDS, Plan
from silver.spec import Metric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

USUAL = {"degC": (17.0, 27.0), "%": (30.0, 70.0), "W": (200.0, 2000.0), "mm/s": (0.5, 6.0), "lux": (50.0, 600.0), "ppm": (400.0, 1200.0)}
USUAL |= {"V": (225.0, 235.0), "bar": (1.0, 6.0)}
USUAL |= {"oven degC": (160.0, 220.0), "fridge degC": (2.0, 8.0), "press degC": (35.0, 60.0), "pump degC": (25.0, 45.0)}
"""Usual values by unit, or by kind of device and unit; else those from the metric's minimum to its maximum."""
DAY_US = 86_400 * MICROSECONDS
CORRELATION = 0.95
"""Between a noise value and the one before."""
NOISE_TICKS = 2**17
"""Ticks after which the noise of a series repeats."""
STUCK_SHARE, STUCK_TICKS = 6e-4, 30
DROPOUT_SHARE, DROPOUT_TICKS = 4e-4, 20
SPIKE_SHARE = 1e-4


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
        # 0 or 1 without a unit: something is open or not.
        self._is_switch = np.array([(metric.minimum, metric.maximum, metric.unit) == (0, 1, None) for _, metric in pairs])
        self._noise = 0.04 * _correlated(rng.standard_normal(NOISE_TICKS)) + 0.3 * (rng.random(NOISE_TICKS) < SPIKE_SHARE)
        self._offset = rng.integers(0, NOISE_TICKS, len(pairs))
        self._stuck = Spells(rng, STUCK_SHARE, STUCK_TICKS, len(pairs))
        self._dropout = Spells(rng, DROPOUT_SHARE, DROPOUT_TICKS, len(pairs))

    def values(self, ticks: Ints) -> Floats:
        """Measure at ticks counted from the start of the simulation; a row a tick, a column a series."""
        stuck = self._stuck.left(ticks)
        # A stuck sensor repeats the value of the tick at which it got stuck.
        at = ticks[:, None] - np.where(stuck, STUCK_TICKS - stuck, 0)
        noise = self._noise[(at + self._offset) % NOISE_TICKS]
        level = 0.2 * np.sin(at * self._turn + self._phase) + 0.1 * np.sin(at * (self._turn / 30) + 2 * self._phase) + noise
        values = np.round((self._center + self._span * level) * self._scale) / self._scale
        values = np.where(self._is_switch, level > 0.15, np.clip(values, self._low, self._high))
        return np.where(self._dropout.left(ticks), np.nan, values)


def _correlated(white: Floats) -> Floats:
    """AR(1) noise with variance 1: each value is CORRELATION times the value before plus its own share of white noise."""
    weights = math.sqrt(1 - CORRELATION**2) * CORRELATION ** np.arange(100)
    return np.convolve(np.concatenate([white[-99:], white]), weights, "valid")


def _limits(metric: Metric) -> tuple[float, float]:
    return -math.inf if metric.minimum is None else metric.minimum, math.inf if metric.maximum is None else metric.maximum


def _usual_range(device: Device, metric: Metric) -> tuple[float, float]:
    """The usual range of a metric of a device, inside the limits of the metric."""
    low, high = _limits(metric)
    usual = USUAL.get(f"{device.device_id.split('-')[0]} {metric.unit}") or USUAL.get(metric.unit or "")
    if usual and low <= usual[0] and usual[1] <= high:
        return usual
    if math.isinf(low):
        low = 0.0 if math.isinf(high) else high - 100
    if math.isinf(high):
        high = low + 100
    return (low, high) if low < high else (low, low + 1)
