"""Closed windows that fit in memory, as nearly always, and their vectors are written side by side, without Spark.

Measured, 300 groups of one stream: with a plan and a read by Spark for each of them a batch takes 0.2 s a group. Three streams that close
650,000 windows each: 10 s instead of 30.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from gold import few, few_vectors
from gold.schema import WINDOW_KEY
from orchestration import crash
from orchestration.streaming.closed import Batch, Closed
from orchestration.streaming.writing import gold_tables
from orchestration.tables import FEW, PLAIN, append_rows

MOST, MOST_NAME_BYTES = 1_000_000, 256 * 1024 * 1024
"""Windows that a batch closed, and as many earlier ones: some 500 bytes each (measured), for a moment; and what the names of their devices
may take: of a result larger than 1 GiB Spark makes an error.
"""
_LARGE = threading.Lock()
"""Held by the one stream whose windows are many: several side by side would fill the memory."""


@dataclass(frozen=True)
class Few:
    """Windows with their `group`: those that closed now, and earlier ones, all revisions, that vectors may be filled from."""

    now: pa.Table
    earlier: pa.Table

    def of(self, group: str) -> pa.Table:
        """The newest revisions of both."""
        if not len(self.earlier):  # what closed now has one
            return self.now.filter(pc.field("group") == group)
        known = pa.concat_tables(rows.filter(pc.field("group") == group) for rows in (self.now, self.earlier))
        return few.latest(known, WINDOW_KEY)


def append_all(this: Batch, closed: Sequence[Closed], rows: DataFrame) -> bool:
    """Windows and vectors of all groups.

    False, and nothing is written, where there are none, or more than the bounds above, or earlier ones that only Spark can read.
    """
    count, name_bytes = sum(each.count for each in closed), sum(each.name_bytes for each in closed)
    with _LARGE if count > FEW else nullcontext():
        known = _read(this, closed, rows) if 0 < count <= MOST and name_bytes <= MOST_NAME_BYTES else None
        if known is not None:
            with ThreadPoolExecutor(this.lake.conf.engine.cores) as threads:
                list(threads.map(partial(_append, this, known), closed))  # a list, so that an error of one is raised
    return known is not None


def _read(this: Batch, closed: Sequence[Closed], rows: DataFrame) -> Few | None:
    """Earlier ones first: where only Spark can read these, it need not hand over the others."""
    earlier, left = [], MOST
    for each in closed:
        if each.group.vector is None or not each.group.vector.max_fill_seconds:
            continue
        found = _earlier(this, each, each.group.vector.max_fill_seconds, left)
        if found is None or len(found) > left:
            return None
        earlier.append(found)
        left -= len(found)
    now = rows.toArrow()
    alike = (found.select(now.schema.names).cast(now.schema) for found in earlier)
    return Few(now, pa.concat_tables([now.schema.empty_table(), *alike]))


def _append(this: Batch, known: Few, each: Closed) -> None:
    """Windows of a group, then its vectors, which may be filled from earlier windows."""
    aggregates, of_vectors, _ = gold_tables(this.lake, each.group)
    rows = known.now.filter(pc.field("group") == each.group.name).drop_columns("group")
    append_rows(aggregates.path, rows, this.app_id(aggregates), this.number)
    crash.point(crash.Point.AGGREGATES_WRITTEN)
    if each.group.vector is not None:
        made = few_vectors.vectors(known.of(each.group.name), each.group, each.group.vector, this.lake.conf.metrics)
        of_now = this.stamped_rows(made.filter(_ends_from(each.first_end)))
        append_rows(of_vectors.path, of_now, this.app_id(of_vectors), this.number)


def _earlier(this: Batch, each: Closed, fill_seconds: int, most: int) -> pa.Table | None:
    """None where only Spark can read them. One more than `most` tells that there are more."""
    table = DeltaTable(gold_tables(this.lake, each.group)[0].path)
    if table.protocol().min_reader_version > PLAIN:
        return None
    # Without the rows of this batch, which a repeated batch finds in the table already.
    may_fill = _ends_from(each.first_end - fill_seconds) & (pc.field("gold_batch") < this.number)
    found = table.to_pyarrow_dataset().head(most + 1, filter=may_fill)
    return found.append_column("group", pa.repeat(each.group.name, len(found)))


def _ends_from(seconds: int) -> pc.Expression:
    return pc.field("window_end") >= pa.scalar(seconds * 1_000_000, pa.timestamp("us", "UTC"))
