"""Chains: windows whose value depends on what came before them, by Spark: links.py makes them for the devices of one bucket. Pure."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from gold.schema import WINDOW_KEY
from gold.windows.links import MADE, THE_BEGINNING, WINDOWS, link
from gold.windows.spec import IN_ORDER
from silver.metric import Metric

BUCKETS = 32
"""Parts in which devices are made: so many calls of Python a micro-batch, and a part of a backlog fits in memory."""


def chained(windows: DataFrame, recorded: DataFrame | None, metrics: Mapping[str, Metric], until: int = THE_BEGINNING) -> DataFrame:
    """Complete the windows that aggregates.by_window leaves without a value. `recorded`: rows of gold.aggregates before or between them.
    `until`: see links.link.

    Windows of one device are made in one place, whatever their number.
    """
    if "series" not in windows.columns:
        return windows
    is_linked = F.col("metric").isin([name for name, metric in metrics.items() if metric.aggregation in IN_ORDER])
    rows = windows.where(is_linked)
    if recorded is not None:
        rows = rows.unionByName(recorded.select(*WINDOW_KEY, "carry"), allowMissingColumns=True)

    def of_bucket(bucket: pa.Table) -> pa.Table:
        return link(bucket.select(WINDOWS.names).cast(WINDOWS), metrics, until)

    bucket = F.pmod(F.xxhash64("device_id"), F.lit(BUCKETS))
    made = rows.groupBy(bucket).applyInArrow(of_bucket, from_arrow_schema(MADE))
    return windows.where(~is_linked).select(*MADE.names).unionByName(made)
