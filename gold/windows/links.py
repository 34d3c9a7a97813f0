"""Chains: windows whose value depends on what came before them, one after another. Pure.

A counter rises between two windows too, and a value holds until the next one. So these windows are made in order, by device group, device
and metric. Each takes from the one before it what it needs (`carry`), and leaves its own in its row: a later window, or an amendment, goes
on from a row of gold.aggregates, and needs no reading of an earlier window.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import INSTANT
from gold.counters import Count, count, tidied
from gold.instants import EPOCH, SECOND
from gold.schema import AGGREGATES, CARRY
from gold.windows.calendar import window_of
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric

SERIES = pa.list_(pa.struct([("at", pa.int64()), ("value", pa.float64())]))
"""Readings of a window in order of time; `at` in microseconds since 1970."""
MADE = pa.schema([*(field for field in AGGREGATES if field.name not in ("revision", "gold_batch")), CARRY])
WINDOWS = MADE.append(pa.field("series", SERIES))
"""Windows without their value and their `carry`; a row with a `carry` is one that was made before, from which the next goes on."""
Carry = list[float]
NEVER, THE_BEGINNING = 2**62, -(2**62)


@dataclass(frozen=True)
class Readings:
    """Readings of one window, and where it begins and ends, in microseconds since 1970. `own`: how many are before the next window."""

    start: int
    end: int
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    own: int


class Made(NamedTuple):
    """A window that is made, of the key of a row. `is_held`: it has no reading."""

    row: int
    start: int
    end: int
    value: float | None
    carry: Carry
    is_held: bool = False


Link = Callable[[Metric, Carry, Readings], tuple[float | None, Carry]]
"""Makes the value of a window and what the next one needs, of what the one before it left; nothing at the begin."""


def link(windows: pa.Table, metrics: Mapping[str, Metric], until: int = THE_BEGINNING) -> pa.Table:
    """Make the windows of WINDOWS that have no `carry`, in order of time, with the columns MADE.

    Where a value holds, windows without a reading are made too, of those that end at `until` (microseconds since 1970) or before.
    """
    if not len(windows):
        return MADE.empty_table()
    windows = windows.sort_by([(name, "ascending") for name in ("device_group", "device_id", "metric", "window_end")])
    is_made, carried = windows["carry"].is_valid().to_pylist(), windows["carry"].to_pylist()
    starts, ends = (_micros(windows[name].fill_null(EPOCH)) for name in ("window_start", "window_end"))
    series = windows["series"].combine_chunks()
    offsets, times, values = series.offsets.to_numpy(), *(series.values.field(name).to_numpy(False) for name in ("at", "value"))
    keys = list(zip(*(windows[name].to_pylist() for name in ("device_group", "device_id", "metric")), strict=True))
    made, carry = list[Made](), Carry()
    for row, key in enumerate(keys):
        carry = carry if row and key == keys[row - 1] else []
        metric, start, end, of_window = metrics[key[2]], int(starts[row]), int(ends[row]), slice(offsets[row], offsets[row + 1])
        following = int(ends[row + 1]) if row + 1 < len(keys) and keys[row + 1] == key else NEVER
        if is_made[row]:
            carry = carried[row]
            made += _held_on(metric, row, end, carry, min(until, following - 1))
            continue
        next_start = end if metric.slide_seconds is None else start + metric.slide_seconds * SECOND
        own = int(np.searchsorted(times[of_window], next_start))
        value, carry = LINKS[metric.aggregation](metric, carry, Readings(start, end, times[of_window], values[of_window], own))
        made.append(Made(row, start, end, value, carry))
        made += _held_on(metric, row, end, carry, min(until, following - 1))
    return _with(windows.take(pa.array([window.row for window in made], pa.int64())), made)


def _held_on(metric: Metric, row: int, end: int, carry: Carry, until: int) -> Iterator[Made]:
    """Windows behind one, up to those that end at an instant, of which a value is known though they have no reading."""
    if metric.aggregation is Aggregation.TIME_WEIGHTED_AVERAGE and carry:
        value, at = carry
        start, end = _next(metric, end)
        while start < int(at) + metric.hold_seconds * SECOND and end <= until:
            yield Made(row, start, end, value, carry, is_held=True)
            start, end = _next(metric, end)


def _next(metric: Metric, end: int) -> tuple[int, int]:
    """Return the begin and the end of the window behind one that ends at an instant."""
    if metric.calendar is not None:
        return end, window_of(metric.calendar, end // SECOND)[1] * SECOND
    following = end + metric.every_seconds * SECOND
    return following - metric.window_seconds * SECOND, following


def _with(windows: pa.Table, made: Sequence[Made]) -> pa.Table:
    is_held = pa.array([window.is_held for window in made], pa.bool_())
    columns = {name: pc.if_else(is_held, pa.scalar(None, MADE.field(name).type), windows[name]) for name in ("min", "max", "sum", "latest")}
    columns |= {
        "count": pc.if_else(is_held, 0, windows["count"]),
        "window_start": pa.array([window.start for window in made], pa.int64()).cast(INSTANT),
        "window_end": pa.array([window.end for window in made], pa.int64()).cast(INSTANT),
        "value": pa.array([window.value for window in made], pa.float64()),
        "carry": pa.array([window.carry for window in made], CARRY.type),
    }
    return pa.table([columns.get(name, windows[name]) for name in MADE.names], MADE)


def _micros(instants: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = instants.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    return numbers


def _increase(metric: Metric, carry: Carry, readings: Readings) -> tuple[float, Carry]:
    """Sum up the rises to the readings of the window, the first one from the last reading before it."""
    rule, before = metric.counter or CounterRule(), Count.from_list(carry)
    counted = count(rule, before, readings.times, readings.values)
    value = tidied(float(counted.rises.sum()), counted.state.last if counted.state else 0)
    own = counted.state
    if readings.own < len(readings.times):
        own = count(rule, before, readings.times[: readings.own], readings.values[: readings.own]).state
    return value, own.to_list() if own else []


def _time_weighted(metric: Metric, carry: Carry, readings: Readings) -> tuple[float, Carry]:
    """Weigh each value by the time that it held in the window: until the next one, and at most `max_hold_seconds`."""
    before, hold = np.array(carry).reshape(-1, 2), metric.hold_seconds * SECOND
    values, times = np.append(before[:, 0], readings.values), np.append(before[:, 1].astype(np.int64), readings.times)
    held = np.minimum(np.append(times[1:], readings.end), times + hold) - np.maximum(times, readings.start)
    held = np.maximum(held, 0)
    of_next = [[float(readings.values[readings.own - 1]), float(readings.times[readings.own - 1])]] if readings.own else [carry]
    return float((values * held).sum() / held.sum()), of_next[0]


LINKS: dict[Aggregation, Link] = {Aggregation.COUNTER_INCREASE: _increase, Aggregation.TIME_WEIGHTED_AVERAGE: _time_weighted}
"""The function of each aggregation type whose windows are a chain."""
