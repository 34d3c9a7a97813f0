"""What the log says of a source that the collector asks for its events: since when it is down and why, once; and when it is up."""

from datetime import UTC, datetime

from orchestration.connectors.collector.kind import Notify

FULL = "its spool is full; what comes waits until `tidemark run` has read it"


class Outage:
    """Of the source of that name."""

    def __init__(self, name: str, notify: Notify) -> None:
        """Nothing is known yet."""
        self._who, self._notify = f"source {name}", notify
        self._since: datetime | None = None
        self._is_known_up = False
        self._told = set[str]()

    def say(self, text: str) -> None:
        """What somebody has to see to."""
        self._notify(f"{self._who}: {text}")

    def down(self, reason: str) -> None:
        """Each reason is said once; an empty one is none."""
        self._since = self._since or datetime.now(UTC)
        if reason and reason not in self._told:
            self._told.add(reason)
            self._notify(f"{self._who} is down since {self._since:%Y-%m-%d %H:%M:%S} UTC: {reason}; it is tried again")

    def up(self, text: str) -> None:
        """Said at the first time, and after it was down."""
        if self._since is not None or not self._is_known_up:
            self.say(text)
        self._since, self._is_known_up = None, True
        self._told.clear()
