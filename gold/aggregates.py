"""Aggregates: one row per closed window of one metric of one device.

Pure: the same function runs in the stream, in a replay and in a batch job.

In a stream in append mode a window is emitted once, when its end is a lateness behind the newest reading;
a reading that comes later is not counted (it is late for its group). In a batch job every window is there, open ones too.
"""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.spec import Group
from gold.windows import window_start, windowed
from silver.spec import Aggregation, Metric

ALWAYS: dict[str, Callable[[], Column]] = {
    "count": lambda: F.count("value"),
    "min": lambda: F.min("value"),
    "max": lambda: F.max("value"),
    "sum": lambda: F.sum("value"),
    "latest": lambda: F.max_by("value", "event_time"),
}
ON_DEMAND: dict[str, Callable[[], Column]] = {
    "first": lambda: F.min_by("value", "event_time"),
    "stddev": lambda: F.stddev_samp("value"),
    "median": lambda: F.median("value"),
}
"""Computed only where a metric asks: median keeps every value of an open window in state."""


def aggregates(readings: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """Windows of all the groups, which share one watermark; `device_group` tells them apart."""
    return by_window(windowed(readings, groups, metrics), groups, metrics)


def by_window(rows: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """Aggregates of rows that know their group and window."""
    used = {name: metrics[name] for group in groups for name in group.metrics}
    wanted = {m.aggregation.value for m in used.values()}
    measures = ALWAYS | {name: make for name, make in ON_DEMAND.items() if name in wanted}
    windows = rows.groupBy("device_group", "device_id", "metric", "window_end")
    return windows.agg(*(make().alias(name) for name, make in measures.items())).select(
        "device_group",
        "device_id",
        "metric",
        window_start(used).alias("window_start"),
        "window_end",
        _value(used).alias("value"),
        *ALWAYS,
    )


def _value(metrics: Mapping[str, Metric]) -> Column:
    """The one measure that the metric's aggregation type names."""
    value = F.lit(None).cast("double")
    for aggregation in {m.aggregation for m in metrics.values()}:
        names = [name for name, m in metrics.items() if m.aggregation is aggregation]
        measure = F.col("sum") / F.col("count") if aggregation is Aggregation.AVERAGE else F.col(aggregation.value)
        value = F.when(F.col("metric").isin(names), measure.cast("double")).otherwise(value)
    return value
