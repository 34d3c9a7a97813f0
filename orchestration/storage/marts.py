"""Which marts belong to which snapshot: rows of ops.marts, each of which pins every mart of a build to the snapshot that it was built of.

A row is written last, so readers never see half a build: they ask the versions of the row before until then.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import pyarrow as pa
from deltalake import write_deltalake

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import compact_many, delete, path_of, rows_of
from orchestration.storage.generations import active_generation
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import INSTANT, find_snapshot

TABLE = "ops.marts"
SCHEMA = pa.schema(
    [
        *(("build", pa.int64()), ("at", INSTANT), ("snapshot_id", pa.int64()), ("generation", pa.int64())),
        *(("versions", pa.map_(pa.string(), pa.int64())), ("reached", pa.map_(pa.string(), pa.int64())), ("basis", pa.string())),
    ]
)
"""Grain: one build. `versions` by SQL name, such as marts.hourly. What the next one goes on from: `reached`, how far the tables were that
marts are made of, and `basis`, a digest of what else they depend on."""
MEANS_MARTS = re.compile(r"\bmarts`?\s*\.", re.IGNORECASE)


@dataclass(frozen=True)
class Build:
    """A row of ops.marts."""

    build: int
    at: datetime
    snapshot_id: int
    generation: int
    versions: dict[str, int]
    reached: dict[str, int] = field(default_factory=dict)
    basis: str = ""


def record(lake: Location, build: Build) -> None:
    """Append it: from then on it is what readers see."""
    _write(lake, [build], "append")
    compact_many(path_of(lake, TABLE))


def builds(lake: Location) -> list[Build]:
    """Every build, oldest first."""
    return sorted((Build(**row) for row in rows_of(path_of(lake, TABLE))), key=lambda build: build.build)


def newest(lake: Location, recorded: list[Build]) -> Build:
    """What readers see: the newest one of the active generation; until there is one, the newest of all."""
    generation = active_generation(lake).generation
    return ([build for build in recorded if build.generation == generation] or recorded)[-1]


def needed_snapshots(lake: Location) -> set[int]:
    """Ids of those that never expire: of the newest build of each generation, so that it can be asked, also after a rollback."""
    return set({build.generation: build.snapshot_id for build in builds(lake)}.values())


def forget(lake: Location, names: Collection[str]) -> None:
    """No build has these marts any more: their versions were of a table that is gone, and another begins with the same numbers."""
    known = builds(lake)
    kept = [replace(build, versions={name: version for name, version in build.versions.items() if name not in names}) for build in known]
    if kept != known:
        _write(lake, kept, "overwrite")


def snapshot_for(lake: Location, query: str, snapshot_id: int | None = None, at: datetime | None = None) -> Snapshot | None:
    """The snapshot that a query is over, with the marts that were built of it. None where there is no snapshot yet.

    It is the one of that id, or the newest at that instant; else the newest, and for a query that names marts the newest that has some,
    so that marts and gold are of one snapshot.
    """
    if not MEANS_MARTS.search(query):
        return find_snapshot(lake, snapshot_id, at)
    known = builds(lake)
    if (snapshot_id, at) == (None, None) and known:
        snapshot_id = newest(lake, known).snapshot_id
    snapshot = find_snapshot(lake, snapshot_id, at)
    of_snapshot = [build for build in known if snapshot is not None and build.snapshot_id == snapshot.snapshot_id]
    if snapshot is None or not of_snapshot:
        raise TidemarkError(_absent(known, snapshot))
    return replace(snapshot, versions=snapshot.versions | of_snapshot[-1].versions)


def forget_builds(lake: Location, snapshot_ids: Collection[int]) -> None:
    """Those that nobody can ask any more."""
    if snapshot_ids:
        delete(path_of(lake, TABLE), f"snapshot_id in ({', '.join(map(str, snapshot_ids))})")


def _write(lake: Location, written: list[Build], mode: Literal["append", "overwrite"]) -> None:
    write_deltalake(str(path_of(lake, TABLE)), pa.Table.from_pylist([*map(vars, written)], SCHEMA), mode=mode)


def _absent(recorded: list[Build], snapshot: Snapshot | None) -> str:
    if not recorded or snapshot is None:
        return "there are no marts yet: build them with `tidemark dbt build`."
    having = ", ".join(str(number) for number in sorted({build.snapshot_id for build in recorded})[-5:])
    return f"no marts were built of snapshot {snapshot.snapshot_id}; the newest that have some are {having}."
