"""Snapshots: rows of ops.snapshots, each of which pins every table of the pipeline at one consistent cut.

A cut is a prefix of bronze: gold of every stream is at exactly that prefix, and of bronze and silver the pinned versions hold at least
it; what they hold beyond it is left out by bronze_batch. A row is written last, so a crash before it leaves the cut before.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage import kept_tables
from orchestration.storage.delta import is_table, max_in_log, rows_of, table_id, version_of
from orchestration.storage.log import Log
from orchestration.storage.snapshot import Snapshot

SNAPSHOTS = Log("ops.snapshots", Snapshot, order="snapshot_id", is_maintained=True)


def pin_again(lake: Location, generation: int, now: datetime) -> None:
    """The newest snapshot of a generation becomes the newest of all, under a new id."""
    snapshots = all_snapshots(lake)
    of_generation = [snapshot for snapshot in snapshots if snapshot.generation == generation]
    if of_generation:
        SNAPSHOTS.append(lake, [replace(of_generation[-1], snapshot_id=snapshots[-1].snapshot_id + 1, at=now)])


def all_snapshots(lake: Location) -> list[Snapshot]:
    """Every snapshot of the lake in a folder that has not expired, oldest first; none where there is no lake."""
    return SNAPSHOTS.rows(lake)


def find_snapshot(lake: Location, snapshot_id: int | None = None, at: datetime | None = None) -> Snapshot | None:
    """The snapshot of that id, or the newest at that instant (ConfError where it is not there), or the newest; None for none yet."""
    wanted = _newest(lake, at) if snapshot_id is None else snapshot_id
    # One of them, not all: there may be a week of them.
    snapshot = None if wanted is None else _numbered(lake, wanted)
    if at is not None and snapshot is not None and not _is_followed(lake, snapshot):
        snapshot = None
    if snapshot is None and (snapshot_id, at) != (None, None):
        raise ConfError(_absent(lake, snapshot_id, at))
    return snapshot


def expired(taken: Sequence[Snapshot], retain: timedelta, now: datetime, needed: Collection[int] = ()) -> list[Snapshot]:
    """List the snapshots whose next one was taken longer ago than `retain`.

    Until then a reader may have begun to ask them as the newest. The newest of a generation never expires: a rollback pins it again. Nor do
    `needed` ones, by their ids (marts.needed_snapshots).
    """
    kept = {snapshot.generation: snapshot.snapshot_id for snapshot in taken}
    past = (snapshot for snapshot, following in pairwise(taken) if following.at <= now - retain)
    return [snapshot for snapshot in past if snapshot.snapshot_id not in {*kept.values(), *needed}]


def is_kept(lake: Location, snapshot_id: int) -> bool:
    """Whether there is a snapshot of that id: then every version that it pins can be read."""
    return _numbered(lake, snapshot_id) is not None


def _is_followed(lake: Location, snapshot: Snapshot) -> bool:
    """Whether the one after it is there, or there was none: else what came after it has expired."""
    return snapshot.snapshot_id == _newest(lake, None) or _numbered(lake, snapshot.snapshot_id + 1) is not None


def _numbered(lake: Location, snapshot_id: int) -> Snapshot | None:
    path = SNAPSHOTS.path(lake)
    if kept_tables.is_kept(path) and is_table(path):  # whoever writes them reads the newest one again and again
        return _read_once(lake, snapshot_id, table_id(path), version_of(path))
    return next(iter(SNAPSHOTS.rows(lake, [("snapshot_id", "=", snapshot_id)])), None)


@lru_cache(16)
def _read_once(lake: Location, snapshot_id: int, _table_id: str, _version: int) -> Snapshot | None:
    return next(iter(SNAPSHOTS.rows(lake, [("snapshot_id", "=", snapshot_id)])), None)


def _newest(lake: Location, at: datetime | None) -> int | None:
    path = SNAPSHOTS.path(lake)
    if at is not None:
        return max((row["snapshot_id"] for row in rows_of(path, ["snapshot_id"], [("at", "<=", at)])), default=None)
    newest: int | None = max_in_log(path, "snapshot_id")
    return newest


def _absent(lake: Location, snapshot_id: int | None, at: datetime | None) -> str:
    snapshots = all_snapshots(lake)
    wanted = f"snapshot {snapshot_id}" if at is None else f"snapshot at {at} or before"
    if not snapshots:
        return f"there is no {wanted}; the lake has none yet."
    first, last = snapshots[0], snapshots[-1]
    span = f"{first.snapshot_id} to {last.snapshot_id}, from {first.at} on"
    if last.snapshot_id >= len(snapshots) and (snapshot_id is None or 0 <= snapshot_id < last.snapshot_id):
        return (
            f"{wanted if at is None else f'what was the snapshot at {at}'} has expired; those that can be asked are {span}.\n"
            "  How long they are kept is maintenance.retain_seconds in pipeline.yml."
        )
    return f"there is no {wanted}; the lake has {span}."
