"""The job gold.flows: flows of flows.yml and alerts of alerts.yml, brought up to the prefix of bronze at which gold is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from gold.flows.slices import READING, Slice, Stepped
from gold.flows.spec import FlowSpec
from gold.flows.steps import nothing_carried, readings_of, step
from orchestration.engine.lake import Lake
from orchestration.jobs.account import retry
from orchestration.jobs.flow_readings import with_predicates
from orchestration.jobs.gold import exact_alerts, lane_slices, slices
from orchestration.jobs.gold.anomalies import judged_streams
from orchestration.jobs.gold.prefix import Prefix, consistent_prefix
from orchestration.jobs.gold.slices import Incremental
from orchestration.jobs.ranges import pieces
from orchestration.storage.bindings import plan_of_flow
from orchestration.storage.delta import OpenTable, each_table_opened_once, version_of
from orchestration.storage.lanes import lanes_of
from orchestration.storage.positions import ALERTS, FLOWS, FlowPosition, FlowStep, JudgedAhead, accounted_for, judged_ahead


def follow_all(lake: Lake) -> Iterator[int]:
    """Bring every flow, then every alert, up to where all of gold is; yields the rows of each slice once it is done."""
    if (incrementals := _incrementals(lake)) and (prefix := consistent_prefix(lake)) is not None:
        yield from _follow(lake, incrementals, prefix)


def judge_ahead(lake: Lake) -> Iterator[int]:
    """Bring alerts that do not look at gold up to the account, ahead of gold; yields the rows of each slice once it is done.

    Gold gets there in the same cycle or the next one, and then the other alerts and the snapshot do. Nobody sees what is judged before all
    of it is: what fires in a slice may be over in the next one.
    """
    if (accounted := accounted_for(lake)) >= 0 and retry.pending(lake) is None:
        yield from _follow(lake, exact_alerts.exact_alerts(lake, ahead=True), Prefix(accounted, {}))
        judged_ahead(lake.conf.lake).write(JudgedAhead(lake.generation.generation, version_of(lake.table_path(ALERTS))))


def flow_positions(lake: Lake) -> dict[str, FlowPosition]:
    """Return how far each flow and each alert has come."""
    return {f"{FLOWS}/{incremental.name}": slices.position(lake, incremental).after for incremental in _incrementals(lake)}


def refuse_older(lake: Lake) -> None:
    """TidemarkError for a flow or an alert whose rows are ahead of its state."""
    for incremental in _incrementals(lake):
        slices.refuse_older(lake, incremental)


@dataclass(frozen=True)
class DeclaredFlow:
    """A flow of flows.yml as slices.Incremental."""

    spec: FlowSpec

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def table(self) -> str:
        return f"gold.{self.spec.table}"

    @property
    def plan(self) -> str:
        return plan_of_flow(self.spec)

    def as_begun(self, plan: str) -> "DeclaredFlow":
        """Itself: one whose plan has changed is refused."""
        return self

    def next_step(self, lake: Lake, this: FlowStep, prefix: Prefix) -> FlowStep | None:
        return slices.by_event_time(lake, this, prefix, self.plan, self._readings())

    def step(self, lake: Lake, carried: pa.Table | None, start: FlowPosition, end: FlowPosition) -> Stepped:
        columns = "*" if self.spec.predicates else ", ".join(READING.names)
        taken = f"{slices.within(start.until, end.until)} and {self._readings()}"
        if (lanes := lanes_of(lake)).every:
            taken += f" and {lane_slices.in_time(lake, lanes, start, self._readings())}"
        query = f"select {columns} from rows where {taken}"
        readings = pa.concat_tables([with_predicates(self.spec, piece) for piece in pieces(lake, slices.READINGS, query)])
        before = nothing_carried(self.spec) if carried is None else carried
        return step(self.spec, Slice(before, readings.cast(readings_of(self.spec)), start.until, end.until))

    def _readings(self) -> str:
        return slices.readings_taken(self.spec.metrics, self.spec.group)


def _follow(lake: Lake, incrementals: Iterable[Incremental], prefix: Prefix) -> Iterator[int]:
    """One after another; all look at the same tables, which are opened once."""
    opened = dict[str, OpenTable]()
    for slices_of_one in (slices.follow(lake, incremental, prefix) for incremental in incrementals):
        rows: int | None = 0
        while rows is not None:
            with each_table_opened_once(opened):
                rows = next(slices_of_one, None)
            if rows is not None:
                yield rows


def _incrementals(lake: Lake) -> list[Incremental]:
    return [*map(DeclaredFlow, lake.conf.flows.values()), *judged_streams(lake), *exact_alerts.exact_alerts(lake)]
