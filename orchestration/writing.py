"""What becomes of a micro-batch: appended to its tables, each once, however often the batch is repeated.

Every append carries pipeline/flow/table/generation as its application id and the micro-batch as its version, so that
Delta itself refuses the second one. Without it, a crash between two tables doubles rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bronze.events import identified, without_headers
from gold.spec import Group
from gold.vectors import vectors
from orchestration.checkpoints import first_bronze_batch
from orchestration.intake import first_line
from orchestration.lake import Lake
from orchestration.tables import GENERATION, Table, append, tables


@dataclass(frozen=True)
class GoldTables:
    """The two tables of a group."""

    aggregates: Table
    vectors: Table

    @classmethod
    def of(cls, lake: Lake, group: Group) -> "GoldTables":
        """Those of `group`."""
        declared = tables(lake.conf)
        return cls(declared[f"gold.{group.name}_aggregates"], declared[f"gold.{group.name}_vectors"])

    def __iter__(self) -> Iterator[Table]:
        return iter((self.aggregates, self.vectors))


def events(lake: Lake, table: Table, batch: DataFrame, batch_id: int) -> None:
    """Bronze: header lines become a column, rows get their identity."""
    with_header = [name for name, source in lake.conf.sources.items() if source.shape.has_header]
    bronze_batch = first_bronze_batch(lake, table) + batch_id
    rows = without_headers(batch, _headers(batch, with_header), with_header) if with_header else batch.withColumn("header", F.lit(None).cast("string"))
    append(identified(rows, bronze_batch), table, _app_id(lake, "bronze.events", table), bronze_batch)


def append_batch(lake: Lake, table: Table, batch: DataFrame, batch_id: int) -> None:
    """Rows as the flow computed them."""
    append(batch, table, _app_id(lake, table.name, table), batch_id)


def windows(lake: Lake, flow: str, groups: Sequence[Group], batch: DataFrame, batch_id: int) -> None:
    """Gold: closed windows to aggregates, and the vectors that they complete."""
    stamped = batch.withColumns({"revision": F.lit(0), "gold_batch": F.lit(batch_id).cast("bigint")}).persist()
    try:
        closed = {row["group"]: row for row in stamped.groupBy("group").agg(F.min("window_end").cast("long").alias("first_end")).collect()}
        for group in groups:
            if group.name in closed:
                of_group = stamped.where(F.col("group") == group.name).drop("group")
                _write_group(lake, flow, group, of_group, closed[group.name]["first_end"], batch_id)
    finally:
        stamped.unpersist()


def _write_group(lake: Lake, flow: str, group: Group, closed: DataFrame, first_end: int, batch_id: int) -> None:
    written = GoldTables.of(lake, group)
    append(closed, written.aggregates, _app_id(lake, flow, written.aggregates), batch_id)
    if group.vector is None:
        return
    reach = F.timestamp_seconds(F.lit(first_end - group.vector.max_fill_seconds))
    # Without the rows of this batch: a repeat finds them in the table already.
    earlier = lake.read(written.aggregates.name).where((F.col("window_end") >= reach) & (F.col("gold_batch") < batch_id))
    known = earlier.unionByName(closed) if group.vector.max_fill_seconds else closed
    completed = vectors(known, group, group.vector, lake.conf.metrics).where(F.col("window_end") >= F.timestamp_seconds(F.lit(first_end)))
    append(completed.withColumns({"revision": F.lit(0), "gold_batch": F.lit(batch_id).cast("bigint")}), written.vectors, _app_id(lake, flow, written.vectors), batch_id)


def _headers(batch: DataFrame, sources: Sequence[str]) -> DataFrame:
    files = batch.where(F.col("source").isin(*sources)).select("file").distinct().collect()
    return batch.sparkSession.createDataFrame([(row.file, first_line(row.file)) for row in files], "file string, header string")


def _app_id(lake: Lake, flow: str, table: Table) -> str:
    return f"{lake.conf.pipeline}/{flow}/{table.name}/{GENERATION}"
