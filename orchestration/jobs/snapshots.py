"""The snapshot that pins a consistent cut (see prefix.py)."""

from collections.abc import Mapping
from datetime import UTC, datetime

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.jobs import plant_flows
from orchestration.jobs.prefix import consistent_prefix, gold_positions
from orchestration.storage.delta import version_of
from orchestration.storage.positions import FlowPosition, GoldPosition
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS, find_snapshot


def take_snapshot(lake: Lake, now: datetime) -> Snapshot | None:
    """Pin the present cut, unless it is pinned already, or parts of the pipeline are half done, or behind others.

    Nothing may write gold meanwhile.
    """
    positions, flows = gold_positions(lake), plant_flows.flow_positions(lake)
    bronze_batch = consistent_prefix(lake, positions)
    if positions is None or bronze_batch is None or any(flow.bronze_batch != bronze_batch for flow in flows.values()):
        return None
    versions = {name: version_of(table.location) for name, table in lake.tables.items()}
    newest = find_snapshot(lake.conf.lake)
    number = lake.generation.generation
    if newest is not None and (newest.generation, newest.bronze_batch, newest.versions) == (number, bronze_batch, versions):
        return None
    crash.point(crash.Point.SNAPSHOT_DUE)
    snapshot_id = 0 if newest is None else newest.snapshot_id + 1
    taken = Snapshot(snapshot_id, now, number, bronze_batch, versions, _closed_until(positions, flows))
    SNAPSHOTS.append(lake.conf.lake, [taken])
    return taken


def _closed_until(positions: Mapping[str, GoldPosition], flows: Mapping[str, FlowPosition]) -> dict[str, datetime]:
    """Return the instants by stream, and by flow of flows.yml."""
    milliseconds = {stream: reached.closed_until_ms for stream, reached in positions.items()}
    milliseconds |= {name: max(flow.until // 1000, 0) for name, flow in flows.items()}
    return {name: datetime.fromtimestamp(number / 1000, UTC) for name, number in milliseconds.items()}
