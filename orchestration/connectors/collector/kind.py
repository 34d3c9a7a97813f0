"""The interface of each kind of collected source: `async def serve(pushed, notify) -> Served` starts it."""

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
    """The running task of a source, and the call that ends it cleanly."""

    task: "asyncio.Task[None]"
    stop: Callable[[], Awaitable[None]]
