"""Quarantine looked at again: what today's rules and parser make of events that have measurements in silver.quarantine. Pure, of Arrow.

An event is looked at as a whole, because one that could not be read has one row in quarantine and, once it can be, several measurements.
Those of its measurements that silver holds elsewhere stay where they are.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from silver.account import IDENTITY, OF_EVENT, among, joined
from silver.schema import KEYS

PLACED = [*KEYS, *IDENTITY, "parts"]
COMPARED = ["broken_rules", *KEYS, "value", *IDENTITY, "parts"]


def breaking(quarantined: pa.Table, rule: str) -> pa.Table:
    """Rows of silver.quarantine that break this rule."""
    rules = quarantined["broken_rules"].combine_chunks()
    return quarantined.take(pc.unique(pc.list_parent_indices(rules).filter(pc.equal(rules.flatten(), rule))))


def moved(measurements: pa.Table, placed: pa.Table) -> pa.Table:
    """Events (OF_EVENT) whose measurements in other tables of silver (`placed`, PLACED) are not found again under the same identity. The
    shape of their source has changed since: `part` would no longer say which measurement it is."""
    return _events(_without(placed, measurements, PLACED))


def changed(measurements: pa.Table, placed: pa.Table, quarantined: pa.Table) -> pa.Table:
    """Measurements that are not `placed`, of events that quarantine would hold in other rows, or not at all; none of those that moved.
    `measurements`: every one of the events; `quarantined`: all rows of silver.quarantine of these events."""
    to_place = among(measurements, IDENTITY, placed, "left anti")
    differences = [_without(to_place, quarantined, COMPARED), _without(quarantined, to_place, COMPARED)]
    events = _events(pa.concat_tables(rows.select(OF_EVENT) for rows in differences))
    return among(to_place, OF_EVENT, among(events, OF_EVENT, moved(measurements, placed), "left anti"))


def _events(rows: pa.Table) -> pa.Table:
    return rows.group_by(OF_EVENT).aggregate([])


def _without(rows: pa.Table, others: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows that no one of `others` is equal to in `columns`; here, null is equal to null, and no number to no number."""
    left, right = (_comparable(table, columns) for table in (rows, others))
    return rows.take(joined(left, right.column_names, right, "left anti")["place"])


def _comparable(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Arrow's join takes no lists and no nulls: a list as one text; of each column also whether it is null."""
    compared = {}
    for name in columns:
        column = rows[name]
        if pa.types.is_list(column.type):
            column = pc.binary_join(column.cast(pa.list_(pa.string())), ",")  # from Spark it comes as one of no nulls
        elif pa.types.is_floating(column.type) or pa.types.is_timestamp(column.type):
            column = column.combine_chunks().view(pa.int64())
        compared[name] = pc.fill_null(column, "" if pa.types.is_string(column.type) else 0)
        compared[f"{name}_is_null"] = pc.is_null(column)
    return pa.table(compared)
