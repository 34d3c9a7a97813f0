"""One run of the pipeline: each step of it, for the flows and jobs that were chosen."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from orchestration.connectors.sources.births import ask_again
from orchestration.connectors.sources.source import Notice, SourceDownError
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import AVAILABLE_NOW, POLL_SECONDS, WriteBarrier, poll_seconds, prepare_query, run_to_end, start_queries
from orchestration.errors import TidemarkError
from orchestration.flow import Flow, Intake, Job
from orchestration.flows import quarantine_retry
from orchestration.jobs import device_looks, maintenance, missing_fields
from orchestration.jobs.account import retry
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold import amendments, flows, idle_groups
from orchestration.jobs.gold.exact_alerts import tick_if_due
from orchestration.jobs.gold.snapshots import take_snapshot
from orchestration.storage.bindings import bind
from orchestration.storage.checkpoints import last_batch, newest_batch
from orchestration.storage.commit import create, fence
from orchestration.storage.confs import held_back, refusal, take_up, unreplayed_changes
from orchestration.storage.delta import version_of
from orchestration.storage.gate_state import count_releases
from orchestration.storage.lane_record import FLOW
from orchestration.storage.lanes import begin_lanes
from orchestration.storage.ops_tables import LEDGER, LEDGER_FLOW, TICKS
from orchestration.storage.payload_formats import remember
from orchestration.storage.positions import ALERTS, FLOWS, accounted_for, passed_by_silver
from orchestration.storage.references import ReferenceTables
from orchestration.storage.registry import sync
from orchestration.storage.sealing import WITHOUT_SPARK, Sealing, refuse_damage, refuse_older_tables, sealed_tables
from orchestration.storage.source_offsets import refuse_earlier_version
from orchestration.storage.tables import ensure
from orchestration.supervisor import retry_requests
from orchestration.supervisor.feeds import Feeds
from orchestration.supervisor.quality_gate import QualityGate
from orchestration.supervisor.sinks import ChannelSender, SinkSender
from orchestration.supervisor.status import arrears_of

PAUSE_SECONDS, LOOK_SECONDS = 10.0, 5.0


class PipelineRun:
    """The work of one run, query by query and job by job; only those that were chosen."""

    def __init__(self, lake: Lake, chosen: Sequence[Intake | Flow | Job], progress: Progress, stop: threading.Event) -> None:
        self._lake, self._progress = lake, progress
        self.barrier = WriteBarrier(stop)
        self._flows = [flow for flow in chosen if isinstance(flow, Flow)]
        self.flows = {layer: [flow for flow in self._flows if flow.layer == layer] for layer in ("silver", "gold")}
        self._intake = next((intake for intake in chosen if isinstance(intake, Intake)), None)
        self.feeds: Feeds | None = None
        self._jobs = {job.name: job for job in chosen if isinstance(job, Job)}
        self.quality_gate = QualityGate(lake, stop, progress.warned)
        self.senders = (ChannelSender(lake.conf, progress, stop), SinkSender(lake.conf, progress, stop))
        self._references = ReferenceTables(lake.conf)
        self._seen_by_gold: tuple[int, ...] = ()
        self._settled: tuple[int, ...] = ()
        self._judged: list[int] = []
        self._paused_until = self._look_at = 0.0
        self._maintenance_at: datetime | None = None

    def prepare(self) -> None:
        """Registry, folders, tables and checkpoints, before the first query starts."""
        lake, names = self._lake, [flow.name for flow in self._flows]
        refuse_earlier_version(lake)
        refuse_damage(lake, names)
        if held := held_back(lake):
            raise refusal(lake, lake.conf.folder, held)
        self.feeds = Feeds(lake, self._intake, self.barrier, self._progress) if self._intake else None
        self._maintenance_at = maintenance.next_at(lake, datetime.now(UTC))
        remember(lake.conf)
        sync(lake.conf.lake, lake.conf.devices, datetime.now(UTC))
        self._references.begin(datetime.now(UTC))
        for name, schema in WITHOUT_SPARK.items():
            create(lake.table_path(name), schema)
        for table in lake.tables.values():
            ensure(table)
        fence(sealed_tables(lake).values())
        for flow in self._flows:
            bind(lake, flow.name, flow.tables)
            if flow.name == FLOW:
                begin_lanes(lake)
        take_up(lake, datetime.now(UTC))
        for sentence in unreplayed_changes(lake).values():
            self._progress.notice(Notice("settings have changed", {"reason": sentence}))
        for flow in self.flows["gold"]:
            amendments.refuse_older(lake, flow.name.removeprefix("gold."))
        flows.refuse_older(lake)
        refuse_older_tables(lake)
        self._sealing = Sealing(lake, names)
        retry.finish(lake)

    def look_at_references(self) -> None:
        for problem in self._references.look_again():
            self._progress.notice(Notice("a reference cannot be read", {"reason": problem}))

    def take_in(self) -> None:
        """Bronze, then silver, each to the end of what waits. Spark starts as soon as something does; it analyzes silver beside bronze."""
        prepared = {}
        with ThreadPoolExecutor(1) as thread:
            intake = thread.submit(self.feeds.run_to_end) if self.feeds else None
            try:
                has_come = self._is_behind() or (self.feeds and intake and self.flows["silver"] and _has_come(self.feeds, intake))
                if has_come and not self.barrier.stop.is_set():
                    _ = self._lake.spark  # by the main thread: it alone may say what signals do
                    prepared = {flow: prepare_query(self._lake, flow, AVAILABLE_NOW, self.barrier) for flow in self.flows["silver"]}
            finally:
                if intake is not None:
                    intake.result()
        self.seal()
        if not self.barrier.stop.is_set():
            run_to_end({flow: query.start() for flow, query in prepared.items()}, self._progress, self.barrier)
            self.seal()

    def _is_behind(self) -> bool:
        """Whether silver or its ledger has something to do."""
        passed = passed_by_silver(self._lake) if LEDGER_FLOW in self._jobs else None
        is_unaccounted = passed is not None and passed > accounted_for(self._lake)
        return is_unaccounted or any(map(self._is_waiting, self.flows["silver"]))

    def _is_waiting(self, flow: Flow) -> bool:
        """Whether a query of the flow would run a batch: one that is not finished, or one of rows that none has read."""
        checkpoint, now = self._lake.checkpoint(flow.name), datetime.now(UTC)
        if newest_batch(checkpoint / "offsets") > newest_batch(checkpoint / "commits"):
            return True
        return any(arrears_of(checkpoint, last_batch(checkpoint), self._lake.table_path(name), now).behind for name in flow.reads)

    def seal(self) -> None:
        self._sealing.seal_finished_batches()

    def account(self) -> None:
        """The ledger, as far as silver has come."""
        self._do(LEDGER_FLOW)
        for sentence in missing_fields.new_findings(self._lake) if LEDGER_FLOW in self._jobs else ():
            self._progress.notice(Notice("fields have changed", {"reason": sentence}))

    def look_at_devices(self) -> None:
        """Note who sent what, for the list of what is wrong, every LOOK_SECONDS."""
        if LEDGER_FLOW in self._jobs and time.monotonic() >= self._look_at:
            self.account()
            device_looks.look(self._lake)
            self._look_at = time.monotonic() + LOOK_SECONDS

    def gold_cycle(self) -> None:
        """Bring gold up to silver, then the ledger, what is late and the snapshot; then rest as long as that took, up to PAUSE_SECONDS."""
        readings = self._versions("silver.readings")  # before: gold begins for nothing that alerts have not seen
        self._judge_ahead()
        self.look_at_devices()
        if (begin := time.monotonic()) < self._paused_until:
            return
        self.close_idle_windows(patient=True)
        if (moved := (count_releases(self._lake.conf.lake), *readings, *self._versions(TICKS.table))) != self._seen_by_gold:
            self.close_windows()
            self._seen_by_gold = moved
        self.account()
        answer = self._retry_as_requested()
        self.look_at_devices()
        if (versions := (*moved, *self._versions(LEDGER))) != self._settled or self._tick_alerts():
            self.settle()
            self._settled = versions
        if answer is not None:
            answer()
        self._paused_until = (now := time.monotonic()) + min(now - begin, PAUSE_SECONDS)

    def _judge_ahead(self) -> None:
        """Judge what silver has, also while gold rests, and let it be told. Behind a gate that holds alerts wait for what passes."""
        if FLOWS not in self._jobs or self.quality_gate.holds or not self._lake.conf.alerts:
            return
        self.account()
        before, accounted = self._versions(ALERTS), self._versions(LEDGER)
        if accounted != self._judged or self._tick_alerts(ahead=True):
            self._progress.follow(FLOWS, flows.judge_ahead(self._lake), self.barrier.stop)
            self._judged = accounted
        if self._versions(ALERTS) != before:
            self._settled = ()  # for the snapshot
            self.wake_senders()

    def _retry_as_requested(self) -> Callable[[], None] | None:
        """Do the retry of the quarantine that another process asks for, while silver is between two batches; returns how to answer it."""
        request = retry_requests.requested(lake := self._lake.conf.lake)
        if request is None or self.barrier.stop.is_set():
            return None
        try:
            if LEDGER_FLOW not in self._jobs or amendments.NAME not in self._jobs:
                raise TidemarkError("the run that writes the lake leaves silver or gold out: stop it first.")
            with self.barrier.hold("silver.readings"):
                summary = retried_now(self._lake, request.chosen)
        except TidemarkError as error:
            return partial(retry_requests.answer, lake, request, None, str(error))
        return partial(retry_requests.answer, lake, request, summary)

    def close_windows(self) -> None:
        """Gold of all streams, up to the same bronze batch; where the gate holds, not before all of that has passed it."""
        is_due = any(map(self._is_waiting, self.flows["gold"]))
        if self.barrier.stop.is_set() or not is_due or not self._is_handed_over():  # silver goes on while most of it is looked at
            return
        with self.barrier.hold("silver.readings"):
            if not self._is_handed_over():  # what came meanwhile is little
                return
            queries = start_queries(self._lake, self.flows["gold"], AVAILABLE_NOW, self.barrier)
            self.barrier.await_begin(queries, poll_seconds(self._lake.conf.lake))
        run_to_end(queries, self._progress, self.barrier)

    def close_idle_windows(self, *, patient: bool) -> bool:
        """Tick streams whose readings stopped coming; True if one was. `patient`: look at a stream only when nothing came for as long."""
        ticked = False
        for flow in self.flows["gold"] if self._is_handed_over() else ():  # how late it is, would be asked of what is held back
            stream = flow.name.removeprefix("gold.")
            groups = self._lake.conf.streams[stream]
            if not patient or self._progress.idle_seconds(flow.name) > idle_groups.patience_seconds(groups):
                ticked |= idle_groups.tick_if_idle(self._lake, stream, groups, datetime.now(UTC))
        return ticked

    def settle(self) -> None:
        if amendments.NAME in self._jobs:
            self.quality_gate.let_late_through()
        self._do(amendments.NAME)
        self._do(FLOWS)
        if self._tick_alerts():
            self._do(FLOWS)
        self._pin()
        self.quality_gate.warn()

    def _tick_alerts(self, *, ahead: bool = False) -> bool:
        """Whether time alone changes an alert by now. `ahead`: one that does not look at gold."""
        return FLOWS in self._jobs and not self.barrier.stop.is_set() and tick_if_due(self._lake, datetime.now(UTC), ahead=ahead)

    def _versions(self, *names: str) -> list[int]:
        return [version_of(self._lake.table_path(name)) for name in names]

    def _is_handed_over(self) -> bool:
        return not self.flows["gold"] or self.quality_gate.is_open()

    def is_maintenance_due(self) -> bool:
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

    def _pin(self) -> None:
        if not self.barrier.stop.is_set():
            take_snapshot(self._lake, datetime.now(UTC))
            self.wake_senders()

    def wake_senders(self) -> None:
        """Sinks and channels: there is a snapshot, or the run ends."""
        for sender in self.senders:
            sender.wake()

    def deliver_to_end(self) -> None:
        """To channels and sinks, also where a source is down. Then say who was down; each has its part the next time."""
        down, sources = list[str](), [str(error) for error in (self.feeds.down if self.feeds else ())]
        for sender in self.senders if self.flows["gold"] else ():
            try:
                sender.run_to_end()
            except TidemarkError as error:
                down.append(str(error))
        if sources:
            raise SourceDownError("\n  ".join([*sources, *down]))
        if self.flows["gold"]:
            self.quality_gate.refuse_closed()
        if down:
            raise TidemarkError("\n  ".join(down))

    def _do(self, name: str) -> None:
        if name in self._jobs and not self.barrier.stop.is_set():
            self._progress.follow(name, self._jobs[name].run(), self.barrier.stop)


def retried_now(lake: Lake, chosen: Chosen) -> list[dict[str, Any]]:
    """Re-admit what is good now; one row a source, retry.COLUMNS. Gold is not looked at."""
    ask_again(lake.conf)
    with quarantine_retry(lake, chosen) as verdict:
        if verdict.is_change:
            retry.carry_out(lake, verdict)
    return verdict.summary


def _has_come(feeds: Feeds, intake: "Future[None]") -> bool:
    """Whether a source has something, as soon as that is known."""
    while not (feeds.has_come.wait(POLL_SECONDS / 10) or intake.done()):
        pass
    return feeds.has_come.is_set()
