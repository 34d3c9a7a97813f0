"""Decide which changes of alerts one channel sends, which it holds back, and why. Pure. jobs/notices.py calls it and sends.

Sent are firing, no data and flapping; normal only after one of these was sent: it is never held back, so that whoever heard of an alert
hears of its end. What is held back while it is firing is sent when the reason is gone, if it still fires then.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from gold.alerts.hours import is_within
from gold.alerts.spec import Hours, NoticePolicy
from gold.alerts.states import FIRING, FLAPPING, NO_DATA, NORMAL, RECOVERING
from gold.instants import EPOCH, to_micros

OPEN = (FIRING, NO_DATA, FLAPPING)
HOUR = timedelta(hours=1)
DIGEST = "digest"
"""The state of a message about changes that are long past."""


@dataclass(frozen=True)
class Message:
    """Changes of one alert, of one entity or of a group of them.

    `message_id`: the same for the same changes, however often they are told. `changed_at`: when the first of them was true by event time;
    `known_at`: when that was known; both UTC. `value`: of the first entity. `alert_ids`: of the episodes.
    """

    message_id: str
    alert: str
    state: str
    severity: str
    entities: tuple[str, ...]
    changed_at: datetime
    known_at: datetime
    summary: str
    value: float | None
    alert_ids: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A row of ALERTS, without its lineage."""

    alert: str
    entity: str
    state: str
    severity: str
    changed_at: datetime
    known_at: datetime
    value: float | None
    summary: str
    alert_id: str
    is_past: bool | None = None

    @property
    def change_id(self) -> str:
        return message_id(self.alert_id, self.state, self.changed_at)


@dataclass(frozen=True)
class Silence:
    """From `begins_at` until before `ends_at`, UTC, and with `hours` only in these. `alert`, `entity`: names with the wildcards * and ?."""

    silence_id: str
    alert: str
    entity: str
    begins_at: datetime
    ends_at: datetime
    hours: Hours | None = None


@dataclass
class Standing:
    """The state of one entity under one alert. `told`: state and severity that were last sent, None after normal, and `told_at` when.
    `recent`: when messages about it were sent in the last hour, normal aside. `reason`: why the change was not sent."""

    change: Change
    told: tuple[str, str] | None = None
    told_at: datetime | None = None
    recent: list[datetime] = field(default_factory=list)
    reason: str | None = None


@dataclass(frozen=True)
class Around:
    """The context of a decision. `at`: this instant. `zones`, `groups`: those of devices. `acknowledged`: ids of alerts. `sent_before`:
    changes that were sent before, by another way or before a replay; False for those that were suppressed, or part of a digest."""

    at: datetime
    zones: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    silences: Sequence[Silence] = ()
    acknowledged: Collection[str] = ()
    sent_before: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Notice:
    """A message and the changes that it tells; not to be sent where there is a `reason`."""

    message: Message
    change_ids: tuple[str, ...]
    reason: str | None = None


def notices(
    channel: str, policies: Mapping[str, NoticePolicy], standings: Mapping[str, Standing], changes: Iterable[Change], around: Around
) -> tuple[list[Notice], dict[str, Standing]]:
    """Decide what to send by a channel, and return the new states. `changes`: in order of time, each once; there may be none, since time
    alone brings repeats and ends silences."""
    changes = list(changes)
    present = [change for change in changes if not change.is_past]
    after = {key: replace(standing, recent=[*standing.recent]) for key, standing in standings.items()}
    newest = {_key(change): change for change in (*(standing.change for standing in after.values()), *present)}
    active = [change for change in newest.values() if change.state in {FIRING, RECOVERING}]
    choosing = _Choosing(channel, policies, around, active)
    for change in changes:
        if change.is_past:
            choosing.take_past(change)
    for change in present:
        standing = after.setdefault(_key(change), Standing(change))
        standing.change, standing.reason = change, None
        choosing.take(change, standing)
    for standing in after.values():
        choosing.look_again(standing)
    kept = {key: standing for key, standing in after.items() if standing.change.state != NORMAL or standing.recent}
    return [*choosing.held_back, *choosing.together()], kept


class _Choosing:
    """`active`: changes by which alerts fire now."""

    def __init__(self, channel: str, policies: Mapping[str, NoticePolicy], around: Around, active: Sequence[Change]) -> None:
        self._channel, self._policies, self._around = channel, policies, around
        self._firing = {(change.alert, change.entity) for change in active}
        in_zones = [change for change in active if change.entity in around.zones]
        self._firing_zones = {(change.alert, around.zones[change.entity]): change.entity for change in in_zones}
        self._told: list[tuple[Change, str]] = []
        self._old: dict[str, Change] = {}
        self.held_back: list[Notice] = []

    def take(self, change: Change, standing: Standing) -> None:
        """A change that is new."""
        if not self._is_news(change, standing):
            standing.told = None if change.state == NORMAL else standing.told
        elif (was_sent := self._around.sent_before.get(change.change_id)) is not None:
            if was_sent:
                self._note(change, standing)
        elif change.state == NORMAL:
            self._tell(change, change.change_id, standing)
        elif not self._is_held_back(change, change.change_id, standing):
            if self._around.at - change.changed_at > timedelta(seconds=self._policy(change).digest_older_than_seconds):
                self._old[change.change_id] = change
            else:
                self._tell(change, change.change_id, standing)

    def take_past(self, change: Change) -> None:
        """A change of an episode that was over before it was known; it is part of a digest."""
        if self._is_ours(change) and change.state in OPEN and change.change_id not in self._around.sent_before:
            self._old[change.change_id] = change

    def look_again(self, standing: Standing) -> None:
        """At what still fires and was not told, and at what is to be told again."""
        change, instant = standing.change, self._around.at
        standing.recent = [at for at in standing.recent if instant - at < HOUR]
        times = self._repeats(change, standing)
        told_id = _hash([change.change_id, str(times)]) if times else change.change_id
        if (self._is_news(change, standing) or times) and change.state in OPEN and not self._is_held_back(change, told_id, standing):
            self._old.pop(change.change_id, None)
            self._tell(change, told_id, standing)

    def _repeats(self, change: Change, standing: Standing) -> int:
        """How often it could have been told again by now; 0 where it is not due."""
        every = timedelta(seconds=self._policy(change).repeat_seconds or 0)
        is_told = standing.told == (FIRING, change.severity) and change.state == FIRING and change.alert_id not in self._around.acknowledged
        is_due = is_told and every and standing.told_at and self._around.at - standing.told_at >= every
        return max((self._around.at - change.changed_at) // every, 1) if is_due else 0

    def together(self) -> Iterator[Notice]:
        """Yield what is sent, in its order; changes of a zone or group as one message, and old ones as one for each alert."""
        by_place, by_alert = defaultdict[tuple[str | int, ...], list[tuple[Change, str]]](list), defaultdict[str, list[Change]](list)
        turns = Counter[str]()  # a second change of an entity is no part of the first message, or it would come too early
        for change, told_id in self._told:
            turns[_key(change)] += 1
            where = self._place(change) or change.entity
            by_place[change.alert, change.state, change.severity, turns[_key(change)], where].append((change, told_id))
        for together, pairs in by_place.items():
            yield _notice([change for change, _ in pairs], [told_id for _, told_id in pairs], str(together[-1]))
        for change in self._old.values():
            by_alert[change.alert].append(change)
        for old in by_alert.values():
            yield _digest(old)

    def _is_news(self, change: Change, standing: Standing) -> bool:
        if change.state == NORMAL:
            return standing.told is not None
        return self._is_ours(change) and change.state in OPEN and standing.told != (change.state, change.severity)

    def _is_ours(self, change: Change) -> bool:
        channels = self._policy(change).channels
        return channels is None or self._channel in channels

    def _is_held_back(self, change: Change, told_id: str, standing: Standing) -> bool:
        """Whether there is a reason not to tell it now; one that is new is noted."""
        reason = self._reason(change, standing)
        if reason is not None and reason != standing.reason:
            standing.reason = reason
            self.held_back.append(replace(_notice([change], [told_id], ""), reason=reason))
        return reason is not None

    def _tell(self, change: Change, told_id: str, standing: Standing) -> None:
        self._told.append((change, told_id))
        self._note(change, standing)
        if change.state != NORMAL:
            standing.recent.append(self._around.at)

    def _note(self, change: Change, standing: Standing) -> None:
        standing.told = None if change.state == NORMAL else (change.state, change.severity)
        standing.told_at, standing.reason = self._around.at, None

    def _reason(self, change: Change, standing: Standing) -> str | None:
        policy = self._policy(change)
        for silence in self._around.silences:
            if covers(silence, change.alert, change.entity, self._around.at):
                return f"silence {silence.silence_id}"
        zone = self._around.zones.get(change.entity, "")
        for other in policy.inhibited_by:
            for whom in (change.entity, *self._around.groups.get(change.entity, ())):
                if (other, whom) in self._firing:
                    return f"{other} fires for {whom}"
            if (other, zone) in self._firing_zones:
                return f"{other} fires for {self._firing_zones[other, zone]}"
        if policy.max_per_hour and len(standing.recent) >= policy.max_per_hour:
            return f"{policy.max_per_hour} messages in an hour"
        return None

    def _place(self, change: Change) -> str | None:
        match self._policy(change).group_by:
            case "zone":
                return self._around.zones.get(change.entity)
            case "group":
                return ", ".join(sorted(self._around.groups.get(change.entity, ()))) or None
        return None

    def _policy(self, change: Change) -> NoticePolicy:
        """Return the policy of an alert. The end of an alert that is not declared any more is still sent."""
        return self._policies.get(change.alert) or NoticePolicy(channels=())


def _key(change: Change) -> str:
    """An alert's name holds no slash."""
    return f"{change.alert}/{change.entity}"


def _notice(changes: Sequence[Change], ids: Sequence[str], where: str) -> Notice:
    first = changes[0]
    if len(changes) == 1:
        return Notice(_message(ids[0], first.state, changes, first.summary, first.value), tuple(ids))
    entities = ", ".join(change.entity for change in changes)
    summary = f"{first.alert}: {len(changes)} in {where} are {first.state}: {entities}"
    return Notice(_message(_hash(sorted(ids)), first.state, changes, summary, first.value), tuple(ids))


def _digest(changes: Sequence[Change]) -> Notice:
    ids = [change.change_id for change in changes]
    first, last = min(change.changed_at for change in changes), max(change.changed_at for change in changes)
    count = "once" if len(changes) == 1 else f"{len(changes)} times"
    summary = f"{changes[0].alert}: {count} between {first:%Y-%m-%d %H:%M} and {last:%Y-%m-%d %H:%M} UTC, known late; over by now"
    return Notice(_message(_hash(sorted(ids)), DIGEST, changes, summary, None), tuple(ids))


def _message(told_id: str, state: str, changes: Sequence[Change], summary: str, value: float | None) -> Message:
    first, entities = changes[0], tuple(dict.fromkeys(change.entity for change in changes))
    times = min(change.changed_at for change in changes), max(change.known_at for change in changes)
    alert_ids = tuple(dict.fromkeys(change.alert_id for change in changes))
    return Message(told_id, first.alert, state, first.severity, entities, *times, summary, value, alert_ids)


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()


def message_id(alert_id: str, state: str, changed_at: datetime) -> str:
    """Return the id of the message about one change of one entity; the same whoever makes it."""
    return _hash((alert_id, state, str(to_micros(changed_at))))


def covers(silence: Silence, alert: str, entity: str, at: datetime) -> bool:
    """Whether it holds now for an entity."""
    if not (silence.begins_at <= at < silence.ends_at and fnmatchcase(alert, silence.alert) and fnmatchcase(entity, silence.entity)):
        return False
    return silence.hours is None or is_within(silence.hours, (at - EPOCH) // timedelta(minutes=1))
