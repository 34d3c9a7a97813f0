"""The snapshot that new sessions see, and the queries of its views."""

from dataclasses import dataclass
from datetime import UTC, datetime

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.marts import builds, snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.views import views

THIS_SNAPSHOT = "ops.this_snapshot"
"""A view of the one row of ops.snapshots that the session is on; no row in a lake without snapshots."""


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
    if choice.snapshot_id is None and not choice.is_newest and builds(lake):
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
