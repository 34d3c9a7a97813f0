"""One run of the pipeline: each step of it, for the flows and jobs that were chosen."""

import math
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from orchestration.connectors.sources.intake import ScanResult, claim_settled
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import AVAILABLE_NOW, Queries, WriteBarrier, prepare_query, run_to_end, start_queries
from orchestration.flow import Flow, Job
from orchestration.flows import streams
from orchestration.jobs import amendments, idle_groups, maintenance, retry
from orchestration.jobs.snapshots import take_snapshot
from orchestration.quality import suites
from orchestration.storage.bindings import bind
from orchestration.storage.delta import version_of
from orchestration.storage.gate_state import count_releases
from orchestration.storage.ops_tables import LEDGER, TICKS
from orchestration.storage.registry import sync
from orchestration.storage.retired_sources import claims_folder, former, payload_formats, remember
from orchestration.storage.sealing import WITHOUT_SPARK, Sealing, refuse_damage, refuse_older_tables
from orchestration.storage.tables import ensure, ensure_rows
from orchestration.supervisor import schedules
from orchestration.supervisor.quality_gate import QualityGate

PAUSE_SECONDS, LONGEST_WAIT_SECONDS = 10.0, 60.0


class PipelineRun:
    """What one run does, flow by flow and job by job; only those that were chosen."""

    def __init__(self, lake: Lake, chosen: Sequence[Flow | Job], progress: Progress, stop: threading.Event) -> None:
        """Nothing happens yet."""
        self._lake, self._progress = lake, progress
        self.barrier = WriteBarrier(stop)
        self._flows = [flow for flow in chosen if isinstance(flow, Flow)]
        self.flows = {layer: [flow for flow in self._flows if flow.layer == layer] for layer in ("bronze", "silver", "gold")}
        self._jobs = {job.name: job for job in chosen if isinstance(job, Job)}
        self.handover = QualityGate(lake, stop, progress.warned)
        self._seen_by_gold: tuple[int, ...] = ()
        self._settled: tuple[int, ...] = ()
        self._paused_until = 0.0
        self._claimed_at = -math.inf
        self._maintenance_at: datetime | None = None
        self._check_at: datetime | None = None

    def prepare(self) -> None:
        """Registry, folders, tables and checkpoints, before the first query starts."""
        lake, names = self._lake, [flow.name for flow in self._flows]
        refuse_damage(lake, names)
        self._maintenance_at = maintenance.next_at(lake, datetime.now(UTC))
        self._check_at = schedules.next_at(lake, suites.suites(lake.conf))
        remember(lake.conf)
        sync(lake.conf.lake, lake.conf.devices, datetime.now(UTC))
        for name, schema in WITHOUT_SPARK.items():
            ensure_rows(lake.table_path(name), schema)
        for table in lake.tables.values():
            ensure(table)
        for flow in self._flows:
            bind(lake, flow.name, flow.tables)
        for flow in self.flows["gold"]:
            stream = flow.name.removeprefix("gold.")
            amendments.refuse_older(lake, stream, streams(lake)[stream])
        refuse_older_tables(lake)
        self._sealing = Sealing(lake, names)
        for source in payload_formats(lake.conf):
            claims_folder(lake.conf.lake, source).local.mkdir(parents=True, exist_ok=True)
        retry.finish(lake)

    def claim(self, queries: Queries) -> None:
        """New files, when silver has begun with those before: a batch of bronze is one of silver, so where silver is slow, they grow.

        After LONGEST_WAIT_SECONDS whatever silver does: until it is claimed, a file is lost if somebody cleans the landing folder.
        """
        waited = (now := time.monotonic()) - self._claimed_at
        is_time = waited >= self._lake.conf.engine.trigger_seconds
        if self.flows["bronze"] and is_time and (waited >= LONGEST_WAIT_SECONDS or not self.barrier.is_ahead(queries)):
            self._claimed_at = now
            _claim(self._lake, self._progress)

    def take_in(self) -> None:
        """Bronze, then silver, each to the end of what waits; while one runs, the next is analyzed, which takes as long from cold."""
        running: Queries = {}
        for flow in (*self.flows["bronze"], *self.flows["silver"]):
            try:
                query = prepare_query(self._lake, flow, AVAILABLE_NOW, self.barrier)
            finally:
                run_to_end(running, self._progress, self.barrier)
                self.seal()
            running = {} if self.barrier.stop.is_set() else {flow: query.start()}
        run_to_end(running, self._progress, self.barrier)
        self.seal()

    def seal(self) -> None:
        """What was finished since the last time."""
        self._sealing.go_on()

    def account(self) -> None:
        """The ledger, as far as silver has come."""
        self._do("silver.ledger")

    def gold_cycle(self) -> None:
        """Gold, as far as silver has come, if it has moved; then the ledger, at least as far; what is late; the snapshot.

        Then it rests for as long as it took, up to PAUSE_SECONDS: bronze and silver must get their share of a small machine.
        """
        if (begin := time.monotonic()) < self._paused_until:
            return
        self.close_idle_windows(patient=True)
        if (moved := (count_releases(self._lake.conf.lake), *self._versions("silver.readings", TICKS))) != self._seen_by_gold:
            self.close_windows()
            self._seen_by_gold = moved
        self.account()
        if (known := (*moved, *self._versions(LEDGER))) != self._settled:
            self.settle()
            self._settled = known
        now = time.monotonic()
        self._paused_until = now + min(now - begin, PAUSE_SECONDS)

    def close_windows(self) -> None:
        """Gold of all streams, up to the same bronze batch; where the gate holds, not before all of that has passed it."""
        if self.barrier.stop.is_set() or not self._is_handed_over():  # silver goes on while most of it is looked at
            return
        with self.barrier.hold("silver.readings"):
            if not self._is_handed_over():  # what came meanwhile is little
                return
            queries = start_queries(self._lake, self.flows["gold"], AVAILABLE_NOW, self.barrier)
            self.barrier.await_begin(queries)
        run_to_end(queries, self._progress, self.barrier)

    def close_idle_windows(self, *, patient: bool) -> bool:
        """Tick streams whose readings stopped coming; True if one was. `patient`: look at a stream only when nothing came for as long."""
        ticked = False
        for flow in self.flows["gold"] if self._is_handed_over() else ():  # how late it is, would be asked of what is held back
            stream = flow.name.removeprefix("gold.")
            groups = streams(self._lake)[stream]
            if not patient or self._progress.idle_seconds(flow.name) > idle_groups.patience_seconds(groups):
                ticked |= idle_groups.tick_if_idle(self._lake, stream, groups, datetime.now(UTC))
        return ticked

    def settle(self) -> None:
        """Amendments, then the snapshot."""
        if amendments.NAME in self._jobs:
            self.handover.let_late_through()
        self._do(amendments.NAME)
        self._pin()
        self.handover.warn()

    def _versions(self, *names: str) -> list[int]:
        return [version_of(self._lake.table_path(name)) for name in names]

    def _is_handed_over(self) -> bool:
        return not self.flows["gold"] or self.handover.is_open()

    def is_maintenance_due(self) -> bool:
        """Whether it is time, by the conf."""
        return self._maintenance_at is not None and datetime.now(UTC) >= self._maintenance_at

    def maintain(self) -> None:
        """Then pin the snapshot again, so that queries read the large files. After `stop` it ends between two tables."""
        now = datetime.now(UTC)
        for done in maintenance.maintain(self._lake, now, self.barrier.hold):
            self._progress.maintained(done)
            if self.barrier.stop.is_set():
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
            looked = schedules.run_due(self._lake, suites.suites(self._lake.conf), datetime.now(UTC), lambda _: None)
            for line in failures(looked) if looked else ():
                self._progress.warned(line)
            self._check_at = schedules.next_at(self._lake, suites.suites(self._lake.conf))
        except Exception as error:
            self._progress.warned(f"the tables could not be checked, and are not until the next start: {error}")
            self._check_at = None

    def _pin(self) -> None:
        if not self.barrier.stop.is_set():
            take_snapshot(self._lake, [*streams(self._lake)], datetime.now(UTC))

    def _do(self, name: str) -> None:
        if name in self._jobs and not self.barrier.stop.is_set():
            self._progress.follow(name, self._jobs[name].run(), self.barrier.stop)


def _claim(lake: Lake, progress: Progress) -> list[ScanResult]:
    known_before = former(lake.conf)
    scans = [claim_settled(source, lake.conf.lake, time.time(), known_before) for source in lake.conf.sources.values()]
    for scan in scans:
        progress.scanned(scan)
    return scans


def claim_patiently(lake: Lake, progress: Progress) -> None:
    """Give files that were written a moment ago the time to settle, once."""
    if any(scan.still_growing for scan in _claim(lake, progress)):
        time.sleep(max(source.settle_seconds for source in lake.conf.sources.values()))
        progress.left_out([file for scan in _claim(lake, progress) for file in scan.still_growing])
