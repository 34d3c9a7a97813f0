"""Drift of values against the reference: the population stability index (PSI) of each device and metric.

References are by device, so a device that is added or removed shifts nothing. PSI alone gives false alarms for precise sensors, so mean and
median must have moved as well. A change that looks like another unit, a power of ten or a swap with another metric is named so.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from orchestration.quality.measures.context import Context, Row, hour, not_checked, outcome_of
from orchestration.quality.measures.reference import BINS, SERIES, reference
from orchestration.quality.outcome import Outcome
from silver.metric import Metric

RECENT = """
  with series as ({series})
  select device_id, metric, any_value(counts) as counts, any_value(mean) as mean_before, any_value(deviation) as deviation,
    any_value(edges[5]) as median_before, count(*) as n, avg(value) as mean, median(value) as median, {bins} as above
  from series join reference using (device_id, metric) group by device_id, metric order by metric, device_id
"""
MEANS = "select device_id, metric, hour, sum(total) / sum(n) as mean from profile group by all"
AT_ONCE, STEP_HOURS = 0.5, 6
"""Share of the whole change: more than this within STEP_HOURS is a step, not slow drift."""
MOST = 0.5
"""Share of the devices of a metric above which it is the metric that drifts."""
FARTHEST = 10.0
"""Standard deviations that one device may add to the mean of pooled devices."""
SMOOTHING = 0.5
"""Added to each bin: an empty bin would make PSI infinite."""

POWERS = (1000.0, 100.0, 10.0, 60.0, 3600.0)
CLOSE = 0.1
"""A median within a tenth of the change that a unit explains counts as explained."""


@dataclass(frozen=True)
class Shift:
    """Median and standard deviation of a series before, and its median now: a change that began within the last day shows in it whole."""

    before: float
    deviation: float
    now: float

    @property
    def has_moved(self) -> bool:
        """Far enough to be mistaken for nothing else."""
        return abs(self.now - self.before) > 2 * self.deviation


def steady_distribution(
    context: Context, table: str, *, recent_hours: int, reference_hours: int, max_psi: float, min_shift: float, min_rows: int
) -> Outcome:
    """PSI of the last hours against the reference is at most that, or mean or median moved by less than `min_shift` standard deviations."""
    end = (context.newest_hour or 0) + 1
    first = end - recent_hours
    reference(context, first - reference_hours, first, min_rows)
    recent = RECENT.format(series=SERIES.format(view=context.view_of("silver.readings")), bins=BINS)
    series = [_compared(row) for row in context.ask(recent, first=first, end=end)]
    rows = [row for row in series if row["n"] >= min_rows] + _pooled([row for row in series if row["n"] < min_rows], min_rows)
    if not rows:
        needed = f"{recent_hours + reference_hours} are needed, with {min_rows} rows a series in each part"
        return not_checked(f"there are {context.hours:,} hours of readings; {needed}")
    moved = {(row["device_id"], row["metric"]): Shift(row["median_before"], row["deviation"], row["median"]) for row in series}
    drifted = [row for row in rows if row["psi"] > max_psi and row["shift"] >= min_shift]
    means = _means(context) if drifted else {}
    offenders = [{**row, "how": _how(context, row, moved, means)} for row in drifted]
    return outcome_of(_by_metric(offenders, rows), _describe, _fine(rows))


def psi(before: Sequence[float], now: Sequence[float]) -> float:
    """Population stability index of two histograms over the same bins; 0.1 is called a small change, 0.25 a large one."""
    sizes = [sum(side) + SMOOTHING * len(side) for side in (before, now)]
    pairs = [((b + SMOOTHING) / sizes[0], (n + SMOOTHING) / sizes[1]) for b, n in zip(before, now, strict=True)]
    return sum((n - b) * math.log(n / b) for b, n in pairs)


def _compared(row: Row) -> dict[str, Any]:
    now = [above - further for above, further in pairwise([row["n"], *row["above"], 0])]
    # A door that opened once in a week moves the mean, and one that is open half of the time moves the median: both must move.
    shift = min(abs(row[statistic] - row[f"{statistic}_before"]) for statistic in ("mean", "median"))
    # A sensor that never varied has drifted once it does.
    deviations = shift / row["deviation"] if row["deviation"] else math.inf if shift else 0.0
    kept = {name: row[name] for name in ("device_id", "metric", "n", "mean_before", "deviation", "mean", "median_before", "median")}
    return kept | {"psi": psi(row["counts"], now), "shift": deviations, "counts": now, "counts_before": row["counts"]}


def _pooled(few: Iterable[dict[str, Any]], min_rows: int) -> list[dict[str, Any]]:
    """One row for each metric of devices that have too few rows of their own: each is binned by its own deciles, so they can be added."""
    of_metric: dict[str, list[dict[str, Any]]] = {}
    for row in few:
        of_metric.setdefault(row["metric"], []).append(row)
    pooled = []
    for rows in of_metric.values():
        n, most = sum(row["n"] for row in rows), max(rows, key=lambda row: row["n"])
        if n >= min_rows:
            # As many of each device on both sides: a device that says less than it did is no drift.
            before = [sum(row["n"] * row["counts_before"][b] / sum(row["counts_before"]) for row in rows) for b in range(10)]
            now = [sum(row["counts"][b] for row in rows) for b in range(10)]
            shift = sum(row["n"] * min(row["shift"], FARTHEST) for row in rows) / n
            pooled.append(most | {"n": n, "psi": psi(before, now), "shift": shift, "devices": len(rows), "of": len(rows)})
    return pooled


def _means(context: Context) -> dict[tuple[str, str], dict[int, float]]:
    means: dict[tuple[str, str], dict[int, float]] = {}
    for row in context.ask(MEANS):
        means.setdefault((row["device_id"], row["metric"]), {})[row["hour"]] = row["mean"]
    return means


def _how(context: Context, row: Row, moved: dict[tuple[str, str], Shift], means: dict[tuple[str, str], dict[int, float]]) -> str:
    """Describe the change: another unit, a swap, a step, or slow drift."""
    if named := describe_change(row["device_id"], row["metric"], moved, context.lake.conf.metrics):
        return named
    step, at = _largest_step(means[row["device_id"], row["metric"]])
    return f"it changed at once, about {hour(at)}" if step >= AT_ONCE * abs(row["mean"] - row["mean_before"]) else "it drifts slowly"


def _largest_step(means: dict[int, float]) -> tuple[float, int]:
    """How far the means of some hours are from those of as many hours before, and since when; each mean against that of a day before."""
    of_day = {hour: mean - means[hour - 24] for hour, mean in means.items() if hour - 24 in means}
    steps = [(0.0, 0)]
    for at in of_day:
        before, after = (
            [of_day[hour] for hour in range(at + first, at + first + STEP_HOURS) if hour in of_day] for first in (-STEP_HOURS, 0)
        )
        if len(before) == len(after) == STEP_HOURS:
            steps.append((abs(median(after) - median(before)), at))
    return max(steps)


def _by_metric(offenders: Iterable[dict[str, Any]], rows: Iterable[Row]) -> list[Row]:
    """One row for a metric of which most devices drift in the same way, else one for each."""
    series_of = Counter(row["metric"] for row in rows)
    alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in sorted(offenders, key=lambda row: -row["psi"]):
        alike.setdefault((row["metric"], row["how"]), []).append(row)
    merged: list[Row] = []
    for (metric, _), drifted in alike.items():
        is_metric = len(drifted) > max(1, MOST * series_of[metric]) and "devices" not in drifted[0]
        merged += [drifted[0] | {"devices": len(drifted), "of": series_of[metric]}] if is_metric else drifted
    return merged


def _describe(row: Row) -> str:
    subject = (
        f"{row['devices']} of {row['of']} devices, most of all {row['device_id']}" if "devices" in row else f"device {row['device_id']}"
    )
    medians = f"median {row['median_before']:.4g} before, {row['median']:.4g} now, PSI {row['psi']:.3g}"
    return f"{row['metric']} of {subject} has drifted: {row['how']} ({medians})"


def _fine(rows: Sequence[Row]) -> str:
    highest = max(rows, key=lambda row: row["psi"] if row["shift"] >= 1 else 0)
    most = f"{highest['metric']} of {highest['device_id']}, moved {highest['shift']:.2g} standard deviations"
    return f"{len(rows):,} series are as in the reference; the most different, {most}"


def describe_change(device_id: str, metric: str, moved: Mapping[tuple[str, str], Shift], metrics: Mapping[str, Metric]) -> str:
    """Another unit, a power of ten, or another metric of the same device, in words; empty if the change matches none of these."""
    this = moved[device_id, metric]
    for (other_device, other), that in moved.items():
        if other_device == device_id and other != metric and _is_swapped(this, that):
            return f"it looks swapped with {other}"
    for text, expected in _units(metric, this, metrics):
        if abs(this.now - expected) <= CLOSE * abs(expected - this.before):
            return text
    return ""


def _is_swapped(this: Shift, that: Shift) -> bool:
    """Each is now what the other was, and neither what it was."""
    there, back = abs(this.now - that.before), abs(that.now - this.before)
    return this.has_moved and that.has_moved and there <= 2 * that.deviation and back <= 2 * this.deviation


def _units(metric: str, this: Shift, metrics: Mapping[str, Metric]) -> Iterator[tuple[str, float]]:
    declared = metrics.get(metric)
    for unit, conversion in (declared.conversions if declared else {}).items():
        yield f"its unit looks changed, to {unit} without being converted", (this.before - conversion.add) / conversion.multiply
        yield f"its unit looks changed, converted from {unit} once too often", this.before * conversion.multiply + conversion.add
    for power in POWERS:
        yield f"its unit looks changed, values are {power:g} times as large", this.before * power
        yield f"its unit looks changed, values are {power:g} times as small", this.before / power
