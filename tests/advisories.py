"""Known holes of the locked versions, by a folder of advisories in the format of OSV: `python -m tests.advisories FOLDER [LOCK ...]`.

The folder is a clone of PyPA's advisory database (`make audit`), or another one whose files are OSV's, in YAML or JSON. It exits with 1
where a version of a lock has a hole that is not withdrawn, and says how old the newest advisory is: an old folder knows no new hole.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

LOCKS = ("requirements.lock", "requirements-uv.lock", "tests/bench/others/requirements.lock")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Hole:
    package: str
    version: str
    advisory: str


def locked(text: str) -> list[tuple[str, str]]:
    """Return the packages of a lock, each with its version; one twice, where it has another version on another system."""
    return [(_normal(name), version) for name, version in PINNED.findall(text)]


def holes(folder: Path, packages: Sequence[tuple[str, str]]) -> tuple[list[Hole], int, str]:
    """Find the holes of these versions; also how many advisories there are, and the newest instant at which one was changed."""
    found_holes, count, newest = list[Hole](), 0, ""
    for advisory in _advisories(folder):
        count += 1
        newest = max(newest, str(advisory.get("modified", "")))
        for affected in advisory.get("affected", []):
            name = _normal(affected["package"]["name"])
            if affected["package"]["ecosystem"] != "PyPI" or advisory.get("withdrawn"):
                continue
            versions = [version for package, version in packages if package == name]
            found_holes += [Hole(name, version, advisory["id"]) for version in versions if _is_affected(version, affected)]
    return sorted(set(found_holes)), count, newest


def _advisories(folder: Path) -> Iterator[dict[str, Any]]:
    for file in folder.rglob("*.*"):
        if file.suffix in (".yaml", ".json"):
            text = file.read_text(encoding="utf-8")
            yield json.loads(text) if file.suffix == ".json" else yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    own = Version(version)
    is_named = any(_version(other) == own for other in affected.get("versions", []))
    return is_named or any(_is_in(own, one["events"]) for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM")


def _is_in(version: Version, events: Sequence[Mapping[str, str]]) -> bool:
    """Say whether a version lies between an `introduced` and the `fixed` behind it, or up to a `last_affected`."""
    is_in = False
    for event in sorted(events, key=lambda event: _version(next(iter(event.values()))) or Version("0")):
        ((kind, text),) = event.items()
        bound = _version(text) or Version("0")
        if kind == "introduced" and version >= bound:
            is_in = True
        elif (kind == "fixed" and version >= bound) or (kind == "last_affected" and version > bound):
            is_in = False
    return is_in


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(folder: str, *locks: str) -> int:
    is_clean = True
    for lock in locks or LOCKS:
        packages = locked(Path(lock).read_text(encoding="utf-8"))
        listed, count, newest = holes(Path(folder), packages)
        for hole in listed:
            print(f"{lock}: {hole.package} {hole.version} has {hole.advisory}")
        print(f"{lock}: {len(listed)} holes in {len(packages)} locked versions, by {count:,} advisories, the newest of {newest or '?'}")
        is_clean = is_clean and not listed and count > 0
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
