"""One step of a channel: changes of alerts that it has not looked at become messages, and these are sent. No Spark.

Each message has one id, and is sent until the channel takes it, refuses it for good, or has failed too often (outbox.py); then it is in
ops.dead_letters. A kill between sending and noting that sends it again, under the same id.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gold.alerts.messages import Change
from gold.alerts.spec import NoticePolicy
from orchestration import crash
from orchestration.alerts.changes import pinned_alerts
from orchestration.alerts.grouping import Context, send
from orchestration.alerts.notifications import (
    DEAD,
    FAILED,
    SENT,
    SUPPRESSED,
    ChannelState,
    Outcome,
    dead_messages,
    finished,
    known_changes,
    record,
    state_file,
    take_up_sent,
    tried,
)
from orchestration.alerts.outbox import attempt
from orchestration.alerts.quality_changes import POLICIES as QUALITY_POLICIES
from orchestration.alerts.quality_changes import expectation_changes, gate_changes, table_of
from orchestration.alerts.records import ACKNOWLEDGEMENTS, silences
from orchestration.alerts.shaping import change_of
from orchestration.alerts.stages import Reason, decide
from orchestration.conf.model import Conf
from orchestration.connectors.channels.channel import Channel
from orchestration.storage import registry
from orchestration.storage.state_file import StateFile
from orchestration.utc import to_iso

AT_ONCE = 100
"""Messages between two notes of what was sent."""
STEP_SECONDS = 5.0


@dataclass(frozen=True)
class Told:
    """The result of one step. `down`: why the channel could not be reached. `retry_after`: for how many seconds it wants no request."""

    sent: int
    dead: int
    down: str | None = None
    retry_after: float = 0.0


@dataclass(frozen=True)
class Topics:
    """The changes that one process tells a channel of, and its file. `new_changes`: what is new, and the state after it."""

    file: StateFile[ChannelState]
    policies: Mapping[str, NoticePolicy]
    new_changes: Callable[[ChannelState], tuple[ChannelState, list[Change]]]


def tell(conf: Conf, name: str, channel: Channel, now: datetime, topics: Topics | None = None) -> Told | None:
    """Judge what is new, and send for STEP_SECONDS at most, noting every AT_ONCE messages; None where there is nothing to send.

    `topics`: of another process than the run, which tells about alerts and data quality.
    """
    topics, begin = topics or _topics_of_run(conf, name, now), time.monotonic()
    before = topics.file.read() or ChannelState()
    state = _look(conf, name, topics, before, now)
    is_paused = state.retry_at is not None and now < state.retry_at
    state = replace(state, is_sending=bool(state.waiting) and not is_paused)
    if state != before:
        topics.file.write(state)
    if not state.waiting:
        return None
    if state.retry_at is not None and is_paused:
        return Told(0, 0, f"it wants no request before {to_iso(state.retry_at)}.", (state.retry_at - now).total_seconds())

    def clock() -> datetime:
        return now + timedelta(seconds=time.monotonic() - begin)

    left, counts, down = [*state.waiting], Counter[str](), None
    while left and down is None and time.monotonic() - begin < STEP_SECONDS:
        outcomes = [*attempt(channel, left[:AT_ONCE], clock)]
        crash.point(crash.Point.MESSAGES_SENT)
        if noted := [outcome for outcome in outcomes if outcome.state != FAILED or not outcome.waiting.tries]:
            record(conf.lake, name, noted, now)
        left = [*(tried(outcome) for outcome in outcomes if outcome.state == FAILED), *left[len(outcomes) :]]
        counts.update(outcome.state for outcome in outcomes)
        down = next((outcome for outcome in outcomes if outcome.state == FAILED), None)
    retry_after = down.retry_after if down else 0.0
    retry_at = clock() + timedelta(seconds=retry_after) if retry_after else None
    topics.file.write(replace(state, waiting=left, is_sending=False, retry_at=retry_at))
    return Told(counts[SENT], counts[DEAD], down.reason if down else None, retry_after)


def resend(conf: Conf, name: str, channel: Channel, now: datetime) -> Told:
    """Send what is in ops.dead_letters and was not sent since, once each; `dead` is how many stay there, and `down` why, of the first."""
    waiting, begin = dead_messages(conf.lake, name), time.monotonic()
    outcomes = [*attempt(channel, waiting, lambda: now + timedelta(seconds=time.monotonic() - begin))]
    if sent := [outcome for outcome in outcomes if outcome.state == SENT]:
        record(conf.lake, name, sent, now)
    return Told(len(sent), len(waiting) - len(sent), next((outcome.reason for outcome in outcomes if outcome.state != SENT), None))


def _topics_of_run(conf: Conf, name: str, now: datetime) -> Topics:
    of_quality = {alert: replace(policy, channels=conf.quality.channels) for alert, policy in QUALITY_POLICIES.items()}
    policies = conf.notice_policies | of_quality
    return Topics(state_file(conf.lake, name), policies, lambda state: _new_changes(conf, name, state, now))


def _look(conf: Conf, name: str, topics: Topics, before: ChannelState, now: datetime) -> ChannelState:
    """With what is new among the messages that wait. Another table, or another history of it, is looked at from the beginning."""
    take_up_sent(conf.lake, name, now)
    done = finished(conf.lake, name, [entry.message for entry in before.waiting])
    # Of what was being sent when a process was killed an end does not take the place: it may have arrived.
    waiting = [
        replace(entry, opens=entry.opens and not before.is_sending) for entry in before.waiting if entry.message.message_id not in done
    ]
    state, changes = topics.new_changes(replace(before, waiting=waiting))
    if changes or state.standings:
        context = _context(conf, name, state, changes, now)
        decided, standings = decide(name, topics.policies, state.standings, changes, context)
        if held_back := [Outcome(entry, SUPPRESSED, entry.reason) for entry in decided if entry.reason]:
            record(conf.lake, name, held_back, now)
        queue = send(state.waiting, [entry for entry in decided if not entry.reason])
        queued = {entry.message.message_id for entry in queue}
        # Their rows say that they failed, and are tried again.
        if replaced := [
            Outcome(entry, SUPPRESSED, Reason.OVER) for entry in state.waiting if entry.tries and entry.message.message_id not in queued
        ]:
            record(conf.lake, name, replaced, now)
        state = replace(state, standings=standings, waiting=queue)
    return state


def _new_changes(conf: Conf, name: str, state: ChannelState, now: datetime) -> tuple[ChannelState, list[Change]]:
    """Read what has changed since `state` in gold.alerts, and in data quality where the channel is to hear of it."""
    changes: list[Change] = []
    if (pinned := pinned_alerts(conf.lake)) is not None:
        rows = pinned.since(state.version) if pinned.table_id == state.table_id and pinned.version >= state.version else None
        if rows is None:
            of_quality = {key: standing for key, standing in state.standings.items() if standing.change.alert in QUALITY_POLICIES}
            rows, state = pinned.all(), replace(state, standings=of_quality)
        changes = [change_of(conf, row) for row in rows]
        state = replace(state, table_id=pinned.table_id, version=pinned.version)
    if name in conf.quality.channels:
        checked, checked_at = expectation_changes(conf, state.standings, state.checked_at)
        changes += [*checked, *gate_changes(conf, state.standings, now)]
        state = replace(state, checked_at=checked_at)
    return state, changes


def _context(conf: Conf, name: str, state: ChannelState, changes: Sequence[Change], now: datetime) -> Context:
    devices = registry.current(conf.lake)
    earlier = known_changes(conf.lake, name, changes, now, {alert.name for alert in conf.alerts.values() if alert.fast})
    return Context(
        now,
        {device["device_id"]: device["zone"] for device in devices if device["zone"]} | table_of(state.standings, changes),
        {device["device_id"]: device["groups"] or () for device in devices},
        silences(conf.lake),
        {row.alert_id for row in ACKNOWLEDGEMENTS.rows(conf.lake)},
        earlier | {change_id: True for entry in state.waiting for change_id in entry.change_ids},
    )
