"""The interface of each kind of collected source: `async def serve(pushed) -> Served` starts it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import Collected
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.connectors.outages import begin_outage, end_outage
from orchestration.location import Location

Notify = Callable[[str], None]
FULL = "its spool is full; what comes waits until `tidemark run` has read it"


class OutageReport:
    """Tells the log and `tidemark status` since when a source is down, and why."""

    def __init__(self, lake: Location, name: str, notify: Notify) -> None:
        self._lake, self._name, self._notify = lake, name, notify
        self._since: str | None = None
        self._is_known_up = False
        self._told = set[str]()

    def say(self, text: str) -> None:
        self._notify(f"source {self._name}: {text}")

    def down(self, reason: str) -> None:
        """Each reason is said once; an empty one is none."""
        if reason and reason not in self._told:
            self._told.add(reason)
            self._since = self._since or begin_outage(self._lake, "collected", self._name, reason, datetime.now(UTC)).since
            self._notify(f"source {self._name} is down since {self._since}: {reason}; it is tried again")

    def up(self, text: str) -> None:
        """Said at the first time, and after it was down."""
        if self._since is not None or not self._is_known_up:
            end_outage(self._lake, "collected", self._name)
            self.say(text)
        self._since, self._is_known_up = None, True
        self._told.clear()


class Pushed(NamedTuple):
    """A source, the spool for its events, and what hears of its outages and of its connections."""

    source: Source
    endpoint: Collected
    spool: SpoolWriter
    outage: OutageReport
    notify: Notify


class Served(NamedTuple):
    """The running task of a source, and the call that ends it cleanly."""

    task: "asyncio.Task[None]"
    stop: Callable[[], Awaitable[None]]
