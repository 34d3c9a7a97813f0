"""Alerts of Prometheus' Alertmanager: one for each entity, which ends when its alert is normal again.

Alertmanager tells alerts apart by their labels, and the severity is one: with each message those of other severities end. It forgets what
is not sent again within its `resolve_timeout` unless that has an end, so a firing alert ends in a year; an alert's `repeat_seconds` brings
it back after a restart of Alertmanager, which keeps alerts in memory alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestration.conf.channel_settings import AddressSettings
from orchestration.connectors.channels.channel import DIGEST, OVER, Channel, Message
from orchestration.connectors.channels.webhook import send_json
from orchestration.utc import to_iso

FIRES_FOR = timedelta(days=365)
OF_PROBLEMS = ("critical", "warning")


class AlertmanagerChannel(Channel):
    most = 500

    def __init__(self, settings: AddressSettings, severities: Mapping[str, Sequence[str]]) -> None:
        """`severities`: all that an alert may have, by its name."""
        self._settings, self._severities = settings, severities

    def send(self, messages: Sequence[Message]) -> None:
        alerts = [alert for message in messages for alert in self._alerts(message)]
        send_json(self._settings, "/api/v2/alerts", json.dumps(alerts).encode(), {})

    def _alerts(self, message: Message) -> Iterator[dict[str, Any]]:
        if message.state in {DIGEST, OVER}:  # with an end nobody would be told of it; it ends by Alertmanager's resolve_timeout
            labels = {"alertname": message.alert, "severity": message.severity, "state": message.state}
            if message.state == OVER and len(message.entities) == 1:
                labels["entity"] = message.entities[0]
            yield _alert(message, labels, None)
            return
        for entity in message.entities:
            severities = OF_PROBLEMS if message.alert.startswith("problem.") else self._severities.get(message.alert, ())
            for severity in {*severities, message.severity}:
                is_active = message.state != "normal" and severity == message.severity
                ends_at = max(datetime.now(UTC), message.changed_at) + FIRES_FOR if is_active else message.changed_at
                yield _alert(message, {"alertname": message.alert, "severity": severity, "entity": entity}, ends_at)


def _alert(message: Message, labels: dict[str, str], ends_at: datetime | None) -> dict[str, Any]:
    instants = {"known_at": message.known_at, "told_at": message.told_at, "ended_at": message.ended_at}
    facts = {"summary": message.summary, "state": message.state, "message_id": message.message_id}
    facts |= {name: to_iso(at) for name, at in instants.items() if at}
    times = {"startsAt": to_iso(message.changed_at)} | ({"endsAt": to_iso(ends_at)} if ends_at else {})
    value = {} if message.value is None else {"value": f"{message.value:.6g}"}
    return {"labels": labels, "annotations": facts | value, **times}
