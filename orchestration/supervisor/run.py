"""Runs flows and jobs: `run_once` brings every table up to date and ends, `run_continuously` goes on until it is told to stop.

Gold runs in cycles behind silver. The queries of a cycle start while silver is between two batches, so that all streams end at the same
bronze batch; then come the amendments, then the snapshot.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import every, poll_seconds, report_batches, start_queries, stop_queries
from orchestration.flow import Flow, Intake, Job
from orchestration.flows import gold_amendments
from orchestration.jobs.account import retry
from orchestration.storage import generations
from orchestration.supervisor.pipeline_run import PipelineRun, retried_now
from orchestration.supervisor.service_state import beat
from orchestration.supervisor.summary import Summary, mark, summary

LEAVE_SECONDS = 20.0
"""For a sink, at the end of the process."""


def run_once(
    lake: Lake,
    chosen: Sequence[Intake | Flow | Job],
    progress: Progress,
    stop: threading.Event,
    tell: Callable[[Summary], None] | None = None,
) -> None:
    """Layer by layer, until nothing waits. Micro-batches bound the memory, however much waits. GateClosedError: gold waits.

    TidemarkError, behind everything else: a source, a channel or a sink is down, and has its part the next time. `tell` gets what became of
    the rows, also before these errors.
    """
    run = PipelineRun(lake, chosen, progress, stop)
    run.prepare()
    begin = mark(lake)
    run.take_in()
    with ThreadPoolExecutor(1) as thread:
        account = thread.submit(run.account)
        run.close_windows()
    account.result()
    run.look_at_devices()
    if not stop.is_set() and run.close_idle_windows(patient=False):
        run.close_windows()
    run.settle()
    if run.is_maintenance_due() and not stop.is_set():
        run.maintain()
    run.seal()
    if tell is not None:
        tell(summary(lake, begin, datetime.now(UTC), run.feeds.left_out if run.feeds else []))
    run.deliver_to_end()


def run_continuously(lake: Lake, chosen: Sequence[Intake | Flow | Job], progress: Progress, stop: threading.Event) -> None:
    """Run bronze and silver, gold and the ledger behind them, until `stop` or until a switch is requested, which the caller makes."""
    leave = threading.Event()
    run = PipelineRun(lake, chosen, progress, leave)
    _ = lake.spark  # by the main thread: see take_in
    run.prepare()
    poll = poll_seconds(lake.conf.lake)
    queries = start_queries(lake, run.flows["silver"], every(poll), run.barrier)  # it only asks a log whether bronze has a batch
    if run.feeds:
        run.feeds.start(is_followed=bool(queries))
    if run.flows["gold"]:
        for sender in run.senders:
            sender.start()
    behind: dict[str, Future[None]] = {}
    next_look, has_moved = 0.0, False
    try:
        while not stop.wait(poll) and generations.requested_switch(lake.conf.lake) is None:
            has_moved |= report_batches(queries, progress, run.barrier)
            if run.feeds:
                run.feeds.raise_if_broken()
            # A batch of silver waits for no look by the clock, only for the work that is under way: alerts judge it then.
            is_free = all(work.done() for work in behind.values())
            if time.monotonic() >= next_look or (has_moved and is_free):
                next_look, has_moved = time.monotonic() + lake.conf.engine.trigger_seconds, has_moved and not is_free
                beat(lake.conf.lake)
                _go_on_behind(run, behind)
    finally:
        leave.set()
        run.wake_senders()
    try:
        if run.feeds:
            run.feeds.join()
        stop_queries(queries, progress, run.barrier)
    finally:
        for work in behind.values():
            work.result()
        for sender in run.senders:
            sender.join(LEAVE_SECONDS if stop.is_set() else None)
        run.seal()


def retry_quarantine(lake: Lake, chosen: retry.Chosen, progress: Progress) -> list[dict[str, Any]]:
    """Re-admit what is good now, fold it into gold, and pin the cut; one row a source, retry.COLUMNS."""
    run = PipelineRun(lake, [gold_amendments(lake)], progress, threading.Event())
    run.prepare()
    summary = retried_now(lake, chosen)
    run.settle()
    return summary


def _go_on_behind(run: PipelineRun, behind: dict[str, Future[None]]) -> None:
    """Begin gold cycles, seals and references, each when the one before has ended; maintenance by turns, as they write what it compacts."""
    ended = [name for name, work in behind.items() if work.done()]
    for name in ended:
        behind.pop(name).result()
    todo: dict[str, Callable[[], None]] = {}
    if run.is_maintenance_due() and "maintenance" not in ended:
        todo = {} if behind else {"maintenance": run.maintain}
    elif "maintenance" not in behind:
        todo = {"gold": run.gold_cycle, "seals": run.seal, "references": run.look_at_references}
    for name, work in todo.items():
        if name not in behind:  # each in a new thread: the JVM keeps the session that was active in one
            behind[name] = ThreadPoolExecutor(1, name).submit(work)
