"""What becomes of a micro-batch: appended to its tables, each once, however often the batch is repeated.

Every append carries pipeline/flow/table/generation as its application id and the micro-batch as its version, so that
Delta itself refuses the second one. Without it, a crash between two tables doubles rows.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from bronze.events import identified, without_headers
from gold.revisions import latest
from gold.schema import WINDOW_KEY
from gold.spec import Group, Vector
from gold.vectors import vectors
from orchestration import crash
from orchestration.engine.session import interpreted
from orchestration.former_sources import shapes
from orchestration.lake import Lake
from orchestration.streaming.amount import are_few_lines, is_little_read
from orchestration.streaming.checkpoints import THE_BEGINNING, first_bronze_batch, start_of
from orchestration.streaming.intake import first_line
from orchestration.streaming.reach import watermark_ms
from orchestration.tables import FEW, Table, append, append_rows, max_in_log
from silver.retry import without_keys_of


@dataclass(frozen=True)
class Closed:
    """Windows of one group that a micro-batch closed. `first_end`: the least end, in seconds since 1970."""

    rows: DataFrame
    count: int
    first_end: int


def events(lake: Lake, table: Table, batch: DataFrame, batch_id: int) -> None:
    """Bronze: header lines become a column, rows get their identity."""
    with_header = [name for name, shape in shapes(lake.conf).items() if shape.has_header]
    bronze_batch = first_bronze_batch(lake, table) + batch_id
    # One file a commit, so that silver can take one commit at a time.
    rows = without_headers(batch, _headers(batch, with_header)).coalesce(1)
    _append_batch(lake, table, identified(rows, bronze_batch), bronze_batch, is_small=are_few_lines(lake, batch))
    crash.point(crash.Point.EVENTS_WRITTEN)


def readings(lake: Lake, table: Table, batch: DataFrame, batch_id: int) -> None:
    """Silver: rows as the flow computed them, without those that it reads only for its state, or whose key a late row has."""
    start, watermark = start_of(lake, table.name), watermark_ms(lake, table.name, batch_id)
    rows = batch if start == THE_BEGINNING else batch.where(F.col("bronze_batch") > start.bronze_batch)
    if _has_late_ahead(lake, watermark):
        late = lake.read("silver.late").where(F.col("event_time") >= F.timestamp_millis(F.lit(watermark)))
        rows = without_keys_of(late, rows)
    _append_batch(lake, table, rows, batch_id, is_small=is_little_read(lake, table.name, "bronze.events", batch_id))
    crash.point(crash.Point.READINGS_WRITTEN)


def windows(lake: Lake, flow: str, groups: Sequence[Group], batch: DataFrame, batch_id: int) -> None:
    """Gold: closed windows to aggregates, and the vectors that they complete."""
    # Windows without a device are those of ticks.
    stamped = _stamped(batch.where(F.col("device_id").isNotNull()), batch_id).persist()
    try:
        # This also runs the query to its end. Most batches close nothing, and then nothing is written.
        found = stamped.groupBy("group").agg(F.unix_seconds(F.min("window_end")).alias("first_end"), F.count("*").alias("rows")).collect()
        is_few, by_name = sum(count for _, _, count in found) <= FEW, {group.name: group for group in groups}

        def append_group(row: Row) -> None:
            # Few rows: one partition saves the vectors two shuffles, and every table small files.
            closed = stamped.where(F.col("group") == row["group"]).drop("group").coalesce(1)
            _append_group(lake, flow, by_name[row["group"]], Closed(closed, row["rows"], row["first_end"]), batch_id)

        # Side by side: of a few rows it is nearly all planning and waiting for the disk (300 groups, measured: 60 s instead of 95 s).
        threads = ThreadPoolExecutor(lake.conf.engine.cores if is_few else 1)
        with interpreted(batch.sparkSession) if is_few else nullcontext(), threads:
            list(threads.map(append_group, found))
        crash.point(crash.Point.WINDOWS_WRITTEN)
    finally:
        stamped.unpersist()


def gold_tables(lake: Lake, group: Group) -> tuple[Table, Table, Table]:
    """Aggregates, vectors and late rows of a group."""
    aggregates, of_vectors, late = (lake.tables[f"gold.{group.name}_{kind}"] for kind in ("aggregates", "vectors", "late"))
    return aggregates, of_vectors, late


def read_latest(lake: Lake, table: Table, key: Sequence[str]) -> DataFrame:
    """The newest revision of each row of a gold table."""
    history = lake.read(table.name)
    return latest(history, key) if max_in_log(table, "revision") else history


def _append_batch(lake: Lake, table: Table, rows: DataFrame, version: int, *, is_small: bool) -> None:
    """To the one table of a flow that has its name."""
    app_id = lake.app_id(table.name, table.name)
    if is_small:
        append_rows(table.path, rows.toArrow(), app_id, version)
    else:
        append(rows, table, app_id, version)


def _has_late_ahead(lake: Lake, watermark: int) -> bool:
    """By the log alone: whether a row of silver.late is at or after the watermark, as one that was in quarantine may be.

    The stream turns away what is behind it; of what is ahead, it has only seen readings.
    """
    newest = max_in_log(lake.tables["silver.late"], "event_time")
    # The log tells whole milliseconds, rounded down.
    return newest is not None and newest.timestamp() * 1000 + 1 >= watermark


def _append_group(lake: Lake, flow: str, group: Group, closed: Closed, batch_id: int) -> None:
    aggregates, of_vectors, _ = gold_tables(lake, group)
    is_first = max_in_log(aggregates, "gold_batch") is None
    append(closed.rows, aggregates, lake.app_id(flow, aggregates.name), batch_id, closed.count)
    crash.point(crash.Point.AGGREGATES_WRITTEN)
    if group.vector is not None:
        # Without the rows of this batch, which a repeated batch finds in the table already.
        earlier = None if is_first else read_latest(lake, aggregates, WINDOW_KEY).where(F.col("gold_batch") < batch_id)
        completed = _completed(lake, group, group.vector, closed, earlier)
        append(_stamped(completed, batch_id), of_vectors, lake.app_id(flow, of_vectors.name), batch_id, closed.count)


def _completed(lake: Lake, group: Group, vector: Vector, closed: Closed, earlier: DataFrame | None) -> DataFrame:
    """Vectors at the ends of windows that closed now; earlier windows only fill them."""
    rows = closed.rows
    if vector.max_fill_seconds and earlier is not None:
        reach = F.timestamp_seconds(F.lit(closed.first_end - vector.max_fill_seconds))
        rows = rows.unionByName(earlier.where(F.col("window_end") >= reach))
    return vectors(rows, group, vector, lake.conf.metrics).where(F.col("window_end") >= F.timestamp_seconds(F.lit(closed.first_end)))


def _stamped(rows: DataFrame, batch_id: int) -> DataFrame:
    return rows.withColumns({"revision": F.lit(0), "gold_batch": F.lit(batch_id).cast("bigint")})


def _headers(batch: DataFrame, sources: Sequence[str]) -> DataFrame | None:
    """Grain: one file of a source with headers; None where no source has any."""
    if not sources:
        return None
    files = [row.file for row in batch.where(F.col("source").isin(*sources)).select("file").distinct().collect()]
    return batch.sparkSession.createDataFrame([(file, first_line(file)) for file in files], "file string, header string")
