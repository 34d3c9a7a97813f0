"""Processes that answer queries of the live page, each one at a time: a crash or an endless query ends its process, and that query only."""

import asyncio
import multiprocessing
import os
import signal
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

from orchestration.engine.java import machine_memory
from orchestration.errors import TidemarkError
from orchestration.serving.sql import landlock
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.serving.sql.encoding import Encoded, encoded
from orchestration.storage.views import Plant

TAKEN_FIRST = "1000"
"""The kernel's word for the process that it ends first where memory is short: a query is asked again, a run would end with its batch."""
GRACE_SECONDS = 2.0
"""How long DuckDB may take to end a query whose time is over; then its process is killed."""
PRELOADED = ["__main__", __name__, "orchestration.conf.place", "pyarrow.compute"]
CANCELLED = "the query was cancelled."
LOST = "the process of the query has ended, as it does where memory is short: ask again, or for less at once."


def warm_up() -> None:
    """Begin what Workers begin with and wait for: a process that imports what they all need."""
    _context()
    forkserver.ensure_running()


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # so that another one is there in a few milliseconds
    return context


class Workers:
    """Worker processes, as many as there are queries at once. They belong to one event loop; close them.

    All queries together may take half of the memory of this machine. Where it is short all the same, the kernel ends one of them first.
    """

    def __init__(self, plant: Plant, limits: Limits, count: int) -> None:
        """Starts two that wait; the others start when they are needed."""
        self._plant, self._limits = plant, replace(limits, memory_bytes=min(limits.memory_bytes, machine_memory() // 2 // count))
        self._context = _context()
        self._threads = ThreadPoolExecutor(count)
        self._idle = [_Worker(self._context, plant, self._limits) for _ in range(min(count, 2))]
        self._busy: dict[str, _Worker] = {}

    async def answer(self, question: Question, accept: str, name: str) -> Encoded:
        """The answer; TidemarkError if there is none. At most as many at once as there may be workers."""
        while True:
            living = [worker for worker in self._idle if worker.is_alive()]
            is_new = not living
            worker = _Worker(self._context, self._plant, self._limits) if is_new else living.pop()
            self._idle, self._busy[name] = living, worker
            try:
                return await asyncio.get_running_loop().run_in_executor(self._threads, worker.answer, question, accept, name)
            except _GoneError:
                if is_new:
                    raise TidemarkError("the server could not start a process for the query; its log says why.") from None
            finally:
                del self._busy[name]
                if not worker.ended_by:
                    self._idle.append(worker)

    def cancel(self, name: str) -> None:
        """End the query of that name, with its process; nothing if it does not run."""
        if name in self._busy:
            self._busy[name].end(CANCELLED)

    def close(self) -> None:
        for worker in (*self._idle, *self._busy.values()):
            worker.end(CANCELLED)
        self._threads.shutdown()


class LostError(RefusedError):
    """A process ended that had the query, and nobody has ended it."""


class _GoneError(Exception):
    """A process ended before it had the query, so that another one can answer it."""


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self, context: ForkServerContext, plant: Plant, limits: Limits) -> None:
        self._pipe, inner = context.Pipe()
        self._patience = limits.seconds + GRACE_SECONDS
        self._process = context.Process(target=_work, args=(plant, limits, inner), daemon=True)
        self._process.start()
        inner.close()
        self.ended_by = ""

    def is_alive(self) -> bool:
        """Say whether an idle worker lives. It sends nothing unasked, so anything to read means that it has ended."""
        return not self._pipe.poll()

    def answer(self, question: Question, accept: str, name: str) -> Encoded:
        """Waits for it, in a thread."""
        has_query = False
        try:
            self._pipe.send((question, accept, name))
            has_query = bool(self._received())
            reply = self._received()
        except (EOFError, OSError):
            self._pipe.close()
            is_gone = not has_query and not self.ended_by
            is_lost, self.ended_by = not self.ended_by, self.ended_by or LOST
            raise _GoneError if is_gone else (LostError if is_lost else RefusedError)(self.ended_by) from None
        if isinstance(reply, TidemarkError):
            raise reply
        assert isinstance(reply, Encoded)
        return reply

    def _received(self) -> object:
        if not self._pipe.poll(self._patience):
            self.end(f"the query took longer than {self._patience - GRACE_SECONDS:g} s and was cancelled.")
        return self._pipe.recv()

    def end(self, why: str) -> None:
        self.ended_by = why
        self._process.kill()


def _work(plant: Plant, limits: Limits, pipe: Connection) -> None:
    """Answer questions from the pipe until the server ends, in a process that may not write any file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the server too, which then ends this process
    threading.Thread(target=_exit_with_server, daemon=True).start()
    with suppress(OSError):  # no Linux
        Path("/proc/self/oom_score_adj").write_text(TAKEN_FIRST)
    with suppress(EOFError):
        if landlock.is_supported():
            landlock.without_write_access(lambda: _answer_all(plant, limits, pipe))
        else:
            _answer_all(plant, limits, pipe)


def _answer_all(plant: Plant, limits: Limits, pipe: Connection) -> None:
    engine = DuckDbEngine(plant, limits)
    with suppress(TidemarkError):
        engine.ask(Question("select 1"))  # what is slow at its first use is used now
    while True:
        engine.prepare()
        asked = pipe.recv()
        pipe.send(True)  # the query is here: from now on it is the query that ends the process
        pipe.send(_reply(engine, *asked))


def _reply(engine: DuckDbEngine, question: Question, accept: str, name: str) -> Encoded | TidemarkError:
    try:
        answer = engine.ask(question)
        try:
            return encoded(answer, accept, name)
        except (ValueError, OverflowError, NotImplementedError) as error:
            return RefusedError(f"a value of the answer cannot be sent in this form ({error}); cast its column to varchar.")
    except TidemarkError as error:
        return type(error)(str(error))  # without its cause, which the pipe may not carry
    except Exception:
        traceback.print_exc()
        return TidemarkError("the query cannot be answered; the messages of the server say why.")


def _exit_with_server() -> None:
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
    os._exit(0)
