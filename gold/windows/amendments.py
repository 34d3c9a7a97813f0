"""Amendments: which windows late rows change, and what those windows are with them. Pure.

And, for a replay, the gold layer as a batch job: the windows that are closed, with all that counts for them.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.windows.aggregates import by_window, of_groups, windowed
from gold.windows.spec import Group
from silver.metric import Metric

OF_WINDOW = ["device_group", "device_id", "metric", "window_end"]
OF_ROW = ["bronze_batch", "bronze_row", "part"]
LATE_KEY = ["device_group", *OF_ROW, "window_end"]
LATE_COLUMNS = ["device_group", "device_id", "metric", "event_time", "value", "window_end", "bronze_batch", "bronze_row", "part"]


def behind(readings: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric], closed_until: Column) -> DataFrame:
    """Readings late for their groups: one row for each of their windows that ends at `closed_until` or before, with its `device_group`."""
    rows = windowed(of_groups(readings, groups), groups, metrics).where(F.col("window_end") <= closed_until)
    return rows.select(*LATE_COLUMNS)


def recomputed(rows: DataFrame, affected: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """The affected windows (OF_WINDOW), as a batch job over `rows`, readings and late rows, gives them."""
    of_affected = windowed(of_groups(rows, groups), groups, metrics).join(F.broadcast(affected), on=OF_WINDOW, how="left_semi")
    return by_window(of_affected, groups, metrics)


def closed_in_time(
    readings: DataFrame, late: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric], closed_until: Column
) -> DataFrame:
    """Windows that end at `closed_until` or before, of what came in time for them. `late`: as of gold.late."""
    rows = windowed(of_groups(readings, groups), groups, metrics).where(F.col("window_end") <= closed_until)
    return by_window(rows.join(late, on=LATE_KEY, how="left_anti"), groups, metrics)


def late_again(
    readings: DataFrame, late: DataFrame, groups: Sequence[Group], metrics: Mapping[str, Metric], closed_until: Column
) -> DataFrame:
    """Rows of gold.late that are still true: of readings, and of windows as the conf has them now."""
    recorded = F.broadcast(late.select(*LATE_KEY))
    still_late = behind(readings.join(recorded.select(*OF_ROW).distinct(), on=OF_ROW, how="left_semi"), groups, metrics, closed_until)
    return still_late.join(recorded, on=LATE_KEY, how="left_semi").select(*LATE_COLUMNS)
