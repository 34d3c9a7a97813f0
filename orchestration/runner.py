"""Runs flows: `run_once` brings every table up to date and ends, `run_continuously` goes on until it is told to stop."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from orchestration.checkpoints import bind
from orchestration.flows import Flow, streams
from orchestration.idle import ensure_ticks, tick_if_idle
from orchestration.intake import Look, claim_settled, claims_folder
from orchestration.lake import Lake
from orchestration.progress import Progress
from orchestration.reading import TICKS
from orchestration.registry import sync
from orchestration.tables import ensure, tables

POLL_SECONDS = 0.2


class StoppedError(Exception):
    """Raised inside a micro-batch before it has done anything, because the run is to end."""


def run_once(lake: Lake, chosen: Sequence[Flow], progress: Progress, stop: threading.Event) -> None:
    """Stage by stage, until nothing waits. Micro-batches bound the memory, however much waits."""
    _prepare(lake, chosen)
    if any(flow.layer == "bronze" for flow in chosen):
        _claim_patiently(lake, progress)
    for stage in sorted({flow.stage for flow in chosen}):
        _run_to_end(lake, [flow for flow in chosen if flow.stage == stage], progress, stop)
    idle = [flow for flow in chosen if flow.layer == "gold" and not stop.is_set() and _tick(lake, flow)]
    _run_to_end(lake, idle, progress, stop)


def run_continuously(lake: Lake, chosen: Sequence[Flow], progress: Progress, stop: threading.Event) -> None:
    """All flows at once. After `stop` each ends with the batch that it is in."""
    _prepare(lake, chosen)
    takes_in = any(flow.layer == "bronze" for flow in chosen)
    if takes_in:
        _claim(lake, progress)
    trigger = {"processingTime": f"{lake.conf.engine.trigger_seconds} seconds"}
    queries = [_start(lake, flow, stop, trigger) for flow in chosen]
    next_look = time.monotonic() + lake.conf.engine.trigger_seconds
    while not stop.wait(POLL_SECONDS):
        for flow, query in zip(chosen, queries, strict=True):
            progress.update(flow.name, query)
            _raise_if_broken(flow, query, stop)
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + lake.conf.engine.trigger_seconds
            if takes_in:
                _claim(lake, progress)
            for flow in chosen:
                if flow.layer == "gold" and progress.idle_seconds(flow.name) > _patience(lake, flow):
                    _tick(lake, flow)
    _finish(chosen, queries, progress, stop)


def _prepare(lake: Lake, chosen: Sequence[Flow]) -> None:
    """Registry, folders, tables and checkpoints, before the first query starts."""
    sync(lake.conf.lake, lake.conf.devices, datetime.now(UTC))
    ensure_ticks(lake.table_path(TICKS))
    for table in tables(lake.conf).values():
        ensure(lake.spark, table)
    for flow in chosen:
        bind(lake, flow.name, flow.tables)
    for source in lake.conf.sources.values():
        claims_folder(lake.conf.lake, source.name).mkdir(parents=True, exist_ok=True)


def _run_to_end(lake: Lake, of_stage: Sequence[Flow], progress: Progress, stop: threading.Event) -> None:
    if stop.is_set() or not of_stage:
        return
    queries = [_start(lake, flow, stop, {"availableNow": True}) for flow in of_stage]
    while any(query.isActive for query in queries):
        time.sleep(POLL_SECONDS)
        for flow, query in zip(of_stage, queries, strict=True):
            progress.update(flow.name, query)
            _raise_if_broken(flow, query, stop)
    _finish(of_stage, queries, progress, stop)


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


def _finish(of_run: Sequence[Flow], queries: Sequence[StreamingQuery], progress: Progress, stop: threading.Event) -> None:
    """Wait for the current batches, stop what is between two, and pass on what went wrong."""
    while any(query.isActive for query in queries):
        for query in queries:
            if query.isActive and not query.status["isTriggerActive"]:
                query.stop()
        time.sleep(POLL_SECONDS)
    for flow, query in zip(of_run, queries, strict=True):
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
    return tick_if_idle(lake, stream, streams(lake)[stream], datetime.now(UTC))


def _patience(lake: Lake, flow: Flow) -> float:
    of_stream = streams(lake)[flow.name.removeprefix("gold.")]
    return min((group.idle_close_seconds for group in of_stream if group.idle_close_seconds is not None), default=float("inf"))
