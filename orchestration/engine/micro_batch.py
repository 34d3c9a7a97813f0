"""A micro-batch of gold, and what it closed."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.spec import Group
from orchestration.engine.lake import Lake
from orchestration.storage.tables import Table


@dataclass(frozen=True)
class MicroBatch:
    """One of a flow; `number` is its id."""

    lake: Lake
    flow: str
    number: int

    def app_id(self, table: Table) -> str:
        """By which Delta knows a repeated batch."""
        return self.lake.app_id(self.flow, table.name)

    def stamped(self, rows: pa.Table) -> pa.Table:
        """With the columns that every row of gold has."""
        revision, number = (pa.repeat(pa.scalar(n, of), len(rows)) for n, of in ((0, pa.int32()), (self.number, pa.int64())))
        return rows.append_column("revision", revision).append_column("gold_batch", number)


@dataclass(frozen=True)
class ClosedWindows:
    """How many windows of a group a DataFrame holds, and their first and last end, in seconds since 1970.

    `name_bytes`: of the names of their devices, which may be of any length.
    """

    group: Group
    count: int
    name_bytes: int
    first_end: int
    last_end: int


def measured(rows: DataFrame, groups: dict[str, Group]) -> list[ClosedWindows]:
    """Of windows with their `group`; those groups that have some, in the order of their names."""
    ends = (F.unix_seconds(end("window_end")) for end in (F.min, F.max))
    counts = rows.groupBy("group").agg(F.count("*"), F.sum(F.octet_length("device_id")), *ends).collect()
    return [ClosedWindows(groups[name], *counted) for name, *counted in sorted(counts)]
