"""Sends new snapshots to the sandboxed process, for sessions that are opened from then on."""

import asyncio
import time
from collections.abc import Callable

from orchestration.conf.model import Conf
from orchestration.serving.bi.messages import SnapshotViews
from orchestration.serving.bi.sandboxed_process import SandboxedProcess
from orchestration.serving.bi.snapshots import SnapshotChoice, snapshot_views
from orchestration.storage.snapshot import Snapshot

POLL_SECONDS = 5.0
"""How often to look for a new snapshot while clients are connected: they may open sessions without a new connection."""
MIN_INTERVAL_SECONDS = 1.0
"""The lake is read no more often, however many clients connect."""


class SnapshotFollower:
    """Publishes each snapshot that is new to the process."""

    def __init__(self, conf: Conf, choice: SnapshotChoice, process: SandboxedProcess, notify: Callable[[str], None]) -> None:
        """`notify` receives what cannot be served, one sentence a call."""
        self._conf = conf
        self._choice = choice
        self._process = process
        self._notify = notify
        self._views: dict[str, str] = {}
        self._count = 0
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()
        self.snapshot: Snapshot | None = None

    async def start(self) -> None:
        """Publish the first snapshot; TidemarkError if there is none to serve."""
        await self._publish(*await asyncio.to_thread(snapshot_views, self._conf, self._choice))

    async def refresh(self) -> None:
        """Return when new sessions see the newest snapshot. If the lake cannot be read, they see the one before."""
        async with self._lock:
            newest = self.snapshot, self._views
            if time.monotonic() >= self._read_at + MIN_INTERVAL_SECONDS:
                self._read_at = time.monotonic()
                try:
                    newest = await asyncio.to_thread(snapshot_views, self._conf, self._choice)
                except Exception as error:  # a lake in a bad state must not disturb the clients that are being served
                    self._notify(f"cannot look for new snapshots: {_first_line(error)}")
            await self._publish(*newest)

    async def refresh_forever(self, has_clients: Callable[[], bool]) -> None:
        """Refresh every few seconds while there are clients."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            if has_clients():
                await self.refresh()

    async def _publish(self, snapshot: Snapshot | None, views: dict[str, str]) -> None:
        self._count += 1
        answer = await self._process.publish(SnapshotViews(self._count, views if views != self._views else {}))
        self._views, self.snapshot = views, snapshot
        if answer.left_out:
            reason = _first_line(next(iter(answer.left_out.values())))
            self._notify(f"tables that cannot be read are left out: {', '.join(answer.left_out)} ({reason})")


def _first_line(message: object) -> str:
    return (str(message).splitlines() or ["no reason given"])[0]
