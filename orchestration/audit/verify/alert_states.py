"""The states of an alert once more: one entity, sample by sample and clock by clock, over all of its time at once.

A clock is what time alone changes. Of a clock and a sample at the same instant the clock is first; of two clocks that of the state comes
before silence. Instants are microseconds since 1970.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from gold.alerts.spec import Alert, Hours
from orchestration.utc import from_micros

SECOND = 1_000_000


class Sample(NamedTuple):
    """`ingested_at` and `lineage` are what the table says of the sample."""

    at: int
    verdict: bool | None
    value: float | None
    ingested_at: Any = None
    lineage: tuple[Any, ...] = (None,) * 5


class Change(NamedTuple):
    """A row of gold.alerts. `cause`: the sample that made it; None where time alone did."""

    state: str
    previous_state: str
    changed_at: int
    since: int
    severity: str
    value: float | None
    summary: str
    alert_id: str
    cause: Sample | None


def changes(alert: Alert, entity: str, samples: Sequence[Sample], until: int) -> list[Change]:
    """Return the changes of an entity with samples in order of time, all before `until`."""
    watched = _Watched(alert, entity, samples[0])
    for sample in samples:
        watched.wait(sample.at)
        watched.hear(sample)
    watched.wait(until)
    return watched.rows


class _Shown(float):
    """A number as a summary writes it."""

    def __format__(self, form: str) -> str:
        return format(float(self), form or ".6g")


class _Nothing:
    def __format__(self, form: str) -> str:
        return "no value"


class _Watched:
    def __init__(self, alert: Alert, entity: str, first: Sample) -> None:
        self.alert, self.entity = alert, entity
        self.rows: list[Change] = []
        self.state, self.since, self.heard = "normal", first.at, first.at
        self.value: float | None = None
        self.left_normal: int | None = None
        self.fired: int | None = None
        self.level = self.true_in_a_row = 0
        self.is_silent = self.is_flapping = False
        self.verdict: bool | None = None
        self.flips = [False] * (alert.flapping.of if alert.flapping else 0)

    def wait(self, until: int) -> None:
        """A sample at the last instant of the patience is in time; any other clock rings at its instant."""
        while clocks := sorted(self._clocks()):
            at, is_silence, state = clocks[0]
            if at > until or (is_silence and at == until):
                return
            if is_silence:
                state, self.is_silent = self._after_silence(), True
            if not is_silence or state != self.state:
                self._become(state, at, self.heard if is_silence else self.since)

    def hear(self, sample: Sample) -> None:
        alert, at = self.alert, sample.at
        verdict = sample.verdict if alert.hours is None or _is_within(alert.hours, at) else None
        is_calm = self._count_flips(verdict, sample)
        if self.is_silent:
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
        self.heard = at

    def _clocks(self) -> Iterator[tuple[int, bool, str]]:
        """When, whether it is one of silence, and the next state, which silence finds out by itself."""
        alert, silence = self.alert, self.alert.no_data
        if self.state == "pending" and alert.for_seconds:
            yield self.since + alert.for_seconds * SECOND, False, "firing"
        if self.state == "recovering":
            yield self.since + alert.keep_firing_seconds * SECOND, False, "normal"
        if self.state == "firing" and self.level < len(alert.escalate):
            assert self.fired is not None
            yield self.fired + alert.escalate[self.level].after_seconds * SECOND, False, "firing"
        if silence and not self.is_silent and (silence.then != "fire" or self.state != "firing"):
            yield self.heard + silence.after_seconds * SECOND, True, ""
        if silence and self.is_silent and silence.then == "resolve" and self.state == "no data":
            yield self.heard + silence.after_checks * silence.after_seconds * SECOND, True, ""

    def _after_silence(self) -> str:
        silence = self.alert.no_data
        assert silence is not None
        if silence.then == "fire":
            return "firing"
        if self.state == "recovering" or (silence.then == "keep" and self.state != "normal"):
            return self.state
        is_over = silence.then == "resolve" and (self.is_silent or silence.after_checks == 1)
        return "normal" if is_over else "no data"

    def _break_silence(self, verdict: bool | None, sample: Sample) -> bool | None:
        self.is_silent = False
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
        self.value = cause.value if cause else self.value
        if state == "firing":
            self.fired = at if self.fired is None else self.fired
            self.level = sum(step.after_seconds * SECOND <= at - self.fired for step in self.alert.escalate)
        self._write(state, previous, at, since, self.value, cause)
        if state == "normal":
            self.fired, self.level = None, 0
            self.left_normal = self.left_normal if self.is_flapping else None

    def _write(self, state: str, previous: str, at: int, since: int, value: float | None, cause: Sample | None) -> None:  # noqa: PLR0917
        if self.is_flapping:
            return
        severity = self.alert.escalate[self.level - 1].severity if self.level else self.alert.severity
        shown = {"alert": self.alert.name, "entity": self.entity, "state": state, "severity": severity}
        summary = self.alert.summary.format(**shown, value=_Nothing() if value is None else _Shown(value))
        alert_id = hashlib.sha256(f"{self.alert.name}/{self.left_normal}/{self.entity}".encode()).hexdigest()[:32]
        self.rows.append(Change(state, previous, at, since, severity, value, summary, alert_id, cause))


def _is_within(hours: Hours, at: int) -> bool:
    """Say whether an instant is within the hours. For hours that pass midnight, the part after it belongs to the day before."""
    local = from_micros(at).astimezone(ZoneInfo(hours.zone))
    minute, goes_on = local.hour * 60 + local.minute, hours.end <= hours.begin
    is_of_yesterday = goes_on and minute < hours.end
    is_in = is_of_yesterday or (minute >= hours.begin and (goes_on or minute < hours.end))
    return is_in and (local.weekday() - is_of_yesterday) % 7 in hours.days
