"""Which snapshot a session is opened on, and the views of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.storage.marts import builds, snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.views import views

ABOUT = "ops.this_snapshot"
"""A view of the one row of ops.snapshots that the session is on; without a row in a lake without snapshots."""


@dataclass(frozen=True)
class Choice:
    """The snapshot of this id; else the newest; else the newest that marts were built of, where there are marts."""

    snapshot_id: int | None = None
    is_newest: bool = False


def cut(conf: Conf, choice: Choice) -> tuple[Snapshot | None, dict[str, str]]:
    """The snapshot, None where there is none yet, and queries by SQL name; TidemarkError where there is no such snapshot."""
    snapshot = _snapshot(conf.lake, choice)
    return snapshot, {name: view.spark() for name, view in views(conf, snapshot).items()} | {ABOUT: _about(snapshot)}


def _snapshot(lake: Path, choice: Choice) -> Snapshot | None:
    """With the versions of the marts that were built of it, if any were."""
    if choice.snapshot_id is None and not choice.is_newest and builds(lake):
        try:
            return snapshot_for(lake, "marts.")
        except TidemarkError:  # the snapshot that they were built of has expired
            return find_snapshot(lake)
    snapshot = find_snapshot(lake, choice.snapshot_id)
    try:
        return snapshot and snapshot_for(lake, "marts.", snapshot.snapshot_id)
    except TidemarkError:  # there are none of this one
        return snapshot


def _about(snapshot: Snapshot | None) -> str:
    told = snapshot or Snapshot(0, datetime.min.replace(tzinfo=UTC), 0, 0, {}, {})
    instant = f"timestamp'{told.at:%Y-%m-%dT%H:%M:%S.%f}Z'"
    columns = f"{told.snapshot_id}L as snapshot_id, {instant} as at, {told.generation}L as generation, {told.bronze_batch}L as bronze_batch"
    return f"select {columns} where {'true' if snapshot else 'false'}"
