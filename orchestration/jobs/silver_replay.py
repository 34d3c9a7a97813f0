"""Readings of a new generation, range by range of bronze batches."""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration.engine.lake import Lake
from orchestration.engine.session import from_arrow
from orchestration.engine.writing import append
from orchestration.jobs.ranges import Range, range_after, row_count
from orchestration.jobs.replay import NAME, PinnedGeneration
from orchestration.storage.reference_data import publish
from orchestration.storage.silver_settings import silver_config
from orchestration.storage.tables import MAX_ARROW_ROWS
from silver.account import IDENTITY
from silver.readings import accepted
from silver.replay import DUPLICATE, LATE, RECORDED, replayed
from silver.schema import KEYS

READINGS = "silver.readings"


def silver(lake: Lake, recorded: PinnedGeneration, first: int) -> Iterator[int]:
    """Readings of bronze batches from `first` on; yields the events of each range."""
    after, up_to = first - 1, recorded.snapshot.bronze_batch
    while after < up_to:
        batches = range_after(lake, after, up_to)
        # It is not worth compiling the plan for a few rows.
        here = lake.interpreted() if row_count(lake, batches) <= MAX_ARROW_ROWS else lake
        as_recorded = replace(recorded, lake=Lake(recorded.lake.conf, here.spark, recorded.lake.generation))
        yield _of_range(here, as_recorded, batches)
        after = batches.up_to


def _of_range(lake: Lake, recorded: PinnedGeneration, batches: Range) -> int:
    events = batches.of(lake.read("bronze.events"))
    good = accepted(events, publish(lake.conf.lake), silver_config(lake.conf))
    if batches.after >= 0:
        good.persist()  # its times are asked before it is written
    try:
        readings = replayed(good, _recorded(recorded, batches), _standing(lake, recorded, batches, good))
        append(readings, lake.tables[READINGS], lake.app_id(NAME, READINGS), batches.up_to, is_large=True)
        return events.count()
    finally:
        good.unpersist()


def _recorded(recorded: PinnedGeneration, batches: Range) -> DataFrame:
    kinds = [
        batches.of(rows).select(*IDENTITY, F.lit(kind).alias("kind"))
        for rows, kind in ((recorded.late(), LATE), (recorded.read("silver.duplicates"), DUPLICATE))
    ]
    return reduce(DataFrame.unionByName, kinds, from_arrow(recorded.lake.spark, RECORDED.empty_table()))


def _standing(lake: Lake, recorded: PinnedGeneration, batches: Range, good: DataFrame) -> DataFrame:
    """Keys that measurements of a range may meet again."""
    none = lake.read(READINGS).select(*KEYS).where(F.lit(False))
    ends = F.unix_micros(F.min("event_time")), F.unix_micros(F.max("event_time"))
    first, last = good.agg(*ends).collect()[0] if batches.after >= 0 else (None, None)
    if first is None:
        return none
    of_these_times = F.col("event_time").between(F.timestamp_micros(F.lit(first)), F.timestamp_micros(F.lit(last)))
    placed = (lake.read(READINGS), lake.read("silver.late"), recorded.late())
    kept = [rows.where(F.col("bronze_batch") <= batches.after).where(of_these_times).select(*KEYS) for rows in placed]
    return reduce(DataFrame.unionByName, kept, none)
