"""What a micro-batch of gold closed."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.spec import Group
from orchestration.engine.lake import Lake
from orchestration.storage.tables import Table


@dataclass(frozen=True)
class Batch:
    """A micro-batch of a flow."""

    lake: Lake
    flow: str
    number: int

    def app_id(self, table: Table) -> str:
        """By which a repeated batch is known."""
        return self.lake.app_id(self.flow, table.name)

    def stamped(self, rows: DataFrame) -> DataFrame:
        """With the columns that every row of gold has."""
        return rows.withColumns({"revision": F.lit(0), "gold_batch": F.lit(self.number).cast("bigint")})

    def stamped_rows(self, rows: pa.Table) -> pa.Table:
        """The same of Arrow."""
        revision, number = (pa.repeat(pa.scalar(n, of), len(rows)) for n, of in ((0, pa.int32()), (self.number, pa.int64())))
        return rows.append_column("revision", revision).append_column("gold_batch", number)


@dataclass(frozen=True)
class Closed:
    """Windows of one group that a micro-batch closed.

    `first_end`: the least end, in seconds since 1970; `name_bytes`: of the names of their devices, which may be of any length.
    """

    group: Group
    count: int
    first_end: int
    name_bytes: int
