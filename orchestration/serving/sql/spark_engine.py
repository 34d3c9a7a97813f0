"""The Spark engine: a query in Spark's dialect is parsed, checked by the SQL guard, and run in a JVM without write access."""

import logging
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

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
from orchestration.serving.sql.refusal import RefusedError, pointed
from orchestration.serving.sql.sql_guard import SqlGuard
from orchestration.storage.marts import snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import View, views

PLACE = re.compile(r"line (\d+),? pos(ition)? (\d+)")
"""Spark counts a `pos` from 0 and a `position` from 1."""
CONDITION = re.compile(r"\[([A-Z0-9_.]+)\] ")
INTERNAL_ADVICE = re.compile(r"\s*(?:If necessary,? set .*? to bypass this error\.|SQLSTATE: \w+.*)", re.DOTALL)
"""Advice on Spark's settings, which no query can change."""


class SparkEngine:
    """Answers one query after the other. Use as a context manager."""

    def __init__(self, conf: Conf, limits: Limits, spark: SparkSession | None = None) -> None:
        """Starts the JVM. `spark`: use this session instead, of a JVM that the caller stops."""
        self._conf, self._limits = conf, limits
        self._catalogs: dict[tuple[View, ...], Catalog] = {}
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # translate() reports the same
        self._scratch = tempfile.TemporaryDirectory(prefix="tidemark-sql-", ignore_cleanup_errors=True)
        self._is_own, self._jobs = spark is None, ""
        self.spark = spark or _start_spark(conf, Path(self._scratch.name), limits)

    def __enter__(self) -> "SparkEngine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            self.spark.stop()
        self._scratch.cleanup()

    def ask(self, question: Question) -> Answer:
        """Rows of a query."""
        snapshot = snapshot_for(self._conf.lake, question.query, question.snapshot_id, question.at)
        named_views = views(self._conf, snapshot)
        key = tuple(named_views.values())
        if key not in self._catalogs:
            self._catalogs[key] = Catalog(self.spark, named_views)
        with self._time_limit():
            try:
                return self._run(self._plan(question.query, self._catalogs[key]), snapshot)
            except (PySparkException, Py4JError) as error:
                raise translate(error, question.query) from error

    def cancel(self) -> None:
        """Cancel the running query, even before its first job."""
        self.spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(self._jobs)

    def _plan(self, query: str, catalog: Catalog) -> DataFrame:
        if len(query.encode()) > self._limits.query_bytes:
            raise RefusedError(f"the query is longer than {self._limits.query_bytes:,} bytes: split it.")
        if not query.strip():
            raise RefusedError("the query is empty.")
        plan = catalog.parse(query)
        guard = SqlGuard(query, catalog.names)
        guard.check(plan)
        return catalog.resolve(plan, guard.tables_read)

    def _run(self, rows: DataFrame, snapshot: Snapshot | None) -> Answer:
        answer = rows.limit(self._limits.rows + 1).toArrow()
        return Answer(answer.slice(0, self._limits.rows), snapshot, answer.num_rows > self._limits.rows)

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Spark jobs in this context are cancelled at the time limit."""
        self._jobs = uuid.uuid4().hex  # of its own for each query: no later job of a group that was cancelled runs
        self.spark.sparkContext.setJobGroup(self._jobs, "", interruptOnCancel=True)
        deadline = time.monotonic() + self._limits.seconds
        timer = threading.Timer(self._limits.seconds, self.cancel)
        timer.start()
        try:
            yield
        except TidemarkError as error:
            if time.monotonic() >= deadline:
                raise RefusedError(f"the query took longer than {self._limits.seconds:g} s and was cancelled.") from error
            raise
        finally:
            timer.cancel()


def _start_spark(conf: Conf, scratch: Path, limits: Limits) -> SparkSession:
    """A session whose JVM can write in `scratch` only."""
    changes = {
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData",
        "spark.driver.maxResultSize": str(limits.result_bytes),
    }
    require_java()
    jars = fetched()

    def start() -> SparkSession:
        before, tempfile.tempdir = tempfile.tempdir, str(scratch)  # the JVM writes its port for PySpark there
        try:
            # On this machine whatever conf says: executors of a cluster could write.
            return spark_session(replace(conf.engine, master=None, settings={}), jars, scratch / "spark.log", changes)
        finally:
            tempfile.tempdir = before

    return landlock.without_write_access(start, [scratch]) if landlock.is_supported() else start()


def translate(error: Exception, query: str) -> TidemarkError:
    """Spark's error as a sentence without a trace: a RefusedError if the query is wrong, a TidemarkError if the engine failed."""
    text = str(error).strip()
    condition = CONDITION.search(text)
    if "spark.driver.maxResultSize" in text:
        return RefusedError("the answer is too large: select fewer rows or columns, or aggregate.")
    if "OutOfMemoryError" in text or "SparkOutOfMemoryError" in text:
        return RefusedError("the query needs more memory than a query may use: read less at once.")
    if "StackOverflowError" in text:
        return RefusedError("the query is too large: split it.")
    if condition is None:
        return TidemarkError(_cause(text))
    # An error in a task comes inside the trace of the task; the message begins at the condition.
    message = INTERNAL_ADVICE.sub("", text[condition.end() :].split("\n\n")[0].split("\n==")[0].split("\n\tat ")[0]).strip()
    place = PLACE.search(text)
    start = None if place is None else _start(query, int(place[1]), int(place[3]) - (place[2] is not None))
    return RefusedError(message if start is None else f"{message}\n{pointed(query, start)}")


def _cause(text: str) -> str:
    """The innermost cause of an error without a condition, without its trace."""
    causes = [line.strip() for line in text.splitlines() if line.strip().startswith("Caused by: ")]
    lines = [*reversed(causes), *(line.strip().removeprefix(": ") for line in text.splitlines())]
    first = next((line for line in lines if line and not line.startswith("An error occurred")), "Spark gave no reason")
    return first.removeprefix("Caused by: ")


def _start(query: str, line: int, column: int) -> int | None:
    """The index in the query; None if the place is not in the query, as for an error inside a view."""
    lines = query.split("\n")
    if not (1 <= line <= len(lines) and 0 <= column <= len(lines[line - 1])):
        return None
    return sum(len(before) + 1 for before in lines[: line - 1]) + column
