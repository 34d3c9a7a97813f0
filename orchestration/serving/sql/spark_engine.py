"""The Spark engine: one query in Spark's SQL over one snapshot, by `Lake.sql`, with the rights of whoever typed it."""

import logging
import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Answer, Limits, Question, RefusedError, pointed
from orchestration.storage.marts import snapshot_for

PLACE = re.compile(r"line (\d+),? pos(ition)? (\d+)")
"""Spark counts a `pos` from 0 and a `position` from 1."""
CONDITION = re.compile(r"\[([A-Z0-9_.]+)\] ")
INTERNAL_ADVICE = re.compile(r"\s*(?:If necessary,? set .*? to bypass this error\.|SQLSTATE: \w+.*)", re.DOTALL)
"""Advice on Spark's settings, which no query can change."""


class SparkEngine:
    """Answers one query after the other. Use as a context manager."""

    def __init__(self, conf: Conf, limits: Limits, spark: SparkSession | None = None) -> None:
        """Start the JVM. `spark`: use this session instead, of a JVM that the caller stops."""
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # translate() reports the same
        self._limits, self._jobs, self._is_own = limits, "", spark is None
        self._lake = Lake(conf, spark)
        self._spark = self._lake.spark

    def __enter__(self) -> "SparkEngine":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            self._spark.stop()

    def ask(self, question: Question) -> Answer:
        """Rows of a query, at most `Limits.rows` within `Limits.seconds`."""
        snapshot = snapshot_for(self._lake.conf.lake, question.query, question.snapshot_id, question.at)
        with self._time_limit():
            try:
                self._refuse_commands(question.query)
                rows = self._lake.sql(question.query, snapshot.snapshot_id if snapshot else None)
                answer = rows.limit(self._limits.rows + 1).toArrow()
            except (PySparkException, Py4JError) as error:
                raise translate(error, question.query) from error
        return Answer(answer.slice(0, self._limits.rows), snapshot, answer.num_rows > self._limits.rows)

    def cancel(self) -> None:
        """Cancel the running query, even before its first job."""
        self._spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(self._jobs)

    def _refuse_commands(self, query: str) -> None:
        """RefusedError unless Spark's parser takes the text for one query: between the brackets of a CTE stands nothing else."""
        parser = self._spark._jsparkSession.sessionState().sqlParser()
        parser.parsePlan(query)
        try:
            parser.parsePlan(f"with asked as (\n{query.rstrip().rstrip(';')}\n) select 1")
        except ParseException:
            raise RefusedError("this is no query, or more than one: write a single one, such as `select ..`.") from None

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Spark jobs in this context are cancelled at the time limit."""
        self._jobs = uuid.uuid4().hex  # of its own for each query: no later job of a group that was cancelled runs
        self._spark.sparkContext.setJobGroup(self._jobs, "", interruptOnCancel=True)
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


def translate(error: Exception, query: str) -> TidemarkError:
    """Spark's error as a sentence without a trace: a RefusedError if the query is wrong, a TidemarkError if the engine failed."""
    text = str(error).strip()
    condition = CONDITION.search(text)
    if condition is None:
        return TidemarkError(_cause(text))
    # An error in a task comes inside the trace of the task; the message begins at the condition.
    message = INTERNAL_ADVICE.sub("", text[condition.end() :].split("\n\n")[0].split("\n==")[0].split("\n\tat ")[0]).strip()
    match = PLACE.search(text)
    start = None if match is None else _start(query, int(match[1]), int(match[3]) - (match[2] is not None))
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
