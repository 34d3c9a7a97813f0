"""Rows of a Delta table to events: the row is a JSON object, and the kind of a change is a header.

Of a change data feed only what is new is an event, rows that were inserted and rows as they are after an update. Silver would take what was
deleted, and what a row was before, for readings.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bronze.events import File, events
from bronze.schema import HEADERS
from orchestration.connectors.sources.file_reader import instant
from orchestration.connectors.sources.parquet_rows import as_json, numbered, rows_of
from orchestration.storage.foreign_table import Added, ForeignTable

CHANGE_TYPE, DELETE = "_change_type", b"delete"
NEW = (b"insert", b"update_postimage")


def events_of(source: str, table: ForeignTable, added: Added, position: str) -> Iterator[tuple[pa.Table, int]]:
    """ARRIVED of the rows of a file, in pieces; and how many rows of it say that they were deleted."""
    landed = File(source, position, instant(added.modified_ms * 1_000_000))

    def pieces() -> Iterator[pa.Table]:
        for rows in rows_of(table.file_of(added)):
            made = events(as_json(table.as_declared(rows, added)), landed)
            yield _with_change_type(made, rows[CHANGE_TYPE]) if added.has_changes else made

    for piece in numbered(pieces(), position):
        if added.has_changes:
            kinds = piece["headers"].combine_chunks().flatten().field("value")
            yield piece.filter(pc.is_in(kinds, pa.array(NEW, pa.binary()))), pc.sum(pc.equal(kinds, DELETE)).as_py() or 0
        else:
            yield piece, 0


def _with_change_type(made: pa.Table, kinds: pa.ChunkedArray) -> pa.Table:
    values = kinds.combine_chunks().cast(pa.binary())
    pairs = pa.StructArray.from_arrays([pa.repeat(CHANGE_TYPE, len(values)), values], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), pairs)
    return made.set_column(made.column_names.index("headers"), made.schema.field("headers"), headers.cast(HEADERS))
