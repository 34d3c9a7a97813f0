"""Outages of sources, sinks and channels: a run reports one when it begins, and once more when it ends."""

from collections.abc import Callable
from datetime import UTC, datetime

from orchestration.connectors.outages import Kind, begin_outage, end_outage
from orchestration.connectors.sources.source import Notice
from orchestration.location import Location


class Outages:
    """Outages of the sources, the sinks or the channels of one run. Calls about one of them come from one thread at a time."""

    def __init__(self, lake: Location, kind: Kind, notify: Callable[[Notice], None]) -> None:
        self._lake, self._kind, self._notify = lake, kind, notify
        self._is_down: dict[str, bool] = {}

    def failed(self, name: str, reason: str) -> None:
        if self._is_down.get(name):
            return
        self._is_down[name] = True
        outage = begin_outage(self._lake, self._kind, name, reason, datetime.now(UTC))
        self._notify(Notice(f"{self._kind} is down", {self._kind: name, "since": outage.since, "reason": outage.reason}))

    def answered(self, name: str) -> None:
        if self._is_down.get(name, True) and (ended := end_outage(self._lake, self._kind, name)) is not None:
            self._notify(Notice(f"{self._kind} is up again", {self._kind: name, "down_since": ended.since}))
        self._is_down[name] = False
