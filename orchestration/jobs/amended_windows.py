"""Windows with late rows, as Spark computed them anew, appended under the next revision, and the vectors that change with them.

By Arrow, piece by piece. Measured, 11 windows of two groups: 11 s with four appends by Spark, each planned with what the table held before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa

from gold.revisions import changed, latest, next_revision
from gold.schema import VECTOR_KEY, WINDOW_KEY
from gold.spec import Group
from gold.vectors import in_blocks
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.pieces import Limits, Piece, Windows, in_pieces, read, with_values
from orchestration.engine.windows import by_entity
from orchestration.storage.commit import append_pieces
from orchestration.storage.tables import Table

CONTENT = ("vector", "missing", "filled")
Pair = tuple[pa.Table, pa.Table]


@dataclass(frozen=True)
class Amendment:
    """The target of amended rows: the stream, the job that appends by its `flow` and the number of its round, and the `gold_batch` of
    the rows."""

    lake: Lake
    stream: str
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


def append_all(this: Amendment, groups: Sequence[Group], amended: Windows) -> None:
    """Windows, then the vectors of the groups that change with them."""
    aggregates, of_vectors, _ = this.lake.gold(this.stream)
    windows = amended.handed_over()
    this.append(aggregates, _revised(this, windows))
    crash.point(crash.Point.AMENDMENT_HALF_WRITTEN)
    this.append(of_vectors, _revised_vectors(this, groups, windows))


def _revised(this: Amendment, windows: Windows) -> Iterator[pa.Table]:
    for _, (rows, history) in in_pieces(windows.whole(), partial(_with_history, this, windows)):
        yield next_revision(rows, history, WINDOW_KEY)


def _with_history(this: Amendment, windows: Windows, piece: Piece, limits: Limits | None) -> Pair | None:
    rows = windows.read(piece, limits)
    if rows is None:
        return None
    history = read(this.lake.gold(this.stream)[0], piece.predicate(), limits, _names(rows, "device_group", "device_id"))
    return None if history is None else (rows, history)


def _revised_vectors(this: Amendment, groups: Sequence[Group], windows: Windows) -> Iterator[pa.Table]:
    """Yield the vectors that differ from those in the table, at ends of the windows and as long after as these may fill."""
    whole = windows.whole()
    for entity, fill_seconds, alike in by_entity(groups):
        may_change = replace(whole, last=whole.last + fill_seconds, entity=entity, fill_seconds=fill_seconds)
        for piece, (aggregates, before) in in_pieces(may_change, partial(_beside, this, alike, windows)):
            for block in in_blocks(aggregates, alike, this.lake.conf.metrics):
                rows = changed(piece.ending_in(block), before, VECTOR_KEY, CONTENT)
                yield next_revision(rows, before, VECTOR_KEY)


def _beside(this: Amendment, groups: Sequence[Group], windows: Windows, piece: Piece, limits: Limits | None) -> Pair | None:
    """All windows, the amended ones included, and vectors in a piece, of the entities that have amended windows; the newest revisions."""
    in_reach = piece.back()
    amended = windows.read(in_reach, limits)
    if amended is None:
        return None
    amended = with_values(amended, {"device_group": [group.name for group in groups]})
    names = _names(amended, "device_group", piece.entity)
    table, vectors, _ = this.lake.gold(this.stream)
    aggregates = read(table, in_reach.predicate(), limits, names)
    entity = "entity" if piece.entity == "device_id" else piece.entity
    of_entities = {"device_group": names["device_group"], entity: names[piece.entity]}
    before = None if aggregates is None else read(vectors, piece.predicate(entity), limits, of_entities)
    return None if aggregates is None or before is None else (latest(aggregates, WINDOW_KEY), latest(before, VECTOR_KEY))


def _names(rows: pa.Table, *columns: str) -> dict[str, list[str]]:
    return {column: rows[column].unique().to_pylist() for column in columns}
