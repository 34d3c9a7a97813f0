"""The silver layer: events to readings. Pure: the same functions run in the stream, in a replay and in a batch job.

Grain: one accepted measurement, typed, in the metric's unit, UTC, enriched, without duplicates within the lateness.
A measurement is accepted when every rule holds for it: silver/judging.py, which workers ask. What becomes of all others is in
silver/account.py.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pickle import dumps, loads

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from silver.enrich import ReferenceData
from silver.judging import Judge, conditions, cut_by_batch
from silver.measurements import OF_EVENT
from silver.policy import FormerConfig, SilverConfig
from silver.schema import KEYS, READING_COLUMNS, READINGS

LoadReferenceData = Callable[[], ReferenceData]
"""Asked by each task of Spark, in its worker: devices are registered while a stream runs."""
LATE, DUPLICATE = "late", "duplicate"
MILLISECOND = 1_000
BESIDE = "\x1f"
"""Between a metric and what stands beside it; no name of a metric holds it."""
RECORDED = pa.schema([("bronze_batch", pa.int64()), ("bronze_row", pa.int64()), ("part", pa.int32()), ("kind", pa.string())])
"""Grain: one measurement that was no reading when it came. `kind`: LATE or DUPLICATE."""
REPLAYED = f"""
  select o.* from (
    select g.*, r.kind, row_number() over (
      partition by g.device_id, g.metric, g.event_time
      order by g.bronze_batch, coalesce(r.kind = '{DUPLICATE}', false), g.bronze_row, g.part
    ) as place
    from {{good}} g
    left join {{recorded}} r on r.bronze_batch = g.bronze_batch and r.bronze_row = g.bronze_row and r.part = g.part
  ) o
  left join {{before}} b on b.device_id = o.device_id and b.metric = o.metric and b.event_time = o.event_time
  where o.place = 1 and coalesce(o.kind <> '{LATE}', true) and b.device_id is null
"""
"""Readings among `good`, the accepted measurements of a range of bronze batches.

`recorded`: see RECORDED. `before`: KEYS that stand already, of batches before the range. The first batch that has a key keeps it; within a
batch, which knows no order, the measurement that was kept then.
"""


def readings(
    events: DataFrame, load: LoadReferenceData, config: SilverConfig, lateness_seconds: int, former: Sequence[FormerConfig] = ()
) -> DataFrame:
    """Accepted measurements, the first of each key. In a stream, a row behind the watermark is not among them (it is late). Keys are never
    null here: null keys are equal to dropDuplicates, which would keep one of them and lose the rest."""
    rows = accepted(events, load, config, former, is_timed=True)
    kept = rows.withWatermark("event_time", f"{lateness_seconds} seconds").dropDuplicates(KEYS)
    is_moved = (F.unix_micros("event_time") == MILLISECOND) & F.col("metric").contains(BESIDE)
    metric, micros = F.substring_index("metric", BESIDE, 1), F.substring_index("metric", BESIDE, -1)
    restored = {"metric": metric, "event_time": F.timestamp_micros(micros.cast("long"))}
    return kept.withColumns({name: F.when(is_moved, its_own).otherwise(F.col(name)) for name, its_own in restored.items()})


def accepted(
    events: DataFrame, load: LoadReferenceData, config: SilverConfig, former: Sequence[FormerConfig] = (), *, is_timed: bool = False
) -> DataFrame:
    """Every measurement that breaks no rule, READING_COLUMNS. An event of a source without a shape has none.

    `former`: settings of earlier bronze batches, in order. `is_timed`: for a watermark, see `_behind_1970`.
    """
    configs = (*(earlier.config for earlier in former), config)
    shapes = [shape for of_batches in configs for shape in of_batches.shapes.values()]
    # What no format reads goes to no worker (measured: 0.3 us an event for both).
    beside = frozenset[str]().union(*(shape.beside for shape in shapes))
    unread = {"header": not any(shape.format == "csv" for shape in shapes), "position": "position" not in beside}
    read = [F.lit(None).cast("string").alias(name) if is_unread else name for name, is_unread in unread.items()]
    pickled = [dumps((of_batches, conditions(of_batches))) for of_batches in configs]
    in_worker = partial(_accepted, pickled, [earlier.end for earlier in former], load, is_timed)
    read += sorted(beside - unread.keys())
    return events.select(*OF_EVENT, "payload", *read).mapInArrow(in_worker, from_arrow_schema(READINGS))


def replayed(good: DataFrame, recorded: DataFrame, before: DataFrame) -> DataFrame:
    """READING_COLUMNS of the readings among rows of `accepted`, by today's rules, of a range of bronze batches. Which rows are late depends
    on how batches were cut when the events came, so it is taken as recorded and not decided anew."""
    return good.sparkSession.sql(REPLAYED, good=good, recorded=recorded, before=before).select(*READING_COLUMNS)


def without_keys_of(late: DataFrame, readings: DataFrame) -> DataFrame:
    """Readings without those whose key a row of silver.late has: that one is kept, so they are its duplicates."""
    return readings.join(late.select(*KEYS), on=KEYS, how="left_anti").select(*readings.columns)


def _accepted(
    pickled: Sequence[bytes], ends: Sequence[int], load: LoadReferenceData, is_timed: bool, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    reference_data = load()
    for batch in batches:
        for of_config, events in zip(pickled, cut_by_batch(pa.Table.from_batches([batch]), ends), strict=True):
            for piece in _judge(of_config).accepted(events, reference_data) if len(events) else ():
                yield from (_behind_1970(piece) if is_timed else piece).to_batches()


def _behind_1970(readings: pa.Table) -> pa.Table:
    """Put the first instant behind 1970 in the place of a time before it, and the time itself beside the metric.

    A watermark begins at 1970, and what is before would be late in the first batch. Workers do it, as a CASE before the exchange and two
    more columns in it would cost each row of today.
    """
    micros = readings["event_time"].cast(pa.int64())
    is_before = pc.less(micros, MILLISECOND)
    if not pc.any(is_before).as_py():
        return readings
    beside = pc.binary_join_element_wise(readings["metric"], micros.cast(pa.string()), BESIDE)
    moved = {"metric": beside, "event_time": pa.scalar(MILLISECOND).cast(READINGS.field("event_time").type)}
    columns = {name: pc.if_else(is_before, moved[name], readings[name]) if name in moved else readings[name] for name in READING_COLUMNS}
    return pa.table(columns, READINGS)


@lru_cache(maxsize=2)
def _judge(pickled: bytes) -> Judge:
    """The judge of a pickled conf and its conditions; compiled once a worker, which does many tasks."""
    return Judge(*loads(pickled))
