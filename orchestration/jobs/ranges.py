"""Ranges of bronze batches that silver's account takes at once, and what it counts in them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame

from orchestration.lake import Lake
from silver.readings import Declared

ROWS_AT_ONCE = 2_000_000
"""Bronze rows of one range (or one batch, if it has more): bounds the memory."""
PIECE_ROWS = 500_000
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
    log = pa.table(DeltaTable(lake.table_path("bronze.events")).get_add_actions(flatten=True)).to_pydict()
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
    """What a query finds in a table, which it calls `rows`, by DataFusion; some hundred thousand rows at a time."""
    table = DeltaTable(lake.table_path(name))
    found = pa.RecordBatchReader.from_stream(QueryBuilder().register("rows", table).execute(query))
    # Arrow joins no views of strings.
    known = pa.schema(table.schema().to_arrow())
    schema = pa.schema([known.field(each.name) if each.name in known.names else each for each in found.schema])
    waiting: list[pa.RecordBatch] = []
    for batch in found:
        waiting.append(batch)
        if sum(map(len, waiting)) >= PIECE_ROWS:
            yield pa.Table.from_batches(waiting).cast(schema)
            waiting = []
    yield pa.Table.from_batches(waiting, found.schema).cast(schema)
