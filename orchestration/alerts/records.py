"""Acknowledgements and silences: what people say of alerts. Any process may write them; instants in UTC."""

from dataclasses import dataclass
from datetime import datetime

from gold.alerts.messages import Silence
from orchestration.location import Location
from orchestration.storage.log import Log


@dataclass(frozen=True)
class Acknowledgement:
    """Grain: one acknowledgement of one episode of an alert. It ends repeats of its messages."""

    alert_id: str
    author: str
    noted_at: datetime
    note: str


@dataclass(frozen=True, kw_only=True)
class NotedSilence(Silence):
    """Grain: one silence as of `noted_at`; the last row of a silence holds, so a later one ends it."""

    author: str
    reason: str
    noted_at: datetime


ACKNOWLEDGEMENTS = Log("ops.acknowledgements", Acknowledgement, order="noted_at")
SILENCES = Log("ops.silences", NotedSilence, order="noted_at")


def silences(lake: Location) -> list[NotedSilence]:
    """Return each silence as it was noted last, also those that are over."""
    return [*SILENCES.last_of_each(lake, "silence_id").values()]
