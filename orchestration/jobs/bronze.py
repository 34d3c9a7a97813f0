"""bronze.events is fed source by source: what a source has is one commit, one bronze batch, and one file of the table.

The commit holds the rows and the offset up to which they were read (storage/source_offsets.py). It is a transaction of the source, with
the number of the bronze batch: a process that is not the only writer fails instead of writing rows twice.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from bronze.events import identified
from orchestration import crash
from orchestration.connectors.sources.source import Source
from orchestration.storage.delta import version_of
from orchestration.storage.source_offsets import SourceOffset, next_bronze_batch, source_offsets, with_offset
from orchestration.storage.streaming_append import append_pieces
from orchestration.storage.tables import LakeStore

EVENTS = "bronze.events"
PIECE_BYTES, PIECE_ROWS = 16 * 1024 * 1024, 250_000
"""Of a row group. Events of small files come together: a Parquet file has 32,767 row groups at most."""


@dataclass(frozen=True)
class HandOver:
    """What a source has handed over. `version`: of bronze.events, that of its commit."""

    source: str
    bronze_batch: int
    version: int
    rows: int
    at: datetime
    seconds: float


def hand_over(lake: LakeStore, source: Source, is_sole: AbstractContextManager[object], *, is_welcome: bool = True) -> HandOver | None:
    """Bring what the source has to bronze, one batch at most; None where it has nothing. `is_sole`: held while bronze is written.

    `is_welcome` False: the source looks at what has come, and keeps it for later.
    """
    table, begin = lake.tables[EVENTS], time.monotonic()
    known = source_offsets(table.location).get(source.name)
    start = known.offset if known else {}
    end = source.latest_offset(start)
    if end == start or not is_welcome:
        return None
    arrived = (piece for partition in source.partitions(start, end) for piece in source.read(partition))
    with is_sole:
        offsets = source_offsets(table.location)
        bronze_batch, ingested_at = next_bronze_batch(table.location, offsets), datetime.now(UTC)
        rows = append_pieces(
            table,
            in_row_groups(arrived, ingested_at, bronze_batch),
            lake.app_id(f"bronze.{source.name}", EVENTS),
            bronze_batch,
            unlike="payload",
            info=with_offset(offsets, source.name, SourceOffset(bronze_batch, end)),
        )
        version = version_of(table.location)
    crash.point(crash.Point.EVENTS_WRITTEN)
    return HandOver(source.name, bronze_batch, version, rows, ingested_at, time.monotonic() - begin)


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
