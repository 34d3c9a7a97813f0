"""Alerts: samples with verdicts become changes of state, one row each; a state machine for each entity, in event time.

The result is the same however samples are cut into slices: a state holds all that the next slice needs. Time alone changes a state when
`until` has passed the instant; of a sample and a clock at the same instant, the clock is first.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from string import Formatter
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from gold.alerts.spec import Alert, Hours
from gold.instants import SECOND, to_micros
from gold.schema import ALERTS, SAMPLES

NEVER = 2**62
NORMAL, PENDING, FIRING, RECOVERING, NO_DATA, FLAPPING = "normal", "pending", "firing", "recovering", "no data", "flapping"
LINEAGE = ALERTS.names[-5:]


@dataclass
class State:
    """The state of one entity; JSON can hold it. Instants are in microseconds since 1970.

    `last`: its newest sample. `value`: the value of the sample that changed it last. `episode`: when it left normal. `fired`: when it
    first fired since then. `due`: when time alone changes it, if no sample does. `is_silent`: it sent nothing for longer than `no_data`
    allows. `verdict`: the last one that was not null. `changes`: a bit for each of the last samples, 1 where the verdict was another.
    """

    name: str = NORMAL
    since: int = 0
    last: int = 0
    value: float | None = None
    episode: int | None = None
    fired: int | None = None
    escalated: int = 0
    times: int = 0
    due: int = NEVER
    is_silent: bool = False
    is_flapping: bool = False
    verdict: bool | None = None
    changes: int = 0


class Judged(NamedTuple):
    """`changes`: rows of ALERTS in order of time. `states`: by entity, for the next slice."""

    changes: pa.Table
    states: dict[str, State]


def judge(alert: Alert, states: Mapping[str, State], samples: pa.Table, until: datetime) -> Judged:
    """Changes of state by the samples of one slice. `samples`: SAMPLES in order of time, none before the `until` of the slice before.
    `until`: all samples before this instant have come, none of this slice is later."""
    judging = _Judging(alert)
    after = {entity: replace(state) for entity, state in states.items()}
    quiet = {NORMAL: (False, None), FIRING: (True, None), RECOVERING: (False, None), PENDING: (None,) if alert.for_times else (True, None)}
    columns = (samples["entity"], samples["at"].cast(pa.int64()), samples["verdict"], samples["value"])
    for row, (entity, at, verdict, value) in enumerate(zip(*(column.to_pylist() for column in columns), strict=True)):
        state = after.get(entity)
        if state is None:
            state = after[entity] = State(since=at, last=at)
        is_quiet = verdict in quiet.get(state.name, ()) and at < state.due and at - state.last <= judging.patience
        # Most samples change nothing, and this is all that is done for them.
        if not is_quiet or state.is_silent or alert.flapping:
            judging.pass_time(entity, state, at)
            judging.take(entity, state, verdict if _counts(alert.hours, at) else None, _Cause(at, value, row))
        state.last = at
    end = to_micros(until)
    for entity, state in after.items():
        judging.pass_time(entity, state, end)
    return Judged(_table(alert, judging.changes, samples), after)


def ended(alert: Alert, states: Mapping[str, State], at: datetime) -> pa.Table:
    """Rows of ALERTS by which all that is not normal ends at an instant, where nobody judges it any more."""
    instant = to_micros(at)
    left = ((entity, state) for entity, state in states.items() if state.name != NORMAL)
    changes = [
        _Change(entity, NORMAL, state.name, instant, instant, alert.severity, state.value, state.episode or state.since, None)
        for entity, state in left
    ]
    return _table(alert, changes, SAMPLES.empty_table())


class _Change(NamedTuple):
    """A change of an entity. `row`: the sample that caused it; None if time alone did."""

    entity: str
    state: str
    previous: str
    at: int
    since: int
    severity: str
    value: float | None
    episode: int
    row: int | None


class _Cause(NamedTuple):
    """A sample, or time alone, for which `row` is None."""

    at: int
    value: float | None = None
    row: int | None = None


class _Judging:
    """The changes of one slice; `patience`: how long an entity may send nothing."""

    def __init__(self, alert: Alert) -> None:
        self.alert = alert
        self.patience = alert.no_data.after_seconds * SECOND if alert.no_data else NEVER
        self.changes: list[_Change] = []

    def pass_time(self, entity: str, state: State, until: int) -> None:
        """Apply the changes that time alone makes up to an instant at which the next sample may be."""
        while True:
            silence = self._silence(state)
            if state.due <= until and state.due <= silence:
                self._ring(entity, state)
            elif silence < until:  # a sample at the last instant is in time
                self._fall_silent(entity, state, silence)
            else:
                return

    def take(self, entity: str, state: State, verdict: bool | None, cause: _Cause) -> None:
        """Apply the change that a sample makes."""
        ends_flapping = self.alert.flapping is not None and self._flap(entity, state, verdict, cause)
        if state.is_silent:
            verdict = self._end_silence(entity, state, verdict, cause)
        match state.name, verdict:
            case "normal", True if self.alert.for_seconds or self.alert.for_times:
                state.times = 1
                self._become(entity, state, PENDING, cause.at, cause)
            case (("normal" | "recovering"), True):
                self._become(entity, state, FIRING, cause.at, cause)
            case "pending", True:
                state.times += 1
                if state.times == self.alert.for_times:
                    self._become(entity, state, FIRING, state.since, cause)
            case "pending", False:
                self._become(entity, state, NORMAL, cause.at, cause)
            case (("firing" | "no data"), False):
                self._become(entity, state, RECOVERING if self.alert.keep_firing_seconds else NORMAL, cause.at, cause)
        if ends_flapping:
            state.is_flapping = False
            self._write(entity, state, cause, name=state.name, previous=FLAPPING, since=state.since)

    def _ring(self, entity: str, state: State) -> None:
        name = NORMAL if state.name == RECOVERING else FIRING  # of a firing one the severity is another from now on
        self._become(entity, state, name, state.since, _Cause(state.due))

    def _silence(self, state: State) -> int:
        """When the entity has sent nothing for so long that something becomes of it."""
        no_data = self.alert.no_data
        if no_data is None or (no_data.then == "fire" and state.name == FIRING):
            return NEVER
        if state.is_silent:
            return state.last + no_data.after_checks * self.patience if (no_data.then, state.name) == ("resolve", NO_DATA) else NEVER
        return state.last + self.patience

    def _fall_silent(self, entity: str, state: State, at: int) -> None:
        assert self.alert.no_data is not None
        match self.alert.no_data.then:
            case "fire":
                name = FIRING
            case "keep":
                name = NO_DATA if state.name == NORMAL else state.name
            case _ if state.name == RECOVERING:  # which ends by itself
                name = RECOVERING
            case _:
                name = NORMAL if state.is_silent or self.alert.no_data.after_checks == 1 else NO_DATA
        state.is_silent = True
        if name != state.name:
            self._become(entity, state, name, state.last, _Cause(at))

    def _end_silence(self, entity: str, state: State, verdict: bool | None, cause: _Cause) -> bool | None:
        """The verdict of the first sample after a silence: what fired by silence alone is over unless the sample is true."""
        state.is_silent = False
        if state.name == NO_DATA and state.fired is None:
            self._become(entity, state, NORMAL, cause.at, cause)
        elif state.name == NO_DATA and verdict is not False:
            self._become(entity, state, FIRING, cause.at, cause)
        fired_by_silence = state.name == FIRING and self.alert.no_data is not None and self.alert.no_data.then == "fire"
        return bool(verdict) if fired_by_silence else verdict

    def _flap(self, entity: str, state: State, verdict: bool | None, cause: _Cause) -> bool:
        """Count the changes among the last samples. Whether flapping ends with this one."""
        assert self.alert.flapping is not None
        has_changed = verdict is not None and state.verdict is not None and verdict != state.verdict
        state.changes = (state.changes << 1 | has_changed) & ((1 << self.alert.flapping.of) - 1)
        state.verdict = state.verdict if verdict is None else verdict
        share = state.changes.bit_count() / self.alert.flapping.of
        if share > self.alert.flapping.share and not state.is_flapping:
            state.episode = cause.at if state.episode is None else state.episode
            self._write(entity, state, cause, name=FLAPPING, previous=state.name, since=cause.at)
            state.is_flapping = True
        return state.is_flapping and share < self.alert.flapping.share / 2

    def _become(self, entity: str, state: State, name: str, since: int, cause: _Cause) -> None:
        previous, state.name, state.since = state.name, name, since
        state.episode = since if state.episode is None else state.episode
        if cause.row is not None:
            state.value = cause.value
        if name == FIRING:
            state.fired = cause.at if state.fired is None else state.fired
            state.escalated = sum(step.after_seconds * SECOND <= cause.at - state.fired for step in self.alert.escalate)
        state.due = self._due(state)
        self._write(entity, state, cause._replace(value=state.value), name=name, previous=previous, since=since)

    def _due(self, state: State) -> int:
        alert = self.alert
        if state.name == PENDING and alert.for_seconds:
            return state.since + alert.for_seconds * SECOND
        if state.name == RECOVERING:
            return state.since + alert.keep_firing_seconds * SECOND
        if state.name == FIRING and state.fired is not None and state.escalated < len(alert.escalate):
            return state.fired + alert.escalate[state.escalated].after_seconds * SECOND
        return NEVER

    def _write(self, entity: str, state: State, cause: _Cause, *, name: str, previous: str, since: int) -> None:
        """Nothing while it is flapping. Back to normal, an episode is over."""
        if not state.is_flapping:
            severity = [self.alert.severity, *(step.severity for step in self.alert.escalate)][state.escalated]
            assert state.episode is not None
            self.changes.append(_Change(entity, name, previous, cause.at, since, severity, cause.value, state.episode, cause.row))
        if name == NORMAL:
            state.fired, state.escalated, state.episode = None, 0, state.episode if state.is_flapping else None


def _counts(hours: Hours | None, at: int) -> bool:
    return hours is None or is_within(hours, at // (60 * SECOND))


@lru_cache(100_000)
def is_within(hours: Hours, minute: int) -> bool:
    """Whether these hours hold in a minute, counted since 1970."""
    local = datetime.fromtimestamp(minute * 60, ZoneInfo(hours.zone))
    of_day, day = local.hour * 60 + local.minute, local.weekday()
    if hours.begin < hours.end:
        return day in hours.days and hours.begin <= of_day < hours.end
    return (day in hours.days and of_day >= hours.begin) or ((day - 1) % 7 in hours.days and of_day < hours.end)


def _table(alert: Alert, changes: Iterable[_Change], samples: pa.Table) -> pa.Table:
    rows = sorted(changes, key=lambda change: (change.at, change.entity))
    if not rows:
        return ALERTS.empty_table()
    causes = samples.take(pa.array([change.row for change in rows], pa.int64()))
    columns: dict[str, Any] = {
        name: [getattr(change, name) for change in rows] for name in ("entity", "state", "since", "severity", "value")
    }
    columns |= {
        "changed_at": [change.at for change in rows],
        "alert": [alert.name] * len(rows),
        "previous_state": [change.previous for change in rows],
        "known_at": pc.coalesce(causes["ingested_at"], pa.array([change.at for change in rows], ALERTS.field("changed_at").type)),
        "summary": [_summary(alert, change) for change in rows],
        "alert_id": [_id(alert.name, change) for change in rows],
        **{name: causes[name] for name in LINEAGE},
    }
    return pa.table({name: columns[name] for name in ALERTS.names}, ALERTS)


def _summary(alert: Alert, change: _Change) -> str:
    values = {"alert": alert.name, "entity": change.entity, "state": change.state, "severity": change.severity}
    shown = (
        text + ("" if name is None else format(values[name], form or "") if name in values else _number(change.value, form))
        for text, name, form, _ in Formatter().parse(alert.summary)
    )
    return "".join(shown)


def _number(value: float | None, form: str | None) -> str:
    return "no value" if value is None else format(value, form or ".6g")


def _id(alert: str, change: _Change) -> str:
    """An alert's name holds no slash."""
    return hashlib.sha256(f"{alert}/{change.episode}/{change.entity}".encode()).hexdigest()[:32]
