"""bronze.events is fed by sources: what those have that are ready is one commit, one bronze batch, and one file of the table.

The commit holds the rows, and the offset up to which each source was read (storage/source_offsets.py). It is a transaction with the number
of the batch: a process that is not the only writer fails instead of writing rows twice.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from bronze.events import identified
from orchestration import crash
from orchestration.connectors.sources.source import Offset, Source
from orchestration.storage.delta import version_of
from orchestration.storage.source_offsets import next_bronze_batch, source_offsets, with_offsets
from orchestration.storage.streaming_append import append_pieces
from orchestration.storage.tables import LakeStore

EVENTS = "bronze.events"
PIECE_BYTES, PIECE_ROWS = 16 * 1024 * 1024, 250_000
"""Of a row group. Events of small files come together: a Parquet file has 32,767 row groups at most."""


@dataclass(frozen=True)
class Ready:
    """A source, and what it has behind the offset that bronze knows."""

    source: Source
    start: Offset
    end: Offset

    def events(self) -> Iterator[pa.Table]:
        """ARRIVED."""
        return (piece for partition in self.source.partitions(self.start, self.end) for piece in self.source.read(partition))


@dataclass(frozen=True)
class HandOver:
    """What sources have handed over. `version`: of bronze.events, that of its commit. `rows`: by source."""

    bronze_batch: int
    version: int
    rows: Mapping[str, int]
    at: datetime
    seconds: float


def look(lake: LakeStore, source: Source) -> Ready | None:
    """What the source has, one batch at most; None where it has nothing."""
    known = source_offsets(lake.table_path(EVENTS)).get(source.name)
    start = known.offset if known else {}
    end = source.latest_offset(start)
    return None if end == start else Ready(source, start, end)


def hand_over(lake: LakeStore, ready: Sequence[Ready], is_sole: AbstractContextManager[object]) -> HandOver:
    """Bring to bronze what sources have. `is_sole`: held while bronze is written."""
    table, begin, rows = lake.tables[EVENTS], time.monotonic(), Counter[str]()

    def arrived() -> Iterator[pa.Table]:
        for of_source in ready:
            for events in of_source.events():
                rows[of_source.source.name] += len(events)
                yield events

    with is_sole:
        known = source_offsets(table.location)
        bronze_batch, ingested_at = next_bronze_batch(known), datetime.now(UTC)
        info = with_offsets(known, bronze_batch, {of_source.source.name: of_source.end for of_source in ready})
        pieces = in_row_groups(arrived(), ingested_at, bronze_batch)
        append_pieces(table, pieces, lake.app_id(EVENTS, EVENTS), bronze_batch, unlike="payload", info=info)
        version = version_of(table.location)
    crash.point(crash.Point.EVENTS_WRITTEN)
    return HandOver(bronze_batch, version, rows, ingested_at, time.monotonic() - begin)


def in_row_groups(arrived: Iterable[pa.Table], ingested_at: datetime, bronze_batch: int) -> Iterator[pa.Table]:
    """Identified events of a bronze batch that began at `ingested_at`."""
    waiting: list[pa.Table] = []
    count, fullness = 0, 0.0
    for events in arrived:
        piece = identified(events, ingested_at, bronze_batch, count)
        weight = len(piece) / PIECE_ROWS + piece.nbytes / PIECE_BYTES
        if waiting and fullness + weight > 1:
            yield pa.concat_tables(waiting)
            waiting, fullness = [], 0.0
        waiting.append(piece)
        count, fullness = count + len(piece), fullness + weight
    if waiting:
        yield pa.concat_tables(waiting)
