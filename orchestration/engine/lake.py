"""A lake opened: its conf, its folders, its session and its tables by name, also as streams."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.engine.jars import fetched
from orchestration.engine.java import heap_of, require_java
from orchestration.engine.s3a import s3a
from orchestration.engine.session import INTERPRETED, spark_session
from orchestration.errors import TidemarkError
from orchestration.storage.checkpoints import last_batch
from orchestration.storage.generations import Generation
from orchestration.storage.live_views import IS_LIVE
from orchestration.storage.marts import snapshot_for
from orchestration.storage.retention import is_whole
from orchestration.storage.tables import LakeStore
from orchestration.storage.views import View, views
from orchestration.stores.object_store import ObjectStore

NO_LIMIT = 2**31 - 1
Item = TypeVar("Item")
Result = TypeVar("Result")


class Lake(LakeStore):
    """From Python: `Lake.open("conf").sql("select ...")`. Opening starts nothing; the session starts when first used."""

    def __init__(self, conf: Conf, spark: SparkSession | None = None, generation: Generation | None = None) -> None:
        """`spark`: use this session instead of an own one. `generation`: work on this one, instead of the active one."""
        super().__init__(conf, generation)
        self._spark = spark
        self.start: Callable[[Callable[[], SparkSession]], SparkSession] = lambda session: session()
        """Starts the session: a run has more to do then."""

    @classmethod
    def open(cls, folder: str | Path = "conf") -> "Lake":
        """The lake that the conf in `folder` describes; ConfError names every mistake in it."""
        return cls(load(Path(folder)))

    @cached_property
    def spark(self) -> SparkSession:
        """The session; raises TidemarkError where Java or the jars are missing."""
        if self._spark is not None:
            return self._spark
        require_java()
        store = s3a(self.conf.lake.store) if isinstance(self.conf.lake.store, ObjectStore) else None
        return self.start(partial(spark_session, self.conf.engine, fetched(), self.log, store=store))

    @property
    def log(self) -> Path:
        return (self.conf.lake / "spark.log").local

    def interpreted(self) -> "Lake":
        """The same lake in a session of its own, for jobs of a few rows: see `session.INTERPRETED`."""
        session = self.spark.newSession()
        for key, value in INTERPRETED.items():
            session.conf.set(key, value)
        return Lake(self.conf, session, self.generation)

    def by_tasks(self, name: str, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return the result of each item: by a task of an executor where this process has a session on a cluster, else by itself.

        `name`: of what the tasks are for, as Spark's event log and page say it.
        """
        if self.conf.engine.master is None or not items or not (self._spark or "spark" in vars(self)):
            return [*map(function, items)]
        self.spark.sparkContext.setJobDescription(name)
        return self.spark.sparkContext.parallelize(items, len(items)).map(function).collect()

    def read(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.table_path(name)))

    def stream(self, flow: str, table: str, first_version: int = 0, files_per_batch: int = NO_LIMIT, name: str | None = None) -> DataFrame:
        """A table as a flow reads it: from a version on, in the order in which it was written. `name`: of the source in the checkpoint.

        Where files of that were compacted and are gone, a new flow begins with all that the table holds, in one batch, as without a limit
        it would anyway.
        A limit takes files of a commit in no order of time, and the watermark then turns away rows that came in time (measured: a quarter
        of an ordered bulk load). So it is for tables whose commits are one file each.
        """
        path = self.table_path(table)
        begin = {"startingVersion": str(first_version)}
        # Delta asks for the first version at the first batch only, and begins with what the table holds where none is given.
        if last_batch(self.checkpoint(flow)).last_batch is None and not is_whole(path, first_version):
            if files_per_batch != NO_LIMIT:
                raise TidemarkError(
                    f"{flow} cannot start from the beginning: {table} at {path} was compacted, so its first commits are gone.\n"
                    "  Restore the checkpoint, or build silver and gold anew with `tidemark replay`."
                )
            begin = {}
        reader = self.spark.readStream.format("delta").options(**begin, maxFilesPerTrigger=str(files_per_batch))
        return (reader if name is None else reader.name(name)).load(str(path))

    def sql(self, query: str, snapshot: int | None = None, at: datetime | None = None) -> DataFrame:
        """Rows of a query over one snapshot, of that id or the newest at that instant; by default the newest (see marts.snapshot_for).

        Tables that no snapshot pins (ops, quality, the registry) are read in their latest version, and so is everything in a lake
        without snapshots.
        """
        self.show(views(self.conf, snapshot_for(self.conf.lake, query, snapshot, at), query).values())
        try:
            return self.spark.sql(query)
        except AnalysisException as error:
            name = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
            if not IS_LIVE.fullmatch(name):
                raise
            raise TidemarkError(f"{name} is not available in Spark; query it with `tidemark sql`.") from error

    def show(self, views: Iterable[View]) -> None:
        """Make them views of the session, which costs a look at the log of each table."""
        for view in views:
            database, table = view.name.split(".", 1)
            self.spark.sql(f"create database if not exists `{database}`")
            self.spark.sql(f"create or replace view `{database}`.`{table}` as {view.spark()}")


@contextmanager
def heap_is_named(lake: Lake) -> Iterator[None]:
    """Raise an error in here as one of memory if the session's log has come to say so: Spark then mostly names something else."""
    log = lake.log
    before = log.stat().st_size if log.exists() else 0
    try:
        yield
    except TidemarkError:
        raise
    except Exception as error:
        if log.exists() and b"java.lang.OutOfMemoryError" in log.read_bytes()[before:]:
            on_cluster = "" if lake.conf.engine.master is None else " (or spark.executor.memory in its settings)"
            raise TidemarkError(
                f"Spark ran out of memory: it has {heap_of(lake.conf.engine.driver_memory)}; see {log}.\n"
                f"  Raise driver_memory{on_cluster} under `engine` in conf/pipeline.yml,"
                " and run again: nothing is lost, it goes on where it ended."
            ) from error
        raise
