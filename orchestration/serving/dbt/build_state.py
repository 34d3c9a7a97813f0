"""Decides whether a build can be incremental: on top of the last recorded build, or from scratch.

Before a build writes anything it saves a PendingBuild. So a build that was killed, failed or covered only some models leaves a trace. The
next build then computes again what came since the recorded one, which changes nothing if it is there already. If the pending build was of
another generation or project, nothing on the disk is reused.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.serving.dbt.targets import folder
from orchestration.storage.marts import MARTS, Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.state_file import StateFile

FILE = "pending_build.json"


@dataclass(frozen=True)
class PendingBuild:
    """Builds that began since the last recorded one. `digests`: of all of them; `snapshot_id`: of the newest.

    `marts_at_first`, `marts_at_newest`: the marts on the disk when the first, and when the newest of them began.
    """

    digests: Collection[str]
    marts_at_first: Collection[str]
    marts_at_newest: Collection[str]
    snapshot_id: int


def build_digest(conf: Conf, snapshot: Snapshot, project: Path, *, leaves_out_rows: bool) -> str:
    """A digest of what marts depend on besides rows: the generation, metrics, groups, and Tidemark's own dbt project."""
    settings = (*sorted(conf.metrics.items()), *sorted(conf.groups.items()))
    parts = [str(snapshot.generation), str(leaves_out_rows), *map(str, settings)]
    for file in sorted(project.rglob("*")):
        if file.suffix in {".sql", ".yml"}:
            parts += [str(file.relative_to(project)), file.read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def pending_build(lake: Location) -> StateFile[PendingBuild]:
    """The file, which is not there if no build began since the last recorded one."""
    return StateFile(folder(lake) / FILE, PendingBuild, "Remove it, and build with `tidemark dbt build --full-refresh`.")


def begin(lake: Location, digest: str, snapshot: Snapshot, on_disk: Collection[str]) -> None:
    """Save that a build begins. `on_disk`: marts on the disk."""
    file, marts = pending_build(lake), sorted(on_disk)
    before = file.read()
    digests = sorted({digest, *(before.digests if before else ())})
    file.write(PendingBuild(digests, before.marts_at_first if before else marts, marts, snapshot.snapshot_id))


def incremental_base(
    lake: Location, digest: str, snapshot: Snapshot, on_disk: Mapping[str, int], incremental: Collection[str]
) -> Build | None:
    """The newest recorded build that made all of `incremental`; None if they may hold errors that adding newer rows cannot repair.

    `incremental`: marts to build that keep their rows from build to build.
    """
    recorded, pending = MARTS.rows(lake), pending_build(lake).read()
    if not recorded:
        return None
    last = recorded[-1]
    created = set(on_disk) - set(pending.marts_at_first) if pending else set[str]()
    kept = {name for name in incremental if name in on_disk} - created
    first = min((last.left_out.get(name, last.build) for name in kept), default=last.build)
    since = [build for build in recorded if build.build >= first]
    if {*(build.basis for build in since), *(pending.digests if pending else ())} != {digest} or since[0].build != first:
        return None
    is_restored = any(on_disk.get(name, version) < version for name, version in last.versions.items())
    # A mart that the last build left out lacks the rows up to then; if somebody changed it since, nobody knows what it holds.
    is_unknown = any(last.versions.get(name, -1) != on_disk[name] for name in kept - (last.versions.keys() - last.left_out.keys()))
    return None if is_restored or is_unknown or snapshot.snapshot_id < last.snapshot_id else since[0]
