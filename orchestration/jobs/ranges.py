"""Ranges of bronze batches that silver's account takes at once, and tables read in pieces that fit in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from orchestration.engine.lake import Lake
from orchestration.storage.delta import OpenTable, ask, in_log, open_table
from orchestration.storage.row_pieces import PIECE_BYTES, in_pieces
from orchestration.storage.tables import LakeStore

ROWS_AT_ONCE = 2_000_000
"""Bronze rows of one range (or one batch, if it has more): bounds the memory."""


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
    """Return the range of batches up to `last` that holds ROWS_AT_ONCE, at least one batch."""
    return next(cut(_sizes(lake, Range(after, last)), after, last, ROWS_AT_ONCE))


def row_count(lake: Lake, batches: Range) -> float:
    """Events of the batches, by the log."""
    return sum(rows for _, rows in _sizes(lake, batches))


def _sizes(lake: Lake, batches: Range) -> list[tuple[int, float]]:
    """Batches in order, with their events; a compacted file holds many batches."""
    log = in_log(open_table(lake.table_path("bronze.events")), "min.bronze_batch", "max.bronze_batch", "num_records").to_pydict()
    files = [file for file in zip(log["min.bronze_batch"], log["max.bronze_batch"], log["num_records"], strict=True) if file[2]]
    sizes = ((batch, rows / (last - first + 1)) for first, last, rows in files for batch in range(first, last + 1))
    return sorted((batch, rows) for batch, rows in sizes if batches.after < batch <= batches.up_to)


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


def pieces(lake: LakeStore, name: str, query: str, most_bytes: int = PIECE_BYTES) -> Iterator[pa.Table]:
    """Rows that a query finds in a table, which it calls `rows`, by DataFusion: see `in_pieces`."""
    return pieces_of(open_table(lake.table_path(name)), query, most_bytes)


def pieces_of(table: OpenTable, query: str, most_bytes: int = PIECE_BYTES) -> Iterator[pa.Table]:
    """The same of a table that is open."""
    reader = ask(query, {"rows": table})
    # Arrow joins no views of strings.
    declared = pa.schema(table.schema().to_arrow())
    schema = pa.schema([declared.field(field.name) if field.name in declared.names else field for field in reader.schema])
    return in_pieces(reader, schema, most_bytes)
