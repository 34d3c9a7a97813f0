"""The silver layer as a batch job, for a replay: the readings of a range of bronze batches, by today's rules. Pure.

What is late depends on how batches were cut when the events came, so it is taken as it was recorded and not decided anew.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from silver.account import IDENTITY
from silver.readings import KEYS, READING_COLUMNS

LATE, DUPLICATE = "late", "duplicate"
RECORDED = "bronze_batch BIGINT, bronze_row BIGINT, part INT, kind STRING"
"""Grain: one measurement that was no reading when it came. `kind`: LATE or DUPLICATE."""


def replayed_readings(measurements: DataFrame, recorded: DataFrame, before: DataFrame | None) -> DataFrame:
    """Readings among the measurements (silver.readings.with_rule_results) of a range of bronze batches.

    `recorded`: see RECORDED. `before`: KEYS that stand already, of batches before the range; None for none. The first batch that has a
    key keeps it; within a batch, which knows no order, the measurement that was kept then.
    """
    good = measurements.where(F.size("broken_rules") == 0).select(*READING_COLUMNS)
    with_kind = good.join(recorded, on=IDENTITY, how="left")
    was_duplicate = F.coalesce(F.col("kind") == DUPLICATE, F.lit(False))
    in_order = Window.partitionBy(*KEYS).orderBy("bronze_batch", was_duplicate, "bronze_row", "part")
    kept = with_kind.withColumn("place", F.row_number().over(in_order)).where(F.col("place") == 1)
    in_time = kept.where(F.coalesce(F.col("kind") != LATE, F.lit(True))).select(*READING_COLUMNS)
    return in_time if before is None else in_time.join(before, on=KEYS, how="left_anti").select(*READING_COLUMNS)
