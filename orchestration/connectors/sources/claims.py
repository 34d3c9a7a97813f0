"""Claims of files in a landing folder: only whole files are read, and each version of a file once.

A file counts as whole when it has not changed for `settle_seconds` (and, if gzip, unpacks to its end). It is then claimed by a
hard link below the lake (on another disk by a copy), so that its bytes stay ours when the producer deletes it; claims are read, never
the landing folder. A file that changes after it was claimed is claimed again as a new version and read again from its start: what
was there before arrives a second time, and silver drops duplicates.

A claim is `intake/<source>/<number>-<version>/<path below the landing folder>`. Numbers only grow, and files that are found together are
numbered by their time; a version is the file's time in nanoseconds since 1970 and its length in bytes.
"""

import fnmatch
import os
import re
import shutil
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sources.file_reader import HIDDEN, left_out
from silver.spec import PayloadFormat

DRAFT = ".draft"
"""A copy that is not whole yet; no landing file that is read has a name with a leading dot."""
FOLDER = re.compile(r"(\d+)-((-?\d+)-(\d+))")


class Claim(NamedTuple):
    """`file`: our link to it; `position`: its path below the landing folder; `modified_ns`: since 1970."""

    number: int
    version: str
    position: str
    file: Path
    modified_ns: int
    length: int


class Claims:
    """The claims of one source, in a folder that only this process writes."""

    def __init__(self, folder: Path) -> None:
        """Read the claims from the disk: one walk, as long as that of a landing folder with all of these files. `newest`: the greatest
        number."""
        self._folder = folder
        self._all = sorted(_claims(folder))
        self._by_position: dict[tuple[str, str], Claim] = {(claim.version, claim.position): claim for claim in self._all}
        # Of one whose file was gone before it could be claimed, the folder is there.
        self.newest = max((int(folder.name.partition("-")[0]) for folder in folder.glob("*-*-*")), default=-1)

    def __contains__(self, key: tuple[str, str]) -> bool:
        """Whether this version of the file at a position is claimed."""
        return key in self._by_position

    def is_of(self, key: tuple[str, str], file: Path) -> bool:
        """Whether this very file is claimed under that version and position."""
        return (claim := self._by_position.get(key)) is not None and claim.file.exists() and claim.file.samefile(file)

    def add(self, key: tuple[str, str], file: Path, number: int) -> None:
        """Claim a file, unless it is gone. Numbers must grow."""
        version, position = key
        self.newest = number
        claim = self._folder / f"{number:012d}-{version}" / position
        if _claim(file, claim):
            self._all.append(new := _as_claim(self._folder, claim))
            self._by_position[key] = new

    def after(self, number: int) -> list[Claim]:
        """List the claims with a greater number, in ascending order."""
        return self._all[bisect_right(self._all, number, key=lambda claim: claim.number) :]


def claim_settled(
    landing: LandingFolder, claims: Claims, now: float, after: int = -1, former: Sequence[Claims] = (), *, shape: PayloadFormat
) -> dict[Path, str]:
    """Claim every whole file that is not claimed yet, by this source or by one of the `former` ones: a source may get another name.

    `now` is in seconds since 1970, as file times are. `after`: a number that was given already, of a claim that may be gone. `shape`: of
    the files. Returns files that cannot be read, with the reason.
    """
    refused, whole = {}, []
    for file, stat in landing_files(landing):
        key = f"{stat.st_mtime_ns:020d}-{stat.st_size:012d}", str(file.relative_to(landing.path))
        is_claimed = key in claims or any(other.is_of(key, file) for other in former)
        if is_claimed or now - stat.st_mtime < landing.settle_seconds:
            continue
        if why := left_out(file, stat, shape):
            refused[file] = why
        else:
            whole.append((stat.st_mtime_ns, file, key))
    for number, (_, file, key) in enumerate(sorted(whole), max(after, claims.newest) + 1 if whole else 0):
        claims.add(key, file, number)
    return refused


def growing(landing: LandingFolder, now: float) -> list[Path]:
    """Files that have changed so lately that they may not be whole."""
    return sorted(file for file, stat in landing_files(landing) if now - stat.st_mtime < landing.settle_seconds)


def _claims(folder: Path) -> Iterator[Claim]:
    for within, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(within) != folder or FOLDER.fullmatch(name)]
        if Path(within) != folder:
            yield from (_as_claim(folder, Path(within) / name) for name in names if name != DRAFT)


def _as_claim(folder: Path, file: Path) -> Claim:
    named, *position = file.relative_to(folder).parts
    number, version, modified_ns, length = FOLDER.fullmatch(named).groups()  # type: ignore[union-attr]
    return Claim(int(number), version, "/".join(position), file, int(modified_ns), int(length))


def landing_files(landing: LandingFolder) -> Iterator[tuple[Path, os.stat_result]]:
    """List the files that match and are neither empty nor hidden, in subfolders too."""
    for folder, folders, names in os.walk(landing.path):
        folders[:] = [name for name in folders if not HIDDEN.match(name)]
        for name in fnmatch.filter(names, landing.files):
            with suppress(FileNotFoundError):
                if not HIDDEN.match(name) and (stat := (file := Path(folder) / name).stat()).st_size:
                    yield file, stat


def _claim(file: Path, claim: Path) -> bool:
    """Claim a file by a hard link, or by a copy if the landing folder is on another disk or may not be linked. Return False if the file
    is gone."""
    claim.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file.resolve(strict=True), claim)
    except FileNotFoundError:
        return False
    except OSError:
        return _copied(file, claim)
    return True


def _copied(file: Path, claim: Path) -> bool:
    draft = claim.parent / DRAFT
    try:
        shutil.copy2(file, draft)
    except FileNotFoundError:
        return False
    draft.rename(claim)
    return True
