"""Decide what one channel is sent about alerts. Pure: changes in, messages out. The stages, in their order:

inhibit, silence, limit   hold a change back that fires, each with its Reason; it is sent when the reason is gone, if it still fires then
deduplicate               passes over what ops.notifications says the channel has had, from fast alerts or before a replay
group, send               make the messages and queue them (grouping.py)

Sent are firing, no data and flapping; normal only after one of these was sent: it is never held back, so that whoever heard of an alert
hears of its end. Exact alerts (delivery.py) and fast ones (watch.py) go through the same stages.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from gold.alerts.messages import Change, joint_id
from gold.alerts.spec import NoticePolicy
from gold.alerts.states import FIRING, NORMAL, RECOVERING
from orchestration.alerts.grouping import OPEN, Context, Waiting, digests, group, key_of, policy_of, single

HOUR = timedelta(hours=1)


class Reason(StrEnum):
    """Why a message is not sent now. ops.notifications has it as `reason`, with what caused it."""

    INHIBITED = "inhibited"
    """Another alert fires for the entity, for a group of it, or in its zone, and says enough."""
    SILENCED = "silenced"
    """Somebody wants no messages about it for a while."""
    LIMITED = "limited"
    """The entity has had its messages of this hour."""
    OVER = "over"
    """The alert ended before the message could be sent; one about begin and end takes its place."""


@dataclass
class EntityState:
    """The state of one entity under one alert. `told`: state and severity that were last sent, None after normal, and `told_at` when.
    `recent`: when messages about it were sent in the last hour, normal aside. `reason`: why the change was not sent."""

    change: Change
    told: tuple[str, str] | None = None
    told_at: datetime | None = None
    recent: list[datetime] = field(default_factory=list)
    reason: str | None = None


def decide(
    channel: str, policies: Mapping[str, NoticePolicy], states: Mapping[str, EntityState], changes: Iterable[Change], context: Context
) -> tuple[list[Waiting], dict[str, EntityState]]:
    """Decide what to send by a channel, and return the new states. `changes`: in order of time, each once; there may be none, since time
    alone brings repeats and ends silences."""
    changes = list(changes)
    present = [change for change in changes if not change.is_past]
    after = {key: replace(state, recent=[*state.recent]) for key, state in states.items()}
    newest = {key_of(change): change for change in (*(state.change for state in after.values()), *present)}
    firing = {(change.alert, change.entity) for change in newest.values() if change.state in {FIRING, RECOVERING}}
    firing |= {*context.firing}
    zones = {(alert, context.zones[entity]): entity for alert, entity in firing if entity in context.zones}
    deciding = _Deciding(channel, policies, replace(context, firing=firing, firing_zones=zones))
    for change in changes:
        if change.is_past:
            deciding.take_past(change)
    for change in present:
        state = after.setdefault(key_of(change), EntityState(change))
        state.change, state.reason = change, None
        deciding.take(change, state)
    for state in after.values():
        deciding.look_again(state)
    kept = {key: state for key, state in after.items() if state.change.state != NORMAL or state.recent}
    return [*deciding.held_back, *group(deciding.chosen, policies, context), *digests(deciding.old.values())], kept


class _Deciding:
    def __init__(self, channel: str, policies: Mapping[str, NoticePolicy], context: Context) -> None:
        self._channel, self._policies, self._context = channel, policies, context
        self.chosen: list[Waiting] = []
        self.old: dict[str, Change] = {}
        self.held_back: list[Waiting] = []

    def take(self, change: Change, state: EntityState) -> None:
        """A change that is new."""
        if not self._is_news(change, state):
            state.told = None if change.state == NORMAL else state.told
        elif (was_sent := deduplicate(change, self._context)) is not None:
            if was_sent:
                self._note(change, state)
        elif change.state == NORMAL:
            self._choose(change, change.change_id, state)
        elif not self._is_held_back(change, change.change_id, state):
            if self._context.at - change.changed_at > timedelta(seconds=policy_of(change, self._policies).digest_older_than_seconds):
                self.old[change.change_id] = change
            else:
                self._choose(change, change.change_id, state)

    def take_past(self, change: Change) -> None:
        """A change of an episode that was over before it was known; it is part of a digest."""
        if self._is_ours(change) and change.state in OPEN and deduplicate(change, self._context) is None:
            self.old[change.change_id] = change

    def look_again(self, state: EntityState) -> None:
        """At what still fires and was not sent, and at what is to be sent again."""
        change, instant = state.change, self._context.at
        state.recent = [at for at in state.recent if instant - at < HOUR]
        times = self._repeats(change, state)
        id = joint_id([change.change_id, str(times)]) if times else change.change_id
        if (self._is_news(change, state) or times) and change.state in OPEN and not self._is_held_back(change, id, state):
            self.old.pop(change.change_id, None)
            self._choose(change, id, state)

    def _repeats(self, change: Change, state: EntityState) -> int:
        """How often it could have been sent again by now; 0 where it is not due."""
        every = timedelta(seconds=policy_of(change, self._policies).repeat_seconds or 0)
        is_sent = state.told == (FIRING, change.severity) and change.state == FIRING and change.alert_id not in self._context.acknowledged
        is_due = is_sent and every and state.told_at and self._context.at - state.told_at >= every
        return max((self._context.at - change.changed_at) // every, 1) if is_due else 0

    def _is_news(self, change: Change, state: EntityState) -> bool:
        if change.state == NORMAL:
            return state.told is not None
        return self._is_ours(change) and change.state in OPEN and state.told != (change.state, change.severity)

    def _is_ours(self, change: Change) -> bool:
        channels = policy_of(change, self._policies).channels
        return channels is None or self._channel in channels

    def _is_held_back(self, change: Change, id: str, state: EntityState) -> bool:
        """Whether there is a reason not to send it now; one that is new is noted."""
        policy = policy_of(change, self._policies)
        causes = ((reason, stage(change, policy, self._context, state)) for reason, stage in HOLDING.items())
        reason = next((f"{reason}: {cause}" for reason, cause in causes if cause is not None), None)
        if reason is not None and reason != state.reason:
            state.reason = reason
            self.held_back.append(replace(single(change, id), reason=reason))
        return reason is not None

    def _choose(self, change: Change, id: str, state: EntityState) -> None:
        self.chosen.append(replace(single(change, id), opens=change.state in OPEN and state.told is None))
        self._note(change, state)
        if change.state != NORMAL:
            state.recent.append(self._context.at)

    def _note(self, change: Change, state: EntityState) -> None:
        state.told = None if change.state == NORMAL else (change.state, change.severity)
        state.told_at, state.reason = self._context.at, None


def inhibit(change: Change, policy: NoticePolicy, context: Context, _: EntityState) -> str | None:
    """Return which alert fires, of those that inhibit this one: for the entity, for a group of it, or for a device of its zone."""
    zone = context.zones.get(change.entity)
    for other in policy.inhibited_by:
        for entity in (change.entity, *context.groups.get(change.entity, ())):
            if (other, entity) in context.firing:
                return f"{other} fires for {entity}"
        if zone is not None and (other, zone) in context.firing_zones:
            return f"{other} fires for {context.firing_zones[other, zone]}"
    return None


def silence(change: Change, _: NoticePolicy, context: Context, __: EntityState) -> str | None:
    """Return the silence that covers the entity now."""
    covering = (silence for silence in context.silences if silence.covers(change.alert, change.entity, context.at))
    return next((f"silence {silence.silence_id}" for silence in covering), None)


def limit(_: Change, policy: NoticePolicy, __: Context, state: EntityState) -> str | None:
    """Return the bound that the messages of this hour have come to."""
    is_reached = policy.max_per_hour and len(state.recent) >= policy.max_per_hour
    return f"{policy.max_per_hour} messages in an hour" if is_reached else None


HOLDING: dict[Reason, Callable[[Change, NoticePolicy, Context, EntityState], str | None]] = {
    Reason.INHIBITED: inhibit,
    Reason.SILENCED: silence,
    Reason.LIMITED: limit,
}


def deduplicate(change: Change, context: Context) -> bool | None:
    """Return whether the channel was sent this change before, False for one that was held back or in a digest; None for a new one."""
    return context.sent_before.get(change.change_id)
