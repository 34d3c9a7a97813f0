"""Replay: the next generation of silver and gold, built from bronze beside the active one, which goes on meanwhile.

    a snapshot's prefix of bronze -> batch jobs -> its streams, started a lateness earlier to find their state again -> caught up -> switch

Nothing that is active is touched: what is built lies in a folder of its own, and a switch is one row of ops.generations. A build that was
killed leaves a folder that nobody reads; the next replay removes it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from gold.schema import FLOW_KINDS
from gold.windows.spec import Group
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import AVAILABLE_NOW, WriteBarrier, run_to_end, start_queries
from orchestration.errors import TidemarkError
from orchestration.flow import Flow, Intake, Job
from orchestration.flows import flows
from orchestration.jobs import replay as batch_replay
from orchestration.jobs.account import retry
from orchestration.jobs.gold import amendments
from orchestration.jobs.gold.flows import follow_all
from orchestration.jobs.gold.snapshots import take_snapshot
from orchestration.jobs.replay import OF_SILVER, PinnedGeneration
from orchestration.storage import generations, registry
from orchestration.storage.bindings import Start, begin
from orchestration.storage.commit import create, fence
from orchestration.storage.confs import confs_of_replay
from orchestration.storage.delta import in_log, open_table
from orchestration.storage.gate_state import closed_gates, is_holding
from orchestration.storage.generations import Generation
from orchestration.storage.kept import delete_all
from orchestration.storage.kept_confs import note
from orchestration.storage.lake_layout import CORRECTIONS
from orchestration.storage.lanes import begin_anew
from orchestration.storage.ops_tables import LEDGER, LEDGER_FLOW, LEDGER_SCHEMA
from orchestration.storage.positions import FLOWS, GoldPosition, retried
from orchestration.storage.retention import first_version
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.tables import LakeStore, ensure
from orchestration.supervisor.quality_gate import QualityGate
from orchestration.supervisor.replay_preview import ReplayPreview, preview
from orchestration.supervisor.rollback import await_switch
from orchestration.supervisor.silver_after import Inputs

STEPS = ("silver.replay", "gold.replay")
ROUNDS = 3
"""How often a batch job builds on to what came meanwhile: less each time. A stream takes seconds for each bronze batch, however small."""


@dataclass(frozen=True)
class Plan:
    """The plan of a replay: silver, unless only groups are asked for, and the gold of these streams."""

    is_silver: bool
    streams: Mapping[str, Sequence[Group]]
    since: date | None

    def __str__(self) -> str:
        what = "replay" if self.is_silver else f"replay of {', '.join(group.name for groups in self.streams.values() for group in groups)}"
        return what if self.since is None else f"{what} since {self.since}"

    def places(self) -> Iterable[str]:
        """Folders below the lake that get a place in the new generation."""
        if self.is_silver:
            yield from (name.replace(".", "/", 1) for name in (*OF_SILVER, CORRECTIONS, LEDGER))
            yield from (f"checkpoints/{flow}" for flow in (OF_SILVER[0], LEDGER_FLOW, retry.NAME, FLOWS))
            yield from (f"gold/{kind}" for kind in (*FLOW_KINDS, "alerts"))
        yield from (f"checkpoints/gold.{stream}" for stream in self.streams)


def plan(lake: LakeStore, group: str | None, since: date | None) -> Plan:
    """All, or the gold of the group and of those that share its stream."""
    every = lake.conf.streams
    if group is None:
        return Plan(True, every, since)
    stream = lake.conf.groups[group].stream
    return Plan(False, {stream: every[stream]}, since)


def corrections(lake: LakeStore, plan: Plan) -> list[registry.Version]:
    """List the declarations by which what the replay builds counts devices; see registry.as_declared."""
    start = registry.ALWAYS if plan.since is None else datetime.combine(plan.since, time(), UTC)
    return registry.as_declared(lake.conf, registry.in_force(lake.conf.lake, lake.generation), start)


def foresee(lake: LakeStore, plan: Plan) -> ReplayPreview:
    """Work out what the replay would change, without Spark."""
    snapshot = _starting_snapshot(lake)
    recorded = LakeStore(lake.conf, generations.numbered(lake.conf.lake, snapshot.generation))
    first = (0 if plan.since is None else _first_batch(recorded, plan.since)) if plan.is_silver else None
    counting = registry.in_force(lake.conf.lake, recorded.generation)
    if plan.is_silver:
        counting = registry.counting_with(lake.conf.lake, corrections(recorded, plan))
    return preview(Inputs(recorded, snapshot, first, [*chain(*plan.streams.values())], counting))


def _starting_snapshot(lake: LakeStore) -> Snapshot:
    snapshot = find_snapshot(lake.conf.lake)
    if snapshot is None:
        raise TidemarkError(f"the lake at {lake.conf.lake} has no snapshot to start from: bring it up to date with `tidemark run --once`.")
    return snapshot


def flows_of(lake: Lake, plan: Plan) -> list[Flow | Job]:
    """List the queries and jobs that go on with the tables that the replay builds."""
    names = {f"gold.{stream}" for stream in plan.streams} | ({OF_SILVER[0], LEDGER_FLOW} if plan.is_silver else set())
    return [flow for flow in flows(lake) if not isinstance(flow, Intake) and flow.whole in names]


def build(lake: Lake, plan: Plan, progress: Progress) -> Lake:
    """Build the next generation: gold up to the newest snapshot, silver up to the ledger, streams that go on from there."""
    if waiting := generations.requested_switch(lake.conf.lake):
        raise TidemarkError(
            f"generation {waiting.generation} is built but not active yet; run `tidemark run --once` first, which activates it."
        )
    snapshot = _starting_snapshot(lake)
    recorded = PinnedGeneration(Lake(lake.conf, lake.spark, generations.numbered(lake.conf.lake, snapshot.generation)), snapshot)
    up_to = snapshot.bronze_batch
    following = Lake(lake.conf, lake.spark, _next(lake, plan))
    _make_room(following, plan)
    if plan.is_silver:
        registry.correct(lake.conf.lake, following.generation, corrections(recorded.lake, plan))
        up_to = _silver(following, recorded, plan, progress)
        crash.point(crash.Point.SILVER_REBUILT)
        barrier = WriteBarrier(threading.Event())
        _go_on(following, plan, progress, barrier)
        refuse_unless_passed(following, barrier.stop)
    for stream, groups in plan.streams.items():
        _gold(following, recorded, stream, groups, progress)
    return Lake(lake.conf, lake.spark, replace(following.generation, bronze_batch=up_to))


def catch_up(following: Lake, plan: Plan, progress: Progress) -> None:
    """Everything that came since, through the streams of the new generation; what has not passed its gate waits for the run after it."""
    barrier = WriteBarrier(threading.Event())
    gold = _go_on(following, plan, progress, barrier)
    # Silver that the replay of a group reads is written by another process: what has passed of it may have grown when a query starts.
    if is_holding(following.conf) and not (plan.is_silver and _has_passed(following, barrier.stop)):
        return
    run_to_end(start_queries(following, gold, AVAILABLE_NOW, barrier), progress, barrier)
    for _ in chain(amendments.amend_all(following, plan.streams), follow_all(following) if plan.is_silver else ()):
        pass


def _go_on(following: Lake, plan: Plan, progress: Progress, barrier: WriteBarrier) -> list[Flow]:
    """Silver and its ledger, through what waits; returns the flows of gold."""
    chosen = flows_of(following, plan)
    silver, gold = ([flow for flow in chosen if isinstance(flow, Flow) and flow.layer == layer] for layer in ("silver", "gold"))
    run_to_end(start_queries(following, silver, AVAILABLE_NOW, barrier), progress, barrier)
    for job in chosen:
        if isinstance(job, Job):
            progress.follow(job.name, job.run())
    return gold


def finish(following: Lake, plan: Plan, progress: Progress) -> None:
    """Bring it up to date and switch to it. Where another process writes the lake, that one does so, at its next step."""
    lake = following.conf.lake
    catch_up(following, plan, progress)
    crash.point(crash.Point.GENERATION_BUILT)
    generations.request_switch(lake, following.generation)
    crash.point(crash.Point.GENERATION_PROPOSED)

    def switch() -> None:
        if generations.requested_switch(lake) is not None:
            catch_up(following, plan, progress)
            generations.switch(lake, datetime.now(UTC))
            crash.point(crash.Point.SWAPPED)
            take_snapshot(following, datetime.now(UTC))

    await_switch(lake, switch)


def _has_passed(following: Lake, stop: threading.Event) -> bool:
    quality_gate = QualityGate(following, stop, lambda _: None)
    quality_gate.let_late_through()
    return quality_gate.is_open()


def refuse_unless_passed(following: Lake, stop: threading.Event) -> None:
    """Gold is computed from all of it, so what passed or was released of the table before it has to pass again."""
    if not _has_passed(following, stop):
        closed = next(closed_gates(following.conf, following.table_path))
        raise TidemarkError(
            f"the replay's {closed.table} did not pass its gate, so the replay did not switch: {closed.failure}.\n"
            "  Correct the conf, or set the gate to `warn` in pipeline.yml until the replay is done."
        )


def _next(lake: Lake, plan: Plan) -> Generation:
    switches = generations.switches(lake.conf.lake)
    number = max(generation.generation for generation in switches) + 1
    return Generation(switches[-1].swap + 1, number, None, str(plan), None, switches[-1].places | dict.fromkeys(plan.places(), number))


def _make_room(following: Lake, plan: Plan) -> None:
    folder = generations.folder_of(following.conf.lake, following.generation.generation)
    delete_all(folder)
    for table in following.tables.values():
        if table.location.parent.parent == folder:
            ensure(table)
            fence([table.location])
    if plan.is_silver:
        create(following.table_path(LEDGER), LEDGER_SCHEMA)
        fence([following.table_path(LEDGER)])


def _silver(following: Lake, recorded: PinnedGeneration, plan: Plan, progress: Progress) -> int:
    """Append readings of the prefix and of what came meanwhile, and bind the stream to that; returns the last bronze batch."""
    since = first = 0 if plan.since is None else _first_batch(following, plan.since)
    if first:
        batch_replay.copy_before(following, recorded, first)
    built = recorded
    for _ in range(1 + ROUNDS):
        progress.follow(STEPS[0], batch_replay.silver(following, built, first))
        progress.ended(STEPS[0])
        first, built = built.snapshot.bronze_batch + 1, built.as_accounted_for()
    up_to = first - 1
    begin_anew(following, up_to)
    note(following.checkpoint(OF_SILVER[0]), *confs_of_replay(recorded.lake, since, datetime.now(UTC)))
    return up_to


def _gold(following: Lake, recorded: PinnedGeneration, stream: str, groups: Sequence[Group], progress: Progress) -> None:
    """Closed windows of the prefix; then the stream, bound to begin with the first reading of an open one."""
    up_to = recorded.snapshot.bronze_batch
    until_ms = batch_replay.closed_until_ms(following, groups, stream, up_to)
    retries = retried(following)  # asked first: what a retry re-admits meanwhile may not be in the windows, and is folded in then
    progress.follow(STEPS[1], batch_replay.gold(following, recorded, stream, groups, until_ms))
    progress.ended(STEPS[1])
    longest = max(following.conf.metrics[name].longest_seconds for group in groups for name in group.metrics)
    start = Start(_version_with_time(following, until_ms - longest * 1000), up_to, until_ms)
    begin(following, f"gold.{stream}", following.gold(stream)[:2], start)
    amendments.begin_at(following, stream, GoldPosition(-1, until_ms, up_to, up_to, retries))


def _first_batch(lake: LakeStore, since: date) -> int:
    """The first bronze batch that was ingested on a day or later; past all of them where there is none."""
    log = in_log(open_table(lake.table_path("bronze.events")), "partition.ingested_on", "min.bronze_batch", "max.bronze_batch")
    later = log.filter(pc.greater_equal(log["partition.ingested_on"], pa.scalar(since)))
    first, newest = pc.min(later["min.bronze_batch"]).as_py(), pc.max(log["max.bronze_batch"]).as_py()
    return int(newest) + 1 if first is None else int(first)


def _version_with_time(following: Lake, instant_ms: int) -> int:
    """The first version of readings that holds one of an instant or later."""
    instant = datetime.fromtimestamp(instant_ms / 1000, UTC)
    return first_version(following.table_path(OF_SILVER[0]), lambda most: datetime.fromisoformat(most["event_time"]) >= instant)
