"""Revisions of a few rows, as gold/revisions.py has them of any number, in Arrow: Spark would plan for nearly all of the time.

Pure. The rows are the same; a test compares them.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
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
    """See gold.revisions.changed. `before`: one row of a key; `content`: lists."""
    places = before.select(key).append_column("place", pa.array(np.arange(len(before))))
    numbered = rows.select(key).append_column("row", pa.array(np.arange(len(rows))))
    found = numbered.join(places, keys=list(key), join_type="inner")
    is_same = np.ones(len(found), bool)
    for name in content:
        is_same &= _are_equal(rows[name].take(found["row"]).combine_chunks(), before[name].take(found["place"]).combine_chunks())
    is_changed = np.ones(len(rows), bool)
    is_changed[found["row"].to_numpy()[is_same]] = False
    return rows.filter(pa.array(is_changed))


def _are_equal(lists: pa.ListArray, others: pa.ListArray) -> npt.NDArray[np.bool_]:
    """Of each pair whether they are, as in Spark: null equals null, NaN equals NaN, 0 equals -0."""
    lengths = (pc.fill_null(pc.list_value_length(each), -1).to_numpy() for each in (lists, others))
    are_equal: npt.NDArray[np.bool_] = np.equal(*lengths)
    of_one_length = pa.array(np.flatnonzero(are_equal))
    left, right = (each.take(of_one_length) for each in (lists, others))
    differing = of_one_length.to_numpy()[pc.list_parent_indices(left).filter(_differ(left.flatten(), right.flatten())).to_numpy()]
    are_equal[differing] = False
    return are_equal


def _differ(values: pa.Array, others: pa.Array) -> pa.Array:
    are_equal = pc.fill_null(pc.equal(values, others), False)
    for is_alike in (pc.is_null, pc.is_nan) if pa.types.is_floating(values.type) else (pc.is_null,):
        both = pc.and_(is_alike(values), is_alike(others))
        are_equal = pc.or_(are_equal, pc.fill_null(both, False))
    return pc.invert(are_equal)
