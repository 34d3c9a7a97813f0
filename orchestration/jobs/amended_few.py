"""The part of the amendments' job where a few windows change, as nearly always: Spark computes them, and no more.

Measured, 11 windows of two groups: 11 s by Spark, which plans four appends, each with what the table held before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from gold import few, few_vectors
from gold.schema import VECTOR_KEY, WINDOW_KEY
from gold.spec import Group
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.writing import gold_tables
from orchestration.storage.tables import MAX_ARROW_ROWS, Table, read_bounded

Append = Callable[[Table, pa.Table], None]
"""Rows without `gold_batch` to a table."""
CONTENT = ("vector", "missing", "filled")
MOST_NAME_BYTES, MOST_BYTES = 64 * 1024 * 1024, 512 * 1024 * 1024
"""Of the names of the devices of windows that change; of what is read beside them, and of the vectors that are made."""


@dataclass(frozen=True)
class Amended:
    """Windows of a group, and what its tables hold, in all revisions, of the entities of these windows at the times that may change."""

    group: Group
    windows: pa.Table
    aggregates: pa.Table
    vectors: pa.Table


def read(lake: Lake, groups: Sequence[Group], windows: pa.Table, ends: tuple[int, int]) -> list[Amended] | None:
    """`windows` with their `group`; `ends`: the first and the last of these, in seconds since 1970.

    None where the tables hold too much beside them, or what only Spark can read.
    """
    found, left = [], MOST_BYTES
    for group in groups:
        of_group = windows.filter(pc.field("group") == group.name).drop_columns("group")
        if not len(of_group):
            continue
        each = _beside(lake, group, of_group, ends, left)
        left -= _size(each) if each else 0
        if each is None or left < 0:
            return None
        found.append(each)
    return found


def _beside(lake: Lake, group: Group, windows: pa.Table, ends: tuple[int, int], most_bytes: int) -> Amended | None:
    fill_seconds = group.vector.max_fill_seconds if group.vector else 0
    devices = windows["device_id"].unique()
    is_one_entity = group.vector is not None and group.vector.entity == "group"
    of_device, of_entity = (pc.scalar(True) if is_one_entity else pc.field(name).isin(devices) for name in ("device_id", "entity"))
    aggregates, of_vectors, _ = gold_tables(lake, group)
    in_reach = _ends_between(ends[0] - fill_seconds, ends[1] + fill_seconds)
    known = read_bounded(aggregates.path, in_reach & of_device, MAX_ARROW_ROWS, most_bytes)
    if known is None:
        return None
    may_change = _ends_between(ends[0], ends[1] + fill_seconds)
    vectors = read_bounded(of_vectors.path, may_change & of_entity, MAX_ARROW_ROWS, most_bytes - known.nbytes)
    return None if vectors is None else Amended(group, windows, known, vectors)


def _size(each: Amended) -> int:
    read: int = each.aggregates.nbytes + each.vectors.nbytes
    if each.group.vector is None:
        return read
    of_vectors = [rows.select(["device_id", "window_end"]) for rows in (each.windows, each.aggregates)]
    return read + few_vectors.size(pa.concat_tables(of_vectors, promote_options="permissive"), each.group, each.group.vector)


def append_all(lake: Lake, amended: Sequence[Amended], ends: tuple[int, int], append: Append) -> None:
    """Windows of all groups, then the vectors that change."""
    closed = [(each, _append_windows(lake, each, append)) for each in amended]
    for each, windows in closed:
        if (vector := each.group.vector) is not None:
            made = few_vectors.vectors(windows, each.group, vector, lake.conf.metrics)
            _append_vectors(lake, each, made.filter(_ends_between(ends[0], ends[1] + vector.max_fill_seconds)), append)


def _append_windows(lake: Lake, each: Amended, append: Append) -> pa.Table:
    """Returns the newest revisions of these and those beside them."""
    revised = few.next_revision(each.windows, each.aggregates, WINDOW_KEY)
    append(gold_tables(lake, each.group)[0], revised)
    crash.point(crash.Point.AMENDMENT_HALF_WRITTEN)
    before = each.aggregates.select(revised.column_names).cast(revised.schema)
    return few.latest(pa.concat_tables([before, revised]), WINDOW_KEY)


def _append_vectors(lake: Lake, each: Amended, made: pa.Table, append: Append) -> None:
    changed = few.changed(made, few.latest(each.vectors, VECTOR_KEY), VECTOR_KEY, CONTENT)
    if len(changed):
        append(gold_tables(lake, each.group)[1], few.next_revision(changed, each.vectors, VECTOR_KEY))


def _ends_between(first: int, last: int) -> pc.Expression:
    at = [pa.scalar(seconds * 1_000_000, pa.timestamp("us", "UTC")) for seconds in (first, last)]
    return (pc.field("window_end") >= at[0]) & (pc.field("window_end") <= at[1])
