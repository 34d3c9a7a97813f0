"""A source of Spark in Python beside Delta's own: `make bench NAME=streams`.

One stream reads all readings of a table and aggregates them, in one warm session, by each source in turn. Told: seconds and CPU from the
start of the query to its end, and the memory of Python then. Workers stay a minute, so Delta's source finds those of the other.
A query of few readings shows what its start costs.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType
from rich.console import Console

from orchestration.conf.pipeline_settings import Engine
from orchestration.engine.jars import fetched
from orchestration.engine.session import spark_session
from orchestration.location import Location
from orchestration.storage.commit import append_pieces, create
from orchestration.storage.delta import added, version_of
from orchestration.storage.row_pieces import PIECE_ROWS, in_pieces
from tests.bench.script import by_turns, narrow_table, parser_for, script, write_report

FEW = 20_000
DEVICES, METRICS = 200, ("temperature", "humidity", "vibration", "power", "pressure")
COLUMNS = "device_id string, metric string, event_time timestamp, value double"
SCHEMA = pa.schema(
    [("device_id", pa.string()), ("metric", pa.string()), ("event_time", pa.timestamp("us", "UTC")), ("value", pa.float64())]
)


@dataclass(frozen=True)
class Cost:
    """From the start of a query to its end. `python_bytes`: of all processes but this one and the JVM; what they share is divided."""

    seconds: float
    cpu_seconds: float
    python_bytes: int


@dataclass
class Groups(InputPartition):
    path: str
    numbers: range


class InPython(DataSource):
    """Versions of a Delta table of one file each."""

    @classmethod
    def name(cls) -> str:
        return "in_python"

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return InPythonReader(self.options["table"])


class InPythonReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the number of versions that are read."""

    def __init__(self, table: str) -> None:
        self.table = Location(Path(table))

    def initialOffset(self) -> dict[str, int]:
        return {"version": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """Leave the table as it is: it does not grow here."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"version": version_of(self.table) + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        files = [file for version in range(start["version"], end["version"]) for file in added(self.table, version)]
        return [groups for file in files for groups in _halves(str(self.table.local / file["path"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Groups)
        with pq.ParquetFile(partition.path) as file:
            yield from file.iter_batches(10_000, row_groups=partition.numbers, use_threads=False)


def main() -> int:
    parser = parser_for(__doc__, "bench-streams", events=2_000_000, rounds=5)
    options = parser.parse_args()
    folder = options.work / "streams"
    shutil.rmtree(folder, ignore_errors=True)
    spark = spark_session(Engine(driver_memory=options.driver_memory, cores=options.cores), fetched(), folder / "spark.log")
    spark.dataSource.register(InPython)
    sources = {"Delta's source": "delta", "in Python": InPython.name()}
    jobs: dict[str, Callable[[], Cost]] = {}
    for rows in (options.events, FEW):
        table = folder / str(rows)
        create(Location(table), SCHEMA)
        append_pieces(Location(table), in_pieces(_readings(rows).to_batches(PIECE_ROWS), SCHEMA), "bench", 0)
        jobs |= {f"{rows:,} readings, {name}": partial(_cost, spark, source, table, rows) for name, source in sources.items()}
    by_turns(jobs, 2)  # warm
    costs = by_turns(jobs, options.rounds)
    spark.stop()
    show(costs)
    write_report(options, {"costs": {name: [*map(vars, of_job)] for name, of_job in costs.items()}})
    return 0


def show(costs: dict[str, list[Cost]]) -> None:
    """Print medians."""
    table = narrow_table("stream", "seconds", "CPU seconds", "MB of Python,\nworkers included")
    for name, of_job in costs.items():
        seconds, cpu = (f"{median(getattr(cost, field) for cost in of_job):.2f}" for field in ("seconds", "cpu_seconds"))
        table.add_row(name, seconds, cpu, f"{median(cost.python_bytes for cost in of_job) / 1e6:.0f}")
    Console().print(table)


def _cost(spark: SparkSession, source: str, table: Path, rows: int) -> Cost:
    found: list[int] = []

    def write(batch: DataFrame, _: int) -> None:
        found.extend([batch.agg(F.count("*"), *map(F.max, SCHEMA.names)).collect()[0][0], _python_bytes()])

    with TemporaryDirectory(dir=table.parent) as checkpoint:
        begin, cpu = perf_counter(), _cpu_seconds()
        stream = spark.readStream.format(source).options(table=str(table), startingVersion="0").load(str(table))  # as Tidemark begins
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        cost = Cost(perf_counter() - begin, _cpu_seconds() - cpu, found[1])
    assert found[0] == rows, f"{found[0]} of {rows} rows were read"
    return cost


def _cpu_seconds() -> float:
    """Seconds of CPU of this process and its descendants, of those that have ended too."""
    me = psutil.Process()
    return float(sum(sum(process.cpu_times()[:4]) for process in (me, *me.children(recursive=True))))


def _python_bytes() -> int:
    others = (process for process in psutil.Process().children(recursive=True) if process.name().startswith("python"))
    return sum(process.memory_full_info().pss for process in others)


def _halves(path: str) -> Iterator[Groups]:
    """Cut the row groups of a file into a part for each core."""
    count = pq.read_metadata(path).num_row_groups
    parts = min(os.cpu_count() or 1, count)
    yield from (Groups(path, range(count * n // parts, count * (n + 1) // parts)) for n in range(parts))


def _readings(count: int) -> pa.Table:
    """A reading of each device and metric a second."""
    place, many = np.arange(count), DEVICES * len(METRICS)
    columns = (
        pa.array(np.char.add("sim-", (place % DEVICES).astype(str))),
        pa.array(np.array(METRICS)[place // DEVICES % len(METRICS)]),
        pa.array(1_767_571_200_000_000 + place // many * 1_000_000).cast(SCHEMA.field("event_time").type),
        pa.array(np.random.default_rng(7).random(count)),
    )
    return pa.table(columns, SCHEMA)


if __name__ == "__main__":
    script(main)
