"""Chains: windows whose value depends on what came before them, one after another. Pure.

A counter rises between two windows too, and a value holds until the next one. So these windows are made in order, by device group, device
and metric. Each takes from the one before it what it needs (`carry`), and leaves its own in its row: a later window, or an amendment, goes
on from a row of gold.aggregates, and needs no reading of an earlier window.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gold.counters import Count, count, tidied
from gold.instants import EPOCH, SECOND
from gold.schema import AGGREGATES, CARRY
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric

SERIES = pa.list_(pa.struct([("at", pa.int64()), ("value", pa.float64())]))
"""Readings of a window in order of time; `at` in microseconds since 1970."""
MADE = pa.schema([*(field for field in AGGREGATES if field.name not in ("revision", "gold_batch")), CARRY])
WINDOWS = MADE.append(pa.field("series", SERIES))
"""Windows without their value and their `carry`; a row with a `carry` is one that was made before, from which the next goes on."""
Carry = list[float]


@dataclass(frozen=True)
class Readings:
    """Readings of one window, and where it begins and ends, in microseconds since 1970. `own`: how many are before the next window."""

    start: int
    end: int
    times: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    own: int


Link = Callable[[Metric, Carry, Readings], tuple[float | None, Carry]]
"""Makes the value of a window and what the next one needs, of what the one before it left; nothing at the begin."""


def link(windows: pa.Table, metrics: Mapping[str, Metric]) -> pa.Table:
    """Make the windows of WINDOWS that have no `carry`, in order of time, with the columns MADE."""
    if not len(windows):
        return MADE.empty_table()
    windows = windows.sort_by([(name, "ascending") for name in ("device_group", "device_id", "metric", "window_end")])
    is_made, carried = windows["carry"].is_valid().to_pylist(), windows["carry"].to_pylist()
    starts, ends = (_micros(windows[name].fill_null(EPOCH)) for name in ("window_start", "window_end"))
    series = windows["series"].combine_chunks()
    offsets, times, values = series.offsets.to_numpy(), *(series.values.field(name).to_numpy(False) for name in ("at", "value"))
    made, chosen, carry, before = list[tuple[float | None, Carry]](), list[int](), Carry(), None
    for row, key in enumerate(zip(*(windows[name].to_pylist() for name in ("device_group", "device_id", "metric")), strict=True)):
        carry, before = carry if key == before else [], key
        if is_made[row]:
            carry = carried[row]
            continue
        metric, start, end, of_window = metrics[key[2]], int(starts[row]), int(ends[row]), slice(offsets[row], offsets[row + 1])
        next_start = end if metric.slide_seconds is None else start + metric.slide_seconds * SECOND
        own = int(np.searchsorted(times[of_window], next_start))
        value, carry = LINKS[metric.aggregation](metric, carry, Readings(start, end, times[of_window], values[of_window], own))
        made.append((value, carry))
        chosen.append(row)
    return _with(windows.take(pa.array(chosen, pa.int64())), made)


def _with(windows: pa.Table, made: Sequence[tuple[float | None, Carry]]) -> pa.Table:
    values, carries = ([pair[n] for pair in made] for n in (0, 1))
    columns = {"value": pa.array(values, pa.float64()), "carry": pa.array(carries, CARRY.type)}
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


def _time_weighted(_: Metric, __: Carry, readings: Readings) -> tuple[float, Carry]:
    """Weigh each value by the time until the next one, the last one by that until the end of the window."""
    held = np.diff(readings.times, append=readings.end)
    return float((readings.values * held).sum() / held.sum()), []


LINKS: dict[Aggregation, Link] = {Aggregation.COUNTER_INCREASE: _increase, Aggregation.TIME_WEIGHTED_AVERAGE: _time_weighted}
"""The function of each aggregation type whose windows are a chain."""
