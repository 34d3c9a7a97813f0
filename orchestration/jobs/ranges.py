"""Ranges of bronze batches that silver's account takes at once, and tables read in pieces that fit in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from orchestration.engine.lake import Lake
from orchestration.storage.delta import ask, in_log, open_table

ROWS_AT_ONCE = 2_000_000
"""Bronze rows of one range (or one batch, if it has more): bounds the memory."""
PIECE_ROWS, PIECE_BYTES = 250_000, 64 * 1024 * 1024
"""By rows alone, 500,000 payloads of 4,400 bytes passed 2 GiB, where Arrow's offsets end. Pieces twice as large are no faster, and the
account of 2,000,000 events needs 150 MB more (measured)."""


@dataclass(frozen=True)
class Range:
    """Bronze batches `after` < batch <= `up_to`."""

    after: int
    up_to: int

    def of(self, rows: DataFrame) -> DataFrame:
        return rows.where(self.sql())

    def sql(self) -> str:
        return f"bronze_batch > {self.after} and bronze_batch <= {self.up_to}"


def range_after(lake: Lake, after: int, last: int) -> Range:
    """As many batches up to `last` as hold ROWS_AT_ONCE, at least one."""
    log = in_log(open_table(lake.table_path("bronze.events")), "min.bronze_batch", "max.bronze_batch", "num_records").to_pydict()
    files = [file for file in zip(log["min.bronze_batch"], log["max.bronze_batch"], log["num_records"], strict=True) if file[2]]
    # A compacted file holds many batches.
    sizes = [(batch, rows / (last - first + 1)) for first, last, rows in files for batch in range(first, last + 1)]
    return next(cut(((batch, rows) for batch, rows in sorted(sizes) if after < batch <= last), after, last, ROWS_AT_ONCE))


def cut(sizes: Iterable[tuple[int, float]], after: int, last: int, most: float) -> Iterator[Range]:
    """Batches after one up to the last in ranges of at most so many rows, at least one batch. `sizes`: batches in order, with rows."""
    total, up_to = 0.0, after
    for batch, rows in sizes:
        total += rows
        if total > most and batch > up_to > after:
            yield Range(after, up_to)
            after, total = up_to, rows
        up_to = batch
    yield Range(after, last)


def pieces(lake: Lake, name: str, query: str, most_bytes: int = PIECE_BYTES, version: int | None = None) -> Iterator[pa.Table]:
    """Rows that a query finds in a table, which it calls `rows`, by DataFusion: see `in_pieces`."""
    table = open_table(lake.table_path(name), version)
    reader = ask(query, {"rows": table})
    # Arrow joins no views of strings.
    declared = pa.schema(table.schema().to_arrow())
    schema = pa.schema([declared.field(field.name) if field.name in declared.names else field for field in reader.schema])
    return in_pieces(reader, schema, most_bytes)


def in_pieces(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_bytes: int = PIECE_BYTES) -> Iterator[pa.Table]:
    """Rows of batches in tables of some hundred thousand, fewer long ones; at least one table, perhaps empty."""
    tables = (pa.Table.from_batches([batch]).cast(schema) for batch in _short(batches, most_bytes))
    return merged([schema.empty_table()], tables, most_bytes=most_bytes)


def merged(*tables: Iterable[pa.Table], most_bytes: int = PIECE_BYTES) -> Iterator[pa.Table]:
    """Rows of small tables in larger ones."""
    waiting: list[pa.Table] = []
    count = length = 0
    for table in chain(*tables):
        waiting.append(table)
        count, length = count + len(table), length + table.nbytes
        if count >= PIECE_ROWS or length >= most_bytes:
            yield pa.concat_tables(waiting)
            waiting, count, length = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def _short(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Batches in halves until none is longer than a piece."""
    for batch in batches:
        if _length(batch) <= most_bytes or len(batch) < 2:
            yield batch
        else:
            half = len(batch) // 2
            yield from _short([batch[:half], batch[half:]], most_bytes)


def _length(batch: pa.RecordBatch) -> int:
    """In bytes, once it is copied: views of strings may share what they show, or show little of it; each begins with its length."""
    views, others = [], 0
    for column in batch.columns:
        if column.type in {pa.string_view(), pa.binary_view()} and len(column):
            views.append(np.frombuffer(column.buffers()[1], np.int32)[4 * column.offset :: 4][: len(column)])
        else:
            others += column.nbytes
    return others + sum(int(lengths.sum(dtype=np.int64)) for lengths in views)
