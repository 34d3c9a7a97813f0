"""What becomes of a micro-batch: appended to its tables, each once, however often the batch is repeated.

Every append carries pipeline/flow/table/generation as its application id and the micro-batch as its version, so that
Delta itself refuses the second one. Without it, a crash between two tables doubles rows.

A small micro-batch, known as such before it is computed, is written without Spark. Measured, 5,000 rows: 0.07 s instead of 0.9 s, 0.1 s of
CPU instead of 1.7. Spark's commit takes three jobs of its own to read the log, whatever is written.
"""

from collections.abc import Mapping

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.storage.bindings import THE_BEGINNING, start_of
from orchestration.storage.checkpoints import newest_batch, offsets, read_up_to
from orchestration.storage.delta import added, max_in_log, table_id
from orchestration.storage.payload_formats import payload_formats
from orchestration.storage.tables import Table, append
from silver.readings import without_keys_of

MAX_SMALL_BYTES = 16 * 1024 * 1024
MAX_READINGS, ELEMENT_BYTES = 1_000_000, 6
"""Some 150 bytes each, and names: of a result larger than 1 GiB Spark makes an error. 16 MiB may hold 10,000,000 of wide rows (measured),
as payloads are compressed; and a list in a payload one for each `"t":1,`, or one for each byte where it is no text.
"""


def readings(lake: Lake, table: Table, batch: DataFrame, batch_id: int) -> None:
    """Silver: rows as the flow computed them, without those that it reads only for its state, or whose key a late row has."""
    start, watermark = start_of(lake, table.name), offsets(lake.checkpoint(table.name), batch_id).watermark_ms
    rows = batch if start == THE_BEGINNING else batch.where(F.col("bronze_batch") > start.bronze_batch)
    if _has_late_ahead(lake, watermark):
        late = lake.read("silver.late").where(F.col("event_time") >= F.timestamp_millis(F.lit(watermark)))
        rows = without_keys_of(late, rows)
    is_few = is_small(lake, table.name, "bronze.events", batch_id)
    append(rows, table, lake.app_id(table.name, table.name), batch_id, is_few=is_few)
    crash.point(crash.Point.READINGS_WRITTEN)


def is_half_done(lake: Lake, stream: str) -> bool:
    """Whether gold holds rows of a micro-batch that a kill ended; until the stream repeats it, the rest of it may be missing."""
    flow = f"gold.{stream}"
    finished, begun = (newest_batch(lake.checkpoint(flow) / log) for log in ("commits", "offsets"))
    if begun <= finished:  # nearly always, and then no table is looked at
        return False
    return any(lake.newest_gold_batch(stream, kind) > finished for kind in ("aggregates", "vectors"))


def _has_late_ahead(lake: Lake, watermark: int) -> bool:
    """By the log alone: whether a row of silver.late is at or after the watermark, as one that was in quarantine may be.

    The stream turns away what is behind it; of what is ahead, it has only seen readings.
    """
    newest = max_in_log(lake.tables["silver.late"].location, "event_time")
    # The log tells whole milliseconds, rounded down.
    return newest is not None and newest.timestamp() * 1000 + 1 >= watermark


def is_small(lake: Lake, flow: str, source: str, batch_id: int) -> bool:
    """Whether a micro-batch of a table is small, by the log of the table and the ends of its files."""
    path = lake.table_path(source)
    source_id = table_id(path)
    first, last = (read_up_to(lake.checkpoint(flow), batch, source_id)[0] for batch in (batch_id - 1 if batch_id else None, batch_id))
    return holds_few(lake, path, {add["path"]: add["size"] for version in range(first, last + 1) for add in added(path, version)})


def holds_few(lake: Lake, events: Location, files: Mapping[str, int]) -> bool:
    """Whether the readings of these files of a table of events, by name with their bytes, are few enough to be rows of this process."""
    if sum(files.values()) > MAX_SMALL_BYTES:
        return False
    ends = [pq.read_metadata((events / name).local) for name in files]
    length = sum(end.row_group(n).total_byte_size for end in ends for n in range(end.num_row_groups))
    return _most_readings(lake, sum(end.num_rows for end in ends), length) <= MAX_READINGS


def _most_readings(lake: Lake, events: int, length: int) -> int:
    """That events of this length in all may hold."""
    of_sources = payload_formats(lake.conf).values()
    least = 1 if any(shape.each and shape.is_binary for shape in of_sources) else ELEMENT_BYTES
    of_lists = length // least if any(shape.each for shape in of_sources) else 0
    return of_lists + events * max([1, *(len(shape.metrics) for shape in of_sources)])
