"""The states of an alert once more: one entity over all of its time at once, from step to step in which something of it happens.

A step is a bronze batch or a tick. Samples of a step are heard in order of event time, older ones than what is known apart; then its clocks
ring up to where its own time has come: that of its newest sample, and how long ago that came. Instants are microseconds since 1970.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from gold.alerts.spec import DEFAULT_SUMMARY, Alert
from orchestration.audit.verify.alert_hours import MINUTE, first_end, is_within

SECOND = 1_000_000


class Sample(NamedTuple):
    """`begins`: of an interval. `lineage`: what the table says of the sample. `reason`: of an anomaly."""

    at: int
    verdict: bool | None
    value: float | None
    step: int = 0
    begins: int | None = None
    lineage: tuple[Any, ...] = (None,) * 5
    reason: str | None = None


class Change(NamedTuple):
    """A row of gold.alerts. `cause`: the sample that made it; None where time alone did."""

    state: str
    previous_state: str
    changed_at: int
    since: int
    known_at: int
    severity: str
    value: float | None
    summary: str
    alert_id: str
    is_past: bool
    reason: str | None
    cause: Sample | None


def changes(
    alert: Alert, entity: str, samples: Sequence[Sample], walls: Sequence[int], presence: Sequence[tuple[int, bool]] = ()
) -> list[Change]:
    """Return the changes of an entity. `samples`: in order of step and time. `walls`: the clock of each step. `presence`: steps at whose
    beginning it is to send, or not any more."""
    rows, watched = list[Change](), _Watched(alert, entity, walls)
    heard = [(step, 1, [*of_step]) for step, of_step in groupby(samples, lambda sample: sample.step)]
    for step, _, event in sorted([*heard, *((step, 0, is_member) for step, is_member in presence)], key=lambda event: event[:2]):
        watched.wait(step)
        if isinstance(event, list):
            watched.hear(step, event)
        elif event:
            watched.join(step)
        else:
            watched.leave(step)
            rows += watched.rows
            watched = _Watched(alert, entity, walls)
    watched.wait(len(walls))
    return [*rows, *watched.rows]


class _Shown(float):
    """A number as a summary writes it."""

    def __format__(self, form: str) -> str:
        return format(float(self), form or ".6g")


class _Nothing:
    def __format__(self, form: str) -> str:
        return "no value"


class _Watched:
    """`known`: up to which instant it is known what was; `now`: the newest sample and the clock of its step, None before there is any;
    `stirred`: its own time when it last sent something."""

    def __init__(self, alert: Alert, entity: str, walls: Sequence[int]) -> None:
        self.alert, self.entity, self.walls = alert, entity, walls
        self.rows: list[Change] = []
        self.state, self.since = "normal", 0
        self.step = 0
        self.known: int | None = None
        self.now: tuple[int, int] | None = None
        self.stirred = 0
        self.value: float | None = None
        self.why: str | None = None
        self.left_normal: int | None = None
        self.fired: int | None = None
        self.level = self.true_in_a_row = 0
        self.silent_since: int | None = None
        self.is_flapping = self.is_past = False
        self.verdict: bool | None = None
        self.flips = [False] * (alert.flapping.of if alert.flapping else 0)

    def join(self, step: int) -> None:
        if self.now is None:
            self.now, self.stirred, self.step, self.since = (self.walls[step], self.walls[step]), self.walls[step], step, self.walls[step]

    def leave(self, step: int) -> None:
        self.step = step
        if self.state != "normal" or self.is_flapping:
            at = self.since if self.known is None else max(self.since, self.known)
            self._end(at, "retired")

    def wait(self, step: int) -> None:
        """Let clocks ring in steps before this one."""
        while self.now is not None and (clocks := self._clocks()):
            seen, came = self.now
            rings_at = min(at + is_silence for at, is_silence, _ in clocks) - seen + came  # at its last instant a sample is in time
            ringing = max(bisect_left(self.walls, rings_at), self.step)
            if ringing >= step:
                return
            self.step = ringing
            self._ring(seen + self.walls[ringing] - came)

    def hear(self, step: int, samples: Sequence[Sample]) -> None:
        self.step = step
        newest = self.known
        older = [] if newest is None else [sample for sample in samples if sample.at <= newest]
        for sample in samples[len(older) :]:
            self._pass(sample.at)
            self._take(sample)
            self.known = self.stirred = sample.at
            self.now = sample.at, self.walls[step]
        if older:
            assert self.now is not None
            self.stirred = max(self.stirred, self.now[0] + self.walls[step] - self.now[1])
            apart = _Watched(self.alert, self.entity, self.walls)
            apart.is_past, apart.step = True, step
            for sample in older:
                apart._pass(sample.at)
                apart._take(sample)
            if apart.state != "normal" or apart.is_flapping:
                apart._end(older[-1].at)
            self.rows += apart.rows

    def _end(self, at: int, reason: str | None = None) -> None:
        previous, self.is_flapping = "flapping" if self.is_flapping else self.state, False
        self._write("normal", previous, at, at, self.value, None, reason)

    def _pass(self, at: int) -> None:
        """Let clocks ring up to a sample; silence is no matter of event time."""
        while due := [clock for clock in self._clocks() if not clock[1] and clock[0] <= at]:
            self._become_by_clock(*min(due))

    def _ring(self, time: int) -> None:
        """Let clocks ring up to the entity's own time; of two at one instant that of the state comes before silence."""
        while due := [clock for clock in self._clocks() if clock[0] + clock[1] <= time]:
            self._become_by_clock(*min(due))

    def _become_by_clock(self, at: int, is_silence: bool, state: str) -> None:
        since = self.since
        if is_silence:
            state, since = self._after_silence(), self.stirred if self.silent_since is None else self.since
            self.silent_since = at
            self.known = None if self.known is None else max(self.known, at)
        else:
            self.known = at if self.known is None else max(self.known, at)
        if not is_silence or state != self.state:
            self._become(state, at, since)

    def _take(self, sample: Sample) -> None:
        alert, at, verdict = self.alert, sample.at, self._counted(sample)
        is_calm = self._count_flips(verdict, sample)
        if self.silent_since is not None:
            verdict = self._break_silence(verdict, sample)
        if verdict and self.state == "pending":
            self.true_in_a_row += 1
            if self.true_in_a_row == alert.for_times:
                self._become("firing", at, self.since, sample)
        elif verdict and self.state in {"normal", "recovering"}:
            waits = self.state == "normal" and (alert.for_seconds or alert.for_times)
            self.true_in_a_row = 1
            self._become("pending" if waits else "firing", at, at, sample)
        elif verdict is False and self.state == "pending":
            self._become("normal", at, at, sample)
        elif verdict is False and self.state in {"firing", "no data"}:
            self._become("recovering" if alert.keep_firing_seconds else "normal", at, at, sample)
        if is_calm:
            self.is_flapping = False
            self._write(self.state, "flapping", at, self.since, sample.value, sample)
            if self.state == "normal":
                self.left_normal = None

    def _counted(self, sample: Sample) -> bool | None:
        """The verdict, null outside of the hours: of an interval all of it must be within."""
        hours = self.alert.hours
        if hours is None:
            return sample.verdict
        begins = sample.at - self.alert.signal.every_seconds * SECOND if sample.begins is None else sample.begins
        last = max(sample.at - 1, begins)
        return sample.verdict if all(is_within(hours, minute) for minute in range(begins // MINUTE, last // MINUTE + 1)) else None

    def _clocks(self) -> list[tuple[int, bool, str]]:
        return [*self._each_clock()]

    def _each_clock(self) -> Iterator[tuple[int, bool, str]]:
        """When, whether it is one of silence, and the next state, which silence finds out by itself."""
        alert, silence = self.alert, None if self.is_past else self.alert.no_data
        if self.state == "pending" and alert.for_seconds:
            yield from ((end, False, "firing") for end in first_end(alert.hours, self.since, alert.for_seconds))
        if self.state == "recovering":
            yield self.since + alert.keep_firing_seconds * SECOND, False, "normal"
        if self.state == "firing" and self.level < len(alert.escalate):
            assert self.fired is not None
            yield self.fired + alert.escalate[self.level].after_seconds * SECOND, False, "firing"
        if silence and self.silent_since is None and (silence.then != "fire" or self.state != "firing"):
            yield from ((end, True, "") for end in first_end(alert.hours, self.stirred, silence.after_seconds))
        if silence and self.silent_since is not None and silence.then == "resolve" and self.state == "no data":
            yield self.silent_since + (silence.after_checks - 1) * silence.after_seconds * SECOND, True, ""

    def _after_silence(self) -> str:
        silence = self.alert.no_data
        assert silence is not None
        if silence.then == "fire":
            return "firing"
        if self.state == "recovering" or (silence.then == "keep" and self.state != "normal"):
            return self.state
        is_over = silence.then == "resolve" and (self.silent_since is not None or silence.after_checks == 1)
        return "normal" if is_over else "no data"

    def _break_silence(self, verdict: bool | None, sample: Sample) -> bool | None:
        self.silent_since = None
        if self.state == "no data" and self.fired is None:
            self._become("normal", sample.at, sample.at, sample)
        elif self.state == "no data" and verdict is not False:
            self._become("firing", sample.at, sample.at, sample)
        fired_by_silence = self.state == "firing" and self.alert.no_data and self.alert.no_data.then == "fire"
        return verdict is True if fired_by_silence else verdict

    def _count_flips(self, verdict: bool | None, sample: Sample) -> bool:
        """Whether flapping is over once this sample has changed what it changes."""
        if self.alert.flapping is None:
            return False
        self.flips = [*self.flips[1:], None not in {verdict, self.verdict} and verdict != self.verdict]
        self.verdict = self.verdict if verdict is None else verdict
        share = sum(self.flips) / len(self.flips)
        if not self.is_flapping and share > self.alert.flapping.share:
            self.left_normal = sample.at if self.left_normal is None else self.left_normal
            self._write("flapping", self.state, sample.at, sample.at, sample.value, sample)
            self.is_flapping = True
        return self.is_flapping and share < self.alert.flapping.share / 2

    def _become(self, state: str, at: int, since: int, cause: Sample | None = None) -> None:
        previous, self.state, self.since = self.state, state, since
        self.left_normal = since if self.left_normal is None else self.left_normal
        self.value, self.why = (cause.value, cause.reason) if cause else (self.value, self.why)
        if state == "firing":
            self.fired = at if self.fired is None else self.fired
            self.level = sum(step.after_seconds * SECOND <= at - self.fired for step in self.alert.escalate)
        self._write(state, previous, at, since, self.value, cause)
        if state == "normal":
            self.fired, self.level = None, 0
            self.left_normal = self.left_normal if self.is_flapping else None

    def _write(  # noqa: PLR0917
        self, state: str, previous: str, at: int, since: int, value: float | None, cause: Sample | None, reason: str | None = None
    ) -> None:
        if self.is_flapping:
            return
        severity = self.alert.escalate[self.level - 1].severity if self.level else self.alert.severity
        shown = {"alert": self.alert.name, "entity": self.entity, "state": state, "severity": severity}
        why = cause.reason if cause else self.why
        summary = self.alert.summary.format(**shown, value=_Nothing() if value is None else _Shown(value), reason=why or "no reason")
        if why and self.alert.summary == DEFAULT_SUMMARY and state in {"pending", "firing"}:
            summary += f": {why}"
        alert_id = hashlib.sha256(f"{self.alert.name}/{self.left_normal}/{self.entity}".encode()).hexdigest()[:32]
        details = severity, value, summary, alert_id, self.is_past, reason, cause
        self.rows.append(Change(state, previous, at, since, self.walls[self.step], *details))
