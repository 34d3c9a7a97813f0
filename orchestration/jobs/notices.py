"""One step of a channel: changes of alerts that it has not looked at become messages, and these are sent. No Spark.

Each message has one id, and is sent until the channel takes it, refuses it for good, or has failed MOST_TRIES times; then it is in
ops.dead_letters. A kill between sending and noting that sends it again, under the same id.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from gold.alerts.notices import Around, Change, notices
from gold.alerts.spec import NoticePolicy
from orchestration import crash
from orchestration.alerts.changes import COLUMNS, pinned_alerts
from orchestration.alerts.notifications import (
    DEAD,
    FAILED,
    SENT,
    SUPPRESSED,
    ChannelState,
    Outcome,
    Waiting,
    dead_messages,
    finished,
    known_changes,
    record,
    state_file,
    take_up_sent,
    tried,
)
from orchestration.alerts.records import ACKNOWLEDGEMENTS, silences
from orchestration.conf.model import Conf
from orchestration.connectors.channels.channel import Channel, RefusedError
from orchestration.errors import without_secrets
from orchestration.jobs.quality_notices import POLICIES as QUALITY_POLICIES
from orchestration.jobs.quality_notices import expectation_changes, gate_changes, table_of
from orchestration.storage import registry
from orchestration.storage.state_file import StateFile

AT_ONCE = 100
"""Messages between two notes of what was sent."""
STEP_SECONDS = 5.0
MOST_TRIES = 300
"""With the pauses of supervisor.sinks an hour and a half."""


@dataclass(frozen=True)
class Told:
    """The result of one step. `down`: why the channel could not be reached."""

    sent: int
    dead: int
    down: str | None = None


@dataclass(frozen=True)
class Topics:
    """Topics that one process tells a channel about, and where it keeps how far it is. `new_changes`: the new ones, and the state after."""

    file: StateFile[ChannelState]
    policies: Mapping[str, NoticePolicy]
    new_changes: Callable[[ChannelState], tuple[ChannelState, list[Change]]]


def tell(conf: Conf, name: str, channel: Channel, now: datetime, topics: Topics | None = None) -> Told | None:
    """Judge what is new, and send for STEP_SECONDS at most, noting every AT_ONCE messages; None where there is nothing to send.

    `topics`: of another process than the run, which tells about alerts and data quality.
    """
    topics = topics or _topics_of_run(conf, name, now)
    file, begin = topics.file, time.monotonic()
    state = _look(conf, name, topics, now)
    if not state.waiting:
        return None
    left, counts, down = [*state.waiting], Counter[str](), None
    while left and down is None and time.monotonic() - begin < STEP_SECONDS:
        outcomes = [*_send(channel, left[:AT_ONCE])]
        crash.point(crash.Point.MESSAGES_SENT)
        if noted := [outcome for outcome in outcomes if outcome.state != FAILED or not outcome.waiting.tries]:
            record(conf.lake, name, noted, now)
        left = [*(tried(outcome) for outcome in outcomes if outcome.state == FAILED), *left[len(outcomes) :]]
        counts.update(outcome.state for outcome in outcomes)
        down = next((outcome.reason for outcome in outcomes if outcome.state == FAILED), None)
    file.write(replace(state, waiting=left))
    return Told(counts[SENT], counts[DEAD], down)


def resend(conf: Conf, name: str, channel: Channel, now: datetime) -> Told:
    """Send what is in ops.dead_letters and was not sent since, once each; `dead` is how many stay there, and `down` why, of the first."""
    waiting = dead_messages(conf.lake, name)
    outcomes = [*_send(channel, waiting)]
    if sent := [outcome for outcome in outcomes if outcome.state == SENT]:
        record(conf.lake, name, sent, now)
    return Told(len(sent), len(waiting) - len(sent), next((outcome.reason for outcome in outcomes if outcome.state != SENT), None))


def _topics_of_run(conf: Conf, name: str, now: datetime) -> Topics:
    of_quality = {alert: replace(policy, channels=conf.quality.channels) for alert, policy in QUALITY_POLICIES.items()}
    policies = conf.notice_policies | of_quality
    return Topics(state_file(conf.lake, name), policies, lambda state: _new_changes(conf, name, state, now))


def _look(conf: Conf, name: str, topics: Topics, now: datetime) -> ChannelState:
    """With what is new among the messages that wait. Another table, or another history of it, is looked at from the beginning."""
    before = topics.file.read() or ChannelState()
    take_up_sent(conf.lake, name, now)
    done = finished(conf.lake, name, [entry.message for entry in before.waiting])
    state = replace(before, waiting=[entry for entry in before.waiting if entry.message.message_id not in done])
    state, changes = topics.new_changes(state)
    if changes or state.standings:
        around = _around(conf, name, state, changes, now)
        new, standings = notices(name, topics.policies, state.standings, changes, around)
        outcomes = [Outcome(Waiting(notice.message, notice.change_ids), SUPPRESSED, notice.reason) for notice in new]
        if held_back := [outcome for outcome in outcomes if outcome.reason]:
            record(conf.lake, name, held_back, now)
        waiting = [*state.waiting, *(outcome.waiting for outcome in outcomes if outcome.reason is None)]
        state = replace(state, standings=standings, waiting=waiting)
    if state != before:
        topics.file.write(state)
    return state


def _new_changes(conf: Conf, name: str, state: ChannelState, now: datetime) -> tuple[ChannelState, list[Change]]:
    """Read what has changed since `state` in gold.alerts, and in data quality where the channel is to hear of it."""
    changes: list[Change] = []
    if (pinned := pinned_alerts(conf.lake)) is not None:
        rows = pinned.since(state.version) if pinned.table_id == state.table_id and pinned.version >= state.version else None
        if rows is None:
            of_quality = {key: standing for key, standing in state.standings.items() if standing.change.alert in QUALITY_POLICIES}
            rows, state = pinned.all(), replace(state, standings=of_quality)
        changes = [Change(**{column: row[column] for column in COLUMNS}) for row in rows]
        state = replace(state, table_id=pinned.table_id, version=pinned.version)
    if name in conf.quality.channels:
        checked, checked_at = expectation_changes(conf, state.standings, state.checked_at)
        changes += [*checked, *gate_changes(conf, state.standings, now)]
        state = replace(state, checked_at=checked_at)
    return state, changes


def _around(conf: Conf, name: str, state: ChannelState, changes: Sequence[Change], now: datetime) -> Around:
    devices = registry.current(conf.lake)
    earlier = known_changes(conf.lake, name, changes, now)
    return Around(
        now,
        {device["device_id"]: device["zone"] for device in devices if device["zone"]} | table_of(state.standings, changes),
        {device["device_id"]: device["groups"] or () for device in devices},
        silences(conf.lake),
        {row.alert_id for row in ACKNOWLEDGEMENTS.rows(conf.lake)},
        earlier | {change_id: True for entry in state.waiting for change_id in entry.change_ids},
    )


def _send(channel: Channel, waiting: Sequence[Waiting]) -> Iterator[Outcome]:
    """Until the channel is down; what is behind that is not tried."""
    for begin in range(0, len(waiting), channel.most):
        together = waiting[begin : begin + channel.most]
        try:
            channel.send([entry.message for entry in together])
        except RefusedError as error:
            if len(together) > 1:  # one of them may be at fault
                for entry in together:
                    (outcome,) = _send(channel, [entry])
                    yield outcome
                    if outcome.state == FAILED:
                        return
            else:
                yield Outcome(together[0], DEAD, str(error))
        except Exception as error:
            reason = without_secrets(error)
            yield from (Outcome(entry, DEAD if entry.tries + 1 >= MOST_TRIES else FAILED, reason) for entry in together)
            return
        else:
            yield from (Outcome(entry, SENT) for entry in together)
