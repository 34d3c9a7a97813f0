"""Compute silver from a prefix of bronze, and write it as Parquet: `accepted` (readings) and `rejected` (quarantine).

Runs the SilverEvaluator on chunks of events, so that memory is bounded; in several processes where there are many events. No Spark.
"""

import gc
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.audit.verify.silver_evaluator import Registered, SilverEvaluator
from orchestration.conf.model import Conf

CHUNK_ROWS = 50_000
WORTH_PROCESSES = 2 * CHUNK_ROWS
"""With fewer events one process is faster, as starting another takes longer than it saves."""
MOST_PROCESSES = 4
WAITING_PER_PROCESS = 2
KINDS = ("accepted", "rejected")

ReportDone = Callable[[int], None]


_evaluator: list[SilverEvaluator] = []
"""The evaluator of this worker process; empty in the process that started it."""


def _begin(conf: Conf, registry: Registered) -> None:
    gc.disable()  # nothing here is cyclic, and looking for cycles among millions of rows is a fifth of the time
    _evaluator[:] = [SilverEvaluator.of(conf, registry)]


def _work(chunk: pa.Table, folder: Path, number: int) -> int:
    return write(_evaluator[0], chunk, folder, number)


def evaluate_into(folder: Path, chunks: Iterable[pa.Table], events: int, registry: Registered, conf: Conf, report: ReportDone) -> None:  # noqa: PLR0917
    """Write Parquet files into `folder`/accepted and `folder`/rejected; `report` is called with the number of events done so far."""
    for kind in KINDS:
        (folder / kind).mkdir()
    processes = min(MOST_PROCESSES, os.cpu_count() or 1)
    done = 0
    if events < WORTH_PROCESSES or processes == 1:
        evaluator = SilverEvaluator.of(conf, registry)
        for number, chunk in enumerate(chunks):
            done += write(evaluator, chunk, folder, number)
            report(done)
        return
    # Not forked: threads of DuckDB and of the Delta reader would be missing in the copy.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawned, _begin, (conf, registry)) as pool:
        waiting: deque[Future[int]] = deque()
        for number, chunk in enumerate(chunks):
            waiting.append(pool.submit(_work, chunk, folder, number))
            if len(waiting) >= WAITING_PER_PROCESS * processes:
                done += waiting.popleft().result()
                report(done)
        for future in waiting:
            done += future.result()
            report(done)


def write(evaluator: SilverEvaluator, chunk: pa.Table, folder: Path, number: int) -> int:
    """Evaluate one chunk and write its rows; return how many events it had."""
    for kind, rows in zip(KINDS, evaluator.evaluate(chunk), strict=True):
        if rows.num_rows:
            pq.write_table(rows, folder / kind / f"{number:06d}.parquet")
    return int(chunk.num_rows)
