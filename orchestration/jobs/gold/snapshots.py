"""The snapshot that pins a consistent cut (see prefix.py)."""

from datetime import UTC, datetime

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.jobs.gold.flows import flow_positions
from orchestration.jobs.gold.prefix import consistent_prefix
from orchestration.storage.delta import is_table, version_of
from orchestration.storage.lake_layout import CORRECTIONS
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS, find_snapshot


def take_snapshot(lake: Lake, now: datetime) -> Snapshot | None:
    """Pin the present cut, unless it is pinned, or something is half done or behind. Nothing may write gold meanwhile."""
    prefix, flows = consistent_prefix(lake), flow_positions(lake)
    if prefix is None or any(flow.bronze_batch != prefix.bronze_batch for flow in flows.values()):
        return None
    versions = {name: version_of(table.location) for name, table in lake.tables.items()}
    if is_table(corrections := lake.table_path(CORRECTIONS)):
        versions[CORRECTIONS] = version_of(corrections)
    newest = find_snapshot(lake.conf.lake)
    number = lake.generation.generation
    if newest is not None and (newest.generation, newest.bronze_batch, newest.versions) == (number, prefix.bronze_batch, versions):
        return None
    crash.point(crash.Point.SNAPSHOT_DUE)
    snapshot_id = 0 if newest is None else newest.snapshot_id + 1
    milliseconds = {stream: reached.closed_until_ms for stream, reached in prefix.positions.items()}
    milliseconds |= {name: max(flow.until // 1000, 0) for name, flow in flows.items()}
    closed_until = {name: datetime.fromtimestamp(instant / 1000, UTC) for name, instant in milliseconds.items()}
    taken = Snapshot(snapshot_id, now, number, prefix.bronze_batch, versions, closed_until)
    SNAPSHOTS.append(lake.conf.lake, [taken])
    return taken
