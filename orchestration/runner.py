"""Runs flows: `run_once` brings every table up to date and ends, `run_continuously` goes on until it is told to stop."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from orchestration import idle, ledger
from orchestration.checkpoints import bind
from orchestration.flows import Flow, Job, streams
from orchestration.intake import Look, claim_settled, claims_folder
from orchestration.lake import Lake
from orchestration.progress import Progress
from orchestration.reading import TICKS
from orchestration.registry import sync
from orchestration.tables import ensure, ensure_rows, tables
from orchestration.work import Work

POLL_SECONDS = 0.2


class StoppedError(Exception):
    """Raised inside a micro-batch before it has done anything, because the run is to end."""


def run_once(lake: Lake, chosen: Sequence[Flow | Job], progress: Progress, stop: threading.Event) -> None:
    """Stage by stage, until nothing waits. Micro-batches bound the memory, however much waits."""
    _prepare(lake, chosen)
    if any(each.layer == "bronze" for each in chosen):
        _claim_patiently(lake, progress)
    for stage in sorted({each.stage for each in chosen}):
        _run_to_end(lake, [each for each in chosen if each.stage == stage], progress, stop)
    _run_to_end(lake, [flow for flow in _flows(chosen) if flow.layer == "gold" and _tick(lake, flow)], progress, stop)


def run_continuously(lake: Lake, chosen: Sequence[Flow | Job], progress: Progress, stop: threading.Event) -> None:
    """All flows at once, and jobs behind them. After `stop` each ends with the batch that it is in."""
    _prepare(lake, chosen)
    takes_in = any(each.layer == "bronze" for each in chosen)
    trigger = {"processingTime": f"{lake.conf.engine.trigger_seconds} seconds"}
    queries = {flow: _start(lake, flow, stop, trigger) for flow in _flows(chosen)}
    works = {job: Work(job, progress, stop) for job in _jobs(chosen)}
    next_look = 0.0
    while not stop.wait(POLL_SECONDS):
        for flow, query in queries.items():
            progress.update(flow.name, query)
            _raise_if_broken(flow, query, stop)
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + lake.conf.engine.trigger_seconds
            if takes_in:
                _claim(lake, progress)
            for flow in queries:
                if flow.layer == "gold" and progress.idle_seconds(flow.name) > _patience(lake, flow):
                    _tick(lake, flow)
            for job, work in works.items():
                if not work.is_active:
                    work.finish()
                    works[job] = Work(job, progress, stop)
    _finish(queries, works.values(), progress, stop)


def _flows(chosen: Iterable[Flow | Job]) -> list[Flow]:
    return [each for each in chosen if isinstance(each, Flow)]


def _jobs(chosen: Iterable[Flow | Job]) -> list[Job]:
    return [each for each in chosen if isinstance(each, Job)]


def _prepare(lake: Lake, chosen: Sequence[Flow | Job]) -> None:
    """Registry, folders, tables and checkpoints, before the first query starts."""
    sync(lake.conf.lake, lake.conf.devices, datetime.now(UTC))
    ensure_rows(lake.table_path(TICKS), idle.SCHEMA)
    ensure_rows(lake.table_path(ledger.TABLE), ledger.SCHEMA)
    for table in tables(lake.conf).values():
        ensure(lake.spark, table)
    for flow in _flows(chosen):
        bind(lake, flow.name, flow.tables)
    for source in lake.conf.sources.values():
        claims_folder(lake.conf.lake, source.name).mkdir(parents=True, exist_ok=True)


def _run_to_end(lake: Lake, of_stage: Sequence[Flow | Job], progress: Progress, stop: threading.Event) -> None:
    if stop.is_set():
        return
    queries = {flow: _start(lake, flow, stop, {"availableNow": True}) for flow in _flows(of_stage)}
    works = [Work(job, progress, stop) for job in _jobs(of_stage)]
    while any(query.isActive for query in queries.values()):
        time.sleep(POLL_SECONDS)
        for flow, query in queries.items():
            progress.update(flow.name, query)
            _raise_if_broken(flow, query, stop)
    _finish(queries, works, progress, stop)


def _start(lake: Lake, flow: Flow, stop: threading.Event, trigger: dict[str, Any]) -> StreamingQuery:
    # A batch without data only moves the watermark: gold needs it to close windows, silver would only clear state earlier.
    lake.spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", flow.layer == "gold")
    writer = flow.rows().writeStream.queryName(flow.name).foreachBatch(_gated(flow.write, stop))
    return writer.option("checkpointLocation", str(lake.checkpoint(flow.name))).trigger(**trigger).start()


def _gated(write: Callable[[DataFrame, int], None], stop: threading.Event) -> Callable[[DataFrame, int], None]:
    """A batch that has begun is finished; after `stop` none begins."""

    def write_unless_stopped(batch: DataFrame, batch_id: int) -> None:
        if stop.is_set():
            raise StoppedError
        write(batch, batch_id)

    return write_unless_stopped


def _finish(queries: Mapping[Flow, StreamingQuery], works: Iterable[Work], progress: Progress, stop: threading.Event) -> None:
    """Wait for the current batches, stop what is between two, and pass on what went wrong."""
    while any(query.isActive for query in queries.values()):
        for query in queries.values():
            if query.isActive and not query.status["isTriggerActive"]:
                query.stop()
        time.sleep(POLL_SECONDS)
    for work in works:
        work.finish()
    for flow, query in queries.items():
        progress.update(flow.name, query)
        progress.ended(flow.name)
        _raise_if_broken(flow, query, stop)


def _raise_if_broken(flow: Flow, query: StreamingQuery, stop: threading.Event) -> None:
    broken: StreamingQueryException | None = query.exception()
    if broken is not None and not (stop.is_set() and StoppedError.__name__ in str(broken)):
        raise broken


def _claim(lake: Lake, progress: Progress) -> list[Look]:
    looks = [claim_settled(source, lake.conf.lake, time.time()) for source in lake.conf.sources.values()]
    for look in looks:
        progress.looked(look)
    return looks


def _claim_patiently(lake: Lake, progress: Progress) -> None:
    """Give files that were written a moment ago the time to settle, once."""
    if any(look.unsettled for look in _claim(lake, progress)):
        time.sleep(max(source.settle_seconds for source in lake.conf.sources.values()))
        progress.left_out([file for look in _claim(lake, progress) for file in look.unsettled])


def _tick(lake: Lake, flow: Flow) -> bool:
    stream = flow.name.removeprefix("gold.")
    return idle.tick_if_idle(lake, stream, streams(lake)[stream], datetime.now(UTC))


def _patience(lake: Lake, flow: Flow) -> float:
    of_stream = streams(lake)[flow.name.removeprefix("gold.")]
    return min((group.idle_close_seconds for group in of_stream if group.idle_close_seconds is not None), default=float("inf"))
