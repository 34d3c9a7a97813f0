"""Queries of views, over the newest snapshot, as `tidemark sql` answers them: each in a process, within limits."""

import asyncio
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from starlette.datastructures import QueryParams
from starlette.requests import Request

from orchestration.conf.model import Conf
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.completion import SnapshotTables
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.serving.sql.encoding import ARROW, Encoded
from orchestration.serving.sql.session import Session
from orchestration.serving.sql.workers import LostError, Workers
from orchestration.storage.delta import python_rows

LIMITS = Limits(seconds=30.0, rows=100_000, result_bytes=32 * 1024 * 1024)
OF_VIEWS, OF_EDITOR = 3, 2
"""Queries at once. Views and the editor do not wait for each other."""
POLL_SECONDS = 0.25


class Queries:
    """Belongs to the event loop in which it is started. `rows` is for the threads that read views."""

    def __init__(self, conf: Conf) -> None:
        self._place = conf.place
        self._session = Session(DuckDbEngine(self._place, LIMITS), self._place)

    def tables(self) -> SnapshotTables:
        """Return the tables of the newest snapshot, for completion."""
        return self._session.tables()

    def start(self) -> None:
        """A process too, which takes its time: whoever asks waits for it, and others do not."""
        self._loop = asyncio.get_running_loop()
        self._of_views, self._of_editor = asyncio.Semaphore(OF_VIEWS), asyncio.Semaphore(OF_EDITOR)
        self._workers = self._loop.run_in_executor(None, Workers, self._place, LIMITS, OF_VIEWS + OF_EDITOR)

    async def close(self) -> None:
        (await self._workers).close()

    def rows(self, query: str, snapshot_id: int | None = None, beside: str = "") -> list[dict[str, Any]]:
        """Run a query of a view; TidemarkError if it cannot be answered. The other parameters are those of a Question."""
        answer = self._ask(Question(query, snapshot_id, beside=beside))
        return python_rows(table_of(asyncio.run_coroutine_threadsafe(answer, self._loop).result()))

    async def answer(self, request: Request, question: Question, accept: str) -> Encoded:
        """To who has sent the request; a client that goes ends its query."""
        async with self._of_editor:
            if await request.is_disconnected():
                raise RefusedError("the client has disconnected.")
            return await _unless_gone(await self._workers, request, question, accept)

    async def _ask(self, question: Question) -> Encoded:
        async with self._of_views:
            workers = await self._workers
            try:
                return await workers.answer(question, ARROW, uuid.uuid4().hex)
            except LostError:  # for what it cannot help: another one is asked
                return await workers.answer(question, ARROW, uuid.uuid4().hex)


async def _unless_gone(workers: Workers, request: Request, question: Question, accept: str) -> Encoded:
    """The answer; the query is cancelled if its client disconnects."""
    name = uuid.uuid4().hex
    answer = asyncio.ensure_future(workers.answer(question, accept, name))
    while not answer.done():
        await asyncio.wait([answer], timeout=POLL_SECONDS)
        if not answer.done() and await request.is_disconnected():
            workers.cancel(name)
    return await answer


@dataclass(frozen=True)
class ViewRequest:
    """`params`: of its address. `snapshot_id`: that of its queries, None for the newest. `tables`: names of all that they read."""

    conf: Conf
    now: datetime
    params: QueryParams
    queries: Queries
    snapshot_id: int | None = None
    tables: str = ""

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.queries.rows(query, self.snapshot_id, self.tables)


def table_of(answer: Encoded) -> pa.Table:
    """Read the table of an answer that is an Arrow stream."""
    return pa.ipc.open_stream(answer.body).read_all()
