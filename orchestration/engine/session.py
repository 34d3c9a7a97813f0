"""The Spark session: local, in UTC, with Delta, quiet."""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from orchestration.conf.model import Engine
from orchestration.engine.java import class_archive_option

CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nobody looks at them, and plans of the last 1000 queries are 100 MB.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Of each table that it met within an hour Delta keeps some 4 MB (measured): a lake of 300 groups has 900.
    "spark.databricks.delta.delta.log.cacheSize": "100",
    # Small row groups let all cores read one file (measured: one core did, with the default of 128 MB).
    "spark.hadoop.parquet.block.size": str(16 * 1024 * 1024),
    # No two payloads (of quarantine) are alike: looking for repeats costs a fifth of writing them.
    "spark.hadoop.parquet.enable.dictionary#payload": "false",
    # The default, INT96, counts nanoseconds: readers other than Spark break on an instant before 1677 or after 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
    "spark.sql.streaming.metricsEnabled": "false",
    # The default asks about links, for which Hadoop starts `readlink`, some for each file of a checkpoint: 600 in a run of one batch.
    "spark.sql.streaming.checkpointFileManagerClass": f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    # Flows and jobs have more than the default of 100 classes in turn: gold compiled its own anew in each round.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # A checkpoint knows its sources by their names and not by their places, where they have names (queries.started).
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    # Looks for a number of partitions that this format does not keep, and ends a query whose last batch was not finished (measured).
    "spark.sql.streaming.checkUnfinishedRepartitionOnRestart": "false",
    # A batch then turns rows away by the newest event of all batches before it; otherwise Spark is one batch more lenient,
    # but only if no empty batch ran between, so that what is late would depend on pauses.
    "spark.sql.streaming.statefulOperator.allowMultiple": "false",
    # A snapshot is kept as long as conf says, and the newest one for ever: Delta would refuse versions older than a week.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # `env:` in a query's text would give away the environment.
    "spark.sql.variable.substitute": "false",
}
# Plans of a few rows are not compiled: every batch has instants and numbers of its own in its code, so Spark finds none of it compiled
# already (measured on 2 rows: 5 s instead of 2.7 s for a batch of gold).
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
HEAP_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def spark_session(engine: Engine, jars: Sequence[Path], log: Path | None = None, changes: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process. What the JVM prints goes to the file `log`; None leaves it on the error stream.

    `changes`: settings that are otherwise here; options of Java are added to ours.
    """
    # Workers otherwise run the python3 of the PATH, which may be another version.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{engine.cores}]").appName("tidemark")
    settings, ours = SETTINGS | _of_engine(engine), "spark.driver.extraJavaOptions"
    settings |= {**(changes or {}), ours: f"{settings[ours]} {(changes or {}).get(ours, '')}"}
    # Not spark.jars, which would copy every jar at every start and hide its classes from a class-data archive.
    settings["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
    if SparkContext._gateway is None:
        _start_jvm(settings, log)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def from_arrow(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that fit in memory, in one piece: of a table of several, Spark silently leaves out all behind an empty one (measured, 4.2.0)."""
    return session.createDataFrame(rows.combine_chunks())


def _of_engine(engine: Engine) -> dict[str, str]:
    log4j = f"-Dlog4j2.configurationFile={files('orchestration.engine') / 'log4j2.properties'}"
    # The whole heap from the start: one that grows is collected at every step (measured: half of all collecting).
    # Most of it for what lives long, state above all: a restart holds the keys of two large batches at once, and ran out of 2 GB with the
    # default ratio of 2 (measured, after 30,000,000 events).
    heap = f"-Xms{engine.driver_memory} -XX:+UseParallelGC -XX:NewRatio=6"
    return {
        "spark.driver.memory": engine.driver_memory,
        "spark.driver.extraJavaOptions": f"{log4j} -Duser.timezone=UTC {heap} {class_archive_option()}",
        "spark.sql.shuffle.partitions": str(engine.shuffle_partitions),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB_STORE if engine.state_store == "rocksdb" else HEAP_STORE,
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "tidemark-warehouse"),
    }


def _start_jvm(settings: Mapping[str, str], log: Path | None) -> None:
    """With an error stream of its own, so that other threads may use ours; warnings of its boot cannot be switched off otherwise."""
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    with nullcontext() if log is None else log.open("ab") as file:
        gateway = launch_gateway(SparkConf().setAll([*settings.items()]), {"stderr": file})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
