"""Messages about alerts for people and other systems: one for a change of one entity, or for changes of several at once."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from gold.instants import to_micros

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


def message_id(alert_id: str, state: str, changed_at: datetime) -> str:
    """Return the id of the message about one change of one entity; the same whoever makes it."""
    return hashlib.sha256(f"{alert_id}/{state}/{to_micros(changed_at)}".encode()).hexdigest()
