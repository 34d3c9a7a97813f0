"""Amendments: which windows late rows change, and what those windows are with them. Pure."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.aggregates import by_window
from gold.spec import Group
from gold.windows import of_groups, windowed
from silver.spec import Metric

OF_WINDOW = ["group", "device_id", "metric", "window_end"]
LATE_COLUMNS = ["device_id", "metric", "event_time", "value", "window_end", "bronze_batch", "bronze_row", "part"]


def behind(readings: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric], closed_until: Column) -> DataFrame:
    """Readings late for their groups: one row for each of their windows that ends at `closed_until` or before, with its `group`."""
    rows = windowed(of_groups(readings, groups), groups, metrics).where(F.col("window_end") <= closed_until)
    return rows.select("group", *LATE_COLUMNS)


def recomputed(rows: DataFrame, affected: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """The affected windows (OF_WINDOW), as a batch job over `rows`, readings and late rows, gives them."""
    of_affected = windowed(of_groups(rows, groups), groups, metrics).join(F.broadcast(affected), on=OF_WINDOW, how="left_semi")
    return by_window(of_affected, groups, metrics)
