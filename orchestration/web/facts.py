"""What all open pages share: one look at the lake when something in it has changed, told to each of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from orchestration.location import Location
from orchestration.storage.delta import LOG

LOOK_SECONDS = 0.5
FRESH_SECONDS, AGED_SECONDS = 2.0, 10.0
"""Lags grow while nothing changes: who asks gets facts that are no older than the first, open pages are told after the second."""
T = TypeVar("T")


class Facts(Generic[T]):
    """Read in a thread: when they are asked for, and while somebody listens."""

    def __init__(self, lake: Location, read: Callable[[], T]) -> None:
        """Reads nothing yet."""
        self._lake, self._read = lake, read
        self._stamp: dict[Path, int] | None = None
        self._read_at = 0.0
        self._lock = asyncio.Lock()
        self._changed = asyncio.Condition()
        self._listeners = 0
        self.number = 0
        self._facts: T | None = None

    async def newest(self) -> T:
        """As they are now, or were two seconds ago where nothing has changed."""
        async with self._lock:
            stamp = await asyncio.to_thread(stamp_of, self._lake)
            if self._facts is None or stamp != self._stamp or time.monotonic() - self._read_at > FRESH_SECONDS:
                await self._look(stamp)
            assert self._facts is not None
            return self._facts

    async def stream(self) -> AsyncIterator[T]:
        """Now, and each time that they have changed."""
        self._listeners += 1
        try:
            seen = -1
            await self.newest()
            while True:
                async with self._changed:
                    await self._changed.wait_for(partial(self._is_newer, seen))
                    seen = self.number
                assert self._facts is not None
                yield self._facts
        finally:
            self._listeners -= 1

    def _is_newer(self, seen: int) -> bool:
        return self.number != seen

    async def watch(self) -> None:
        """For ever: look for all who listen."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._listeners and not self._lock.locked():
                async with self._lock:
                    stamp = await asyncio.to_thread(stamp_of, self._lake)
                    if stamp != self._stamp or time.monotonic() - self._read_at > AGED_SECONDS:
                        await self._look(stamp)

    async def _look(self, stamp: dict[Path, int]) -> None:
        self._facts = await asyncio.to_thread(self._read)
        self._stamp, self._read_at = stamp, time.monotonic()
        async with self._changed:
            self.number += 1
            self._changed.notify_all()


def stamp_of(lake: Location) -> dict[Path, int]:
    """When each log of a table, and each small file that says how things are, was changed last: some microseconds each."""
    logs = [log.local for pattern in (f"*/*/{LOG}", f"generations/*/*/*/{LOG}") for log in lake.glob(pattern)]
    files = [*lake.local.glob("outages/*"), *lake.local.glob("quality/gates/*"), lake.local / "up" / "state.json"]
    spools = lake.local.glob("spool/*")
    return {path: path.stat().st_mtime_ns for path in (*logs, *files, *spools) if path.exists()}
