"""ops.gaps: what sources should have had and did not, because it was gone before anybody read it. There is no table before the first gap.

A row is written before the commit of the bronze batch that goes on behind the gap, and once, however often that batch is repeated.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.delta import append, path_of, rows_of

TABLE = "ops.gaps"
SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("bronze_batch", pa.int64()),
        ("found_at", pa.timestamp("us", "UTC")),
    ]
)
"""Grain: one gap. `last_offset` null: nobody knows how far it went. `bronze_batch`: the one that goes on behind it."""
KEY = ("source", "topic", "partition", "first_offset", "bronze_batch")


def record_gaps(lake: Location, rows: Sequence[dict[str, Any]]) -> None:
    """Add those that are not there yet."""
    if rows:
        known = {tuple(row[name] for name in KEY) for row in rows_of(path_of(lake, TABLE))}
        if new := [row for row in rows if tuple(row[name] for name in KEY) not in known]:
            append(path_of(lake, TABLE), pa.Table.from_pylist(new, SCHEMA))
