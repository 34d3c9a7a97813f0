"""Rows of gold.anomalies that late rows change: vectors of the blocks of amended ones are judged again, and what differs is yielded."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gold.anomalies.rows import ROW, Amended, Carry, Judges, amended_blocks, judged_again
from gold.anomalies.vectors import Vectors, by_entity
from gold.flows.slices import micros
from gold.schema import VECTOR_KEY
from gold.windows.revisions import latest, next_revision
from orchestration.jobs.gold.slices import ending, of_groups_ending
from orchestration.jobs.ranges import pieces_of
from orchestration.storage.delta import OpenTable, instant, literal
from orchestration.storage.positions import FlowPosition

OF_VECTOR = "device_group, entity, window_start, window_end, vector, filled, revision"
COMPARED = [name for name in ROW.names if name not in VECTOR_KEY]
Blocks = dict[str, set[int]]
"""Blocks by entity."""


@dataclass(frozen=True)
class Tables:
    """gold.vectors, gold.anomalies and rows of revision 0 of the slice, which are not in it yet; from when on vectors of groups count."""

    vectors: OpenTable
    anomalies: OpenTable
    in_time: pa.Table
    since: Mapping[str, int]


def amended(
    tables: Tables, judges: Callable[[str], Judges], widest: int, slice_of: tuple[FlowPosition, FlowPosition]
) -> Iterator[pa.Table]:
    """Yield rows of ROW, with the next revision, for vectors amended in a slice, and for those that have come behind some.

    `widest`: the longest block of a group, in microseconds.
    """
    start, end = slice_of
    where = f"revision > 0 and {of_groups_ending(tables.since, end.until)}"
    query = f"select distinct device_group, entity, window_end from rows where {where} and {{}}"
    near = f"(gold_batch >= {start.gold_batch} or {ending(start.until - 2 * widest, end.until)})" if start.gold_batch >= 0 else "true"
    recent = _read(tables.vectors, query.format(near))
    if not len(recent):
        return
    first = int(micros(recent["window_end"]).min()) // widest * widest
    every = _read(tables.vectors, query.format(f"window_end >= {instant(first - widest)}"))
    for name in recent["device_group"].unique().to_pylist():
        of_group, is_of_group = judges(name), pc.field("device_group") == name
        blocks = _affected(*(_blocks(of_group, rows.filter(is_of_group)) for rows in (recent, every)))
        for low, high in _ranges(set().union(*blocks.values())):
            of_range = {entity: some for entity, of_entity in blocks.items() if (some := {at for at in of_entity if low <= at <= high})}
            yield _of_range(tables, of_group, of_range, (low, min((high + 1) * of_group.width - 1, end.until)))


def _blocks(judges: Judges, amended: pa.Table) -> Blocks:
    ends = defaultdict[str, list[int]](list)
    for entity, end in zip(amended["entity"].to_pylist(), micros(amended["window_end"]).tolist(), strict=True):
        ends[entity].append(end)
    return {entity: amended_blocks(np.array(of_entity), judges) for entity, of_entity in ends.items()}


def _affected(recent: Blocks, every: Blocks) -> Blocks:
    """Return the blocks to judge again: recent ones, and amended ones that go on from them."""
    affected = {}
    for entity, blocks in recent.items():
        affected[entity] = set(blocks)
        for block in sorted(every[entity]):
            if block - 1 in affected[entity]:
                affected[entity].add(block)
    return affected


def _ranges(blocks: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of blocks in a row."""
    ordered = sorted(blocks)
    begins = [block for block in ordered if block - 1 not in blocks]
    ends = [block for block in ordered if block + 1 not in blocks]
    yield from zip(begins, ends, strict=True)


def _of_range(tables: Tables, judges: Judges, blocks: Blocks, ends: tuple[int, int]) -> pa.Table:
    """Judge blocks in a row again. `ends`: the first block, and the last instant."""
    low, until = ends
    after = max((low - 1) * judges.width - 1, tables.since[judges.group])  # the block before is read too
    chosen = f"device_group = {literal(judges.group)} and {ending(after, until)} and entity in {literal(sorted(blocks))}"
    vectors = latest(_read(tables.vectors, f"select {OF_VECTOR} from rows where {chosen}"), VECTOR_KEY)
    history = _history(tables, judges, blocks, chosen)
    newest = latest(history, VECTOR_KEY)
    before, carries = dict[tuple[str, int], dict[str, Any]](), defaultdict[str, dict[int, Carry]](dict)
    for row, end in zip(newest.to_pylist(), micros(newest["window_end"]).tolist(), strict=True):
        before[row["entity"], end], carries[row["entity"]][end] = row, (row["carry"], row["shadow_carry"])
    made = [ROW.empty_table()]
    for (_, entity), of_entity in by_entity(vectors, {judges.group: judges.features}):
        in_time = partial(_in_time, tables, judges, entity, until)
        made.append(judged_again(judges, Amended(entity, blocks[entity], of_entity, carries[entity], in_time)))
    again = pa.concat_tables(made)
    keys = zip(again["entity"].to_pylist(), micros(again["window_end"]).tolist(), strict=True)
    differs = [_differs(row, before.get(key)) for key, row in zip(keys, again.to_pylist(), strict=True)]
    return next_revision(again.filter(pa.array(differs, pa.bool_())), history, VECTOR_KEY)


def _history(tables: Tables, judges: Judges, blocks: Blocks, chosen: str) -> pa.Table:
    """Return rows in all revisions, with those of the slice."""
    rows = _read(tables.anomalies, f"select {', '.join(tables.in_time.column_names)} from rows where {chosen}")
    of_slice = pc.and_(pc.equal(tables.in_time["device_group"], judges.group), pc.is_in(tables.in_time["entity"], pa.array(sorted(blocks))))
    return pa.concat_tables([rows.cast(tables.in_time.schema), tables.in_time.filter(of_slice)])


def _differs(row: dict[str, object], before: dict[str, object] | None) -> bool:
    return before is None or any(row[name] != before[name] for name in COMPARED)


def _in_time(tables: Tables, judges: Judges, entity: str, until: int) -> Vectors:
    where = f"device_group = {literal(judges.group)} and entity = {literal(entity)} and revision = 0"
    rows = _read(tables.vectors, f"select {OF_VECTOR} from rows where {where} and {ending(tables.since[judges.group], until)}")
    none = np.zeros(0, np.int64)
    nobody = Vectors(none, none, np.zeros((0, len(judges.features))))
    return next((vectors for _, vectors in by_entity(rows, {judges.group: judges.features})), nobody)


def _read(table: OpenTable, query: str) -> pa.Table:
    return pa.concat_tables(pieces_of(table, query))
