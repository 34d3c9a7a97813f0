"""Alerts: samples with verdicts become changes of state, one row each; a state machine for each entity.

Samples come in steps: a bronze batch, or a tick of the clock behind one. The result is the same however steps are cut into slices: a state
holds all that the next slice needs. Within a step an entity is judged in order of event time. Then comes its clock: the event time of its
newest sample plus the wall time since that came. Of a sample and a clock at the same instant, the clock is first.

A sample that is not newer than the newest judged instant of its entity changes no present state. Such samples of a step are judged by
themselves, and what is open at the last of them ends there.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import pyarrow as pa

from gold.alerts.changes import Cause, Change, causes_of, severity_of, table_of
from gold.alerts.hours import NEVER, first_end
from gold.alerts.spec import Alert
from gold.instants import SECOND

NORMAL, PENDING, FIRING, RECOVERING, NO_DATA, FLAPPING = "normal", "pending", "firing", "recovering", "no data", "flapping"


@dataclass
class State:
    """The state of one entity; JSON can hold it. Instants are in microseconds since 1970.

    `last`: its newest judged instant, that of a sample or of a change by the clock. `seen`: the event time of its newest sample, and `came`
    the wall clock of the step with it. `quiet`: its clock when it sent something last. `value`, `reason`: of the sample that changed it
    last. `episode`: when it left normal. `fired`: when it first fired since then. `due`: when time alone changes it, if no sample does.
    `silent`: since when it has sent nothing for longer than `no_data` allows. `verdict`: the last one that was not null. `changes`: a bit
    for each of the last samples, 1 where the verdict was another.
    """

    name: str = NORMAL
    since: int = 0
    last: int = -NEVER
    seen: int = 0
    came: int = 0
    quiet: int = 0
    value: float | None = None
    episode: int | None = None
    fired: int | None = None
    escalated: int = 0
    times: int = 0
    due: int = NEVER
    silent: int | None = None
    is_flapping: bool = False
    verdict: bool | None = None
    changes: int = 0
    reason: str | None = None


class Judged(NamedTuple):
    """`changes`: rows of ALERTS. `states`: by entity, for the next slice. `rings_at`: the wall clock at which time alone changes one."""

    changes: pa.Table
    states: dict[str, State]
    rings_at: int | None


def judge(alert: Alert, states: Mapping[str, State], samples: pa.Table, walls: Sequence[int]) -> Judged:
    """Changes of state in the steps of a slice. `samples`: SAMPLES in order of step, entity and time. `walls`: the wall clock of each step,
    in microseconds since 1970, never before the one before."""
    judging = _Judging(alert, {entity: replace(state) for entity, state in states.items()})
    in_step = Counter(samples["step"].to_pylist())
    begin = 0
    for step, wall in enumerate(walls):
        judging.take_step(samples.slice(begin, in_step[step]), begin, wall)
        begin += in_step[step]
    return Judged(table_of(alert, judging.changes, samples), judging.states, judging.rings_at)


class _Judging:
    """The states and changes of one slice. `_rings`: entities by the wall clock at which each may change, `_armed` the same by entity."""

    def __init__(self, alert: Alert, states: dict[str, State]) -> None:
        self.alert, self.states = alert, states
        self.changes: list[Change] = []
        self._wall, self._is_past = 0, False
        self._may_be_quiet = {
            NORMAL: (False, None),
            FIRING: (True, None),
            RECOVERING: (False, None),
            PENDING: (None,) if alert.for_times else (True, None),
        }
        self._has_clock = bool(alert.for_seconds or alert.keep_firing_seconds or alert.escalate or alert.no_data)
        self._armed = {entity: at for entity, state in states.items() if (at := self._rings_at(state)) < NEVER}
        self._rings = [(at, entity) for entity, at in self._armed.items()]
        heapify(self._rings)

    @property
    def rings_at(self) -> int | None:
        return min((at for state in self.states.values() if (at := self._rings_at(state)) < NEVER), default=None)

    def take_step(self, samples: pa.Table, first_row: int, wall: int) -> None:
        """Samples of a step first, then the clocks of all entities."""
        self._wall = wall
        rows = causes_of(self.alert, samples, first_row, self._last) if len(samples) else []
        past: dict[str, list[Cause]] = defaultdict(list)
        for entity, cause in rows:
            state = self.states.get(entity)
            if state is None:
                state = self.states[entity] = State(since=cause.at)
            if cause.at <= state.last:
                past[entity].append(cause)
            else:
                self._take_newest(entity, state, cause)
        for entity, causes in past.items():
            state = self.states[entity]
            state.quiet = max(state.quiet, state.seen + wall - state.came)
            self._judge_past(entity, causes)
        if self._has_clock:
            for entity in dict.fromkeys(entity for entity, _ in rows):
                self._arm(entity)
            while self._rings and self._rings[0][0] <= wall:
                self._ring_by_wall(*heappop(self._rings))

    def _last(self, entity: str) -> int:
        return self.states[entity].last if entity in self.states else -NEVER

    def _take_newest(self, entity: str, state: State, cause: Cause) -> None:
        is_quiet = cause.verdict in self._may_be_quiet.get(state.name, ()) and cause.at < state.due
        # Most samples change nothing, and this is all that is done for them.
        if not is_quiet or state.silent is not None or self.alert.flapping:
            self._pass_time(entity, state, cause.at)
            self._take(entity, state, cause)
        state.last = state.seen = state.quiet = cause.at
        state.came = self._wall

    def _judge_past(self, entity: str, causes: Sequence[Cause]) -> None:
        self._is_past, state = True, State(since=causes[0].at)
        for cause in causes:
            self._pass_time(entity, state, cause.at)
            self._take(entity, state, cause)
        if state.is_flapping:
            state.is_flapping, state.name = False, FLAPPING
        if state.name != NORMAL:
            self._become(entity, state, NORMAL, causes[-1].at, Cause(causes[-1].at))
        self._is_past = False

    def _arm(self, entity: str) -> None:
        at = self._rings_at(self.states[entity])
        if at < self._armed.get(entity, NEVER):
            self._armed[entity] = at
            heappush(self._rings, (at, entity))

    def _ring_by_wall(self, armed: int, entity: str) -> None:
        """Apply the changes that the clock of an entity makes; it may have been put off since it was armed."""
        if self._armed.get(entity) != armed:
            return
        del self._armed[entity]
        state = self.states[entity]
        clock = state.seen + self._wall - state.came
        while (silence := self._silence(state)) < clock or state.due <= clock:
            if state.due <= min(silence, clock):
                self._ring(entity, state)
            else:
                self._fall_silent(entity, state, silence)
        self._arm(entity)

    def _rings_at(self, state: State) -> int:
        """Return the wall clock at which time alone changes an entity; in time is what comes at the last instant of its patience."""
        at = min(state.due, self._silence(state) + 1)
        return NEVER if at >= NEVER else state.came + at - state.seen

    def _pass_time(self, entity: str, state: State, at: int) -> None:
        """Apply the changes that the clock makes up to a sample; whether the entity was silent, arrival says and not event time."""
        while state.due <= at:
            self._ring(entity, state)

    def _take(self, entity: str, state: State, cause: Cause) -> None:
        """Apply the change that a sample makes."""
        verdict = cause.verdict
        ends_flapping = self.alert.flapping is not None and self._flap(entity, state, cause)
        if state.silent is not None:
            verdict = self._end_silence(entity, state, cause)
        match state.name, verdict:
            case "normal", True if self.alert.for_seconds or self.alert.for_times:
                state.times = 1
                self._become(entity, state, PENDING, cause.at, cause)
            case (("normal" | "recovering"), True):
                self._become(entity, state, FIRING, cause.at, cause)
            case "pending", True if self.alert.for_times:
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
        state.last = max(state.last, state.due)
        self._become(entity, state, name, state.since, Cause(state.due))

    def _silence(self, state: State) -> int:
        """Return when the entity has sent nothing for so long that something becomes of it."""
        no_data = self.alert.no_data
        if no_data is None or (no_data.then == "fire" and state.name == FIRING):
            return NEVER
        if state.silent is None:
            return first_end(self.alert.hours, state.quiet, no_data.after_seconds * SECOND)
        if (no_data.then, state.name) == ("resolve", NO_DATA):
            return state.silent + (no_data.after_checks - 1) * no_data.after_seconds * SECOND
        return NEVER

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
                name = NORMAL if state.silent is not None or self.alert.no_data.after_checks == 1 else NO_DATA
        since = state.quiet if state.silent is None else state.since
        state.silent = at
        if state.last > -NEVER:  # what an entity that never sent anything sends first is its present, however old
            state.last = max(state.last, at)
        if name != state.name:
            self._become(entity, state, name, since, Cause(at))

    def _end_silence(self, entity: str, state: State, cause: Cause) -> bool | None:
        """Return the verdict of the first sample after a silence: what fired by silence alone is over unless the sample is true."""
        state.silent = None
        if state.name == NO_DATA and state.fired is None:
            self._become(entity, state, NORMAL, cause.at, cause)
        elif state.name == NO_DATA and cause.verdict is not False:
            self._become(entity, state, FIRING, cause.at, cause)
        fired_by_silence = state.name == FIRING and self.alert.no_data is not None and self.alert.no_data.then == "fire"
        return bool(cause.verdict) if fired_by_silence else cause.verdict

    def _flap(self, entity: str, state: State, cause: Cause) -> bool:
        """Count the changes among the last samples. Whether flapping ends with this one."""
        assert self.alert.flapping is not None
        verdict = cause.verdict
        has_changed = verdict is not None and state.verdict is not None and verdict != state.verdict
        state.changes = (state.changes << 1 | has_changed) & ((1 << self.alert.flapping.of) - 1)
        state.verdict = state.verdict if verdict is None else verdict
        share = state.changes.bit_count() / self.alert.flapping.of
        if share > self.alert.flapping.share and not state.is_flapping:
            state.episode = cause.at if state.episode is None else state.episode
            self._write(entity, state, cause, name=FLAPPING, previous=state.name, since=cause.at)
            state.is_flapping = True
        return state.is_flapping and share < self.alert.flapping.share / 2

    def _become(self, entity: str, state: State, name: str, since: int, cause: Cause) -> None:
        previous, state.name, state.since = state.name, name, since
        state.episode = since if state.episode is None else state.episode
        if cause.row is not None:
            state.value, state.reason = cause.value, cause.reason
        if name == FIRING:
            state.fired = cause.at if state.fired is None else state.fired
            state.escalated = sum(step.after_seconds * SECOND <= cause.at - state.fired for step in self.alert.escalate)
        state.due = self._due(state)
        self._write(entity, state, cause._replace(value=state.value, reason=state.reason), name=name, previous=previous, since=since)

    def _due(self, state: State) -> int:
        alert = self.alert
        if state.name == PENDING and alert.for_seconds:
            return first_end(alert.hours, state.since, alert.for_seconds * SECOND)
        if state.name == RECOVERING:
            return state.since + alert.keep_firing_seconds * SECOND
        if state.name == FIRING and state.fired is not None and state.escalated < len(alert.escalate):
            return state.fired + alert.escalate[state.escalated].after_seconds * SECOND
        return NEVER

    def _write(self, entity: str, state: State, cause: Cause, *, name: str, previous: str, since: int) -> None:
        """Nothing while it is flapping. Back to normal, an episode is over."""
        if not state.is_flapping:
            assert state.episode is not None
            severity = severity_of(self.alert, state.escalated)
            shown = entity, name, previous, cause.at, since, self._wall, severity, cause.value, state.episode
            self.changes.append(Change(*shown, cause.row, self._is_past, of_anomaly=cause.reason))
        if name == NORMAL:
            state.fired, state.escalated, state.episode = None, 0, state.episode if state.is_flapping else None
