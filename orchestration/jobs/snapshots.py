"""Where a consistent cut is, and the snapshot that pins it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.writing import is_half_done
from orchestration.jobs import retry
from orchestration.jobs.amendments import is_amended
from orchestration.storage.delta import version_of
from orchestration.storage.positions import GoldPosition, gold_position
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot, pin


def take_snapshot(lake: Lake, streams: Sequence[str], now: datetime) -> Snapshot | None:
    """Pin the present cut, unless it is pinned already, or parts of the pipeline are half done, or behind others.

    Nothing may write gold meanwhile.
    """
    reaches = {stream: reached for stream in streams if (reached := gold_position(lake, stream)) is not None}
    bronze_batch = _prefix(lake, reaches) if len(reaches) == len(streams) else None
    if bronze_batch is None:
        return None
    versions = {name: version_of(table.location) for name, table in lake.tables.items()}
    closed = {stream: datetime.fromtimestamp(reached.closed_until_ms / 1000, UTC) for stream, reached in reaches.items()}
    newest = find_snapshot(lake.conf.lake)
    number = lake.generation.generation
    if newest is not None and (newest.generation, newest.bronze_batch, newest.versions) == (number, bronze_batch, versions):
        return None
    crash.point(crash.Point.SNAPSHOT_DUE)
    return pin(lake.conf.lake, Snapshot(0 if newest is None else newest.snapshot_id + 1, now, number, bronze_batch, versions, closed))


def _prefix(lake: Lake, reaches: Mapping[str, GoldPosition]) -> int | None:
    """The bronze batch at which everything is; None while something is behind or half done, and before the first."""
    # Versions would pin what a kill left: of gold a part of a batch, of silver rows that are in quarantine as well.
    if retry.pending(lake) is not None or any(is_half_done(lake, stream) for stream in reaches):
        return None
    if not all(is_amended(lake, stream, reached) for stream, reached in reaches.items()):
        return None
    prefixes = {reached.bronze_batch for reached in reaches.values()} | {reached.accounted_for for reached in reaches.values()}
    return prefixes.pop() if len(prefixes) == 1 and min(prefixes) >= 0 else None
