"""What becomes of windows that a micro-batch closed: appended to the tables of their group, as are the vectors that they complete.

By Arrow, piece by piece, groups side by side. Measured, 300 groups of one stream: with a plan and a read by Spark for each of them a batch
takes 0.2 s a group.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold import revisions
from gold.schema import WINDOW_KEY
from gold.spec import Group, Vector
from gold.vectors import in_blocks
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.pieces import Limits, Piece, Windows, handed_over, in_pieces, in_turn, measured, read
from orchestration.engine.writing import gold_tables
from orchestration.storage.commit import append_pieces
from orchestration.storage.tables import Table


@dataclass(frozen=True)
class MicroBatch:
    """One of a flow; `number` is its id."""

    lake: Lake
    flow: str
    number: int

    def app_id(self, table: Table) -> str:
        return self.lake.app_id(self.flow, table.name)

    def stamped(self, rows: pa.Table) -> pa.Table:
        """With the columns that every row of gold has."""
        revision, number = (pa.repeat(pa.scalar(n, of), len(rows)) for n, of in ((0, pa.int32()), (self.number, pa.int64())))
        return rows.append_column("revision", revision).append_column("gold_batch", number)


def windows(lake: Lake, flow: str, groups: Sequence[Group], batch: DataFrame, batch_id: int) -> None:
    """Closed windows to aggregates, and the vectors that they complete."""
    this = MicroBatch(lake, flow, batch_id)
    rows = batch.where(F.col("device_id").isNotNull()).persist()  # windows without a device are those of ticks
    try:
        # Counting also runs the query to its end. Most batches close nothing, and then nothing is written.
        closed = measured(rows, {group.name: group for group in groups})
        with in_turn(closed), ThreadPoolExecutor(lake.conf.engine.cores) as threads:
            for together in handed_over(rows, closed):
                list(threads.map(partial(_append, this), together))  # a list, so that an error of one is raised
        crash.point(crash.Point.WINDOWS_WRITTEN)
    finally:
        rows.unpersist()


def _append(this: MicroBatch, closed: Windows) -> None:
    """Windows of a group, then its vectors, which may be filled from earlier windows."""
    aggregates, of_vectors, _ = gold_tables(this.lake, closed.group)
    pieces = (this.stamped(rows) for _, rows in in_pieces(closed.whole(), closed.read))
    append_pieces(aggregates.location, pieces, this.app_id(aggregates), this.number)
    crash.point(crash.Point.AGGREGATES_WRITTEN)
    if (vector := closed.group.vector) is not None:
        made = map(this.stamped, _vectors(this, closed, vector))
        append_pieces(of_vectors.location, made, this.app_id(of_vectors), this.number)


def _vectors(this: MicroBatch, closed: Windows, vector: Vector) -> Iterator[pa.Table]:
    """At the ends of windows that closed now; earlier windows only fill them."""
    for piece, rows in in_pieces(closed.whole(), partial(_with_earlier, this, closed, vector.max_fill_seconds)):
        for block in in_blocks(rows, closed.group, vector, this.lake.conf.metrics):
            yield piece.ending_in(block)


def _with_earlier(this: MicroBatch, closed: Windows, fill_seconds: int, piece: Piece, limits: Limits | None) -> pa.Table | None:
    """Windows of a piece, and those before it that its vectors may be filled from, in the newest revision; None where they do not fit."""
    in_reach = piece.back(fill_seconds)
    now = closed.read(in_reach, limits)
    if not now or not fill_seconds:
        return now
    # Without the rows of this batch, which a repeated batch finds in the table already.
    is_earlier = f"{in_reach.predicate()} and gold_batch < {this.number}"
    earlier = read(gold_tables(this.lake, closed.group)[0], is_earlier, limits)
    if not earlier:
        return earlier if earlier is None else now
    return revisions.latest(pa.concat_tables([this.stamped(now).select(earlier.column_names).cast(earlier.schema), earlier]), WINDOW_KEY)
