"""The bronze layer: messages as they came, with where and when. Nothing parsed, nothing refused, bytes kept."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

EVENT_COLUMNS = ["payload", "header", "source", "position", "received_at", "ingested_at", "ingested_on", "bronze_batch", "bronze_row"]


def received(lines: DataFrame, source: str, position: Column) -> DataFrame:
    """Lines of text files (`value`, `_metadata`) to events still without identity; `file` is the file as Spark names it."""
    return lines.select(
        F.col("value").cast("binary").alias("payload"),
        F.lit(source).alias("source"),
        position.alias("position"),
        F.col("_metadata.file_modification_time").alias("received_at"),
        # In a stream this is the start of the micro-batch, from the offset log: the same again when the batch is repeated.
        F.current_timestamp().alias("ingested_at"),
        F.col("_metadata.file_path").alias("file"),
    )


def without_headers(events: DataFrame, headers: DataFrame | None) -> DataFrame:
    """Adds `header`, the first line of the event's file, where `headers` knows it, and leaves the header lines out: they are no events.

    `headers`: grain one file; `file`, `header`; None where no source has any. A header line that stands again further
    down in its file is left out too.
    """
    if headers is None:
        return events.withColumn("header", F.lit(None).cast("string"))
    is_event = F.coalesce(F.col("payload") != F.col("header").cast("binary"), F.lit(True))
    return events.join(F.broadcast(headers), on="file", how="left").where(is_event)


def identified(events: DataFrame, bronze_batch: int) -> DataFrame:
    """Events with their identity. Only for a batch: a stream refuses monotonically_increasing_id."""
    return (
        events.withColumn("bronze_batch", F.lit(bronze_batch).cast("bigint"))
        .withColumn("bronze_row", F.monotonically_increasing_id())
        .withColumn("ingested_on", F.to_date("ingested_at"))
        .select(*EVENT_COLUMNS)
    )
