"""Who is answered next: so many at once, no user more than half of them, and users that wait take turns."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestration.serving.sql.refusal import RefusedError


class Turns:
    """Of one event loop."""

    def __init__(self, at_once: int, longest_queue: int) -> None:
        """`longest_queue`: of one user; who asks beyond it is refused."""
        self._free, self._of_user, self._longest = at_once, max(at_once // 2, 1), longest_queue
        self._active: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Wait for it; it lasts as long as the context."""
        queue = self._waiting.setdefault(user, deque())
        if len(queue) >= self._longest:
            raise RefusedError(f"{len(queue)} queries of {user} wait already: ask again later.")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._go_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(user)
            elif turn in queue:
                queue.remove(turn)
            raise
        try:
            yield
        finally:
            self._end(user)

    def _end(self, user: str) -> None:
        self._free += 1
        self._active[user] -= 1
        self._go_on()

    def _go_on(self) -> None:
        """Give what is free, one to each user in turn."""
        while self._free and (user := self._next()) is not None:
            turn = self._waiting[user].popleft()
            self._waiting.move_to_end(user)
            if not turn.done():
                self._free -= 1
                self._active[user] += 1
                turn.set_result(None)

    def _next(self) -> str | None:
        return next((user for user, queue in self._waiting.items() if queue and self._active[user] < self._of_user), None)
