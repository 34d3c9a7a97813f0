"""Worker processes: the kernel takes them first, and all together take no more than half of the memory of the machine."""

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from orchestration.serving.sql import workers as working
from orchestration.serving.sql.answer import Limits, Question, RefusedError
from orchestration.serving.sql.encoding import JSON
from orchestration.serving.sql.workers import Workers
from tests.lakes import conf

HEAVY = "select count(*) from (select list(range || repeat('x', 100)) as l from range(3000000)) where len(l) > 1"


def oom_scores(of_process: psutil.Process) -> set[int]:
    return {int(Path(f"/proc/{child.pid}/oom_score_adj").read_text()) for child in of_process.children(recursive=True)}


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="only Linux has it")
def test_the_kernel_ends_a_query_before_anything_else(tmp_path: Path) -> None:
    workers = Workers(conf(tmp_path), Limits(seconds=60), 2)
    try:
        asyncio.run(workers.answer(Question("select 1"), JSON, "n"))
        assert 1000 in oom_scores(psutil.Process())
        assert int(Path(f"/proc/{os.getpid()}/oom_score_adj").read_text()) < 1000
    finally:
        workers.close()


def test_all_queries_together_are_bounded_by_the_memory_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(memory: int) -> bytes:
        monkeypatch.setattr(working, "machine_memory", lambda: memory)
        workers = Workers(conf(tmp_path), Limits(seconds=60), 4)
        try:
            return (await workers.answer(Question(HEAVY), JSON, "n")).body
        finally:
            workers.close()

    with pytest.raises(RefusedError, match="needs more memory than a query may use"):
        asyncio.run(ask(1024**3))
    assert b'"rows": [[1]]' in asyncio.run(ask(64 * 1024**3))
