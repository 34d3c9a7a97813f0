"""Ranges of bronze batches that silver's account takes at once, and what it counts in them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame

from orchestration.engine.lake import Lake
from orchestration.storage.tables import in_log
from silver.readings import Declared

ROWS_AT_ONCE = 2_000_000
"""Bronze rows of one range (or one batch, if it has more): bounds the memory."""
PIECE_ROWS, PIECE_BYTES = 500_000, 128 * 1024 * 1024
"""By rows alone, 500,000 payloads of 4,400 bytes passed 2 GiB, where Arrow's offsets end (measured)."""
Knowledge = tuple[DataFrame, DataFrame, Declared]
"""Devices, catalogue, and what else the silver layer asks for."""
Counts = Counter[tuple[str, int, str]]
"""By kind, bronze batch and source."""


@dataclass(frozen=True)
class Range:
    """Bronze batches `after` < batch <= `up_to`."""

    after: int
    up_to: int

    def of(self, rows: DataFrame) -> DataFrame:
        """The rows of these batches."""
        return rows.where(self.sql())

    def sql(self) -> str:
        """Whether a row is of these batches."""
        return f"bronze_batch > {self.after} and bronze_batch <= {self.up_to}"


def range_after(lake: Lake, after: int, last: int) -> Range:
    """As many batches up to `last` as hold ROWS_AT_ONCE, at least one."""
    log = in_log(DeltaTable(lake.table_path("bronze.events")), "min.bronze_batch", "max.bronze_batch", "num_records").to_pydict()
    files = [file for file in zip(log["min.bronze_batch"], log["max.bronze_batch"], log["num_records"], strict=True) if file[2]]
    # A compacted file holds many batches.
    sizes = [(batch, rows / (last - first + 1)) for first, last, rows in files for batch in range(first, last + 1)]
    total, up_to = 0.0, None
    for batch, rows in sorted(sizes):
        if after < batch <= last:
            total += rows
            if up_to is not None and total > ROWS_AT_ONCE:
                return Range(after, int(up_to))
            up_to = batch
    return Range(after, last)


def pieces(lake: Lake, name: str, query: str) -> Iterator[pa.Table]:
    """What a query finds in a table, which it calls `rows`, by DataFusion; some hundred thousand rows at a time, fewer long ones."""
    table = DeltaTable(lake.table_path(name))
    found = pa.RecordBatchReader.from_stream(QueryBuilder().register("rows", table).execute(query))
    # Arrow joins no views of strings.
    known = pa.schema(table.schema().to_arrow())
    schema = pa.schema([known.field(each.name) if each.name in known.names else each for each in found.schema])
    waiting: list[pa.RecordBatch] = []
    count = length = 0
    for batch, its_length in _cut(found):
        waiting.append(batch)
        count, length = count + len(batch), length + its_length
        if count >= PIECE_ROWS or length >= PIECE_BYTES:
            yield pa.Table.from_batches(waiting).cast(schema)
            waiting, count, length = [], 0, 0
    yield pa.Table.from_batches(waiting, found.schema).cast(schema)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches with their length, in halves until none is longer than a piece."""
    for batch in batches:
        if (length := _length(batch)) <= PIECE_BYTES or len(batch) < 2:
            yield batch, length
        else:
            half = len(batch) // 2
            yield from _cut([batch[:half], batch[half:]])


def _length(batch: pa.RecordBatch) -> int:
    """In bytes, once it is copied: views of strings may share what they show, or show little of it; each begins with its length."""
    views, others = [], 0
    for column in batch.columns:
        if column.type in {pa.string_view(), pa.binary_view()} and len(column):
            views.append(np.frombuffer(column.buffers()[1], np.int32)[4 * column.offset :: 4][: len(column)])
        else:
            others += column.nbytes
    return others + sum(int(lengths.sum(dtype=np.int64)) for lengths in views)
