"""Revisions of a few rows, as gold/revisions.py has them of any number, in Arrow: Spark would plan for nearly all of the time.

Pure. The rows are the same; a test compares them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def latest(history: pa.Table, key: Sequence[str]) -> pa.Table:
    """See gold.revisions.latest."""
    newest_first = history.sort_by([("revision", "descending")])
    places = newest_first.select(key).append_column("place", pa.array(np.arange(len(history))))
    return newest_first.take(places.group_by(list(key)).aggregate([("place", "min")])["place_min"])


def next_revision(rows: pa.Table, history: pa.Table, key: Sequence[str]) -> pa.Table:
    """See gold.revisions.next_revision. One row of a key."""
    known = history.group_by(list(key)).aggregate([("revision", "max")])
    places = rows.select(key).append_column("place", pa.array(np.arange(len(rows))))
    found = places.join(known, keys=list(key)).sort_by("place")
    revision = pc.add(pc.fill_null(found["revision_max"], -1), 1)
    return rows.append_column("revision", revision.cast(pa.int32()))


def changed(rows: pa.Table, before: pa.Table, key: Sequence[str], content: Sequence[str]) -> pa.Table:
    """See gold.revisions.changed."""
    known = set(_as_text(before.select([*key, *content])))
    return rows.filter(pa.array([row not in known for row in _as_text(rows.select([*key, *content]))], pa.bool_()))


def _as_text(rows: pa.Table) -> Iterator[str]:
    """NaN equals itself then, as it does in Spark."""
    return map(repr, zip(*(map(_plain, column.to_pylist()) for column in rows.columns), strict=True))


def _plain(cell: Any) -> Any:
    """0 for -0, which equal each other in Spark."""
    return [value + 0.0 if isinstance(value, float) else value for value in cell] if isinstance(cell, list) else cell
