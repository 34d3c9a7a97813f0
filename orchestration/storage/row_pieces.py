"""Rows in pieces that fit in memory: small tables together, long batches in halves, within bounds of rows and bytes."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa

PIECE_ROWS, PIECE_BYTES = 250_000, 64 * 1024 * 1024
"""Bounds of a piece. With rows alone, 500,000 payloads of 4,400 bytes passed 2 GiB, where Arrow's offsets end. Pieces twice as large are
no faster, and the account of 2,000,000 events needs 150 MB more (measured)."""
T = TypeVar("T")


def gather(items: Iterable[T], size: Callable[[T], tuple[int, int]], most_bytes: int = PIECE_BYTES) -> Iterator[list[T]]:
    """Yield items in order, as many at once as are within the bounds together, one at least. `size`: rows and bytes of one."""
    waiting: list[T] = []
    fullness = 0.0
    for item in items:
        rows, length = size(item)
        weight = rows / PIECE_ROWS + length / most_bytes
        if fullness and fullness + weight > 1:
            yield waiting
            waiting, fullness = [], 0.0
        waiting.append(item)
        fullness += weight
    if waiting:
        yield waiting


def merged(*tables: Iterable[pa.Table], most_bytes: int = PIECE_BYTES) -> Iterator[pa.Table]:
    return map(pa.concat_tables, gather(chain(*tables), lambda table: (len(table), table.nbytes), most_bytes))


def in_pieces(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_bytes: int = PIECE_BYTES) -> Iterator[pa.Table]:
    """Merge rows of batches into tables of some hundred thousand, fewer long ones; at least one table, perhaps empty."""
    tables = (pa.Table.from_batches([batch]).cast(schema) for batch in _short(batches, most_bytes))
    return merged([schema.empty_table()], tables, most_bytes=most_bytes)


def _short(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Batches in halves until none is longer than a piece."""
    for batch in batches:
        if _length(batch) <= most_bytes or len(batch) < 2:
            yield batch
        else:
            half = len(batch) // 2
            yield from _short([batch[:half], batch[half:]], most_bytes)


def _length(batch: pa.RecordBatch) -> int:
    """Bytes of a batch once it is copied: views of strings share what they show, or show little of it; each begins with its length."""
    views, others = [], 0
    for column in batch.columns:
        if column.type in {pa.string_view(), pa.binary_view()} and len(column):
            views.append(np.frombuffer(column.buffers()[1], np.int32)[4 * column.offset :: 4][: len(column)])
        else:
            others += column.nbytes
    return others + sum(int(lengths.sum(dtype=np.int64)) for lengths in views)
