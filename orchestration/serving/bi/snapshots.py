"""The snapshot that new sessions see, the queries of its views, and how the sandboxed process gets them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError, first_line
from orchestration.location import Location
from orchestration.serving.bi.messages import SnapshotViews
from orchestration.serving.bi.sandboxed_process import SandboxedProcess
from orchestration.storage.marts import MARTS, snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.views import views

THIS_SNAPSHOT = "ops.this_snapshot"
"""A view of the one row of ops.snapshots that the session is on; no row in a lake without snapshots."""

POLL_SECONDS = 5.0
"""How often to look for a new snapshot while clients are connected: they may open sessions without a new connection."""
MIN_INTERVAL_SECONDS = 1.0
"""The lake is read no more often, however many clients connect."""


@dataclass(frozen=True)
class SnapshotChoice:
    """The snapshot of this id. Without an id: the newest that marts were built of, or with `is_newest`, or without marts, the newest."""

    snapshot_id: int | None = None
    is_newest: bool = False


def snapshot_views(conf: Conf, choice: SnapshotChoice) -> tuple[Snapshot | None, dict[str, str]]:
    """The snapshot, None if there is none yet, and its queries by SQL name. TidemarkError if the chosen one does not exist."""
    snapshot = _snapshot(conf.lake, choice)
    return snapshot, {name: view.spark() for name, view in views(conf, snapshot).items()} | {THIS_SNAPSHOT: _this_snapshot(snapshot)}


def _snapshot(lake: Location, choice: SnapshotChoice) -> Snapshot | None:
    """With the versions of the marts that were built of it, if any were."""
    if choice.snapshot_id is None and not choice.is_newest and MARTS.rows(lake):
        try:
            return snapshot_for(lake, "marts.")
        except TidemarkError:  # the snapshot that they were built of has expired
            return find_snapshot(lake)
    snapshot = find_snapshot(lake, choice.snapshot_id)
    try:
        return snapshot and snapshot_for(lake, "marts.", snapshot.snapshot_id)
    except TidemarkError:  # it has no marts
        return snapshot


def _this_snapshot(snapshot: Snapshot | None) -> str:
    row = snapshot or Snapshot(0, datetime.min.replace(tzinfo=UTC), 0, 0, {}, {})
    instant = f"timestamp'{row.at:%Y-%m-%dT%H:%M:%S.%f}Z'"
    columns = f"{row.snapshot_id}L as snapshot_id, {instant} as at, {row.generation}L as generation, {row.bronze_batch}L as bronze_batch"
    return f"select {columns} where {'true' if snapshot else 'false'}"


class SnapshotFollower:
    """Publishes each snapshot that is new to the process."""

    def __init__(self, conf: Conf, choice: SnapshotChoice, process: SandboxedProcess, notify: Callable[[str], None]) -> None:
        """`notify` receives what cannot be served, one sentence a call."""
        self._conf, self._choice, self._process, self._notify = conf, choice, process, notify
        self._views: dict[str, str] = {}
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
                    self._notify(f"cannot look for new snapshots: {first_line(str(error))}")
            await self._publish(*newest)

    async def refresh_forever(self, has_clients: Callable[[], bool]) -> None:
        """Refresh every few seconds while there are clients."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            if has_clients():
                await self.refresh()

    async def _publish(self, snapshot: Snapshot | None, views: dict[str, str]) -> None:
        answer = await self._process.publish(SnapshotViews(views if views != self._views else {}))
        self._views, self.snapshot = views, snapshot
        if answer.left_out:
            reason = first_line(next(iter(answer.left_out.values())))
            self._notify(f"tables that cannot be read are left out: {', '.join(answer.left_out)} ({reason})")
