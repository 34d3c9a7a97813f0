"""Make messages of the changes that are sent: the stages group and send (stages.py). Pure.

group  makes one message of what changed at once in a zone or group, and a digest of what is long past
send   queues messages; an alert that began and ended while it waited becomes one message
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gold.alerts.messages import DIGEST, OVER, Change, Message, Silence, joint_id
from gold.alerts.spec import NoticePolicy
from gold.alerts.states import FIRING, FLAPPING, NO_DATA, NORMAL

OPEN = (FIRING, NO_DATA, FLAPPING)


@dataclass(frozen=True)
class Context:
    """The context of a decision. `at`: this instant. `zones`, `groups`: those of devices. `acknowledged`: ids of alerts. `sent_before`:
    changes that were sent before, by another way or before a replay; False for those that were suppressed, or part of a digest.
    `firing`: alerts and entities that fire, beside those whose states are given; `firing_zones`: an entity of each alert and zone."""

    at: datetime
    zones: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    silences: Sequence[Silence] = ()
    acknowledged: Collection[str] = ()
    sent_before: Mapping[str, bool] = field(default_factory=dict)
    firing: Collection[tuple[str, str]] = ()
    firing_zones: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Waiting:
    """A message, and the changes that it tells. `reason`: why it is not sent. `opens`: its episodes have had no message before."""

    message: Message
    change_ids: tuple[str, ...]
    tries: int = 0
    reason: str | None = None
    opens: bool = False


def group(chosen: Iterable[Waiting], policies: Mapping[str, NoticePolicy], context: Context) -> Iterator[Waiting]:
    """Yield messages about one change each in order; those of a zone or group as one."""
    together = defaultdict[tuple[str | int, ...], list[Waiting]](list)
    turns = Counter[tuple[str, str]]()  # a second change of an entity is no part of the first message, or it would come too early
    for entry in chosen:
        message, (entity,) = entry.message, entry.message.entities
        turns[message.alert, entity] += 1
        where = _group_of(entity, policy_of(message, policies), context) or entity
        together[message.alert, message.state, message.severity, turns[message.alert, entity], where].append(entry)
    for key, several in together.items():
        yield several[0] if len(several) == 1 else _joined(several, str(key[-1]))


def digests(changes: Iterable[Change]) -> Iterator[Waiting]:
    """Yield one message for each alert."""
    by_alert = defaultdict[str, list[Change]](list)
    for change in changes:
        by_alert[change.alert].append(change)
    for alert, several in by_alert.items():
        ids = [change.change_id for change in several]
        first, last = min(change.changed_at for change in several), max(change.changed_at for change in several)
        count = "once" if len(several) == 1 else f"{len(several)} times"
        summary = f"{alert}: {count} between {first:%Y-%m-%d %H:%M} and {last:%Y-%m-%d %H:%M} UTC, known late; over by now"
        yield Waiting(_message(joint_id(sorted(ids)), DIGEST, several, summary, None), tuple(ids))


def send(waiting: Sequence[Waiting], new: Iterable[Waiting]) -> list[Waiting]:
    """Queue new messages behind those that wait. Where an end comes before anything of its episode was sent, one message says both."""
    queue: list[Waiting | None] = [*waiting]
    by_episode = defaultdict[str, list[int]](list)
    for number, entry in enumerate(waiting):
        for alert_id in entry.message.alert_ids:
            by_episode[alert_id].append(number)
    for entry in new:
        unsent = _unsent(queue, by_episode, entry) if entry.message.state == NORMAL else []
        for number, _ in unsent:
            queue[number] = None
        for alert_id in entry.message.alert_ids:
            by_episode[alert_id].append(len(queue))
        queue.append(_over([waited for _, waited in unsent], entry) if unsent else entry)
    return [entry for entry in queue if entry is not None]


def _unsent(queue: Sequence[Waiting | None], by_episode: Mapping[str, Sequence[int]], end: Waiting) -> list[tuple[int, Waiting]]:
    """Return the messages of the same episodes that wait, with their numbers; none where something of them was sent."""
    numbers = sorted({number for alert_id in end.message.alert_ids for number in by_episode.get(alert_id, ())})
    waiting = [(number, entry) for number in numbers if (entry := queue[number]) is not None]
    ended = [n for n, (_, entry) in enumerate(waiting) if entry.message.state not in OPEN]
    last = waiting[ended[-1] + 1 :] if ended else waiting
    episodes = {*end.message.alert_ids}
    return last if last and last[0][1].opens and all({*entry.message.alert_ids} == episodes for _, entry in last) else []


def _over(opened: Sequence[Waiting], end: Waiting) -> Waiting:
    first, last, ended_at = opened[0].message, opened[-1].message, end.message.changed_at
    ids = tuple(id for entry in (*opened, end) for id in entry.change_ids)
    summary = f"was true from {first.changed_at:%Y-%m-%d %H:%M:%S} to {ended_at:%Y-%m-%d %H:%M:%S} UTC: {first.summary}"
    named = replace(first, message_id=joint_id(sorted(ids)), state=OVER, severity=last.severity, summary=summary)
    return Waiting(replace(named, known_at=end.message.known_at, ended_at=ended_at), ids)


def key_of(change: Change) -> str:
    """An alert's name holds no slash."""
    return f"{change.alert}/{change.entity}"


def policy_of(about: Change | Message, policies: Mapping[str, NoticePolicy]) -> NoticePolicy:
    """Return the policy of an alert. The end of an alert that is not declared any more is still sent."""
    return policies.get(about.alert) or NoticePolicy(channels=())


def _group_of(entity: str, policy: NoticePolicy, context: Context) -> str | None:
    match policy.group_by:
        case "zone":
            return context.zones.get(entity)
        case "group":
            return ", ".join(sorted(context.groups.get(entity, ()))) or None
    return None


def _joined(several: Sequence[Waiting], where: str) -> Waiting:
    messages, ids = [entry.message for entry in several], tuple(id for entry in several for id in entry.change_ids)
    first, entities = messages[0], [entity for message in messages for entity in message.entities]
    joined = replace(
        first,
        message_id=joint_id(sorted(ids)),
        entities=tuple(entities),
        changed_at=min(message.changed_at for message in messages),
        known_at=max(message.known_at for message in messages),
        summary=f"{first.alert}: {len(entities)} in {where} are {first.state}: {', '.join(entities)}",
        alert_ids=tuple(id for message in messages for id in message.alert_ids),
    )
    return Waiting(joined, ids, opens=all(entry.opens for entry in several))


def single(change: Change, id: str) -> Waiting:
    """Return the message about one change."""
    return Waiting(_message(id, change.state, [change], change.summary, change.value), (id,))


def _message(id: str, state: str, changes: Sequence[Change], summary: str, value: float | None) -> Message:
    first, entities = changes[0], tuple(dict.fromkeys(change.entity for change in changes))
    times = min(change.changed_at for change in changes), max(change.known_at for change in changes)
    alert_ids = tuple(dict.fromkeys(change.alert_id for change in changes))
    return Message(id, first.alert, state, first.severity, entities, *times, summary, value, alert_ids)
