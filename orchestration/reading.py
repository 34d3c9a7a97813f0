"""What flows read: landing folders and tables, as streams."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bronze.events import received
from orchestration.intake import claims_folder, position_of
from orchestration.lake import Lake

TICKS = "ops.ticks"


def landed_lines(lake: Lake) -> DataFrame:
    """Lines of all sources' claimed files."""
    return reduce(DataFrame.unionByName, (_lines(lake, source) for source in lake.conf.sources))


def _lines(lake: Lake, source: str) -> DataFrame:
    lines = (
        lake.spark.readStream.format("text")
        .option("lineSep", "\n")  # a carriage return stays with its line: bytes are kept
        .option("recursiveFileLookup", "true")
        .option("maxBytesPerTrigger", lake.conf.engine.max_batch_bytes)
        # Spark forgets files a week older than the newest; a file that is late by more must not be lost.
        .option("maxFileAge", "36500d")
        .load(str(claims_folder(lake.conf.lake, source)))
    )
    return received(lines, source, position_of(F.col("_metadata.file_path"), source))


def stream(lake: Lake, table: str) -> DataFrame:
    """A table from its first version on, in the order in which it was written."""
    return (
        lake.spark.readStream.format("delta")
        .option("startingVersion", "0")
        .option("maxBytesPerTrigger", lake.conf.engine.max_batch_bytes // 4)  # Parquet packs events four to one
        .load(str(lake.table_path(table)))
    )


def with_ticks(lake: Lake, name: str, readings: DataFrame) -> DataFrame:
    """Readings and, if a group of the stream closes when idle, its ticks: rows with an event time and nothing else."""
    if all(group.idle_close_seconds is None for group in lake.conf.groups.values() if group.stream == name):
        return readings
    ticks = stream(lake, TICKS).where(F.col("stream") == name).select("event_time")
    return readings.unionByName(ticks, allowMissingColumns=True)
