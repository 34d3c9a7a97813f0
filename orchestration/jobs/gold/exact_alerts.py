"""Alerts of alerts.yml, exactly: each reading, window or interval is judged once, when it is final, and in order of time.

What an alert carries from slice to slice is a small table of its signal, and the state of each entity in the table's metadata. An alert
whose definition has changed begins anew where it is, and what was not normal ends there; a new one begins with the first reading.
"""

from dataclasses import asdict, dataclass

import duckdb
import msgspec
import pyarrow as pa

from gold.alerts.signals import OF_ACCOUNT, OF_BATCHES, samples
from gold.alerts.spec import Alert
from gold.alerts.states import State, ended, judge
from gold.flows.slices import THE_BEGINNING, Stepped, micros
from gold.schema import SAMPLES
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.prefix import Prefix
from orchestration.jobs.ranges import Range, pieces
from orchestration.storage import registry
from orchestration.storage.delta import is_table, literal, open_table, path_of
from orchestration.storage.ops_tables import LEDGER
from orchestration.storage.positions import FlowPosition
from orchestration.utc import EPOCH, from_micros

STATES = b"states"
OF_SIGNAL = b"has signal"
OF_READING = "device_id, metric, event_time, value, unit, zone, groups, attributes, ingested_at, bronze_batch, bronze_row, part"
CONFIG: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "enable_external_access": False}
MICROSECOND = 1
"""A window that ends where its stream has closed windows is closed; and two bronze batches are at least so far apart."""


@dataclass(frozen=True)
class ExactAlert:
    """An alert of alerts.yml as slices.Incremental."""

    alert: Alert

    @property
    def name(self) -> str:
        return f"alerts/{self.alert.name}"

    @property
    def table(self) -> str:
        return "gold.alerts"

    @property
    def plan(self) -> str:
        """The settings that change states; who is notified is not among them."""
        definition = {key: value for key, value in asdict(self.alert).items() if key in Alert.__dataclass_fields__}
        return msgspec.json.encode(definition).decode()

    def as_begun(self, plan: str) -> "ExactAlert":
        return ExactAlert(msgspec.json.decode(plan, type=Alert))

    def end(self, lake: Lake, start: FlowPosition, prefix: Prefix) -> int:
        match self.alert.signal.kind:
            case "window" | "vector":
                stream = lake.conf.groups[str(self.alert.signal.group)].stream
                return prefix.positions[stream].closed_until_ms * 1000 + MICROSECOND
            case "account":
                times = _times_of_batches(lake, start, prefix.bronze_batch)
                return max(micros(times["ingested_at"]).tolist(), default=THE_BEGINNING) + MICROSECOND
        return slices.final_readings(lake, start, prefix)

    def readings(self) -> str | None:
        signal = self.alert.signal
        if signal.kind not in {"reading", "count"}:
            return None
        return slices.readings_taken([signal.metric] if signal.metric else [], signal.group)

    def rows_a_second(self, lake: Lake) -> float:
        """Estimate the samples of a count: an interval of each entity is a sample, also an empty one."""
        signal = self.alert.signal
        if signal.kind != "count":
            return 0.0
        devices = path_of(lake.conf.lake, registry.TABLE)
        entities = lake.conf.groups if signal.by == "group" else lake.conf.devices
        return max(len(entities), open_table(devices).count() if signal.by == "device" and is_table(devices) else 1) / signal.every_seconds

    def step(self, lake: Lake, carried: pa.Table | None, start: FlowPosition, end: FlowPosition) -> Stepped:
        plan, states, signal = _unpacked(carried)
        until = from_micros(end.until)
        since = EPOCH if start.until == THE_BEGINNING else from_micros(start.until)
        left: list[pa.Table] = []
        if plan not in {None, self.plan}:
            left, states, signal = [ended(self.alert, states, since)], {}, None
        with duckdb.connect(config=CONFIG) as store:
            store.register("arrived", self._arrived(lake, start, end))
            values, signal = samples(store, self.alert, "arrived", signal, since=since, until=until)
        judged = judge(self.alert, states, values.cast(SAMPLES), until)
        return Stepped(pa.concat_tables([*left, judged.changes]), _packed(self.plan, judged.states, signal))

    def _arrived(self, lake: Lake, start: FlowPosition, end: FlowPosition) -> pa.Table:
        signal = self.alert.signal
        if signal.kind == "account":
            return _account(lake, start, end)
        if (readings := self.readings()) is not None:
            query = f"select {OF_READING} from rows where {slices.within(start.until, end.until)} and {readings}"
            return pa.concat_tables(pieces(lake, slices.READINGS, query))
        group = lake.conf.groups[str(signal.group)]
        kind = "aggregates" if signal.kind == "window" else "vectors"
        in_slice = slices.within(start.until, end.until, "window_end")
        of_group = f"{in_slice} and device_group = {literal(group.name)} and revision = 0"
        return pa.concat_tables(pieces(lake, lake.generation.gold(group.stream, kind), f"select * from rows where {of_group}"))


def _account(lake: Lake, start: FlowPosition, end: FlowPosition) -> pa.Table:
    """Return rows of the ledger as a run wrote them first, with the time of their batch."""
    times, batches = _times_of_batches(lake, start, end.bronze_batch), Range(start.bronze_batch, end.bronze_batch).sql()
    query = f"select bronze_batch, source, {', '.join(OF_ACCOUNT)} from rows where {batches} and events > 0"
    return pa.concat_tables(pieces(lake, LEDGER, query)).join(times, "bronze_batch", join_type="inner")


def _times_of_batches(lake: Lake, start: FlowPosition, last: int) -> pa.Table:
    """Return OF_BATCHES of those behind a slice."""
    batches = Range(start.bronze_batch, last).sql()
    query = f"select bronze_batch, max(ingested_at) as ingested_at from rows where {batches} group by bronze_batch"
    with duckdb.connect(config=CONFIG) as store:
        store.register("events", pa.concat_tables(pieces(lake, "bronze.events", query)))
        return store.sql(f"from {OF_BATCHES.format(events='events', since=start.until)}").to_arrow_table()


def _packed(plan: str, states: dict[str, State], signal: pa.Table | None) -> pa.Table:
    table = pa.table({}) if signal is None else signal
    content = {STATES: msgspec.json.encode(states), b"plan": plan.encode(), OF_SIGNAL: b"" if signal is None else b"yes"}
    return table.replace_schema_metadata(content)


def _unpacked(carried: pa.Table | None) -> tuple[str | None, dict[str, State], pa.Table | None]:
    if carried is None:
        return None, {}, None
    content = carried.schema.metadata
    states = msgspec.json.decode(content[STATES], type=dict[str, State])
    return content[b"plan"].decode(), states, carried.replace_schema_metadata(None) if content[OF_SIGNAL] else None
