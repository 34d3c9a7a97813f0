"""Snapshots: rows of ops.snapshots, each of which pins every table of the pipeline at one consistent cut.

A cut is a prefix of bronze: gold of every stream is at exactly that prefix, and of bronze and silver the pinned versions hold at least
it; what they hold beyond it is left out by bronze_batch. A row is written last, so a crash before it leaves the cut before.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from orchestration.errors import TidemarkError

TABLE = "ops.snapshots"
INSTANT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        *(("snapshot_id", pa.int64()), ("at", INSTANT), ("generation", pa.int64()), ("bronze_batch", pa.int64())),
        *(("versions", pa.map_(pa.string(), pa.int64())), ("closed_until", pa.map_(pa.string(), INSTANT))),
    ]
)
"""Grain: one consistent cut. `versions` by table, `closed_until` by gold stream: windows that end there or before are emitted."""


@dataclass(frozen=True)
class Snapshot:
    """A row of ops.snapshots."""

    snapshot_id: int
    at: datetime
    generation: int
    bronze_batch: int
    versions: dict[str, int]
    closed_until: dict[str, datetime]


def pin(lake: Path, snapshot: Snapshot) -> Snapshot:
    """Append it."""
    row = {**vars(snapshot), "versions": list(snapshot.versions.items()), "closed_until": list(snapshot.closed_until.items())}
    write_deltalake(lake.joinpath(*TABLE.split(".")), pa.Table.from_pylist([row], SCHEMA), mode="append")
    return snapshot


def pin_again(lake: Path, generation: int, now: datetime) -> None:
    """The newest snapshot of a generation becomes the newest of all, under a new id."""
    known = all_snapshots(lake)
    of_generation = [each for each in known if each.generation == generation]
    if of_generation:
        pin(lake, replace(of_generation[-1], snapshot_id=known[-1].snapshot_id + 1, at=now))


def all_snapshots(lake: Path) -> list[Snapshot]:
    """Every snapshot of the lake in a folder, oldest first; none where there is no lake."""
    path = lake.joinpath(*TABLE.split("."))
    if not DeltaTable.is_deltatable(str(path)):
        return []
    rows = pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist(maps_as_pydicts="strict")
    return sorted((Snapshot(**row) for row in rows), key=lambda each: each.snapshot_id)


def chosen(lake: Path, snapshot_id: int | None = None, at: datetime | None = None) -> Snapshot | None:
    """The snapshot of that id, or the newest at that instant, or the newest; None where there is none yet."""
    known = all_snapshots(lake)
    if snapshot_id is None and at is None:
        return known[-1] if known else None
    found = [each for each in known if each.snapshot_id == snapshot_id or (at is not None and each.at <= at)]
    if not found:
        span = f"they are {known[0].snapshot_id} to {known[-1].snapshot_id}, from {known[0].at} on" if known else "there is none yet"
        raise TidemarkError(f"there is no snapshot {snapshot_id if at is None else f'at {at} or before'}; {span}.")
    return found[-1]
