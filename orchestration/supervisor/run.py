"""Runs flows and jobs: `run_once` brings every table up to date and ends, `run_continuously` goes on until it is told to stop.

Gold runs in rounds behind silver. The queries of a round start while silver is between two batches, so that all streams end at the same
bronze batch; then come the amendments, then the snapshot of the cut.
"""

import math
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable

from orchestration.connectors.sources.intake import Look, claim_settled, claims_folder
from orchestration.engine.background import Work, do
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import AVAILABLE_NOW, POLL_SECONDS, Gate, Queries, every, finish, prepared, report, run_out, started
from orchestration.engine.reading import TICKS
from orchestration.flows import Flow, Job, gold_amendments, quarantine_retry, streams
from orchestration.jobs import amendments, ledger, maintenance, retry
from orchestration.jobs import idle_groups as idle
from orchestration.jobs import snapshots as cuts
from orchestration.quality import suites
from orchestration.storage import generations
from orchestration.storage.bindings import bind
from orchestration.storage.guards import refuse_damage, refuse_older_tables
from orchestration.storage.registry import sync
from orchestration.storage.retired_sources import former, remember, shapes
from orchestration.storage.sealing import WITHOUT_SPARK, Sealing
from orchestration.storage.tables import ensure, ensure_rows
from orchestration.supervisor import schedules as schedule
from orchestration.supervisor.quality_gate import QualityGate

REST_SECONDS, LONGEST_WAIT_SECONDS = 10.0, 60.0


def run_once(lake: Lake, chosen: Sequence[Flow | Job], progress: Progress, stop: threading.Event) -> None:
    """Layer by layer, until nothing waits. Micro-batches bound the memory, however much waits. GateClosedError: gold waits."""
    run = Run(lake, chosen, progress, stop)
    run.prepare()
    if run.flows["bronze"]:
        _claim_patiently(lake, progress)
    run.take_in()
    account = Work(ledger.NAME, run.account)
    try:
        run.close_windows()
    finally:
        account.finish()
    if not stop.is_set() and run.close_idle_windows(patient=False):
        run.close_windows()
    run.settle()
    if run.is_maintenance_due() and not stop.is_set():
        run.maintain()
    run.seal()
    if run.is_check_due() and not stop.is_set():
        run.check()
    if run.flows["gold"]:
        run.handover.refuse_closed()


def run_continuously(lake: Lake, chosen: Sequence[Flow | Job], progress: Progress, stop: threading.Event) -> None:
    """Bronze and silver all the time, gold and the ledger behind them. After `stop` each ends with the batch that it is in.

    It also ends when another generation is proposed: whoever called lets it serve, and runs that.
    """
    leave = threading.Event()
    run = Run(lake, chosen, progress, leave)
    run.prepare()
    queries = started(lake, run.flows["bronze"], every(lake.conf.engine.trigger_seconds), run.gate)
    queries |= started(lake, run.flows["silver"], every(POLL_SECONDS), run.gate)  # it only asks a log whether bronze has a batch
    behind: dict[str, Work] = {}
    next_look = 0.0
    while not stop.wait(POLL_SECONDS) and generations.proposed(lake.conf.lake) is None:
        report(queries, progress, run.gate)
        run.claim(queries)
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + lake.conf.engine.trigger_seconds
            _go_on_behind(run, behind)
    leave.set()
    try:
        finish(queries, progress, run.gate)
    finally:
        for work in behind.values():
            work.finish()
        run.seal()


def retry_quarantine(lake: Lake, chosen: retry.Chosen, progress: Progress) -> list[dict[str, Any]]:
    """Re-admit what is good now, fold it into gold, and pin the cut; one row a source, retry.COLUMNS."""
    run = Run(lake, [gold_amendments(lake)], progress, threading.Event())
    run.prepare()
    here = retry.in_session(lake)
    with quarantine_retry(here, chosen) as verdict:
        if verdict.is_change:
            retry.carry_out(here, verdict)
    run.settle()
    return verdict.told


def _go_on_behind(run: "Run", behind: dict[str, Work]) -> None:
    """Rounds, each when the one before has ended; maintenance between two, as they write what it compacts. Suites, when due.

    After it comes a turn of theirs, also where it takes longer than the time from one to the next.
    """
    ended = [name for name, work in behind.items() if not work.is_active]
    for name in ended:
        behind.pop(name).finish()
    if run.is_check_due() and "quality" not in behind:
        behind["quality"] = Work("quality", run.check)
    if run.is_maintenance_due() and "maintenance" not in ended:
        if not behind.keys() - {"quality"}:
            behind["maintenance"] = Work("maintenance", run.maintain)
    elif "maintenance" not in behind:
        for name, todo in (("round", run.round), ("seals", run.seal)):
            if name not in behind:
                behind[name] = Work(name, todo)


class Run:
    """What one run does, flow by flow and job by job; only those that were chosen."""

    def __init__(self, lake: Lake, chosen: Sequence[Flow | Job], progress: Progress, stop: threading.Event) -> None:
        """Nothing happens yet."""
        self._lake, self._progress = lake, progress
        self.gate = Gate(stop)
        flows = [each for each in chosen if isinstance(each, Flow)]
        self.flows = {layer: [flow for flow in flows if flow.layer == layer] for layer in ("bronze", "silver", "gold")}
        self._jobs = {each.name: each for each in chosen if isinstance(each, Job)}
        self.handover = QualityGate(lake, stop, progress.warned)
        self._seen_by_gold: tuple[int, ...] = ()
        self._settled: tuple[int, ...] = ()
        self._rests_until = 0.0
        self._claimed_at = -math.inf
        self._maintenance_at: datetime | None = None
        self._check_at: datetime | None = None

    def prepare(self) -> None:
        """Registry, folders, tables and checkpoints, before the first query starts."""
        lake, names = self._lake, [flow.name for of_layer in self.flows.values() for flow in of_layer]
        refuse_damage(lake, names)
        self._maintenance_at = maintenance.next_at(lake, datetime.now(UTC))
        self._check_at = schedule.next_at(lake, suites.suites(lake.conf))
        remember(lake.conf)
        sync(lake.conf.lake, lake.conf.devices, datetime.now(UTC))
        for name, schema in WITHOUT_SPARK.items():
            ensure_rows(lake.table_path(name), schema)
        for table in lake.tables.values():
            ensure(table)
        for flow in (flow for of_layer in self.flows.values() for flow in of_layer):
            bind(lake, flow.name, flow.tables)
        for flow in self.flows["gold"]:
            stream = flow.name.removeprefix("gold.")
            amendments.refuse_older(lake, stream, streams(lake)[stream])
        refuse_older_tables(lake)
        self._sealing = Sealing(lake, names)
        for folder in (claims_folder(lake.conf.lake, source) for source in shapes(lake.conf)):
            folder.mkdir(parents=True, exist_ok=True)
        retry.finish(lake)

    def claim(self, queries: Queries) -> None:
        """New files, when silver has begun with those before: a batch of bronze is one of silver, so where silver is slow, they grow.

        After LONGEST_WAIT_SECONDS whatever silver does: until it is claimed, a file is lost if somebody cleans the landing folder.
        """
        waited = (now := time.monotonic()) - self._claimed_at
        is_time = waited >= self._lake.conf.engine.trigger_seconds
        if self.flows["bronze"] and is_time and (waited >= LONGEST_WAIT_SECONDS or not self.gate.is_ahead(queries)):
            self._claimed_at = now
            _claim(self._lake, self._progress)

    def take_in(self) -> None:
        """Bronze, then silver, each to the end of what waits; while one runs, the next is analyzed, which takes as long from cold."""
        running: Queries = {}
        for flow in (*self.flows["bronze"], *self.flows["silver"]):
            try:
                query = prepared(self._lake, flow, AVAILABLE_NOW, self.gate)
            finally:
                run_out(running, self._progress, self.gate)
                self.seal()
            running = {} if self.gate.stop.is_set() else {flow: query.start()}
        run_out(running, self._progress, self.gate)
        self.seal()

    def seal(self) -> None:
        """What was finished since the last time."""
        self._sealing.go_on()

    def account(self) -> None:
        """The ledger, as far as silver has come."""
        self._do("silver.ledger")

    def round(self) -> None:
        """Gold, as far as silver has come, if it has moved; then the ledger, at least as far; what is late; the snapshot.

        Then it rests for as long as it took, up to REST_SECONDS: bronze and silver must get their share of a small machine.
        """
        if (begin := time.monotonic()) < self._rests_until:
            return
        self.close_idle_windows(patient=True)
        if (moved := (self.handover.releases(), *self._versions("silver.readings", TICKS))) != self._seen_by_gold:
            self.close_windows()
            self._seen_by_gold = moved
        self.account()
        if (known := (*moved, *self._versions(ledger.TABLE))) != self._settled:
            self.settle()
            self._settled = known
        now = time.monotonic()
        self._rests_until = now + min(now - begin, REST_SECONDS)

    def close_windows(self) -> None:
        """Gold of all streams, up to the same bronze batch; where the gate holds, not before all of that has passed it."""
        if self.gate.stop.is_set() or not self._is_handed_over():  # silver goes on while most of it is looked at
            return
        with self.gate.hold("silver.readings"):
            if not self._is_handed_over():  # what came meanwhile is little
                return
            queries = started(self._lake, self.flows["gold"], AVAILABLE_NOW, self.gate)
            self.gate.await_begin(queries)
        run_out(queries, self._progress, self.gate)

    def close_idle_windows(self, *, patient: bool) -> bool:
        """Tick streams whose readings stopped coming; True if one was. `patient`: look at a stream only when nothing came for as long."""
        ticked = False
        for flow in self.flows["gold"] if self._is_handed_over() else ():  # how late it is, would be asked of what is held back
            stream = flow.name.removeprefix("gold.")
            groups = streams(self._lake)[stream]
            if not patient or self._progress.idle_seconds(flow.name) > idle.patience_seconds(groups):
                ticked |= idle.tick_if_idle(self._lake, stream, groups, datetime.now(UTC))
        return ticked

    def settle(self) -> None:
        """Amendments, then the snapshot."""
        if amendments.NAME in self._jobs:
            self.handover.let_late_through()
        self._do(amendments.NAME)
        self._pin()
        self.handover.warn()

    def _versions(self, *names: str) -> list[int]:
        return [DeltaTable(self._lake.table_path(name)).version() for name in names]

    def _is_handed_over(self) -> bool:
        return not self.flows["gold"] or self.handover.is_open()

    def is_maintenance_due(self) -> bool:
        """Whether it is time, by the conf."""
        return self._maintenance_at is not None and datetime.now(UTC) >= self._maintenance_at

    def maintain(self) -> None:
        """Then pin the cut again, so that queries read the large files. After `stop` it ends between two tables."""
        now = datetime.now(UTC)
        for done in maintenance.maintain(self._lake, now, self.gate.hold):
            self._progress.maintained(done)
            if self.gate.stop.is_set():
                return
        self._pin()
        self._maintenance_at = maintenance.next_at(self._lake, now)

    def is_check_due(self) -> bool:
        """Whether it is time to check a suite, by the conf."""
        return self._check_at is not None and datetime.now(UTC) >= self._check_at

    def check(self) -> None:
        """Suites that are due. Whatever goes wrong in a look, the streams go on: it is told."""
        from orchestration.quality.report import failures

        try:
            looked = schedule.run_due(self._lake, suites.suites(self._lake.conf), datetime.now(UTC), lambda _: None)
            for line in failures(looked) if looked else ():
                self._progress.warned(line)
            self._check_at = schedule.next_at(self._lake, suites.suites(self._lake.conf))
        except Exception as error:
            self._progress.warned(f"the tables could not be checked, and are not until the next start: {error}")
            self._check_at = None

    def _pin(self) -> None:
        if not self.gate.stop.is_set():
            cuts.take(self._lake, [*streams(self._lake)], datetime.now(UTC))

    def _do(self, name: str) -> None:
        if name in self._jobs and not self.gate.stop.is_set():
            do(self._jobs[name], self._progress, self.gate.stop)


def _claim(lake: Lake, progress: Progress) -> list[Look]:
    known_before = former(lake.conf)
    looks = [claim_settled(source, lake.conf.lake, time.time(), known_before) for source in lake.conf.sources.values()]
    for look in looks:
        progress.looked(look)
    return looks


def _claim_patiently(lake: Lake, progress: Progress) -> None:
    """Give files that were written a moment ago the time to settle, once."""
    if any(look.unsettled for look in _claim(lake, progress)):
        time.sleep(max(source.settle_seconds for source in lake.conf.sources.values()))
        progress.left_out([file for look in _claim(lake, progress) for file in look.unsettled])
