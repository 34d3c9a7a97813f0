"""Tables as streams, which queries read."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.windows.aggregates import ticks
from gold.windows.spec import Group
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.storage.checkpoints import last_batch
from orchestration.storage.ops_tables import TICKS
from orchestration.storage.retention import is_whole

NO_LIMIT = 2**31 - 1


def stream(  # noqa: PLR0917
    lake: Lake, flow: str, table: str, first_version: int = 0, files_per_batch: int = NO_LIMIT, name: str | None = None
) -> DataFrame:
    """A table as a flow reads it: from a version on, in the order in which it was written; `name` is that of the source in the checkpoint.

    Where files of that were compacted and are gone, a new flow begins with all that the table holds, in one batch, as without a limit it
    would anyway.
    A limit takes files of a commit in no order of time, and the watermark then turns away rows that came in time
    (measured: a quarter of an ordered bulk load). So it is for tables whose commits are one file each.
    """
    path = lake.table_path(table)
    begin = {"startingVersion": str(first_version)}
    # Delta asks for the first version at the first batch only, and begins with what the table holds where none is given.
    if last_batch(lake.checkpoint(flow)).last_batch is None and not is_whole(path, first_version):
        if files_per_batch != NO_LIMIT:
            raise TidemarkError(
                f"{flow} cannot begin anew: {table} at {path} was compacted, and its commits are no longer there one by one.\n"
                "  Restore the checkpoint, or build silver and gold anew with `tidemark replay`."
            )
        begin = {}
    options = begin | {"maxFilesPerTrigger": str(files_per_batch)}
    reader = lake.spark.readStream.format("delta").options(**options)
    return (reader if name is None else reader.name(name)).load(str(path))


def with_ticks(lake: Lake, name: str, groups: Sequence[Group], readings: DataFrame) -> DataFrame:
    """Readings of a gold stream and, if one of its groups closes when idle, its ticks."""
    if all(group.idle_close_seconds is None for group in groups):
        return readings
    return readings.unionByName(ticks(stream(lake, f"gold.{name}", TICKS.table, name="ticks").where(F.col("stream") == name), groups))
