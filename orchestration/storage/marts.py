"""Which marts belong to which snapshot: rows of ops.marts, each of which pins every mart of a build to the snapshot that it was built of.

A row is written last, so readers never see half a build: they ask the versions of the row before until then.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage.generations import active_generation
from orchestration.storage.log import Log
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot

MEANS_MARTS = re.compile(r"\bmarts`?\s*\.", re.IGNORECASE)
NAMED_MART = re.compile(MEANS_MARTS.pattern + r"\s*[`\"]?(\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class Build:
    """Grain: one build, a row of ops.marts. `versions` by SQL name, such as marts.hourly.

    The next one goes on from `reached`, how far the tables were that marts are made of (of a mart that was left out: the build that made
    it), and `basis`, a digest of what else they depend on.
    """

    build: int
    at: datetime
    snapshot_id: int
    generation: int
    versions: dict[str, int]
    reached: dict[str, int] = field(default_factory=dict)
    basis: str = ""

    @property
    def left_out(self) -> dict[str, int]:
        """Marts that stayed as an earlier build made them, with its number."""
        return {name: number for name, number in self.reached.items() if name in self.versions}


MARTS = Log("ops.marts", Build, order="build")


def newest(lake: Location, recorded: list[Build]) -> Build:
    """Return the build that readers see: the newest one of the active generation; until there is one, the newest of all."""
    generation = active_generation(lake).generation
    return ([build for build in recorded if build.generation == generation] or recorded)[-1]


def made(lake: Location, query: str) -> list[Build]:
    """The builds that made all marts that a query names, oldest first; those that left one of them out are not among them."""
    recorded = MARTS.rows(lake)
    named = {f"marts.{name.lower()}" for name in NAMED_MART.findall(query)}
    named &= newest(lake, recorded).versions.keys() if recorded else set()
    return [build for build in recorded if named <= build.versions.keys() - build.left_out.keys()]


def needed_snapshots(lake: Location) -> set[int]:
    """Ids of those that never expire: of each generation's newest build and what made its marts, to be asked also after a rollback."""
    recorded = {build.build: build for build in MARTS.rows(lake)}
    last = {build.generation: build for build in recorded.values()}.values()
    return {recorded[number].snapshot_id for build in last for number in (build.build, *build.left_out.values()) if number in recorded}


def forget(lake: Location, names: Collection[str]) -> None:
    """No build has these marts any more: their versions were of a table that is gone, and another begins with the same numbers."""
    builds = MARTS.rows(lake)
    kept = [replace(build, versions={name: version for name, version in build.versions.items() if name not in names}) for build in builds]
    if kept != builds:
        MARTS.replace(lake, kept)


def snapshot_for(lake: Location, query: str, snapshot_id: int | None = None, at: datetime | None = None) -> Snapshot | None:
    """The snapshot that a query is over, with the marts that were built of it. None where there is no snapshot yet.

    It is the one of that id, or the newest at that instant; else the newest, and for a query that names marts the newest that has some,
    so that marts and gold are of one snapshot.
    """
    if not MEANS_MARTS.search(query):
        return find_snapshot(lake, snapshot_id, at)
    builds = made(lake, query)
    if (snapshot_id, at) == (None, None) and builds:
        snapshot_id = newest(lake, builds).snapshot_id
    snapshot = find_snapshot(lake, snapshot_id, at)
    of_snapshot = [build for build in builds if snapshot is not None and build.snapshot_id == snapshot.snapshot_id]
    if snapshot is None or not of_snapshot:
        raise ConfError(_absent(MARTS.rows(lake), snapshot))
    return replace(snapshot, versions=snapshot.versions | of_snapshot[-1].versions)


def _absent(recorded: list[Build], snapshot: Snapshot | None) -> str:
    if not recorded or snapshot is None:
        return "there are no marts yet: build them with `tidemark dbt build`."
    having = ", ".join(str(number) for number in sorted({build.snapshot_id for build in recorded})[-5:])
    remedy = "`tidemark dbt build --all` builds all marts of the newest snapshot."
    return f"snapshot {snapshot.snapshot_id} does not have all marts that the query names; the newest with marts are {having}. {remedy}"
