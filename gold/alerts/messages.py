"""Messages about alerts, and what they are made of: changes of state, and silences of people."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from gold.alerts.hours import is_within
from gold.alerts.spec import Hours
from gold.instants import EPOCH, to_micros

DIGEST, OVER = "digest", "over"
"""States of messages alone: about changes that are long past, and about an alert that began and ended before it could be sent."""


@dataclass(frozen=True)
class Message:
    """Changes of one alert, of one entity or of a group of them. Instants in UTC.

    `message_id`: the same for the same changes, however often they are sent. `changed_at`: when the first of them was true by event time;
    `known_at`: when the last of them was known; `told_at`: when the channel is handed it, None before. `ended_at`: of what is over already.
    `value`: of the first entity. `alert_ids`: of the episodes.
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
    told_at: datetime | None = None
    ended_at: datetime | None = None


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

    def covers(self, alert: str, entity: str, at: datetime) -> bool:
        """Whether it holds at an instant for an entity."""
        if not (self.begins_at <= at < self.ends_at and fnmatchcase(alert, self.alert) and fnmatchcase(entity, self.entity)):
            return False
        return self.hours is None or is_within(self.hours, (at - EPOCH) // timedelta(minutes=1))


def message_id(alert_id: str, state: str, changed_at: datetime) -> str:
    """Return the id of the message about one change of one entity; the same whoever makes it."""
    return joint_id((alert_id, state, str(to_micros(changed_at))))


def joint_id(parts: Iterable[str]) -> str:
    """Return one id for several parts; for ids of changes give them in order."""
    return hashlib.sha256("/".join(parts).encode()).hexdigest()
