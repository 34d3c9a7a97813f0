"""Readings of a new generation, range by range of bronze batches: by Spark, or in this process where they are few.

To plan and compile for a few thousand events takes Spark 5 to 10 s beside a run, and what came meanwhile is a few thousand events.
"""

from collections.abc import Iterator
from functools import reduce
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration.engine.lake import Lake
from orchestration.engine.session import from_arrow
from orchestration.engine.writing import holds_few
from orchestration.jobs.measurements import LoadReferenceData, ReferenceData, append_once, evaluated, in_span
from orchestration.jobs.ranges import Range, pieces, range_after
from orchestration.jobs.replay import NAME, PinnedGeneration
from orchestration.storage.delta import files_of, in_log, open_table
from orchestration.storage.tables import append
from silver import account
from silver.account import IDENTITY
from silver.readings import accepted, as_readings
from silver.replay import DUPLICATE, LATE, RECORDED, replayed, replayed_in_process
from silver.schema import KEYS

READINGS = "silver.readings"


def silver(lake: Lake, recorded: PinnedGeneration, reference_data: LoadReferenceData, first: int) -> Iterator[int]:
    """Readings of bronze batches from `first` on; yields the events of each range."""
    after, up_to = first - 1, recorded.snapshot.bronze_batch
    while after < up_to:
        batches = range_after(lake, after, up_to)
        if _is_few(lake, batches):
            yield _in_process(lake, recorded, reference_data, batches)
        else:
            yield _by_spark(lake, recorded, reference_data(lake), batches)
        after = batches.up_to


def _is_few(lake: Lake, batches: Range) -> bool:
    """By the log; a compacted file counts whole."""
    path = lake.table_path("bronze.events")
    events = open_table(path)
    log = in_log(events, "size_bytes", "min.bronze_batch", "max.bronze_batch").to_pydict()
    files = zip(files_of(events), *log.values(), strict=True)
    return holds_few(lake, path, {name: size for name, size, least, most in files if _meets(batches, least, most)})


def _meets(batches: Range, least: int | None, most: int | None) -> bool:
    """A file without rows has neither."""
    return least is not None and most is not None and most > batches.after and least <= batches.up_to


def _in_process(lake: Lake, recorded: PinnedGeneration, reference_data: LoadReferenceData, batches: Range) -> int:
    events = pa.concat_tables(pieces(lake, "bronze.events", f"select * from rows where {batches.sql()}"))
    good = [account.split(measurements)[1] for measurements in evaluated(lake, reference_data, events)]
    if any(map(len, good)):
        rows = pa.concat_tables(good)
        known = pa.concat_tables(_recorded_rows(recorded, batches))
        readings = replayed_in_process(rows, known, pa.concat_tables(_standing_rows(lake, recorded, batches, rows)))
        append_once(lake, READINGS, [readings], lake.app_id(NAME, READINGS), batches.up_to)
    return len(events)


def _recorded_rows(recorded: PinnedGeneration, batches: Range) -> Iterator[pa.Table]:
    yield RECORDED.empty_table()
    for kind, name, where in ((LATE, "silver.late", "cause = 'late'"), (DUPLICATE, "silver.duplicates", "true")):
        for rows in recorded.rows(name, IDENTITY, f"{batches.sql()} and {where}"):
            yield rows.append_column("kind", pa.repeat(kind, len(rows))).cast(RECORDED)


def _standing_rows(lake: Lake, recorded: PinnedGeneration, batches: Range, good: pa.Table) -> Iterator[pa.Table]:
    """Those keys of measurements of a range that stand already. One very old event time may span all rows, so only these are held."""
    times = pc.min_max(good["event_time"].cast(pa.int64())).as_py()
    where = f"bronze_batch <= {batches.after} and {in_span(times['min'], times['max'])}"
    stored = [pieces(lake, name, f"select {', '.join(KEYS)} from rows where {where}") for name in (READINGS, "silver.late")]
    for rows in chain(*stored, recorded.rows("silver.late", KEYS, f"{where} and cause = 'late'")):
        yield account.among(rows, KEYS, good)


def _by_spark(lake: Lake, recorded: PinnedGeneration, reference_data: ReferenceData, batches: Range) -> int:
    reference, config = reference_data
    events = batches.of(lake.read("bronze.events"))
    good = accepted(events, reference, config)
    if batches.after >= 0:
        good.persist()  # its times are asked before it is written
    try:
        rows = replayed(good, _recorded(recorded, batches), _standing(lake, recorded, batches, good))
        append(as_readings(rows, reference, config.policy), lake.tables[READINGS], lake.app_id(NAME, READINGS), batches.up_to)
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
