"""Assign readings to windows, and aggregate each window: one row per device group, device, metric and window. Instants are UTC.

With step 600 a reading of 00:07 is in the window 00:00-00:10. Every metric has its own step, so the end of the window is a computed column
(`window_end`), and Spark's `window` function is not used.

Pure: stream, replay and batch job call the same functions. A stream emits a window once, when the watermark has passed its end; a reading
that comes later is not counted here (it is late for its group). A batch job returns every window, open ones too.
"""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.literal import quoted
from gold.spec import Group
from gold.values import ALWAYS, by_metric, measures, value
from silver.spec import Metric

WATERMARK_DELAY_KEY = "spark.watermarkDelayMs"
"""The metadata key that marks a column as event time, as `withWatermark` and `window` do. Spark then closes windows by this column."""
COUNTED = ("device_id", "metric", "event_time", "value", "groups")
"""The columns of a reading that windows need."""


def of_groups(readings: DataFrame, groups: Sequence[Group]) -> DataFrame:
    """Return the readings that count for at least one of the groups, with all their columns."""
    if len(groups) == 1:  # compiled by Spark, which a function of an element is not
        return readings.where(F.array_contains("groups", groups[0].name) & F.col("metric").isin(*groups[0].metrics))
    return readings.where(F.expr(f"exists(groups, name -> {_counts_for(groups)})"))


def ticks(instants: DataFrame, groups: Sequence[Group]) -> DataFrame:
    """Turn instants into ticks: rows with the columns COUNTED but no device and value. They move the watermark and count nowhere.

    They carry a metric and groups, because Spark pushes what it knows of readings (such as "the metric is not null")
    below the watermark, and would keep ticks without them from ever reaching it.
    """
    return instants.select(
        F.lit(None).cast("string").alias("device_id"),
        F.lit(groups[0].metrics[0]).alias("metric"),
        F.col("event_time"),
        F.lit(None).cast("double").alias("value"),
        F.expr(f"array({_listed(group.name for group in groups)})").alias("groups"),
    )


def windowed(readings: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """Return one row per reading, group and window, with all columns of readings.

    In a stream there is one watermark: the largest lateness of the groups.
    The watermark follows the event time of readings, and a window closes once its *end* is behind it, whatever its step:
    `window_end` carries the mark that Spark's own `window` puts on its column. (With the window's start as watermark
    column, short windows would wait for the longest one.)
    """
    lateness = max(group.lateness_seconds for group in groups)
    used = {name: metrics[name] for group in groups for name in group.metrics}
    members = F.expr(f"filter(array_distinct(groups), name -> {_counts_for(groups)})")
    group = F.explode(members) if len(groups) > 1 else F.lit(groups[0].name)
    window_end = F.timestamp_seconds("end_seconds").alias("window_end", metadata={WATERMARK_DELAY_KEY: lateness * 1000})
    return (
        readings.withWatermark("event_time", f"{lateness} seconds")
        .select("*", _end_seconds(used).alias("end_seconds"))
        .select(*readings.columns, group.alias("device_group"), window_end)
    )


def aggregates(readings: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """Aggregate the windows of all groups, which share one watermark; the column `device_group` tells them apart."""
    return by_window(windowed(readings, groups, metrics), groups, metrics)


def by_window(rows: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """Aggregate rows that already have `device_group` and `window_end`."""
    used = {name: metrics[name] for group in groups for name in group.metrics}
    windows = rows.groupBy("device_group", "device_id", "metric", "window_end")
    return windows.agg(*measures(used)).select(
        "device_group",
        "device_id",
        "metric",
        window_start(used).alias("window_start"),
        "window_end",
        value(used).alias("value"),
        *ALWAYS,
    )


def window_start(metrics: Mapping[str, Metric]) -> Column:
    """Return the first instant of the window that ends at `window_end`."""
    return F.timestamp_seconds(F.unix_seconds("window_end") - by_metric({name: m.step_seconds for name, m in metrics.items()}))


def _end_seconds(metrics: Mapping[str, Metric]) -> Column:
    """Return the ends, in seconds since 1970, of the windows around `event_time`. A window holds its first instant and not its end."""
    slide = by_metric({name: m.every_seconds for name, m in metrics.items()})
    seconds = F.unix_seconds("event_time")
    first_end = seconds - F.pmod(seconds, slide) + slide
    if all(m.slide_seconds is None for m in metrics.values()):
        return first_end
    step = by_metric({name: m.step_seconds for name, m in metrics.items()})
    return F.explode(F.sequence(first_end, first_end + step - slide, slide))


def _counts_for(groups: Sequence[Group]) -> str:
    """Return SQL that says whether the group `name` is one of the groups and has the metric.

    As text, because a Column of 10,000 names takes 5 s to build.
    """
    return " or ".join(f"name in ({_listed(names)}) and metric in ({_listed(metrics)})" for metrics, names in by_metrics(groups).items())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def by_metrics(groups: Sequence[Group]) -> dict[tuple[str, ...], list[str]]:
    """Collect the names of groups that have the same metrics.

    Thousands of groups share few lists of metrics, and a test of 300 lists takes seven times as long as one of 3.
    """
    names: dict[tuple[str, ...], list[str]] = {}
    for group in groups:
        names.setdefault(group.metrics, []).append(group.name)
    return names
