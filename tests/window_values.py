"""The value of a window by its definition, in plain Python: what Spark, verify and open windows are compared with; and odd readings.

A counter's is that of `verify`, which shares no line with the layers; tests/gold/test_counters.py says what it has to be."""

import math
import random
import statistics
from collections.abc import Callable, Sequence

from orchestration.audit.verify.counters import Meter
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric

WIDTH = 1000.0
Readings = Sequence[tuple[float, float]]
"""Seconds after the begin of the window, and value; in order of time."""


def value_of(metric: Metric, readings: Readings, before: Readings = ()) -> float | None:
    """Of a tumbling window that begins at 0 seconds. `before`: all earlier readings, with negative seconds."""
    values = [value for _, value in readings]
    match metric.aggregation:
        case Aggregation.QUANTILE:
            assert metric.quantile is not None
            return _quantile(sorted(values), metric.quantile)
        case Aggregation.TIME_WEIGHTED_AVERAGE:
            return _time_weighted([*before, *readings], metric.window_seconds, metric.hold_seconds)
        case Aggregation.COUNTER_INCREASE:
            meter = Meter(metric.counter or CounterRule())
            rises = [(at, meter.read(round(at * 1e6), value)) for at, value in (*before, *readings)]
            return math.fsum(rise.amount for at, rise in rises if rise and at >= 0)
        case _:
            return PLAIN[metric.aggregation](values)


def _series(rng: random.Random, count: int) -> list[float]:
    """Values with what is odd of counters and angles in it: zeros, falls from near the width, angles that cancel out, negative ones."""
    kind = rng.randrange(4)
    if kind == 0:
        return [round(rng.uniform(-1e4, 1e4), 3) for _ in range(count)]
    if kind == 1:
        return [rng.choice((0.0, 90.0, 180.0, 270.0, 350.0, 10.0, -90.0, 720.0)) for _ in range(count)]
    if kind == 2:
        return [rng.choice((0.0, 0.0, 5.0, 499.0, 500.0, 501.0, 990.0, 1000.0, 1001.0, -3.0)) for _ in range(count)]
    total, values = rng.uniform(0, 900), list[float]()
    for _ in range(count):
        total = (total + rng.uniform(0, 90)) % WIDTH if rng.random() < 0.95 else 0.0
        values.append(0.0 if rng.random() < 0.1 else round(total, 3))
    return values


def _odd(seed: int) -> Readings:
    rng = random.Random(seed)
    times = sorted(rng.sample(range(60_000_000), rng.randint(1, 12)))
    return [(micros / 1e6, value) for micros, value in zip(times, _series(rng, len(times)), strict=True)]


def _quantile(ordered: Sequence[float], p: float) -> float:
    place = p * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


def _time_weighted(readings: Readings, step: float, hold: float) -> float | None:
    """The area below the steps, over the time of which something is known; None where nothing is."""
    ends = [*(at for at, _ in readings[1:]), step]
    held = [(value, max(min(end, at + hold) - max(at, 0.0), 0.0)) for (at, value), end in zip(readings, ends, strict=True)]
    known = math.fsum(seconds for _, seconds in held)
    return math.fsum(value * seconds for value, seconds in held) / known if known else None


def _circular_mean(values: Sequence[float]) -> float | None:
    east = math.fsum(math.sin(math.radians(math.fmod(value, 360))) for value in values)
    north = math.fsum(math.cos(math.radians(math.fmod(value, 360))) for value in values)
    if math.hypot(east, north) < 1e-9 * len(values):
        return None
    return round(math.degrees(math.atan2(east, north)) % 360, 9) % 360


PLAIN: dict[Aggregation, Callable[[Sequence[float]], float | None]] = {
    Aggregation.AVERAGE: statistics.fmean,
    Aggregation.LATEST: lambda values: values[-1],
    Aggregation.MIN: min,
    Aggregation.MAX: max,
    Aggregation.SUM: math.fsum,
    Aggregation.COUNT: len,
    Aggregation.FIRST: lambda values: values[0],
    Aggregation.STDDEV: lambda values: statistics.stdev(values) if len(values) > 1 else None,
    Aggregation.MEDIAN: statistics.median,
    Aggregation.CIRCULAR_MEAN: _circular_mean,
}
"""Of aggregation types that need neither times nor a setting."""

TYPES = {
    metric.name: metric
    for metric in (
        *(Metric(kind.value, kind, 60) for kind in Aggregation if kind is not Aggregation.QUANTILE),
        *(Metric(f"q{p}", Aggregation.QUANTILE, 60, quantile=p) for p in (0.0, 0.25, 0.95, 1.0)),
        Metric("wrapping", Aggregation.COUNTER_INCREASE, 60, counter=CounterRule(wraps_at=WIDTH)),
        Metric("wide", Aggregation.COUNTER_INCREASE, 60, counter=CounterRule(wraps_at=1e300)),
    )
}
"""Every aggregation type, with each of its settings."""
ODD = {f"device-{seed}": _odd(seed) for seed in range(200)}
"""Readings of one window of a minute, by device."""
