"""Alerts of alerts.yml, exactly: judged by bronze batch and by ticks of the clock, all accepted readings, late ones too.

What an alert carries from slice to slice is a small table of its signal, and the state of each entity in the table's metadata. A new alert
begins with the first reading. Where the condition of an alert is another one, its states are judged anew over what the lake holds, and only
what differs is written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gold.alerts.edits import RETIRED, differences, ended, expected
from gold.alerts.intervals import with_entities, without_entities
from gold.alerts.samples import samples
from gold.alerts.signals import Carried
from gold.alerts.spec import Alert
from gold.alerts.states import State, judge
from gold.flows.slices import Stepped
from gold.schema import ALERTS, SAMPLES
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.alert_rows import CONFIG, arrived
from orchestration.jobs.gold.alert_steps import Step, memberships, steps_between
from orchestration.jobs.gold.prefix import Prefix
from orchestration.jobs.ranges import range_after
from orchestration.storage.delta import max_in_log
from orchestration.storage.ops_tables import CLOCK, ClockTick
from orchestration.storage.positions import FlowPosition, FlowStep
from orchestration.utc import to_micros

ANY_TIME = 2**62
MEANING = (
    *("signal", "when", "recover_when", "for_seconds", "for_times", "keep_firing_seconds"),
    *("escalate", "wait_seconds", "no_data", "expected", "hours", "flapping"),
)
"""The settings that change states; who is notified is not among them."""
WORDING = ("summary", "severity")
"""Settings that change rows from now on, and no state."""


@dataclass(frozen=True)
class Carry:
    """Carried from a slice to the next. `meaning`: of the alert that judged it; None before the first."""

    meaning: str | None = None
    states: dict[str, State] = field(default_factory=dict)
    signal: Carried = field(default_factory=Carried)


class JudgedSlice(NamedTuple):
    """Samples and rows of a slice, what it leaves, and the wall clock at which time alone may have the next rows."""

    samples: pa.Table
    rows: pa.Table
    carry: Carry
    rings_at: int | None


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
    def looks_at_gold(self) -> bool:
        """Whether it follows windows; else it needs silver and its account alone."""
        return self.alert.signal.is_of_gold

    @property
    def plan(self) -> str:
        return self._settings(*MEANING, *WORDING)

    def _settings(self, *names: str) -> str:
        settings = asdict(self.alert)
        return msgspec.json.encode({name: settings[name] for name in names}).decode()

    def as_begun(self, plan: str) -> "ExactAlert":
        return ExactAlert(msgspec.convert(asdict(self.alert) | msgspec.json.decode(plan), type=Alert))

    def next_step(self, lake: Lake, this: FlowStep, prefix: Prefix) -> FlowStep | None:
        """Return a step up to the prefix and the ticks behind it; of readings up to so many batches as fit in memory."""
        is_changed = this.plan not in {"", self.plan}
        end = self._end(lake, this.after, prefix)
        if end == this.after and not is_changed:
            return None
        began = this.after.until if is_changed else this.began
        return replace(this, number=this.number + 1, up_to=end, plan=self.plan, began=began)

    def step(self, lake: Lake, carried: pa.Table | None, start: FlowPosition, end: FlowPosition, ticks: Sequence[int] = ()) -> Stepped:
        """See slices.Incremental. `ticks`: wall clocks at which to judge beside those that are recorded."""
        before, rows = _unpacked(carried), list[pa.Table]()
        if before.meaning not in {None, self._settings(*MEANING)}:
            anew = Carry()
            for judged in self.from_the_first(lake, start):
                anew = judged.carry
            rows.append(differences(self.alert, before.states, anew.states, start.until))
            before = anew
        judged = self._judge(lake, before, start, end, ticks)
        return Stepped(pa.concat_tables([*rows, judged.rows]), _packed(judged.carry), judged.rings_at)

    def from_the_first(self, lake: Lake, end: FlowPosition) -> Iterator[JudgedSlice]:
        """Judge from the first bronze batch on; nothing is written."""
        carry, at = Carry(), FlowPosition()
        while at.bronze_batch < end.bronze_batch:
            following = self._within(lake, at, end)
            judged = self._judge(lake, carry, at, following)
            yield judged
            carry, at = judged.carry, following

    def _end(self, lake: Lake, start: FlowPosition, prefix: Prefix) -> FlowPosition:
        closed = start.closed_until_ms
        if self.looks_at_gold:
            closed = max(closed, prefix.positions[str(self._stream(lake))].closed_until_ms)
        return self._within(lake, start, FlowPosition(max(prefix.bronze_batch, start.bronze_batch), ANY_TIME, closed_until_ms=closed))

    def _within(self, lake: Lake, start: FlowPosition, end: FlowPosition) -> FlowPosition:
        """Return the end of a slice on the way to `end`: windows are few, readings come by ranges of batches."""
        up_to = end.bronze_batch
        if not self.looks_at_gold and up_to > start.bronze_batch:
            up_to = range_after(lake, start.bronze_batch, up_to).up_to
        end = replace(end, bronze_batch=up_to, until=end.until if up_to == end.bronze_batch else ANY_TIME)
        steps = steps_between(lake, start, end, self._stream(lake))
        return replace(end, until=steps[-1].wall if steps else start.until)

    def _stream(self, lake: Lake) -> str | None:
        return lake.conf.groups[str(self.alert.signal.group)].stream if self.looks_at_gold else None

    def _judge(self, lake: Lake, before: Carry, start: FlowPosition, end: FlowPosition, ticks: Sequence[int] = ()) -> JudgedSlice:
        steps = steps_between(lake, start, end, self._stream(lake), ticks)
        if not steps and end.closed_until_ms > start.closed_until_ms:  # the gate kept windows that a tick had closed
            steps = [Step(end.bronze_batch, True, end.until)]
        came = arrived(lake, self.alert, start, end, steps)
        states, signal, rows, taken = before.states, before.signal, [ALERTS.empty_table()], [SAMPLES.empty_table()]
        rings_at = None if steps else judge(self.alert, states, SAMPLES.empty_table(), []).rings_at
        with duckdb.connect(config=CONFIG) as store:
            for begin, until, joined, left in self._parts(lake, start, steps):
                walls = [step.wall for step in steps[begin:until]]
                gone = {entity: states[entity] for entity in left if entity in states}
                rows.append(ended(self.alert, gone, walls[0], RETIRED))
                states = {entity: state for entity, state in states.items() if entity not in gone}
                states = expected(states, joined, walls[0])
                if self.alert.signal.kind == "count":
                    signal = with_entities(self.alert, without_entities(signal, left), joined)
                in_part = pc.and_(pc.greater_equal(came["step"], begin), pc.less(came["step"], until))
                of_part = came.filter(in_part)
                number = of_part.schema.get_field_index("step")
                store.register("came", of_part.set_column(number, "step", pc.subtract(of_part["step"], begin)))
                values, signal = samples(store, self.alert, "came", walls, signal)
                taken.append(values.cast(SAMPLES))
                changes, states, rings_at = judge(self.alert, states, taken[-1], walls)
                rows.append(changes)
        rings = [at for at in (rings_at, signal.rings_at) if at is not None]
        carry = Carry(self._settings(*MEANING), states, signal)
        return JudgedSlice(pa.concat_tables(taken), pa.concat_tables(rows), carry, min(rings, default=None))

    def _parts(self, lake: Lake, start: FlowPosition, steps: Sequence[Step]) -> Iterator[tuple[int, int, list[str], list[str]]]:
        """Yield ranges of steps, at the beginning of which devices join and leave: those are their last two."""
        changes = [one for one in memberships(lake, self.alert) if one.at > start.until]
        at_steps: dict[int, tuple[list[str], list[str]]] = {}
        for change in changes:
            step = next((number for number, step in enumerate(steps) if step.wall >= change.at), None)
            if step is not None and (self.alert.expected or not change.is_member):
                joined, left = at_steps.setdefault(step, ([], []))
                (joined if change.is_member else left).append(change.device)
        begins = sorted({0, *at_steps} if steps else {})
        for begin, until in pairwise([*begins, len(steps)]):
            yield begin, until, *at_steps.get(begin, ([], []))


def exact_alerts(lake: Lake, *, ahead: bool = False) -> list[ExactAlert]:
    """`ahead`: those alone that do not look at gold."""
    alerts = map(ExactAlert, lake.conf.alerts.values())
    return [alert for alert in alerts if not (ahead and alert.looks_at_gold)]


def tick_if_due(lake: Lake, now: datetime, *, ahead: bool = False) -> bool:
    """Record a tick where time alone changes an alert by now, and all that bronze has is judged. True if one was recorded.

    `ahead`: only of alerts that do not look at gold.
    """
    instant = now.replace(microsecond=now.microsecond // 1000 * 1000)
    wall = to_micros(instant)
    newest = max_in_log(lake.table_path("bronze.events"), "bronze_batch")
    for alert in exact_alerts(lake, ahead=ahead):
        this = slices.position(lake, alert)
        is_due = this.rings_at is not None and this.rings_at <= wall and this.up_to is None and this.plan == alert.plan
        if is_due and this.after.bronze_batch == newest:
            end = replace(this.after, until=wall)
            if len(alert.step(lake, slices.carried(lake, alert, this), this.after, end, [wall]).rows):
                CLOCK.append(lake.conf.lake, [ClockTick(this.after.bronze_batch, instant)])
                return True
    return False


def _packed(carry: Carry) -> pa.Table:
    signal = carry.signal
    rows = pa.table({}) if signal.rows is None else signal.rows
    content = {"states": carry.states, "meaning": carry.meaning, "clock": replace(signal, rows=None)}
    return rows.replace_schema_metadata({name: msgspec.json.encode(value) for name, value in content.items()})


def _unpacked(carried: pa.Table | None) -> Carry:
    if carried is None:
        return Carry()
    content = {name.decode(): value for name, value in carried.schema.metadata.items()}
    states = msgspec.json.decode(content["states"], type=dict[str, State])
    if "clock" not in content:  # of a version that judged by slices of event time: it is judged anew
        return Carry(content["plan"].decode(), states)
    rows = carried.replace_schema_metadata(None) if carried.num_columns else None
    signal = Carried(**msgspec.json.decode(content["clock"]) | {"rows": rows})
    return Carry(msgspec.json.decode(content["meaning"], type=str), states, signal)
