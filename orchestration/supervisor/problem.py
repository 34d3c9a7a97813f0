"""Problems: what is wrong, as one record that the page, `status`, `doctor`, metrics and channels show alike."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import inf


class Severity(StrEnum):
    """How bad a problem is.

    CRITICAL: events are not taken in, or rows or messages do not come where they should. WARNING: what comes is not what should come.
    NOTICE: somebody should know.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"


ABOUT = ("lake", "part", "conf", "source", "sink", "channel", "gate", "quality", "query", "device", "metric", "model", "job", "alerts")
"""The first word of each subject."""
STOPS_THE_LAKE = ("lake", "lake disk", "part streams")
"""Subjects of a critical problem in which nothing is taken in any more."""


@dataclass(frozen=True)
class Problem:
    """`subject`: such as `source plant`. `since`: UTC, None where nobody knows. `view`: address of the page that shows more.

    `command`: fixes it; empty where no command does, and the sentence says what to do.
    """

    severity: Severity
    subject: str
    sentence: str
    since: datetime | None = None
    view: str = "/"
    command: str = ""

    @property
    def about(self) -> str:
        """Return the kind of its subject, one of ABOUT."""
        return self.subject.partition(" ")[0]

    @property
    def stops_the_lake(self) -> bool:
        """Say whether nothing is taken in while it lasts; a sink, a gate or a source that fails stops its own part only."""
        return self.severity is Severity.CRITICAL and self.subject in STOPS_THE_LAKE

    @property
    def rank(self) -> tuple[int, float, str]:
        """Order by severity, then by time, the oldest first."""
        return [*Severity].index(self.severity), self.since.timestamp() if self.since else inf, self.subject
