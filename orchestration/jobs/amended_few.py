"""The part of the amendments' job where a few windows change, as nearly always: Spark computes them, and no more.

Measured, 11 windows of two groups: 11 s by Spark, which plans four appends, each with what the table held before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from gold import few, few_vectors
from gold.schema import VECTOR_KEY, WINDOW_KEY
from gold.spec import Group
from orchestration import crash
from orchestration.lake import Lake
from orchestration.streaming.writing import gold_tables
from orchestration.tables import FEW, PLAIN, Table

Append = Callable[[Table, pa.Table], None]
"""Rows without `gold_batch` to a table."""
CONTENT = ("vector", "missing", "filled")


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
    found = []
    for group in groups:
        of_group = windows.filter(pc.field("group") == group.name).drop_columns("group")
        if not len(of_group):
            continue
        fill_seconds = group.vector.max_fill_seconds if group.vector else 0
        devices = of_group["device_id"].unique()
        is_one_entity = group.vector is not None and group.vector.entity == "group"
        of_device, of_entity = (pc.scalar(True) if is_one_entity else pc.field(name).isin(devices) for name in ("device_id", "entity"))
        aggregates, of_vectors, _ = gold_tables(lake, group)
        known = _rows(aggregates, _ends_between(ends[0] - fill_seconds, ends[1] + fill_seconds) & of_device)
        vectors = _rows(of_vectors, _ends_between(ends[0], ends[1] + fill_seconds) & of_entity)
        if known is None or vectors is None:
            return None
        found.append(Amended(group, of_group, known, vectors))
    return found


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


def _rows(table: Table, condition: pc.Expression) -> pa.Table | None:
    found = DeltaTable(table.path)
    if found.protocol().min_reader_version > PLAIN:
        return None
    rows = found.to_pyarrow_dataset().head(FEW + 1, filter=condition)
    return rows if len(rows) <= FEW else None


def _ends_between(first: int, last: int) -> pc.Expression:
    at = [pa.scalar(seconds * 1_000_000, pa.timestamp("us", "UTC")) for seconds in (first, last)]
    return (pc.field("window_end") >= at[0]) & (pc.field("window_end") <= at[1])
