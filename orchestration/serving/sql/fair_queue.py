"""Who runs next: a limited number of queries at once, at most half of them from one user, and waiting users in turn."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestration.serving.sql.refusal import RefusedError


class FairQueue:
    """Belongs to one event loop."""

    def __init__(self, max_active: int, max_waiting: int) -> None:
        """`max_waiting`: queries of one user in the queue; further ones are refused."""
        self._free, self._max_per_user, self._max_waiting = max_active, max(max_active // 2, 1), max_waiting
        self._active: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def slot(self, user: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the duration of the context. RefusedError if the queue of the user is full."""
        queue = self._waiting.setdefault(user, deque())
        if len(queue) >= self._max_waiting:
            raise RefusedError(f"{len(queue)} queries of {user} are waiting already: try again later.")
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(granted)
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._release(user)
            elif granted in queue:
                queue.remove(granted)
            raise
        try:
            yield
        finally:
            self._release(user)

    def _release(self, user: str) -> None:
        self._free += 1
        self._active[user] -= 1
        self._grant()

    def _grant(self) -> None:
        """Give free slots away, one to each user in turn."""
        while self._free and (user := self._next()) is not None:
            granted = self._waiting[user].popleft()
            self._waiting.move_to_end(user)
            if not granted.done():
                self._free -= 1
                self._active[user] += 1
                granted.set_result(None)

    def _next(self) -> str | None:
        return next((user for user, queue in self._waiting.items() if queue and self._active[user] < self._max_per_user), None)
