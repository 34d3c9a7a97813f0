"""What a build goes on from: the one that was recorded last, if all that changed since is known; else everything is made anew.

Before a build writes anything it notes that it has begun. So a build that was killed, failed or was of a part only leaves word of what it
may have written: what came since the recorded build is then computed once more, which changes nothing; and where it was of another
generation or by another project, nothing on the disk is gone on from.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestration.conf.model import Conf
from orchestration.serving.dbt.targets import folder
from orchestration.storage.atomic_json import read_atomic, write_atomic
from orchestration.storage.marts import Build, builds
from orchestration.storage.snapshot import Snapshot

FILE = "begun.json"


@dataclass(frozen=True)
class Begun:
    """What was begun since the last recorded build. `bases`: of all; `found_first` and `found`: marts on the disk when the first of them
    began, and when the newest did; `snapshot_id`: that the newest is of.
    """

    bases: tuple[str, ...]
    found_first: tuple[str, ...]
    found: tuple[str, ...]
    snapshot_id: int


def basis_of(conf: Conf, cut: Snapshot, project: Path, *, leaves_out_rows: bool) -> str:
    """A digest of what marts depend on beside rows: the generation, metrics, groups, the project that Tidemark ships."""
    told = [str(cut.generation), str(leaves_out_rows), *map(str, sorted(conf.metrics.items())), *map(str, sorted(conf.groups.items()))]
    for file in sorted(project.rglob("*")):
        if file.suffix in {".sql", ".yml"}:
            told += [str(file.relative_to(project)), file.read_text()]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def begun(lake: Path) -> Begun | None:
    """What was noted; None where nothing was begun since the last recorded build."""
    file = folder(lake) / FILE
    if not file.exists():
        return None
    content = read_atomic(file, "Remove it, and build with `tidemark dbt build --full-refresh`.")
    lists = {key: tuple(content[key]) for key in ("bases", "found_first", "found")}
    return Begun(**lists, snapshot_id=content["snapshot_id"])


def begin(lake: Path, basis: str, cut: Snapshot, on_disk: Collection[str]) -> None:
    """Note it."""
    before, found = begun(lake), tuple(sorted(on_disk))
    bases = {basis, *(before.bases if before else ())}
    noted = Begun(tuple(sorted(bases)), before.found_first if before else found, found, cut.snapshot_id)
    write_atomic(folder(lake) / FILE, asdict(noted))


def end(lake: Path) -> None:
    """The build is recorded."""
    (folder(lake) / FILE).unlink()


def goes_on_from(lake: Path, basis: str, cut: Snapshot, on_disk: Mapping[str, int], incremental: Collection[str]) -> Build | None:
    """The last recorded build; None where the marts on the disk may hold what no look at newer rows can mend.

    `incremental`: marts that keep their rows from build to build.
    """
    known, since = builds(lake), begun(lake)
    if not known or {known[-1].basis, *(since.bases if since else ())} != {basis} or cut.snapshot_id < known[-1].snapshot_id:
        return None
    last = known[-1]
    is_older = any(on_disk.get(name, version) < version for name, version in last.versions.items())
    # One that the last build left out has missed what came until then, unless it was created since.
    left_out = {name for name in incremental if name in on_disk and name not in last.versions} - _created_since(since, on_disk)
    return None if is_older or left_out else last


def _created_since(since: Begun | None, on_disk: Collection[str]) -> set[str]:
    return set(on_disk) - set(since.found_first) if since else set()
