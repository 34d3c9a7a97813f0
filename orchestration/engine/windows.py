"""Write the windows that a micro-batch closed to the tables of gold, and the vectors that they complete.

Arrow does it, piece by piece, for all groups of the stream at once: one commit of aggregates and one of vectors.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.schema import WINDOW_KEY
from gold.windows import revisions
from gold.windows.spec import Group
from gold.windows.vectors import in_blocks
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.pieces import OF_ENTITY, Limits, Piece, Windows, in_pieces, measured, read, with_values
from orchestration.storage.commit import append_pieces
from orchestration.storage.tables import Table

IN_TURN = threading.Lock()
"""Streams write the same tables, and the windows of several, if they are many, would fill the memory."""


@dataclass(frozen=True)
class MicroBatch:
    """One of a stream of gold; `number` is its id."""

    lake: Lake
    stream: str
    number: int

    def app_id(self, table: Table) -> str:
        return self.lake.app_id(f"gold.{self.stream}", table.name)

    def stamped(self, rows: pa.Table) -> pa.Table:
        """With the columns that every row of gold has."""
        revision, number = (pa.repeat(pa.scalar(n, kind), len(rows)) for n, kind in ((0, pa.int32()), (self.number, pa.int64())))
        return rows.append_column("revision", revision).append_column("gold_batch", number)


def windows(lake: Lake, stream: str, groups: Sequence[Group], batch: DataFrame, batch_id: int) -> None:
    """Closed windows to aggregates, and the vectors that they complete."""
    this = MicroBatch(lake, stream, batch_id)
    rows = batch.where(F.col("device_id").isNotNull()).persist()  # windows without a device are those of ticks
    try:
        # Counting also runs the query to its end. Most batches close nothing, and then nothing is written.
        if (closed := measured(rows)) is not None:
            with IN_TURN:
                _append(this, groups, closed.handed_over())
        crash.point(crash.Point.WINDOWS_WRITTEN)
    finally:
        rows.unpersist()


def by_entity(groups: Sequence[Group]) -> Iterator[tuple[str, int, list[Group]]]:
    """Groups with vectors of devices, then those with vectors of groups: the column of the entity, and how far back any is filled."""
    for entity, column in OF_ENTITY.items():
        alike = {group: group.vector.max_fill_seconds for group in groups if group.vector and group.vector.entity == entity}
        if alike:
            yield column, max(alike.values()), [*alike]


def _append(this: MicroBatch, groups: Sequence[Group], closed: Windows) -> None:
    """Windows, then vectors, which may be filled from earlier windows."""
    aggregates, of_vectors, _ = this.lake.gold(this.stream)
    pieces = (this.stamped(rows) for _, rows in in_pieces(closed.whole(), closed.read))
    append_pieces(aggregates.location, pieces, this.app_id(aggregates), this.number)
    crash.point(crash.Point.AGGREGATES_WRITTEN)
    if any(group.vector for group in groups):
        made = map(this.stamped, _vectors(this, groups, closed))
        append_pieces(of_vectors.location, made, this.app_id(of_vectors), this.number)


def _vectors(this: MicroBatch, groups: Sequence[Group], closed: Windows) -> Iterator[pa.Table]:
    """At the ends of windows that closed now; earlier windows only fill them."""
    for entity, fill_seconds, alike in by_entity(groups):
        whole = replace(closed.whole(), entity=entity, fill_seconds=fill_seconds)
        for piece, rows in in_pieces(whole, partial(_with_earlier, this, alike, closed)):
            for block in in_blocks(rows, alike, this.lake.conf.metrics):
                yield piece.ending_in(block)


def _with_earlier(this: MicroBatch, groups: Sequence[Group], closed: Windows, piece: Piece, limits: Limits | None) -> pa.Table | None:
    """Windows of a piece, and those before it that its vectors may be filled from, in the newest revision; None where they do not fit."""
    in_reach = piece.back()
    now = closed.read(in_reach, limits)
    now = now and with_values(now, {"device_group": [group.name for group in groups]})
    if not now or not piece.fill_seconds:
        return now
    # Without the rows of this batch, which a repeated batch finds in the table already.
    is_earlier = f"{in_reach.predicate()} and gold_batch < {this.number}"
    earlier = read(this.lake.gold(this.stream)[0], is_earlier, limits, {"device_group": now["device_group"].unique().to_pylist()})
    if not earlier:
        return earlier if earlier is None else now
    return revisions.latest(pa.concat_tables([this.stamped(now).select(earlier.column_names).cast(earlier.schema), earlier]), WINDOW_KEY)
