"""The snapshot that sessions find when they are opened."""

import asyncio
import time
from collections.abc import Callable

from orchestration.conf.model import Conf
from orchestration.serving.bi.messages import Cut
from orchestration.serving.bi.sandboxed_process import Behind
from orchestration.serving.bi.snapshots import Choice, cut
from orchestration.storage.snapshot import Snapshot

LOOK_SECONDS = 5.0
"""How often a new snapshot is looked for, while there are clients: they may open sessions without coming anew."""
FRESH_SECONDS = 1.0
"""Looked at again no sooner, however many clients come."""


class Following:
    """Tells the process behind the fence of each snapshot that is new to it."""

    def __init__(self, conf: Conf, choice: Choice, behind: Behind, tell: Callable[[str], None]) -> None:
        """`tell`: what could not be shown."""
        self._conf = conf
        self._choice = choice
        self._behind = behind
        self._tell = tell
        self._views: dict[str, str] = {}
        self._count = 0
        self._looked_at = float("-inf")
        self._alone = asyncio.Lock()
        self.snapshot: Snapshot | None = None

    async def begin(self) -> None:
        """The first look; TidemarkError where there is nothing to see."""
        await self._show(*await asyncio.to_thread(cut, self._conf, self._choice))

    async def look(self) -> None:
        """Comes back when sessions to come see the newest snapshot, unchanged; where the lake cannot be read, the one before."""
        async with self._alone:
            found = self.snapshot, self._views
            if time.monotonic() >= self._looked_at + FRESH_SECONDS:
                self._looked_at = time.monotonic()
                try:
                    found = await asyncio.to_thread(cut, self._conf, self._choice)
                except Exception as error:  # whatever a lake in a bad state makes of it, those who are being served are not to suffer
                    self._tell(f"new snapshots cannot be looked for: {_first_line(error)}")
            await self._show(*found)

    async def go_on(self, has_clients: Callable[[], bool]) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if has_clients():
                await self.look()

    async def _show(self, snapshot: Snapshot | None, views: dict[str, str]) -> None:
        self._count += 1
        left_out = (await self._behind.show(Cut(self._count, views if views != self._views else {}))).left_out
        self._views, self.snapshot = views, snapshot
        if left_out:
            self._tell(f"not shown, because they cannot be read: {', '.join(left_out)} ({_first_line(next(iter(left_out.values())))})")


def _first_line(told: object) -> str:
    return (str(told).splitlines() or ["without a word"])[0]
