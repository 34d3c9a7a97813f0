"""Facts that open pages share: one watch over the lake, and each view read once for all who look at it, when something has changed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import LOG

CHECK_SECONDS = 0.8
FRESH_SECONDS, AGED_SECONDS = 2.0, 10.0
"""Lags grow while nothing changes: a request gets facts that are no older than the first, open pages get new ones after the second."""
MOST = 40
"""Views with their parameters that are kept; the oldest go."""
K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class _Read(Generic[T]):
    facts: T
    number: int
    at: float
    cache_key: object

    def is_current(self, number: int, seconds: float) -> bool:
        """Say whether nothing in the lake has changed, and it does not age, or is no older than so many seconds."""
        return self.number == number and (self.cache_key is not None or time.monotonic() - self.at <= seconds)


class Facts(Generic[K, T]):
    """Facts by view, read in a thread when a page asks for them. `read`: reads the facts of a view.

    `cache_key`: the cache key of a view, all that it depends on; None for a view that depends on anything in the lake, and on the time.
    """

    def __init__(self, lake: Location, read: Callable[[K], T], cache_key: Callable[[K], object], threads: Callable[[K], Executor]) -> None:
        """Reads nothing yet. `threads`: where a view is read, so that those that wait for queries keep no other waiting."""
        self._lake, self._read, self._cache_key, self._threads = lake, read, cache_key, threads
        self._fingerprint: dict[str, str | None] = {}
        self._kept: dict[K, _Read[T]] = {}
        self._locks = WeakValueDictionary[K, asyncio.Lock]()
        self._listeners = self._number = 0
        self._changed = asyncio.Condition()

    @property
    def number(self) -> int:
        """Grows each time that something in the lake has changed."""
        return self._number

    async def newest(self, view: K) -> T:
        """Return the facts as they are now, or were FRESH_SECONDS ago if nothing has changed."""
        await self._check()
        return await self._as_checked(view, FRESH_SECONDS)

    async def recent(self, view: K) -> T | TidemarkError:
        """Return the facts of the lake as last checked, of AGED_SECONDS ago at most; an error where they cannot be read."""
        try:
            return await self._as_checked(view, 0.9 * AGED_SECONDS)
        except TidemarkError as error:
            return error

    async def _as_checked(self, view: K, seconds: float) -> T:
        async with self._locks.setdefault(view, asyncio.Lock()):
            kept, number = self._kept.pop(view, None), self._number
            if kept is None or not kept.is_current(number, seconds):
                cache_key = await asyncio.to_thread(self._cache_key, view)
                if kept is None or cache_key is None or kept.cache_key != cache_key:
                    facts = await asyncio.get_running_loop().run_in_executor(self._threads(view), self._read, view)
                    kept = _Read(facts, number, time.monotonic(), cache_key)
                kept = replace(kept, number=number)
            self._kept[view] = kept
            for old in [*self._kept][:-MOST]:
                del self._kept[old]
            return kept.facts

    async def stream(self, *views: K) -> AsyncIterator[Sequence[T | TidemarkError]]:
        """Now, and each time that those of one view have changed, if only by their age; an error where they cannot be read."""
        self._listeners += 1
        shown: Sequence[T | TidemarkError] = ()
        try:
            await self._check()
            while True:
                seen = self._number  # before the facts are read: what changes meanwhile is read next
                facts = [await self.recent(view) for view in views]
                if [*map(id, facts)] != [*map(id, shown)]:
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

    async def watch(self) -> None:
        """Check for all who listen, for ever."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if self._listeners:
                await self._check()

    async def _check(self) -> None:
        fingerprint = await asyncio.to_thread(fingerprint_of, self._lake)
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            async with self._changed:
                self._number += 1
                self._changed.notify_all()


def fingerprint_of(lake: Location) -> dict[str, str | None]:
    """Tell the lake from itself before a change: its tables, and what this host notes. Takes some milliseconds, or one request."""
    on_host = [lake.local / name for name in ("ends", "up/state.json", "up/refused.json")]
    on_host += [*lake.local.glob("outages/*"), *lake.local.glob("spool/*")]
    if lake.store.is_disk:
        logs = (log for pattern in (f"*/*/{LOG}", f"generations/*/*/*/{LOG}") for log in lake.glob(pattern))
        noted = (lake / name for name in ("devices.json", "fields.json"))
        on_host += [path.local for path in (*logs, *noted, *lake.glob("quality/gates/*"))]
        shared = []
    else:  # whatever changes what is shown pins a snapshot
        shared = [(str(file), None) for file in (lake / "ops/snapshots" / LOG).glob("*")]
    return dict([*shared, *((str(path), tag) for path in on_host if (tag := Location(path).tag()))])
