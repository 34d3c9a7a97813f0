"""Windows with late rows, as Spark computed them anew, appended under the next revision, and the vectors that change with them.

By Arrow, piece by piece. Measured, 11 windows of two groups: 11 s with four appends by Spark, each planned with what the table held before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame

from gold.revisions import changed, latest, next_revision
from gold.schema import VECTOR_KEY, WINDOW_KEY
from gold.spec import Vector
from gold.vectors import in_blocks
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.pieces import ClosedWindows, Limits, Piece, Windows, handed_over, in_pieces, in_turn, read
from orchestration.engine.writing import gold_tables
from orchestration.storage.commit import append_pieces
from orchestration.storage.tables import Table

CONTENT = ("vector", "missing", "filled")
Pair = tuple[pa.Table, pa.Table]


@dataclass(frozen=True)
class Amendment:
    """Who appends, by the `flow` and the number of its round, and the `gold_batch` that rows are stamped with."""

    lake: Lake
    flow: str
    number: int
    gold_batch: int

    def append(self, table: Table, pieces: Iterator[pa.Table]) -> None:
        """Rows with their revision; nothing is committed where there are none."""
        filled = filter(len, pieces)
        first = next(filled, None)
        if first is not None:
            rows = chain([first], filled)
            stamped = (piece.append_column("gold_batch", pa.repeat(pa.scalar(self.gold_batch, pa.int64()), len(piece))) for piece in rows)
            append_pieces(table.location, stamped, self.lake.app_id(self.flow, table.name), self.number)


def append_all(this: Amendment, rows: DataFrame, amended: Sequence[ClosedWindows]) -> None:
    """`rows`: windows with their `group`; `amended`: how many each group has."""
    with in_turn(amended):
        for windows in chain.from_iterable(handed_over(rows, amended)):
            aggregates, of_vectors, _ = gold_tables(this.lake, windows.group)
            this.append(aggregates, _revised(this, windows))
            crash.point(crash.Point.AMENDMENT_HALF_WRITTEN)
            if (vector := windows.group.vector) is not None:
                this.append(of_vectors, _revised_vectors(this, windows, vector))


def _revised(this: Amendment, windows: Windows) -> Iterator[pa.Table]:
    for _, (rows, history) in in_pieces(windows.whole(), partial(_with_history, this, windows)):
        yield next_revision(rows, history, WINDOW_KEY)


def _with_history(this: Amendment, windows: Windows, piece: Piece, limits: Limits | None) -> Pair | None:
    rows = windows.read(piece, limits)
    if rows is None:
        return None
    history = read(gold_tables(this.lake, windows.group)[0], piece.predicate(), limits, ("device_id", rows["device_id"].unique()))
    return None if history is None else (rows, history)


def _revised_vectors(this: Amendment, windows: Windows, vector: Vector) -> Iterator[pa.Table]:
    """Those that differ from what the table holds, at ends of the windows and as long after as these may fill."""
    whole = windows.whole()
    may_change = replace(whole, last=whole.last + vector.max_fill_seconds)
    for piece, (aggregates, before) in in_pieces(may_change, partial(_beside, this, windows, vector)):
        for block in in_blocks(aggregates, windows.group, vector, this.lake.conf.metrics):
            rows = changed(piece.ending_in(block), before, VECTOR_KEY, CONTENT)
            yield next_revision(rows, before, VECTOR_KEY)


def _beside(this: Amendment, windows: Windows, vector: Vector, piece: Piece, limits: Limits | None) -> Pair | None:
    """All windows, the amended ones included, and vectors in a piece, of the entities that have amended windows; the newest revisions."""
    in_reach = piece.back(vector.max_fill_seconds)
    amended = windows.read(in_reach, limits)
    if amended is None:
        return None
    devices = amended["device_id"].unique()
    of_device, of_entity = (("device_id", devices), ("entity", devices)) if piece.is_of_devices else (None, None)
    # Where none is amended, nothing changes.
    of_windows, of_vectors = (in_reach.predicate(), piece.predicate("entity")) if len(devices) else ("false", "false")
    table, vectors, _ = gold_tables(this.lake, windows.group)
    aggregates = read(table, of_windows, limits, of_device)
    before = None if aggregates is None else read(vectors, of_vectors, limits, of_entity)
    return None if aggregates is None or before is None else (latest(aggregates, WINDOW_KEY), latest(before, VECTOR_KEY))
