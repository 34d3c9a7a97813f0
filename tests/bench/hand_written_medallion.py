"""The hand-written medallion, the second yardstick of the benchmark: plain Spark streams, idiomatic and honestly tuned.

JSON lines to bronze; catalogue, registry, watermark and `dropDuplicates` to silver; a stream of windows for each group to gold. No lineage,
no quarantine, no ledger, no vectors, no snapshots: it does less than Tidemark. Tuned as Tidemark is: as many partitions as cores, state
on the heap, small tables broadcast, batches of 256 MB (8 MB of bronze, which is compressed), no batch without data but in gold, where it
closes windows.

Usage: hand_written_medallion.py JSON, the arguments of `main`
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))  # run as a script, from any folder

from tests.bench.factory import GROUPS, LATENESS_SECONDS, METRICS, STEP_SECONDS, registry  # noqa: E402

SCHEMA = "device STRING, metric STRING, value DOUBLE, unit STRING, zone STRING, ts STRING"
BATCH_BYTES = 256 * 1024 * 1024
BRONZE_BATCH_BYTES = 8 * 1024 * 1024
"""Bronze is compressed: 16 MB of it were 4,000,000 events, whose keys did not fit a heap of 2 GB."""
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def main(*, landing: str, lake: str, jars: list[str], memory: str, cores: int, devices: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.jars", ",".join(jars)).config("spark.driver.memory", memory)
    builder = builder.config("spark.sql.shuffle.partitions", cores)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _written(spark.readStream.schema(SCHEMA).option("maxBytesPerTrigger", BATCH_BYTES).json(landing), lake, "bronze")
    _written(_silver(spark, lake, devices), lake, "silver")
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    for query in [_begun(_gold(spark, lake, group), lake, f"gold_{group}") for group in GROUPS]:
        query.awaitTermination()
    spark.stop()


def _silver(spark: SparkSession, lake: str, devices: int) -> DataFrame:
    """Grain: the first reading of a device, metric and time."""
    known = F.broadcast(spark.createDataFrame([*registry(devices).items()], "device string, of_group string"))
    catalogue = F.broadcast(spark.createDataFrame([(name,) for name in METRICS], "metric string"))
    events = _table(spark, f"{lake}/bronze", BRONZE_BATCH_BYTES).withColumn("event_time", F.col("ts").cast("timestamp")).drop("ts")
    measured = events.where("event_time is not null and value is not null").join(known, "device").join(catalogue, "metric")
    return measured.withWatermark("event_time", f"{LATENESS_SECONDS} seconds").dropDuplicates(["device", "metric", "event_time"])


def _gold(spark: SparkSession, lake: str, group: str) -> DataFrame:
    """Grain: device, metric and closed window."""
    readings = _table(spark, f"{lake}/silver", BATCH_BYTES).where(F.col("of_group") == group)
    window = F.window("event_time", f"{STEP_SECONDS} seconds")
    numbers = {"mean": F.avg("value"), "count": F.count("*"), "min": F.min("value"), "max": F.max("value")}
    return (
        readings.withWatermark("event_time", f"{LATENESS_SECONDS} seconds")
        .groupBy("device", "metric", window)
        .agg(*(number.alias(name) for name, number in numbers.items()), F.max_by("value", "event_time").alias("latest"))
    )


def _table(spark: SparkSession, path: str, batch_bytes: int) -> DataFrame:
    return spark.readStream.format("delta").option("maxBytesPerTrigger", batch_bytes).load(path)


def _begun(rows: DataFrame, lake: str, table: str) -> StreamingQuery:
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{lake}/_checkpoints/{table}").outputMode("append")
    return writer.trigger(availableNow=True).start(f"{lake}/{table}")


def _written(rows: DataFrame, lake: str, table: str) -> None:
    _begun(rows, lake, table).awaitTermination()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
