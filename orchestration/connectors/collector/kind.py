"""What each kind of collected source is given, and what it gives back when it is started: `async def serve(pushed, notify) -> Served`."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from orchestration.conf.model import Source
from orchestration.conf.secrets import secret
from orchestration.conf.transport_settings import Collected
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.location import Location

Notify = Callable[[str], None]


class Pushed(NamedTuple):
    """A source, and the spool for its events in a lake. `folder`: of conf."""

    source: Source
    endpoint: Collected
    spool: SpoolWriter
    lake: Location
    folder: Path

    def secret(self, reference: str | None) -> str | None:
        """What a reference leads to; TidemarkError where that is nothing. None for None."""
        return None if reference is None else secret(self.folder, reference)


class Served(NamedTuple):
    """What runs for a source, and how it is ended well."""

    task: "asyncio.Task[None]"
    stop: Callable[[], Awaitable[None]]
