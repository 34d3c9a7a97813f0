"""Revisions: gold is append only; a window that late rows change comes again, under a higher revision.

Pure functions of Arrow tables that hold all that they need of the history: the revisions of the keys of the rows.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def latest(history: pa.Table, key: Sequence[str], by: Sequence[str] = ("revision",)) -> pa.Table:
    """The highest revision of each key; or the row that is highest `by` other columns, the first of them first."""
    # Rows may be wide: they are put in order by their numbers, and taken once, if at all.
    newest_first = pc.sort_indices(history.select(by), sort_keys=[(name, "descending") for name in by])
    ranked = history.select(key).take(newest_first).append_column("rank", pa.array(np.arange(len(history))))
    first_of_key = ranked.group_by(list(key)).aggregate([("rank", "min")])["rank_min"]
    return history if len(first_of_key) == len(history) else history.take(newest_first.take(first_of_key))


def next_revision(rows: pa.Table, history: pa.Table, key: Sequence[str]) -> pa.Table:
    """Rows with `revision`: one more than the highest in `history`, 1 for a key that it does not have. One row of a key. 0 is what the
    stream emits itself: what alerts judge."""
    highest = history.group_by(list(key)).aggregate([("revision", "max")])
    numbered = rows.select(key).append_column("row", pa.array(np.arange(len(rows))))
    in_order = numbered.join(highest, keys=list(key)).sort_by("row")
    revision = pc.add(pc.fill_null(in_order["revision_max"], 0), 1)
    return rows.append_column("revision", revision.cast(pa.int32()))


def changed(rows: pa.Table, before: pa.Table, key: Sequence[str], content: Sequence[str]) -> pa.Table:
    """Rows that `before` does not have, or has with other content. `before`: one row of a key; `content`: columns of lists."""
    numbered = rows.select(key).append_column("row", pa.array(np.arange(len(rows))))
    numbered_before = before.select(key).append_column("row_before", pa.array(np.arange(len(before))))
    pairs = numbered.join(numbered_before, keys=list(key), join_type="inner").sort_by("row")
    is_same = np.ones(len(pairs), bool)
    for name in content:
        is_same &= _are_equal(_taken(rows[name], pairs["row"]), _taken(before[name], pairs["row_before"]))
    is_changed = np.ones(len(rows), bool)
    is_changed[pairs["row"].to_numpy()[is_same]] = False
    return rows.filter(pa.array(is_changed))


def _taken(lists: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.ListArray:
    """Return the same as `take`, without a copy of each list if the rows are in sequence, as they mostly are."""
    numbers = rows.to_numpy()
    is_sequence = len(numbers) > 0 and bool((np.diff(numbers) == 1).all())
    return (lists.slice(numbers[0], len(numbers)) if is_sequence else lists.take(rows)).combine_chunks()


def _are_equal(left: pa.ListArray, right: pa.ListArray) -> npt.NDArray[np.bool_]:
    """Compare pairs of lists, as Spark does: null equals null, NaN equals NaN, 0 equals -0."""
    lengths = (pc.fill_null(pc.list_value_length(lists), -1).to_numpy() for lists in (left, right))
    are_equal: npt.NDArray[np.bool_] = np.equal(*lengths)
    of_one_length = pa.array(np.flatnonzero(are_equal))
    left, right = left.take(of_one_length), right.take(of_one_length)
    differing = of_one_length.to_numpy()[pc.list_parent_indices(left).filter(_differ(left.flatten(), right.flatten())).to_numpy()]
    are_equal[differing] = False
    return are_equal


def _differ(left: pa.Array, right: pa.Array) -> pa.Array:
    are_equal = pc.fill_null(pc.equal(left, right), False)
    for is_alike in (pc.is_null, pc.is_nan) if pa.types.is_floating(left.type) else (pc.is_null,):
        both = pc.and_(is_alike(left), is_alike(right))
        are_equal = pc.or_(are_equal, pc.fill_null(both, False))
    return pc.invert(are_equal)
