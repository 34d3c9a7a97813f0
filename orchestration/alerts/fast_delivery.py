"""Deliver what the watch of fast alerts sees: by the stages of every alert, at once, and to the page and the command.

What a stage holds back here stays with the run, which sends it when the reason is gone; repeats are the run's as well.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from gold.alerts.states import FIRING, NORMAL, RECOVERING
from orchestration.alerts.changes import LastChange, last_change, pinned_alerts
from orchestration.alerts.firing import fast_file
from orchestration.alerts.grouping import Context, Waiting, key_of
from orchestration.alerts.notifications import Outcome
from orchestration.alerts.outbox import Outbox
from orchestration.alerts.records import silences
from orchestration.alerts.shaping import change_of
from orchestration.alerts.stages import EntityState, decide
from orchestration.conf.model import Conf
from orchestration.connectors.channels.all import channels

ENDED_FOR = timedelta(hours=1)
"""How long the end of an alert is shown, unless the run has judged it before."""


@dataclass(frozen=True)
class KeptDelivery:
    """The part that the next process goes on with: states and messages that wait, by channel. The last changes are in `fast_file`."""

    states: dict[str, dict[str, EntityState]] = field(default_factory=dict)
    queues: dict[str, list[Waiting]] = field(default_factory=dict)


class FastDelivery:
    """Not for several threads."""

    def __init__(self, conf: Conf, kept: KeptDelivery, devices: pa.Table, notify: Callable[[str], None]) -> None:
        self._conf = conf
        self._policies = {name: replace(policy, repeat_seconds=None) for name, policy in conf.notice_policies.items()}
        self._is_inhibited = any(policy.inhibited_by and conf.alerts[name].fast for name, policy in self._policies.items())
        self._states = {name: kept.states.get(name, {}) for name in conf.channels}
        self._newest, self._is_new = fast_file(conf.lake).read() or {}, True
        self.look_again(devices)
        self.outboxes = {name: Outbox(name, channel, kept.queues.get(name, []), notify) for name, channel in channels(conf).items()}

    def look_again(self, devices: pa.Table) -> None:
        """At what other processes have said: of devices, silences and other alerts."""
        rows = sorted(devices.to_pylist(), key=lambda row: row["registered_at"])  # the last declaration of each holds
        self._zones = {row["device_id"]: row["zone"] for row in rows if row["zone"]}
        self._groups = {row["device_id"]: row["groups"] or () for row in rows}
        self._silences = silences(self._conf.lake)
        pinned = pinned_alerts(self._conf.lake) if self._is_inhibited else None
        self._firing_exact = _firing((pinned.newest() if pinned else ()), self._conf)

    def take(self, rows: Iterable[Mapping[str, Any]], *, may_be_sent: bool = False) -> None:
        """Rows of ALERTS, in order of time. `may_be_sent`: by a process that was killed, so that an end does not take the place of one."""
        changes = []
        for row in rows:
            change = change_of(self._conf, row)
            changes.append(change)
            self._newest[key_of(change)] = last_change(row, self._newest.get(key_of(change)))
            self._is_new = True
        if not changes:
            return
        context = Context(datetime.now(UTC), self._zones, self._groups, self._silences, firing=self._firing())
        keys = {key_of(change) for change in changes}
        for name, states in self._states.items():
            decided, after = decide(name, self._policies, {key: states[key] for key in keys & states.keys()}, changes, context)
            for key in keys:
                states.pop(key, None)
            states |= {key: state for key, state in after.items() if state.told or state.recent}
            if sent := [replace(entry, opens=entry.opens and not may_be_sent) for entry in decided if entry.reason is None]:
                self.outboxes[name].add(sent)

    def keep(self) -> tuple[KeptDelivery, Mapping[str, list[Outcome]], dict[str, LastChange] | None]:
        """Return what to save: the state, outcomes by channel, and the last changes where they are new."""
        ended = datetime.now(UTC) - ENDED_FOR
        self._newest = {key: row for key, row in self._newest.items() if row["state"] != NORMAL or row["known_at"] > ended}
        done = {name: outbox.take_done() for name, outbox in self.outboxes.items()}
        queues = {name: outbox.waiting for name, outbox in self.outboxes.items()}
        newest, self._is_new = ({**self._newest} if self._is_new else None), False
        return KeptDelivery(self._states, queues), done, newest

    def end(self) -> None:
        for outbox in self.outboxes.values():
            outbox.end()

    def _firing(self) -> set[tuple[str, str]]:
        """Alerts and entities that fire, where one inhibits another."""
        if not self._is_inhibited:
            return set()
        seen = {(row["alert"], row["entity"]) for row in self._newest.values()}
        return _firing(self._newest.values(), self._conf) | (self._firing_exact - seen)


def _firing(rows: Iterable[LastChange], conf: Conf) -> set[tuple[str, str]]:
    return {(row["alert"], row["entity"]) for row in rows if row["state"] in {FIRING, RECOVERING} and row["alert"] in conf.alerts}
