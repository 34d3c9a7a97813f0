"""The job gold.flows: flows of flows.yml and alerts of alerts.yml, brought up to the prefix of bronze at which gold is."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import duckdb
import pyarrow as pa

from bronze.schema import INSTANT
from expectations.condition import condition
from gold.flow_spec import FlowSpec
from gold.flows import nothing_carried, readings_of, step
from gold.slices import READING, Slice, Stepped
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs import plant_alerts, slices
from orchestration.jobs.prefix import consistent_prefix, gold_positions
from orchestration.jobs.ranges import pieces
from orchestration.jobs.slices import Follower, Prefix
from orchestration.storage.positions import FlowPosition
from silver.judging import PLAIN_INSTANT, retyped
from silver.rules import READING as COLUMNS

NAME = slices.NAME


def follow_all(lake: Lake) -> Iterator[int]:
    """Every flow, then every alert, up to where all of gold is; yields the rows of each slice once it is done."""
    followers = _followers(lake)
    positions = gold_positions(lake) if followers else None
    bronze_batch = consistent_prefix(lake, positions)
    if positions is not None and bronze_batch is not None:
        prefix = Prefix(bronze_batch, positions)
        for follower in followers:
            yield from slices.follow(lake, follower, prefix)


def flow_positions(lake: Lake) -> dict[str, FlowPosition]:
    """How far each flow and each alert has come."""
    return {f"{NAME}/{follower.name}": slices.position(lake, follower).after for follower in _followers(lake)}


def refuse_changed(lake: Lake) -> None:
    """A flow whose state is of another question cannot go on, nor one whose rows are ahead of its state. An alert begins anew."""
    for flow in _flows(lake):
        this = slices.position(lake, flow)
        if this.number and this.plan != flow.plan:
            raise TidemarkError(
                f"flow {flow.name} in conf/flows.yml was {this.plan}, and is {flow.plan} now.\n"
                "  Give it another name, under which it is computed from the first reading on; or put it back; or build silver and gold"
                " anew with `tidemark replay`."
            )
    for follower in _followers(lake):
        slices.refuse_older(lake, follower)


@dataclass(frozen=True)
class PlantFlow:
    """A flow as slices.Follower."""

    spec: FlowSpec

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def table(self) -> str:
        return f"gold.{self.spec.table}"

    @property
    def plan(self) -> str:
        """Without what a flow leaves out."""
        settings = asdict(self.spec.kind) | {"group": self.spec.group}
        return f"{type(self.spec.kind).__name__} ({', '.join(f'{key} {value}' for key, value in settings.items() if value is not None)})"

    def as_begun(self, plan: str) -> "PlantFlow":
        """Itself: one whose plan has changed is refused."""
        return self

    def until(self, lake: Lake, after: FlowPosition, prefix: Prefix) -> int:
        return slices.final_readings(lake, after, prefix)

    def readings(self) -> str:
        return slices.taken(self.spec.metrics, self.spec.group)

    def rows_a_second(self, lake: Lake) -> float:
        return 0.0

    def step(self, lake: Lake, carried: pa.Table | None, after: FlowPosition, up_to: FlowPosition) -> Stepped:
        columns = "*" if self.spec.predicates else ", ".join(READING.names)
        query = f"select {columns} from rows where {slices.within(after.until, up_to.until)} and {self.readings()}"
        readings = pa.concat_tables([self._with_predicates(piece) for piece in pieces(lake, slices.READINGS, query)])
        before = nothing_carried(self.spec) if carried is None else carried
        return step(self.spec, Slice(before, readings.cast(readings_of(self.spec)), after.until, up_to.until))

    def _with_predicates(self, readings: pa.Table) -> pa.Table:
        if not self.spec.predicates:
            return readings.select(READING.names)
        met = ", ".join(f"{condition(text, COLUMNS).sql} as fits_{at}" for at, text in enumerate(self.spec.predicates))
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.register("reading", retyped(readings, INSTANT, PLAIN_INSTANT))
            rows = connection.sql(f"select {', '.join(READING.names)}, {met} from reading").to_arrow_table()
        return retyped(rows, PLAIN_INSTANT, INSTANT)


def _followers(lake: Lake) -> list[Follower]:
    return [*_flows(lake), *plant_alerts.alerts(lake)]


def _flows(lake: Lake) -> list[PlantFlow]:
    return [PlantFlow(flow) for flow in lake.conf.flows.values()]
