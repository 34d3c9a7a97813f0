"""Silences: spans of time in which nothing is told of some alerts, once or in hours of a week that come again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from gold.alert_spec import Hours
from gold.alerts import is_within
from gold.instants import EPOCH


@dataclass(frozen=True)
class Silence:
    """From `begins_at` until before `ends_at`, UTC, and with `hours` only in these. `alert`, `entity`: names with the wildcards * and ?."""

    silence_id: str
    alert: str
    entity: str
    begins_at: datetime
    ends_at: datetime
    hours: Hours | None = None


def covers(silence: Silence, alert: str, entity: str, at: datetime) -> bool:
    """Whether it holds now for an entity."""
    if not (silence.begins_at <= at < silence.ends_at and fnmatchcase(alert, silence.alert) and fnmatchcase(entity, silence.entity)):
        return False
    return silence.hours is None or is_within(silence.hours, (at - EPOCH) // timedelta(minutes=1))
