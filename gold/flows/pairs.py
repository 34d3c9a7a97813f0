"""Pairs: readings of two metrics that belong together by device or zone, by time and by a key, and those without a partner. Pure."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gold.flows.slices import LINEAGE, Instants, Slice, Stepped, codes, fits, micros, without_flow
from gold.flows.spec import Join, Pairs
from gold.instants import SECOND
from gold.schema import PAIRS

COLUMNS = without_flow(PAIRS)
Places = npt.NDArray[np.int64]
NOBODY = -1
"""In place of a partner."""


def pairs(flow: Pairs, this: Slice) -> Stepped:
    """`this.carried`: readings that may still find a partner. A row comes once, when its range of time has passed."""
    rows = pa.concat_tables([this.carried, this.readings])
    if flow.key is not None:  # so that of partners of one instant the first is the same one, in whatever order they came
        rows = rows.sort_by("device_id")
    time = micros(rows["event_time"])
    left, right = (
        np.flatnonzero(pc.equal(rows["metric"], metric).to_numpy() & fits(rows, at)) for at, metric in enumerate((flow.left, flow.right))
    )
    matched = _matches(flow, rows, time, left, right)
    if flow.key is not None:
        matched = _one_partner_each(matched)
    taken = [matched[_is_due(this, time[matched].max(axis=1))]]
    if flow.join is not Join.INNER:
        alone = np.setdiff1d(left, matched[:, 0])
        alone = alone[_is_due(this, time[alone] + max(flow.until_seconds, 0) * SECOND)]
        taken.append(np.column_stack([alone, np.full_like(alone, NOBODY)]))
    if flow.join is Join.FULL:
        alone = np.setdiff1d(right, matched[:, 1])
        alone = alone[_is_due(this, time[alone] + max(-flow.from_seconds, 0) * SECOND)]
        taken.append(np.column_stack([np.full_like(alone, NOBODY), alone]))
    reach = max(flow.until_seconds, 0) + max(-flow.from_seconds, 0)
    is_carried = np.isin(np.arange(len(rows)), np.concatenate([left, right])) & (time >= this.until - reach * SECOND)
    left_over = rows if flow.key is None else _without_partners(rows, matched)
    return Stepped(_rows(flow, rows, np.concatenate(taken)), left_over.filter(pa.array(is_carried)))


def _is_due(this: Slice, decided: Instants) -> npt.NDArray[np.bool_]:
    return (decided >= this.after) & (decided < this.until)


def _matches(flow: Pairs, rows: pa.Table, time: Instants, left: Places, right: Places) -> Places:
    """Places of left and right readings, one pair a line."""
    common = rows[_common(flow)]
    keys = codes(common if flow.key is None else pc.binary_join_element_wise(common, rows["key"], "\0"))
    pairs = [np.empty((0, 2), np.int64)]
    for lefts, rights in _by_key(keys, time, left, right):
        first = np.searchsorted(time[rights], time[lefts] + flow.from_seconds * SECOND, "left")
        count = np.searchsorted(time[rights], time[lefts] + flow.until_seconds * SECOND, "right") - first
        within = np.arange(count.sum()) - np.repeat(count.cumsum() - count, count)
        pairs.append(np.column_stack([np.repeat(lefts, count), rights[np.repeat(first, count) + within]]))
    matched = np.concatenate(pairs)
    # Where both sides are one metric, no reading is its own partner.
    others: Places = matched[matched[:, 0] != matched[:, 1]]
    return others


def _one_partner_each(matched: Places) -> Places:
    """Choose pairs of readings that have no other partner, of pairs in order: the earliest left one takes the first right one."""
    lefts, rights, is_chosen = set[int](), set[int](), np.zeros(len(matched), np.bool_)
    for number, (left, right) in enumerate(matched.tolist()):
        if left not in lefts and right not in rights:
            lefts.add(left)
            rights.add(right)
            is_chosen[number] = True
    chosen: Places = matched[is_chosen]
    return chosen


def _without_partners(rows: pa.Table, matched: Places) -> pa.Table:
    """Let no reading that has its partner find another one: which one it has is certain, as only earlier readings decide it."""
    for at in (0, 1):
        is_free = ~np.isin(np.arange(len(rows)), matched[:, at])
        name = f"fits_{at}"
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(fits(rows, at) & is_free))
    return rows


def _by_key(keys: npt.NDArray[np.int64], time: Instants, left: Places, right: Places) -> Iterator[tuple[Places, Places]]:
    """Yield for each key that both sides have their rows in order of time."""
    sides = []
    for side in (left, right):
        in_order = side[np.lexsort((time[side], keys[side]))]
        in_order = in_order[keys[in_order] >= 0]
        unique_keys, first = np.unique(keys[in_order], return_index=True)
        sides.append(dict(zip(unique_keys.tolist(), np.split(in_order, first[1:]), strict=False)))
    lefts, rights = sides
    yield from ((lefts[key], rights[key]) for key in lefts.keys() & rights.keys())


def _rows(flow: Pairs, rows: pa.Table, matched: Places) -> pa.Table:
    columns: dict[str, pa.ChunkedArray] = {}
    for at, side in enumerate(("left", "right")):
        of_side = rows.take(pa.array(matched[:, at], mask=matched[:, at] == NOBODY))
        named = {"device": "device_id", "time": "event_time", "value": "value"} | {name: name for name in LINEAGE}
        columns |= {f"{side}_{name}": of_side[column] for name, column in named.items()}
        columns[side] = of_side[_common(flow) if flow.key is None else "key"]
    columns["key"] = pc.coalesce(columns["left"], columns["right"])
    return pa.table([columns[name] for name in COLUMNS.names], COLUMNS)


def _common(flow: Pairs) -> str:
    return "device_id" if flow.by == "device" else "zone"
