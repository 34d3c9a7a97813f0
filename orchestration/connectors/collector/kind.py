"""What each kind of collected source is given, and what it gives back when it is started: `async def serve(pushed, notify) -> Served`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import Collected
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.location import Location

Notify = Callable[[str], None]


class Pushed(NamedTuple):
    """A source, and the spool for its events in a lake."""

    source: Source
    endpoint: Collected
    spool: SpoolWriter
    lake: Location


class Served(NamedTuple):
    """What runs for a source, and how it is ended well."""

    task: "asyncio.Task[None]"
    stop: Callable[[], Awaitable[None]]
