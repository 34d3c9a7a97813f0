"""What becomes of windows that a micro-batch closed: appended to the tables of their group, as are the vectors that they complete."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold import few_vectors
from gold.schema import WINDOW_KEY
from gold.spec import Group, Vector
from gold.vectors import vectors
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.writing import gold_tables, read_latest
from orchestration.storage.tables import append
from orchestration.streaming import few_windows
from orchestration.streaming.closed import Batch, Closed


def windows(lake: Lake, flow: str, groups: Sequence[Group], batch: DataFrame, batch_id: int) -> None:
    """Closed windows to aggregates, and the vectors that they complete."""
    this = Batch(lake, flow, batch_id)
    # Windows without a device are those of ticks.
    rows = this.stamped(batch.where(F.col("device_id").isNotNull())).persist()
    try:
        # This also runs the query to its end. Most batches close nothing, and then nothing is written.
        measures = F.count("*"), F.unix_seconds(F.min("window_end")), F.sum(F.octet_length("device_id"))
        by_name = {group.name: group for group in groups}
        closed = [Closed(by_name[name], *measured) for name, *measured in rows.groupBy("group").agg(*measures).collect()]
        if not few_windows.append_all(this, closed, rows):
            for each in closed:
                # One partition saves the vectors two shuffles, and every table small files.
                _append(this, each, rows.where(F.col("group") == each.group.name).drop("group").coalesce(1))
        crash.point(crash.Point.WINDOWS_WRITTEN)
    finally:
        rows.unpersist()


def _append(this: Batch, each: Closed, rows: DataFrame) -> None:
    aggregates, of_vectors, _ = gold_tables(this.lake, each.group)
    # Spark hands over what is few, so that has to be short.
    is_short = each.name_bytes <= few_windows.SMALL.name_bytes
    append(rows, aggregates, this.app_id(aggregates), this.number, each.count if is_short else None)
    crash.point(crash.Point.AGGREGATES_WRITTEN)
    if each.group.vector is not None:
        completed = _vectors(this, each, each.group.vector, rows)
        is_short &= each.count * few_vectors.size_of_one(each.group, each.group.vector) <= few_windows.SMALL.more_bytes
        append(this.stamped(completed), of_vectors, this.app_id(of_vectors), this.number, each.count if is_short else None)


def _vectors(this: Batch, each: Closed, vector: Vector, rows: DataFrame) -> DataFrame:
    """At the ends of windows that closed now; earlier windows only fill them."""
    if vector.max_fill_seconds:
        # Without the rows of this batch, which a repeated batch finds in the table already.
        earlier = read_latest(this.lake, gold_tables(this.lake, each.group)[0], WINDOW_KEY).where(F.col("gold_batch") < this.number)
        rows = rows.unionByName(earlier.where(F.col("window_end") >= F.timestamp_seconds(F.lit(each.first_end - vector.max_fill_seconds))))
    made = vectors(rows, each.group, vector, this.lake.conf.metrics)
    return made.where(F.col("window_end") >= F.timestamp_seconds(F.lit(each.first_end)))
