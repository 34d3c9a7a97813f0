"""Silver and gold of a new generation, by batch jobs over a prefix of bronze, with the same functions of the layers as the streams.

Lateness was decided once, when the events came, and is recorded: it is read from the generation that a snapshot pins, and kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import ceil

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from gold.windows.aggregates import clock, of_groups
from gold.windows.amendments import OF_WINDOW, behind, closed_in_time, late_again, recomputed
from gold.windows.chains import chained
from gold.windows.spec import Group, Late
from gold.windows.vectors import SCHEMA, in_blocks
from orchestration.engine.lake import Lake
from orchestration.engine.session import from_arrow
from orchestration.engine.windows import LIMITS, Piece, by_entity, measured
from orchestration.engine.writing import append
from orchestration.jobs.ranges import Range, range_after, row_count
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import table_of, version_of
from orchestration.storage.ops_tables import LEDGER, LEDGER_FLOW, TICKS
from orchestration.storage.positions import accounted_for
from orchestration.storage.silver_inputs import publish, silver_config
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.tables import Table
from silver.account import IDENTITY
from silver.metric import Metric
from silver.readings import DUPLICATE, LATE, RECORDED, accepted, replayed
from silver.schema import KEYS

NAME = "replay"
FEW_ROWS = 100_000
"""Up to so many events it is not worth to compile the plan."""
NO_GOLD_BATCH = -1
DAY_SECONDS = 86_400
READINGS = "silver.readings"
Times = tuple[int, int]
"""The first and the last event time of some rows, in microseconds since 1970."""
NO_TIMES = (0, -1)
ENDS = ("unix_micros(min(event_time)) as first", "unix_micros(max(event_time)) as last")
OF_SILVER = (READINGS, "silver.quarantine", "silver.late", "silver.duplicates")


@dataclass(frozen=True)
class PinnedGeneration:
    """The tables that a snapshot pins in its generation."""

    lake: Lake
    snapshot: Snapshot

    def late(self) -> DataFrame:
        """Rows that were late when they came. What a retry found good is not among them: it is a reading like any other now."""
        return self.read("silver.late").where(F.col("cause") == "late")

    def as_accounted_for(self) -> "PinnedGeneration":
        """Return the same with what the ledger has recorded of silver by now: it is ahead of the snapshots of a running pipeline."""
        up_to = accounted_for(self.lake)  # asked first: what it tells of is in the tables
        versions = {name: version_of(self.lake.table_path(name)) for name in (READINGS, "silver.late", "silver.duplicates")}
        return PinnedGeneration(self.lake, replace(self.snapshot, bronze_batch=up_to, versions=versions))

    def read(self, name: str) -> DataFrame:
        """A table as it was, of the prefix; empty where the snapshot knows none of that name."""
        if name not in self.snapshot.versions:
            return self.lake.spark.createDataFrame([], from_arrow_schema(self.lake.tables[name].schema))
        pinned = self.lake.spark.read.format("delta").option("versionAsOf", self.snapshot.versions[name])
        return pinned.load(str(self.lake.table_path(name))).where(F.col("bronze_batch") <= self.snapshot.bronze_batch)


def copy_before(lake: Lake, recorded: PinnedGeneration, first: int) -> None:
    """Copy all records of bronze batches before `first`, the account included."""
    for name in OF_SILVER:
        rows = recorded.read(name).where(F.col("bronze_batch") < first)
        append(rows, lake.tables[name], lake.app_id(NAME, name), first - 1, is_large=True)
    account = table_of(recorded.lake.table_path(LEDGER))
    before = account.filter(pc.less(account["bronze_batch"], first))
    append_rows(lake.table_path(LEDGER), before, lake.app_id(LEDGER_FLOW, LEDGER), first - 1)


def silver(lake: Lake, recorded: PinnedGeneration, first: int) -> Iterator[int]:
    """Readings of bronze batches from `first` on; yields the events of each range."""
    after, up_to = first - 1, recorded.snapshot.bronze_batch
    while after < up_to:
        batches = range_after(lake, after, up_to)
        here = lake.interpreted() if row_count(lake, batches) <= FEW_ROWS else lake
        as_recorded = replace(recorded, lake=Lake(recorded.lake.conf, here.spark, recorded.lake.generation))
        yield _append_range(here, as_recorded, batches)
        after = batches.up_to


def _append_range(lake: Lake, recorded: PinnedGeneration, batches: Range) -> int:
    """Append the readings of a range; returns its events.

    Only keys of the times that measurements of the range had before are compared with, so that Spark computes its rows once. Where readings
    have other times now, because conf reads them otherwise, the range is written again and compared with keys of these times too.
    """
    events = batches.of(lake.read("bronze.events"))
    good = accepted(events, publish(lake), silver_config(lake.conf))
    # Duplicates too: what stands of their key may be of an earlier time than any reading of the range.
    before = (batches.of(recorded.read(name)).select("event_time") for name in (READINGS, "silver.duplicates"))
    times = _times(reduce(DataFrame.unionByName, before).selectExpr(*ENDS).collect()[0].asDict())
    is_written = False
    while not is_written:
        ends = Observation()
        readings = replayed(good, _recorded(recorded, batches), _standing(lake, recorded, batches, times)).observe(ends, *map(F.expr, ENDS))
        is_whole = partial(_are_within, ends, times if batches.after >= 0 else None)
        app_id = lake.app_id(NAME, READINGS)
        is_written = append(readings, lake.tables[READINGS], app_id, batches.up_to, is_large=True, may_commit=is_whole)
        seen = _times(ends.get)
        times = seen if times == NO_TIMES else (min(times[0], seen[0]), max(times[1], seen[1]))
    return events.count()


def _times(ends: Mapping[str, int | None]) -> Times:
    first, last = ends["first"], ends["last"]
    return NO_TIMES if first is None or last is None else (first, last)


def _are_within(ends: Observation, times: Times | None) -> bool:
    """Whether times that were observed are all among these; None: among any."""
    first, last = _times(ends.get)
    return times is None or first > last or times[0] <= first <= last <= times[1]


def _recorded(recorded: PinnedGeneration, batches: Range) -> DataFrame:
    kinds = [
        batches.of(rows).select(*IDENTITY, F.lit(kind).alias("kind"))
        for rows, kind in ((recorded.late(), LATE), (recorded.read("silver.duplicates"), DUPLICATE))
    ]
    return reduce(DataFrame.unionByName, kinds, from_arrow(recorded.lake.spark, RECORDED.empty_table()))


def _standing(lake: Lake, recorded: PinnedGeneration, batches: Range, times: Times) -> DataFrame:
    """Keys of these times that batches before the range have."""
    first, last = (F.timestamp_micros(F.lit(end)) for end in times)
    before = (F.col("bronze_batch") <= batches.after) & F.col("event_time").between(first, last)
    kept = [rows.where(before).select(*KEYS) for rows in (lake.read(READINGS), lake.read("silver.late"), recorded.late())]
    return reduce(DataFrame.unionByName, kept)


def closed_until_ms(lake: Lake, groups: Sequence[Group], stream: str, up_to: int) -> int:
    """The watermark of a stream that has read a prefix of silver, in milliseconds since 1970; 0 where it has read nothing."""
    of_stream = of_groups(lake.read("silver.readings").where(F.col("bronze_batch") <= up_to), groups)
    ticks = lake.read(TICKS.table).where(F.col("stream") == stream).select(clock(None))
    newest = of_stream.select(clock(lake.conf.ahead_of(stream))).union(ticks).agg(F.unix_millis(F.max("clock"))).collect()[0][0]
    lateness = max(group.lateness_seconds for group in groups)
    return 0 if newest is None else max(newest - lateness * 1000, 0)


def gold(lake: Lake, recorded: PinnedGeneration, stream: str, groups: Sequence[Group], until_ms: int) -> Iterator[int]:
    """Append closed windows and vectors of a stream; yields how many windows. As live, revision 1 is what late rows change."""
    up_to, metrics, closed_until = recorded.snapshot.bronze_batch, lake.conf.metrics, F.timestamp_millis(F.lit(until_ms))
    of_late = lake.gold(stream)[2]
    readings, late_rows = (lake.read(f"silver.{name}").where(F.col("bronze_batch") <= up_to) for name in ("readings", "late"))
    again = late_again(readings, recorded.read(recorded.lake.gold(stream)[2].name), groups, metrics, closed_until)
    _append(lake, stream, again, of_late, 0)
    late, folded = lake.read(of_late.name), [group for group in groups if group.late is Late.AMEND]
    in_time = closed_in_time(readings, late, groups, metrics, closed_until).persist()
    windows = chained(in_time, None, metrics, until_ms * 1000).persist()
    names = F.col("device_group").isin([group.name for group in folded])
    affected = behind(late_rows, folded, metrics, closed_until).select(*OF_WINDOW) if folded else late.where("false").select(*OF_WINDOW)
    affected = affected.union(late.where(names).select(*OF_WINDOW)).distinct().persist()
    try:
        counted = measured(windows)
        before = _append_revision(lake, stream, groups, windows, 0)
        if measured(affected):
            rows = readings.unionByName(late_rows.drop("cause", "retry"))
            amended = recomputed(rows, affected, folded, metrics)
            every = chained(
                amended.unionByName(in_time.where(names).join(affected, OF_WINDOW, "left_anti")), None, metrics, until_ms * 1000
            )
            # A late row changes the count of its window, and of a chain what the windows behind it carry.
            as_before = [F.col(f"every.{name}").eqNullSafe(F.col(f"windows.{name}")) for name in (*OF_WINDOW, "count", "value", "carry")]
            new = every.alias("every").join(windows.alias("windows"), reduce(Column.__and__, as_before), "left_anti")
            _append_revision(lake, stream, folded, every, 1, new, before)
        yield counted.count if counted else 0
    finally:
        for rows in (in_time, windows, affected):
            rows.unpersist()


def _append_revision(  # noqa: PLR0917
    lake: Lake,
    stream: str,
    groups: Sequence[Group],
    windows: DataFrame,
    revision: int,
    new: DataFrame | None = None,
    before: DataFrame | None = None,
) -> DataFrame | None:
    """Windows, or those that are `new`, and vectors of all, without those that are as `before`. Returns the vectors; None for none."""
    aggregates, of_vectors, _ = lake.gold(stream)
    _append(lake, stream, (windows if new is None else new).withColumn("revision", F.lit(revision)), aggregates, revision)
    completed = [vectors(windows, *alike, lake.conf.metrics) for alike in by_entity(groups)]
    if not completed:
        return None
    made = reduce(DataFrame.unionByName, completed)
    changed = made if before is None else made.join(before, made.columns, "left_anti")
    _append(lake, stream, changed.withColumn("revision", F.lit(revision)), of_vectors, revision)
    return made


def _append(lake: Lake, stream: str, rows: DataFrame, table: Table, step: int) -> None:
    stamped = rows.withColumn("gold_batch", F.lit(NO_GOLD_BATCH).cast("bigint"))
    append(stamped, table, lake.app_id(f"{NAME}/{stream}", table.name), step)


def vectors(windows: DataFrame, entity: str, fill_seconds: int, groups: Sequence[Group], metrics: Mapping[str, Metric]) -> DataFrame:
    """See gold.vectors.vectors: of any number of windows, as Spark hands that function a slice of time of some entities after another.

    A window is in its slice of time, and in the next one too where it may fill vectors of that. For the rest see windows.by_entity.
    """
    slice_seconds = max(DAY_SECONDS, fill_seconds)
    first, last = (F.floor((F.unix_seconds("window_end") + seconds) / slice_seconds) for seconds in (0, fill_seconds))
    count, slices = windows.agg(F.count("*"), F.count_distinct(first)).collect()[0]
    bucket = F.pmod(F.xxhash64(entity), F.lit(max(ceil(count / max(slices, 1) / LIMITS.rows), 1)))
    in_slices = windows.withColumns({"slice": F.explode(F.sequence(first, last)), "bucket": bucket})

    def of_slice(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin = key[0].as_py() * slice_seconds
        of_this = Piece(begin, begin + slice_seconds - 1)
        for block in in_blocks(pa.Table.from_batches(batches), groups, metrics):
            yield from of_this.ending_in(block).to_batches()

    return in_slices.groupBy("slice", "bucket").applyInArrow(of_slice, from_arrow_schema(SCHEMA))
