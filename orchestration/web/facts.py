"""What open pages share: one watch over the lake, and each view read once for all who look at it, when something has changed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from orchestration.location import Location
from orchestration.storage.delta import LOG

LOOK_SECONDS = 0.5
FRESH_SECONDS, AGED_SECONDS = 2.0, 10.0
"""Lags grow while nothing changes: who asks gets facts that are no older than the first, open pages are told after the second."""
MOST = 100
"""Views with their parameters that are kept; the oldest go."""
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class _Read(Generic[T]):
    facts: T
    number: int
    at: float


class Facts(Generic[K, T]):
    """By view: read in a thread when they are asked for. `read`: what a view shows."""

    def __init__(self, lake: Location, read: Callable[[K], T]) -> None:
        """Reads nothing yet."""
        self._lake, self._read = lake, read
        self._stamp: dict[Path, int] = {}
        self._known: dict[K, _Read[T]] = {}
        self._locks: dict[K, asyncio.Lock] = {}
        self._listeners = self._number = 0
        self._changed = asyncio.Condition()

    async def newest(self, view: K) -> T:
        """As it is now, or was two seconds ago where nothing has changed."""
        await self._look()
        async with self._locks.setdefault(view, asyncio.Lock()):
            known = self._known.get(view)
            if known is None or known.number != self._number or time.monotonic() - known.at > FRESH_SECONDS:
                known = _Read(await asyncio.to_thread(self._read, view), self._number, time.monotonic())
                self._known.pop(view, None)
                self._known[view] = known
                for old in [*self._known][:-MOST]:
                    del self._known[old]
                    self._locks.pop(old, None)
            return known.facts

    async def stream(self, view: K) -> AsyncIterator[T]:
        """Now, each time that something has changed, and from time to time."""
        self._listeners += 1
        try:
            while True:
                facts, seen = await self.newest(view), self._number
                yield facts
                async with self._changed:
                    try:
                        async with asyncio.timeout(AGED_SECONDS):
                            while self._number == seen:
                                await self._changed.wait()
                    except TimeoutError:
                        pass
        finally:
            self._listeners -= 1

    async def watch(self) -> None:
        """For ever: look for all who listen."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._listeners:
                await self._look()

    async def _look(self) -> None:
        stamp = await asyncio.to_thread(stamp_of, self._lake)
        if stamp != self._stamp:
            self._stamp = stamp
            async with self._changed:
                self._number += 1
                self._changed.notify_all()


def stamp_of(lake: Location) -> dict[Path, int]:
    """When each log of a table, and each small file that says how things are, was changed last: some microseconds each."""
    logs = [log.local for pattern in (f"*/*/{LOG}", f"generations/*/*/*/{LOG}") for log in lake.glob(pattern)]
    files = [*lake.local.glob("outages/*"), *lake.local.glob("quality/gates/*"), lake.local / "up" / "state.json"]
    spools = lake.local.glob("spool/*")
    return {path: path.stat().st_mtime_ns for path in (*logs, *files, *spools) if path.exists()}
