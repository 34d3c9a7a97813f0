"""Queries of views when their processes end. No browser, no Spark."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from orchestration.errors import TidemarkError
from orchestration.serving.sql.workers import LOST
from orchestration.web.queries import Queries
from tests.lakes import METRICS, bare_conf
from tests.waiting import until

LONG = "select count(*) as n from range(200000000) a(i) where hash(i) % 7 = 8"


async def asked(queries: Queries, kills: int) -> object:
    """The answer, or the sentence instead; the process that works on the query is killed so often."""
    queries.start()
    answer = asyncio.create_task(asyncio.to_thread(queries.rows, LONG))
    for _ in range(kills):
        await asyncio.to_thread(until, lambda: busy() != [])
        os.kill(busy()[0], signal.SIGKILL)
        await asyncio.to_thread(until, lambda: busy() == [] or answer.done())
    try:
        return await answer
    except TidemarkError as error:
        return str(error)
    finally:
        await queries.close()


def busy() -> list[int]:
    """Processes below this one, but not the one that forks them, that are in the middle of LONG: they have taken half a second of CPU."""
    return [of.pid for of in psutil.Process().children(recursive=True) if is_busy(of)]


def is_busy(process: psutil.Process) -> bool:
    """Not of one that has ended since the list was made."""
    try:
        works = process.status() != psutil.STATUS_ZOMBIE and "forkserver" in " ".join(process.cmdline())
        return works and not process.children() and float(process.cpu_times().user) > 0.5
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(("kills", "expected"), [(1, [{"n": 0}]), (2, LOST)])
def test_a_query_of_a_view_whose_process_is_killed_is_asked_once_more_and_then_told(tmp_path: Path, kills: int, expected: object) -> None:
    assert asyncio.run(asked(Queries(bare_conf(tmp_path, metrics=METRICS)), kills)) == expected
