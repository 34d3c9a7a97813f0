"""The single write, yardstick of the benchmark: a plain Spark job from JSON lines with a declared schema to one Delta table.

Usage: single_write.py JSON, the arguments of `main`.
"""

import json
import os
import sys

from pyspark.sql import SparkSession

SCHEMA = "device STRING, metric STRING, value DOUBLE, unit STRING, zone STRING, ts TIMESTAMP"


def main(*, landing: str, lake: str, jars: list[str], memory: str, cores: int, **_: int) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.jars", ",".join(jars))
        .config("spark.driver.memory", memory)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.read.schema(SCHEMA).json(landing).write.format("delta").save(f"{lake}/bronze")
    spark.stop()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
