"""Spark's answers: parsed, checked by the fence, and run in a JVM that may not write."""

import itertools
import logging
import tempfile
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from orchestration.conf.model import Conf
from orchestration.engine.jars import fetched
from orchestration.engine.java import require_java
from orchestration.engine.session import spark_session
from orchestration.errors import TidemarkError
from orchestration.serving.sql import landlock
from orchestration.serving.sql.answer import Answer, Limits, Question
from orchestration.serving.sql.catalog import Catalog
from orchestration.serving.sql.refusal import RefusedError
from orchestration.serving.sql.spark_errors import told
from orchestration.serving.sql.sql_guard import Fence
from orchestration.storage.marts import snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import views

CATALOGS = 8
"""Of as many snapshots; that which was asked longest ago goes."""


class SparkEngine:
    """Answers any number of questions at once, in one JVM. Use as a context manager."""

    def __init__(self, conf: Conf, limits: Limits, slots: int = 2, spark: SparkSession | None = None) -> None:
        """The JVM starts now. `slots`: tasks at once, more than cores where an endless query must not keep the others waiting.

        `spark`: use this session, of a JVM that somebody else ends.
        """
        self._conf, self._limits = conf, limits
        self._catalogs: OrderedDict[tuple[Any, ...], Catalog] = OrderedDict()
        self._choosing = threading.Lock()
        self._ends: dict[str, float] = {}
        """By name of a question the moment when its time is over."""
        self._pools: dict[str, int] = {}
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # what it tells, told() does
        self._scratch = tempfile.TemporaryDirectory(prefix="tidemark-sql-", ignore_cleanup_errors=True)
        self._is_own = spark is None
        self.spark = spark or _started(conf, Path(self._scratch.name), limits, slots)

    def __enter__(self) -> "SparkEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM, if it is ours."""
        if self._is_own:
            self.spark.stop()
        self._scratch.cleanup()

    def ask(self, question: Question, name: str | None = None) -> Answer:
        """Rows of a query. `name`: by which `cancel` knows it."""
        snapshot = snapshot_for(self._conf.lake, question.query, question.snapshot_id, question.at)
        catalog = self._catalog(snapshot)
        with self._in_time(name or uuid.uuid4().hex):
            try:
                return self._run(self._checked(question.query, catalog), snapshot)
            except (PySparkException, Py4JError) as error:
                raise told(error, question.query) from error

    def warm(self) -> None:
        """Make the newest snapshot ready, so that the first question to it does not wait for the logs of its tables."""
        catalog = self._catalog(snapshot_for(self._conf.lake, ""))
        catalog.make(catalog.names)

    def practise(self) -> bool:
        """Ask questions of the usual forms, of which statistics tell that no row is meant. False where somebody asks: they go first."""
        names = [name for name, view in self._catalog(snapshot_for(self._conf.lake, "")).views.items() if view.bronze_batch is not None]
        for name in names:
            nothing = f"from {name} where bronze_batch < 0"
            for query in (
                f"select bronze_row, count(*) as n {nothing} group by bronze_row order by n",
                f"select * {nothing} order by bronze_row limit 5",
            ):
                if self._ends:
                    return False
                self.ask(Question(query))
        return bool(names)

    def is_stuck(self) -> bool:
        """Whether something goes on that was to end: a question beyond its time, or tasks that belong to none."""
        now = time.monotonic()
        if any(now > end for end in list(self._ends.values())):
            return True
        executors = self.spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        return not self._ends and any(executor.numRunningTasks() for executor in executors)

    def cancel(self, name: str | None = None) -> None:
        """End a question that is being answered, also one that has not come to its first job; without a name every one."""
        for each in list(self._ends) if name is None else [name]:
            self.spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(each)

    def _catalog(self, snapshot: Snapshot | None) -> Catalog:
        found = views(self._conf, snapshot)
        key = tuple(found.values())
        with self._choosing:
            if key not in self._catalogs:
                self._catalogs[key] = Catalog(self.spark, found)
            self._catalogs.move_to_end(key)
            if len(self._catalogs) > CATALOGS:
                self._catalogs.popitem(last=False)
            return self._catalogs[key]

    def _checked(self, query: str, catalog: Catalog) -> DataFrame:
        if len(query.encode()) > self._limits.query_bytes:
            raise RefusedError(f"the query is longer than {self._limits.query_bytes:,} bytes: ask it in parts.")
        if not query.strip():
            raise RefusedError("there is no query.")
        plan = catalog.parsed(query)
        fence = Fence(query, catalog.names, self._limits)
        fence.check(plan)
        return catalog.resolved(plan, fence.named)

    def _run(self, rows: DataFrame, snapshot: Snapshot | None) -> Answer:
        answer = rows.limit(self._limits.rows + 1).toArrow()
        return Answer(answer.slice(0, self._limits.rows), snapshot, answer.num_rows > self._limits.rows)

    @contextmanager
    def _in_time(self, name: str) -> Iterator[None]:
        """What Spark does in here belongs to a question; it is cancelled when its time is over."""
        context = self.spark.sparkContext
        context.setJobGroup(name, "", interruptOnCancel=True)
        with self._choosing:
            self._ends[name] = time.monotonic() + self._limits.seconds
            pool = next(pool for pool in itertools.count() if pool not in self._pools.values())
            self._pools[name] = pool
        # Questions share the slots evenly; a pool is never forgotten by Spark, so there are as many as questions at once.
        context.setLocalProperty("spark.scheduler.pool", str(pool))
        over = threading.Event()

        def end() -> None:
            over.set()
            self.cancel(name)

        timer = threading.Timer(self._limits.seconds, end)
        timer.start()
        try:
            yield
        except TidemarkError as error:
            if over.is_set():
                raise RefusedError(f"the query took longer than {self._limits.seconds:g} s, and was ended.") from error
            raise
        finally:
            timer.cancel()
            with self._choosing:
                del self._ends[name], self._pools[name]


def _started(conf: Conf, scratch: Path, limits: Limits, slots: int) -> SparkSession:
    """A session whose JVM may write in `scratch` only."""
    changes = {
        "spark.master": f"local[{slots}]",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData",
        "spark.driver.maxResultSize": str(limits.result_bytes),
        "spark.scheduler.mode": "FAIR",
        # Not as many as there are slots: each stage would take them all, and an endless one keep them.
        "spark.default.parallelism": str(conf.engine.cores),
        # A task that is out of memory fails its query, and not the JVM with all of them.
        "spark.executor.killOnFatalError.depth": "0",
    }
    require_java()
    made: list[SparkSession] = []
    jars = fetched()

    def start() -> None:
        outside, tempfile.tempdir = tempfile.tempdir, str(scratch)  # PySpark waits there for the JVM to say its port
        try:
            made.append(spark_session(conf.engine, jars, scratch / "spark.log", changes))
        finally:
            tempfile.tempdir = outside

    if landlock.is_there():
        landlock.without_write_access(start, [scratch])
    else:
        start()
    return made[0]
