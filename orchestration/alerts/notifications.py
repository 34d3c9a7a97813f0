"""Outcomes of messages about alerts: rows of ops.notifications and ops.dead_letters, and what each channel has yet to send.

A channel remembers in `channels/<name>.json` up to which version of gold.alerts it has looked. What it is about to send is written there
first, so that a process that comes after a kill sends the same messages again. Only the process that holds the lake writes here.
"""

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta

import msgspec

from gold.alerts.messages import DIGEST, Change, Message
from gold.alerts.states import NORMAL
from orchestration.alerts.changes import pinned_alerts
from orchestration.alerts.grouping import Waiting
from orchestration.alerts.stages import EntityState
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import Filters
from orchestration.storage.lake_layout import fast_alerts_folder
from orchestration.storage.log import Log, retained_since
from orchestration.storage.state_file import StateFile

SENT, FAILED, DEAD, SUPPRESSED = "sent", "failed", "dead", "suppressed"
BEFORE_KNOWN = timedelta(days=1)
"""How long before the run knows a change a message about it may be noted, as fast alerts send it first."""


@dataclass(frozen=True)
class Notification:
    """Grain: the outcome of one message by one channel, as of `at`, UTC; of a message that failed first, a later row says the end.

    `state`: sent, failed (it is tried again), dead (it is not) or suppressed. `reason`: why it was held back (stages.Reason, with what
    caused it), or the last error. `change_ids`: of the changes in the message; of one alone that is its id. `alert_ids`: of the episodes.
    """

    message_id: str
    channel: str
    state: str
    reason: str | None
    tries: int
    at: datetime
    alert: str
    alert_state: str
    severity: str
    summary: str
    entities: tuple[str, ...]
    change_ids: tuple[str, ...]
    alert_ids: tuple[str, ...] | None = None


@dataclass(frozen=True)
class DeadLetter:
    """Grain: one message that is not tried any more by one channel; `message`: as JSON."""

    message_id: str
    channel: str
    at: datetime
    message: str


NOTIFICATIONS = Log("ops.notifications", Notification, order="at")
DEAD_LETTERS = Log("ops.dead_letters", DeadLetter, order="at")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a message; `state` is one of the four. `at`: when it was handed over; None: when it is recorded. `retry_after`: for
    how many seconds the channel wants no request."""

    waiting: Waiting
    state: str
    reason: str | None = None
    at: datetime | None = None
    retry_after: float = 0.0


@dataclass(frozen=True)
class ChannelState:
    """`version` of the table `table_id`: what it has looked at. `checked_at`: the newest run of quality.results that it has looked at.

    `is_sending`: the messages are being sent, and after a kill nobody knows which have arrived. `retry_at`: until then the channel wants no
    request.
    """

    table_id: str = ""
    version: int = -1
    standings: dict[str, EntityState] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    checked_at: datetime | None = None
    is_sending: bool = False
    retry_at: datetime | None = None


@dataclass(frozen=True)
class _Left:
    """Outcomes of messages that another process has sent. `messages`: by an earlier version."""

    outcomes: list[Outcome] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


def state_file(lake: Location, channel: str) -> StateFile[ChannelState]:
    """The file of a channel, which is not there where the channel is new."""
    way_out = "Remove it: the channel then tells again what it has no row of in ops.notifications."
    return StateFile(lake / "channels" / f"{channel}.json", ChannelState, way_out)


def record(lake: Location, channel: str, outcomes: Sequence[Outcome], now: datetime) -> None:
    """One row each; a dead message is kept too."""
    dead = [outcome.waiting.message for outcome in outcomes if outcome.state == DEAD]
    letters = [DeadLetter(message.message_id, channel, now, json.dumps(asdict(message), default=str)) for message in dead]
    DEAD_LETTERS.append(lake, letters)
    NOTIFICATIONS.append(lake, [_notification(channel, outcome, now) for outcome in outcomes])


def leave_sent(lake: Location, channel: str, outcomes: Sequence[Outcome]) -> None:
    """Note what another process has sent, in a file of its own; `take_up_sent` makes rows of it.

    A commit each second would slow that process down: half of its alerts were told after 23 ms instead of 8 (measured).
    """
    _sent(_sent_folder(lake) / f"{channel}.{time.time_ns()}.json").write(_Left([*outcomes]))


def take_up_sent(lake: Location, channel: str, now: datetime) -> None:
    """A kill before the end notes some of it a second time, which changes nothing."""
    files = sorted(_sent_folder(lake).glob(f"{channel}.*.json"))
    left = [_sent(file).read() or _Left() for file in files]
    earlier = [Outcome(Waiting(message, (message.message_id,)), SENT) for content in left for message in content.messages]
    if outcomes := [*earlier, *(outcome for content in left for outcome in content.outcomes)]:
        record(lake, channel, outcomes, now)
    for file in files:
        file.delete()


def first_sent(lake: Location, alerts: Collection[str], since: datetime) -> dict[str, datetime]:
    """Return when a channel had the first message about each change and each episode of these alerts, by their ids; also what the watch has
    sent and the run has no row of yet."""
    where: Filters = [("state", "=", SENT), ("alert", "in", [*alerts]), ("at", ">=", since - BEFORE_KNOWN)]
    first: dict[str, datetime] = {}
    for row in NOTIFICATIONS.rows(lake, where) if alerts else ():
        for id in (*row.change_ids, *(row.alert_ids or ())):
            first.setdefault(id, row.at)
    for file in sorted(_sent_folder(lake).glob("*.json")) if alerts else ():
        content = _sent(file).read()  # None: the run has taken it up
        for outcome in content.outcomes if content else ():
            if outcome.state == SENT and outcome.at is not None:
                for id in (*outcome.waiting.change_ids, *outcome.waiting.message.alert_ids):
                    first.setdefault(id, outcome.at)
    return first


def finished(lake: Location, channel: str, messages: Sequence[Message]) -> set[str]:
    """Return the ids of those of these messages that are sent or dead."""
    if not messages:
        return set()
    since = min(message.known_at for message in messages) - BEFORE_KNOWN
    where = [("message_id", "in", [message.message_id for message in messages]), ("at", ">=", since)]
    return {row.message_id for row in _notifications(lake, channel, [SENT, DEAD], where)}


def dead_messages(lake: Location, channel: str) -> list[Waiting]:
    """Return the messages of ops.dead_letters that were not sent since, in the order in which they came there."""
    letters = DEAD_LETTERS.last_of_each(lake, "message_id", [("channel", "=", channel)])
    rows = _notifications(lake, channel, [SENT, DEAD], [("message_id", "in", [*letters])]) if letters else []
    changes, sent = {row.message_id: row.change_ids for row in rows}, {row.message_id for row in rows if row.state == SENT}
    unsent = [letter for letter in letters.values() if letter.message_id not in sent]
    return [Waiting(msgspec.json.decode(letter.message, type=Message), changes.get(letter.message_id, ())) for letter in unsent]


def known_changes(lake: Location, channel: str, changes: Sequence[Change], now: datetime, fast: Collection[str]) -> dict[str, bool]:
    """Return which of these changes were notified, for the stages. One from before the retained rows counts as held back. `fast`: alerts of
    which the watch may have sent a message first."""
    if not changes:
        return {}
    notified = {change.change_id: False for change in changes if change.known_at < retained_since(now)}
    since = min(change.known_at - (BEFORE_KNOWN if change.alert in fast else timedelta()) for change in changes)
    for row in _notifications(lake, channel, [SENT, DEAD, SUPPRESSED], [("at", ">=", since)]):
        is_sent = row.state != SUPPRESSED and row.alert_state != DIGEST
        notified |= {change_id: is_sent or notified.get(change_id, False) for change_id in row.change_ids}
    return notified


def retire(lake: Location, now: datetime) -> None:
    """Remove old dead letters that were sent since, and old notifications: not those of what is not normal, nor those of dead letters.

    Alerts are in gold.alerts; of data quality only the channels know what is not normal. Where the state of one is damaged, all stays.
    """
    before = retained_since(now)
    if old := DEAD_LETTERS.rows(lake, [("at", "<", before)]):
        where: Filters = [("state", "=", SENT), ("message_id", "in", [letter.message_id for letter in old])]
        sent = {(row.channel, row.message_id) for row in NOTIFICATIONS.rows(lake, where)}
        DEAD_LETTERS.retire(lake, before, lambda letter: (letter.channel, letter.message_id) not in sent)
    if not NOTIFICATIONS.reaches_back(lake, before):
        return
    unsent, pinned = {(letter.channel, letter.message_id) for letter in DEAD_LETTERS.rows(lake, [("at", "<", before)])}, pinned_alerts(lake)
    not_normal = {(row["alert"], row["entity"]) for row in (pinned.newest() if pinned else ()) if row["state"] != NORMAL}
    try:
        channels = [state_file(lake, file.stem).read() or ChannelState() for file in (lake / "channels").glob("*.json")]
    except TidemarkError:
        return
    changes = [standing.change for channel in channels for standing in channel.standings.values()]
    not_normal |= {(change.alert, change.entity) for change in changes if change.state != NORMAL}

    def is_needed(row: Notification) -> bool:
        return (row.channel, row.message_id) in unsent or any((row.alert, entity) in not_normal for entity in row.entities)

    NOTIFICATIONS.retire(lake, before, is_needed)


def tried(outcome: Outcome) -> Waiting:
    """The same message, with one try more."""
    return replace(outcome.waiting, tries=outcome.waiting.tries + 1)


def _notifications(lake: Location, channel: str, states: list[str], where: Filters) -> list[Notification]:
    return NOTIFICATIONS.rows(lake, [("channel", "=", channel), ("state", "in", states), *where])


def _notification(channel: str, outcome: Outcome, now: datetime) -> Notification:
    message, tries = outcome.waiting.message, outcome.waiting.tries + (outcome.state != SUPPRESSED)
    return Notification(
        *(message.message_id, channel, outcome.state, outcome.reason, tries, outcome.at or now),
        *(message.alert, message.state, message.severity, message.summary, message.entities, outcome.waiting.change_ids),
        message.alert_ids,
    )


def _sent_folder(lake: Location) -> Location:
    return fast_alerts_folder(lake) / "sent"


def _sent(file: Location) -> StateFile[_Left]:
    return StateFile(file, _Left, "Remove it: what fast alerts told is then told again, under the same ids.")
