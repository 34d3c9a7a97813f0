"""Facts that open pages share: one watch over the lake, and each view read once for all who look at it, when something has changed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import LOG

LOOK_SECONDS = 0.8
FRESH_SECONDS, AGED_SECONDS = 2.0, 10.0
"""Lags grow while nothing changes: who asks gets facts that are no older than the first, open pages are told after the second."""
MOST = 40
"""Views with their parameters that are kept; the oldest go."""
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class _Read(Generic[T]):
    facts: T
    number: int
    at: float
    state: object

    def holds(self, number: int) -> bool:
        """Whether it need not be read again: nothing in the lake has changed, and it does not age, or is young."""
        return self.number == number and (self.state is not None or time.monotonic() - self.at <= FRESH_SECONDS)


class Facts(Generic[K, T]):
    """Facts by view, read in a thread when a page asks for them. `read`: reads the facts of a view.

    `state_of`: the cache key of a view, all that it depends on; None for a view that depends on anything in the lake, and on the time.
    """

    def __init__(self, lake: Location, read: Callable[[K], T], state_of: Callable[[K], object], threads: Callable[[K], Executor]) -> None:
        """Reads nothing yet. `threads`: where a view is read, so that those that wait for queries keep no other waiting."""
        self._lake, self._read, self._state_of, self._threads = lake, read, state_of, threads
        self._stamp: dict[Path, int] = {}
        self._known: dict[K, _Read[T]] = {}
        self._locks = WeakValueDictionary[K, asyncio.Lock]()
        self._listeners = self._number = 0
        self._changed = asyncio.Condition()

    @property
    def number(self) -> int:
        """Grows each time that something in the lake has changed."""
        return self._number

    async def newest(self, view: K) -> T:
        """Return the facts as they are now, or were two seconds ago if nothing has changed."""
        await self._look()
        return await self._seen_newest(view)

    async def _seen_newest(self, view: K) -> T:
        """Return the facts of the lake as last checked."""
        async with self._locks.setdefault(view, asyncio.Lock()):
            kept, number = self._known.pop(view, None), self._number
            if kept is None or not kept.holds(number):
                state = await asyncio.to_thread(self._state_of, view)
                if kept is None or state is None or kept.state != state:
                    facts = await asyncio.get_running_loop().run_in_executor(self._threads(view), self._read, view)
                    kept = _Read(facts, number, time.monotonic(), state)
                kept = replace(kept, number=number)
            self._known[view] = kept
            for old in [*self._known][:-MOST]:
                del self._known[old]
            return kept.facts

    async def stream(self, view: K) -> AsyncIterator[T | TidemarkError]:
        """Now, and each time that they have changed, if only by their age; an error where they cannot be read."""
        self._listeners += 1
        shown: T | TidemarkError | None = None
        try:
            await self._look()
            while True:
                facts, seen = await self._newest_or_error(view), self._number
                if facts is not shown:
                    yield facts
                shown = facts
                async with self._changed:
                    try:
                        async with asyncio.timeout(AGED_SECONDS):
                            while self._number == seen:
                                await self._changed.wait()
                    except TimeoutError:
                        pass
        finally:
            self._listeners -= 1

    async def _newest_or_error(self, view: K) -> T | TidemarkError:
        try:
            return await self._seen_newest(view)
        except TidemarkError as error:
            return error

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
    files = [*lake.local.glob("outages/*"), lake.local / "ends", *lake.local.glob("quality/gates/*"), lake.local / "up" / "state.json"]
    spools = lake.local.glob("spool/*")
    return {path: path.stat().st_mtime_ns for path in (*logs, *files, *spools) if path.exists()}
