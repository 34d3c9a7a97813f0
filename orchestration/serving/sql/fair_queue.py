"""Who runs next: a limited number of queries at once, at most half of them from one user, and users in turn.

A user has at most that half in the line for a slot, so whoever joins the line waits for few queries of each other user.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from orchestration.serving.sql.refusal import RefusedError


class FairQueue:
    """Belongs to one event loop."""

    def __init__(self, max_active: int, max_waiting: int) -> None:
        """`max_waiting`: queries of one user that wait; further ones are refused."""
        self._max_waiting = max_waiting
        self._waiting: Counter[str] = Counter()
        self._of_user = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(max(max_active // 2, 1)))
        self._slots = asyncio.Semaphore(max_active)

    @asynccontextmanager
    async def slot(self, user: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the duration of the context. RefusedError if too many queries of the user wait."""
        if self._waiting[user] >= self._max_waiting:
            raise RefusedError(f"{self._waiting[user]} queries of {user} are waiting already: try again later.")
        async with AsyncExitStack() as held:
            self._waiting[user] += 1
            try:
                for semaphore in (self._of_user[user], self._slots):
                    await held.enter_async_context(semaphore)
            finally:
                self._waiting[user] -= 1
            yield
