"""The Spark session: on this machine or a cluster, in UTC, with Delta, quiet."""

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
from orchestration.conf.spark_options import SETTINGS
from orchestration.engine.java import LEAST_HEAP, class_archive_option, heap_of
from orchestration.engine.s3a import S3A

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""In the environment of a process that spark-submit started; its JVM runs already."""
# Plans of a few rows are not compiled: every batch has instants and numbers of its own in its code, so Spark finds none of it compiled
# already (measured on 2 rows: 5 s instead of 2.7 s for a batch of gold).
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
# Closed windows, which tasks send to the driver, repeat names and instants.
OF_CLUSTER = {"spark.sql.execution.arrow.compression.codec": "zstd"}
HEAP_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def spark_session(
    engine: Engine, jars: Sequence[Path], log: Path | None = None, changes: Mapping[str, str] | None = None, store: S3A | None = None
) -> SparkSession:
    """The session of this process. What the JVM prints goes to `log`, or to the error stream. `changes`: settings instead of ours.

    `store`: for a lake on an object store.
    """
    settings, ours = settings_of(engine, jars, store), "spark.driver.extraJavaOptions"
    settings |= {**(changes or {}), ours: f"{settings[ours]} {(changes or {}).get(ours, '')}"}
    # Workers otherwise run the python3 of the PATH, which may be another version.
    os.environ["PYSPARK_PYTHON"] = engine.settings.get("spark.pyspark.python", sys.executable)
    if SparkContext._gateway is None:
        if store:
            store.extend_class_path()
        _start_jvm(settings, log)
    builder = SparkSession.builder.appName("tidemark")
    # The store's settings hold its keys: they go straight into the session, and not by the command line of the JVM, which all can read.
    for key, value in (settings | {**(store.settings if store else {})}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def settings_of(engine: Engine, jars: Sequence[Path], store: S3A | None = None) -> dict[str, str]:
    """Return the settings of a session. Under spark-submit, master and jars are those of its command line, unless conf names a master."""
    settings = {**engine.settings, **SETTINGS, **_of_engine(engine), "spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
    if engine.master is not None:
        # For executors, as their machines may have no cache of jars. Not on this machine alone: it would copy every jar at every start,
        # and hide its classes from a class-data archive.
        settings |= {**OF_CLUSTER, "spark.master": engine.master, "spark.jars": ",".join(map(str, [*jars, *(store.jars if store else [])]))}
    elif SUBMITTED not in os.environ:
        settings["spark.master"] = f"local[{engine.cores}]"
    return settings


def from_arrow(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that fit in memory, in one piece: of a table of several, Spark silently leaves out all behind an empty one (measured, 4.2.0),
    and it takes none without a piece."""
    piece = rows.combine_chunks() if len(rows) else pa.Table.from_batches([pa.RecordBatch.from_pylist([], rows.schema)])
    return session.createDataFrame(piece)


def _of_engine(engine: Engine) -> dict[str, str]:
    log4j = f"-Dlog4j2.configurationFile={files('orchestration.engine') / 'log4j2.properties'}"
    # The whole heap from the start, or 2g of one that nobody has set: a heap that grows from less is collected at every step (measured:
    # half of all collecting), and a small plant never needs more.
    # Most of it for what lives long, state above all: a restart holds the keys of two large batches at once, and ran out of 2 GB with the
    # default ratio of 2 (measured, after 30,000,000 events).
    heap = f"-Xms{engine.driver_memory or LEAST_HEAP} -XX:+UseParallelGC -XX:NewRatio=6"
    return {
        "spark.driver.memory": heap_of(engine.driver_memory),
        "spark.driver.extraJavaOptions": f"{log4j} -Duser.timezone=UTC {heap} {class_archive_option()}",
        "spark.executor.defaultJavaOptions": "-Duser.timezone=UTC",
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
