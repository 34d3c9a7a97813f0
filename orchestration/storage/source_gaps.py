"""Rows of ops.gaps, each written once, before the commit of the bronze batch that goes on behind the gap."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.delta import append, rows_of
from orchestration.storage.ops_tables import GAPS_SCHEMA

KEY = ("source", "topic", "partition", "first_offset", "bronze_batch")


def record_gaps(gaps: Location, rows: Sequence[dict[str, Any]]) -> None:
    """Add those that are not there yet."""
    if rows:
        known = {tuple(row[name] for name in KEY) for row in rows_of(gaps)}
        if new := [row for row in rows if tuple(row[name] for name in KEY) not in known]:
            append(gaps, pa.Table.from_pylist(new, GAPS_SCHEMA))
